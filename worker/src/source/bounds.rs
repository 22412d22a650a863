//! Bounds on what the parser is given.
//!
//! Owns the check that a text cannot hold the parser for longer than its size is worth.
//! Never looks at what a program means. (Nesting and chain length are bounded by the
//! parser itself; the size of the text by the protocol.)

use super::{SourceError, SourceErrorKind};

/// Most bytes that the parser may have to look at twice. At every `<` in code it reads
/// ahead for type arguments, at worst to the end of the text: 2 ns a byte, so a second.
const LOOK_AHEAD_BYTES: u64 = 500_000_000;

/// Refuses a text that the parser would need quadratic time for.
pub(super) fn check(text: &str) -> Result<(), SourceError> {
    let length = text.len() as u64;
    let angles = text.bytes().filter(|byte| *byte == b'<').count() as u64;
    if angles.saturating_mul(length) <= LOOK_AHEAD_BYTES {
        return Ok(());
    }
    let spans = look_ahead(text);
    if spans <= LOOK_AHEAD_BYTES {
        return Ok(());
    }
    Err(SourceError::at(text, 0, SourceErrorKind::TooComplex, "the program has too many `<` operators for its size".into())
        .with_hint("Put large data into `inputs`, or into strings that the program parses with JSON.parse."))
}

/// Bytes that reading ahead can take: from each `<` in code to the next character that no
/// list of type arguments has outside of a string.
fn look_ahead(text: &str) -> u64 {
    let mut total = 0u64;
    let mut open = 0u64;
    let mut quote: Option<u8> = None;
    let mut escaped = false;
    for byte in text.bytes() {
        total = total.saturating_add(open);
        if let Some(mark) = quote {
            let ends = byte == mark || (byte == b'\n' && mark != b'`');
            if !escaped && ends {
                quote = None;
            }
            escaped = byte == b'\\' && !escaped;
            continue;
        }
        match byte {
            b'"' | b'\'' | b'`' => quote = Some(byte),
            b'<' => open += 1,
            // What ends every list that is open: no type argument has it.
            b'+' | b'*' | b'/' | b'%' | b'^' | b'!' | b'@' => open = 0,
            _ => {}
        }
    }
    total
}
