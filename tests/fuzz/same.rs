//! Whether two JSON texts say the same: the oracle of "what is accepted is understood".
//!
//! Owns the comparison of a text as it was sent with the text made from what was read.
//! The first may leave out, or spell out, what is the default; nothing else may differ.

use serde_json::{Map, Value};

/// Values that a member has when it is not there.
fn is_default(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(yes) => !yes,
        Value::String(text) => matches!(text.as_str(), "" | "auto" | "all" | "deny"),
        Value::Array(items) => items.is_empty() || *value == serde_json::json!(["invoke", "list"]),
        _ => false,
    }
}

/// Panics where `sent` and `read` differ by more than defaults. A `sent` that holds what no
/// tree can (a number beyond a double, half a surrogate pair) is not compared.
pub(crate) fn assert_same(sent: &str, read: &str) {
    let Ok(sent_tree) = serde_json::from_str::<Value>(sent) else { return };
    let read_tree: Value = serde_json::from_str(read).unwrap_or_else(|fault| panic!("{fault} in what was written: {read}"));
    assert!(same(&sent_tree, &read_tree), "sent {sent}\nread {read}");
}

fn same(sent: &Value, read: &Value) -> bool {
    match (sent, read) {
        (Value::Object(sent), Value::Object(read)) => {
            let spelt_out = |(name, value): (&String, &Value)| sent.contains_key(name) || is_default(value);
            members(sent, read) && read.iter().all(spelt_out)
        }
        (Value::Array(sent), Value::Array(read)) => sent.len() == read.len() && sent.iter().zip(read).all(|(a, b)| same(a, b)),
        // Below the envelope a struct may also be written as the list of its members.
        (Value::Array(_), Value::Object(_)) => true,
        // What is written as 1 may be read as 1.0.
        (Value::Number(sent), Value::Number(read)) => sent == read || sent.as_f64() == read.as_f64(),
        _ => sent == read,
    }
}

/// Whether every member of `one` is in `other`, or is a default.
fn members(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    one.iter().all(|(name, value)| match other.get(name) {
        Some(also) => same(value, also) || (is_default(value) && is_default(also)),
        None => is_default(value),
    })
}
