//! What each event does to the state.

use super::{Action, Fate, Moment, NurseryId, Release, RequestId, Season, Stage, State, Trouble, Worker, WorkerId};

/// How long after it was told to a worker has rehearsed: some times what it takes.
const REHEARSAL: Moment = Moment::from_millis(1);

impl State {
    pub(super) fn want(&mut self, request: RequestId, kept: bool, now: Moment, out: &mut Vec<Action>) {
        if self.closing {
            out.push(Action::Refuse(request));
        } else if kept {
            self.waiting_kept.push_back(request);
        } else if let Some(worker) = self.take_ready(now) {
            // Nobody waits while there is a ready worker, so this takes nobody's turn.
            self.grant(request, worker, out);
        } else {
            self.waiting.push_back(request);
        }
    }

    fn take_ready(&mut self, now: Moment) -> Option<WorkerId> {
        let warm = |id: &WorkerId| self.worker(*id).is_some_and(|worker| worker.warm_at <= now);
        let place = self.ready.iter().rposition(warm).unwrap_or(0);
        (place < self.ready.len()).then(|| self.ready.remove(place))
    }

    pub(super) fn unwant(&mut self, request: RequestId) {
        self.waiting.retain(|waiting| *waiting != request);
        self.waiting_kept.retain(|waiting| *waiting != request);
    }

    fn grant(&mut self, request: RequestId, worker: WorkerId, out: &mut Vec<Action>) {
        if let Some(known) = self.worker_mut(worker) {
            known.stage = Stage::Leased;
            known.deadline = None;
        }
        out.push(Action::Grant { request, worker });
    }

    pub(super) fn nursery_ready(&mut self, id: NurseryId, now: Moment, out: &mut Vec<Action>) {
        if self.nursery_mut(id).is_none_or(|nursery| nursery.season != Season::Rising || nursery.killed) {
            return;
        }
        if let Some(old) = self.in_season(Season::Current).map(|nursery| nursery.id) {
            self.fade(old, false, now, out);
        }
        self.raise_failures = 0;
        self.raise_not_before = Moment::ZERO;
        let age = self.rules.generation_age;
        if let Some(nursery) = self.nursery_mut(id) {
            nursery.season = Season::Current;
            nursery.born = now;
            nursery.deadline = None;
        }
        self.arm(now.saturating_add(age));
    }

    pub(super) fn nursery_ended(&mut self, id: NurseryId, now: Moment, out: &mut Vec<Action>) {
        let Some(place) = self.nurseries.iter().position(|nursery| nursery.id == id) else { return };
        let nursery = self.nurseries.remove(place);
        let bury_by = now.saturating_add(self.rules.end_deadline);
        for worker in self.of_nursery(id) {
            if worker.stage == Stage::Asked {
                self.gone(worker.id, Fate::Lost, now, out);
            } else {
                self.ready.retain(|ready| *ready != worker.id);
                self.end(worker.id, true, bury_by);
                out.push(Action::Bury(worker.id));
            }
        }
        match nursery.season {
            Season::Rising if self.in_season(Season::Current).is_some() => self.failed_to_raise(now),
            Season::Rising | Season::Current => self.failed(now, out),
            Season::Fading { .. } | Season::Closing => {}
        }
    }

    fn of_nursery(&self, id: NurseryId) -> Vec<Worker> {
        self.workers().filter(|worker| worker.nursery == id).copied().collect()
    }

    pub(super) fn spawned(&mut self, id: WorkerId, now: Moment, out: &mut Vec<Action>) {
        let hello_by = now.saturating_add(self.rules.hello_deadline);
        let Some(worker) = self.worker_mut(id).filter(|worker| worker.stage == Stage::Asked) else { return };
        worker.stage = Stage::Starting;
        worker.deadline = Some(hello_by);
        let nursery = worker.nursery;
        self.arm(hello_by);
        let doomed = self.nursery_mut(nursery).is_none_or(|nursery| nursery.season == Season::Fading { tainted: true });
        if doomed || self.closing {
            self.kill(id, now, out);
        }
    }

    pub(super) fn spawn_failed(&mut self, id: WorkerId, now: Moment, out: &mut Vec<Action>) {
        if self.worker(id).is_some_and(|worker| worker.stage == Stage::Asked) {
            self.gone(id, Fate::Lost, now, out);
            self.failed(now, out);
        }
    }

