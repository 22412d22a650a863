//! The shape of a file in `functions.d`: one collection.
//!
//! Owns the keys and their types, and the words for what is wrong with a file: the line,
//! what is expected there, and the nearest spelling. Never reads what a value means.

use crate::audit::Disclosure;
use crate::config::faults;
use crate::host::schema::phrase::nearest;
use brig_protocol::client::{Effect, Retry};
use brig_protocol::spelling::unknown_name;
use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CollectionFile {
    /// Name of the collection; that of the file when left out.
    pub(super) name: Option<String>,
    /// For whoever reads the file.
    #[serde(default, rename = "description")]
    pub(super) _description: String,
    /// By name; a function names those that it gets.
    #[serde(default)]
    pub(super) credentials: BTreeMap<String, CredentialEntry>,
    /// By name.
    pub(super) functions: BTreeMap<String, FunctionEntry>,
}

/// Where a credential comes from.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CredentialEntry {
    /// A file; `$CREDENTIALS_DIRECTORY/NAME` when left out.
    pub(super) file: Option<PathBuf>,
}

/// One function.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FunctionEntry {
    /// For the model.
    #[serde(default)]
    pub(super) description: String,
    /// JSON Schema: a table, or its JSON text.
    pub(super) input_schema: Option<toml::Value>,
    /// The same from a file beside this one.
    pub(super) input_schema_file: Option<PathBuf>,
    /// JSON Schema: a table, or its JSON text.
    pub(super) output_schema: Option<toml::Value>,
    /// The same from a file beside this one.
    pub(super) output_schema_file: Option<PathBuf>,
    /// For the model; checked against the schemas.
    #[serde(default)]
    pub(super) examples: Vec<ExampleEntry>,
    /// Longest time for one call.
    pub(super) timeout_ms: Option<u64>,
    /// What it does to the world.
    #[serde(default)]
    pub(super) effect: Effect,
    /// Whether a call whose effect is unknown may be made again.
    #[serde(default)]
    pub(super) retry: Retry,
    /// Most calls at one time.
    #[serde(default = "concurrency")]
    pub(super) concurrency: usize,
    /// Most calls in any minute.
    pub(super) calls_per_minute: Option<u32>,
    /// What the audit record holds.
    #[serde(default)]
    pub(super) audit: Disclosure,
    /// The program that it is.
    pub(super) command: Option<CommandEntry>,
}

const fn concurrency() -> usize {
    8
}

/// One example.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExampleEntry {
    /// What it shows.
    #[serde(default)]
    pub(super) description: String,
    /// The input.
    pub(super) input: toml::Value,
    /// What comes back.
    pub(super) output: Option<toml::Value>,
}

/// A user or a group: a name of `/etc/passwd` or `/etc/group`, or a number.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Identity {
    /// Its number.
    Number(u32),
    /// Its name.
    Name(String),
}

/// What the program writes to standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Output {
    /// One JSON value.
    #[default]
    Json,
    /// Text, which becomes a JSON string.
    Text,
    /// Nothing that is wanted: the value is null.
    None,
}

/// What the program finds on standard input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Input {
    /// The input as JSON.
    #[default]
    Json,
    /// Nothing.
    None,
}

/// A program.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CommandEntry {
    /// Absolute path.
    pub(super) program: PathBuf,
    /// Fixed texts with placeholders; a list within stands together or not at all.
    #[serde(default)]
    pub(super) args: Vec<ArgumentEntry>,
    /// What it finds on standard input.
    #[serde(default)]
    pub(super) input: Input,
    /// What it writes to standard output.
    #[serde(default)]
    pub(super) output: Output,
    /// The whole environment besides credentials.
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// Which of the collection's credentials it gets, and how.
    #[serde(default)]
    pub(super) credentials: BTreeMap<String, PassEntry>,
    /// As whom; must be said when brigd is root.
    pub(super) user: Option<Identity>,
    /// Its group; that of the user when left out.
    pub(super) group: Option<Identity>,
    /// Its other groups; those of the user when left out.
    pub(super) groups: Option<Vec<Identity>>,
    /// Its folder; `/` when left out.
    pub(super) folder: Option<PathBuf>,
    /// File mode creation mask in octal; `0077` when left out.
    pub(super) umask: Option<String>,
    /// Exit codes besides 64 to 78 by which it says no.
    #[serde(default)]
    pub(super) failure_codes: Vec<u8>,
    /// What it may use.
    #[serde(default)]
    pub(super) limits: LimitsEntry,
}

/// How a program gets a credential: exactly one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PassEntry {
    /// The variable that holds it.
    pub(super) variable: Option<String>,
    /// The variable that holds the path of a file with it.
    pub(super) file_variable: Option<String>,
}

/// Limits of the kernel.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitsEntry {
    pub(super) cpu_seconds: Option<u64>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) open_files: Option<u64>,
    pub(super) file_bytes: Option<u64>,
    pub(super) processes: Option<u64>,
}

/// An argument, or several that belong together.
#[derive(Debug)]
pub(super) enum ArgumentEntry {
    One(String),
    Group(Vec<String>),
}

impl<'de> Deserialize<'de> for ArgumentEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entry;
        impl<'de> Visitor<'de> for Entry {
            type Value = ArgumentEntry;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an argument in quotes, or a list of those")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<ArgumentEntry, E> {
                Ok(ArgumentEntry::One(text.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<ArgumentEntry, A::Error> {
                let mut all = Vec::new();
                while let Some(item) = items.next_element()? {
                    all.push(item);
                }
                Ok(ArgumentEntry::Group(all))
            }
        }
        deserializer.deserialize_any(Entry)
    }
}

/// Reads a file.
///
/// # Errors
/// What is wrong, each thing after its line.
pub(super) fn parse(text: &str) -> Result<CollectionFile, String> {
    let worded = |fault: &toml::de::Error| {
        let line = fault.span().map(|span| text.get(..span.start).unwrap_or_default().matches('\n').count() + 1);
        let message = fault.message().lines().next().unwrap_or_default().to_owned();
        let place = line.map_or_else(String::new, |line| format!("line {line}: "));
        let near = unknown_name(&message).and_then(|(given, known)| nearest(given, known));
        let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        format!("{place}{message}{near}")
    };
    faults::read(text).map_err(|all| all.iter().map(worded).collect::<Vec<_>>().join("; "))
}

/// A value of the file as JSON.
///
/// # Errors
/// A half sentence: dates have no form in JSON, nor have infinity and NaN.
pub(super) fn as_json(value: &toml::Value) -> Result<serde_json::Value, String> {
    use serde_json::Value as Json;
    Ok(match value {
        toml::Value::String(text) => Json::from(text.as_str()),
        toml::Value::Integer(number) => Json::from(*number),
        toml::Value::Float(number) => {
            serde_json::Number::from_f64(*number).map(Json::Number).ok_or_else(|| format!("holds {number}, which JSON does not have"))?
        }
        toml::Value::Boolean(yes) => Json::from(*yes),
        toml::Value::Datetime(moment) => return Err(format!("holds the date {moment}, which JSON does not have; put it in quotes")),
        toml::Value::Array(items) => Json::Array(items.iter().map(as_json).collect::<Result<_, _>>()?),
        toml::Value::Table(members) => {
            Json::Object(members.iter().map(|(name, value)| Ok((name.clone(), as_json(value)?))).collect::<Result<_, String>>()?)
        }
    })
}
