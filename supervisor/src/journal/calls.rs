//! Write calls: on record before they run and after.
//!
//! Owns the two moments of one call: its intent, committed before the function is asked
//! to run, and its result. An [`Entry`] that is dropped says what is known by then: not
//! run while nothing was delivered, unknown afterwards. Read calls, and all calls where
//! nothing outlives brigd, cost nothing here.

use super::evaluations::{self, Keep};
use super::{Journal, JournalFault, Level, Stage, now_ms, reached};
use crate::host::callback::CallAnswer;
use brig_protocol::client::{Effect, Outcome, Sandbox};
use brig_protocol::codes::CallCode;
use rusqlite::{Connection, params};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a call costs its principal in the journal, in bytes.
const CALL_BYTES: i64 = 512;

/// What one evaluation writes to the journal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects(Option<Arc<Recorder>>);

#[derive(Debug)]
struct Recorder {
    journal: Arc<Journal>,
    evaluation: evaluations::Opening,
    /// It is in the journal.
    listed: AtomicBool,
    /// Somebody asked for it to be kept.
    kept: AtomicBool,
}

/// A call that may run, before it does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Intent<'a> {
    /// Its number.
    pub(crate) call: u64,
    /// `collection.function`.
    pub(crate) function: &'a str,
    /// What it says it does.
    pub(crate) effect: Effect,
    /// The same for every delivery of it.
    pub(crate) idempotency_key: &'a str,
    /// SHA-256 of its input's text, in hexadecimal.
    pub(crate) input_sha256: &'a str,
    /// Length of that text.
    pub(crate) input_bytes: u64,
    /// What the record is to survive.
    pub(crate) level: Level,
}

/// A call that is on record, or needs none.
#[derive(Debug)]
#[must_use = "dropped, it says that the call did not run"]
pub(crate) struct Entry(Option<Open>);

#[derive(Debug)]
struct Open {
    recorder: Arc<Recorder>,
    call: i64,
    level: Level,
    delivered: bool,
}

/// What is known of a call, for its row.
#[derive(Debug)]
struct Known {
    state: &'static str,
    code: Option<&'static str>,
    output_sha256: Option<String>,
    output_bytes: i64,
}

impl Effects {
    /// Those of one evaluation.
    pub(crate) fn of(journal: &Arc<Journal>, evaluation: &str, uid: u32, sandbox: Arc<Sandbox>) -> Self {
        let evaluation = evaluations::Opening { id: evaluation.to_owned(), uid, sandbox };
        let (listed, kept) = (AtomicBool::new(false), AtomicBool::new(false));
        Self(Some(Arc::new(Recorder { journal: Arc::clone(journal), evaluation, listed, kept })))
    }

    /// Puts the evaluation on record because its answer is asked for later, or again.
    ///
    /// # Errors
    /// When it is not: then it is not to run.
    pub(crate) async fn keep(&self, keep: &Keep) -> Result<(), JournalFault> {
        let Some(recorder) = self.0.as_ref().filter(|_| keep.asks()) else { return Ok(()) };
        let (opening, keep, retention) = (recorder.evaluation.clone(), keep.clone(), recorder.journal.retention);
        let work = move |connection: &Connection| evaluations::open(connection, &opening, Some(&keep), retention, now_ms());
        recorder.journal.write(Level::Power, work).await?;
        recorder.listed.store(true, Ordering::Release);
        recorder.kept.store(true, Ordering::Release);
        reached(Stage::Opened);
        Ok(())
    }

    /// Takes the evaluation off the record again: nothing of it ran.
    pub(crate) async fn forget(&self) {
        let Some(recorder) = self.0.as_ref().filter(|recorder| recorder.listed.swap(false, Ordering::AcqRel)) else { return };
        let id = recorder.evaluation.id.clone();
        let work = move |connection: &Connection| evaluations::forget(connection, &id);
        if let Err(fault) = recorder.journal.write(Level::Power, work).await {
            tracing::warn!(evaluation = recorder.evaluation.id, %fault, "an evaluation that did not run is listed as unknown");
        }
    }

    /// Puts a call on record, if it needs a record, before it runs.
    ///
    /// # Errors
    /// When it is not on record: then it is not to run.
    pub(crate) async fn before(&self, intent: Intent<'_>) -> Result<Entry, JournalFault> {
        let recorder = self.0.as_ref().filter(|recorder| recorder.journal.is_durable() && intent.effect == Effect::Write);
        let Some(recorder) = recorder else { return Ok(Entry(None)) };
        reached(Stage::Permitted);
        let level = intent.level;
        let insert = insertion(recorder, intent)?;
        let mine = Arc::clone(recorder);
        let work = move |connection: &Connection| {
            let call = insert(connection)?;
            reached(Stage::IntentWritten);
            // From the commit on this stands for the row, wherever it gets lost.
            Ok(Entry(Some(Open { recorder: mine, call, level, delivered: false })))
        };
        let entry = recorder.journal.write(level, work).await?;
        recorder.listed.store(true, Ordering::Release);
        reached(Stage::IntentCommitted);
        Ok(entry)
    }

    /// Whether the evaluation is on record.
    pub(crate) fn listed(&self) -> bool {
        self.0.as_ref().is_some_and(|recorder| recorder.listed.load(Ordering::Acquire))
    }

