//! Which nurseries and workers are to be made now, and who is told that none will come.

use super::{Action, Moment, Nursery, NurseryId, RequestId, Season, Stage, State, Worker, WorkerId};

/// Spawns that may be unanswered at one time: their answers' descriptors are in flight,
/// and the link must never be full.
const ASKED_AT_ONCE: usize = 32;

/// What the current nursery is about to deliver.
#[derive(Default)]
struct Coming {
    ready: usize,
    asked: usize,
    once: usize,
    kept: usize,
}

impl State {
    pub(super) fn supply(&mut self, now: Moment, out: &mut Vec<Action>) {
        if self.closing {
            return;
        }
        let Some(current) = self.in_season(Season::Current).copied() else {
            self.raise(now, out);
            return;
        };
        let old = now >= current.born.saturating_add(self.rules.generation_age);
        if old || current.spawned >= self.rules.generation_workers {
            self.raise(now, out);
        }
        if now < self.not_before {
            self.arm(self.not_before);
            return;
        }
        let mut coming = self.coming(current.id);
        self.serve_waiting(current.id, &mut coming, now, out);
        self.refill(current.id, &mut coming, now, out);
    }

    /// Starts a nursery, unless one is starting or the last failure is too recent.
    fn raise(&mut self, now: Moment, out: &mut Vec<Action>) {
        if self.in_season(Season::Rising).is_some() {
            return;
        }
        let not_before = self.not_before.max(self.raise_not_before);
        if now < not_before {
            self.arm(not_before);
            return;
        }
        self.last_nursery += 1;
        let id = NurseryId(self.last_nursery);
        let by = now.saturating_add(self.rules.start_deadline);
        self.nurseries.push(Nursery { id, season: Season::Rising, born: now, spawned: 0, living: 0, killed: false, deadline: Some(by) });
        self.arm(by);
        out.push(Action::StartNursery(id));
    }

    fn coming(&self, current: NurseryId) -> Coming {
        let mut coming = Coming::default();
        for worker in self.workers().filter(|worker| worker.nursery == current) {
            match worker.stage {
                Stage::Ready => coming.ready += 1,
                Stage::Asked | Stage::Starting => {
                    coming.asked += usize::from(worker.stage == Stage::Asked);
                    *(if worker.kept { &mut coming.kept } else { &mut coming.once }) += 1;
                }
                Stage::Leased | Stage::Ending { .. } => {}
            }
        }
        coming
    }

    fn serve_waiting(&mut self, current: NurseryId, coming: &mut Coming, now: Moment, out: &mut Vec<Action>) {
        while coming.kept < self.waiting_kept.len() {
            if !self.ask(current, true, coming, now, out) {
                self.make_room(now, out);
                break;
            }
        }
        while coming.once < self.waiting.len() && self.ask(current, false, coming, now, out) {}
    }

    /// All slots are taken and a kept worker is waited for: an unused one makes room.
    fn make_room(&mut self, now: Moment, out: &mut Vec<Action>) {
        let leaving = self.workers().filter(|worker| matches!(worker.stage, Stage::Ending { .. })).count();
        let unused = self.ready.first().copied();
        if let Some(unused) = unused.filter(|_| self.free.is_empty() && leaving < self.waiting_kept.len()) {
            self.kill(unused, now, out);
        }
    }

    fn refill(&mut self, current: NurseryId, coming: &mut Coming, now: Moment, out: &mut Vec<Action>) {
        let have = |coming: &Coming, waiting: usize| coming.ready + coming.once.saturating_sub(waiting);
        let target = self.rules.ready;
        let there = have(coming, self.waiting.len());
        if there >= target {
            self.refill_at = None;
            return;
        }
        if there * 2 > target && self.refill_at.is_none_or(|at| at > now) {
            let at = self.refill_at.unwrap_or_else(|| now.saturating_add(self.rules.refill_delay));
            self.refill_at = Some(at);
            self.arm(at);
            return;
        }
        self.refill_at = None;
        while have(coming, self.waiting.len()) < target && self.ask(current, false, coming, now, out) {}
    }

    fn ask(&mut self, nursery: NurseryId, kept: bool, coming: &mut Coming, now: Moment, out: &mut Vec<Action>) -> bool {
        if coming.asked >= ASKED_AT_ONCE {
            return false;
        }
        let Some(slot) = self.free.pop() else { return false };
        let by = now.saturating_add(self.rules.spawn_deadline);
        let Some(place) = self.slots.get_mut(usize::from(slot)) else { return false };
        place.generation += 1;
        let id = WorkerId { slot, generation: place.generation };
        place.worker = Some(Worker { id, nursery, kept, stage: Stage::Asked, deadline: Some(by), warm_at: Moment::MAX });
        if let Some(nursery) = self.nursery_mut(nursery) {
            nursery.spawned += 1;
            nursery.living += 1;
        }
        self.arm(by);
        coming.asked += 1;
        *(if kept { &mut coming.kept } else { &mut coming.once }) += 1;
        out.push(Action::Spawn { nursery, worker: id, kept });
        true
    }

    /// Whether one more ready worker of this nursery would be too many. Those of an older
    /// generation do not count against the current one: it replaces them.
    pub(super) fn enough_ready(&self, nursery: NurseryId) -> bool {
        let current = self.in_season(Season::Current).map(|current| current.id);
        let counts = |id: &WorkerId| current != Some(nursery) || self.worker(*id).is_some_and(|worker| worker.nursery == nursery);
        self.ready.iter().filter(|id| counts(id)).count() >= self.rules.ready
    }

    /// One more failure in a row: pauses, and gives up on those who wait when there have
    /// been too many. Before anything ever worked, one is too many. Failures during a pause
    /// belong to the incident that caused it and do not lengthen it.
    pub(super) fn failed(&mut self, now: Moment, out: &mut Vec<Action>) {
        if self.failures == 0 || now >= self.not_before {
            self.not_before = now.saturating_add(self.pause(self.failures));
            self.failures = self.failures.saturating_add(1);
            self.arm(self.not_before);
        }
        if self.out_of_patience() {
            out.extend(self.waiting.drain(..).chain(self.waiting_kept.drain(..)).map(Action::Refuse));
        }
    }

    /// The same for a successor; nobody waits for it.
    pub(super) fn failed_to_raise(&mut self, now: Moment) {
        self.raise_not_before = now.saturating_add(self.pause(self.raise_failures));
        self.raise_failures = self.raise_failures.saturating_add(1);
        self.arm(self.raise_not_before);
    }

    fn pause(&self, earlier_failures: u32) -> Moment {
        self.rules.backoff.saturating_mul(1 << earlier_failures.min(20)).min(self.rules.backoff_most)
    }

    fn out_of_patience(&self) -> bool {
        self.failures >= if self.proven { self.rules.patience } else { 1 }
    }

    /// Refuses at once when failure is known and nothing is under way that could serve.
    pub(super) fn refuse_in_vain(&mut self, request: RequestId, out: &mut Vec<Action>) {
        let under_way = self.in_season(Season::Rising).is_some()
            || self.workers().any(|worker| matches!(worker.stage, Stage::Asked | Stage::Starting))
            || self.free.is_empty();
        let waits = self.waiting.contains(&request) || self.waiting_kept.contains(&request);
        if waits && self.out_of_patience() && !under_way {
            self.unwant(request);
            out.push(Action::Refuse(request));
        }
    }
}
