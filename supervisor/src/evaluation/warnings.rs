//! What the caller would otherwise lose.
//!
//! Owns the bound on the number and the length of warnings: the last one counts what
//! did not fit.

use brig_protocol::client::{Warning, WarningCode};
use brig_protocol::limits;
use brig_protocol::worker::Violation;

/// Longest sentence, in bytes.
const MESSAGE_BYTES: usize = 2048;
/// Longest path, in bytes.
const PATH_BYTES: usize = 1024;
/// A worker that sends more than this is in breach: it counts the rest itself.
const FROM_WORKER: usize = 10_000;

/// The warnings of one evaluation.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    kept: Vec<Warning>,
    more: usize,
    from_worker: usize,
}

impl Warnings {
    /// One of the supervisor's own.
    pub(crate) fn keep(&mut self, warning: Warning) {
        // One place is left for the count of the rest.
        if self.kept.len() + 1 < limits::WARNINGS {
            self.kept.push(warning);
        } else {
            self.more += 1;
        }
    }

    /// One that a worker sent, cut to size; given back if it was kept.
    ///
    /// # Errors
    /// A breach when there are far too many.
    pub(crate) fn take(&mut self, mut warning: Warning) -> Result<Option<&Warning>, Violation> {
        self.from_worker += 1;
        if self.from_worker > FROM_WORKER {
            return Err(Violation::Malformed(format!("more than {FROM_WORKER} warnings")));
        }
        cut(&mut warning.message, MESSAGE_BYTES);
        if let Some(path) = &mut warning.path {
            cut(path, PATH_BYTES);
        }
        let before = self.more;
        self.keep(warning);
        Ok(self.kept.last().filter(|_| self.more == before))
    }

    /// All of them, and the count of what did not fit.
    pub(crate) fn finish(mut self) -> Vec<Warning> {
        if self.more > 0 {
            let message = format!("{} more warnings were not kept", self.more);
            self.kept.push(Warning { code: WarningCode::MoreWarnings, message, path: None });
        }
        self.kept
    }
}

/// The last boundary of a character at or before `limit`.
pub(super) fn character_boundary(text: &str, limit: usize) -> usize {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}

/// Cuts a text to `limit` bytes, at a character, with a mark.
pub(crate) fn cut(text: &mut String, limit: usize) {
    if text.len() > limit {
        text.truncate(character_boundary(text, limit));
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_warning_counts_what_did_not_fit() {
        let mut warnings = Warnings::default();
        for _ in 0..limits::WARNINGS + 5 {
            warnings.keep(Warning { code: WarningCode::LossyValue, message: "x".to_owned(), path: None });
        }
        let all = warnings.finish();
        assert_eq!(all.len(), limits::WARNINGS);
        assert!(all.last().is_some_and(|last| last.code == WarningCode::MoreWarnings && last.message.starts_with("6 more")));
    }

    #[test]
    fn a_long_sentence_is_cut_at_a_character() {
        let mut text = "é".repeat(10);
        cut(&mut text, 5);
        assert_eq!(text, "éé…");
    }
}
