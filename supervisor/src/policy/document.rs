//! The `[principals]` tables as an operator writes them.
//!
//! Owns their shape: unknown keys are errors. Never says whether a value makes sense:
//! [`super::compile`] does, with the place.

use super::amount::Amount;
use brig_protocol::client::{Mode, Operation};
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// `[principals."…"]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PrincipalTable {
    /// Which functions of its own it may declare and have called; none when left out.
    pub(crate) callbacks: Option<ScopeTable>,
    /// Ceilings, by the names of `[limits]`; at most what `[limits]` says.
    pub(crate) limits: BTreeMap<String, u64>,
    /// How much it may have at once.
    pub(crate) quotas: QuotaTable,
    /// Which configured functions it may call; none when left out.
    pub(crate) host_function: Option<ScopeTable>,
}

/// `[principals."…".quotas]`; what is left out is as for everybody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct QuotaTable {
    /// Evaluations that run at the same time.
    pub(crate) running: Option<usize>,
    /// Evaluations that wait.
    pub(crate) queued: Option<usize>,
    /// Kept workers.
    pub(crate) vms: Option<usize>,
    /// Host calls in any minute.
    pub(crate) calls_per_minute: Option<u64>,
}

/// `"allow"`, `"deny"`, or a table with rules.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum ScopeTable {
    /// The same to every function.
    All(Mode),
    /// Rules; the last that matches wins.
    Rules(RulesTable),
}

/// A scope with rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RulesTable {
    /// When none matches; `deny` when left out.
    #[serde(default = "deny")]
    pub(crate) default: Mode,
    /// In the order written.
    #[serde(default)]
    pub(crate) rules: Vec<RuleTable>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleTable {
    /// What it says.
    pub(crate) mode: Mode,
    /// About which functions.
    pub(crate) patterns: Vec<String>,
    /// About which operations; both when left out.
    #[serde(default = "both_operations")]
    pub(crate) operations: Vec<Operation>,
    /// JSON Schema on the input, written as TOML.
    #[serde(default)]
    pub(crate) when: Option<toml::Value>,
    /// How often, or how much in all.
    #[serde(default)]
    pub(crate) budget: OneOrMany<BudgetTable>,
    /// Who decides, where the mode is `ask`.
    #[serde(default)]
    pub(crate) ask: Option<AskTable>,
    /// A sentence that refusals show.
    #[serde(default)]
    pub(crate) why: Option<String>,
}

/// One budget: calls, or a sum over the input with its maximum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BudgetTable {
    /// Most calls.
    #[serde(default)]
    pub(crate) calls: Option<u64>,
    /// JSON Pointer to the number of the input that is added up.
    #[serde(default)]
    pub(crate) sum: Option<String>,
    /// Most of that sum.
    #[serde(default)]
    pub(crate) max: Option<Amount>,
    /// Within what.
    pub(crate) per: Window,
    /// Budgets of one name in a section are one budget, whatever function is called.
    #[serde(default)]
    pub(crate) name: Option<String>,
}

/// Within what a budget holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Window {
    /// One evaluation.
    Evaluation,
    /// Any sixty seconds.
    Minute,
    /// Any sixty minutes.
    Hour,
    /// Any twenty-four hours.
    Day,
}

impl Window {
    /// The word for it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Evaluation => "evaluation",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }

    /// How long it is, in milliseconds; an evaluation is as long as it takes.
    pub(crate) const fn millis(self) -> Option<u64> {
        match self {
            Self::Evaluation => None,
            Self::Minute => Some(60_000),
            Self::Hour => Some(3_600_000),
            Self::Day => Some(86_400_000),
        }
    }
}

/// Who is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskTable {
    /// Principals, as the names of sections are written.
    pub(crate) approvers: Vec<String>,
    /// How long it waits for a decision.
    #[serde(default = "wait_seconds")]
    pub(crate) wait_seconds: u64,
    /// JSON Pointers to what of the input is shown; everything when left out.
    #[serde(default)]
    pub(crate) show: Option<Vec<String>>,
}

const fn deny() -> Mode {
    Mode::Deny
}

fn both_operations() -> Vec<Operation> {
    vec![Operation::Invoke, Operation::List]
}

const fn wait_seconds() -> u64 {
    600
}

impl<'de> Deserialize<'de> for ScopeTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ScopeVisitor;
        impl<'de> Visitor<'de> for ScopeVisitor {
            type Value = ScopeTable;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"allow\", \"deny\", or a table with \"default\" and \"rules\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<ScopeTable, E> {
                match text {
                    "allow" => Ok(ScopeTable::All(Mode::Allow)),
                    "deny" => Ok(ScopeTable::All(Mode::Deny)),
                    other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ScopeTable, A::Error> {
                RulesTable::deserialize(de::value::MapAccessDeserializer::new(map)).map(ScopeTable::Rules)
            }
        }
        deserializer.deserialize_any(ScopeVisitor)
    }
}

/// One table, or a list of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct OneOrMany<T>(pub(crate) Vec<T>);

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ManyVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ManyVisitor<T> {
            type Value = OneOrMany<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table or a list of tables")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<OneOrMany<T>, A::Error> {
                Ok(OneOrMany(vec![T::deserialize(de::value::MapAccessDeserializer::new(map))?]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<OneOrMany<T>, A::Error> {
                let mut all = Vec::new();
                while let Some(one) = seq.next_element()? {
                    all.push(one);
                }
                Ok(OneOrMany(all))
            }
        }
        deserializer.deserialize_any(ManyVisitor(PhantomData))
    }
}
