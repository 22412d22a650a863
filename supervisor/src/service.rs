//! What all connections share.
//!
//! Owns nothing but the one place where the parts meet. Never decides.

use crate::admin::{People, Revocations};
use crate::admission::Admission;
use crate::api::idempotency::Answers;
use crate::approvals::Approvals;
use crate::audit::AuditSink as _;
use crate::audit::event::{By, Revoked, restored, revoked};
use crate::changes::{Changes, Replaceable};
use crate::config::Config;
use crate::connection::budget::Budget;
use crate::evaluation::Registry;
use crate::host::call::Judges;
use crate::host::configured::Catalogue;
use crate::host::schema::cache::SchemaCache;
use crate::journal::Journal;
use crate::listener::Doors;
use crate::metrics::Metrics;
use crate::policy::counters::Counters;
use crate::policy::selector::SystemAccounts;
use crate::policy::{Policy, PolicyStore};
use crate::pool::Pool;
use crate::records::Records;
use crate::reload::{Source, check_kept};
use crate::settings::Fault;
use crate::telemetry::Telemetry;
use crate::vm::Vms;
use brig_protocol::admin::COMMENT_BYTES;
use brig_protocol::escape::escaped;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
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
    pub(crate) policy: Arc<PolicyStore>,
    /// What was used of budgets.
    pub(crate) counters: Arc<Counters>,
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
    /// Who is told of evaluations.
    pub(crate) telemetry: Telemetry,
    /// Evaluations that run.
    pub(crate) running: Arc<Registry>,
    /// Workers that are kept between evaluations.
    pub(crate) vms: Arc<Vms>,
    /// Compiled schemas.
    pub(crate) schemas: SchemaCache,
    /// Threads for long judgements.
    pub(crate) judges: Arc<Judges>,
    /// Functions of the operator.
    pub(crate) catalogue: Replaceable<Catalogue>,
    /// What should be mended about the configuration that holds.
    warnings: RwLock<Vec<String>>,
    /// Where host calls are recorded.
    pub(crate) audit: Arc<Records>,
    /// Calls that wait for a person.
    pub(crate) approvals: Arc<Approvals>,
    /// When what clients may call has changed.
    pub(crate) changes: Changes,
    /// What may not be used.
    pub(crate) revocations: Arc<Revocations>,
    /// Who may speak on the admin socket.
    pub(crate) people: People,
    /// When it began.
    pub(crate) started: Instant,
    /// What is kept.
    pub(crate) journal: Arc<Journal>,
    /// Evaluations that go on without their connections.
    pub(crate) detached: TaskTracker,
    /// Requests that need a worker and are not answered yet.
    pub(crate) work: TaskTracker,
    /// Connections that have not said yet what they came for.
    pub(crate) expected: TaskTracker,
    connections: AtomicU64,
    phase: watch::Sender<Phase>,
    stop: Notify,
    /// Where the configuration comes from.
    pub(crate) source: Source,
}

impl Service {
    /// Puts the parts together.
    ///
    /// # Errors
    /// When the configuration is not valid, or the state directory holds what can not be read.
    pub(crate) fn new(
        config: Config,
        pool: Arc<Pool>,
        records: Records,
        source: Source,
        catalogue: Catalogue,
        (journal, counters): (Arc<Journal>, Counters),
    ) -> Result<Arc<Self>, Fault> {
        let state = config.server.state_dir.as_deref();
        let policy = Policy::compile_with(&config, &SystemAccounts, catalogue.known().as_ref())?;
        check_kept(&policy, state)?;
        let policy = Arc::new(PolicyStore::new(policy));
        let catalogue = Replaceable::new(catalogue);
        let revocations = Arc::new(Revocations::open(state)?);
        let audit = Arc::new(records);
        Ok(Arc::new(Self {
            counters: Arc::new(counters),
            pool,
            admission: Admission::new(config.queue),
            budget: Budget::new(config.clients.buffer_bytes),
            doors: Doors::new(config.clients.connections, config.clients.connections_each),
            answers: Answers::new(),
            metrics: Metrics::default(),
            telemetry: Telemetry::new(config.told()?),
            running: Arc::default(),
            vms: Vms::new(config.vms),
            schemas: SchemaCache::default(),
            judges: Arc::default(),
            warnings: RwLock::default(),
            audit: Arc::clone(&audit),
            approvals: Approvals::open(config.approvals, state, Box::new(move |event| audit.write(event).map(drop)))?,
            changes: Changes::of(policy.times(), catalogue.times(), revocations.times()),
            catalogue,
            revocations,
            people: People::of(&config)?,
            started: Instant::now(),
            journal,
            detached: TaskTracker::new(),
            work: TaskTracker::new(),
            expected: TaskTracker::new(),
            stop: Notify::new(),
            connections: AtomicU64::new(0),
            phase: watch::Sender::new(Phase::Serving),
            source,
            config,
            policy,
        }))
    }

