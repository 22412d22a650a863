//! Requests whose answers are asked for again: by their key, or by their evaluation.
//!
//! Owns that a key runs once, also across a restart where there is a state directory,
//! and the evaluation that goes on without its connection. Never runs again what may
//! have run.

use super::requests::retire;
use crate::api::evaluations::{self, Status};
use crate::api::idempotency::{self, Claim, Kept, Running};
use crate::evaluation::{self, Ended, Parties, Request, Stop, StopCause};
use crate::journal::{Keep, KeyClaim};
use crate::service::{Phase, Service};
use brig_protocol::client::{CallState, EvaluationState, Outcome, method};
use brig_protocol::codes::RequestCode;
use brig_protocol::rpc::ErrorData;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use tokio::time::Instant;

/// What a request is answered with.
pub(super) enum Answer {
    /// It ran, and is over.
    Ran(Box<Ended>),
    /// The answer that was given before, or to another.
    Known(Kept),
    /// It goes on, or is over by now.
    Status(Box<Status>),
}

/// The one member that the kept answer of a detached request is read for.
#[derive(Deserialize)]
struct Of {
    evaluation: String,
}

/// Runs a request that has a key, or goes on without its client, or both.
///
/// # Errors
/// Nothing ran.
pub(super) async fn run(key: Option<String>, detached: bool, request: Request, parties: Parties<'_>) -> Result<Answer, ErrorData> {
    let Some(key) = key else {
        return begin_detached(None, request, parties).await;
    };
    let digest = idempotency::digest(method::EVALUATE, request.text());
    let running = match claimed(&key, digest, parties).await? {
        Ok(running) => running,
        Err(kept) => return again(&kept, detached, parties).await,
    };
    if let Some(known) = journaled(&key, digest, detached, parties).await? {
        // Whoever waits for this one claims again, and finds what it found.
        drop(running);
        return Ok(known);
    }
    let claim = KeyClaim { key, digest };
    if detached {
        return begin_detached(Some((claim, running)), request, parties).await;
    }
    run_once(claim, running, request, parties).await
}

/// The right to run for this key; or what another gave for it.
async fn claimed(key: &str, digest: idempotency::Digest, parties: Parties<'_>) -> Result<Result<Running, Kept>, ErrorData> {
    loop {
        match parties.service.answers.claim(parties.peer.uid, key, digest, Instant::now())? {
            Claim::Run(running) => return Ok(Ok(running)),
            Claim::Join(mut answer) => {
                let joined = tokio::select! {
                    biased;
                    cause = parties.stop.requested() => {
                        return Err(ErrorData::new(RequestCode::Cancelled, format!("{} while it waited for the same request", cause.sentence())));
                    }
                    joined = answer.wait_for(Option::is_some) => joined.ok().and_then(|answer| answer.clone()),
                };
                // The one that ran gave nothing because nothing ran: it is this one's turn.
                if let Some(kept) = joined {
                    return Ok(Err(kept));
                }
            }
        }
    }
}

/// What was kept in memory, as it is now.
async fn again(kept: &Kept, detached: bool, parties: Parties<'_>) -> Result<Answer, ErrorData> {
    if !detached {
        return Ok(Answer::Known(Arc::clone(kept)));
    }
    match serde_json::from_str::<Of>(kept.get()) {
        Ok(of) => {
            evaluations::status(parties.service, parties.peer.uid, &of.evaluation).await.map(|status| Answer::Status(Box::new(status)))
        }
        Err(_) => Ok(Answer::Known(Arc::clone(kept))),
    }
}

/// What the journal knows of this key.
async fn journaled(key: &str, digest: idempotency::Digest, detached: bool, parties: Parties<'_>) -> Result<Option<Answer>, ErrorData> {
    let found = parties.service.journal.keyed(parties.peer.uid, key).await.map_err(|fault| evaluations::not_kept(&fault))?;
    let Some((of, evaluation)) = found else { return Ok(None) };
    if of != digest {
        return Err(idempotency::conflict());
    }
    let status = evaluations::status(parties.service, parties.peer.uid, &evaluation).await?;
    if detached {
        return Ok(Some(Answer::Status(Box::new(status))));
    }
    match (status.state, status.result) {
        (EvaluationState::Ended | EvaluationState::Unknown, Some(result)) => Ok(Some(Answer::Known(Arc::from(result)))),
        _ => Err(ErrorData::new(RequestCode::InternalError, "the evaluation of this key has no answer; nothing ran")),
    }
}

