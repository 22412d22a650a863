//! What becomes of nurseries, workers and leases: one state machine, no hands.
//!
//! Owns every decision about when a nursery is started, which worker is made, handed out,
//! killed or forgotten. Never does I/O, never reads a clock (`now` is an argument: the time
//! since the pool was started), is never async. What it decides it returns as [`Action`]s.
//!
//! A worker, in its slot:
//! ```text
//!          Spawn          spawned            verified          granted
//!  (empty) ─────▶ Asked ──────────▶ Starting ─────────▶ Ready ────────▶ Leased
//!                   │ failed, or       │ rejected, late    │ thrown       │ released
//!                   │ nursery lost     │ or thrown away    │ away         │
//!                   │                  └─────────▶ Ending ◀┴──────────────┘
//!                   ▼                                │ exited
//!                  Gone ◀────────────────────────────┘◀── exited, from any state above
//! ```
//! `Gone` empties the slot; the next worker of the slot has the next generation number, so
//! that an event about the old one names nobody.
//!
//! A nursery:
//! ```text
//!  start ─▶ Rising ──ready──▶ Current ──successor is ready, or──▶ Fading ──last worker──▶ Closing ─▶ ended
//!              │ failed          │ lost      abnormal death          │ lost    gone
//!              └──────▶ ended ◀──┴──────────────────────────────────┘
//! ```
//! A generation that ends by count or age keeps its ready workers until the successor has
//! others (each verified worker of the new one replaces a ready one of the old). After an
//! abnormal death all that have not been handed out are thrown away at once.
//!
//! Everything that waits has a deadline: a spawn that is not answered and an exit that is
//! not reported cost the nursery its life, a hello that does not come costs the worker its
//! life, and a nursery whose end is not reported is forgotten, its workers with it.

mod act;
mod supply;
mod words;

pub(crate) use words::{Action, Event, Fate, Moment, NurseryId, Release, RequestId, Rules, Trouble, WorkerId};

use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Asked,
    Starting,
    Ready,
    Leased,
    Ending { killed: bool },
}

#[derive(Clone, Copy, Debug)]
struct Worker {
    id: WorkerId,
    nursery: NurseryId,
    kept: bool,
    stage: Stage,
    deadline: Option<Moment>,
    /// When it will have rehearsed, as far as one can know.
    warm_at: Moment,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    generation: u64,
    worker: Option<Worker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Season {
    Rising,
    Current,
    Fading { tainted: bool },
    Closing,
}

#[derive(Clone, Copy, Debug)]
struct Nursery {
    id: NurseryId,
    season: Season,
    born: Moment,
    spawned: u64,
    living: usize,
    killed: bool,
    deadline: Option<Moment>,
}

/// How many workers are at which stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Census {
    /// Verified and unused.
    pub ready: usize,
    /// Asked for or starting.
    pub coming: usize,
    /// Handed out.
    pub leased: usize,
    /// On their way out.
    pub ending: usize,
    /// Leases that wait.
    pub waiting: usize,
    /// Nurseries, whatever their age.
    pub nurseries: usize,
    /// Failures in a row.
    pub failures: u32,
}

/// Everything that is known about nurseries, workers and wishes.
#[derive(Clone, Debug)]
pub(crate) struct State {
    rules: Rules,
    slots: Vec<Slot>,
    free: Vec<u16>,
    /// Unused workers, the most recently verified last. Of those that have rehearsed the last
    /// is handed out first, its pages are the warmest; if none has, the first.
    ready: Vec<WorkerId>,
    waiting: VecDeque<RequestId>,
    waiting_kept: VecDeque<RequestId>,
    nurseries: Vec<Nursery>,
    last_nursery: u64,
    failures: u32,
    proven: bool,
    /// The end of the pause after the last failure.
    not_before: Moment,
    /// Failures in a row to start a successor while the current nursery still serves, and
    /// the end of the pause after the last of them.
    raise_failures: u32,
    raise_not_before: Moment,
    refill_at: Option<Moment>,
    wake: Option<Moment>,
    closing: bool,
}

