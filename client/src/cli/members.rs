//! The members of a JSON object, each as the text it was written in.
//!
//! Owns their order and that none comes twice. Never looks at what the values mean: a
//! number keeps all its digits.

use serde::de::{self, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashSet;

/// Members by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members(Vec<(String, Box<RawValue>)>);

impl Members {
    /// Puts a member in the place of one with its name, or at the end.
    pub(crate) fn set(&mut self, name: String, value: Box<RawValue>) {
        self.0.retain(|(existing, _)| *existing != name);
        self.0.push((name, value));
    }

    /// Each member that there is.
    pub(crate) fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().find(|(existing, _)| existing == name).map(|(_, value)| &**value)
    }

    /// All of them, in the order they were written.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), &**value))
    }
}

impl IntoIterator for Members {
    type Item = (String, Box<RawValue>);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl serde::Serialize for Members {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> serde::Deserialize<'de> for Members {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Members;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                let mut names = HashSet::new();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    if !names.insert(name.clone()) {
                        return Err(de::Error::custom(format_args!("member {name:?} comes twice")));
                    }
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Each)
    }
}
