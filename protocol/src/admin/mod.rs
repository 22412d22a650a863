//! The methods of the admin socket: their params and results.
//!
//! The same lines as on the client socket ([`crate::rpc`], [`crate::line`]), on a socket
//! of its own, so that file modes and the kernel's word about the peer hold who may
//! speak. Nothing is ever asked of an admin, and nothing is told unasked: a live view
//! asks again.
//!
//! Owns the shapes on the wire. Never decides who may do what. Unknown members of params
//! are refused everywhere, and so is a method of the client socket.

mod approvals;
mod audit;
mod revocations;
mod status;

pub use approvals::{
    ApprovalDetail, ApprovalInfo, ApprovalParams, ApprovalState, ApprovalsListParams, ApprovalsListResult, ApproveParams, DecidedResult,
    Decision, DenyParams, Person,
};
pub use audit::{AuditTailParams, AuditTailResult, AuditVerifyParams, AuditVerifyResult};
pub use revocations::{EndedResult, PrincipalParams, PrincipalRevokeParams, RestoreParams, Revocation, RevocationsResult, RevokeParams};
pub use status::{
    AuditStatus, EvaluationInfo, EvaluationState, EvaluationsListResult, FileOff, JournalStatus, KillParams, PolicyResult, PrincipalStatus,
    QueueStatus, StatusResult, WorkersStatus,
};

/// Longest reason or comment, in bytes.
pub const COMMENT_BYTES: usize = 500;

/// Names of the methods of the admin socket.
pub mod method {
    /// Everything about this brigd, in figures.
    pub const STATUS: &str = "status";
    /// What runs.
    pub const EVALUATIONS_LIST: &str = "evaluations.list";
    /// End one of them.
    pub const EVALUATIONS_KILL: &str = "evaluations.kill";
    /// Calls that wait for a person, and what was decided lately.
    pub const APPROVALS_LIST: &str = "approvals.list";
    /// Exactly what would run.
    pub const APPROVALS_SHOW: &str = "approvals.show";
    /// Let it run.
    pub const APPROVALS_APPROVE: &str = "approvals.approve";
    /// Do not.
    pub const APPROVALS_DENY: &str = "approvals.deny";
    /// What is revoked now: functions and principals.
    pub const FUNCTIONS_LIST: &str = "functions.list";
    /// No call of these functions any more.
    pub const FUNCTIONS_REVOKE: &str = "functions.revoke";
    /// Take that back.
    pub const FUNCTIONS_RESTORE: &str = "functions.restore";
    /// Nothing of this principal any more.
    pub const PRINCIPALS_REVOKE: &str = "principals.revoke";
    /// Take that back.
    pub const PRINCIPALS_RESTORE: &str = "principals.restore";
    /// Whether the configuration would load.
    pub const POLICY_CHECK: &str = "policy.check";
    /// Load it.
    pub const POLICY_RELOAD: &str = "policy.reload";
    /// The last records of the audit.
    pub const AUDIT_TAIL: &str = "audit.tail";
    /// Whether all records are as they were written.
    pub const AUDIT_VERIFY: &str = "audit.verify";
    /// Take no new work, finish what runs, and end.
    pub const DRAIN: &str = "drain";

    /// All of them, in the order of the documentation.
    pub const ALL: &[&str] = &[
        STATUS,
        EVALUATIONS_LIST,
        EVALUATIONS_KILL,
        APPROVALS_LIST,
        APPROVALS_SHOW,
        APPROVALS_APPROVE,
        APPROVALS_DENY,
        FUNCTIONS_LIST,
        FUNCTIONS_REVOKE,
        FUNCTIONS_RESTORE,
        PRINCIPALS_REVOKE,
        PRINCIPALS_RESTORE,
        POLICY_CHECK,
        POLICY_RELOAD,
        AUDIT_TAIL,
        AUDIT_VERIFY,
        DRAIN,
    ];
}
