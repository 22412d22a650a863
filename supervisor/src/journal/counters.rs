//! Counters that outlive brigd, and records of approvals.
//!
//! Owns taking several amounts at once, or none of them. Never knows what is counted:
//! policy names the keys, the windows and the bounds.

use super::{Journal, JournalFault, Level};
use rusqlite::{Connection, OptionalExtension as _, params};

/// An amount to take.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Charge {
    /// Of whom and what, as the principal and the function.
    pub(crate) key: String,
    /// Which window of time, by its beginning in milliseconds since 1970.
    pub(crate) window_ms: i64,
    /// How much.
    pub(crate) amount: f64,
    /// Most that may be used in the window.
    pub(crate) most: f64,
    /// When the window is over.
    pub(crate) expires_ms: i64,
}

/// A question to a person, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApprovalRow {
    /// Its id.
    pub(crate) id: String,
    /// Whose evaluation asks.
    pub(crate) uid: u32,
    /// `pending`, or what was decided.
    pub(crate) state: String,
    /// When it was asked, in milliseconds since 1970.
    pub(crate) asked_ms: i64,
    /// When the row may be forgotten.
    pub(crate) expires_ms: i64,
    /// Everything, as JSON.
    pub(crate) record: String,
}

#[cfg_attr(not(test), expect(dead_code, reason = "called by the budgets of policy and by approvals"))]
impl Journal {
    /// Takes all of these amounts, or none: then the index of the first that would be too
    /// much. One transaction, so two calls never take the same rest. A write call's intent
    /// comes after it in the same log: what makes that durable makes this.
    ///
    /// # Errors
    /// When the journal can not be written: then nothing is taken.
    pub(crate) async fn charge(&self, charges: Vec<Charge>) -> Result<Result<(), usize>, JournalFault> {
        self.write(Level::Crash, move |connection| {
            // Several may be of one key: each is added before the next is looked at.
            for (index, charge) in charges.iter().enumerate() {
                let used = used(connection, charge)?;
                if used + charge.amount > charge.most {
                    undo(connection, charges.get(..index).unwrap_or_default())?;
                    return Ok(Err(index));
                }
                add(connection, charge)?;
            }
            Ok(Ok(()))
        })
        .await
    }

    /// Gives amounts back, of a call that is known not to have run.
    ///
    /// # Errors
    /// When the journal can not be written: then they stay taken.
    pub(crate) async fn give_back(&self, charges: Vec<Charge>) -> Result<(), JournalFault> {
        self.write(Level::Crash, move |connection| undo(connection, &charges)).await
    }

    /// What is used of a key in a window.
    ///
    /// # Errors
    /// When the journal can not be read.
    pub(crate) async fn counted(&self, key: &str, window_ms: i64) -> Result<f64, JournalFault> {
        let charge = Charge { key: key.to_owned(), window_ms, amount: 0.0, most: 0.0, expires_ms: 0 };
        self.read(move |connection| used(connection, &charge)).await
    }

    /// Keeps an approval as it now is.
    ///
    /// # Errors
    /// When the journal can not be written.
    pub(crate) async fn put_approval(&self, row: ApprovalRow) -> Result<(), JournalFault> {
        self.write(Level::Power, move |connection| {
            connection
                .prepare_cached(
                    "INSERT INTO approvals (id, uid, state, asked, expires, record) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
                     ON CONFLICT (id) DO UPDATE SET state = ?3, expires = ?5, record = ?6",
                )?
                .execute(params![row.id, row.uid, row.state, row.asked_ms, row.expires_ms, row.record])?;
            Ok(())
        })
        .await
    }

