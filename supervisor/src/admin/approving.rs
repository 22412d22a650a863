//! `approvals.*`.

use super::Speaker;
use super::methods::said;
use super::people::Role;
use crate::policy::Facts;
use crate::service::{Act, Service};
use brig_protocol::admin::{
    ApprovalDetail, ApprovalInfo, ApprovalParams, ApprovalsListParams, ApprovalsListResult, ApproveParams, DecidedResult, DenyParams,
};
use brig_protocol::rpc::ErrorData;

/// What waits: for an approver, what waits for them.
pub(super) fn list(service: &Service, speaker: &Speaker, params: ApprovalsListParams) -> ApprovalsListResult {
    ApprovalsListResult { approvals: service.approvals.list(params.decided, only_own(speaker)) }
}

/// Exactly what would run.
///
/// # Errors
/// There is no such approval, or not for this approver.
pub(super) fn show(service: &Service, speaker: &Speaker, params: &ApprovalParams) -> Result<ApprovalDetail, ErrorData> {
    service.approvals.show(&params.approval, &speaker.facts, only_own(speaker).is_some())
}

/// Yes.
///
/// # Errors
/// They may not, somebody was first, the hash is another, or there is no such approval.
pub(super) fn approve(service: &Service, speaker: &Speaker, params: ApproveParams) -> Result<DecidedResult, ErrorData> {
    let comment = said("comment", params.comment)?;
    let decided = service.approvals.approve(&params.approval, &speaker.facts, &params.input_sha256, comment);
    record(service, speaker, true, decided)
}

/// No.
///
/// # Errors
/// They may not, somebody was first, or there is no such approval.
pub(super) fn deny(service: &Service, speaker: &Speaker, params: DenyParams) -> Result<DecidedResult, ErrorData> {
    let comment = said("comment", params.comment)?;
    record(service, speaker, false, service.approvals.deny(&params.approval, &speaker.facts, comment))
}

fn record(
    service: &Service,
    speaker: &Speaker,
    approved: bool,
    decided: Result<ApprovalInfo, ErrorData>,
) -> Result<DecidedResult, ErrorData> {
    let approval = decided?;
    let comment = approval.decision.as_ref().and_then(|decision| decision.comment.as_deref());
    let what = format!("{} call {} of {}, input {}", approval.function, approval.call, approval.evaluation, approval.input_sha256);
    service.record_operator(speaker.facts.uid, Act::Decided { approved, what: &what }, comment);
    Ok(DecidedResult { approval })
}

fn only_own(speaker: &Speaker) -> Option<&Facts> {
    (speaker.role < Role::Admin).then_some(&speaker.facts)
}
