//! `functions.*`: what is configured, and one call without a program.
//!
//! Owns the params and results. A call goes the way of every host call
//! ([`crate::host::call`]); what a principal may not list is as unknown as what is not.

mod keyed;
pub(crate) mod wait;

use super::idempotency::{self, Kept};
use super::{evaluate, evaluations, params};
use crate::admin::Revocations;
use crate::connection::outbox::Outbox;
use crate::evaluation::{self, Parties, Request};
use crate::host::call::{Asked, CallOutcome, HostCalls};
use crate::host::callback::{CallAnswer, Callback, Delivery};
use crate::host::configured::{Catalogue, Configured};
use crate::host::table::{FunctionTable, Granted};
use crate::host::wall::Wall;
use crate::journal::{Effects, Keep};
use crate::policy::Grant;
use crate::records::Records;
use brig_protocol::client::{
    ApprovalNote, CALL_PREFIX, CallState, FunctionsCallError, FunctionsCallParams, FunctionsCallResult, FunctionsDescribeParams,
    FunctionsDescribeResult, FunctionsListParams, FunctionsListResult, Operation, Outcome, method,
};
use brig_protocol::codes::{CallCode, RequestCode};
use brig_protocol::escape::escaped;
use brig_protocol::frame::PREFIX_BYTES;
use brig_protocol::json::{self, Bounds};
use brig_protocol::limits::FUNCTION_TIMEOUT_MAX_MS;
use brig_protocol::rpc::{self, ErrorData};
use brig_protocol::worker::{FromSupervisor, read_from_supervisor};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Slack between a function's own time and the end of all.
const AFTERWARDS: Duration = Duration::from_secs(30);

/// `functions.list`.
///
/// # Errors
/// `invalid_params`.
pub(super) fn list(catalogue: &Catalogue, grant: &Grant, revoked: &Revocations, text: &str) -> Result<FunctionsListResult, ErrorData> {
    let params: FunctionsListParams = params::parse(text)?;
    let wanted = |function: &&Arc<Configured>| params.collection.as_ref().is_none_or(|collection| function.collection == *collection);
    let works = |function: &&Arc<Configured>| !revoked.names_function(&function.collection, &function.name);
    let functions = catalogue.visible(&grant.functions).filter(wanted).filter(works).map(|function| function.listed()).collect();
    Ok(FunctionsListResult { functions })
}

/// `functions.describe`.
///
/// # Errors
/// `invalid_params`, the same for what is not there and what may not be seen.
pub(super) fn describe(catalogue: &Catalogue, grant: &Grant, text: &str) -> Result<FunctionsDescribeResult, ErrorData> {
    let params: FunctionsDescribeParams = params::parse(text)?;
    let found = catalogue.find(&grant.functions, &params.function, Operation::List);
    found.map(|function| function.described()).ok_or_else(|| no_such_function(catalogue, grant, &params.function))
}

fn no_such_function(catalogue: &Catalogue, grant: &Grant, name: &str) -> ErrorData {
    let shown = escaped(name, 200);
    let mut data =
        ErrorData::new(RequestCode::InvalidParams, format!("params.function: there is no configured function {shown:?}; nothing ran"));
    let known: Vec<&str> = catalogue.visible(&grant.functions).map(|function| function.full_name.as_str()).collect();
    data.hint = Some(match params::nearest(name, &known) {
        Some(near) => format!("did you mean {near:?}?"),
        None => "functions.list tells what there is; declare functions of your own in params.hostFunctions of evaluate".to_owned(),
    });
    data
}

/// What one call gave.
struct Done {
    answer: Kept,
    /// It is in the journal, and stays there for whoever asks again.
    in_journal: bool,
    /// It was cancelled before it ran, and has left no trace.
    ran_nothing: bool,
}

/// `functions.call`: what it gives as JSON, once for its idempotency key.
///
/// # Errors
/// What prevents the attempt: bad params, a full queue, a cancel before it began.
pub(crate) async fn call(request: Request, parties: &Parties<'_>) -> Result<Kept, ErrorData> {
    let text = request.text();
    let params: FunctionsCallParams<'_> = params::parse(text)?;
    evaluate::check_key(params.idempotency_key.as_deref())?;
    match &params.idempotency_key {
        Some(key) => keyed::once(&params, key, idempotency::digest(method::FUNCTIONS_CALL, text), parties).await,
        None => called(&params, parties, &Keep::default()).await.map(|done| done.answer),
    }
}

