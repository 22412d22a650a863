//! Evaluations whose answers are asked for later, or again.
//!
//! Owns their rows, the idempotency keys that lead to them, and how long they stay:
//! by age, number and bytes of each principal. Never gives one principal's to another,
//! and never lets go of an answer that was promised before its time: then there is no
//! room for a new one.

use super::{Journal, JournalFault, Level, now_ms, recovery};
use brig_protocol::client::{Outcome, Sandbox};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use std::sync::Arc;

/// Most bytes of a journal in memory.
pub(super) const MEMORY_BYTES: u64 = 128 * 1024 * 1024;
/// What a row costs besides its answer, in bytes.
const ROW_BYTES: i64 = 1024;
/// How long an answer that somebody asked for is kept in any case, in milliseconds.
pub(crate) const PROMISED_MS: i64 = 600_000;
/// Most rows that are deleted in one go.
const AT_ONCE: i64 = 256;

/// How much is kept, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retention {
    /// How long after its end, in milliseconds.
    pub(crate) age_ms: i64,
    /// Most evaluations of one principal.
    pub(crate) evaluations_each: i64,
    /// Most bytes of one principal.
    pub(crate) bytes_each: i64,
    /// Most bytes of the whole store.
    pub(crate) bytes: u64,
}

/// An evaluation that is about to run.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    pub(super) id: String,
    pub(super) uid: u32,
    pub(super) sandbox: Arc<Sandbox>,
}

/// Why somebody will ask for an evaluation again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keep {
    /// It goes on without its connection.
    pub(crate) detached: bool,
    /// Its request is to run once.
    pub(crate) key: Option<KeyClaim>,
}

/// An idempotency key and what it was used for.
#[derive(Clone, Debug)]
pub(crate) struct KeyClaim {
    /// As the client chose it.
    pub(crate) key: String,
    /// Of the request.
    pub(crate) digest: [u8; 32],
}

/// An evaluation as it is in the journal.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// Its id.
    pub(crate) id: String,
    /// `running`, `ended` or `unknown`.
    pub(crate) state: String,
    /// When it began, in milliseconds since 1970.
    pub(crate) started_ms: i64,
    /// When it ended.
    pub(crate) ended_ms: Option<i64>,
    /// Its whole answer, as JSON.
    pub(crate) answer: Option<String>,
}

impl Keep {
    /// Whether anybody will.
    pub(super) const fn asks(&self) -> bool {
        self.detached || self.key.is_some()
    }
}

impl Stored {
    /// Whether it may still be running.
    pub(crate) fn is_running(&self) -> bool {
        self.state == "running"
    }

    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { id: row.get(0)?, state: row.get(1)?, started_ms: row.get(2)?, ended_ms: row.get(3)?, answer: row.get(4)? })
    }
}

impl Journal {
    /// An evaluation of this principal.
    ///
    /// # Errors
    /// When the journal can not be read.
    pub(crate) async fn evaluation(&self, uid: u32, id: &str) -> Result<Option<Stored>, JournalFault> {
        let id = id.to_owned();
        self.read(move |connection| stored(connection, uid, &id)).await
    }

