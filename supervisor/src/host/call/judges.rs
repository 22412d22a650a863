//! Threads for judgements that take long.
//!
//! Owns how many run at once and how much stack each gets. Never runs one on an
//! async thread; a judgement cannot be stopped once it runs, so its cost is bounded
//! before it starts; one that is long and can end early is told when nobody waits.

use crate::host::schema::{Cost, STEP_BYTES};
use crate::host::turns::Turns;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tokio::sync::oneshot;

/// Up to this much is judged where it is. Measured, release build, two busy cores:
/// an order with 250 items (12 KiB, this much work) takes 75 µs to read and 7 µs to
/// check; handing work to a thread and back takes 30 µs at the median and milliseconds
/// at p99.
const INLINE: Cost = Cost { work: 20_000, steps: 200, backtracks: false };
/// Texts up to this length are measured where they are, in bytes. A longer one is
/// judged elsewhere even without a schema: counting and hashing take 1.4 ms a MiB.
pub(super) const INLINE_BYTES: usize = 32 * 1024;
/// Stack for everything but the steps of recursion.
const BASE_BYTES: usize = 1024 * 1024;

/// The bounded set of threads, shared by the whole process.
#[derive(Debug, Default)]
pub(crate) struct Judges {
    turns: Turns,
}

impl Judges {
    /// Runs `work` for this user: here when it is cheap, else on a thread with the stack
    /// it needs, when it is the user's turn. Who stops waiting does not stop the work,
    /// and the turn stays with it.
    /// Nothing comes back when no thread could be made or the work panicked.
    pub(crate) async fn run<T: Send + 'static>(&self, uid: u32, cost: Cost, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        self.run_while(uid, cost, |_| work()).await
    }

    /// The same for work that can end before its time: it is told whether anybody waits.
    pub(crate) async fn run_while<T: Send + 'static>(
        &self,
        uid: u32,
        cost: Cost,
        work: impl FnOnce(&Audience) -> T + Send + 'static,
    ) -> Option<T> {
        let waiting = Waiting::default();
        let audience = waiting.0.clone();
        if cost.within(INLINE) {
            return Some(work(&audience));
        }
        let turn = self.turns.take(uid).await?;
        let (answer, answered) = oneshot::channel();
        let steps = usize::try_from(cost.steps).unwrap_or(usize::MAX);
        let stack = BASE_BYTES.saturating_add(steps.saturating_mul(STEP_BYTES));
        let body = move || {
            let outcome = work(&audience);
            drop(turn);
            drop(answer.send(outcome));
        };
        let _detached = thread::Builder::new().name("brig-judge".to_owned()).stack_size(stack).spawn(body).ok()?;
        let outcome = answered.await.ok();
        drop(waiting);
        outcome
    }
}

/// Whether somebody awaits a judgement; for the judgement itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Audience(Arc<AtomicBool>);

/// Whoever waits. Dropped, nobody does.
#[derive(Default)]
struct Waiting(Audience);

impl Audience {
    /// Whether it is worth going on.
    pub(crate) fn still(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::sync::mpsc;
    use std::time::Duration;

    #[tokio::test]
    async fn a_judgement_that_nobody_awaits_any_more_keeps_its_turn_until_it_is_done() {
        let judges = Judges { turns: Turns::new(2) };
        let (done, until) = mpsc::channel::<()>();
        let mut first = Box::pin(judges.run(1, Cost::LONG, move || until.recv_timeout(Duration::from_secs(60))));
        assert!((&mut first).now_or_never().is_none());
        drop(first);
        assert!(judges.run(1, Cost::LONG, || ()).now_or_never().is_none());
        assert_eq!(judges.run(2, Cost::LONG, || 2).await, Some(2));
        drop(done);
        assert_eq!(judges.run(1, Cost::LONG, || 1).await, Some(1));
    }
    #[tokio::test]
    async fn a_judgement_hears_that_nobody_awaits_it_any_more() {
        let judges = Judges { turns: Turns::new(2) };
        let (said, hears) = mpsc::channel();
        let mut first = Box::pin(judges.run_while(1, Cost::LONG, move |audience| {
            while audience.still() {
                thread::yield_now();
            }
            said.send(()).ok();
        }));
        assert!((&mut first).now_or_never().is_none());
        assert!(hears.try_recv().is_err());
        drop(first);
        assert_eq!(hears.recv_timeout(Duration::from_secs(60)), Ok(()));
    }
}