impl State {
    /// Nothing lives yet; the first event starts the first nursery.
    #[must_use]
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            slots: vec![Slot::default(); usize::from(rules.most)],
            free: (0..rules.most).rev().collect(),
            rules,
            ready: Vec::new(),
            waiting: VecDeque::new(),
            waiting_kept: VecDeque::new(),
            nurseries: Vec::new(),
            last_nursery: 0,
            failures: 0,
            proven: false,
            not_before: Moment::ZERO,
            raise_failures: 0,
            raise_not_before: Moment::ZERO,
            refill_at: None,
            wake: None,
            closing: false,
        }
    }

    /// Takes one event. An event that names somebody who is no more changes nothing.
    pub(crate) fn on(&mut self, event: Event, now: Moment) -> Vec<Action> {
        let mut out = Vec::new();
        match event {
            Event::Want { request, kept } => self.want(request, kept, now, &mut out),
            Event::Unwant { request } => self.unwant(request),
            Event::NurseryReady { nursery } => self.nursery_ready(nursery, now, &mut out),
            Event::NurseryEnded { nursery } => self.nursery_ended(nursery, now, &mut out),
            Event::Spawned { worker } => self.spawned(worker, now, &mut out),
            Event::SpawnFailed { worker } => self.spawn_failed(worker, now, &mut out),
            Event::Verified { worker } => self.verified(worker, now, &mut out),
            Event::Rejected { worker } => self.rejected(worker, now, &mut out),
            Event::Released { worker, release } => self.released(worker, release, now, &mut out),
            Event::Exited { worker, fate } => self.exited(worker, fate, now, &mut out),
            Event::Tick => self.tick(now, &mut out),
            Event::Shutdown => self.shut_down(now, &mut out),
        }
        self.supply(now, &mut out);
        if let Event::Want { request, .. } = event {
            self.refuse_in_vain(request, &mut out);
        }
        out
    }

    /// When [`Event::Tick`] is due at the latest; nothing: whenever something happens.
    #[must_use]
    pub(crate) fn wake(&self) -> Option<Moment> {
        self.wake
    }

    /// Whether this worker was asked for and not heard of yet.
    #[must_use]
    pub(crate) fn expects(&self, worker: WorkerId, nursery: NurseryId) -> bool {
        self.worker(worker).is_some_and(|known| known.stage == Stage::Asked && known.nursery == nursery)
    }

    /// Whether this worker is, or was not reported gone yet, and is of this nursery.
    #[must_use]
    pub(crate) fn knows(&self, worker: WorkerId, nursery: NurseryId) -> bool {
        self.worker(worker).is_some_and(|known| known.nursery == nursery)
    }

    /// Whether nothing lives.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.nurseries.is_empty() && self.free.len() == self.slots.len()
    }

    /// Counts.
    #[must_use]
    pub(crate) fn census(&self) -> Census {
        let mut census = Census {
            waiting: self.waiting.len() + self.waiting_kept.len(),
            nurseries: self.nurseries.len(),
            failures: self.failures,
            ..Census::default()
        };
        for worker in self.workers() {
            match worker.stage {
                Stage::Asked | Stage::Starting => census.coming += 1,
                Stage::Ready => census.ready += 1,
                Stage::Leased => census.leased += 1,
                Stage::Ending { .. } => census.ending += 1,
            }
        }
        census
    }

    fn workers(&self) -> impl Iterator<Item = &Worker> {
        self.slots.iter().filter_map(|slot| slot.worker.as_ref())
    }

    fn worker(&self, id: WorkerId) -> Option<&Worker> {
        self.slots.get(usize::from(id.slot))?.worker.as_ref().filter(|worker| worker.id == id)
    }

    fn worker_mut(&mut self, id: WorkerId) -> Option<&mut Worker> {
        self.slots.get_mut(usize::from(id.slot))?.worker.as_mut().filter(|worker| worker.id == id)
    }

    fn nursery_mut(&mut self, id: NurseryId) -> Option<&mut Nursery> {
        self.nurseries.iter_mut().find(|nursery| nursery.id == id)
    }

    fn in_season(&self, season: Season) -> Option<&Nursery> {
        self.nurseries.iter().find(|nursery| nursery.season == season)
    }

    fn arm(&mut self, at: Moment) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }
}

#[cfg(test)]
mod tests;
