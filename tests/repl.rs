//! `brig repl` at a terminal, as a person uses it: a pseudo-terminal is its standard input,
//! output and error, keys go in, and what the screen would get comes out.
#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

use acceptance::{Brigd, Terminal};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const DEADLINE: Duration = Duration::from_secs(60);
const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";
const TAB: &str = "\t";
const UP: &str = "\u{1b}[A";

/// A `brig repl` and the terminal it runs in.
struct Screen {
    child: Child,
    keys: File,
    /// Pieces of what it wrote; closed when the terminal is.
    pieces: Receiver<Vec<u8>>,
    /// What it wrote, without the sequences that steer a terminal.
    shown: String,
    /// How much of that was looked at.
    read: usize,
}

impl Screen {
    fn open(brigd: &Brigd, state: &Path, arguments: &[&str]) -> Self {
        let Terminal { child, keys, pieces } = Terminal::open((40, 200), "brig", |command| {
            command.arg("repl").args(arguments);
            command
                .env("BRIG_SOCKET", brigd.socket())
                .env("XDG_STATE_HOME", state)
                .env("TERM", "xterm")
                .env("NO_COLOR", "1")
                .current_dir("/");
        });
        Self { child, keys, pieces, shown: String::new(), read: 0 }
    }

    fn type_keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    fn enter(&mut self, line: &str) {
        self.type_keys(&format!("{line}\r"));
    }

    /// Waits until `text` was shown after what was waited for before; what came until then.
    fn wait_for(&mut self, text: &str) -> String {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let rest = self.shown.get(self.read..).unwrap_or_default();
            if let Some(at) = rest.find(text) {
                let until = rest.get(..at + text.len()).unwrap_or_default().to_owned();
                self.read += until.len();
                return until;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.pieces.recv_timeout(left) {
                Ok(piece) => self.shown.push_str(&plain(&String::from_utf8_lossy(&piece))),
                Err(fault) => panic!("{text:?} did not come ({fault}); there was:\n{}", self.shown),
            }
        }
    }

    /// The value of an input at a line of its own, and the prompt after it.
    fn value_of(&mut self, input: &str, value: &str) {
        self.enter(input);
        self.wait_for(&format!("\n{value}\n"));
        self.wait_for("> ");
    }

