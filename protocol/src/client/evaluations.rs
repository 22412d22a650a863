//! `evaluations.get` and `evaluations.wait`: an answer after a reconnect, and what
//! `evaluate` with `detach` answers at once.

use super::EvaluateResult;
use serde::{Deserialize, Serialize};

/// Longest wait of `evaluations.wait`, in milliseconds.
pub const WAIT_MOST_MS: u64 = 600_000;
/// Wait of `evaluations.wait` when none is asked for, in milliseconds.
pub const WAIT_DEFAULT_MS: u64 = 30_000;

/// Params of `evaluations.get`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluationsGetParams {
    /// Which, `ev_…`.
    pub evaluation: String,
}

/// Params of `evaluations.wait`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EvaluationsWaitParams {
    /// Which, `ev_…`.
    pub evaluation: String,
    /// How long at most, in milliseconds: 0 to [`WAIT_MOST_MS`]; [`WAIT_DEFAULT_MS`] when
    /// left out. When it is over the answer says `running`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// How far an evaluation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EvaluationState {
    /// It has begun and is not over.
    Running,
    /// It is over: `result` is its answer.
    Ended,
    /// brigd ended before it did: `result` lists what is on record. It is never run again.
    Unknown,
}

/// Result of `evaluations.get`, of `evaluations.wait`, and of `evaluate` with `detach`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EvaluationStatus<R = EvaluateResult> {
    /// Its id, `ev_…`.
    pub evaluation: String,
    /// How far it is.
    pub state: EvaluationState,
    /// When it began, in milliseconds since 1970.
    pub started_ms: u64,
    /// When it ended; absent while it runs.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// What `evaluate` answers; absent while it runs.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub result: Option<R>,
}

const fn none<T>() -> Option<T> {
    None
}
