//! The `when` of an operator's rule: a JSON Schema written as TOML.
//!
//! Owns turning it into JSON, with the place of what has no JSON form, and its checks
//! beyond those of any schema: nothing in it may make a decision depend on effort.

use crate::config::{ConfigFault, fault};
use crate::host::schema::Schema;
use serde_json::{Map, Number, Value};
use std::sync::Arc;

/// Compiles a condition. Takes much stack: see [`super::Loader`].
///
/// # Errors
/// What is wrong and where.
pub(super) fn compiled(place: &str, written: &toml::Value) -> Result<(Arc<Schema>, String), ConfigFault> {
    let text = json(place, written)?.to_string();
    let schema = Schema::compile(&text).map_err(|wrong| fault(place, "a schema that can not be used", &format!("the schema {wrong}")))?;
    if schema.steps_back() {
        return Err(fault(
            place,
            "a schema with a pattern with look-around or back-references",
            "such a pattern can not decide a permission; write it without",
        ));
    }
    if let Some(sentence) = schema.lint().first() {
        return Err(fault(place, "a schema that does not say what it seems to", sentence));
    }
    Ok((Arc::new(schema), text))
}

/// The JSON form of a value of TOML.
///
/// # Errors
/// What has none, with its place.
pub(crate) fn json(place: &str, written: &toml::Value) -> Result<Value, ConfigFault> {
    Ok(match written {
        toml::Value::String(text) => Value::String(text.clone()),
        toml::Value::Integer(number) => Value::from(*number),
        toml::Value::Boolean(truth) => Value::Bool(*truth),
        toml::Value::Float(number) => Number::from_f64(*number)
            .map(Value::Number)
            .ok_or_else(|| fault(place, number, "JSON has no such number; write a finite one"))?,
        toml::Value::Datetime(time) => return Err(fault(place, time, "JSON has no dates; write it in quotes")),
        toml::Value::Array(items) => {
            let item = |(index, item): (usize, &toml::Value)| json(&format!("{place}[{index}]"), item);
            Value::Array(items.iter().enumerate().map(item).collect::<Result<_, _>>()?)
        }
        toml::Value::Table(table) => {
            let mut members = Map::new();
            for (key, value) in table {
                members.insert(key.clone(), json(&format!("{place}.{}", spelt(key)), value)?);
            }
            Value::Object(members)
        }
    })
}

/// A key as TOML writes it in a path.
pub(crate) fn spelt(key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if bare { key.to_owned() } else { format!("{:?}", brig_protocol::escape::escaped(key, 100)) }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        let table: toml::Value = toml::from_str::<toml::Table>(text).unwrap().remove("when").unwrap();
        compiled("when", &table).map(|(_, text)| text).map_err(|fault| fault.to_string())
    }

    #[test]
    fn a_schema_in_toml_is_the_schema_in_json() {
        let text =
            read("when = { properties = { amount = { maximum = 100.5 }, ok = { const = true } }, required = [\"amount\"] }").unwrap();
        let expected = serde_json::json!({"properties": {"amount": {"maximum": 100.5}, "ok": {"const": true}}, "required": ["amount"]});
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    }

    #[test]
    fn what_has_no_json_form_is_told_with_its_place() {
        for (text, place, part) in [
            ("when = { enum = [1, 2026-01-01] }", "when.enum[1]", "2026-01-01"),
            ("when = { properties = { \"a b\" = { maximum = inf } } }", "when.properties.\"a b\".maximum", "finite"),
        ] {
            let fault = read(text).unwrap_err();
            assert!(fault.starts_with(&format!("{place} is set to")) && fault.contains(part), "{fault}");
        }
    }

    #[test]
    fn a_schema_that_would_not_decide_is_refused() {
        for (text, part) in [
            ("when = { properties = { a = { pattern = \"(?=x)y\" } } }", "look-around"),
            ("when = { properties = { a = { maxmum = 5 } } }", "maximum"),
            ("when = { type = \"strng\" }", "\"string\""),
            ("when = 5", "neither an object"),
            ("when = { \"$ref\" = \"https://example.org/schema\" }", "when"),
        ] {
            let fault = read(text).unwrap_err();
            assert!(fault.contains(part), "{text}: {fault}");
        }
    }
}