/// Runs a request for its key, and keeps what it gave.
async fn run_once(claim: KeyClaim, running: Running, request: Request, parties: Parties<'_>) -> Result<Answer, ErrorData> {
    let key = claim.key.clone();
    let durable = parties.service.journal.is_durable();
    let keep = Keep { detached: false, key: durable.then_some(claim) };
    // What ran in a vm has left its mark there. Escapes could spell the member otherwise.
    let leaves_nothing = !["\"vm\"", "\\u"].iter().any(|part| request.text().contains(part));
    let mut ended = evaluation::run(request, Parties { keep: &keep, ..parties }).await?;
    // Nothing came of it, so nothing is repeated when it runs again: for whoever waits for
    // it now, or for its client when that comes back.
    if leaves_nothing
        && ended.result.outcome == Outcome::Cancelled
        && ended.result.calls.iter().all(|call| call.state == CallState::Refused)
    {
        if durable {
            parties.service.journal.free_key(parties.peer.uid, &key).await;
        }
        return Ok(Answer::Ran(Box::new(ended)));
    }
    let answer = match ended.kept.answer.take() {
        Some(answer) => answer,
        None => serde_json::value::to_raw_value(&ended.result)
            .map(Arc::from)
            .map_err(|fault| ErrorData::new(RequestCode::InternalError, format!("the answer has no JSON form: {fault}")))?,
    };
    if ended.kept.in_journal {
        running.answer_kept_elsewhere(Arc::clone(&answer));
    } else {
        running.answer(Arc::clone(&answer), Instant::now());
    }
    ended.kept.answer = Some(answer);
    Ok(Answer::Ran(Box::new(ended)))
}

/// Begins an evaluation that goes on without its connection.
async fn begin_detached(claim: Option<(KeyClaim, Running)>, request: Request, parties: Parties<'_>) -> Result<Answer, ErrorData> {
    let service = parties.service;
    let (key, running) = claim.unzip();
    let keep = Keep { detached: true, key: key.filter(|_| service.journal.is_durable()) };
    let run = evaluation::begin(request, Parties { keep: &keep, ..parties }).await?;
    let evaluation = run.id().to_owned();
    go_on(Arc::clone(service), run, Arc::clone(parties.stop));
    let status = evaluations::status(service, parties.peer.uid, &evaluation).await.unwrap_or_else(|_| begun(&evaluation));
    if let Some(running) = running {
        // Asked again, it is looked up anew: only the id is kept here.
        let kept = serde_json::value::to_raw_value(&begun(&evaluation)).map(Arc::<RawValue>::from);
        match kept {
            Ok(kept) if keep.key.is_some() => running.answer_kept_elsewhere(kept),
            Ok(kept) => running.answer(kept, Instant::now()),
            Err(fault) => tracing::error!(%fault, "a status has no JSON form"),
        }
    }
    Ok(Answer::Status(Box::new(status)))
}

/// It runs: that is certain, whatever else is not.
fn begun(evaluation: &str) -> Status {
    Status { evaluation: evaluation.to_owned(), state: EvaluationState::Running, started_ms: 0, ended_ms: None, result: None }
}

/// Runs it to its end on its own. Its answer is in the journal by then.
fn go_on(service: Arc<Service>, run: evaluation::Run, stop: Arc<Stop>) {
    let work = service.work.token();
    let tracker = service.detached.clone();
    tracker.spawn(async move {
        let mut phases = service.phase();
        let mut finish = std::pin::pin!(run.finish());
        let ended = loop {
            if *phases.borrow_and_update() == Phase::Ending {
                stop.request(StopCause::ShuttingDown);
            }
            tokio::select! {
                biased;
                ended = &mut finish => break ended,
                Ok(()) = phases.changed() => {}
            }
        };
        retire(ended.worker.settle());
        drop((ended.ticket, work));
    });
}
