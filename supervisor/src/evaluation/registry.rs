//! The evaluations that run, by id.
//!
//! Owns who may end which: for a client an id of another principal is as unknown as one
//! that never was. An operator sees all of them, and what each waits for.

use super::stop::{Stop, StopCause};
use crate::host::table::FunctionTable;
use crate::host::wall::Wall;
use crate::policy::Facts;
use brig_protocol::admin::{EvaluationInfo, EvaluationState};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio::time::Instant;

/// Most functions named of one evaluation.
const NAMED: usize = 8;

/// The evaluations that run.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    running: Mutex<HashMap<String, Running>>,
}

#[derive(Debug)]
struct Running {
    listing: Listing,
    /// Dropped at the end: whoever waits hears so.
    over: watch::Sender<()>,
}

/// What is known of an evaluation that runs.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    /// For whom.
    pub(crate) facts: Facts,
    /// The client's process when it connected.
    pub(crate) pid: Option<i32>,
    /// When it was dispatched.
    pub(crate) began: Instant,
    /// How it is ended early.
    pub(crate) stop: Arc<Stop>,
    /// Its wall clock.
    pub(crate) wall: Arc<Wall>,
    /// Its calls.
    pub(crate) open: Arc<OpenCalls>,
}

/// The host calls of one evaluation that are open: function by call.
#[derive(Debug)]
pub(crate) struct OpenCalls {
    table: Arc<FunctionTable>,
    open: Mutex<BTreeMap<u64, u32>>,
}

impl OpenCalls {
    /// None yet, of the functions of this table.
    pub(crate) const fn of(table: Arc<FunctionTable>) -> Self {
        Self { table, open: Mutex::new(BTreeMap::new()) }
    }

    /// One more.
    pub(crate) fn begun(&self, call: u64, function: u32) {
        self.lock().insert(call, function);
    }

    /// One less; of which function it was.
    pub(crate) fn ended(&self, call: u64) -> Option<u32> {
        self.lock().remove(&call)
    }

    /// Names of the functions, at most so many.
    pub(crate) fn names(&self, most: usize) -> Vec<String> {
        let open = self.lock();
        let functions = open.values().filter_map(|index| self.table.get(*index));
        functions.take(most).map(|function| function.full_name.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, u32>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One evaluation, listed; not any more when dropped.
#[derive(Debug)]
pub(crate) struct Listed {
    registry: Arc<Registry>,
    id: String,
}

impl Registry {
    /// Lists an evaluation.
    pub(crate) fn list(self: &Arc<Self>, id: &str, listing: Listing) -> Listed {
        self.lock().insert(id.to_owned(), Running { listing, over: watch::Sender::new(()) });
        Listed { registry: Arc::clone(self), id: id.to_owned() }
    }

    /// Cancels an evaluation of `uid`. `false`: there is none with this id.
    pub(crate) fn cancel(&self, uid: u32, id: &str) -> bool {
        let running = self.lock();
        let own = running.get(id).filter(|running| running.listing.facts.uid == uid);
        if let Some(own) = own {
            own.listing.stop.request(StopCause::Cancelled);
        }
        own.is_some()
    }

    /// Ends an evaluation for an operator. `false`: there is none with this id.
    pub(crate) fn kill(&self, id: &str) -> bool {
        let running = self.lock();
        let found = running.get(id);
        if let Some(running) = found {
            running.listing.stop.request(StopCause::Killed);
        }
        found.is_some()
    }

    /// Ends every evaluation of those whom `meant` says; how many there were.
    pub(crate) fn revoke(&self, meant: impl Fn(&Facts) -> bool) -> usize {
        let running = self.lock();
        let named = running.values().map(|running| &running.listing).filter(|listing| meant(&listing.facts));
        named.map(|listing| listing.stop.request(StopCause::PrincipalRevoked)).count()
    }

    /// How many have a call open of a function that `meant` says.
    pub(crate) fn calling(&self, meant: impl Fn(&str) -> bool) -> usize {
        let running = self.lock();
        running.values().filter(|running| running.listing.open.names(usize::MAX).iter().any(|name| meant(name))).count()
    }

    /// The functions that they may call, clients' own among them.
    pub(crate) fn declared(&self) -> BTreeSet<String> {
        let running = self.lock();
        let tables = running.values().map(|running| &running.listing.open.table);
        tables.flat_map(|table| (0..).map_while(|index| table.get(index))).map(|function| function.full_name.clone()).collect()
    }

    /// All of them, oldest first.
    pub(crate) fn infos(&self, now: Instant) -> Vec<EvaluationInfo> {
        let mut infos: Vec<EvaluationInfo> = self.lock().iter().map(|(id, running)| running.listing.info(id, now)).collect();
        infos.sort_by(|one, other| other.age_ms.cmp(&one.age_ms).then_with(|| one.evaluation.cmp(&other.evaluation)));
        infos
    }

    /// A way to hear of the end of an evaluation, which is the end of the channel.
    /// Nothing: there is none with this id that runs.
    pub(crate) fn over(&self, id: &str) -> Option<watch::Receiver<()>> {
        self.lock().get(id).map(|running| running.over.subscribe())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listing {
    fn info(&self, id: &str, now: Instant) -> EvaluationInfo {
        let open = self.open.names(NAMED);
        let state = match (self.wall.is_still(), open.is_empty()) {
            (true, _) => EvaluationState::Approval,
            (false, false) => EvaluationState::Calling,
            (false, true) => EvaluationState::Running,
        };
        let age = now.saturating_duration_since(self.began);
        EvaluationInfo {
            evaluation: id.to_owned(),
            uid: self.facts.uid,
            pid: self.pid,
            age_ms: u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
            state,
            open,
        }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.registry.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(uid: u32, stop: &Arc<Stop>) -> Listing {
        Listing {
            facts: Facts { uid, ..Facts::default() },
            pid: None,
            began: Instant::now(),
            stop: Arc::clone(stop),
            wall: Arc::new(Wall::until(Instant::now())),
            open: Arc::new(OpenCalls::of(Arc::new(FunctionTable::default()))),
        }
    }

    #[test]
    fn only_its_principal_can_cancel_an_evaluation_and_only_while_it_runs() {
        let registry = Arc::new(Registry::default());
        let stop = Arc::new(Stop::default());
        let listed = registry.list("ev_1", listing(1, &stop));
        assert!(!registry.cancel(2, "ev_1"));
        assert_eq!(stop.cause(), None);
        assert!(registry.cancel(1, "ev_1"));
        assert_eq!(stop.cause(), Some(StopCause::Cancelled));
        drop(listed);
        assert!(!registry.cancel(1, "ev_1"));
        assert!(!registry.kill("ev_1"));
    }

    #[test]
    fn a_revoke_ends_those_whom_it_names_and_nobody_else() {
        let registry = Arc::new(Registry::default());
        let (theirs, others) = (Arc::new(Stop::default()), Arc::new(Stop::default()));
        let _one = registry.list("ev_1", listing(1, &theirs));
        let _two = registry.list("ev_2", listing(2, &others));
        assert_eq!(registry.revoke(|facts| facts.uid == 1), 1);
        assert_eq!((theirs.cause(), others.cause()), (Some(StopCause::PrincipalRevoked), None));
        assert!(registry.kill("ev_2"));
        assert_eq!(others.cause(), Some(StopCause::Killed));
    }
}
