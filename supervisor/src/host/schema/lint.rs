//! Keywords that look misspelt.
//!
//! Owns a warning for a schema that says less than its author thinks: an unknown
//! keyword is legal and checks nothing. Never refuses a schema.

use super::graph;
use super::phrase::nearest;
use brig_protocol::escape::escaped;
use serde_json::Value;

/// Most warnings about one schema.
const MOST: usize = 5;

/// Keywords that a misspelling may have meant.
const KEYWORDS: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$ref",
    "$schema",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "default",
    "definitions",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "else",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "readOnly",
    "required",
    "then",
    "title",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "writeOnly",
];

/// A sentence for each keyword that is unknown and near a known one.
pub(super) fn misspellings(root: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![root];
    while let Some(members) = waiting.pop().map(Value::as_object) {
        let Some(members) = members else { continue };
        for keyword in members.keys().filter(|keyword| !KEYWORDS.contains(&keyword.as_str()) && !is_extension(keyword)) {
            if let Some(meant) = nearest(keyword, KEYWORDS.iter().copied()).filter(|_| found.len() < MOST) {
                found.push(format!("keyword {:?} is unknown and checks nothing; did you mean {meant:?}?", escaped(keyword, 60)));
            }
        }
        waiting.extend(graph::children(members).chain(graph::stored(members)).map(|(_, child)| child));
    }
    found
}

/// Spellings that are other people's own keywords on purpose.
fn is_extension(keyword: &str) -> bool {
    keyword.starts_with("x-") || matches!(keyword, "id" | "example" | "nullable" | "enumNames" | "errorMessage")
}
