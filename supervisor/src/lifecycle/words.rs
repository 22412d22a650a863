//! What is said to the state machine, what it says, and the numbers that it goes by.

use std::time::Duration;

/// Time since the pool was started.
pub(crate) type Moment = Duration;

/// A worker: its slot, and which worker of the slot. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WorkerId {
    /// Place in the table of living workers.
    pub slot: u16,
    /// Counts the workers of the slot, from 1.
    pub generation: u64,
}

/// A nursery, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NurseryId(pub u64);

/// Somebody who waits for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RequestId(pub u64);

/// How a worker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// By itself, with this code.
    Exited(u8),
    /// By this signal.
    Signalled(u8),
    /// Nobody can say: its nursery was lost.
    Lost,
}

impl Fate {
    /// Whether it may have taught an attacker something about the memory that all workers
    /// of a generation share. Every signal does, but those by which brig and the CPU
    /// limits end workers.
    #[must_use]
    pub(crate) fn is_abnormal(self) -> bool {
        const KILL: u8 = 9;
        const XCPU: u8 = 24;
        matches!(self, Self::Signalled(signal) if signal != KILL && signal != XCPU)
    }
}

/// The numbers by which decisions are made.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// Ready workers to hold, at least 1.
    pub ready: usize,
    /// Living workers at most, more than `ready`.
    pub most: u16,
    /// Workers after which a nursery gets a successor.
    pub generation_workers: u64,
    /// Age at which a nursery gets a successor.
    pub generation_age: Duration,
    /// How long refilling may wait while more than half of the ready workers are there:
    /// it keeps forks away from the core that serves the evaluation just dispatched.
    pub refill_delay: Duration,
    /// A nursery must be ready within this.
    pub start_deadline: Duration,
    /// A spawn must be answered within this.
    pub spawn_deadline: Duration,
    /// A worker must have said hello and been verified within this.
    pub hello_deadline: Duration,
    /// A worker that was hung up on may take this long before it is killed.
    pub retire_grace: Duration,
    /// A kill must be reported as an exit within this, a nursery that was told to go be gone.
    pub end_deadline: Duration,
    /// First pause after a failure; doubles up to `backoff_most`.
    pub backoff: Duration,
    /// Longest pause after failures.
    pub backoff_most: Duration,
    /// Failures in a row after which waiting leases are refused.
    pub patience: u32,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            ready: 8,
            most: 64,
            generation_workers: 10_000,
            generation_age: Duration::from_secs(600),
            refill_delay: Duration::from_millis(1),
            start_deadline: Duration::from_secs(10),
            spawn_deadline: Duration::from_secs(5),
            hello_deadline: Duration::from_secs(2),
            retire_grace: Duration::from_millis(250),
            end_deadline: Duration::from_secs(5),
            backoff: Duration::from_millis(50),
            backoff_most: Duration::from_secs(10),
            patience: 3,
        }
    }
}

/// How a lease was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    /// The worker was hung up on and should leave by itself.
    Retired,
    /// It is to be killed.
    Killed,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Somebody wants a worker; `kept` for one that outlives an evaluation.
    Want {
        /// Names the wish.
        request: RequestId,
        /// For a vm.
        kept: bool,
    },
    /// They no longer wait.
    Unwant {
        /// Names the wish.
        request: RequestId,
    },
    /// The nursery answered `Configure`: it can make workers.
    NurseryReady {
        /// Which.
        nursery: NurseryId,
    },
    /// The nursery's process is gone, or will be without our doing anything more.
    NurseryEnded {
        /// Which.
        nursery: NurseryId,
    },
    /// A worker lives.
    Spawned {
        /// Which.
        worker: WorkerId,
    },
    /// No worker.
    SpawnFailed {
        /// Which was asked for.
        worker: WorkerId,
    },
    /// A worker's hello and the kernel's facts agree.
    Verified {
        /// Which.
        worker: WorkerId,
    },
    /// They do not.
    Rejected {
        /// Which.
        worker: WorkerId,
    },
    /// A lease was given back.
    Released {
        /// Which worker it was.
        worker: WorkerId,
        /// How.
        release: Release,
    },
    /// A worker was reaped.
    Exited {
        /// Which.
        worker: WorkerId,
        /// How it ended.
        fate: Fate,
    },
    /// Time passed.
    Tick,
    /// Everything is to go.
    Shutdown,
}

/// What went wrong by itself, for the log and for those who are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// A nursery was not ready in time.
    StartLate(NurseryId),
    /// A spawn was not answered in time.
    SpawnLate(WorkerId),
    /// A worker was not verified in time.
    HelloLate(WorkerId),
    /// A worker ended before it was verified.
    DiedEarly(WorkerId, Fate),
    /// A killed worker's exit was not reported in time.
    ExitLate(WorkerId),
    /// A nursery does not end.
    EndLate(NurseryId),
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Exec a nursery; answer with `NurseryReady` or `NurseryEnded`.
    StartNursery(NurseryId),
    /// Hang up on it: it ends, and with it whatever it still has.
    CloseNursery(NurseryId),
    /// Kill it.
    KillNursery(NurseryId),
    /// Nobody waits for it: it is to rehearse.
    Rehearse(WorkerId),
    /// Ask it for a worker.
    Spawn {
        /// Whom.
        nursery: NurseryId,
        /// Which worker.
        worker: WorkerId,
        /// For a vm.
        kept: bool,
    },
    /// Hand the worker to whoever waits as `request`.
    Grant {
        /// Who.
        request: RequestId,
        /// What.
        worker: WorkerId,
    },
    /// Tell them that there is none.
    Refuse(RequestId),
    /// Kill the worker.
    Kill(WorkerId),
    /// Its nursery is gone: kill it, see it dead, answer with `Exited` and [`Fate::Lost`].
    Bury(WorkerId),
    /// The worker is no more; whoever holds its lease learns how it ended.
    Gone {
        /// Which.
        worker: WorkerId,
        /// How.
        fate: Fate,
    },
    /// Something to be loud about.
    Note(Trouble),
}
