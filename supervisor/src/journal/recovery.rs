//! What a crash left: told as it is, and never run again.
//!
//! Owns the answer of an evaluation that nobody finished. A call that was started and
//! has no result is unknown: it may have run.

use super::JournalFault;
use super::evaluations::{self, Retention};
use brig_protocol::client::{CallRecord, CallState, EvaluateResult, EvaluationError, Outcome, Sandbox, Usage};
use brig_protocol::codes::{CallCode, EvaluationCode};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

/// How much the last brigd left running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) evaluations: usize,
    pub(super) calls: usize,
}

/// Ends everything that the last brigd left running, in one transaction.
///
/// # Errors
/// When the store can not be read or written.
pub(super) fn recover(connection: &mut Connection, now: i64, retention: Retention) -> Result<Left, JournalFault> {
    let transaction = connection.transaction()?;
    let code = CallCode::Interrupted.as_str();
    let calls =
        transaction.execute("UPDATE calls SET state = 'unknown', code = ?1, ended = ?2 WHERE state = 'started'", params![code, now])?;
    let mut left = Left { evaluations: 0, calls };
    while let Some(id) = a_running_one(&transaction)? {
        interrupted(&transaction, &id, now, retention)?;
        left.evaluations += 1;
    }
    transaction.commit()?;
    Ok(left)
}

fn a_running_one(connection: &Connection) -> Result<Option<String>, JournalFault> {
    let mut query = connection.prepare_cached("SELECT id FROM evaluations WHERE state = 'running' LIMIT 1")?;
    Ok(query.query_row([], |row| row.get(0)).optional()?)
}

/// Ends an evaluation that nobody runs any more.
pub(super) fn interrupted(connection: &Connection, id: &str, now: i64, retention: Retention) -> Result<(), JournalFault> {
    let sandbox: String = connection.prepare_cached("SELECT sandbox FROM evaluations WHERE id = ?1")?.query_row([id], |row| row.get(0))?;
    let mut query = connection.prepare_cached(
        "SELECT call, function, state, code, started, ended, input_bytes, output_bytes FROM calls WHERE evaluation = ?1 ORDER BY call",
    )?;
    let calls = query.query_map([id], record)?.collect::<Result<Vec<CallRecord>, _>>()?;
    let sandbox: Sandbox = serde_json::from_str(&sandbox).unwrap_or_default();
    let answer = serde_json::to_string(&answer(id, calls, sandbox)).map_err(|fault| JournalFault::Store(fault.to_string()))?;
    evaluations::close(connection, id, ("unknown", "failed"), &answer, retention, now)
}

fn record(row: &Row<'_>) -> rusqlite::Result<CallRecord> {
    let (state, code): (String, Option<String>) = (row.get(2)?, row.get(3)?);
    let (started, ended): (i64, Option<i64>) = (row.get(4)?, row.get(5)?);
    let state = match state.as_str() {
        "completed" => CallState::Completed,
        "failed" => CallState::Failed,
        "refused" => CallState::Refused,
        _ => CallState::Unknown,
    };
    let took = u32::try_from(ended.unwrap_or(started).saturating_sub(started)).unwrap_or_default();
    Ok(CallRecord {
        call: unsigned(row.get(0)?),
        function: row.get(1)?,
        state,
        code: code.as_deref().and_then(CallCode::parse),
        duration_ms: f64::from(took),
        input_bytes: unsigned(row.get(6)?),
        output_bytes: unsigned(row.get(7)?),
    })
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

fn answer(id: &str, calls: Vec<CallRecord>, sandbox: Sandbox) -> EvaluateResult {
    let message = "brigd ended before this evaluation did. Its value and output are lost. Its write calls that are on record are in \
                   `calls`: one that is unknown may have had its effect, one that is not there did not run. Nothing is run again.";
    let usage = Usage { host_calls: u64::try_from(calls.len()).unwrap_or(u64::MAX), ..Usage::default() };
    EvaluateResult {
        evaluation: id.to_owned(),
        outcome: Outcome::Failed,
        value: None,
        error: Some(EvaluationError::new(EvaluationCode::Interrupted, "Interrupted", message)),
        stdout: String::new(),
        stderr: String::new(),
        stdout_truncated: false,
        stderr_truncated: false,
        warnings: Vec::new(),
        calls,
        usage,
        sandbox,
    }
}
