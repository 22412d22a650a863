//! The `--inputs` of a program: files and single members, put together.
//!
//! Owns the syntax and the order. Never looks at what the values mean.

use super::members::Members;
use super::read::Text;
use super::{Fault, read};
use brig::protocol::limits;
use serde_json::value::{RawValue, to_raw_value};
use std::path::Path;

/// Reads every `--inputs`, later ones over earlier ones.
pub(crate) fn read(all: &[String]) -> Result<Option<Members>, Fault> {
    let mut inputs = Members::default();
    for one in all {
        match member(one) {
            Some((name, value)) => inputs.set(name.to_owned(), value?),
            None => add_file(&mut inputs, Path::new(one))?,
        }
    }
    Ok((!all.is_empty()).then_some(inputs))
}

/// `name=text` or `name:=JSON`; anything else is a file.
fn member(text: &str) -> Option<(&str, Result<Box<RawValue>, Fault>)> {
    let (left, right) = text.split_once('=')?;
    let (name, json) = left.strip_suffix(':').map_or((left, false), |name| (name, true));
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-'));
    if !is_name {
        return None;
    }
    let value = if json {
        read::argument(&format!("--inputs {name}"), right)
    } else {
        to_raw_value(right).map_err(|fault| Fault::usage(fault.to_string()))
    };
    Some((name, value))
}

/// Every member of the object in a file.
fn add_file(inputs: &mut Members, path: &Path) -> Result<(), Fault> {
    let text = read::text(path, "inputs", limits::REQUEST_LINE_BYTES)?;
    object(&text, "inputs")?.into_iter().for_each(|(name, value)| inputs.set(name, value));
    Ok(())
}

/// The object that a text is; `what` it is to be, for the fault when it is none.
pub(super) fn object(text: &Text, what: &str) -> Result<Members, Fault> {
    let value = text.text.trim_start();
    match kind_of_other(value) {
        Some(kind) => Err(read::wrong(text, value, &format!("{what} must be a JSON object, not {kind}"))),
        None => read::json(text),
    }
}

/// What a JSON text is when it is no object. Nothing for what is no JSON: that has a
/// fault of its own.
fn kind_of_other(text: &str) -> Option<&'static str> {
    let kind = match text.bytes().next()? {
        b'[' => "an array",
        b'"' => "a string",
        b't' | b'f' => "a boolean",
        b'n' => "null",
        b'-' | b'0'..=b'9' => "a number",
        _ => return None,
    };
    serde_json::from_str::<&RawValue>(text).is_ok().then_some(kind)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn read_all(all: &[&str]) -> Result<String, Fault> {
        let all: Vec<String> = all.iter().map(|one| (*one).to_owned()).collect();
        read(&all).map(|inputs| serde_json::to_string(&inputs).unwrap())
    }

    #[test]
    fn text_stays_text_and_json_keeps_all_its_digits() {
        let inputs = read_all(&["customer=123", "big:=12345678901234567890.5", "list:=[1, 2]"]).unwrap();
        assert_eq!(inputs, r#"{"customer":"123","big":12345678901234567890.5,"list":[1, 2]}"#);
    }

    #[test]
    fn later_inputs_win_over_files_and_earlier_ones() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), r#"{"a": 1, "b": 2}"#).unwrap();
        let path = file.path().to_str().unwrap();
        assert_eq!(read_all(&[path, "a:=3"]).unwrap(), r#"{"b":2,"a":3}"#);
    }

    #[test]
    fn a_file_that_is_no_object_is_refused_with_its_place() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "[1]").unwrap();
        let fault = read_all(&[file.path().to_str().unwrap()]).unwrap_err();
        assert!(fault.message.contains(":1:"), "{}", fault.message);
    }

    #[test]
    fn inputs_that_are_no_object_are_told_what_they_are() {
        for (text, kind) in [("[1]", "an array"), (" \"a\"", "a string"), ("null", "null"), ("-1", "a number"), ("true", "a boolean")] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            let fault = read_all(&[file.path().to_str().unwrap()]).unwrap_err().message;
            assert!(fault.contains(&format!("inputs must be a JSON object, not {kind}")), "{fault}");
        }
    }

    #[test]
    fn wrong_json_in_a_member_is_told_by_its_name_and_column() {
        let fault = read_all(&["a:={bad"]).unwrap_err().message;
        assert!(fault.starts_with("--inputs a, column 2: key must be a string"), "{fault}");
    }

    #[test]
    fn no_inputs_are_no_inputs() {
        assert_eq!(read_all(&[]).unwrap(), "null");
    }
}
