//! Owns JSON text → guest value, by the engine's own parser, which no guest code can
//! replace. Text comes from the supervisor, checked there; whole numbers that lose digits
//! in JavaScript are found here, because only here is it known that they will.

use rquickjs::{Ctx, Value};

use super::{
    notes::{Loss, Notes},
    path::push_key,
};

/// Digits from which a whole number may be beyond 2^53.
const LONG_NUMBER: usize = 16;

/// Parses JSON text into a value of the realm. `root` names the text in notes.
///
/// # Errors
/// When the text is no JSON; the engine's exception is then pending.
pub(crate) fn decode<'js>(ctx: &Ctx<'js>, text: &str, root: &str, notes: &mut Notes) -> rquickjs::Result<Value<'js>> {
    if has_long_number(text.as_bytes()) {
        note_lost_digits(text.as_bytes(), root, notes);
    }
    // One copy, with room for the terminator that the parser wants.
    let mut bytes = Vec::with_capacity(text.len() + 1);
    bytes.extend_from_slice(text.as_bytes());
    ctx.json_parse(bytes)
}

/// Whether any run of digits is long enough to be looked at; strings are not told apart.
fn has_long_number(bytes: &[u8]) -> bool {
    let mut run = 0;
    for byte in bytes {
        run = if byte.is_ascii_digit() { run + 1 } else { 0 };
        if run >= LONG_NUMBER {
            return true;
        }
    }
    false
}

/// Where a container is in its text.
enum Open {
    Array(usize),
    /// With the raw text of the current key.
    Object(Vec<u8>),
}

/// Walks the text once, keeping the path, and notes each whole number that JavaScript
/// would round.
fn note_lost_digits(bytes: &[u8], root: &str, notes: &mut Notes) {
    let mut open: Vec<Open> = Vec::new();
    let mut key_comes = false;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' => {
                open.push(Open::Object(Vec::new()));
                key_comes = true;
            }
            b'[' => open.push(Open::Array(0)),
            b'}' | b']' => {
                open.pop();
            }
            b',' => match open.last_mut() {
                Some(Open::Array(index)) => *index += 1,
                Some(Open::Object(_)) => key_comes = true,
                None => {}
            },
            b':' => key_comes = false,
            b'"' => {
                let end = string_end(bytes, at);
                if key_comes && let Some(Open::Object(key)) = open.last_mut() {
                    *key = bytes.get(at + 1..end).unwrap_or_default().to_vec();
                }
                at = end;
            }
            b'-' | b'0'..=b'9' => {
                let end = number_end(bytes, at);
                if loses_digits(bytes.get(at..end).unwrap_or_default()) {
                    notes.add(Loss::BigNumber, || told(root, &open));
                }
                at = end.saturating_sub(1);
            }
            _ => {}
        }
        at += 1;
    }
}

/// Index of the quote that ends the string begun at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn number_end(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let length = rest.iter().position(|b| !matches!(b, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9'));
    start + length.unwrap_or(rest.len())
}

/// Whether a whole number changes when it becomes a double.
fn loses_digits(number: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(number) else { return false };
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.len() < LONG_NUMBER || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return false;
    }
    // A double's exact digits: Rust prints whole doubles exactly.
    digits.parse::<f64>().is_ok_and(|double| format!("{double:.0}") != digits)
}

fn told(root: &str, open: &[Open]) -> String {
    let mut path = root.to_owned();
    for container in open {
        match container {
            Open::Array(index) => path.push_str(&format!("[{index}]")),
            Open::Object(key) => push_key(&mut path, &String::from_utf8_lossy(key)),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told_of(text: &str) -> Vec<String> {
        let mut notes = Notes::default();
        note_lost_digits(text.as_bytes(), "result", &mut notes);
        notes.lines().map(|line| line.text).collect()
    }

    #[test]
    fn a_number_that_javascript_rounds_is_told_with_its_path() {
        let lines = told_of(r#"{"a":[1,{"id":9007199254740993}],"b":"9007199254740993","c":9007199254740992}"#);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines.first().is_some_and(|line| line.starts_with("result.a[1].id: a whole number")), "{lines:?}");
    }

    #[test]
    fn digits_in_strings_and_fractions_are_left_alone() {
        assert!(told_of(r#"{"k\"9007199254740993":"9007199254740993","f":0.30000000000000004}"#).is_empty());
    }
}