    /// The functions of the operator that there are now.
    pub(crate) fn catalogue(&self) -> Arc<Catalogue> {
        self.catalogue.current()
    }

    /// What should be mended about the configuration that holds.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts others in their place.
    pub(crate) fn keep_warnings(&self, warnings: Vec<String>) {
        *self.warnings.write().unwrap_or_else(PoisonError::into_inner) = warnings;
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

    /// Begins the end, as a signal would.
    pub(crate) fn ask_to_stop(&self) {
        self.stop.notify_one();
    }

    /// Waits until somebody asks for the end.
    pub(crate) async fn asked_to_stop(&self) {
        self.stop.notified().await;
    }

    /// Whether new work is taken.
    pub(crate) fn is_serving(&self) -> bool {
        *self.phase.borrow() == Phase::Serving
    }

    /// Puts on record what an operator did, and in the log for whoever reads only that.
    /// What is revoked is revoked whether it can be recorded or not.
    pub(crate) fn record_operator(&self, by: u32, act: Act<'_>, comment: Option<&str>) {
        let event = match act {
            Act::Revoked(what) => Some(revoked(what, By::Uid(by), comment)),
            Act::Restored(what) => Some(restored(what, By::Uid(by), comment)),
            // On record before it was taken.
            Act::Decided { .. } => None,
        };
        if let Some(event) = event {
            self.audit.note(&event);
        }
        let (event, what) = (act.name(), escaped(act.what(), 600));
        let comment = comment.map(|comment| escaped(comment, COMMENT_BYTES));
        tracing::warn!(target: "brigd::audit", event, by, %what, comment, "an operator acted");
    }
}

/// What an operator did. It may hold what a client chose.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act<'a> {
    /// Something may not be used, or was ended.
    Revoked(Revoked<'a>),
    /// Something may be used again.
    Restored(Revoked<'a>),
    /// A call was decided.
    Decided {
        /// Yes or no.
        approved: bool,
        /// Which call, for people.
        what: &'a str,
    },
}

impl Act<'_> {
    const fn name(&self) -> &'static str {
        match self {
            Self::Revoked(Revoked::Function(_)) => "function_revoked",
            Self::Revoked(Revoked::Principal(_)) => "principal_revoked",
            Self::Revoked(Revoked::Evaluation(_)) => "evaluation_killed",
            Self::Restored(Revoked::Function(_)) => "function_restored",
            Self::Restored(Revoked::Principal(_)) => "principal_restored",
            Self::Restored(Revoked::Evaluation(_)) => "evaluation_restored",
            Self::Decided { approved: true, .. } => "call_approved",
            Self::Decided { approved: false, .. } => "call_denied",
        }
    }

    const fn what(&self) -> &str {
        match self {
            Self::Revoked(Revoked::Function(what) | Revoked::Principal(what) | Revoked::Evaluation(what))
            | Self::Restored(Revoked::Function(what) | Revoked::Principal(what) | Revoked::Evaluation(what))
            | Self::Decided { what, .. } => what,
        }
    }
}
