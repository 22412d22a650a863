//! One call without a program, once for its idempotency key.
//!
//! Owns who runs it and what the others get: from memory while brigd lives, and from the
//! journal after a restart where there is a state directory. Never runs again what may
//! have run: a call that a crash interrupted is told as what is known of it.

use super::{Done, called, internal};
use crate::api::evaluations;
use crate::api::idempotency::{self, Claim, Digest, Kept};
use crate::evaluation::Parties;
use crate::journal::{Keep, KeyClaim, Stored};
use brig_protocol::client::{CallRecord, CallState, FunctionsCallError, FunctionsCallParams, FunctionsCallResult};
use brig_protocol::codes::CallCode;
use brig_protocol::rpc::ErrorData;
use serde::Deserialize;
use std::sync::Arc;
use tokio::time::Instant;

/// The one member that what a crash left is read for.
#[derive(Deserialize)]
struct Left {
    calls: Vec<CallRecord>,
}

/// Gives the answer of this key; runs the call where there is none.
///
/// # Errors
/// What prevents the attempt, `idempotency_conflict`, and `journal_unavailable`: nothing ran.
pub(super) async fn once(params: &FunctionsCallParams<'_>, key: &str, digest: Digest, parties: &Parties<'_>) -> Result<Kept, ErrorData> {
    let service = parties.service;
    loop {
        match service.answers.claim(parties.peer.uid, key, digest, Instant::now())? {
            Claim::Run(running) => {
                if let Some(known) = journaled(params, key, digest, parties).await? {
                    running.answer_kept_elsewhere(Arc::clone(&known));
                    return Ok(known);
                }
                let claim = KeyClaim { key: key.to_owned(), digest };
                let keep = Keep { detached: false, key: service.journal.is_durable().then_some(claim) };
                let done = called(params, parties, &keep).await?;
                match done {
                    // Nothing came of it: its key is free again.
                    Done { ran_nothing: true, .. } => drop(running),
                    Done { in_journal: true, .. } => running.answer_kept_elsewhere(Arc::clone(&done.answer)),
                    Done { .. } => running.answer(Arc::clone(&done.answer), Instant::now()),
                }
                return Ok(done.answer);
            }
            Claim::Join(mut answer) => {
                let joined = async { Ok(answer.wait_for(Option::is_some).await.ok().and_then(|answer| answer.clone())) };
                // The one that ran gave nothing because nothing ran: it is this one's turn.
                if let Some(kept) = parties.unless_stopped(joined).await? {
                    return Ok(kept);
                }
            }
        }
    }
}

/// What the journal knows of this key. Whoever asks holds the key, so nobody runs it.
async fn journaled(params: &FunctionsCallParams<'_>, key: &str, digest: Digest, parties: &Parties<'_>) -> Result<Option<Kept>, ErrorData> {
    let (journal, uid) = (&parties.service.journal, parties.peer.uid);
    let found = journal.keyed(uid, key).await.map_err(|fault| evaluations::not_kept(&fault))?;
    let Some((of, id)) = found else { return Ok(None) };
    if of != digest {
        return Err(idempotency::conflict());
    }
    let stored = evaluations::settled(parties.service, uid, &id).await?;
    let stored = stored.ok_or_else(|| internal("the call of this key is not on record any more; nothing ran"))?;
    let answer = match stored {
        Stored { state, answer: Some(answer), .. } if state == "ended" => serde_json::value::RawValue::from_string(answer),
        stored => serde_json::value::to_raw_value(&interrupted(params, stored.answer.as_deref())),
    };
    answer.map(|answer| Some(Arc::from(answer))).map_err(|fault| internal(&fault.to_string()))
}

/// What is known of a call that brigd ended before: what its record says, and without
/// one, that nobody can say.
fn interrupted(params: &FunctionsCallParams<'_>, left: Option<&str>) -> FunctionsCallResult {
    let left = left.and_then(|text| serde_json::from_str::<Left>(text).ok()).and_then(|left| left.calls.into_iter().next());
    let mut call = left.unwrap_or_else(|| CallRecord {
        call: 1,
        function: params.function.clone(),
        state: CallState::Unknown,
        code: None,
        duration_ms: 0.0,
        input_bytes: params.input.map_or(0, |input| u64::try_from(input.get().len()).unwrap_or(u64::MAX)),
        output_bytes: 0,
    });
    call.code = Some(CallCode::Interrupted);
    let known = match call.state {
        CallState::Completed => "it ran, and its value is lost",
        CallState::Failed => "it ran and failed",
        CallState::Refused => "it did not run",
        CallState::Unknown => "whether it had its effect is unknown",
    };
    let message = format!("{}: brigd ended before this call was answered; {known}. It is not run again.", call.function);
    let error = FunctionsCallError { code: CallCode::Interrupted, message, name: None, function_code: None, data: None };
    FunctionsCallResult { call, value: None, error: Some(error) }
}
