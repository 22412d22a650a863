//! `functions.*` and `principals.*`: taking away at once, and giving back.

use super::Speaker;
use super::methods::said;
use crate::audit::event::Revoked;
use crate::host::schema::phrase::{nearest, quoted};
use crate::service::{Act, Service};
use crate::time_of_day;
use brig_protocol::admin::{EndedResult, Person, PrincipalParams, PrincipalRevokeParams, RestoreParams, Revocation, RevokeParams};
use brig_protocol::names::Pattern;
use brig_protocol::rpc::ErrorData;
use std::collections::BTreeSet;
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
    let note = nothing_named(service, &record.target, &pattern);
    Ok(EndedResult { evaluations, persisted: service.revocations.keep().await, note })
}

/// Says that a pattern is about nothing that there is now, which a misspelt one is; and so
/// is one of functions that a client has yet to declare, which may well be revoked ahead.
fn nothing_named(service: &Service, target: &str, pattern: &Pattern) -> Option<String> {
    let configured = service.catalogue().briefs().unwrap_or_default();
    let mut names: Vec<String> = configured.into_iter().map(|brief| format!("{}.{}", brief.collection, brief.name)).collect();
    names.extend(service.running.declared());
    let is_meant = |name: &String| name.split_once('.').is_some_and(|(collection, function)| pattern.matches(collection, function));
    if names.iter().any(is_meant) {
        return None;
    }
    let mut spellings: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let whole: Vec<String> = names.iter().filter_map(|name| Some(format!("{}.*", name.split_once('.')?.0))).collect();
    spellings.extend(whole.iter().map(String::as_str));
    let near = nearest(target, spellings.into_iter()).map(|near| format!("; the nearest is {}", quoted(near))).unwrap_or_default();
    Some(format!(
        "nothing that is configured, or that a running evaluation declares, is called {}{near}; the revoke holds for whatever a client declares \
         by such a name",
        quoted(target)
    ))
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
    Ok(EndedResult { evaluations, persisted: service.revocations.keep().await, note: None })
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
