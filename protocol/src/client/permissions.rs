//! Permission scopes as they are written in a request.
//!
//! Owns the syntax. The decision is the supervisor's `permission::decide`.

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

/// What a request narrows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Permissions<'a> {
    /// Which host functions may be called. Left out: this narrows nothing.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub host_function: Option<Scope<'a>>,
}

/// What a rule or a scope says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Yes.
    Allow,
    /// No.
    Deny,
    /// A person decides.
    Ask,
}

/// What is done with a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Call it.
    Invoke,
    /// See that it is there.
    List,
}

/// `"allow"`, `"deny"`, or rules.
#[derive(Clone, Debug)]
pub enum Scope<'a> {
    /// One answer to everything: allow or deny.
    All(Mode),
    /// Rules; the last that matches wins.
    Rules(ScopeRules<'a>),
}

/// A scope with rules.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScopeRules<'a> {
    /// When no rule matches; `deny` when left out. Never `ask`.
    #[serde(default = "deny", skip_serializing_if = "is_deny")]
    pub default: Mode,
    /// At least one.
    #[serde(borrow)]
    pub rules: Vec<Rule<'a>>,
}

/// One rule.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule<'a> {
    /// What it says.
    pub mode: Mode,
    /// About which operations; both when left out, never none.
    #[serde(default = "both_operations")]
    pub operations: Vec<Operation>,
    /// About which functions ([`crate::names::Pattern`]); never none.
    pub patterns: Vec<String>,
    /// JSON Schema on the input: the rule matches only where it is valid.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub when: Option<&'a RawValue>,
    /// A sentence that refusals show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

const fn deny() -> Mode {
    Mode::Deny
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_deny(mode: &Mode) -> bool {
    *mode == Mode::Deny
}

fn both_operations() -> Vec<Operation> {
    vec![Operation::Invoke, Operation::List]
}

impl Serialize for Scope<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All(mode) => mode.serialize(serializer),
            Self::Rules(rules) => rules.serialize(serializer),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Scope<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ScopeVisitor;
        impl<'de> Visitor<'de> for ScopeVisitor {
            type Value = Scope<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("\"allow\", \"deny\", or an object with \"default\" and \"rules\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Scope<'de>, E> {
                match text {
                    "allow" => Ok(Scope::All(Mode::Allow)),
                    "deny" => Ok(Scope::All(Mode::Deny)),
                    other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Scope<'de>, A::Error> {
                ScopeRules::deserialize(de::value::MapAccessDeserializer::new(map)).map(Scope::Rules)
            }
        }
        deserializer.deserialize_any(ScopeVisitor)
    }
}
