//! `evaluations.get` and `evaluations.wait`: an answer that is asked for later.
//!
//! Owns their params and the status that they give. Never tells one principal about an
//! evaluation of another: it is as unknown as one that never was.

use super::params;
use crate::evaluation::Stop;
use crate::journal::{JournalFault, Stored};
use crate::service::Service;
use brig_protocol::client::{
    CALL_PREFIX, EvaluationState, EvaluationStatus, EvaluationsGetParams, EvaluationsWaitParams, WAIT_DEFAULT_MS, WAIT_MOST_MS,
};
use brig_protocol::codes::RequestCode;
use brig_protocol::rpc::ErrorData;
use serde_json::value::RawValue;
use std::time::Duration;

/// How far an evaluation is, its answer as it was given.
pub(crate) type Status = EvaluationStatus<Box<RawValue>>;

/// Answers `evaluations.get`.
///
/// # Errors
/// `invalid_params`, `evaluation_not_found` or `journal_unavailable`.
pub(crate) async fn get(service: &Service, uid: u32, text: &str) -> Result<Status, ErrorData> {
    let params: EvaluationsGetParams = params::parse(text)?;
    status(service, uid, &params.evaluation).await
}

/// Answers `evaluations.wait`: how far it is once it is over, the time is, or nobody
/// waits any more.
///
/// # Errors
/// As [`get`].
pub(crate) async fn wait(service: &Service, uid: u32, text: &str, stop: &Stop) -> Result<Status, ErrorData> {
    let params: EvaluationsWaitParams = params::parse(text)?;
    let timeout = wait_time(params.timeout_ms)?;
    // Heard from before the look, so that its end is not missed in between.
    let over = service.running.over(&params.evaluation);
    let status = self::status(service, uid, &params.evaluation).await?;
    let (EvaluationState::Running, Some(mut over)) = (status.state, over) else { return Ok(status) };
    tokio::select! {
        biased;
        cause = stop.requested() => return Err(ErrorData::new(RequestCode::Cancelled, format!("{} while it waited", cause.sentence()))),
        // Nothing is ever sent: this is the end of the evaluation.
        _ = over.changed() => {}
        () = tokio::time::sleep(timeout) => return Ok(status),
    }
    self::status(service, uid, &params.evaluation).await
}

/// How long a client waits that asks so.
///
/// # Errors
/// `invalid_params`.
pub(super) fn wait_time(asked: Option<u64>) -> Result<Duration, ErrorData> {
    let timeout = asked.unwrap_or(WAIT_DEFAULT_MS);
    if timeout > WAIT_MOST_MS {
        let sentence = format!("params.timeoutMs is {timeout}; it must be at most {WAIT_MOST_MS}");
        return Err(ErrorData::new(RequestCode::InvalidParams, sentence));
    }
    Ok(Duration::from_millis(timeout))
}

/// How far an evaluation of this principal is.
///
/// # Errors
/// `evaluation_not_found` or `journal_unavailable`.
pub(crate) async fn status(service: &Service, uid: u32, id: &str) -> Result<Status, ErrorData> {
    // A call without a program has a row as well, and its own kind of answer.
    let stored = if id.starts_with(CALL_PREFIX) { None } else { settled(service, uid, id).await? };
    stored.map(told).unwrap_or_else(|| Err(not_found()))
}

/// What is on record: nothing there is running that nobody runs.
///
/// # Errors
/// `journal_unavailable`.
pub(super) async fn settled(service: &Service, uid: u32, id: &str) -> Result<Option<Stored>, ErrorData> {
    let journal = &service.journal;
    let runs = service.running.over(id).is_some();
    let stored = journal.evaluation(uid, id).await.map_err(|fault| unreadable(&fault))?;
    if runs || !stored.as_ref().is_some_and(Stored::is_running) {
        return Ok(stored);
    }
    // It ended without leaving its answer: the disk was full, or it was let go.
    journal.lost(id).await.map_err(|fault| unreadable(&fault))?;
    journal.evaluation(uid, id).await.map_err(|fault| unreadable(&fault))
}

fn told(stored: Stored) -> Result<Status, ErrorData> {
    let state = match stored.state.as_str() {
        "running" => EvaluationState::Running,
        "ended" => EvaluationState::Ended,
        _ => EvaluationState::Unknown,
    };
    let result = stored.answer.map(RawValue::from_string).transpose();
    let result =
        result.map_err(|fault| ErrorData::new(RequestCode::InternalError, format!("an answer in the journal is no JSON: {fault}")))?;
    let time = |time: i64| u64::try_from(time).unwrap_or_default();
    Ok(Status { evaluation: stored.id, state, started_ms: time(stored.started_ms), ended_ms: stored.ended_ms.map(time), result })
}

fn not_found() -> ErrorData {
    let mut data = ErrorData::new(RequestCode::EvaluationNotFound, "params.evaluation: no evaluation of this user with this id is kept");
    let hint =
        "kept are evaluations with detach or idempotencyKey, and where brigd has a state directory those that called a write function";
    data.hint = Some(hint.to_owned());
    data
}

fn unreadable(fault: &JournalFault) -> ErrorData {
    ErrorData::new(RequestCode::JournalUnavailable, fault.to_string())
}

/// Why an evaluation that is to be kept does not run.
pub(crate) fn not_kept(fault: &JournalFault) -> ErrorData {
    tracing::error!(%fault, "an evaluation was refused because it could not be kept");
    let mut data = match fault {
        JournalFault::NoRoom => ErrorData::new(RequestCode::QuotaExceeded, format!("{fault}; nothing ran")),
        _ => ErrorData::new(RequestCode::JournalUnavailable, format!("{fault}; nothing ran")),
    };
    data.setting = matches!(fault, JournalFault::NoRoom).then(|| "journal.evaluations_each".to_owned());
    data.retry_after_ms = Some(10_000);
    data
}