    /// The evaluation of a key of this principal, and the digest of its request.
    ///
    /// # Errors
    /// When the journal can not be read.
    pub(crate) async fn keyed(&self, uid: u32, key: &str) -> Result<Option<([u8; 32], String)>, JournalFault> {
        if !self.is_durable() {
            return Ok(None);
        }
        let key = key.to_owned();
        self.read(move |connection| {
            let mut query = connection.prepare_cached("SELECT digest, evaluation FROM idempotency WHERE uid = ?1 AND key = ?2")?;
            Ok(query.query_row(params![uid, key], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
        })
        .await
    }

    /// Frees a key: nothing came of its request.
    pub(crate) async fn free_key(&self, uid: u32, key: &str) {
        let key = key.to_owned();
        let work = move |connection: &Connection| {
            connection.prepare_cached("DELETE FROM idempotency WHERE uid = ?1 AND key = ?2")?.execute(params![uid, key])?;
            Ok(())
        };
        if let Err(fault) = self.write(Level::Crash, work).await {
            tracing::warn!(%fault, "an idempotency key is not free again");
        }
    }

    /// A running row without anybody who runs it: its answer got lost. The row says so
    /// from now on.
    ///
    /// # Errors
    /// When the journal can not be written.
    pub(crate) async fn lost(&self, id: &str) -> Result<(), JournalFault> {
        let (id, retention) = (id.to_owned(), self.retention);
        self.write(Level::Crash, move |connection| recovery::interrupted(connection, &id, now_ms(), retention)).await
    }

    /// Lets go of what is over its time.
    pub(crate) async fn tidy(&self) {
        let work = |connection: &Connection| {
            let now = now_ms();
            connection
                .prepare_cached(
                    "DELETE FROM evaluations WHERE id IN (SELECT id FROM evaluations WHERE expires < ?1 AND state <> 'running' LIMIT ?2)",
                )?
                .execute(params![now, AT_ONCE])?;
            connection.prepare_cached("DELETE FROM counters WHERE expires < ?1")?.execute(params![now])?;
            connection.execute_batch("PRAGMA incremental_vacuum(256)")?;
            Ok(())
        };
        if let Err(fault) = self.write(Level::Crash, work).await {
            tracing::warn!(%fault, "the journal was not tidied");
        }
    }
}

fn stored(connection: &Connection, uid: u32, id: &str) -> Result<Option<Stored>, JournalFault> {
    let mut query = connection.prepare_cached("SELECT id, state, started, ended, answer FROM evaluations WHERE id = ?1 AND uid = ?2")?;
    Ok(query.query_row(params![id, uid], Stored::of).optional()?)
}

/// Puts an evaluation on record, unless it is.
pub(super) fn open(
    connection: &Connection,
    opening: &Opening,
    keep: Option<&Keep>,
    retention: Retention,
    now: i64,
) -> Result<(), JournalFault> {
    let known: bool =
        connection.prepare_cached("SELECT EXISTS (SELECT 1 FROM evaluations WHERE id = ?1)")?.query_row([&opening.id], |row| row.get(0))?;
    if known {
        return Ok(());
    }
    make_room(connection, opening.uid, retention, now)?;
    let sandbox = serde_json::to_string(&*opening.sandbox).map_err(|fault| JournalFault::Store(fault.to_string()))?;
    let promised = if keep.is_some() { i64::MAX } else { 0 };
    connection
        .prepare_cached(
            "INSERT INTO evaluations (id, uid, state, started, sandbox, bytes, promised, expires) VALUES (?1, ?2, 'running', ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![opening.id, opening.uid, now, sandbox, ROW_BYTES, promised, i64::MAX])?;
    if let Some(claim) = keep.and_then(|keep| keep.key.as_ref()) {
        connection.prepare_cached("INSERT INTO idempotency (uid, key, digest, evaluation) VALUES (?1, ?2, ?3, ?4)")?.execute(params![
            opening.uid,
            claim.key,
            claim.digest,
            opening.id
        ])?;
    }
    Ok(())
}

/// Puts an answer on record.
pub(super) fn end(
    connection: &Connection,
    opening: &Opening,
    outcome: Outcome,
    answer: &str,
    retention: Retention,
    now: i64,
) -> Result<(), JournalFault> {
    close(connection, &opening.id, ("ended", word(outcome)), answer, retention, now)?;
    // Others than this one: it was promised a moment ago, or is the newest.
    match make_room(connection, opening.uid, Retention { evaluations_each: i64::MAX, ..retention }, now) {
        Ok(()) | Err(JournalFault::NoRoom) => Ok(()),
        Err(fault) => Err(fault),
    }
}

/// The end of a row, in whatever way it came.
pub(super) fn close(
    connection: &Connection,
    id: &str,
    (state, outcome): (&str, &str),
    answer: &str,
    retention: Retention,
    now: i64,
) -> Result<(), JournalFault> {
    let length = i64::try_from(answer.len()).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "UPDATE evaluations SET state = ?2, outcome = ?3, ended = ?4, answer = ?5, bytes = bytes + ?6, \
             promised = iif(promised = 0, 0, ?7), expires = ?8 WHERE id = ?1 AND state = 'running'",
        )?
        .execute(params![
            id,
            state,
            outcome,
            now,
            answer,
            length,
            now.saturating_add(PROMISED_MS),
            now.saturating_add(retention.age_ms.max(PROMISED_MS))
        ])?;
    Ok(())
}

/// Takes an evaluation that did not run off the record, and its key with it.
pub(super) fn forget(connection: &Connection, id: &str) -> Result<(), JournalFault> {
    connection.prepare_cached("DELETE FROM evaluations WHERE id = ?1 AND state = 'running'")?.execute([id])?;
    Ok(())
}

/// Lets the oldest of a principal go until another has room.
fn make_room(connection: &Connection, uid: u32, retention: Retention, now: i64) -> Result<(), JournalFault> {
    for _ in 0..AT_ONCE {
        let used: Option<(i64, i64)> = connection
            .prepare_cached("SELECT evaluations, bytes FROM used WHERE uid = ?1")?
            .query_row([uid], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let (evaluations, bytes) = used.unwrap_or_default();
        if evaluations < retention.evaluations_each && bytes < retention.bytes_each {
            return Ok(());
        }
        let gone = connection
            .prepare_cached(
                "DELETE FROM evaluations WHERE id = \
                 (SELECT id FROM evaluations WHERE uid = ?1 AND state <> 'running' AND promised < ?2 ORDER BY started LIMIT 1)",
            )?
            .execute(params![uid, now])?;
        if gone == 0 {
            return Err(JournalFault::NoRoom);
        }
    }
    Ok(())
}

const fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Failed => "failed",
        Outcome::TimedOut => "timed_out",
        Outcome::Cancelled => "cancelled",
    }
}
