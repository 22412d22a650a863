//! Whose turn it is on the few threads for long work.
//!
//! Owns how many such threads there are, and that one user never has all of them. A turn
//! goes along with the work into its thread: who stops waiting frees nothing that is
//! still in use. Never runs anything by itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The turns of one kind of work, for the whole process.
#[derive(Debug)]
pub(crate) struct Turns {
    all: Arc<Semaphore>,
    each: usize,
    users: Mutex<HashMap<u32, Weak<Semaphore>>>,
}

/// The right to use one thread; given back when dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl Default for Turns {
    fn default() -> Self {
        Self::new(std::thread::available_parallelism().map_or(2, std::num::NonZero::get))
    }
}

impl Turns {
    /// At most `threads` at one time, and at least 2: half of them for one user.
    pub(crate) fn new(threads: usize) -> Self {
        let threads = threads.max(2);
        Self { all: Arc::new(Semaphore::new(threads)), each: threads / 2, users: Mutex::default() }
    }

    /// Exactly so many at one time, and all of them for one user while no other comes:
    /// whoever comes then waits for one of these to be over, and no longer.
    pub(crate) fn exactly(count: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(count)), each: count, users: Mutex::default() }
    }

    /// Waits for a turn of this user. First among its own: only as many of one user
    /// stand in the common queue as may run, so that its length is that of the others.
    /// Nothing: there are no turns any more.
    pub(crate) async fn take(&self, uid: u32) -> Option<Turn> {
        let own = self.of(uid).acquire_owned().await.ok()?;
        let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(Turn { _own: own, _all: all })
    }

    fn of(&self, uid: u32) -> Arc<Semaphore> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = users.get(&uid).and_then(Weak::upgrade) {
            return own;
        }
        // Whoever has or awaits a turn holds its own; the rest is of users that left.
        users.retain(|_, own| own.strong_count() > 0);
        let own = Arc::new(Semaphore::new(self.each));
        users.insert(uid, Arc::downgrade(&own));
        own
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn one_user_never_has_all_turns_and_another_does_not_wait_behind_it() {
        let turns = Turns::new(2);
        let _first = turns.take(1).await.unwrap();
        let mut waiting: Vec<_> = (0..100).map(|_| Box::pin(turns.take(1))).collect();
        assert!(waiting.iter_mut().all(|turn| turn.now_or_never().is_none()));
        assert!(turns.take(2).now_or_never().flatten().is_some());
    }

    #[tokio::test]
    async fn nothing_is_remembered_of_users_that_left() {
        let turns = Turns::new(4);
        for uid in 0..1000 {
            drop(turns.take(uid).await.unwrap());
        }
        assert!(turns.users.lock().unwrap().len() <= 1);
        assert_eq!(turns.all.available_permits(), 4);
    }
}
