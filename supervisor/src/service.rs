//! What all connections share.
//!
//! Owns nothing but the one place where the parts meet. Never decides.

use crate::admission::Admission;
use crate::api::idempotency::Answers;
use crate::config::{Config, ConfigFault};
use crate::connection::budget::Budget;
use crate::evaluation::Registry;
use crate::host::call::Judges;
use crate::host::schema::cache::SchemaCache;
use crate::listener::Doors;
use crate::metrics::Metrics;
use crate::policy::{Policy, PolicyStore};
use crate::pool::Pool;
use crate::records::Records;
use crate::reload::Source;
use crate::vm::Vms;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

/// How far brigd is on its way to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Takes work.
    Serving,
    /// Takes no new work; what runs goes on.
    Draining,
    /// What still runs is ended now.
    Ending,
}

/// The parts.
pub(crate) struct Service {
    /// What the operator set.
    pub(crate) config: Config,
    /// Who may do what.
    pub(crate) policy: PolicyStore,
    /// Ready workers.
    pub(crate) pool: Arc<Pool>,
    /// Who runs and who waits.
    pub(crate) admission: Arc<Admission>,
    /// Bytes held for clients.
    pub(crate) budget: Arc<Budget>,
    /// Connections.
    pub(crate) doors: Arc<Doors>,
    /// Answers that may be asked for again.
    pub(crate) answers: Arc<Answers>,
    /// What happened, counted.
    pub(crate) metrics: Metrics,
    /// Evaluations that run.
    pub(crate) running: Arc<Registry>,
    /// Workers that are kept between evaluations.
    pub(crate) vms: Arc<Vms>,
    /// Compiled schemas.
    pub(crate) schemas: SchemaCache,
    /// Threads for long judgements.
    pub(crate) judges: Arc<Judges>,
    /// Where host calls are recorded.
    pub(crate) audit: Arc<Records>,
    /// Requests that need a worker and are not answered yet.
    pub(crate) work: TaskTracker,
    connections: AtomicU64,
    phase: watch::Sender<Phase>,
    /// Where the configuration comes from.
    pub(crate) source: Source,
}

impl Service {
    /// Puts the parts together.
    ///
    /// # Errors
    /// When the configured ceilings are not valid.
    pub(crate) fn new(config: Config, pool: Arc<Pool>, records: Records, source: Source) -> Result<Arc<Self>, ConfigFault> {
        let policy = PolicyStore::new(Policy::compile(&config)?);
        Ok(Arc::new(Self {
            policy,
            pool,
            admission: Admission::new(config.queue),
            budget: Budget::new(config.clients.buffer_bytes),
            doors: Doors::new(config.clients.connections, config.clients.connections_each),
            answers: Answers::new(),
            metrics: Metrics::default(),
            running: Arc::default(),
            vms: Vms::new(config.vms),
            schemas: SchemaCache::default(),
            judges: Arc::default(),
            audit: Arc::new(records),
            work: TaskTracker::new(),
            connections: AtomicU64::new(0),
            phase: watch::Sender::new(Phase::Serving),
            source,
            config,
        }))
    }

    /// A number that no other connection has.
    pub(crate) fn connection_number(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed)
    }

    /// How far brigd is on its way to the end, and a way to hear of changes.
    pub(crate) fn phase(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Goes on to `phase`; never back.
    pub(crate) fn advance(&self, phase: Phase) {
        self.phase.send_if_modified(|current| {
            let later = phase > *current;
            if later {
                *current = phase;
            }
            later
        });
    }

    /// Whether new work is taken.
    pub(crate) fn is_serving(&self) -> bool {
        *self.phase.borrow() == Phase::Serving
    }
}
