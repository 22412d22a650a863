//! `functions.*` and `principals.*`: taking away at once, and giving back.

use super::Speaker;
use super::methods::said;
use crate::audit::event::Revoked;
use crate::service::{Act, Service};
use crate::time_of_day;
use brig_protocol::admin::{EndedResult, Person, PrincipalParams, PrincipalRevokeParams, RestoreParams, Revocation, RevokeParams};
use brig_protocol::rpc::ErrorData;
use std::sync::Arc;

/// No call of these functions any more; those that run are ended by themselves, for each
/// of them listens.
///
/// # Errors
/// The pattern can match nothing, or as many are revoked as may be.
pub(super) async fn revoke_functions(service: &Arc<Service>, speaker: &Speaker, params: RevokeParams) -> Result<EndedResult, ErrorData> {
    let entry = entry(speaker, params.pattern, params.reason)?;
    let record = entry.clone();
    let pattern = service.revocations.revoke_function(entry)?;
    let named = |name: &str| name.split_once('.').is_some_and(|(collection, function)| pattern.matches(collection, function));
    let evaluations = service.running.calling(named);
    service.record_operator(speaker.facts.uid, Act::Revoked(Revoked::Function(&record.target)), record.reason.as_deref());
    Ok(EndedResult { evaluations, persisted: service.revocations.keep().await })
}

/// Takes that back.
///
/// # Errors
/// It is not revoked.
pub(super) async fn restore_functions(service: &Arc<Service>, speaker: &Speaker, params: RestoreParams) -> Result<(), ErrorData> {
    service.revocations.restore_function(&params.pattern)?;
    service.record_operator(speaker.facts.uid, Act::Restored(Revoked::Function(&params.pattern)), None);
    // Not written now, it is later: until then a restart brings the revoke back, which is the careful way.
    service.revocations.keep().await;
    Ok(())
}

/// Nothing of this principal any more; what it runs is ended.
///
/// # Errors
/// There is no such principal, or as many are revoked as may be.
pub(super) async fn revoke_principal(
    service: &Arc<Service>,
    speaker: &Speaker,
    params: PrincipalRevokeParams,
) -> Result<EndedResult, ErrorData> {
    let entry = entry(speaker, params.principal, params.reason)?;
    let record = entry.clone();
    let selector = service.revocations.revoke_principal(entry)?;
    let evaluations = service.running.revoke(|facts| selector.matches(facts));
    service.record_operator(speaker.facts.uid, Act::Revoked(Revoked::Principal(&record.target)), record.reason.as_deref());
    Ok(EndedResult { evaluations, persisted: service.revocations.keep().await })
}

/// Takes that back.
///
/// # Errors
/// It is not revoked.
pub(super) async fn restore_principal(service: &Arc<Service>, speaker: &Speaker, params: PrincipalParams) -> Result<(), ErrorData> {
    service.revocations.restore_principal(&params.principal)?;
    service.record_operator(speaker.facts.uid, Act::Restored(Revoked::Principal(&params.principal)), None);
    // Not written now, it is later: until then a restart brings the revoke back, which is the careful way.
    service.revocations.keep().await;
    Ok(())
}

fn entry(speaker: &Speaker, target: String, reason: Option<String>) -> Result<Revocation, ErrorData> {
    Ok(Revocation { target, by: Person { uid: speaker.facts.uid }, at_ms: time_of_day::now_ms(), reason: said("reason", reason)? })
}
