//! What brigd says to whoever started it by hand.
//!
//! Owns writing to standard output and standard error. Either may be closed, full, or a
//! pipe whose reader has gone: no reason to end in another way than the work does, so the
//! macros of the standard library, which panic then, are used nowhere.

use brig_protocol::escape::escaped;
use std::io::{self, ErrorKind, Write as _};
use std::process::ExitCode;

/// Longest line of a complaint, in bytes: a parser quotes the line where it stopped.
pub(crate) const LINE_BYTES: usize = 4096;
/// What comes before each further line, so that none can be taken for one of brigd's own.
const FURTHER: &str = "    ";

/// Writes to standard output.
///
/// # Errors
/// What the system says.
pub(crate) fn out(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
}

/// Writes to standard output what a command is for: the end of that command.
pub(crate) fn print(text: &str) -> ExitCode {
    end_of(out(text))
}

/// A pipe that was closed is no failure: whoever closed it wanted no more.
///
/// # Errors
/// Any other fault of a write.
pub(crate) fn unless_closed(fault: io::Error) -> io::Result<()> {
    if fault.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(fault) }
}

/// What a write to standard output means for a command that has done its work: an
/// answer that is lost is no success.
pub(crate) fn end_of(written: io::Result<()>) -> ExitCode {
    match written.or_else(unless_closed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            complain(&format!("cannot write to standard output: {fault}"));
            ExitCode::from(1)
        }
    }
}

/// A complaint of one or more lines on standard error. What it quotes of files that may
/// hold anything moves no terminal, and begins no line of its own.
pub(crate) fn complain(text: &str) {
    of("brigd", text);
}

/// The same by a part of brigd.
pub(crate) fn of(who: &str, text: &str) {
    // Nobody is left to be told that nobody is told.
    io::stderr().write_all(format!("{who}: {}\n", lines(text, LINE_BYTES)).as_bytes()).ok();
}

/// Text of several lines: the further ones are set in, and nothing in any moves the terminal.
pub(crate) fn lines(text: &str, limit: usize) -> String {
    text.trim_end().split('\n').map(|line| escaped(line, limit)).collect::<Vec<_>>().join(&format!("\n{FURTHER}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_quoted_begins_a_line_as_brigd_does() {
        assert_eq!(lines("one\nbrigd: two\u{1b}[2J\n\n", 4096), "one\n    brigd: two\\u{1b}[2J");
    }
}
