//! When what clients may call has changed.
//!
//! Owns what counts its own changes ([`Replaceable`]), and waiting for the next one of all
//! that counts. Never knows what changed, nor for whom: who asks looks again.

use crate::time_of_day;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::watch;

/// A value that holds until another is put in its place.
#[derive(Debug)]
pub(crate) struct Replaceable<T> {
    current: RwLock<Arc<T>>,
    /// How often another was.
    times: watch::Sender<u64>,
}

impl<T> Replaceable<T> {
    /// Begins with this one.
    pub(crate) fn new(value: T) -> Self {
        Self { current: RwLock::new(Arc::new(value)), times: watch::Sender::new(0) }
    }

    /// Puts another in its place, and tells whoever waits.
    pub(crate) fn replace(&self, value: T) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(value);
        self.times.send_modify(|times| *times += 1);
    }

    /// The one that holds now.
    pub(crate) fn current(&self) -> Arc<T> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// How often another was put in its place.
    pub(crate) fn times(&self) -> watch::Receiver<u64> {
        self.times.subscribe()
    }
}

/// All that what clients may call depends on, as counts of how often each has changed.
#[derive(Debug)]
pub(crate) struct Changes {
    /// What no other run of brigd has.
    run: u64,
    policy: watch::Receiver<u64>,
    catalogue: watch::Receiver<u64>,
    revocations: watch::Receiver<u64>,
}

impl Changes {
    /// Of these three.
    pub(crate) fn of(policy: watch::Receiver<u64>, catalogue: watch::Receiver<u64>, revocations: watch::Receiver<u64>) -> Self {
        Self { run: time_of_day::now_ms(), policy, catalogue, revocations }
    }

    /// What there is now, as a text to compare; and once it is another than `known`.
    pub(crate) async fn beyond(&self, known: Option<&str>) -> String {
        let [mut policy, mut catalogue, mut revocations] = [&self.policy, &self.catalogue, &self.revocations].map(Clone::clone);
        loop {
            let counts = [&mut policy, &mut catalogue, &mut revocations].map(|count| *count.borrow_and_update());
            let version = format!("{}.{}", self.run, counts.iter().sum::<u64>());
            if known != Some(version.as_str()) {
                return version;
            }
            let changed = tokio::select! {
                changed = policy.changed() => changed,
                changed = catalogue.changed() => changed,
                changed = revocations.changed() => changed,
            };
            // What counts does not end while somebody asks it.
            if changed.is_err() {
                return version;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::expect_used, reason = "tests")]
    use super::*;
    use futures_util::FutureExt;
    use std::time::Duration;

    #[tokio::test]
    async fn who_knows_what_there_is_waits_for_the_next_change_and_everybody_else_does_not() {
        let all = [Replaceable::new('a'), Replaceable::new('b'), Replaceable::new('c')];
        let [policy, catalogue, revocations] = &all;
        let changes = Changes::of(policy.times(), catalogue.times(), revocations.times());
        let mut known = changes.beyond(None).await;
        assert_eq!(changes.beyond(Some("of another run")).await, known);
        for one in &all {
            let mut waiting = Box::pin(changes.beyond(Some(&known)));
            assert!((&mut waiting).now_or_never().is_none());
            one.replace('d');
            assert_eq!(*one.current(), 'd');
            let next = tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("whoever waits hears of it");
            assert_ne!(next, known);
            assert_eq!(changes.beyond(Some(&known)).await, next);
            known = next;
        }
    }
}
