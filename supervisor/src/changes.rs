//! When what clients may call has changed.
//!
//! Owns a count of reloads, revokes and restores, and waiting for the next one. Never knows
//! what changed, nor for whom: who asks looks again.

use crate::time_of_day;
use tokio::sync::watch;

/// The count, of this run of brigd.
#[derive(Debug)]
pub(crate) struct Changes {
    /// What no other run has.
    run: u64,
    count: watch::Sender<u64>,
}

impl Changes {
    /// Nothing has changed yet.
    pub(crate) fn new() -> Self {
        Self { run: time_of_day::now_ms(), count: watch::Sender::new(0) }
    }

    /// Something has.
    pub(crate) fn happened(&self) {
        self.count.send_modify(|count| *count += 1);
    }

    /// What there is now, as a text to compare; and once it is another than `known`.
    pub(crate) async fn beyond(&self, known: Option<&str>) -> String {
        let mut count = self.count.subscribe();
        loop {
            let version = self.version(*count.borrow_and_update());
            // It can not end while somebody asks it.
            if known != Some(version.as_str()) || count.changed().await.is_err() {
                return version;
            }
        }
    }

    fn version(&self, count: u64) -> String {
        format!("{}.{count}", self.run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn who_knows_what_there_is_waits_for_the_next_change_and_everybody_else_does_not() {
        let changes = Changes::new();
        let first = changes.beyond(None).await;
        assert_eq!(changes.beyond(Some("of another run")).await, first);
        let mut waiting = Box::pin(changes.beyond(Some(&first)));
        assert!((&mut waiting).now_or_never().is_none());
        changes.happened();
        let next = waiting.await;
        assert_ne!(next, first);
        assert_eq!(changes.beyond(Some(&first)).await, next);
    }
}
