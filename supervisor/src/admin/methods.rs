//! The methods of the admin socket, by name.
//!
//! Owns the table, and which role each needs. Every refusal says what is expected.

use super::people::Role;
use super::{Speaker, approving, audit, evaluations, policy, revoking, status};
use crate::api::params;
use crate::audit::event::{By, drain_asked};
use crate::service::Service;
use brig_protocol::admin::{COMMENT_BYTES, method};
use brig_protocol::codes::RequestCode;
use brig_protocol::escape::escaped;
use brig_protocol::rpc::ErrorData;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use std::sync::Arc;

/// One method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Status,
    EvaluationsList,
    EvaluationsKill,
    ApprovalsList,
    ApprovalsShow,
    ApprovalsApprove,
    ApprovalsDeny,
    FunctionsList,
    FunctionsRevoke,
    FunctionsRestore,
    PrincipalsRevoke,
    PrincipalsRestore,
    PolicyCheck,
    PolicyReload,
    AuditTail,
    AuditVerify,
    Drain,
}

const METHODS: &[(&str, Method, Role)] = &[
    (method::STATUS, Method::Status, Role::Admin),
    (method::EVALUATIONS_LIST, Method::EvaluationsList, Role::Admin),
    (method::EVALUATIONS_KILL, Method::EvaluationsKill, Role::Admin),
    (method::APPROVALS_LIST, Method::ApprovalsList, Role::Approver),
    (method::APPROVALS_SHOW, Method::ApprovalsShow, Role::Approver),
    (method::APPROVALS_APPROVE, Method::ApprovalsApprove, Role::Approver),
    (method::APPROVALS_DENY, Method::ApprovalsDeny, Role::Approver),
    (method::FUNCTIONS_LIST, Method::FunctionsList, Role::Admin),
    (method::FUNCTIONS_REVOKE, Method::FunctionsRevoke, Role::Admin),
    (method::FUNCTIONS_RESTORE, Method::FunctionsRestore, Role::Admin),
    (method::PRINCIPALS_REVOKE, Method::PrincipalsRevoke, Role::Admin),
    (method::PRINCIPALS_RESTORE, Method::PrincipalsRestore, Role::Admin),
    (method::POLICY_CHECK, Method::PolicyCheck, Role::Admin),
    (method::POLICY_RELOAD, Method::PolicyReload, Role::Admin),
    (method::AUDIT_TAIL, Method::AuditTail, Role::Admin),
    (method::AUDIT_VERIFY, Method::AuditVerify, Role::Admin),
    (method::DRAIN, Method::Drain, Role::Admin),
];

/// Params of methods that have none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoParams {}

/// The method with this name, if this role may use it.
///
/// # Errors
/// `method_not_found` with the nearest name, or all of them; `not_permitted`.
pub(super) fn method_named(name: &str, role: Role) -> Result<Method, ErrorData> {
    if let Some((_, method, needed)) = METHODS.iter().find(|(known, ..)| *known == name) {
        if role >= *needed {
            return Ok(*method);
        }
        let sentence = format!("{name} is for admins; approvers may use the methods of approvals");
        return Err(ErrorData::new(RequestCode::NotPermitted, sentence));
    }
    let known: Vec<&str> = METHODS.iter().map(|(known, ..)| *known).collect();
    let mut data = ErrorData::new(RequestCode::MethodNotFound, format!("there is no admin method {:?}", escaped(name, 100)));
    data.hint = Some(match params::nearest(name, &known) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("there are {}", known.join(", ")),
    });
    Err(data)
}

