//! A payload without what its schema marks as secret.
//!
//! Owns a walk over schema and payload together. In doubt it takes out: a pattern of
//! names counts as one that matches, a branch as one that applies, and what no subschema
//! describes is not shown.

use super::graph::{self, Targets};
use serde_json::Value;

/// Most steps; a payload that takes more is not shown at all.
const BUDGET: u32 = 50_000;
/// What stands where something was taken out.
const TAKEN_OUT: &str = "[redacted]";

struct Walk<'s> {
    targets: Targets<'s>,
    budget: u32,
}

/// The payload without its secrets; nothing when it takes too long to say.
pub(super) fn redacted(schema: &Value, payload: &Value) -> Option<Value> {
    let mut walk = Walk { targets: Targets::of(schema), budget: BUDGET };
    walk.visit(&[schema], payload)
}

impl<'s> Walk<'s> {
    fn spend(&mut self) -> Option<()> {
        self.budget = self.budget.checked_sub(1)?;
        Some(())
    }

    /// Every subschema that looks at the same place as these.
    fn at_place(&mut self, schemas: &[&'s Value]) -> Option<Vec<&'s Value>> {
        let mut found: Vec<&Value> = Vec::new();
        let mut waiting = schemas.to_vec();
        while let Some(schema) = waiting.pop() {
            self.spend()?;
            if found.iter().any(|known| std::ptr::eq(*known, schema)) {
                continue;
            }
            found.push(schema);
            let Some(members) = schema.as_object() else { continue };
            waiting.extend(graph::children(members).filter(|(same, _)| *same).map(|(_, child)| child));
            let references = graph::REFERENCES.iter().filter_map(|keyword| members.get(*keyword)?.as_str());
            waiting.extend(references.filter_map(|reference| self.targets.resolve(reference).ok()));
        }
        Some(found)
    }

    fn visit(&mut self, schemas: &[&'s Value], value: &Value) -> Option<Value> {
        self.spend()?;
        let here = self.at_place(schemas)?;
        if here.is_empty() || here.iter().any(|schema| is_marked(schema)) {
            return Some(TAKEN_OUT.into());
        }
        Some(match value {
            Value::Object(members) => {
                let mut shown = serde_json::Map::new();
                for (name, member) in members {
                    let below: Vec<&Value> = here.iter().flat_map(|schema| of_member(schema, name)).collect();
                    shown.insert(name.clone(), self.visit(&below, member)?);
                }
                Value::Object(shown)
            }
            Value::Array(items) => {
                let below: Vec<&Value> = here.iter().flat_map(|schema| of_items(schema)).collect();
                Value::Array(items.iter().map(|item| self.visit(&below, item)).collect::<Option<_>>()?)
            }
            other => other.clone(),
        })
    }
}

fn is_marked(schema: &Value) -> bool {
    schema.get("writeOnly") == Some(&Value::Bool(true)) || schema.get("format").and_then(Value::as_str) == Some("password")
}

/// Subschemas that may look at a member of this name.
fn of_member<'s>(schema: &'s Value, name: &str) -> Vec<&'s Value> {
    let named = schema.get("properties").and_then(|members| members.get(name));
    let patterns = schema.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(serde_json::Map::values);
    let rest = ["additionalProperties", "unevaluatedProperties"].iter().filter_map(|keyword| schema.get(*keyword));
    // A bare yes or no says nothing about what a value is.
    let rest = rest.filter(|_| named.is_none()).filter(|schema| schema.is_object());
    named.into_iter().chain(patterns).chain(rest).collect()
}

/// Subschemas that may look at an item.
fn of_items(schema: &Value) -> Vec<&Value> {
    let keywords = ["items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"];
    let found = keywords.iter().filter_map(|keyword| schema.get(*keyword));
    found
        .flat_map(|value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice))
        .filter(|schema| schema.is_object())
        .collect()
}
