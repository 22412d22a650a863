//! What the program printed.
//!
//! Owns the bound on each stream. A worker holds itself to the same bound, but is
//! never trusted to: what goes beyond it is cut here, and a worker that goes on is in
//! breach.

use super::warnings::character_boundary;
use brig_protocol::client::{Capture, Stream};
use brig_protocol::worker::Violation;

/// Bytes beyond the limit that are dropped without calling it a breach.
const SLACK_BYTES: usize = 64 * 1024;

/// How the mark of a worker ends.
const WORKER_MARK_END: &str = "limits.console_bytes raises it]\n";

/// Both streams of one evaluation.
#[derive(Debug)]
pub(crate) struct Console {
    stdout: Captured,
    stderr: Captured,
    limit: usize,
}

#[derive(Debug, Default)]
struct Captured {
    keep: bool,
    text: String,
    /// Bytes that the worker sent, kept or not.
    seen: usize,
    truncated: bool,
}

/// Both streams as the answer carries them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Printed {
    /// `console.log` and its like.
    pub(crate) stdout: String,
    /// `console.error` and its like.
    pub(crate) stderr: String,
    /// Whether `stdout` was cut.
    pub(crate) stdout_truncated: bool,
    /// Whether `stderr` was cut.
    pub(crate) stderr_truncated: bool,
}

impl Console {
    /// Takes at most `limit` bytes of each stream, and keeps what `capture` says.
    pub(crate) fn new(limit: u64, capture: Capture) -> Self {
        let stdout = Captured { keep: capture == Capture::All, ..Captured::default() };
        let stderr = Captured { keep: capture != Capture::None, ..Captured::default() };
        Self { stdout, stderr, limit: usize::try_from(limit).unwrap_or(usize::MAX) }
    }

    /// Takes what a worker sent and gives back the part within the limit.
    ///
    /// # Errors
    /// A breach: nothing at all was sent, or far more than the limit.
    pub(crate) fn take<'a>(&mut self, stream: Stream, text: &'a str, truncated: bool) -> Result<&'a str, Violation> {
        if text.is_empty() && !truncated {
            return Err(Violation::Malformed("output without a text".to_owned()));
        }
        let limit = self.limit;
        let captured = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let before = captured.seen;
        captured.seen = before.saturating_add(text.len().max(1));
        if captured.seen > limit.saturating_add(SLACK_BYTES) {
            let limit = u64::try_from(limit).unwrap_or(u64::MAX);
            return Err(Violation::Oversized { what: "console output", bytes: captured.seen, limit });
        }
        let fits = text.get(..character_boundary(text, limit.saturating_sub(before))).unwrap_or_default();
        captured.truncated |= truncated || fits.len() < text.len();
        if captured.keep {
            captured.text.push_str(fits);
        }
        Ok(fits)
    }

    /// What the answer carries.
    pub(crate) fn printed(self) -> Printed {
        let limit = self.limit;
        Printed {
            stdout_truncated: self.stdout.truncated,
            stderr_truncated: self.stderr.truncated,
            stdout: self.stdout.marked(limit),
            stderr: self.stderr.marked(limit),
        }
    }
}

impl Captured {
    fn marked(mut self, limit: usize) -> String {
        // A worker that cut by itself has marked it, unless the limit left no room for that.
        if self.truncated && self.keep && !self.text.ends_with(WORKER_MARK_END) {
            if !self.text.is_empty() && !self.text.ends_with('\n') {
                self.text.push('\n');
            }
            self.text
                .push_str(&format!("[cut: {}]\n", brig_protocol::limits::named("consoleBytes", u64::try_from(limit).unwrap_or(u64::MAX))));
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn output_is_cut_at_a_character_with_a_mark_and_the_flag() {
        let mut console = Console::new(5, Capture::All);
        assert_eq!(console.take(Stream::Stdout, "ab\n", false).unwrap(), "ab\n");
        assert_eq!(console.take(Stream::Stdout, "é🦀", false).unwrap(), "é");
        let printed = console.printed();
        assert!(printed.stdout.starts_with("ab\né\n[cut: limit consoleBytes is 5;"), "{}", printed.stdout);
        assert!(printed.stdout_truncated && !printed.stderr_truncated);
    }

    #[test]
    fn what_the_worker_cut_is_marked_once() {
        for (said, marked) in [
            ("abc\n[cut: limits.console_bytes raises it]\n", "abc\n[cut: limits.console_bytes raises it]\n"),
            ("abc", "abc\n[cut: limit consoleBytes is 50;"),
        ] {
            let mut console = Console::new(50, Capture::All);
            console.take(Stream::Stderr, said, false).unwrap();
            console.take(Stream::Stderr, "", true).unwrap();
            let printed = console.printed();
            assert!(printed.stderr_truncated && printed.stderr.starts_with(marked), "{}", printed.stderr);
            assert_eq!(printed.stderr.matches("[cut").count(), 1);
        }
    }

    #[test]
    fn what_is_not_captured_is_still_bounded() {
        let mut console = Console::new(5, Capture::Stderr);
        console.take(Stream::Stdout, "abc", false).unwrap();
        assert!(console.take(Stream::Stdout, &"x".repeat(SLACK_BYTES + 10), false).is_err());
        assert_eq!(console.printed().stdout, "");
    }

    #[test]
    fn empty_output_is_a_breach_and_so_is_a_flood_of_cut_notes() {
        let mut console = Console::new(5, Capture::All);
        assert!(console.take(Stream::Stdout, "", false).is_err());
        let taken = (0..=SLACK_BYTES + 5).take_while(|_| console.take(Stream::Stdout, "", true).is_ok()).count();
        assert!(taken <= SLACK_BYTES + 5);
        assert!(console.take(Stream::Stdout, "", true).is_err());
    }
}
