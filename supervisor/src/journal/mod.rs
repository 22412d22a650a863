//! The journal: what may have had an effect, and answers that are asked for later.
//!
//! Owns the state directory ([`dir`]), the store in it ([`store`]), the one thread that
//! touches the store ([`writer`]), and what is written: write calls before they run and
//! after ([`calls`]), evaluations that are asked for again ([`evaluations`]), what a crash
//! left ([`recovery`]), counters that outlive brigd ([`counters`]), and copies ([`backup`]). Never decides
//! whether a call may run, never runs one again, and never holds an input or the output
//! of a call: only their hashes. Without a state directory it holds detached answers in
//! memory and claims nothing about a crash.

mod backup;
mod calls;
mod counters;
mod dir;
mod evaluations;
mod figures;
mod recovery;
mod stage;
mod store;
mod writer;

pub(crate) use backup::JournalTool;
pub(crate) use calls::{Effects, Entry, Intent};
pub(crate) use counters::Counts;
pub(crate) use dir::{StateDir, StateFault};
pub(crate) use evaluations::{Keep, KeyClaim, Retention, Stored};
pub(crate) use figures::Figures;
pub(crate) use stage::{Stage, reached};
pub(crate) use store::OpenFault;

use rusqlite::Connection;
use std::sync::Arc;
use std::time::Duration;
use writer::Writer;

/// Longest wait for the store: a disk that takes longer counts as one that does not write.
const WAIT: Duration = Duration::from_secs(10);

/// What a write is to survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// The end of brigd, however it comes: the kernel has it.
    Crash,
    /// The end of the machine: the disk has it.
    Power,
}

/// Why something is not in the journal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JournalFault {
    /// The store said no.
    #[error("the journal can not be written: {0}")]
    Store(String),
    /// It took too long.
    #[error("the journal took longer than {} ms", WAIT.as_millis())]
    Slow,
    /// Everything that this principal has in it is to be kept for now.
    #[error("as many evaluations of this user are kept as may be")]
    NoRoom,
    /// brigd is ending.
    #[error("the journal is closed")]
    Closed,
}

impl From<rusqlite::Error> for JournalFault {
    fn from(fault: rusqlite::Error) -> Self {
        Self::Store(fault.to_string())
    }
}

/// A way to the journal. Cheap to share.
#[derive(Debug)]
pub(crate) struct Journal {
    writer: Writer,
    retention: Retention,
    durable: bool,
    figures: Arc<Figures>,
}

impl Journal {
    /// The journal of a state directory. What a crash left running is unknown afterwards.
    ///
    /// # Errors
    /// [`OpenFault`] naming the file and the remedy: it is never made anew.
    pub(crate) fn open(dir: &StateDir, retention: Retention) -> Result<Arc<Self>, OpenFault> {
        let path = dir.path().join(store::FILE);
        let mut connection = store::open(&path, retention.bytes)?;
        let left = recovery::recover(&mut connection, now_ms(), retention).map_err(|fault| store::damaged(&path, &fault.to_string()))?;
        if left.evaluations > 0 || left.calls > 0 {
            tracing::warn!(
                evaluations = left.evaluations,
                calls = left.calls,
                "the last brigd ended while these ran: what became of them is unknown, and nothing is run again"
            );
        }
        let figures = Arc::new(Figures::of(&path));
        let writer = Writer::start(Some(connection), Arc::clone(&figures)).map_err(|fault| store::damaged(&path, &fault.to_string()))?;
        Ok(Arc::new(Self { writer, retention, durable: true, figures }))
    }

    /// A journal in memory: answers for later, and no claim about a crash.
    ///
    /// # Errors
    /// When no thread can be made.
    pub(crate) fn in_memory(retention: Retention) -> std::io::Result<Arc<Self>> {
        let retention = Retention { bytes: retention.bytes.min(evaluations::MEMORY_BYTES), ..retention };
        let figures = Arc::<Figures>::default();
        Ok(Arc::new(Self { writer: Writer::start(None, Arc::clone(&figures))?, retention, durable: false, figures }))
    }

    /// How it does.
    pub(crate) fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Whether it outlives brigd.
    pub(crate) const fn is_durable(&self) -> bool {
        self.durable
    }

    /// Writes, in a transaction shared with whoever writes at the same time.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        level: Level,
        work: impl FnOnce(&Connection) -> Result<T, JournalFault> + Send + 'static,
    ) -> Result<T, JournalFault> {
        let written = self.writer.write(level, work);
        tokio::time::timeout(WAIT, written).await.unwrap_or(Err(JournalFault::Slow))
    }

    /// Reads, after everything that was written before.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, JournalFault> + Send + 'static,
    ) -> Result<T, JournalFault> {
        tokio::time::timeout(WAIT, self.writer.read(work)).await.unwrap_or(Err(JournalFault::Slow))
    }

    /// Writes what waits, and closes the store.
    pub(crate) async fn close(&self) {
        if tokio::time::timeout(WAIT, self.writer.close()).await.is_err() {
            tracing::warn!("the journal was not closed in time; it is read again at the next start");
        }
    }
}

/// Milliseconds since 1970: journals outlive the monotonic clock.
fn now_ms() -> i64 {
    i64::try_from(crate::time_of_day::now_ms()).unwrap_or(i64::MAX)
}
