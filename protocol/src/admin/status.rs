//! `status`, `evaluations.*` and `policy.*`.

use crate::client::Sandbox;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Result of `status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusResult {
    /// Version of brigd.
    pub version: String,
    /// Since its start, in milliseconds.
    pub uptime_ms: u64,
    /// `serving`, `draining` or `ending`.
    pub phase: String,
    /// What confines workers now.
    pub sandbox: Sandbox,
    /// The pool.
    pub workers: WorkersStatus,
    /// Who runs and who waits.
    pub queue: QueueStatus,
    /// Each principal of which there is anything, by uid.
    pub principals: Vec<PrincipalStatus>,
    /// Kept workers.
    pub vms: usize,
    /// Names the policy that holds now: the same tables have the same version.
    pub policy_version: String,
    /// Calls that wait for a person.
    pub approvals_waiting: usize,
    /// Function patterns that are revoked.
    pub functions_revoked: usize,
    /// Principals that are revoked.
    pub principals_revoked: usize,
    /// Whether what is revoked, or restored, is still to be written down: until then a
    /// restart brings back what was written last.
    #[serde(default)]
    pub revocations_unwritten: bool,
    /// Configured functions that there are.
    #[serde(default)]
    pub functions: usize,
    /// Files of configured functions that are not used.
    #[serde(default)]
    pub files_off: Vec<FileOff>,
    /// What an operator should mend, though brigd runs with it.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Where host calls are recorded.
    pub audit: AuditStatus,
    /// What is kept.
    pub journal: JournalStatus,
    /// What happened since the start, by name.
    pub counters: BTreeMap<String, u64>,
    /// How evaluations failed since the start, by error code.
    pub failures: BTreeMap<String, u64>,
}

/// The pool of workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkersStatus {
    /// Wait for a program.
    pub ready: usize,
    /// Are being made.
    pub coming: usize,
    /// Run one.
    pub leased: usize,
    /// Are going.
    pub ending: usize,
    /// Programs that wait for a worker.
    pub waiting: usize,
    /// Nurseries that live.
    pub nurseries: usize,
    /// Workers that died of something else than their end.
    pub abnormal_deaths: u64,
    /// Attempts at a nursery or a worker that failed.
    pub failures: u64,
    /// The last of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<String>,
}

/// Who runs and who waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    /// Evaluations that run.
    pub running: usize,
    /// Evaluations that wait.
    pub waiting: usize,
}

/// One principal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrincipalStatus {
    /// Its user id.
    pub uid: u32,
    /// Its connections.
    pub connections: usize,
    /// Its evaluations that run.
    pub running: usize,
    /// Its evaluations that wait.
    pub waiting: usize,
}

/// Where host calls are recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditStatus {
    /// `log`, or the path.
    pub place: String,
    /// Number of the last record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Its hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Number of the last record of which the disk said that it has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_disk: Option<u64>,
    /// Why no more records are taken, and so no calls run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JournalStatus {
    /// `memory`, or the state directory.
    pub place: String,
    /// Whether it outlives brigd.
    pub durable: bool,
    /// Evaluations that go on without their connections.
    pub detached: usize,
}

/// What an evaluation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EvaluationState {
    /// Its program runs.
    Running,
    /// At least one host call is open.
    Calling,
    /// All it waits for is people; its wall clock stands still.
    Approval,
}

/// One evaluation that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvaluationInfo {
    /// Its id, `ev_…`.
    pub evaluation: String,
    /// For whom.
    pub uid: u32,
    /// The client's process when it connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// Since it was dispatched, in milliseconds.
    pub age_ms: u64,
    /// What it does.
    pub state: EvaluationState,
    /// Functions whose calls are open.
    pub open: Vec<String>,
}

/// Result of `evaluations.list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvaluationsListResult {
    /// Oldest first.
    pub evaluations: Vec<EvaluationInfo>,
}

/// Params of `evaluations.kill`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KillParams {
    /// Which, `ev_…`.
    pub evaluation: String,
    /// For the record, at most [`super::COMMENT_BYTES`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Result of `policy.check` and `policy.reload`; a configuration that does not load is
/// an error, and changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyResult {
    /// Of the policy that holds now.
    pub policy_version: String,
    /// What the operator should know: settings that need a restart.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What an operator should mend, though the configuration loads.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Files of configured functions that are not used; the others are.
    #[serde(default)]
    pub files_off: Vec<FileOff>,
}

/// A file of configured functions that is not used: the functions in it can not be called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileOff {
    /// Its path, or that of the folder.
    pub file: String,
    /// What is wrong with it.
    pub why: String,
}