    fn end(mut self) -> ExitStatus {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().expect("its status") {
                return status;
            }
            assert!(Instant::now() < deadline, "the repl did not end:\n{}", self.shown);
            std::thread::yield_now();
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Without escape sequences and carriage returns: what is left is what was written.
fn plain(text: &str) -> String {
    let sequence = regex::Regex::new("\u{1b}\\[[0-9;?]*[A-Za-z]|\u{1b}[=>]|\r").expect("a pattern");
    sequence.replace_all(text, "").into_owned()
}

fn started(arguments: &[&str]) -> (Brigd, TempDir, Screen) {
    let brigd = Brigd::start();
    let state = tempfile::tempdir().expect("a folder");
    let mut screen = Screen::open(&brigd, state.path(), arguments);
    screen.wait_for(".help lists the commands");
    screen.wait_for("> ");
    (brigd, state, screen)
}

#[test]
fn lines_are_programs_and_names_persist_until_ctrl_d() {
    let (_brigd, _state, mut screen) = started(&[]);
    screen.value_of("const a = { deep: [1, 'x'] }", "undefined");
    screen.value_of("a", "{ deep: [ 1, 'x' ] }");
    screen.value_of("await Promise.resolve(a.deep.length)", "2");
    screen.enter("console.log('printed')");
    screen.wait_for("\nprinted\n");
    screen.wait_for("> ");
    screen.enter("a.missing.x");
    screen.wait_for("cannot read property 'x' of undefined");
    screen.wait_for("> ");
    screen.value_of("a.deep[0]", "1");
    screen.type_keys(CTRL_D);
    assert_eq!(screen.end().code(), Some(0));
}

#[test]
fn an_input_goes_on_until_it_is_closed() {
    let (_brigd, _state, mut screen) = started(&[]);
    screen.enter("function twice(x) {");
    screen.enter("  return x * 2");
    screen.enter("}");
    screen.wait_for("\nundefined\n");
    screen.enter("[1, 2]");
    screen.wait_for("\n[ 1, 2 ]\n");
    screen.enter("`a");
    screen.enter("b`.length + twice(");
    screen.enter("4)");
    screen.wait_for("\n11\n");
    screen.wait_for("> ");
    // What was begun is dropped by Ctrl-C, and the next line is an input of its own.
    screen.type_keys("const never = (");
    screen.wait_for("const never = (");
    screen.type_keys(CTRL_C);
    screen.wait_for("> ");
    screen.value_of("typeof never", "'undefined'");
}

#[test]
fn tab_completes_collections_functions_names_and_commands() {
    let functions = tempfile::NamedTempFile::new().expect("a file");
    let table = r#"{"orders": {"list": {"static": [{"id": "o_1"}]}, "refund": {"static": null}}}"#;
    std::fs::write(functions.path(), table).expect("the functions");
    let (_brigd, _state, mut screen) = started(&["--functions", functions.path().to_str().expect("a path")]);
    screen.type_keys(&format!("await ord{TAB}"));
    screen.wait_for("orders");
    screen.type_keys(&format!(".li{TAB}"));
    screen.wait_for("orders.list");
    screen.enter("({})");
    screen.wait_for("\n[ { id: 'o_1' } ]\n");
    screen.wait_for("> ");
    screen.value_of("const longNameOfMine = 5", "undefined");
    screen.type_keys(&format!("longN{TAB}"));
    screen.wait_for("longNameOfMine");
    screen.enter(" + 1");
    screen.wait_for("\n6\n");
    screen.wait_for("> ");
    screen.type_keys(&format!(".he{TAB}"));
    screen.enter("");
    screen.wait_for("forget all names");
}

#[test]
fn ctrl_c_cancels_the_program_and_leaves_the_names() {
    let (_brigd, _state, mut screen) = started(&[]);
    screen.value_of("const kept = 7", "undefined");
    screen.enter("console.log('run' + 'ning'); await new Promise((done) => setTimeout(done, 1e6))");
    screen.wait_for("\nrunning\n");
    screen.type_keys(CTRL_C);
    screen.wait_for("cancelled");
    screen.wait_for("> ");
    screen.value_of("kept", "7");
}

#[test]
fn ctrl_c_ends_a_program_that_never_yields_and_the_repl_goes_on() {
    let (_brigd, _state, mut screen) = started(&[]);
    screen.enter("console.log('run' + 'ning'); for (;;) {}");
    screen.wait_for("\nrunning\n");
    screen.type_keys(CTRL_C);
    // When it does not stop in time its vm goes with it, and a person is told.
    screen.wait_for("cancelled");
    screen.wait_for("> ");
    screen.value_of("20 + 1", "21");
}

#[test]
fn the_history_is_there_for_the_up_key_and_for_the_next_time() {
    let (brigd, state, mut screen) = started(&[]);
    screen.value_of("6 * 7", "42");
    screen.value_of("'other'", "'other'");
    screen.type_keys(&format!("{UP}{UP}\r"));
    screen.wait_for("\n42\n");
    screen.wait_for("> ");
    screen.type_keys(CTRL_D);
    assert_eq!(screen.end().code(), Some(0));
    let history = std::fs::read_to_string(state.path().join("brig/repl_history")).expect("a history");
    assert!(history.contains("6 * 7") && history.contains("'other'"), "{history}");
    let mut again = Screen::open(&brigd, state.path(), &[]);
    again.wait_for("> ");
    again.type_keys(&format!("{UP}{UP}\r"));
    again.wait_for("\n'other'\n");
}

#[test]
fn what_a_program_prints_can_not_steer_the_terminal() {
    let (_brigd, _state, mut screen) = started(&[]);
    screen.enter(r#"console.log("\x1b]0;title\x07" + "end"); "\x1b[2J""#);
    let shown = screen.wait_for("> ");
    let after = shown.split("\n").skip(1).collect::<String>();
    assert!(!after.contains("\u{1b}]0") && !after.contains('\u{7}'), "{after:?}");
    assert!(after.contains("end"), "{after:?}");
}
