//! `initialize`, vms, and what the supervisor asks and tells a client.

use super::{HostFunctions, Sandbox, Warning};
use crate::limits::{Limits, RequestedLimits};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The version of the client protocol that this crate specifies.
pub const PROTOCOL_VERSION: &str = "1";

/// Params of `initialize`; every member may be left out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InitializeParams {
    /// The version the client speaks; [`PROTOCOL_VERSION`] when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// For the log; never trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientInfo>,
}

/// Who the client says it is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
}

/// Result of `initialize`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InitializeResult {
    /// The version that will be spoken.
    pub protocol_version: String,
    /// Who answers.
    pub server: ServerInfo,
    /// The ceilings of this principal.
    pub limits: Limits,
    /// What confines workers now.
    pub sandbox: Sandbox,
    /// Who the kernel says the client is.
    pub principal: Principal,
}

/// Name and version of brigd.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerInfo {
    /// `brigd`.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// Who the kernel says the peer is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Principal {
    /// Effective user id.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
}

/// Params of `vm.create`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VmCreateParams<'a> {
    /// Collections for every evaluation in the vm.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub host_functions: Option<HostFunctions<'a>>,
    /// Lowers the ceilings for every evaluation in the vm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<RequestedLimits>,
    /// Time zone of the vm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
}

/// Result of `vm.create`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VmCreateResult {
    /// Its id, `vm_…`.
    pub vm: String,
    /// Ends when idle for so long, in milliseconds.
    pub idle_timeout_ms: u64,
    /// Ends after so long in any case, in milliseconds.
    pub lifetime_ms: u64,
}

/// Params of `vm.dispose`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VmDisposeParams {
    /// Which.
    pub vm: String,
}

/// One kept worker, as `vm.list` tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VmInfo {
    /// Its id, `vm_…`.
    pub vm: String,
    /// Whether an evaluation runs in it now.
    pub busy: bool,
    /// Evaluations that it has begun.
    pub evaluations: u64,
    /// Since it was made, in milliseconds.
    pub age_ms: u64,
    /// Since its last evaluation ended, in milliseconds; 0 while busy.
    pub idle_ms: u64,
}

/// Result of `vm.list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VmListResult {
    /// The principal's, oldest first.
    pub vms: Vec<VmInfo>,
}

/// Params of `host.call`: the supervisor asks the client to run a callback.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostCallParams<'a> {
    /// For which evaluation.
    #[serde(borrow)]
    pub evaluation: std::borrow::Cow<'a, str>,
    /// Number of the call within it.
    pub call: u64,
    /// `collection.function`, as declared.
    #[serde(borrow)]
    pub function: std::borrow::Cow<'a, str>,
    /// Valid against the function's schema.
    #[serde(borrow)]
    pub input: &'a RawValue,
    /// How long the answer is awaited, in milliseconds.
    pub deadline_ms: u64,
    /// The same for every delivery of this call.
    #[serde(borrow)]
    pub idempotency_key: std::borrow::Cow<'a, str>,
    /// With which vm the function was declared, where it was not with the evaluation: a
    /// client that made several vms knows by it whose handler is meant.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub vm: Option<std::borrow::Cow<'a, str>>,
}

/// What a client's failed callback says of itself (`error.data`).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallFailure<'a> {
    /// Name of the error's class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The function's own code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The function's own data.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub data: Option<&'a RawValue>,
}

/// Params of `host.cancel`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostCancelParams {
    /// The id of the `host.call` request.
    pub id: crate::rpc::Id,
    /// For which evaluation.
    pub evaluation: String,
    /// Which call.
    pub call: u64,
    /// Why: a call code.
    pub reason: String,
}

/// Params of `evaluation.started`: which id the evaluation of a request has. Sent when
/// `evaluate` asked for it with `announce`, before anything else of that evaluation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartedNote {
    /// The id of the `evaluate` request.
    pub id: crate::rpc::Id,
    /// Its evaluation, `ev_…`.
    pub evaluation: String,
}

/// A console stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// `console.log`, `info`, `debug`.
    Stdout,
    /// `console.warn`, `error`, `trace`.
    Stderr,
}

/// Params of `evaluation.output`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutputNote {
    /// Of which evaluation.
    pub evaluation: String,
    /// Which stream.
    pub stream: Stream,
    /// One or more lines, as printed.
    pub text: String,
}

/// Params of `evaluation.warning`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WarningNote {
    /// Of which evaluation.
    pub evaluation: String,
    /// What it is about.
    pub warning: Warning,
}

/// Params of `evaluation.approval`: a call waits for a person, and with it, unless
/// something else runs, the evaluation's wall clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalNote {
    /// Of which evaluation.
    pub evaluation: String,
    /// Number of the call within it.
    pub call: u64,
    /// `collection.function`.
    pub function: String,
    /// The id by which an approver finds it, `ap_…`.
    pub approval: String,
    /// How long it is awaited, in milliseconds.
    pub expires_in_ms: u64,
}
