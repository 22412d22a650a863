//! Where the pool meets the world, so that tests can put in a nursery that is a thread and
//! workers that are no sandbox. Nothing but tests makes anything else than the default.

use crate::lifecycle::Rules;
use crate::nursery::{Mismatch, Nursery, NurseryFault, Scope, WorkerFacts, read_generation, read_worker};
use brig_protocol::control::Configure;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

/// A nursery on its way.
pub(super) type Raising = Pin<Box<dyn Future<Output = Result<Nursery, NurseryFault>> + Send>>;

/// The ways out.
#[derive(Clone)]
pub(super) struct Seams {
    /// Starts a nursery and waits until it is ready.
    pub(super) raise: Arc<dyn Fn(PathBuf, Configure) -> Raising + Send + Sync>,
    /// Reads a worker's facts back from the kernel; with `true` also those that all
    /// workers of its nursery inherit.
    pub(super) read_back: fn(&OwnedFd, BorrowedFd<'_>, &Scope, bool) -> Result<WorkerFacts, Mismatch>,
    /// Has the last word on the rules.
    pub(super) adjust: fn(&mut Rules),
}

impl Default for Seams {
    fn default() -> Self {
        Self {
            raise: Arc::new(|program, configure| Box::pin(async move { Nursery::start(program, &configure).await })),
            read_back,
            adjust: |_| (),
        }
    }
}

impl std::fmt::Debug for Seams {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Seams")
    }
}

fn read_back(pidfd: &OwnedFd, socket: BorrowedFd<'_>, scope: &Scope, whole: bool) -> Result<WorkerFacts, Mismatch> {
    let mut worker = read_worker(pidfd, socket, scope)?;
    if whole {
        read_generation(pidfd, &mut worker, scope)?;
    }
    Ok(worker)
}
