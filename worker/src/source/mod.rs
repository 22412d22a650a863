//! From the text a model sent to a program the engine can run.
//!
//! Owns the forms of a program: what is code in the message, which statements give the
//! value, what is a type, and where each position was. Everything is decided on the
//! syntax tree of a real parser, in time and stack bounded by the size of the text, and
//! nothing is run: text in, text out. Never knows which host functions there are.
//!
//! A text that needs no change is handed on byte for byte. The decisions, and why this
//! parser, are in `docs/decisions/003-program-parser.md`.

mod bounds;
mod edits;
mod exports;
#[cfg(test)]
mod fuzz_tests;
mod lower;
mod module;
mod persist;
pub(crate) mod places;
mod read;
mod refuse;
mod shape;
mod tail;
#[cfg(test)]
mod tests;
mod types;
mod unawaited;
mod unwrap;
mod walk;

use bumpalo::Bump;
use std::borrow::Cow;

pub(crate) use brig_protocol::client::{Form, Language};
pub(crate) use edits::PositionMap;
pub(crate) use unawaited::PromiseRead;

/// A program that the engine can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// What the engine evaluates. Never holds a NUL.
    pub(crate) code: String,
    /// How the engine evaluates it.
    pub(crate) mode: Mode,
    /// From the engine's positions to those of the text as sent.
    pub(crate) map: PositionMap,
    /// What the program makes global, in order (only in a kept vm, where it outlives the
    /// evaluation).
    pub(crate) globals: Vec<Global>,
    /// The program as it was written, where the changes for a kept vm make something legal
    /// that is not: the engine must take this, too.
    pub(crate) as_written: Option<Uncalled>,
    /// Where it reads a member of a promise that no promise has (not in a kept vm, where an
    /// earlier program may have given it one). What is called in them need not be a host
    /// function.
    pub(crate) promise_reads: Vec<PromiseRead>,
}

/// A program as a function that nobody calls: what the engine says of it is all that it
/// would say before any of the program runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Uncalled {
    /// An expression that gives the function. Never holds a NUL.
    pub(crate) code: String,
    /// From the engine's positions to those of the text as sent.
    pub(crate) map: PositionMap,
}

/// A name that a program makes global.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Global {
    pub(crate) name: String,
    /// Where it is first declared, in bytes.
    offset: usize,
}

impl Global {
    /// The refusal of a name that cannot be declared, placed in `text` as it was sent.
    pub(crate) fn taken(&self, text: &str) -> SourceError {
        let message = format!("'{}' cannot be declared in a vm: it is a global already, and cannot be assigned to", self.name);
        let hint = "Choose another name, or declare it inside a function.";
        SourceError::at(self.offset, SourceErrorKind::Syntax, message).with_hint(hint).placed_in(text)
    }
}

/// How the engine evaluates a prepared program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A global script with top-level `await` (`EvalOptions { promise: true }`, not
    /// strict): its promise resolves to `{ value }`, the completion value, which may
    /// itself be a promise.
    Script,
    /// A plain global script (`promise: false`, not strict), already wrapped: its
    /// completion value is a promise of the program's value.
    Body,
}

/// Why a text is no program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceError {
    /// What sort of fault it is.
    pub(crate) kind: SourceErrorKind,
    /// One sentence, at most 400 bytes.
    pub(crate) message: String,
    /// From 1, in the text as sent.
    pub(crate) line: u32,
    /// From 1, in characters.
    pub(crate) column: u32,
    /// What to send instead.
    pub(crate) hint: Option<String>,
    /// Where it is, in bytes.
    offset: usize,
}

/// Sorts of fault. All of them are `syntax_error` to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceErrorKind {
    /// It does not parse, or not as the form that was asked for.
    Syntax,
    /// It is nested too deeply, or has too long a chain, for the parser.
    TooComplex,
    /// TypeScript that is more than types.
    TypeScript,
    /// It imports: the caller may add which collections there are.
    Import,
    /// It is not a program at all: a shell command, a quoted string, prose.
    NotAProgram,
}

/// Longest message, in bytes.
const MESSAGE_BYTES: usize = 400;

impl SourceError {
    fn at(offset: usize, kind: SourceErrorKind, message: String) -> Self {
        let mut message = message;
        if message.len() > MESSAGE_BYTES {
            let mut end = MESSAGE_BYTES - 3;
            while !message.is_char_boundary(end) {
                end -= 1;
            }
            message.truncate(end);
            message.push_str("...");
        }
        Self { kind, message, line: 1, column: 1, hint: None, offset }
    }

    /// Line and column of the fault in the text as sent, whose bytes were only blanked.
    fn placed_in(mut self, text: &str) -> Self {
        (self.line, self.column) = edits::position(text, self.offset);
        self
    }

    fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Prepares `text`, read as `form` and `language`. `kept_vm` says that what it declares
/// must outlive the evaluation.
///
/// # Errors
/// [`SourceError`] when the text is no program of that form; its position is one in the
/// text as sent.
pub(crate) fn prepare(text: &str, form: Form, language: Language, kept_vm: bool) -> Result<Program, SourceError> {
    prepared(text, form, language, kept_vm).map_err(|error| error.placed_in(text))
}

/// `text` as a function that nobody calls, to be checked and not run.
///
/// # Errors
/// As of [`prepare`].
pub(crate) fn uncalled(text: &str, form: Form, language: Language) -> Result<Uncalled, SourceError> {
    planned(text, form, language, false, function).map_err(|error| error.placed_in(text))
}

fn prepared(text: &str, form: Form, language: Language, kept_vm: bool) -> Result<Program, SourceError> {
    planned(text, form, language, kept_vm, finish)
}

/// Plans the changes that make `text` a program, and does something with them.
fn planned<T>(
    text: &str,
    form: Form,
    language: Language,
    kept_vm: bool,
    then: impl FnOnce(&str, &types::Base<'_>, shape::Plan) -> T,
) -> Result<T, SourceError> {
    bounds::check(text)?;
    let (source, layout, plan) = {
        // The tree takes many times the memory of the text: it goes before types do.
        let arena = Bump::new();
        let reading = read::read(text, &arena, form)?;
        let mut plan = shape::plan(&reading, form, kept_vm)?;
        if let (read::Tree::Statements { body, object: None }, false) = (&reading.tree, kept_vm) {
            plan.promise_reads = unawaited::reads(&reading.source, body);
        }
        let layout = types::Layout::of(&reading);
        (reading.source, layout, plan)
    };
    let base = types::javascript(&source, &layout, language)?;
    Ok(then(text, &base, plan))
}

fn finish(text: &str, base: &types::Base<'_>, plan: shape::Plan) -> Program {
    let as_written = plan.as_written.map(|plan| function(text, base, *plan));
    let (code, map) = changed(text, base, plan.edits);
    Program { code, mode: plan.mode, map, globals: plan.globals, as_written, promise_reads: plan.promise_reads }
}

fn function(text: &str, base: &types::Base<'_>, plan: shape::Plan) -> Uncalled {
    let (mut code, map) = changed(text, base, plan.uncalled(base.code.len()));
    if let Some(uncalled) = code.strip_suffix(shape::CALL) {
        code.truncate(uncalled.len());
    }
    Uncalled { code, map }
}

/// Makes the planned changes, on the text without types, and keeps the way back.
fn changed(text: &str, base: &types::Base<'_>, mut edits: edits::Edits) -> (String, PositionMap) {
    edits.extend_from(&base.edits);
    escape_nuls(&base.code, &mut edits);
    let code = edits.apply(&base.code).into_owned();
    (lone_returns_as_newlines(code), PositionMap::new(text, &base.code, edits))
}

/// The engine takes no NUL in its source. Only a literal or a comment can hold one in a
/// text that parses, where the escape means the same.
fn escape_nuls(code: &str, edits: &mut edits::Edits) {
    let bytes = code.as_bytes();
    for at in code.match_indices('\0').map(|(at, _)| at) {
        let slashes = bytes.iter().take(at).rev().take_while(|byte| **byte == b'\\').count();
        edits.replace(at, at + 1, if slashes % 2 == 1 { "x00" } else { "\\x00" });
    }
}

/// A carriage return alone ends a line for the engine in some places and not in others; a
/// line feed does everywhere and means the same.
fn lone_returns_as_newlines(code: String) -> String {
    let lone = |at: usize| code.as_bytes().get(at + 1) != Some(&b'\n');
    if !code.match_indices('\r').any(|(at, _)| lone(at)) {
        return code;
    }
    let fixed = code.char_indices().map(|(at, c)| if c == '\r' && lone(at) { '\n' } else { c });
    fixed.collect()
}

/// The program in the message: tags, fences and prose blanked.
fn cleaned(text: &str) -> Result<Cow<'_, str>, SourceError> {
    let bare = unwrap::without_tags(text);
    if !unwrap::has_fences(&bare) || (!unwrap::begins_with_fence(&bare) && read::fences_are_text(&bare)) {
        return Ok(bare);
    }
    match unwrap::fenced(&bare) {
        unwrap::Fenced::Program(code) => Ok(Cow::Owned(code)),
        unwrap::Fenced::OtherLanguage(at) => Err(refuse::other_language(at)),
        unwrap::Fenced::Nothing => Ok(bare),
    }
}
