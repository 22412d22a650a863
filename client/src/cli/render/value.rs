//! A JSON value for people.
//!
//! Owns pretty-printing of JSON text as text: numbers keep their spelling, members
//! their order, and nesting is no recursion. What it prints is always the same value as
//! JSON, so that it can go through a pipe too.

use serde_json::value::RawValue;
use std::fmt::Write;

/// Widest array or object that stays on one line.
const INLINE_CHARACTERS: usize = 60;

/// The value as it is printed, with its line end. A `raw` string has no quotes, and is
/// made safe when a `terminal` shows it.
pub(crate) fn value(value: &RawValue, raw: bool, terminal: bool) -> String {
    let text = value.get();
    if raw && let Ok(string) = serde_json::from_str::<String>(text) {
        return format!("{}\n", if terminal { super::lines(&string) } else { string });
    }
    pretty(text) + "\n"
}

/// One token after another, indented by two.
pub(crate) fn pretty(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0usize;
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '{' | '[' => match inline(rest) {
                // An object at the top is the answer: a member a line.
                Some((length, short)) if first == '[' || depth > 0 || length <= 2 => {
                    out.push_str(&short);
                    length
                }
                _ => {
                    depth += 1;
                    out.push(first);
                    new_line(&mut out, depth);
                    1
                }
            },
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(first);
                1
            }
            ',' => {
                out.push(first);
                new_line(&mut out, depth);
                1
            }
            ':' => {
                out.push_str(": ");
                1
            }
            white if white.is_ascii_whitespace() => 1,
            _ => scalar(rest, &mut out),
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    out
}

/// A container that is short enough for one line: how long it is in the text, and how
/// it looks.
fn inline(text: &str) -> Option<(usize, String)> {
    let mut out = String::new();
    let mut depth = 0usize;
    let mut offset = 0usize;
    loop {
        let rest = text.get(offset..)?;
        let first = rest.chars().next()?;
        offset += match first {
            '{' | '[' => {
                depth += 1;
                out.push(first);
                1
            }
            '}' | ']' => {
                depth -= 1;
                out.push(first);
                1
            }
            ',' | ':' => {
                out.push(first);
                out.push(' ');
                1
            }
            white if white.is_ascii_whitespace() => 1,
            _ => scalar(rest, &mut out),
        };
        if depth == 0 {
            return (out.chars().count() <= INLINE_CHARACTERS).then_some((offset, out));
        }
        if out.len() > 4 * INLINE_CHARACTERS {
            return None;
        }
    }
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    // Beyond this an indent is no help to anyone, and deep nesting would cost its square.
    out.extend(std::iter::repeat_n("  ", depth.min(40)));
}

/// Copies a string or a word; gives its length in the text.
fn scalar(text: &str, out: &mut String) -> usize {
    let Some(string) = text.strip_prefix('"') else {
        let length = text.find([',', ':', '{', '}', '[', ']', ' ', '\n', '\r', '\t']).unwrap_or(text.len()).max(1);
        out.push_str(text.get(..length).unwrap_or_default());
        return length;
    };
    let mut escaped = false;
    let end = string
        .char_indices()
        .find(|(_, character)| {
            let closes = *character == '"' && !escaped;
            escaped = *character == '\\' && !escaped;
            closes
        })
        .map_or(string.len(), |(index, _)| index);
    out.push('"');
    push_safe(string.get(..end).unwrap_or_default(), out);
    out.push('"');
    end + 2
}

/// Inside a string, what could move the cursor or turn text around is spelt as a JSON
/// escape: it stays the same string.
fn push_safe(text: &str, out: &mut String) {
    for character in text.chars() {
        let mut buffer = [0; 4];
        let one: &str = character.encode_utf8(&mut buffer);
        if super::line(one) == one {
            out.push(character);
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                write!(out, "\\u{unit:04x}").ok();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use proptest::prelude::*;

    fn raw(text: &str) -> Box<RawValue> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn short_values_stay_on_one_line_and_long_ones_are_indented() {
        assert_eq!(pretty(r#"{"refunded":1,"all":{"total":2}}"#), "{\n  \"refunded\": 1,\n  \"all\": {\"total\": 2}\n}");
        assert_eq!((pretty("[1,2]"), pretty("{}"), pretty("[]")), ("[1, 2]".to_owned(), "{}".to_owned(), "[]".to_owned()));
        let long = format!(r#"{{"a":"{}","b":[1,2]}}"#, "x".repeat(80));
        assert_eq!(pretty(&long), format!("{{\n  \"a\": \"{}\",\n  \"b\": [1, 2]\n}}", "x".repeat(80)));
    }

    #[test]
    fn numbers_keep_their_spelling() {
        assert_eq!(pretty("[1e21, 12345678901234567890, -0.0]"), "[1e21, 12345678901234567890, -0.0]");
    }

    #[test]
    fn what_could_trick_a_terminal_becomes_a_json_escape() {
        assert_eq!(pretty("\"a\u{9b}b\u{202e}c\""), "\"a\\u009bb\\u202ec\"");
    }

    #[test]
    fn a_string_is_printed_bare_only_when_asked() {
        assert_eq!(value(&raw(r#""a\nb""#), true, true), "a\nb\n");
        assert_eq!(value(&raw(r#""a\u001bb""#), true, true), "a\\u{1b}b\n");
        assert_eq!(value(&raw(r#""a""#), false, true), "\"a\"\n");
        assert_eq!(value(&raw(r#""a\u001bb""#), true, false), "a\u{1b}b\n");
    }

    #[test]
    fn deep_nesting_is_printed_without_recursion() {
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        assert!(pretty(&deep).len() < 200_000);
    }

    proptest! {
        #[test]
        fn pretty_text_means_the_same(text in "[a-z\"\\\\\u{9b}\n{}\\[\\],:🦀]{0,30}", number in any::<i64>(), list in proptest::collection::vec(any::<i32>(), 0..40)) {
            let value = serde_json::json!({"text": text, "number": number, "list": list, "nested": {"a": [{}, [], null, true]}});
            let printed = pretty(&value.to_string());
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&printed).unwrap(), value);
        }

        #[test]
        fn no_text_makes_it_panic_or_hang(text in "\\PC{0,60}") {
            pretty(&text);
        }
    }
}
