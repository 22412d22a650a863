//! Bounds on what the parser is given.
//!
//! Owns the check that a text does not hold the parser for longer than its size is worth.
//! Never looks at what a program means. (Nesting and chain length are bounded by the
//! parser itself, the size of the text by the protocol, and what gets past this check by
//! the worker's CPU limit.)

use super::{SourceError, SourceErrorKind};

/// Most bytes that the parser may look at again. At every `<` in code it reads ahead for
/// type arguments, at worst to the end of the text, at 1.4 ns a byte.
const LOOK_AHEAD_BYTES: u64 = 400_000_000;

/// Refuses a text that the parser would need quadratic time for.
pub(super) fn check(text: &str) -> Result<(), SourceError> {
    let length = text.len() as u64;
    let most = LOOK_AHEAD_BYTES.checked_div(length).unwrap_or(u64::MAX);
    if count(text.bytes().filter(|byte| *byte == b'<')) <= most || angles_in_code(text) <= most {
        return Ok(());
    }
    let message = "the program has too many `<` operators for its size".into();
    Err(SourceError::at(0, SourceErrorKind::TooComplex, message).with_hint("Put large data into `inputs`, or into strings."))
}

fn count(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0, |sum, _| sum + 1)
}

/// How many `<` there are outside of quoted strings and comments, or nearly: a regular
/// expression that holds a quote can mislead this count, which is only an estimate.
fn angles_in_code(text: &str) -> u64 {
    text.split('\n').map(angles_in_line).sum()
}

fn angles_in_line(line: &str) -> u64 {
    let mut total = 0;
    let mut quote: Option<u8> = None;
    let mut last = 0u8;
    for byte in line.bytes() {
        match quote {
            Some(mark) if byte == mark && last != b'\\' => quote = None,
            Some(_) => {}
            None if matches!(byte, b'"' | b'\'') => quote = Some(byte),
            None if byte == b'/' && last == b'/' => break,
            None if byte == b'<' => total += 1,
            None => {}
        }
        // Two backslashes escape each other.
        last = if byte == b'\\' && last == b'\\' { 0 } else { byte };
    }
    total
}
