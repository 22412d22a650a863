//! Threads for judgements that take long.
//!
//! Owns how many run at once and how much stack each gets. Never runs one on an
//! async thread; a judgement cannot be stopped once it runs, so its cost is bounded
//! before it starts.

use crate::host::schema::{Cost, STEP_BYTES};
use std::thread;
use tokio::sync::{Semaphore, oneshot};

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
#[derive(Debug)]
pub(crate) struct Judges {
    permits: Semaphore,
}

impl Default for Judges {
    fn default() -> Self {
        Self { permits: Semaphore::new(thread::available_parallelism().map_or(2, std::num::NonZero::get)) }
    }
}

impl Judges {
    /// Runs `work` here when it is cheap, else on a thread with the stack it needs.
    /// Nothing comes back when no thread could be made or the work panicked.
    pub(crate) async fn run<T: Send + 'static>(&self, cost: Cost, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        if cost.within(INLINE) {
            return Some(work());
        }
        let permit = self.permits.acquire().await.ok()?;
        let (answer, answered) = oneshot::channel();
        let steps = usize::try_from(cost.steps).unwrap_or(usize::MAX);
        let stack = BASE_BYTES.saturating_add(steps.saturating_mul(STEP_BYTES));
        let body = move || drop(answer.send(work()));
        let _detached = thread::Builder::new().name("brig-judge".to_owned()).stack_size(stack).spawn(body).ok()?;
        let outcome = answered.await.ok();
        drop(permit);
        outcome
    }
}
