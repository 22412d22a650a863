//! `approvals.*`: what a person is shown and says.

use crate::client::Principal;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What became of a call that waited for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalState {
    /// Nobody has decided.
    Waiting,
    /// Somebody said yes.
    Approved,
    /// Somebody said no.
    Denied,
    /// Nobody said anything in time.
    Expired,
    /// Its evaluation ended, or what it needs was revoked or changed, before anybody decided.
    Withdrawn,
    /// brigd ended before anybody decided. The call did not run.
    Abandoned,
}

/// Who decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Person {
    /// User id, as the kernel says.
    pub uid: u32,
}

/// A yes or a no, on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// Whose.
    pub by: Person,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// What they said to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// One call that waits, or waited, for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalInfo {
    /// Its id, `ap_…`.
    pub approval: String,
    /// What became of it.
    pub state: ApprovalState,
    /// `collection.function`.
    pub function: String,
    /// Of which evaluation.
    pub evaluation: String,
    /// Which call of it.
    pub call: u64,
    /// For whom it would run.
    pub principal: Principal,
    /// Which rule asks.
    pub rule: String,
    /// The rule's own sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The policy under which it was asked.
    pub policy_version: String,
    /// SHA-256 of the whole input's text, in hexadecimal. To approve is to repeat it.
    pub input_sha256: String,
    /// Length of the whole input's text.
    pub input_bytes: u64,
    /// When it was asked, in milliseconds since 1970.
    pub asked_at_ms: u64,
    /// How long it has waited or did wait, in milliseconds.
    pub age_ms: u64,
    /// How long it may still wait, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
    /// Who decided what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
}

/// Params of `approvals.list`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApprovalsListParams {
    /// Also those that do not wait any more, as far as they are kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decided: bool,
}

/// Result of `approvals.list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalsListResult {
    /// Oldest first.
    pub approvals: Vec<ApprovalInfo>,
}

/// Params of `approvals.show`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApprovalParams {
    /// Which, `ap_…`.
    pub approval: String,
}

/// Result of `approvals.show`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalDetail {
    /// Which.
    pub approval: ApprovalInfo,
    /// The input, or the part of it that the rule shows; absent when it waits no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Box<RawValue>>,
    /// Whether there is more in the input than is shown.
    pub redacted: bool,
    /// Whose decision the rule asks for.
    pub approvers: Vec<String>,
    /// Why whoever asks may not decide; absent when they may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// Params of `approvals.approve`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApproveParams {
    /// Which, `ap_…`.
    pub approval: String,
    /// The hash that was shown.
    pub input_sha256: String,
    /// For the record, at most [`super::COMMENT_BYTES`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// Params of `approvals.deny`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DenyParams {
    /// Which, `ap_…`.
    pub approval: String,
    /// For the record, at most [`super::COMMENT_BYTES`]. The guest does not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// Result of `approvals.approve` and `approvals.deny`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DecidedResult {
    /// As it stands now.
    pub approval: ApprovalInfo,
}
