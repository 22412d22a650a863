//! Hostile text on its way to a log or a terminal.

use crate::drive::{behaviour, fuzz};
use brig_protocol::escape::escaped;

/// What may not reach a line: written down again, from the Unicode properties
/// (Cc, Bidi_Control, the two separators) and the byte order mark.
fn is_unsafe(character: char) -> bool {
    let code = u32::from(character);
    character.is_control()
        || [0x61C, 0x200E, 0x200F, 0x2028, 0x2029, 0xFEFF].contains(&code)
        || (0x202A..=0x202E).contains(&code)
        || (0x2066..=0x2069).contains(&code)
}

#[test]
fn escaped_text_is_safe_and_within_its_limit() {
    let seeds =
        ["plain text", "a\nb\u{1b}[31m\u{202e}c\u{2028}\u{feff}", "žluťoučký 漢字 🦀\u{9f}\u{85}", "\u{2066}\u{61c}\u{200f}\r\0\u{7f}"];
    let words = ["\u{202e}", "\u{2028}", "\u{0}", "\n", "é", "🦀", "x", "\u{2069}", "\\u{202e}"];
    fuzz(&crate::target("escape", &words, 70), seeds.iter().map(|seed| [b"\x09", seed.as_bytes()].concat()).collect(), |input| {
        let limit = input.first().map_or(0, |byte| usize::from(*byte));
        let text = String::from_utf8_lossy(input.get(1..).unwrap_or_default());
        let out = escaped(&text, limit);
        assert!(!out.contains(is_unsafe), "{out:?}");
        let cut = out.strip_suffix('…').filter(|kept| *kept != text);
        assert!(cut.unwrap_or(&out).len() <= limit || out == text, "{} bytes of {limit}", out.len());
        let needs_nothing = !text.contains(is_unsafe) && text.len() <= limit;
        assert!(!needs_nothing || out == text, "{out:?}");
        behaviour(&format!("{} {} {}", cut.is_some(), out == text, out.contains("\\u{")))
    });
}
