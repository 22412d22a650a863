//! The state machine under its lock, and the resources that belong to its ids.
//!
//! Owns descriptors, channels and waiters by id, and carries out actions in the order in
//! which they were decided. Never blocks under the lock: what is done there are single
//! system calls that do not wait.

use super::lease::{Cell, Lease};
use super::seams::Seams;
use super::settings::WorkerSettings;
use super::{LeaseError, PoolError, PoolStats};
use crate::channel::Channel;
use crate::lifecycle::{Action, Event, Moment, NurseryId, RequestId, State, WorkerId};
use crate::nursery::{Link, NurseryFault};
use brig_protocol::client::Sandbox;
use brig_protocol::control::Configure;
use brig_protocol::worker::Conversation;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

pub(super) type Answer = Result<Lease, LeaseError>;
type First = oneshot::Sender<Result<(), Arc<NurseryFault>>>;

/// What comes of wanting a lease.
#[expect(clippy::large_enum_variant, reason = "moved once, on the stack; a box would be an allocation on the hot path")]
pub(super) enum Wanted {
    /// It is here.
    Now(Lease),
    /// It will come, or a refusal will.
    Later(RequestId, oneshot::Receiver<Answer>),
    /// There will be none.
    Never(LeaseError),
}

/// What everybody shares.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) settings: WorkerSettings,
    pub(super) configure: Configure,
    pub(super) seams: Seams,
    epoch: Instant,
    pub(super) runtime: Handle,
    held: Mutex<Held>,
    earlier: Notify,
    emptied: Notify,
}

/// A worker's resources while its slot is taken.
#[derive(Debug)]
pub(super) struct Hand {
    pub(super) cell: Arc<Cell>,
    /// From the check to the lease.
    pub(super) voice: Option<(Channel, Conversation)>,
    /// From the exit report, told when the state machine agrees.
    pub(super) spent: (Duration, u64),
}

/// A nursery's resources while it lives.
#[derive(Debug)]
pub(super) struct NurseryHand {
    /// Once it is ready.
    pub(super) link: Option<Arc<Link>>,
    /// Ends its task, and with it the process.
    pub(super) kill: CancellationToken,
    /// It was told to go: its end is no failure, and it has a moment to leave.
    pub(super) closing: bool,
}

#[derive(Debug)]
pub(super) struct Held {
    pub(super) state: State,
    pub(super) workers: Vec<Option<Hand>>,
    pub(super) nurseries: HashMap<NurseryId, NurseryHand>,
    pub(super) waiters: HashMap<RequestId, oneshot::Sender<Answer>>,
    last_request: u64,
    /// When the clock is going to look.
    clock: Option<Moment>,
    last_failure: Option<Arc<NurseryFault>>,
    first: Option<First>,
    pub(super) sandbox: Arc<Sandbox>,
    pub(super) counts: PoolStats,
    shut: bool,
}

impl Core {
    pub(super) fn new(settings: WorkerSettings, seams: Seams, first: First) -> Result<Arc<Self>, PoolError> {
        let mut rules = settings.rules()?;
        (seams.adjust)(&mut rules);
        let held = Held {
            workers: (0..rules.most).map(|_| None).collect(),
            state: State::new(rules),
            nurseries: HashMap::new(),
            waiters: HashMap::new(),
            last_request: 0,
            clock: None,
            last_failure: None,
            first: Some(first),
            sandbox: Arc::new(Sandbox { level: String::new(), layers: Vec::new() }),
            counts: PoolStats::default(),
            shut: false,
        };
        Ok(Arc::new(Self {
            configure: settings.configure(),
            settings,
            seams,
            epoch: Instant::now(),
            runtime: Handle::current(),
            held: Mutex::new(held),
            earlier: Notify::new(),
            emptied: Notify::new(),
        }))
    }

