//! What budgets used: kept for policy.
//!
//! Owns their rows. Never decides: policy counts.

use super::{Journal, JournalFault, Level};
use crate::policy::amount::Amount;
use crate::policy::counters::{CounterStore, SavedCount, StoreFault};
use rusqlite::params;
use std::sync::Arc;

/// What budgets used, for the counters of policy.
#[derive(Debug)]
pub(crate) struct Counts(Arc<Journal>);

impl Counts {
    /// Those in this journal.
    pub(crate) const fn of(journal: Arc<Journal>) -> Self {
        Self(journal)
    }
}

impl CounterStore for Counts {
    fn load_all(&self, now_ms: u64) -> Result<Vec<SavedCount>, StoreFault> {
        let loaded = self.0.writer.blocking(None, move |connection| {
            let mut query = connection.prepare_cached("SELECT uid, key, begins, used, expires FROM counters WHERE expires > ?1")?;
            let rows = query.query_map([signed(now_ms)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))?;
            rows.map(|row| count(row?)).collect()
        });
        loaded.map_err(|fault| StoreFault(fault.to_string()))
    }

    /// What is kept outlives brigd. It outlives the machine once a write call's intent
    /// does, which comes after it in the same log.
    fn save(&self, changes: &[SavedCount]) -> Result<(), StoreFault> {
        let changes = changes.to_vec();
        let saved = self.0.writer.blocking(Some(Level::Crash), move |connection| {
            for change in &changes {
                connection
                    .prepare_cached(
                        "INSERT INTO counters VALUES (?1, ?2, ?3, ?4, ?5) \
                         ON CONFLICT (uid, key, begins) DO UPDATE SET used = ?4, expires = ?5",
                    )?
                    .execute(params![change.uid, &*change.key, signed(change.from_ms), change.used.to_string(), signed(change.until_ms)])?;
            }
            Ok(())
        });
        saved.map_err(|fault| StoreFault(fault.to_string()))
    }
}

fn count((uid, key, begins, used, expires): (u32, String, i64, String, i64)) -> Result<SavedCount, JournalFault> {
    let unsigned = |number: i64| u64::try_from(number).unwrap_or_default();
    let used = Amount::parse(&used).map_err(|fault| JournalFault::Store(format!("the amount {used} of a budget {fault}")))?;
    Ok(SavedCount { uid, key: key.into(), from_ms: unsigned(begins), used, until_ms: unsigned(expires) })
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::super::{Retention, StateDir};
    use super::*;

    const RETENTION: Retention = Retention { age_ms: 1_000_000, evaluations_each: 10, bytes_each: 1 << 20, bytes: 1 << 26 };

    fn saved(key: &str, used: &str, until_ms: u64) -> SavedCount {
        SavedCount { uid: 7, key: key.into(), from_ms: 5, used: Amount::parse(used).unwrap(), until_ms }
    }

    #[tokio::test]
    async fn what_budgets_used_is_exact_after_a_restart_and_gone_after_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        {
            let journal = Journal::open(&StateDir::open(&path).unwrap(), RETENTION).unwrap();
            let counts = Counts::of(Arc::clone(&journal));
            counts.save(&[saved("sum", "0.1", 2_000), saved("over", "1", 900)]).unwrap();
            counts.save(&[saved("sum", "99.300000000001", 2_000)]).unwrap();
            journal.close().await;
            assert!(counts.save(&[saved("late", "1", 2_000)]).is_err());
        }
        let journal = Journal::open(&StateDir::open(&path).unwrap(), RETENTION).unwrap();
        assert_eq!(Counts::of(Arc::clone(&journal)).load_all(1_000).unwrap(), [saved("sum", "99.300000000001", 2_000)]);
        journal.close().await;
    }
}