    pub(super) fn verified(&mut self, id: WorkerId, now: Moment, out: &mut Vec<Action>) {
        let Some(worker) = self.worker(id).filter(|worker| worker.stage == Stage::Starting).copied() else { return };
        self.failures = 0;
        self.proven = true;
        self.not_before = Moment::ZERO;
        let waiting = if worker.kept { &mut self.waiting_kept } else { &mut self.waiting };
        if let Some(request) = waiting.pop_front() {
            self.grant(request, id, out);
        } else if worker.kept || self.enough_ready(worker.nursery) {
            self.kill(id, now, out);
        } else {
            if let Some(worker) = self.worker_mut(id) {
                worker.stage = Stage::Ready;
                worker.deadline = None;
                worker.warm_at = now.saturating_add(REHEARSAL);
            }
            self.replace_an_older(worker.nursery, now, out);
            self.ready.push(id);
            out.push(Action::Rehearse(id));
        }
    }

    /// A ready worker of the current generation takes the place of one of an older.
    fn replace_an_older(&mut self, newer: NurseryId, now: Moment, out: &mut Vec<Action>) {
        let older = self.ready.iter().copied().find(|id| self.worker(*id).is_some_and(|worker| worker.nursery < newer));
        if let Some(id) = older {
            self.kill(id, now, out);
        }
    }

    /// The nursery made a worker that is not what it said: none of its others is handed out.
    pub(super) fn rejected(&mut self, id: WorkerId, now: Moment, out: &mut Vec<Action>) {
        let Some(worker) = self.worker(id).filter(|worker| worker.stage == Stage::Starting).copied() else { return };
        self.kill(id, now, out);
        self.failed(now, out);
        self.fade(worker.nursery, true, now, out);
    }

    pub(super) fn released(&mut self, id: WorkerId, release: Release, now: Moment, out: &mut Vec<Action>) {
        if self.worker(id).is_none_or(|worker| worker.stage != Stage::Leased) {
            return;
        }
        match release {
            Release::Killed => self.kill(id, now, out),
            Release::Retired => {
                let leave_by = now.saturating_add(self.rules.retire_grace);
                self.end(id, false, leave_by);
            }
        }
    }

    pub(super) fn exited(&mut self, id: WorkerId, fate: Fate, now: Moment, out: &mut Vec<Action>) {
        let Some(worker) = self.worker(id).copied() else { return };
        self.gone(id, fate, now, out);
        if matches!(worker.stage, Stage::Asked | Stage::Starting) {
            out.push(Action::Note(Trouble::DiedEarly(id, fate)));
            self.failed(now, out);
        }
        if fate.is_abnormal() {
            self.fade(worker.nursery, true, now, out);
        }
    }

    /// Ends a generation. `tainted`: what it has not handed out yet, it never will.
    fn fade(&mut self, id: NurseryId, tainted: bool, now: Moment, out: &mut Vec<Action>) {
        let Some(nursery) = self.nursery_mut(id) else { return };
        match nursery.season {
            Season::Current | Season::Fading { tainted: false } => nursery.season = Season::Fading { tainted },
            _ => return,
        }
        if tainted {
            for worker in self.of_nursery(id) {
                if matches!(worker.stage, Stage::Starting | Stage::Ready) {
                    self.kill(worker.id, now, out);
                }
            }
        }
        self.close_if_done(id, now, out);
    }

    fn close_if_done(&mut self, id: NurseryId, now: Moment, out: &mut Vec<Action>) {
        let by = now.saturating_add(self.rules.end_deadline);
        let closing = self.closing;
        let Some(nursery) = self.nursery_mut(id) else { return };
        let idle = matches!(nursery.season, Season::Fading { .. }) || (closing && nursery.season != Season::Closing);
        if idle && nursery.living == 0 {
            nursery.season = Season::Closing;
            nursery.deadline = Some(by);
            self.arm(by);
            out.push(Action::CloseNursery(id));
        }
    }

    pub(super) fn kill(&mut self, id: WorkerId, now: Moment, out: &mut Vec<Action>) {
        let by = now.saturating_add(self.rules.end_deadline);
        self.ready.retain(|ready| *ready != id);
        self.end(id, true, by);
        out.push(Action::Kill(id));
    }

    fn end(&mut self, id: WorkerId, killed: bool, by: Moment) {
        if let Some(worker) = self.worker_mut(id) {
            worker.stage = Stage::Ending { killed };
            worker.deadline = Some(by);
        }
        self.arm(by);
    }

