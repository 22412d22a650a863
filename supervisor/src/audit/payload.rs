//! What a record holds of an input or an output: its hash, and more only where the
//! operator says so for a function.
//!
//! Owns the choice and its bounds. Without a schema nothing is known of what is secret,
//! and a redacted payload is then only its hash.

use super::record::Hash;
use crate::host::schema::Schema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Longest payload that is recorded with its content, in bytes: a longer one is its hash.
const CONTENT_BYTES: usize = 64 * 1024;

/// How much of a function's inputs and outputs is recorded: `audit` of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Disclosure {
    /// Hash and length.
    #[default]
    Hash,
    /// Besides, the content without what its schema marks as secret (`writeOnly`, or
    /// `format: "password"`).
    Redacted,
    /// Besides, the whole text.
    Full,
}

/// An input or output, as it is recorded.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Payload {
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<Hash>,
    bytes: u64,
    /// What may be shown of it; the exact text when that has the hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Box<str>>,
    /// The content without its secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    redacted: Option<Value>,
}

impl Payload {
    /// What is recorded of `text`, whose content is told as `shown`: the same, or without
    /// what nobody may see.
    pub(crate) fn shown(text: &str, shown: &str, disclosure: Disclosure, schema: Option<&Schema>) -> Self {
        let hashed = Self { sha256: Some(Hash::of(text.as_bytes())), ..Self::unread(text.len()) };
        if text.len() > CONTENT_BYTES {
            return hashed;
        }
        match disclosure {
            Disclosure::Hash => hashed,
            Disclosure::Full => Self { text: Some(shown.into()), ..hashed },
            Disclosure::Redacted => {
                let tree = || crate::host::schema::payload::tree(shown).ok();
                Self { redacted: schema.and_then(|schema| schema.redacted(&tree()?)), ..hashed }
            }
        }
    }

    /// What is recorded of `text`.
    pub(crate) fn of(text: &str, disclosure: Disclosure, schema: Option<&Schema>) -> Self {
        Self::shown(text, text, disclosure, schema)
    }

    /// Its hash, in hexadecimal; empty when it was not looked at.
    pub(crate) fn sha256(&self) -> String {
        self.sha256.as_ref().map(ToString::to_string).unwrap_or_default()
    }

    /// Its length, in bytes.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// One that was not looked at: only its length is known.
    pub(crate) fn unread(bytes: usize) -> Self {
        Self { bytes: u64::try_from(bytes).unwrap_or(u64::MAX), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    fn recorded(text: &str, disclosure: Disclosure, schema: Option<&Value>) -> Value {
        let schema = schema.map(|schema| Schema::compile(&schema.to_string()).unwrap());
        serde_json::to_value(Payload::of(text, disclosure, schema.as_ref())).unwrap()
    }

    #[test]
    fn by_default_only_the_hash_and_the_length_are_recorded() {
        let value = recorded("{\"pin\":1234}", Disclosure::default(), None);
        assert_eq!(value, json!({"sha256": Hash::of(b"{\"pin\":1234}").to_string(), "bytes": 12}));
    }

    #[test]
    fn in_full_the_text_is_there_as_it_was_so_that_its_hash_can_be_checked() {
        let text = "{ \"a\" : 1.0 }";
        assert_eq!(recorded(text, Disclosure::Full, None).get("text"), Some(&json!(text)));
        let long = format!("\"{}\"", "x".repeat(CONTENT_BYTES));
        assert_eq!(recorded(&long, Disclosure::Full, None).get("text"), None);
    }

    #[test]
    fn what_the_schema_marks_is_taken_out_wherever_it_stands() {
        let schema = json!({"properties": {
            "amount": {"type": "number"}, "pin": {"writeOnly": true},
            "cards": {"type": "array", "items": {"properties": {"number": {"$ref": "#/$defs/secret"}, "name": {}}}},
            "odd": {"anyOf": [{"type": "object"}, {"type": "string", "format": "password"}]}},
            "$defs": {"secret": {"type": "string", "format": "password"}}});
        let text = json!({"amount": 5, "pin": "4321", "cards": [{"number": "4111", "name": "N"}], "odd": "hunter2", "more": "k3y"});
        let value = recorded(&text.to_string(), Disclosure::Redacted, Some(&schema));
        let out = "[redacted]";
        let shown = json!({"amount": 5, "pin": out, "cards": [{"number": out, "name": "N"}], "odd": out, "more": out});
        assert_eq!(value.get("redacted"), Some(&shown));
        let names = json!({"properties": {"x-key": {}}, "patternProperties": {"^x-": {"writeOnly": true}}});
        let value = recorded("{\"x-key\":\"k3y\"}", Disclosure::Redacted, Some(&names));
        assert_eq!(value.get("redacted"), Some(&json!({"x-key": out})));
    }

    #[test]
    fn without_a_schema_nothing_is_known_to_be_harmless() {
        assert_eq!(recorded("{\"a\":1}", Disclosure::Redacted, None).get("redacted"), None);
    }
}
