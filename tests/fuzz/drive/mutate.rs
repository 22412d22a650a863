//! Mutations of an input.
//!
//! Owns two sorts: of bytes, and of the tokens of a text, which keep most of a message or
//! a program whole and so get past the first check of a parser. Never looks at what a
//! target does.

use super::chance::Chance;
use std::ops::Range;

/// Numbers at the edges of the types that readers use, and spellings that are none.
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "1",
    "-1",
    "1.0",
    "1e0",
    "2",
    "255",
    "256",
    "65535",
    "65536",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1.7976931348623157e308",
    "1e309",
    "-1e999",
    "5e-324",
    "1e-999",
    "01",
    "0.",
    "1_000",
    "0x10",
];

/// What goes badly inside of strings.
const PIECES: &[&str] = &[
    "\\u0000",
    "\\ud800",
    "\\udc00",
    "\\ud83d\\ude00",
    "\\uD8",
    "\\u+123",
    "\\n",
    "\\",
    "\\\\",
    "\\\"",
    "\"",
    "\u{0}",
    "\u{7f}",
    "\u{85}",
    "\u{202e}",
    "\u{2028}",
    "\u{feff}",
    "é",
    "🦀",
    "__proto__",
    "\r",
    "\n",
    "\r\n",
    "\t",
    " ",
];

/// How often a value is wrapped: around the limits of parsers and of the protocol.
const WRAPS: &[usize] = &[1, 2, 7, 100, 126, 127, 128, 129, 300, 511, 512, 513, 519, 520, 521, 2000];

/// A child of `parent`, with pieces of `other`, at most `longest` bytes.
pub(crate) fn child(parent: &[u8], other: &[u8], words: &[&str], text_share: usize, longest: usize, chance: &mut Chance) -> Vec<u8> {
    let mut bytes = parent.to_vec();
    for _ in 0..=chance.below(4) {
        bytes = if chance.percent(text_share) { of_tokens(&bytes, other, words, chance) } else { of_bytes(bytes, other, chance) };
    }
    bytes.truncate(longest);
    bytes
}

fn of_bytes(mut bytes: Vec<u8>, other: &[u8], chance: &mut Chance) -> Vec<u8> {
    let at = chance.below(bytes.len() + 1);
    let span = at..(at + 1 + chance.below(8)).min(bytes.len());
    match chance.below(8) {
        0 => bytes.insert(at, chance.byte()),
        1 => drop(bytes.drain(span)),
        2 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << chance.below(8);
            }
        }
        3 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = *chance.pick(&[0, 1, 10, 13, 34, 92, 127, 128, 254, 255]);
            }
        }
        4 => {
            let copy = bytes[span].to_vec();
            bytes.splice(at..at, copy);
        }
        5 => {
            let number = *chance.pick(&[0u32, 1, 127, 128, 255, 256, 65_535, 65_536, 1 << 24, u32::MAX]);
            let end = (at + 4).min(bytes.len());
            bytes.splice(at..end, number.to_le_bytes());
        }
        6 => bytes.truncate(at),
        _ => {
            let from = chance.below(other.len() + 1);
            bytes.splice(at.., other[from..].iter().copied());
        }
    }
    bytes
}

/// Words, runs of space, strings with their quotes, and single characters.
fn tokens(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text.get(at) {
        let rest = &text[at..];
        let run = |same: fn(&u8) -> bool| rest.iter().position(|byte| !same(byte)).unwrap_or(rest.len());
        let length = match first {
            b'"' | b'\'' => string_length(rest, *first),
            byte if is_word(byte) => run(is_word),
            b' ' => run(|byte| *byte == b' '),
            0xC0.. => 1 + rest[1..].iter().take_while(|byte| (0x80..0xC0).contains(*byte)).count(),
            _ => 1,
        };
        found.push(at..at + length);
        at += length;
    }
    found
}

const fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(*byte, b'_' | b'$')
}

