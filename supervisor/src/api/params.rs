//! From raw params to a typed request, or to an error that helps.
//!
//! Owns the wording: which member, what was wrong with it, what is expected, and the
//! nearest spelling. Never reads the meaning of a request.

use brig_protocol::codes::RequestCode;
use brig_protocol::escape::escaped;
use brig_protocol::rpc::ErrorData;
use brig_protocol::spelling;
use serde::Deserialize;

/// Longest part of a sentence that a client chose, in bytes.
const QUOTED_BYTES: usize = 400;

/// Reads params; `text` is JSON that was parsed once already.
///
/// # Errors
/// `invalid_params` naming the member and what is expected there.
pub(crate) fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ErrorData> {
    if text.starts_with('[') {
        return Err(ErrorData::new(RequestCode::InvalidParams, "params must be an object with named members, not an array"));
    }
    // The path costs time, so it is looked for only when it is needed.
    serde_json::from_str(text).map_err(|fault| explain::<T>(text).unwrap_or_else(|| unnamed(&fault)))
}

fn unnamed(fault: &serde_json::Error) -> ErrorData {
    ErrorData::new(RequestCode::InvalidParams, format!("params are not valid: {}", escaped(&fault.to_string(), QUOTED_BYTES)))
}

fn explain<'a, T: Deserialize<'a>>(text: &'a str) -> Option<ErrorData> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let fault = serde_path_to_error::deserialize::<_, T>(&mut reader).err()?;
    let path = escaped(&fault.path().to_string(), QUOTED_BYTES);
    let mut reason = without_position(&fault.inner().to_string());
    if reason.contains("hex escape") || reason.contains("surrogate") {
        reason.push_str("; a \\u escape of one half of a surrogate pair needs the other half right behind it");
    }
    let place = if path == "." { "params".to_owned() } else { format!("params.{path}") };
    let mut data = ErrorData::new(RequestCode::InvalidParams, format!("{place}: {}", escaped(&reason, QUOTED_BYTES)));
    let near = spelling::unknown_name(&reason).and_then(|(given, known)| nearest(given, &known.collect::<Vec<_>>()));
    data.hint = near.map(|near| format!("did you mean {near:?}?"));
    Some(data)
}

/// serde_json's position counts within params, which the client did not send as such.
fn without_position(reason: &str) -> String {
    match reason.rfind(" at line ") {
        Some(end) => reason.get(..end).unwrap_or(reason).to_owned(),
        None => reason.to_owned(),
    }
}

/// The known name that `given` most likely meant.
pub(crate) fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    let given: Vec<char> = given.chars().take(64).map(simple).filter(|c| *c != '_' && *c != '-').collect();
    let limit = 1 + given.len() / 4;
    known
        .iter()
        .map(|name| (spelling::distance(&given, &name.chars().map(simple).filter(|c| *c != '_').collect::<Vec<_>>()), *name))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

const fn simple(character: char) -> char {
    character.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use brig_protocol::client::EvaluateParams;

    fn refused(text: &str) -> ErrorData {
        parse::<EvaluateParams<'_>>(text).unwrap_err()
    }

    #[test]
    fn raw_payloads_pass_as_they_are() {
        let text = r#"{"source":"1","inputs":{"a": [1,2]},"hostFunctions":{"a":{"b":{"inputSchema":{"type":"object"}}}}}"#;
        let params: EvaluateParams<'_> = parse(text).unwrap();
        assert_eq!(params.inputs.map(serde_json::value::RawValue::get), Some("{\"a\": [1,2]}"));
    }

    #[test]
    fn an_unknown_member_is_named_with_the_nearest_spelling() {
        let data = refused(r#"{"source":"1","timeotMs":5}"#);
        assert!(data.message.contains("timeotMs"), "{data:?}");
        assert_eq!(data.hint.as_deref(), Some("did you mean \"timeoutMs\"?"));
        let data = refused(r#"{"source":"1","limits":{"cpu_ms":5}}"#);
        assert!(data.message.starts_with("params.limits"), "{data:?}");
        assert_eq!(data.hint.as_deref(), Some("did you mean \"cpuMs\"?"));
    }

    #[test]
    fn a_wrong_type_is_told_with_its_place_and_what_is_expected() {
        let data = refused(r#"{"source":"1","hostFunctions":{"orders":{"list":{"timeoutMs":"5"}}}}"#);
        assert!(data.message.contains("params.hostFunctions.orders.list.timeoutMs") || data.message.contains("timeoutMs"), "{data:?}");
        let data = refused(r#"{"source":5}"#);
        assert!(data.message.contains("params.source") && data.message.contains("string"), "{data:?}");
        assert!(refused("{}").message.contains("source"));
        assert!(refused("[]").message.contains("object"));
    }

    #[test]
    fn half_a_surrogate_pair_is_called_that() {
        assert!(refused(r#"{"source":"'\ud83d'"}"#).message.contains("surrogate pair"));
    }

    #[test]
    fn nothing_near_gives_no_advice() {
        assert_eq!(nearest("xyzzy", &["source", "limits"]), None);
        assert_eq!(nearest("evalute", &["evaluate", "initialize"]), Some("evaluate"));
        assert_eq!(nearest("vm.creat", &["vm.create", "vm.list"]), Some("vm.create"));
    }
}
