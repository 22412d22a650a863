//! Reading what the arguments name.
//!
//! Owns bounded reads of files and standard input, and JSON faults with their place.
//! Never takes more than a stated number of bytes into memory.

use super::Fault;
use super::render::excerpt;
use super::spelling;
use brig::protocol::escape::ShowPath as _;
use std::io::Read;
use std::path::Path;

/// A text, and what to call it in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Reads a file (`-` is standard input) of at most `limit` bytes of UTF-8.
pub(crate) fn text(path: &Path, what: &str, limit: usize) -> Result<Text, Fault> {
    let standard_input = path.as_os_str() == "-";
    let name = if standard_input { "standard input".to_owned() } else { path.shown().to_string() };
    let read = |source: &mut dyn Read| {
        let mut bytes = Vec::new();
        source.take(u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1)).read_to_end(&mut bytes).map(|_| bytes)
    };
    let bytes =
        if standard_input { read(&mut std::io::stdin().lock()) } else { std::fs::File::open(path).and_then(|mut file| read(&mut file)) };
    let bytes = bytes.map_err(|fault| Fault::usage(format!("{what} {name} can not be read: {fault}")))?;
    if bytes.len() > limit {
        return Err(Fault::usage(format!("{what} {name} has more than {limit} bytes")));
    }
    match String::from_utf8(bytes) {
        // Editors put it there; JSON and JavaScript both take it for nothing.
        Ok(text) => Ok(Text { name, text: text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text) }),
        Err(fault) => Err(Fault::usage(format!("{what} {name} is not UTF-8 (byte {})", fault.utf8_error().valid_up_to()))),
    }
}

/// Reads JSON out of a text.
pub(crate) fn json<'a, T: serde::Deserialize<'a>>(text: &'a Text) -> Result<T, Fault> {
    part(text, &text.text)
}

/// Reads JSON out of a part of a text; a fault has its place in the whole.
pub(crate) fn part<'a, T: serde::Deserialize<'a>>(whole: &Text, part: &'a str) -> Result<T, Fault> {
    serde_json::from_str(part).map_err(|fault| {
        let (line, column) = place(whole, part);
        let (line, column) = match fault.line() {
            0 | 1 => (line, column + fault.column().saturating_sub(1)),
            further => (line + further - 1, fault.column()),
        };
        Fault::usage(excerpt::plain_fault(&message(&fault), &whole.name, &whole.text, line, column))
    })
}

/// Reads JSON out of an argument; a fault has its place within that.
pub(crate) fn argument<T: serde::de::DeserializeOwned>(name: &str, text: &str) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(|fault| {
        let line = if text.contains('\n') { format!(" line {},", fault.line()) } else { String::new() };
        let place = format!("{name},{line} column {}", fault.column());
        Fault::usage(excerpt::placed_fault(&message(&fault), &place, text, fault.line(), fault.column()))
    })
}

/// What was wrong, without the place, which is that in a part.
fn message(fault: &serde_json::Error) -> String {
    let said = fault.to_string();
    spelling::suggest(said.rsplit_once(" at line ").map_or(said.as_str(), |(message, _)| message))
}

/// What is wrong with a part of a text that is JSON.
pub(crate) fn wrong(whole: &Text, part: &str, message: &str) -> Fault {
    let (line, column) = place(whole, part);
    Fault::usage(excerpt::plain_fault(message, &whole.name, &whole.text, line, column))
}

/// Where a part begins in its whole: line and byte column, both from 1.
fn place(whole: &Text, part: &str) -> (usize, usize) {
    let offset = part.as_ptr().addr().wrapping_sub(whole.text.as_ptr().addr());
    let before = whole.text.get(..offset).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |index| index + 1);
    (before.matches('\n').count() + 1, before.len() - line_start + 1)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_file_over_its_limit_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "12345").unwrap();
        assert!(text(file.path(), "program", 5).is_ok());
        assert!(text(file.path(), "program", 4).unwrap_err().message.contains("more than 4 bytes"));
    }

    #[test]
    fn a_file_that_is_not_there_or_not_text_is_told_by_name() {
        assert!(text(Path::new("/nowhere/x"), "program", 5).unwrap_err().message.contains("/nowhere/x"));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"a\xff").unwrap();
        assert!(text(file.path(), "program", 5).unwrap_err().message.contains("not UTF-8 (byte 1)"));
    }

    #[test]
    fn a_fault_in_json_has_file_line_and_column() {
        let wrong = Text { name: "in.json".to_owned(), text: "{\n  \"a\": 1,\n  nope\n}".to_owned() };
        let message = json::<serde_json::Value>(&wrong).unwrap_err().message;
        assert!(message.contains("in.json:3:3"), "{message}");
        assert!(message.contains("  nope"), "{message}");
    }
}