    /// Puts the answer of a listed evaluation on record. `false`: it is not.
    pub(crate) async fn ended(&self, outcome: Outcome, answer: &Arc<RawValue>) -> bool {
        let Some(recorder) = self.0.as_ref().filter(|_| self.listed()) else { return false };
        reached(Stage::Ended);
        let level = if recorder.kept.load(Ordering::Acquire) { Level::Power } else { Level::Crash };
        let (opening, answer, retention) = (recorder.evaluation.clone(), Arc::clone(answer), recorder.journal.retention);
        let work = move |connection: &Connection| {
            evaluations::end(connection, &opening, outcome, answer.get(), retention, now_ms())?;
            reached(Stage::AnswerWritten);
            Ok(())
        };
        let written = recorder.journal.write(level, work).await;
        if let Err(fault) = &written {
            tracing::error!(evaluation = recorder.evaluation.id, %fault, "an answer is not in the journal");
        }
        reached(Stage::AnswerCommitted);
        written.is_ok()
    }
}

/// Writes the row of a call, and that of its evaluation where it is the first.
fn insertion(
    recorder: &Arc<Recorder>,
    intent: Intent<'_>,
) -> Result<impl FnOnce(&Connection) -> Result<i64, JournalFault> + Send + use<>, JournalFault> {
    let number = |value: u64| i64::try_from(value).map_err(|_| JournalFault::Store("a number is too large".to_owned()));
    let (call, input_bytes) = (number(intent.call)?, number(intent.input_bytes)?);
    let (function, key, hash) = (intent.function.to_owned(), intent.idempotency_key.to_owned(), intent.input_sha256.to_owned());
    let (opening, retention) = (recorder.evaluation.clone(), recorder.journal.retention);
    Ok(move |connection: &Connection| {
        let now = now_ms();
        evaluations::open(connection, &opening, None, retention, now)?;
        connection
            .prepare_cached(
                "INSERT INTO calls (evaluation, call, function, effect, idempotency_key, input_sha256, input_bytes, state, started) \
                 VALUES (?1, ?2, ?3, 'write', ?4, ?5, ?6, 'started', ?7)",
            )?
            .execute(params![opening.id, call, function, key, hash, input_bytes, now])?;
        connection.prepare_cached("UPDATE evaluations SET bytes = bytes + ?2 WHERE id = ?1")?.execute(params![opening.id, CALL_BYTES])?;
        Ok(call)
    })
}

impl Entry {
    /// The function is asked to run: from here on nobody can say that it did not.
    pub(crate) fn delivered(&mut self) {
        if let Some(open) = &mut self.0 {
            open.delivered = true;
        }
    }

    /// Puts on record what is known of the call now. A result that can not be written
    /// is told to the log: the call stays `started`, and is unknown after a crash.
    pub(crate) async fn after(mut self, answer: Result<&CallAnswer, CallCode>) {
        let Some(open) = self.0.take() else { return };
        reached(Stage::Answered);
        let known = Known::of(answer);
        let (id, call, level) = (open.recorder.evaluation.id.clone(), open.call, open.level);
        let work = move |connection: &Connection| {
            known.write(connection, &id, call, now_ms())?;
            reached(Stage::ResultWritten);
            Ok(())
        };
        if let Err(fault) = open.recorder.journal.write(level, work).await {
            tracing::error!(evaluation = open.recorder.evaluation.id, call, %fault, "the result of a write call is not in the journal");
        }
        reached(Stage::ResultCommitted);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let Some(open) = self.0.take() else { return };
        let state = if open.delivered { "unknown" } else { "refused" };
        let known = Known { state, code: Some(CallCode::Cancelled.as_str()), output_sha256: None, output_bytes: 0 };
        let (id, call) = (open.recorder.evaluation.id.clone(), open.call);
        if !open.recorder.journal.writer.write_later(move |connection| known.write(connection, &id, call, now_ms())) {
            tracing::error!(evaluation = open.recorder.evaluation.id, call, state, "the end of a write call is not in the journal");
        }
    }
}

impl Known {
    fn of(answer: Result<&CallAnswer, CallCode>) -> Self {
        let (state, code) = match answer {
            Ok(CallAnswer::Output(output)) => {
                let output_sha256 = Some(format!("{:x}", Sha256::digest(output.get().as_bytes())));
                let output_bytes = i64::try_from(output.get().len()).unwrap_or(i64::MAX);
                return Self { state: "completed", code: None, output_sha256, output_bytes };
            }
            Ok(CallAnswer::Spoilt { code, .. }) => ("completed", *code),
            Ok(CallAnswer::Crashed(_)) => ("unknown", CallCode::FunctionCrashed),
            Ok(CallAnswer::Failed { .. }) => ("failed", CallCode::FunctionFailed),
            Ok(CallAnswer::Gone) => ("unknown", CallCode::ClientGone),
            Err(code) => ("unknown", code),
        };
        Self { state, code: Some(code.as_str()), output_sha256: None, output_bytes: 0 }
    }

    fn write(&self, connection: &Connection, evaluation: &str, call: i64, now: i64) -> Result<(), JournalFault> {
        let Self { state, code, output_sha256, output_bytes } = self;
        connection
            .prepare_cached(
                "UPDATE calls SET state = ?3, code = ?4, output_sha256 = ?5, output_bytes = ?6, ended = ?7 \
                 WHERE evaluation = ?1 AND call = ?2 AND state = 'started'",
            )?
            .execute(params![evaluation, call, state, code, output_sha256, output_bytes, now])?;
        Ok(())
    }
}