async fn called(params: &FunctionsCallParams<'_>, parties: &Parties<'_>, keep: &Keep) -> Result<Done, ErrorData> {
    let service = parties.service;
    let grant = parties.grant;
    let catalogue = service.catalogue();
    let found = catalogue.find(&grant.functions, &params.function, Operation::Invoke);
    let function = Arc::clone(found.ok_or_else(|| no_such_function(&catalogue, grant, &params.function))?);
    let timeout = timeout(params.timeout_ms)?;
    let nothing = RawValue::from_string("{}".to_owned()).map_err(|fault| internal(&fault.to_string()))?;
    let input = params.input.map_or(nothing, ToOwned::to_owned);
    json::count(input.get().as_bytes(), Bounds::PAYLOAD).map_err(|fault| invalid(format!("params.input is {fault}")))?;
    let _ticket = parties.ticket().await?;
    let table = FunctionTable::one(&function, Granted::of(grant), &grant.ceilings, timeout).following(parties.live.clone());
    let id = evaluation::fresh_id(CALL_PREFIX)?;
    let effects = Effects::of(&service.journal, &id, parties.peer.uid, service.pool.sandbox());
    effects.keep(keep).await.map_err(|fault| evaluations::not_kept(&fault))?;
    let calls = host_calls(parties, id, effects.clone(), table);
    let mut run = std::pin::pin!(calls.run(Asked { call: 1, function: 0, input }));
    let outcome = tokio::select! {
        outcome = &mut run => outcome,
        _ = parties.stop.requested() => {
            calls.cancelled.cancel();
            run.await
        }
    };
    service.metrics.called(&outcome.record, Some(function.effect));
    if outcome.record.state == CallState::Refused && outcome.record.code == Some(CallCode::Cancelled) {
        effects.forget().await;
        return Ok(Done { answer: raw(&result_of(outcome)?)?, in_journal: false, ran_nothing: true });
    }
    let ended = if outcome.record.state == CallState::Completed { Outcome::Succeeded } else { Outcome::Failed };
    let answer = raw(&result_of(outcome)?)?;
    // Without a key nobody asks for it again: its row ends, and holds no output.
    let kept = if keep.key.is_some() { Arc::clone(&answer) } else { raw(&())? };
    let in_journal = effects.ended(ended, &kept).await;
    Ok(Done { answer, in_journal, ran_nothing: false })
}

/// The host calls of one call: its table is all there is.
fn host_calls(parties: &Parties<'_>, evaluation: String, effects: Effects, table: FunctionTable) -> HostCalls<NoClient, Records> {
    let (service, grant) = (parties.service, parties.grant);
    let longest = table.get(0).map_or(AFTERWARDS, |function| function.timeout);
    let now = tokio::time::Instant::now();
    let wall = Arc::new(Wall::until(now + longest + AFTERWARDS));
    wall.begun(now);
    HostCalls {
        evaluation,
        principal: parties.principal(),
        table: Arc::new(table),
        client: Arc::new(NoClient { outbox: Arc::clone(parties.outbox) }),
        audit: Arc::clone(&service.audit),
        effects,
        judges: Arc::clone(&service.judges),
        counts: service.counters.for_evaluation(),
        wall,
        facts: parties.facts.clone(),
        policy: Arc::clone(&service.policy),
        policy_version: Arc::clone(&grant.version),
        revocations: Arc::clone(&service.revocations),
        approvals: Arc::clone(&service.approvals),
        cancelled: CancellationToken::new(),
    }
}

fn raw(value: &impl serde::Serialize) -> Result<Kept, ErrorData> {
    serde_json::value::to_raw_value(value).map(Arc::from).map_err(|fault| internal(&fault.to_string()))
}

fn timeout(asked: Option<u64>) -> Result<Option<Duration>, ErrorData> {
    match asked {
        Some(asked) if !(1..=FUNCTION_TIMEOUT_MAX_MS).contains(&asked) => {
            Err(invalid(format!("params.timeoutMs is {asked}; it must be between 1 and {FUNCTION_TIMEOUT_MAX_MS}")))
        }
        asked => Ok(asked.map(Duration::from_millis)),
    }
}

/// The frame that a worker would get, as the client's answer.
fn result_of(outcome: CallOutcome) -> Result<FunctionsCallResult, ErrorData> {
    let CallOutcome { frame, record } = outcome;
    let body = frame.get(PREFIX_BYTES..).unwrap_or_default();
    match read_from_supervisor(body).map_err(|fault| internal(&fault.to_string()))? {
        FromSupervisor::HostResult { output, .. } => Ok(FunctionsCallResult { call: record, value: Some(output.to_owned()), error: None }),
        FromSupervisor::HostFailure { failure, .. } => {
            let error = FunctionsCallError {
                code: failure.code,
                message: failure.message.into_owned(),
                name: failure.name.map(std::borrow::Cow::into_owned),
                function_code: failure.function_code.map(std::borrow::Cow::into_owned),
                data: failure.data.map(ToOwned::to_owned),
            };
            Ok(FunctionsCallResult { call: record, value: None, error: Some(error) })
        }
        _ => Err(internal("a host call was not answered as one")),
    }
}

fn invalid(message: String) -> ErrorData {
    ErrorData::new(RequestCode::InvalidParams, message)
}

fn internal(message: &str) -> ErrorData {
    ErrorData::new(RequestCode::InternalError, format!("the answer could not be made: {message}"))
}

/// A call without a program has no client's functions.
#[derive(Debug)]
struct NoClient {
    outbox: Arc<Outbox>,
}

impl Callback for NoClient {
    async fn host_call(&self, _: Delivery<'_>) -> CallAnswer {
        CallAnswer::Gone
    }

    fn parked(&self, note: &ApprovalNote) {
        self.outbox.send(rpc::notification(method::EVALUATION_APPROVAL, note));
    }

    fn host_cancel(&self, _: &str, _: u64, _: CallCode) {}
}
