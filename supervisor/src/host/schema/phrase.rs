//! Words for what is wrong with a value.
//!
//! Owns showing values (bounded, escaped), lists of choices, and finding the nearest
//! spelling. Never shows a value that its caller marked as secret.

use brig_protocol::escape::escaped;
use brig_protocol::spelling;
use serde_json::Value;

/// Longest shown text of one value, in bytes.
const SHOWN_BYTES: usize = 80;
/// Most choices that are shown.
const CHOICES: usize = 12;

/// A scalar as JSON, cut and escaped; a container by its size.
pub(crate) fn scalar(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("an array of {} {}", items.len(), if items.len() == 1 { "item" } else { "items" }),
        Value::Object(members) if members.is_empty() => "an empty object".to_owned(),
        Value::Object(members) => format!("an object with {}", names(members.keys().map(String::as_str))),
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

/// A text in quotes, cut and escaped.
pub(crate) fn quoted(text: &str) -> String {
    let shown = escaped(text, SHOWN_BYTES);
    format!("\"{}\"", shown.replace('\\', "\\\\").replace('"', "\\\"").replace("\\\\u{", "\\u{"))
}

/// Names in quotes, so many that a reader still sees them all.
pub(crate) fn names<'a>(all: impl Iterator<Item = &'a str>) -> String {
    listed(all.map(quoted))
}

/// Items with commas, cut after a number of them.
pub(crate) fn listed(all: impl Iterator<Item = String>) -> String {
    let mut shown: Vec<String> = Vec::new();
    let mut more = 0usize;
    for item in all {
        if shown.len() < CHOICES {
            shown.push(item);
        } else {
            more += 1;
        }
    }
    let mut text = shown.join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

/// The kind of a value as JSON Schema names it, with its article.
pub(crate) const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The candidate nearest to a word, if one is near enough to have been meant.
pub(crate) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(word);
    let allowed = (folded.len() / 3).clamp(1, 4);
    candidates
        .take(2_000)
        .filter(|candidate| candidate.len() <= 200 && word.len() <= 200)
        .map(|candidate| (spelling::distance(&folded, &fold(candidate)), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Spellings that people mix up become one: case, `_`, `-`, spaces.
fn fold(word: &str) -> Vec<char> {
    word.chars().filter(|character| !matches!(character, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_nearest_spelling_is_found_and_a_far_one_is_not() {
        let known = ["oldText", "newText", "dryRun"];
        assert_eq!(nearest("old_text", known.into_iter()), Some("oldText"));
        assert_eq!(nearest("dry_run", known.into_iter()), Some("dryRun"));
        assert_eq!(nearest("tpye", ["type", "title"].into_iter()), Some("type"));
        assert_eq!(nearest("something", known.into_iter()), None);
    }

    #[test]
    fn shown_values_are_bounded_and_can_not_forge_a_line() {
        assert_eq!(scalar(&json!("a\nb\"c\\")), "\"a\\u{a}b\\\"c\\\\\"");
        assert!(scalar(&json!("x".repeat(10_000))).len() < 100);
        let many: serde_json::Map<String, Value> = (0..100).map(|index| (format!("k{index}"), Value::Null)).collect();
        assert!(scalar(&Value::Object(many)).ends_with("and 88 more"));
    }
}
