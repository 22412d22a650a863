//! `policy.explain`: what would be decided for whoever asks.
//!
//! Owns reading the params and where the judgement runs: conditions may take as long as
//! those of a call. Never tells whether a function is there.

use super::params;
use crate::host::permission::{Kind, ScopeSet};
use crate::host::schema::{Cost, Schema};
use crate::policy::Grant;
use crate::policy::explain::{Name, Read, explained, scopes};
use crate::service::Service;
use brig_protocol::client::{Operation, PolicyExplainParams, PolicyExplainResult};
use brig_protocol::codes::RequestCode;
use brig_protocol::names;
use brig_protocol::rpc::ErrorData;
use std::sync::Arc;

/// Answers for the user whose grant it is.
///
/// # Errors
/// `invalid_params`, naming the member.
pub(crate) async fn explain(service: &Arc<Service>, grant: Arc<Grant>, uid: u32, text: String) -> Result<PolicyExplainResult, ErrorData> {
    let counters = Arc::clone(&service.counters);
    let params: PolicyExplainParams<'_> = params::parse(&text)?;
    let kind = if params.callback { Kind::Callbacks } else { Kind::Functions };
    let function = full_name(service, scopes(&grant, kind), &params.function);
    Name::parse(&function).map_err(|fault| invalid(format!("params.function: {fault}")))?;
    let worst = |sum: Cost, condition: &Arc<Schema>| sum.and(condition.worst_cost());
    let cost = match params.input {
        None => Cost::NONE,
        Some(_) => scopes(&grant, kind).conditions().fold(Cost::LONG, worst),
    };
    drop(params);
    let work = move || {
        let params: PolicyExplainParams<'_> = params::parse(&text)?;
        let name = Name::parse(&function).map_err(invalid)?;
        let read = params.input.map(|raw| Read::new(raw.get(), scopes(&grant, kind))).transpose();
        let read = read.map_err(|fault| invalid(format!("params.input {fault}")))?;
        Ok(explained(&grant, kind, name, read.as_ref(), &counters))
    };
    let failed = || Err(ErrorData::new(RequestCode::InternalError, "the decision could not be made; nothing ran"));
    service.judges.run(uid, cost, work).await.unwrap_or_else(failed)
}

/// The command spelling, `order-store:list-orders`, as `collection.function`: as one that
/// the principal may call is spelt, else in camel case. Any other name as it is.
fn full_name(service: &Service, scopes: &ScopeSet, asked: &str) -> String {
    let Some((collection, function)) = asked.split_once(':') else { return asked.to_owned() };
    match service.catalogue().find(scopes, asked, Operation::Invoke) {
        Some(found) => found.full_name.clone(),
        None => format!("{}.{}", names::camel(collection), names::camel(function)),
    }
}

fn invalid(message: String) -> ErrorData {
    ErrorData::new(RequestCode::InvalidParams, message)
}
