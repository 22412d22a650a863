//! One record for a person, and what the tools read of every record.
//!
//! Owns making records safe for a terminal. What is no record is never shown as one.

use crate::audit::record;
use brig_protocol::escape::escaped;
use serde_json::{Map, Value};

/// Longest line that is shown of a record, in bytes.
const SHOWN_BYTES: usize = 2_000;
/// Members that are shown apart, or are of no interest to a person.
const APART: &[&str] = &["seq", "time_ms", "prev", "event", "hash"];

/// A record as a tree.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) members: Map<String, Value>,
}

impl Shown {
    /// Reads a line whose hash is right.
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        record::read(line).ok()?;
        Some(Self { members: serde_json::from_slice(line).ok()? })
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.members.get(name)?.as_str()
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.members.get(name)?.as_u64()
    }

    /// When it was written.
    pub(super) fn time(&self) -> String {
        let millis = self.number("time_ms").and_then(|millis| i64::try_from(millis).ok());
        let time = millis.and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
        time.map_or_else(|| "?".to_owned(), |time| format!("{time:.3}"))
    }

    /// The members that are particular to the event.
    pub(super) fn rest(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.members.iter().filter(|(name, _)| !APART.contains(&name.as_str()))
    }

    /// One line for a person.
    pub(super) fn line(&self) -> String {
        let mut line = format!("{} {:>6} {}", self.time(), self.number("seq").unwrap_or_default(), self.text("event").unwrap_or("?"));
        for (name, value) in self.rest() {
            let value = match value {
                Value::String(text) if !text.contains(' ') => text.clone(),
                other => other.to_string(),
            };
            line.push_str(&format!(" {name}={value}"));
        }
        escaped(&line, SHOWN_BYTES)
    }
}
