//! The audit log of a running brigd.
//!
//! Owns the lock around the chain, and what is promised about the disk. A record is
//! written, with one call of the kernel, before [`AuditLog::write`] returns: it survives
//! any end of brigd. When it is on disk, and so survives the end of the machine, is the
//! operator's choice: see [`Durability`].

use super::chain::Chain;
use super::event::{Event, Labels, StopReason, stopped};
use super::keep;
use super::record::Mark;
use super::recover::{self, OpenFault};
use super::{AuditFault, AuditSink, Written};
use crate::time_of_day::now_ms;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;

/// How long the last records may take to get to disk when brigd ends.
const LAST_SYNC: Duration = Duration::from_secs(5);

/// When records are on disk: `audit.sync`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Durability {
    /// Before the call runs that they stand before. Each call then waits for the disk,
    /// together with all others that wait at that moment.
    Call,
    /// Within a second. A machine that goes down loses up to a second of records; brigd
    /// alone going down loses none.
    #[default]
    Second,
}

/// What the operator set.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// The folder.
    pub(crate) dir: PathBuf,
    /// A segment is sealed once it has so many bytes.
    pub(crate) segment_bytes: u64,
    /// Or is so old.
    pub(crate) segment_seconds: u64,
    /// Sealed segments are removed, oldest first, while there are more bytes; 0: never.
    pub(crate) keep_bytes: u64,
    /// Or when they are so many days old; 0: never.
    pub(crate) keep_days: u64,
    /// When records are on disk.
    pub(crate) sync: Durability,
    /// Each record goes to the log too.
    pub(crate) log: bool,
}

/// How far the disk is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Durable {
    pub(super) seq: u64,
    pub(super) failed: bool,
}

/// What the log and the thread that waits for the disk share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) rules: Rules,
    pub(super) state: Mutex<State>,
    pub(super) wake: Condvar,
    pub(super) durable: watch::Sender<Durable>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) chain: Chain,
    /// There is something that is not on disk.
    pub(super) dirty: bool,
    /// Somebody waits for it.
    pub(super) urgent: bool,
    /// No more records come.
    pub(super) stop: bool,
    /// The disk lost something: what it holds is not known any more.
    pub(super) failed: Option<String>,
}

/// The audit log.
#[derive(Debug)]
pub(crate) struct AuditLog {
    shared: Arc<Shared>,
    keeper: Option<JoinHandle<()>>,
}

impl AuditLog {
    /// Opens the folder, makes it when there is none, and goes on after the last record.
    ///
    /// # Errors
    /// [`OpenFault`].
    pub(crate) fn open(rules: Rules) -> Result<Self, OpenFault> {
        let chain = recover::open(&rules, now_ms())?;
        let durable = watch::Sender::new(Durable { seq: chain.told.durable.seq, failed: false });
        let folder = rules.dir.clone();
        let state = State { chain, dirty: true, urgent: false, stop: false, failed: None };
        let shared = Arc::new(Shared { rules, state: Mutex::new(state), wake: Condvar::new(), durable });
        let kept = Arc::clone(&shared);
        let keeper = std::thread::Builder::new().name("audit".to_owned()).spawn(move || keep::run(&kept));
        let keeper = keeper.map_err(|fault| OpenFault::Io { folder, fault })?;
        Ok(Self { shared, keeper: Some(keeper) })
    }

    /// How far it is: the folder, the last record, the last that is on disk, and why it
    /// takes no more, if it does not.
    pub(crate) fn told(&self) -> (PathBuf, Mark, u64, Option<String>) {
        let on_disk = self.shared.durable.borrow().seq;
        let state = self.shared.lock();
        (self.shared.rules.dir.clone(), state.chain.told.written, on_disk, state.failed.clone())
    }

    /// Records that brigd stops, and waits for the disk, but not for ever.
    pub(crate) async fn close(&self, reason: StopReason<'_>) {
        let closed = match self.write(&stopped(reason)) {
            Ok(written) => tokio::time::timeout(LAST_SYNC, self.shared.on_disk(written))
                .await
                .unwrap_or_else(|_| Err(io::Error::other(format!("the disk did not confirm it within {} s", LAST_SYNC.as_secs())).into())),
            Err(fault) => Err(fault),
        };
        if let Err(fault) = closed {
            tracing::error!(%fault, "the end of brigd could not be recorded");
        }
        let state = self.shared.lock();
        let last = state.chain.told.written;
        tracing::info!(segment = state.chain.told.segment, seq = last.seq, hash = %last.hash, "the audit ends here for now");
    }
}

impl AuditSink for AuditLog {
    fn write(&self, event: &Event<'_>) -> Result<Written, AuditFault> {
        self.shared.write(event)
    }

    async fn settled(&self, written: Written) -> Result<(), AuditFault> {
        match self.shared.rules.sync {
            Durability::Second => Ok(()),
            Durability::Call => self.shared.on_disk(written).await,
        }
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self, event: &Event<'_>) -> Result<Written, AuditFault> {
        let copy = self.rules.log && tracing::enabled!(target: "brigd::audit", tracing::Level::INFO);
        let mut state = self.lock();
        if let Some(why) = &state.failed {
            return Err(io::Error::other(why.clone()).into());
        }
        let mark = state.chain.record(&self.rules, event, now_ms())?;
        let line = copy.then(|| state.chain.last_line().to_vec());
        let was_clean = !std::mem::replace(&mut state.dirty, true);
        drop(state);
        if was_clean {
            self.wake.notify_one();
        }
        if let Some(line) = line {
            let record = String::from_utf8_lossy(&line);
            let Labels { evaluation, uid, function, call, code, rule } = event.labels();
            tracing::info!(target: "brigd::audit", evaluation, uid, function, call, code, rule, %record, "audit record");
        }
        Ok(Written(mark.seq))
    }

    async fn on_disk(&self, written: Written) -> Result<(), AuditFault> {
        self.lock().urgent = true;
        self.wake.notify_one();
        let mut durable = self.durable.subscribe();
        let reached = durable.wait_for(|durable| durable.failed || durable.seq >= written.0).await;
        match reached {
            Ok(durable) if !durable.failed => Ok(()),
            _ => Err(io::Error::other("the disk did not take it").into()),
        }
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.wake.notify_one();
        if let Some(keeper) = self.keeper.take()
            && keeper.join().is_err()
        {
            tracing::error!("the thread of the audit panicked");
        }
    }
}
