//! Verified, ready, single-use workers.
//!
//! Owns the hands of `lifecycle`: what it decides is done here, what happens is told to
//! it. Never decides itself, never makes anybody wait for a fork while a ready worker is
//! there, never hands out a worker whose confinement was not verified.
//!
//! The hot path is [`Pool::lease`]: one lock, one pop, no system call while more than half
//! of the ready workers are there. Each nursery has one task, each worker has one until it
//! is verified, and the clock has one; a leased worker has none.

mod acts;
mod core;
mod lease;
mod seams;
mod settings;
mod tend;

pub(crate) use lease::{Ended, Lease};
pub(crate) use settings::WorkerSettings;

use self::core::{Core, Wanted};
use self::seams::Seams;
use crate::lifecycle::{Event, RequestId};
use crate::nursery::NurseryFault;
use brig_protocol::client::Sandbox;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Why a pool does not start.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum PoolError {
    /// A setting is out of its range.
    #[error("{0}")]
    Setting(String),
    /// The first nursery or the first worker failed.
    #[error(transparent)]
    Nursery(Arc<NurseryFault>),
    /// Neither came up in time.
    #[error("no worker was ready in time")]
    Late,
}

/// Why there is no worker.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum LeaseError {
    /// Workers can not be made; the last failure.
    #[error("no worker can be made: {0}")]
    Unavailable(Arc<NurseryFault>),
    /// The pool is shutting down.
    #[error("shutting down")]
    ShuttingDown,
}

/// Counts, for status and metrics.
#[derive(Clone, Debug, Default)]
pub(crate) struct PoolStats {
    /// Verified and unused workers.
    pub ready: usize,
    /// Workers asked for or starting.
    pub coming: usize,
    /// Workers handed out.
    pub leased: usize,
    /// Workers on their way out.
    pub ending: usize,
    /// Leases that wait.
    pub waiting: usize,
    /// Nurseries that live, whatever their age.
    pub nurseries: usize,
    /// Nurseries started so far.
    pub nurseries_started: u64,
    /// Workers verified so far.
    pub workers_verified: u64,
    /// Workers that died abnormally so far.
    pub abnormal_deaths: u64,
    /// Failures in a row to make a worker.
    pub failures: u32,
    /// The last failure.
    pub last_failure: Option<String>,
    /// What was read back from the kernel of the last nursery's first worker.
    pub read_back: Vec<&'static str>,
    /// Time spent on reading back from the kernel, all workers together.
    pub read_back_time: Duration,
    /// Time spent on giving workers their cgroups, all together.
    pub cgroup_time: Duration,
}

/// The pool. Dropping it ends all that it has, without waiting; [`Pool::shutdown`] waits.
#[derive(Debug)]
pub(crate) struct Pool {
    core: Arc<Core>,
}

/// Longest wait for the first worker; the deadlines within are shorter together.
const START_DEADLINE: Duration = Duration::from_secs(20);
/// How long a shutdown may take before nurseries are killed, and then before it gives up.
const SHUTDOWN_DEADLINE: Duration = Duration::from_secs(2);

impl Pool {
    /// Starts the first nursery and waits until its first worker is verified.
    ///
    /// # Errors
    /// [`PoolError`], naming the setting, layer, path or error number.
    pub(crate) async fn start(settings: WorkerSettings) -> Result<Arc<Self>, PoolError> {
        Self::start_with(settings, Seams::default()).await
    }

    async fn start_with(settings: WorkerSettings, seams: Seams) -> Result<Arc<Self>, PoolError> {
        let (first, proven) = oneshot::channel();
        let pool = Self { core: Core::new(settings, seams, first)? };
        pool.core.tell(Event::Tick);
        tokio::spawn(Arc::clone(&pool.core).keep_time());
        let outcome = match tokio::time::timeout(START_DEADLINE, proven).await {
            Ok(Ok(outcome)) => outcome.map_err(PoolError::Nursery),
            Ok(Err(_)) | Err(_) => Err(PoolError::Late),
        };
        match outcome {
            Ok(()) => Ok(Arc::new(pool)),
            Err(fault) => {
                pool.shutdown().await;
                Err(fault)
            }
        }
    }

    /// A verified worker for one evaluation: at once when one is ready, else in the order
    /// of asking. The caller bounds the wait; giving up the future gives up the place.
    ///
    /// # Errors
    /// [`LeaseError`].
    pub(crate) async fn lease(&self) -> Result<Lease, LeaseError> {
        self.wait_for(false).await
    }

    /// The same for a worker that is kept between evaluations, with the CPU budget of one.
    /// It is made on demand.
    ///
    /// # Errors
    /// [`LeaseError`].
    pub(crate) async fn lease_kept(&self) -> Result<Lease, LeaseError> {
        self.wait_for(true).await
    }

    async fn wait_for(&self, kept: bool) -> Result<Lease, LeaseError> {
        let (request, answer) = match self.core.want(kept) {
            Wanted::Now(lease) => return Ok(lease),
            Wanted::Never(fault) => return Err(fault),
            Wanted::Later(request, answer) => (request, answer),
        };
        let place = Place { core: &self.core, request };
        let outcome = answer.await;
        std::mem::forget(place);
        outcome.unwrap_or(Err(LeaseError::ShuttingDown))
    }

    /// The confinement of the workers that are handed out now.
    pub(crate) fn sandbox(&self) -> Arc<Sandbox> {
        self.core.sandbox()
    }

    /// Counts.
    pub(crate) fn stats(&self) -> PoolStats {
        self.core.stats()
    }

    /// Refuses who waits, kills all workers, ends all nurseries, and sees them gone.
    pub(crate) async fn shutdown(&self) {
        self.core.tell(Event::Shutdown);
        if tokio::time::timeout(SHUTDOWN_DEADLINE, self.core.empty()).await.is_ok() {
            return;
        }
        self.core.kill_nurseries();
        if tokio::time::timeout(SHUTDOWN_DEADLINE, self.core.empty()).await.is_err() {
            tracing::error!(stats = ?self.core.stats(), "processes are left that do not end");
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.core.tell(Event::Shutdown);
    }
}

/// A place in the queue, given up when the wait is.
struct Place<'a> {
    core: &'a Arc<Core>,
    request: RequestId,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.core.give_up(self.request);
    }
}

#[cfg(test)]
pub(crate) mod tests;