/// Does what is asked.
///
/// # Errors
/// What is wrong with the request.
pub(super) async fn answer(service: &Arc<Service>, speaker: &Speaker, method: Method, text: &str) -> Result<Box<RawValue>, ErrorData> {
    match method {
        Method::Status => nothing(text).and_then(|()| raw(&status::status(service))),
        Method::EvaluationsList => nothing(text).and_then(|()| raw(&evaluations::list(service))),
        Method::EvaluationsKill => evaluations::kill(service, speaker, params::parse(text)?).and_then(|()| done()),
        Method::ApprovalsList => raw(&approving::list(service, speaker, params::parse(text)?)),
        Method::ApprovalsShow => approving::show(service, speaker, &params::parse(text)?).and_then(|shown| raw(&shown)),
        Method::ApprovalsApprove => approving::approve(service, speaker, params::parse(text)?).and_then(|decided| raw(&decided)),
        Method::ApprovalsDeny => approving::deny(service, speaker, params::parse(text)?).and_then(|decided| raw(&decided)),
        Method::FunctionsList => nothing(text).and_then(|()| raw(&service.revocations.list())),
        Method::FunctionsRevoke => revoking::revoke_functions(service, speaker, params::parse(text)?).await.and_then(|ended| raw(&ended)),
        Method::FunctionsRestore => revoking::restore_functions(service, speaker, params::parse(text)?).await.and_then(|()| done()),
        Method::PrincipalsRevoke => revoking::revoke_principal(service, speaker, params::parse(text)?).await.and_then(|ended| raw(&ended)),
        Method::PrincipalsRestore => revoking::restore_principal(service, speaker, params::parse(text)?).await.and_then(|()| done()),
        Method::PolicyCheck => {
            nothing(text)?;
            policy::check(service).await.and_then(|checked| raw(&checked))
        }
        Method::PolicyReload => {
            nothing(text)?;
            policy::reload(service, speaker).await.and_then(|loaded| raw(&loaded))
        }
        Method::AuditTail => audit::last(service, params::parse(text)?).await.and_then(|records| raw(&records)),
        Method::AuditVerify => audit::check(service, params::parse(text)?).await.and_then(|checked| raw(&checked)),
        Method::Drain => nothing(text).and_then(|()| {
            tracing::warn!(by = speaker.facts.uid, "an operator asks brigd to drain and end");
            service.audit.note(&drain_asked(By::Uid(speaker.facts.uid)));
            service.ask_to_stop();
            done()
        }),
    }
}

fn nothing(text: &str) -> Result<(), ErrorData> {
    params::parse::<NoParams>(text).map(drop)
}

fn raw(result: &impl Serialize) -> Result<Box<RawValue>, ErrorData> {
    to_raw_value(result).map_err(|fault| ErrorData::new(RequestCode::InternalError, format!("the answer has no JSON form: {fault}")))
}

fn done() -> Result<Box<RawValue>, ErrorData> {
    raw(&serde_json::Map::new())
}

/// A reason or a comment within its bound; nothing for one that says nothing.
///
/// # Errors
/// `invalid_params` naming the member.
pub(super) fn said(member: &str, text: Option<String>) -> Result<Option<String>, ErrorData> {
    match text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()) {
        Some(text) if text.len() > COMMENT_BYTES => {
            let sentence = format!("params.{member} has {} bytes; at most {COMMENT_BYTES} are kept; nothing was done", text.len());
            Err(ErrorData::new(RequestCode::InvalidParams, sentence))
        }
        text => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn every_method_of_the_protocol_is_there_and_approvers_have_those_of_approvals_only() {
        let names: Vec<&str> = METHODS.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names, method::ALL);
        for (name, ..) in METHODS {
            assert!(method_named(name, Role::Admin).is_ok());
            assert_eq!(method_named(name, Role::Approver).is_ok(), name.starts_with("approvals."), "{name}");
        }
    }

    #[test]
    fn an_unknown_method_is_answered_with_the_nearest_or_with_all() {
        assert!(method_named("aprovals.list", Role::Admin).unwrap_err().hint.is_some_and(|hint| hint.contains("approvals.list")));
        assert!(method_named("evaluate", Role::Admin).unwrap_err().hint.is_some());
        assert!(!method_named("a\u{1b}[2J", Role::Admin).unwrap_err().message.contains('\u{1b}'));
    }

    #[test]
    fn what_is_said_is_bounded_and_nothing_is_nothing() {
        assert_eq!(said("comment", Some("  ".to_owned())).unwrap(), None);
        assert_eq!(said("comment", Some(" yes ".to_owned())).unwrap().as_deref(), Some("yes"));
        assert!(said("comment", Some("x".repeat(COMMENT_BYTES + 1))).unwrap_err().message.contains("params.comment"));
    }
}
