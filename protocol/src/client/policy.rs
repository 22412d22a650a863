//! `policy.explain`: what would be decided for the asking principal, and by which rule.
//!
//! Owns the shapes. Nothing in them tells whether a function is there, or anything of
//! another principal.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Params of `policy.explain`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyExplainParams<'a> {
    /// `collection.function`.
    pub function: String,
    /// The input of the call; without one, whether any call could be allowed.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub input: Option<&'a RawValue>,
    /// A function that the client declares, instead of a configured one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub callback: bool,
}

/// What policy says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It may run.
    Allow,
    /// It may run if a person agrees.
    Ask,
    /// It may not run.
    Deny,
}

/// One budget of the rule that decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetLeft {
    /// Which, as in `3 calls per hour`.
    pub limit: String,
    /// What is left of it, as a decimal number.
    pub left: String,
    /// When what the call takes is free, if it is not now, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// Result of `policy.explain`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyExplainResult {
    /// What would be decided.
    pub decision: Decision,
    /// By which rule, as audit records name it.
    pub rule: String,
    /// The section of the policy that applies; empty when there is no policy.
    pub section: String,
    /// Names the policy that holds now.
    pub policy: String,
    /// The rule's sentence, or what is wrong with the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What is left of its budgets, those of one evaluation as at its beginning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetLeft>,
    /// How long a call would wait for a person, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_wait_ms: Option<u64>,
}
