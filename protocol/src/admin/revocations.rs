//! `functions.*` and `principals.*`: what may not be used until it is restored.

use super::Person;
use serde::{Deserialize, Serialize};

/// Params of `functions.revoke`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RevokeParams {
    /// Which functions ([`crate::names::Pattern`]).
    pub pattern: String,
    /// For the record, at most [`super::COMMENT_BYTES`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Params of `functions.restore`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RestoreParams {
    /// The pattern as it was revoked.
    pub pattern: String,
}

/// Params of `principals.revoke`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PrincipalRevokeParams {
    /// `uid:1000`, or another spelling of a principal that policy knows.
    pub principal: String,
    /// For the record, at most [`super::COMMENT_BYTES`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Params of `principals.restore`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PrincipalParams {
    /// As it was revoked.
    pub principal: String,
}

/// Result of `functions.revoke` and `principals.revoke`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedResult {
    /// Evaluations that are ended because of it.
    pub evaluations: usize,
    /// Whether it outlives a restart of brigd.
    pub persisted: bool,
    /// What the operator may not have meant: nothing has this name now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// One thing that is revoked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Revocation {
    /// A pattern, or a principal.
    pub target: String,
    /// By whom.
    pub by: Person,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Result of `functions.list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RevocationsResult {
    /// Function patterns.
    pub functions: Vec<Revocation>,
    /// Principals.
    pub principals: Vec<Revocation>,
}
