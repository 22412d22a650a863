//! Owns how a string is written in JSON. Its input may hold lone surrogates in their
//! generalised three-byte form; they have no UTF-8 form, so U+FFFD takes their place and
//! the caller is told.

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Whether a byte can not stand in a JSON string as it is. 0xED may begin a surrogate.
const fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\' || byte == 0xED
}

/// The front of a text, at most so many bytes, never half a character.
pub(crate) fn head(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// Appends a JSON string. Tells whether it held a lone surrogate.
pub(crate) fn push(out: &mut Vec<u8>, bytes: &[u8]) -> bool {
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut lone = false;
    let mut rest = bytes;
    loop {
        let (plain, tail) = rest.split_at(plain_length(rest));
        if tail.is_empty() {
            break;
        }
        out.extend_from_slice(plain);
        rest = push_special(out, tail, &mut lone);
    }
    out.extend_from_slice(rest);
    out.push(b'"');
    lone
}

/// Bytes up to the first special one. Whole chunks are judged without a branch for each
/// byte, which compiles to vector instructions.
fn plain_length(bytes: &[u8]) -> usize {
    let mut seen = 0;
    for chunk in bytes.chunks(64) {
        if chunk.iter().fold(false, |any, byte| any | is_special(*byte)) {
            return seen + chunk.iter().take_while(|byte| !is_special(**byte)).count();
        }
        seen += chunk.len();
    }
    seen
}

/// Writes the special character at the front of `tail`; gives what follows it.
fn push_special<'a>(out: &mut Vec<u8>, tail: &'a [u8], lone: &mut bool) -> &'a [u8] {
    if let [0xED, 0xA0..=0xBF, _, rest @ ..] = tail {
        *lone = true;
        out.extend_from_slice("\u{FFFD}".as_bytes());
        return rest;
    }
    let Some((byte, rest)) = tail.split_first() else { return tail };
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0x08 => out.extend_from_slice(b"\\b"),
        0x0C => out.extend_from_slice(b"\\f"),
        0x00..=0x1F => push_unit(out, u16::from(*byte)),
        _ => out.push(*byte),
    }
    rest
}

fn push_unit(out: &mut Vec<u8>, unit: u16) {
    out.extend_from_slice(b"\\u");
    for shift in [12, 8, 4, 0] {
        let digit = usize::from((unit >> shift) & 0xF);
        out.push(HEX.get(digit).copied().unwrap_or(b'0'));
    }
}

/// Whether `part` is in `text`.
pub(super) fn holds(text: &[u8], part: &[u8]) -> bool {
    let Some(first) = part.first() else { return true };
    let mut rest = text;
    while rest.len() >= part.len() {
        let Some(at) = rest.iter().position(|byte| byte == first) else { return false };
        rest = rest.get(at..).unwrap_or_default();
        if rest.starts_with(part) {
            return true;
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(bytes: &[u8]) -> (String, bool) {
        let mut out = Vec::new();
        let lone = push(&mut out, bytes);
        (String::from_utf8_lossy(&out).into_owned(), lone)
    }

    #[test]
    fn control_characters_quotes_and_backslashes_are_escaped() {
        assert_eq!(written(b"a\"b\\c\n\x01\x08").0, r#""a\"b\\c\n\u0001\b""#);
    }

    #[test]
    fn a_part_is_found_wherever_it_is() {
        for (text, found) in [("", false), ("[a", false), ("[[ab]", true), ("x[ab]y", true), ("[ab", false), ("[ab]", true)] {
            assert_eq!(holds(text.as_bytes(), b"[ab]"), found, "{text}");
        }
    }

    #[test]
    fn a_lone_surrogate_is_replaced_and_told() {
        assert_eq!(written(&[b'x', 0xED, 0xA0, 0x80, b'y']), ("\"x\u{FFFD}y\"".to_owned(), true));
        assert_eq!(written("\u{D7FF}é😀".as_bytes()), ("\"\u{D7FF}é😀\"".to_owned(), false));
    }
}
