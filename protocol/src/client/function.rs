//! Host functions as a client declares them.

use crate::limits::REGISTERED_FUNCTIONS;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use std::marker::PhantomData;

/// What a function does to the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Only looks.
    Read,
    /// May change something. The default: the careful reading.
    #[default]
    Write,
}

/// One example of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example<'a> {
    /// What it shows.
    #[serde(default)]
    pub description: String,
    /// The input.
    #[serde(borrow)]
    pub input: &'a RawValue,
    /// What comes back.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub output: Option<&'a RawValue>,
}

/// One host function. Every member may be left out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FunctionDeclaration<'a> {
    /// For the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema (draft 7 or 2020-12) of the input, at most
    /// [`crate::limits::SCHEMA_BYTES`]; without it any JSON object is taken.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<&'a RawValue>,
    /// JSON Schema of the output; without it any JSON is taken.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<&'a RawValue>,
    /// Examples for the model.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Example<'a>>,
    /// Time for one call, in milliseconds, at most
    /// [`crate::limits::FUNCTION_TIMEOUT_MAX_MS`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What it does to the world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
}

/// A JSON object that keeps its order and refuses a name that comes twice.
#[derive(Clone, Debug)]
pub struct FunctionMap<T>(pub Vec<(String, T)>);

impl<T> Default for FunctionMap<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// Collections by name, functions by name.
pub type HostFunctions<'a> = FunctionMap<FunctionMap<FunctionDeclaration<'a>>>;

impl<T: Serialize> Serialize for FunctionMap<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for FunctionMap<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MapVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for MapVisitor<T> {
            type Value = FunctionMap<T>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of collections, each an object of functions")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FunctionMap<T>, A::Error> {
                let mut entries: Vec<(String, T)> = Vec::new();
                let mut names = std::collections::HashSet::new();
                while let Some((name, value)) = map.next_entry::<String, T>()? {
                    if entries.len() >= REGISTERED_FUNCTIONS {
                        return Err(de::Error::custom(format_args!("more than {REGISTERED_FUNCTIONS} entries")));
                    }
                    if !names.insert(name.clone()) {
                        let name = crate::escape::escaped(&name, 100);
                        return Err(de::Error::custom(format_args!("name {name:?} comes twice")));
                    }
                    entries.push((name, value));
                }
                Ok(FunctionMap(entries))
            }
        }
        deserializer.deserialize_map(MapVisitor(PhantomData))
    }
}
