//! Golden vectors of the admin socket: its lines, byte for byte. A change here is a change
//! of the protocol.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use brig_protocol::admin::{self, method};
use brig_protocol::client::{ApprovalNote, method as client};
use brig_protocol::rpc::{self, Message};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads params, or a result, into their type and writes the line again from it.
fn again<T: DeserializeOwned + Serialize>(line: &str) -> Vec<u8> {
    match rpc::read(line.as_bytes()).unwrap() {
        Message::Request { id, method, params } => {
            assert!(method::ALL.contains(&method.as_ref()), "{method}");
            rpc::request(&id, &method, &serde_json::from_str::<T>(params.unwrap().get()).unwrap())
        }
        Message::Notification { method, params } => {
            assert_eq!(method, client::EVALUATION_APPROVAL);
            rpc::notification(&method, &serde_json::from_str::<T>(params.unwrap().get()).unwrap())
        }
        Message::Response { id, outcome: Ok(result) } => rpc::result(&id, &serde_json::from_str::<T>(result.get()).unwrap()),
        other => panic!("{other:?}"),
    }
}

macro_rules! golden {
    ($($name:ident = $file:literal as $type:ty;)+) => {$(
        #[test]
        fn $name() {
            let line = include_str!(concat!("golden/", $file));
            assert_eq!(String::from_utf8(again::<$type>(line.trim_end())).unwrap(), line);
        }
    )+};
}

/// Params of methods that have none.
type Nothing = serde_json::Map<String, serde_json::Value>;

golden! {
    an_approval_note_is_written_as_specified = "admin/24-evaluation-approval.json" as ApprovalNote;
    audit_tail_is_written_as_specified = "admin/25-audit-tail.json" as admin::AuditTailParams;
    audit_told_is_written_as_specified = "admin/26-audit-told.json" as admin::AuditTailResult;
    audit_verify_is_written_as_specified = "admin/27-audit-verify.json" as admin::AuditVerifyParams;
    audit_verified_is_written_as_specified = "admin/28-audit-verified.json" as admin::AuditVerifyResult;
    status_is_written_as_specified = "admin/01-status.json" as Nothing;
    status_told_is_written_as_specified = "admin/02-status-told.json" as admin::StatusResult;
    evaluations_list_is_written_as_specified = "admin/03-evaluations-list.json" as Nothing;
    evaluations_listed_is_written_as_specified = "admin/04-evaluations-listed.json" as admin::EvaluationsListResult;
    evaluations_kill_is_written_as_specified = "admin/05-evaluations-kill.json" as admin::KillParams;
    approvals_list_is_written_as_specified = "admin/06-approvals-list.json" as admin::ApprovalsListParams;
    approvals_listed_is_written_as_specified = "admin/07-approvals-listed.json" as admin::ApprovalsListResult;
    approvals_show_is_written_as_specified = "admin/08-approvals-show.json" as admin::ApprovalParams;
    approvals_shown_is_written_as_specified = "admin/09-approvals-shown.json" as admin::ApprovalDetail;
    approvals_approve_is_written_as_specified = "admin/10-approvals-approve.json" as admin::ApproveParams;
    approvals_approved_is_written_as_specified = "admin/11-approvals-approved.json" as admin::DecidedResult;
    approvals_deny_is_written_as_specified = "admin/12-approvals-deny.json" as admin::DenyParams;
    functions_revoke_is_written_as_specified = "admin/13-functions-revoke.json" as admin::RevokeParams;
    functions_revoked_is_written_as_specified = "admin/14-functions-revoked.json" as admin::EndedResult;
    functions_restore_is_written_as_specified = "admin/15-functions-restore.json" as admin::RestoreParams;
    functions_list_is_written_as_specified = "admin/16-functions-list.json" as Nothing;
    functions_listed_is_written_as_specified = "admin/17-functions-listed.json" as admin::RevocationsResult;
    principals_revoke_is_written_as_specified = "admin/18-principals-revoke.json" as admin::PrincipalRevokeParams;
    principals_restore_is_written_as_specified = "admin/19-principals-restore.json" as admin::PrincipalParams;
    policy_check_is_written_as_specified = "admin/20-policy-check.json" as Nothing;
    policy_checked_is_written_as_specified = "admin/21-policy-checked.json" as admin::PolicyResult;
    policy_reload_is_written_as_specified = "admin/22-policy-reload.json" as Nothing;
    drain_is_written_as_specified = "admin/23-drain.json" as Nothing;
}

#[test]
fn every_method_of_the_admin_socket_has_a_golden_line() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/admin");
    let lines: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
    for method in method::ALL {
        assert!(lines.iter().any(|line| line.contains(&format!("\"method\":\"{method}\""))), "{method}");
    }
}
