//! Where input comes from: a person at a terminal, or lines of a pipe.
//!
//! Owns the editor and its history. Reading blocks, so it has a thread; the connection
//! goes on meanwhile.

use super::complete::Names;
use super::input;
use crate::cli::Fault;
use brig::protocol::limits::SOURCE_BYTES;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Context, Editor, Helper};
use std::io::{BufRead, IsTerminal, Read as _};
use std::path::PathBuf;

/// Most inputs in the history file.
const HISTORY: usize = 2_000;

/// What was read.
pub(super) enum Read {
    /// A whole input.
    Program(String),
    /// Ctrl-C: what was typed is dropped.
    Dropped,
    /// There is no more.
    End,
}

/// The source of inputs.
pub(super) enum Lines {
    /// A person.
    Terminal(Box<Terminal>),
    /// Standard input that is no terminal.
    Pipe,
}

/// The editor.
pub(super) struct Terminal {
    editor: Editor<Assistant, DefaultHistory>,
    history: Option<PathBuf>,
}

impl Lines {
    /// A terminal gets an editor; everything else is read as it is.
    pub(super) fn open(names: Names) -> Self {
        if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
            return Self::Pipe;
        }
        let config = Config::builder().max_history_size(HISTORY).map(|config| config.auto_add_history(true).build()).unwrap_or_default();
        match Editor::with_config(config) {
            Ok(mut editor) => {
                editor.set_helper(Some(Assistant { names }));
                let history = history_file();
                if let Some(path) = &history {
                    // The first time there is none.
                    editor.load_history(path).ok();
                }
                Self::Terminal(Box::new(Terminal { editor, history }))
            }
            Err(_) => Self::Pipe,
        }
    }

    /// Whether a person reads and types.
    pub(super) const fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal(_))
    }

    /// The next input, on a thread that may wait. When this is dropped the thread goes
    /// on waiting, and ends with the process.
    pub(super) fn read(self) -> impl Future<Output = Result<(Self, Read), Fault>> {
        let reading = tokio::task::spawn_blocking(move || self.read_now());
        async { reading.await.map_err(|fault| Fault::usage(format!("standard input can not be read: {fault}")))? }
    }

    fn read_now(mut self) -> Result<(Self, Read), Fault> {
        let read = match &mut self {
            Self::Terminal(terminal) => terminal.read(),
            Self::Pipe => read_pipe(),
        }?;
        Ok((self, read))
    }
}

impl Terminal {
    fn read(&mut self) -> Result<Read, Fault> {
        match self.editor.readline("> ") {
            Ok(text) => {
                if let Some(path) = &self.history {
                    // A history that can not be written is none; the program counts.
                    self.editor.append_history(path).ok();
                }
                Ok(Read::Program(text))
            }
            Err(ReadlineError::Interrupted) => Ok(Read::Dropped),
            Err(ReadlineError::Eof) => Ok(Read::End),
            Err(fault) => Err(Fault::usage(format!("the terminal can not be read: {fault}"))),
        }
    }
}

/// Lines until they make a whole input. At the end of a pipe what there is has to do.
fn read_pipe() -> Result<Read, Fault> {
    let unreadable = |fault: &dyn std::fmt::Display| Fault::usage(format!("standard input can not be read: {fault}"));
    let mut text = String::new();
    let mut stdin = std::io::stdin().lock();
    loop {
        let room = u64::try_from(SOURCE_BYTES.saturating_add(1).saturating_sub(text.len())).unwrap_or(0);
        let length = stdin.by_ref().take(room).read_line(&mut text).map_err(|fault| unreadable(&fault))?;
        if text.len() > SOURCE_BYTES {
            return Err(unreadable(&format!("a program has more than {SOURCE_BYTES} bytes")));
        }
        if length == 0 {
            return Ok(if text.trim().is_empty() { Read::End } else { Read::Program(text) });
        }
        if input::command(&text).is_some() || !input::goes_on(&text) {
            return Ok(Read::Program(text));
        }
    }
}

/// `brig/repl_history` where a user's state is kept; its folder is made.
fn history_file() -> Option<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = state.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state")))?;
    let folder = state.join("brig");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    Some(folder.join("repl_history"))
}

/// What the editor asks while a person types.
struct Assistant {
    names: Names,
}

impl Completer for Assistant {
    type Candidate = String;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.names.complete(line, position))
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input();
        let goes_on = input::command(text).is_none() && input::goes_on(text);
        Ok(if goes_on { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Hinter for Assistant {
    type Hint = String;
}

impl Highlighter for Assistant {}

impl Helper for Assistant {}