    /// No panic happens under the lock; were one ever to, ids still tell everything apart.
    pub(super) fn hold(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the state machine and does what it says.
    pub(super) fn tell(self: &Arc<Self>, event: Event) {
        let mut held = self.hold();
        let unclaimed = self.tell_held(&mut held, event);
        drop(held);
        // Dropping a lease tells the state machine: not under the lock.
        drop(unclaimed);
    }

    /// The same under the caller's lock. What is returned must be dropped without it.
    #[must_use]
    pub(super) fn tell_held(self: &Arc<Self>, held: &mut Held, event: Event) -> Vec<Answer> {
        held.shut |= event == Event::Shutdown;
        let actions = held.state.on(event, self.epoch.elapsed());
        let mut unclaimed = Vec::new();
        for action in actions {
            self.act(held, action, &mut unclaimed);
        }
        self.set_clock(held);
        if held.shut && held.state.is_empty() {
            self.emptied.notify_waiters();
            self.earlier.notify_one();
        }
        unclaimed
    }

    /// A lease at once, or a place in the queue, or a refusal. A ready worker that has died
    /// unused, its exit not reported yet, is nobody's lease.
    pub(super) fn want(self: &Arc<Self>, kept: bool) -> Wanted {
        loop {
            match self.want_once(kept) {
                Wanted::Now(lease) if lease.is_dead() => drop(lease),
                outcome => return outcome,
            }
        }
    }

    fn want_once(self: &Arc<Self>, kept: bool) -> Wanted {
        let mut held = self.hold();
        held.last_request += 1;
        let request = RequestId(held.last_request);
        let actions = held.state.on(Event::Want { request, kept }, self.epoch.elapsed());
        let mut outcome = None;
        let mut unclaimed = Vec::new();
        for action in actions {
            match action {
                Action::Grant { request: granted, worker } if granted == request => {
                    outcome = self.lease_of(&mut held, worker).map(Wanted::Now)
                }
                Action::Refuse(refused) if refused == request => outcome = Some(Wanted::Never(Self::refusal(&held))),
                action => self.act(&mut held, action, &mut unclaimed),
            }
        }
        self.set_clock(&mut held);
        let outcome = outcome.unwrap_or_else(|| {
            let (sender, receiver) = oneshot::channel();
            held.waiters.insert(request, sender);
            Wanted::Later(request, receiver)
        });
        drop(held);
        drop(unclaimed);
        outcome
    }

    pub(super) fn give_up(self: &Arc<Self>, request: RequestId) {
        let mut held = self.hold();
        held.waiters.remove(&request);
        let unclaimed = self.tell_held(&mut held, Event::Unwant { request });
        drop(held);
        drop(unclaimed);
    }

    /// Notes a failure: loudly, for those who are refused, and for the start.
    pub(super) fn complain(held: &mut Held, fault: NurseryFault) {
        tracing::error!(%fault, "making workers failed");
        let fault = Arc::new(fault);
        held.last_failure = Some(Arc::clone(&fault));
        if let Some(first) = held.first.take() {
            drop(first.send(Err(fault)));
        }
    }

    /// Notes that it works.
    pub(super) fn prove(held: &mut Held) {
        held.counts.workers_verified += 1;
        if let Some(first) = held.first.take() {
            drop(first.send(Ok(())));
        }
    }

    pub(super) fn refusal(held: &Held) -> LeaseError {
        match &held.last_failure {
            Some(fault) if !held.shut => LeaseError::Unavailable(Arc::clone(fault)),
            _ => LeaseError::ShuttingDown,
        }
    }

    fn set_clock(&self, held: &mut Held) {
        let wake = held.state.wake();
        if let Some(at) = wake.filter(|at| held.clock.is_none_or(|clock| *at < clock)) {
            held.clock = Some(at);
            self.earlier.notify_one();
        }
    }

    /// Tells the state machine that time passed, whenever it wants to know, until nothing
    /// is left after a shutdown.
    pub(super) async fn keep_time(self: Arc<Self>) {
        loop {
            let at = {
                let mut held = self.hold();
                if held.shut && held.state.is_empty() {
                    return;
                }
                held.clock = held.state.wake();
                held.clock
            };
            let due = async {
                match at {
                    Some(at) => tokio::time::sleep_until((self.epoch + at).into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = due => self.tell(Event::Tick),
                () = self.earlier.notified() => {}
            }
        }
    }

    /// Waits until nothing lives, after a shutdown.
    pub(super) async fn empty(&self) {
        loop {
            let emptied = self.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            {
                let held = self.hold();
                if held.shut && held.state.is_empty() {
                    return;
                }
            }
            emptied.await;
        }
    }

    pub(super) fn kill_nurseries(&self) {
        for nursery in self.hold().nurseries.values() {
            nursery.kill.cancel();
        }
    }

    pub(super) fn sandbox(&self) -> Arc<Sandbox> {
        Arc::clone(&self.hold().sandbox)
    }

    pub(super) fn stats(&self) -> PoolStats {
        let held = self.hold();
        let census = held.state.census();
        PoolStats {
            ready: census.ready,
            coming: census.coming,
            leased: census.leased,
            ending: census.ending,
            waiting: census.waiting,
            nurseries: census.nurseries,
            failures: census.failures,
            last_failure: held.last_failure.as_ref().map(ToString::to_string),
            ..held.counts.clone()
        }
    }
}

impl Held {
    pub(super) fn hand(&self, id: WorkerId) -> Option<&Hand> {
        self.workers.get(usize::from(id.slot))?.as_ref().filter(|hand| hand.cell.id == id)
    }

    pub(super) fn hand_mut(&mut self, id: WorkerId) -> Option<&mut Hand> {
        self.workers.get_mut(usize::from(id.slot))?.as_mut().filter(|hand| hand.cell.id == id)
    }

    /// Takes over a worker's resources; its slot is empty, or the state machine would not
    /// have expected it.
    pub(super) fn place(&mut self, cell: Arc<Cell>) {
        if let Some(slot) = self.workers.get_mut(usize::from(cell.id.slot)) {
            *slot = Some(Hand { cell, voice: None, spent: (Duration::ZERO, 0) });
        }
    }

    /// What an exit report says about cost.
    pub(super) fn spend(&mut self, id: WorkerId, cpu: Duration, max_rss_bytes: u64) {
        if let Some(hand) = self.hand_mut(id) {
            hand.spent = (cpu, max_rss_bytes);
        }
    }
}

#[cfg(test)]
impl Core {
    /// Handles of the workers that nobody has leased.
    pub(super) fn ready_for_test(&self) -> Vec<std::os::fd::OwnedFd> {
        let held = self.hold();
        let unused = held.workers.iter().flatten().filter(|hand| hand.voice.is_some());
        unused.filter_map(|hand| hand.cell.pidfd.try_clone().ok()).collect()
    }
}