fn string_length(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(byte) = rest.get(at) {
        match byte {
            b'\\' => at += 2,
            byte if *byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// From an opening bracket to its partner, or to the end; any other token stands alone.
fn value_at(text: &[u8], tokens: &[Range<usize>], index: usize) -> Range<usize> {
    let mut depth = 0usize;
    for token in &tokens[index..] {
        match text[token.start] {
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return tokens[index].start..token.end;
        }
    }
    tokens[index].start..text.len()
}

fn a_value(text: &[u8], chance: &mut Chance) -> Range<usize> {
    let tokens = tokens(text);
    if tokens.is_empty() {
        return 0..0;
    }
    // Brackets hold more than single tokens do: look twice for one.
    let mut index = chance.below(tokens.len());
    if !matches!(text[tokens[index].start], b'{' | b'[' | b'(') {
        index = chance.below(tokens.len());
    }
    value_at(text, &tokens, index)
}

fn of_tokens(text: &[u8], other: &[u8], words: &[&str], chance: &mut Chance) -> Vec<u8> {
    if chance.percent(8) {
        return of_lines(text, chance);
    }
    let here = a_value(text, chance);
    let there = a_value(text, chance);
    let replaced = |span: &Range<usize>, by: &[u8]| [&text[..span.start], by, &text[span.end..]].concat();
    match chance.below(12) {
        10 => member(text, None, words, chance),
        11 => member(text, Some(other), words, chance),
        0 => replaced(&here, b""),
        1 => replaced(&(here.end..here.end), &text[here]),
        2 => replaced(&here, &text[there]),
        3 | 4 => replaced(&here, word(words, chance)),
        5 => {
            let at = if chance.percent(50) { here.start } else { here.end };
            replaced(&(at..at), word(words, chance))
        }
        6 => replaced(&here, &other[a_value(other, chance)]),
        7 => replaced(&here, &wrapped(&text[here.clone()], chance)),
        8 => {
            let from = a_value(other, chance).start;
            [&text[..here.start], &other[from..]].concat()
        }
        _ => inside(text, here, chance),
    }
}

/// Puts a word, or a copy of a member of `from` or of the text itself, right behind an
/// opening bracket, with its comma.
fn member(text: &[u8], from: Option<&[u8]>, words: &[&str], chance: &mut Chance) -> Vec<u8> {
    let found = tokens(text);
    let open: Vec<usize> = found.iter().filter(|token| matches!(text[token.start], b'{' | b'[')).map(|token| token.end).collect();
    if open.is_empty() {
        return text.to_vec();
    }
    let at = *chance.pick(&open);
    let source = if chance.percent(60) { text } else { from.unwrap_or(text) };
    let piece = if from.is_none() { word(words, chance) } else { a_member(source, chance) };
    let comma: &[u8] = if text[at..].starts_with(b"}") || text[at..].starts_with(b"]") { b"" } else { b"," };
    [&text[..at], piece, comma, &text[at..]].concat()
}

/// A name with its value.
fn a_member<'t>(text: &'t [u8], chance: &mut Chance) -> &'t [u8] {
    let found = tokens(text);
    let names: Vec<usize> = (1..found.len()).filter(|index| text[found[*index].start] == b':').collect();
    if names.is_empty() {
        return b"\"a\":1";
    }
    let colon = *chance.pick(&names);
    let value = if colon + 1 < found.len() { value_at(text, &found, colon + 1) } else { found[colon].clone() };
    &text[found[colon - 1].start..value.end]
}

fn word<'w>(words: &[&'w str], chance: &mut Chance) -> &'w [u8] {
    if words.is_empty() || chance.percent(25) { chance.pick(NUMBERS).as_bytes() } else { chance.pick(words).as_bytes() }
}

fn wrapped(value: &[u8], chance: &mut Chance) -> Vec<u8> {
    // Deep texts are slow: a few are enough.
    let times = if chance.percent(80) { 1 } else { *chance.pick(WRAPS) };
    let (open, close): (&[u8], &[u8]) =
        *chance.pick(&[(b"[".as_slice(), b"]".as_slice()), (b"{\"a\":", b"}"), (b"(", b")"), (b"[1,", b",{}]")]);
    [open.repeat(times).as_slice(), value, close.repeat(times).as_slice()].concat()
}

/// Changes a token from within: a piece goes into a string, a number becomes another.
fn inside(text: &[u8], span: Range<usize>, chance: &mut Chance) -> Vec<u8> {
    let number = text[span.clone()].first().is_some_and(u8::is_ascii_digit);
    if number {
        return [&text[..span.start], chance.pick(NUMBERS).as_bytes(), &text[span.end..]].concat();
    }
    let at = span.start + chance.below(span.len() + 1);
    [&text[..at], chance.pick(PIECES).as_bytes(), &text[at..]].concat()
}

fn of_lines(text: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let (one, two) = (chance.below(lines.len()), chance.below(lines.len()));
    match chance.below(3) {
        0 => drop(lines.remove(one)),
        1 => lines.insert(two, lines[one]),
        _ => lines.swap(one, two),
    }
    lines.join(&b'\n')
}
