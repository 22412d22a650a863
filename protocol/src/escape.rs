//! Making hostile text safe to print.
//!
//! Owns the escaping of strings that a guest, a worker or a client chose before they
//! reach a log, a terminal or an error. Never changes what is printable.

use std::fmt::{self, Display, Formatter};
use std::path::Path;

/// `text` with control and bidirectional characters as `\u{..}`, cut to `limit`
/// bytes (a cut ends in `…`).
#[must_use]
pub fn escaped(text: &str, limit: usize) -> String {
    let mut out = String::with_capacity(text.len().min(limit));
    for character in text.chars() {
        let escape = is_unsafe(character).then(|| character.escape_unicode());
        let length = escape.as_ref().map_or(character.len_utf8(), ExactSizeIterator::len);
        if out.len() + length > limit {
            out.push('…');
            break;
        }
        match escape {
            Some(escape) => out.extend(escape),
            None => out.push(character),
        }
    }
    out
}

/// The whole of `text` as one line: see [`escaped`].
#[must_use]
pub fn line(text: &str) -> String {
    escaped(text, usize::MAX)
}

/// A path on one line, as everything that a person reads shows it: whoever may make a file
/// somewhere chooses its name.
#[derive(Clone, Copy, Debug)]
pub struct ShownPath<'p>(&'p Path);

impl Display for ShownPath<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&line(&self.0.to_string_lossy()))
    }
}

/// Paths in texts for people. Nothing of brig says `display`, which leaves a name as it is.
pub trait ShowPath {
    /// On one line.
    fn shown(&self) -> ShownPath<'_>;
}

impl ShowPath for Path {
    fn shown(&self) -> ShownPath<'_> {
        ShownPath(self)
    }
}

/// C0, C1, line and paragraph separators, and everything that turns text around.
fn is_unsafe(character: char) -> bool {
    matches!(character,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::{ShowPath as _, escaped};
    use std::path::Path;

    #[test]
    fn what_could_forge_a_line_or_turn_text_around_is_escaped() {
        assert_eq!(escaped("a\nb\u{1b}[31m\u{202e}c\u{2028}", 100), "a\\u{a}b\\u{1b}[31m\\u{202e}c\\u{2028}");
    }

    #[test]
    fn a_path_is_one_line_whatever_its_name() {
        let shown = Path::new("/a b/c\nbrigd: all is well\u{1b}[2J").shown().to_string();
        assert_eq!(shown, "/a b/c\\u{a}brigd: all is well\\u{1b}[2J");
    }

    #[test]
    fn ordinary_text_of_any_script_stays() {
        assert_eq!(escaped("žluťoučký 漢字 🦀", 100), "žluťoučký 漢字 🦀");
    }

    #[test]
    fn a_long_text_is_cut_with_a_mark() {
        assert_eq!(escaped("aaaaaaaa", 3), "aaa…");
        assert_eq!(escaped("aaa", 3), "aaa");
    }

    #[test]
    fn an_escape_that_does_not_fit_is_left_out_whole() {
        assert_eq!(escaped("ab\u{202e}", 9), "ab…");
        assert_eq!(escaped("ab\u{202e}", 10), "ab\\u{202e}");
    }
}
