//! What a comment says of a schema.
//!
//! Owns which keywords a type can not carry and a comment does: description, default,
//! bounds, format, examples. Never decides a type.

use super::words;
use serde_json::{Map, Value};

/// Keywords that are told as `@keyword value`.
const TOLD: &[&str] = &[
    "format",
    "default",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "contentEncoding",
    "contentMediaType",
    "not",
];
/// Keywords that are told when they are true.
const TOLD_IF_TRUE: &[&str] = &["uniqueItems", "deprecated", "writeOnly"];
/// Most examples that are told.
const EXAMPLES: usize = 2;

/// The lines of the comment on a schema.
pub(super) fn of(schema: &Value) -> Vec<String> {
    let Some(members) = schema.as_object() else { return Vec::new() };
    let mut text = description(members);
    let mut tags = tags(members);
    if let Some(only) = only_alternative(members) {
        if text.is_empty() {
            text = description(only);
        }
        for tag in self::tags(only) {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
    }
    if tags.is_empty() {
        return text;
    }
    match text.as_mut_slice() {
        [only] if only.len() < 100 => {
            only.push(' ');
            only.push_str(&tags.join(" "));
        }
        _ => text.push(tags.join(" ")),
    }
    text
}

fn description(members: &Map<String, Value>) -> Vec<String> {
    let told = |keyword: &str| members.get(keyword).and_then(Value::as_str).map(words::lines).filter(|lines| !lines.is_empty());
    told("description").or_else(|| told("title")).unwrap_or_default()
}

fn tags(members: &Map<String, Value>) -> Vec<String> {
    let mut tags = Vec::new();
    if is_integer(members) {
        tags.push("@integer".to_owned());
    }
    for keyword in TOLD {
        match members.get(*keyword) {
            None | Some(Value::Bool(false)) if *keyword != "default" => {}
            None => {}
            Some(Value::String(text)) if *keyword != "default" => tags.push(format!("@{keyword} {}", words::on_one_line(text, 200))),
            Some(value) => tags.push(format!("@{keyword} {}", words::value(value))),
        }
    }
    tags.extend(
        TOLD_IF_TRUE.iter().filter(|keyword| members.get(**keyword) == Some(&Value::Bool(true))).map(|keyword| format!("@{keyword}")),
    );
    let many = members.get("examples").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    tags.extend(many.iter().chain(members.get("example")).take(EXAMPLES).map(|example| format!("@example {}", words::value(example))));
    tags
}

fn is_integer(members: &Map<String, Value>) -> bool {
    match members.get("type") {
        Some(Value::String(kind)) => kind == "integer",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "integer") && !kinds.iter().any(|kind| kind == "number"),
        _ => false,
    }
}

/// The one alternative beside `null`: what is said of it is said of the whole.
fn only_alternative(members: &Map<String, Value>) -> Option<&Map<String, Value>> {
    let list = ["anyOf", "oneOf", "allOf"].iter().find_map(|keyword| members.get(*keyword)?.as_array())?;
    let mut others = list.iter().filter(|one| one.get("type").is_none_or(|kind| kind != "null"));
    let only = others.next()?.as_object()?;
    others.next().is_none().then_some(only)
}
