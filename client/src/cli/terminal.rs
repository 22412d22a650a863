//! The terminal.
//!
//! Owns writing to standard output and error, and remembers the first write to standard
//! output that failed. A pipe that was closed is quiet: whoever closed it has seen
//! enough. Never writes a control character that a guest chose.

use brig::protocol::escape::escaped;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

/// Why standard output is not complete.
static LOST_OUTPUT: OnceLock<String> = OnceLock::new();

/// Whether a person reads standard output.
pub(crate) fn reads_stdout() -> bool {
    std::io::stdout().is_terminal()
}

/// Writes to standard output.
pub(crate) fn out(text: &str) {
    let mut stdout = std::io::stdout().lock();
    note_output(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()));
}

/// Remembers the first failure of a write to standard output.
pub(crate) fn note_output(written: io::Result<()>) {
    if let Err(fault) = written
        && fault.kind() != io::ErrorKind::BrokenPipe
    {
        LOST_OUTPUT.get_or_init(|| fault.to_string());
    }
}

/// Why something that went to standard output did not arrive, if anything did not.
pub(crate) fn lost_output() -> Option<&'static str> {
    LOST_OUTPUT.get().map(String::as_str)
}

/// Writes to standard error; colours are left out where nobody would see them.
pub(crate) fn err(text: &str) {
    let mut stderr = anstream::stderr().lock();
    stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush()).ok();
}

/// Says why the command can not go on.
pub(crate) fn complain(message: &str) {
    err(&format!("brig: {}\n", message.trim_end()));
}

/// A guest's text of several lines: line ends and tabs stay, everything else that could
/// move the cursor or turn text around is escaped.
pub(crate) fn safe_lines(text: &str) -> String {
    text.split('\n')
        .map(|line| line.split('\t').map(|part| escaped(part, usize::MAX)).collect::<Vec<_>>().join("\t"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::safe_lines;

    #[test]
    fn lines_and_tabs_stay_and_escape_sequences_do_not() {
        assert_eq!(safe_lines("a\tb\nc\u{1b}[2J\r\u{202e}\n"), "a\tb\nc\\u{1b}[2J\\u{d}\\u{202e}\n");
    }
}
