//! The state machine under its lock, and the resources that belong to its ids.
//!
//! Owns descriptors, channels and waiters by id, and carries out actions in the order in
//! which they were decided. Never blocks under the lock: what is done there are single
//! system calls that do not wait.

use super::lease::{Cell, Ended, Lease};
use super::settings::WorkerSettings;
use super::{LeaseError, PoolError, PoolStats};
use crate::channel::Channel;
use crate::lifecycle::{Action, Event, Fate, Moment, NurseryId, RequestId, State, Trouble, WorkerId};
use crate::nursery::{Link, NurseryFault, exit_text};
use crate::spawn;
use brig_protocol::client::Sandbox;
use brig_protocol::control::{Configure, Kind, Request, Spawn};
use brig_protocol::worker::Conversation;
use std::collections::HashMap;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

pub(super) use super::tend::Seams;

type Answer = Result<Lease, LeaseError>;
type First = oneshot::Sender<Result<(), Arc<NurseryFault>>>;

/// What everybody shares.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) settings: WorkerSettings,
    pub(super) configure: Configure,
    pub(super) seams: Seams,
    epoch: Instant,
    runtime: Handle,
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
    spent: (Duration, u64),
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
    waiters: HashMap<RequestId, oneshot::Sender<Answer>>,
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
        let rules = settings.rules()?;
        #[cfg(test)]
        let rules = {
            let mut rules = rules;
            (seams.rules)(&mut rules);
            rules
        };
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
        }
        unclaimed
    }

    /// A lease at once, or a place in the queue, or a refusal.
    #[expect(clippy::type_complexity, reason = "three outcomes, one caller")]
    pub(super) fn want(self: &Arc<Self>, kept: bool) -> Result<Lease, Result<(RequestId, oneshot::Receiver<Answer>), LeaseError>> {
        let mut held = self.hold();
        held.last_request += 1;
        let request = RequestId(held.last_request);
        let actions = held.state.on(Event::Want { request, kept }, self.epoch.elapsed());
        let mut outcome = None;
        let mut unclaimed = Vec::new();
        for action in actions {
            match action {
                Action::Grant { request: granted, worker } if granted == request => outcome = self.lease_of(&mut held, worker).map(Ok),
                Action::Refuse(refused) if refused == request => outcome = Some(Err(Self::refusal(&held))),
                action => self.act(&mut held, action, &mut unclaimed),
            }
        }
        self.set_clock(&mut held);
        match outcome {
            Some(Ok(lease)) => Ok(lease),
            Some(Err(fault)) => Err(Err(fault)),
            None => {
                let (sender, receiver) = oneshot::channel();
                held.waiters.insert(request, sender);
                Err(Ok((request, receiver)))
            }
        }
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

    fn refusal(held: &Held) -> LeaseError {
        match &held.last_failure {
            Some(fault) if !held.shut => LeaseError::Unavailable(Arc::clone(fault)),
            _ => LeaseError::ShuttingDown,
        }
    }

    fn act(self: &Arc<Self>, held: &mut Held, action: Action, unclaimed: &mut Vec<Answer>) {
        match action {
            Action::StartNursery(id) => self.start_nursery(held, id),
            Action::CloseNursery(id) => {
                if let Some(nursery) = held.nurseries.get_mut(&id) {
                    nursery.closing = true;
                    match &nursery.link {
                        Some(link) => link.close(),
                        None => nursery.kill.cancel(),
                    }
                }
            }
            Action::KillNursery(id) => {
                if let Some(nursery) = held.nurseries.get(&id) {
                    nursery.kill.cancel();
                }
            }
            Action::Spawn { nursery, worker, kept } => self.ask(held, nursery, worker, kept),
            Action::Grant { request, worker } => {
                let Some(lease) = self.lease_of(held, worker) else { return };
                match held.waiters.remove(&request) {
                    Some(waiter) => unclaimed.extend(waiter.send(Ok(lease)).err()),
                    None => unclaimed.push(Ok(lease)),
                }
            }
            Action::Refuse(request) => {
                if let Some(waiter) = held.waiters.remove(&request) {
                    unclaimed.extend(waiter.send(Err(Self::refusal(held))).err());
                }
            }
            Action::Kill(id) => {
                if let Some(hand) = held.hand(id) {
                    spawn::kill(hand.cell.pidfd.as_fd());
                }
            }
            Action::Bury(id) => self.bury(held, id),
            Action::Gone { worker, fate } => Self::gone(held, worker, fate),
            Action::Note(trouble) => Self::note(held, trouble),
        }
    }

    fn start_nursery(self: &Arc<Self>, held: &mut Held, id: NurseryId) {
        let kill = CancellationToken::new();
        held.counts.nurseries_started += 1;
        held.nurseries.insert(id, NurseryHand { link: None, kill: kill.clone(), closing: false });
        self.runtime.spawn(Arc::clone(self).tend(id, kill));
    }

    fn ask(&self, held: &Held, nursery: NurseryId, worker: WorkerId, kept: bool) {
        let (kind, cpu_ms) = if kept { (Kind::Vm, self.settings.kept_cpu_ms) } else { (Kind::Once, self.settings.once_cpu_ms()) };
        let request = Request::Spawn(Spawn { slot: worker.slot, generation: worker.generation, cpu_ms, kind });
        let Some(link) = held.nurseries.get(&nursery).and_then(|nursery| nursery.link.as_ref()) else { return };
        if let Err(fault) = link.send(&request) {
            // Its task sees the end of the link, and tells.
            tracing::error!(%fault, nursery = nursery.0, "control link");
            link.close();
        }
    }

    fn lease_of(self: &Arc<Self>, held: &mut Held, worker: WorkerId) -> Option<Lease> {
        let hand = held.hand_mut(worker)?;
        let (channel, conversation) = hand.voice.take()?;
        Some(Lease::new(Arc::clone(self), Arc::clone(&hand.cell), channel, conversation))
    }

    /// The worker's nursery is gone; nobody will report its exit, so it is watched.
    fn bury(self: &Arc<Self>, held: &mut Held, id: WorkerId) {
        let Some(hand) = held.hand(id) else { return };
        let cell = Arc::clone(&hand.cell);
        spawn::kill(cell.pidfd.as_fd());
        let core = Arc::clone(self);
        self.runtime.spawn(async move {
            // Unbounded on its own: the state machine forgets the worker at its deadline,
            // and then this event names nobody.
            if spawn::await_exit(cell.pidfd.as_fd()).await.is_ok() {
                core.tell(Event::Exited { worker: id, fate: Fate::Lost });
            }
        });
    }

    fn gone(held: &mut Held, id: WorkerId, fate: Fate) {
        held.counts.abnormal_deaths += u64::from(fate.is_abnormal());
        let Some(hand) = held.workers.get_mut(usize::from(id.slot)).and_then(|slot| slot.take_if(|hand| hand.cell.id == id)) else {
            return;
        };
        let (cpu, max_rss_bytes) = hand.spent;
        // Set once, by the one `Gone` that there is for a worker.
        drop(hand.cell.ended.set(Ended { fate, cpu, max_rss_bytes }));
    }

    fn note(held: &mut Held, trouble: Trouble) {
        let fault = match trouble {
            Trouble::StartLate(_) => NurseryFault::StartLate,
            Trouble::SpawnLate(_) | Trouble::ExitLate(_) | Trouble::EndLate(_) => NurseryFault::Stalled,
            Trouble::HelloLate(_) => NurseryFault::HelloLate,
            Trouble::DiedEarly(_, Fate::Exited(code)) => NurseryFault::DiedEarly(exit_text(code)),
            Trouble::DiedEarly(_, Fate::Signalled(signal)) => NurseryFault::DiedEarly(format!("signal {signal}")),
            Trouble::DiedEarly(_, Fate::Lost) => NurseryFault::DiedEarly("its nursery was lost".to_owned()),
        };
        tracing::error!(?trouble, "deadline or early death");
        Self::complain(held, fault);
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
            match at {
                Some(at) => {
                    let due = tokio::time::sleep_until((self.epoch + at).into());
                    tokio::select! {
                        () = due => self.tell(Event::Tick),
                        () = self.earlier.notified() => {}
                        () = self.emptied.notified() => {}
                    }
                }
                None => tokio::select! {
                    () = self.earlier.notified() => {}
                    () = self.emptied.notified() => {}
                },
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