    fn gone(&mut self, id: WorkerId, fate: Fate, now: Moment, out: &mut Vec<Action>) {
        let Some(worker) = self.slots.get_mut(usize::from(id.slot)).and_then(|slot| slot.worker.take_if(|worker| worker.id == id)) else {
            return;
        };
        self.ready.retain(|ready| *ready != id);
        self.free.push(id.slot);
        out.push(Action::Gone { worker: id, fate });
        if let Some(nursery) = self.nursery_mut(worker.nursery) {
            nursery.living = nursery.living.saturating_sub(1);
        }
        self.close_if_done(worker.nursery, now, out);
    }

    pub(super) fn tick(&mut self, now: Moment, out: &mut Vec<Action>) {
        self.wake = None;
        let due = |deadline: Option<Moment>| deadline.is_some_and(|at| at <= now);
        let late: Vec<Worker> = self.workers().filter(|worker| due(worker.deadline)).copied().collect();
        for worker in late {
            self.late_worker(&worker, now, out);
        }
        let late: Vec<NurseryId> = self.nurseries.iter().filter(|nursery| due(nursery.deadline)).map(|nursery| nursery.id).collect();
        for id in late {
            self.late_nursery(id, now, out);
        }
        let age = self.rules.generation_age;
        let workers = self.workers().filter_map(|worker| worker.deadline);
        let nurseries = self.nurseries.iter().filter_map(|nursery| match nursery.season {
            Season::Current => Some(nursery.born.saturating_add(age)).filter(|at| *at > now),
            _ => nursery.deadline,
        });
        let next = workers.chain(nurseries).chain(self.refill_at).min();
        if let Some(next) = next {
            self.arm(next);
        }
    }

    fn late_worker(&mut self, worker: &Worker, now: Moment, out: &mut Vec<Action>) {
        match worker.stage {
            Stage::Asked => {
                out.push(Action::Note(Trouble::SpawnLate(worker.id)));
                self.forget_deadline(worker.id);
                self.kill_nursery(worker.nursery, now, out);
            }
            Stage::Starting => {
                out.push(Action::Note(Trouble::HelloLate(worker.id)));
                self.rejected(worker.id, now, out);
            }
            Stage::Ending { killed: false } => self.kill(worker.id, now, out),
            Stage::Ending { killed: true } => {
                out.push(Action::Note(Trouble::ExitLate(worker.id)));
                if self.nursery_mut(worker.nursery).is_some() {
                    self.forget_deadline(worker.id);
                    self.kill_nursery(worker.nursery, now, out);
                } else {
                    self.gone(worker.id, Fate::Lost, now, out);
                }
            }
            Stage::Ready | Stage::Leased => self.forget_deadline(worker.id),
        }
    }

    fn forget_deadline(&mut self, id: WorkerId) {
        if let Some(worker) = self.worker_mut(id) {
            worker.deadline = None;
        }
    }

    fn late_nursery(&mut self, id: NurseryId, now: Moment, out: &mut Vec<Action>) {
        let Some(nursery) = self.nursery_mut(id).copied() else { return };
        if nursery.killed {
            out.push(Action::Note(Trouble::EndLate(id)));
            self.nursery_ended(id, now, out);
            return;
        }
        if nursery.season == Season::Rising {
            out.push(Action::Note(Trouble::StartLate(id)));
        }
        self.kill_nursery(id, now, out);
    }

    fn kill_nursery(&mut self, id: NurseryId, now: Moment, out: &mut Vec<Action>) {
        let by = now.saturating_add(self.rules.end_deadline);
        let Some(nursery) = self.nursery_mut(id).filter(|nursery| !nursery.killed) else { return };
        nursery.killed = true;
        nursery.deadline = Some(by);
        if nursery.season == Season::Current {
            nursery.season = Season::Fading { tainted: true };
            self.failed(now, out);
        }
        self.arm(by);
        out.push(Action::KillNursery(id));
    }

    pub(super) fn shut_down(&mut self, now: Moment, out: &mut Vec<Action>) {
        self.closing = true;
        out.extend(self.waiting.drain(..).chain(self.waiting_kept.drain(..)).map(Action::Refuse));
        let living: Vec<WorkerId> = self
            .workers()
            .filter(|worker| worker.stage != Stage::Asked && worker.stage != Stage::Ending { killed: true })
            .map(|worker| worker.id)
            .collect();
        for id in living {
            self.kill(id, now, out);
        }
        for id in self.nurseries.iter().map(|nursery| nursery.id).collect::<Vec<_>>() {
            self.close_if_done(id, now, out);
        }
    }
}