    /// Approvals in one state, oldest first, at most `most`.
    ///
    /// # Errors
    /// When the journal can not be read.
    pub(crate) async fn approvals(&self, state: &str, most: u32) -> Result<Vec<ApprovalRow>, JournalFault> {
        let state = state.to_owned();
        self.read(move |connection| {
            let mut query = connection
                .prepare_cached("SELECT id, uid, state, asked, expires, record FROM approvals WHERE state = ?1 ORDER BY asked LIMIT ?2")?;
            let rows = query.query_map(params![state, most], |row| {
                Ok(ApprovalRow {
                    id: row.get(0)?,
                    uid: row.get(1)?,
                    state: row.get(2)?,
                    asked_ms: row.get(3)?,
                    expires_ms: row.get(4)?,
                    record: row.get(5)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

fn used(connection: &Connection, charge: &Charge) -> Result<f64, JournalFault> {
    let mut query = connection.prepare_cached("SELECT used FROM counters WHERE key = ?1 AND window = ?2")?;
    Ok(query.query_row(params![charge.key, charge.window_ms], |row| row.get(0)).optional()?.unwrap_or_default())
}

fn add(connection: &Connection, charge: &Charge) -> Result<(), JournalFault> {
    let Charge { key, window_ms, amount, expires_ms, .. } = charge;
    connection
        .prepare_cached("INSERT INTO counters VALUES (?1, ?2, ?3, ?4) ON CONFLICT (key, window) DO UPDATE SET used = used + ?3")?
        .execute(params![key, window_ms, amount, expires_ms])?;
    Ok(())
}

fn undo(connection: &Connection, charges: &[Charge]) -> Result<(), JournalFault> {
    for charge in charges {
        connection.prepare_cached("UPDATE counters SET used = max(0.0, used - ?3) WHERE key = ?1 AND window = ?2")?.execute(params![
            charge.key,
            charge.window_ms,
            charge.amount
        ])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::super::{Retention, StateDir};
    use super::*;
    use std::sync::Arc;

    const RETENTION: Retention = Retention { age_ms: 1_000_000, evaluations_each: 10, bytes_each: 1 << 20, bytes: 1 << 26 };

    fn charge(key: &str, amount: f64, most: f64) -> Charge {
        Charge { key: key.to_owned(), window_ms: 0, amount, most, expires_ms: i64::MAX }
    }

    #[tokio::test]
    async fn all_amounts_are_taken_or_none_however_many_ask_at_once() {
        let journal = Journal::in_memory(RETENTION).unwrap();
        let mut asked = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let journal = Arc::clone(&journal);
            asked.spawn(async move { journal.charge(vec![charge("calls", 1.0, 7.0), charge("sum", 10.0, 500.0)]).await.unwrap() });
        }
        let outcomes = asked.join_all().await;
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 7);
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(()) | Err(0))));
        assert_eq!(journal.charge(vec![charge("sum", 430.0, 500.0), charge("calls", 1.0, 7.0)]).await, Ok(Err(1)));
        assert_eq!(journal.counted("sum", 0).await, Ok(70.0));
        journal.give_back(vec![charge("calls", 1.0, 7.0)]).await.unwrap();
        assert_eq!(journal.charge(vec![charge("calls", 1.0, 7.0)]).await, Ok(Ok(())));
    }

    #[tokio::test]
    async fn counters_and_approvals_are_there_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let row = |state: &str| ApprovalRow {
            id: "ap_1".to_owned(),
            uid: 7,
            state: state.to_owned(),
            asked_ms: 1,
            expires_ms: i64::MAX,
            record: "{}".to_owned(),
        };
        {
            let journal = Journal::open(&StateDir::open(&path).unwrap(), RETENTION).unwrap();
            journal.charge(vec![charge("calls", 3.0, 3.0)]).await.unwrap().unwrap();
            journal.put_approval(row("pending")).await.unwrap();
            journal.close().await;
        }
        let journal = Journal::open(&StateDir::open(&path).unwrap(), RETENTION).unwrap();
        assert_eq!(journal.charge(vec![charge("calls", 1.0, 3.0)]).await, Ok(Err(0)));
        assert_eq!(journal.approvals("pending", 10).await, Ok(vec![row("pending")]));
        journal.put_approval(row("denied")).await.unwrap();
        assert_eq!(journal.approvals("pending", 10).await, Ok(vec![]));
        journal.close().await;
    }
}
