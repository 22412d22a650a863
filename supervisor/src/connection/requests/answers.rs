//! The answers of requests that take their time.
//!
//! Owns what is let go before an answer, and what after.

use super::{no_room, retire};
use crate::api;
use crate::connection::kept::{self, Answer};
use crate::evaluation::{self, Asked, Ended, Parties, Request};
use brig_protocol::client::{CheckResult, Outcome};
use brig_protocol::rpc::{self, Id};
use serde::Serialize;

/// Runs one request and answers it.
pub(super) async fn answer(id: &Id, request: Request, parties: Parties<'_>) {
    match request.asked() {
        Asked::Check => return answer_check(id, request, parties).await,
        Asked::VmCreate => return answer_create(id, request, parties).await,
        Asked::FunctionsCall => return answer_call(id, request, parties).await,
        Asked::EvaluationsGet | Asked::EvaluationsWait => return answer_status(id, request, parties).await,
        Asked::Evaluate => {}
    }
    let outcome = match request.again(&parties.grant.ceilings) {
        Err(data) => Err(data),
        Ok((None, false)) => evaluation::run(request, parties).await.map(|ended| Answer::Ran(Box::new(ended))),
        Ok((key, detached)) => kept::run(key, detached, request, parties).await,
    };
    match outcome {
        Ok(Answer::Ran(ended)) => send_answer(id, *ended, parties).await,
        Ok(Answer::Known(answer)) => send_known(id, &answer, parties).await,
        Ok(Answer::Status(status)) => send_known(id, &status, parties).await,
        Err(data) => {
            parties.service.metrics.refused.count(data.code);
            parties.outbox.send_when_room(|| rpc::error(Some(id), &data)).await;
        }
    }
}

/// Answers whether a program parses: a worker is no less needed for that.
async fn answer_check(id: &Id, request: Request, parties: Parties<'_>) {
    let line = match evaluation::run(request, parties).await {
        Ok(Ended { result, worker, ticket: _ticket, .. }) => {
            retire(worker.settle());
            rpc::result(id, &CheckResult { ok: result.outcome == Outcome::Succeeded, error: result.error })
        }
        Err(data) => {
            parties.service.metrics.refused.count(data.code);
            rpc::error(Some(id), &data)
        }
    };
    parties.outbox.send_when_room(|| line).await;
}

/// Makes a vm.
async fn answer_create(id: &Id, request: Request, parties: Parties<'_>) {
    let made = match api::vm::declared(request, &parties.grant.ceilings) {
        Ok(declared) => parties.service.vms.create(declared, &parties).await,
        Err(data) => Err(data),
    };
    let line = match made {
        Ok(made) => rpc::result(id, &made),
        Err(data) => {
            parties.service.metrics.refused.count(data.code);
            rpc::error(Some(id), &data)
        }
    };
    parties.outbox.send_when_room(|| line).await;
}

/// Runs one host call.
async fn answer_call(id: &Id, request: Request, parties: Parties<'_>) {
    let line = match api::functions::call(request, &parties).await {
        Ok(result) => rpc::result(id, &result),
        Err(data) => {
            parties.service.metrics.refused.count(data.code);
            rpc::error(Some(id), &data)
        }
    };
    parties.outbox.send_when_room(|| line).await;
}

/// The answer goes out first; what is let go wakes others.
async fn send_answer(id: &Id, ended: Ended, parties: Parties<'_>) {
    let Ended { result, kept, worker, ticket } = ended;
    // That of a vm goes back before the answer: who has that may ask for the vm again.
    let lease = worker.settle();
    let line = match kept.answer {
        Some(kept) => rpc::result(id, &kept),
        None => rpc::result(id, &result),
    };
    drop(result);
    if !parties.outbox.congested() {
        parties.outbox.send(line);
        retire(lease);
        return drop(ticket);
    }
    // Nobody else waits for a client that is behind: its answer waits on its own account.
    retire(lease);
    drop(ticket);
    let mut held = parties.service.budget.holder(parties.peer.uid);
    if held.resize(line.len()) {
        parties.outbox.send_when_room(|| line).await;
    } else {
        parties.outbox.close_over_budget();
    }
}

/// Sends what was known before, or is known of something that goes on.
async fn send_known(id: &Id, answer: &impl Serialize, parties: Parties<'_>) {
    parties.outbox.send_when_room(|| rpc::result(id, answer)).await;
}

/// Says how far an evaluation is.
async fn answer_status(id: &Id, request: Request, parties: Parties<'_>) {
    let Parties { service, peer, stop, .. } = parties;
    let status = match request.asked() {
        Asked::EvaluationsWait => api::evaluations::wait(service, peer.uid, request.text(), stop).await,
        _ => api::evaluations::get(service, peer.uid, request.text()).await,
    };
    // Its answer waits on the account of who asked: many may be asked for at once.
    let mut held = request.into_held();
    let bytes = status.as_ref().ok().and_then(|status| status.result.as_ref()).map_or(0, |result| result.get().len());
    let status = if held.resize(bytes) { status } else { Err(no_room()) };
    match status {
        Ok(status) => send_known(id, &status, parties).await,
        Err(data) => {
            service.metrics.refused.count(data.code);
            parties.outbox.send_when_room(|| rpc::error(Some(id), &data)).await;
        }
    }
}
