#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod arbitrary;
mod failures;

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn rules() -> Rules {
    Rules { ready: 2, most: 5, generation_workers: 12, generation_age: Duration::from_secs(30), ..Rules::default() }
}

/// A world around the state that checks each action as it comes.
struct World {
    state: State,
    now: Moment,
    raised: BTreeSet<NurseryId>,
    serving: BTreeSet<NurseryId>,
    closed: BTreeSet<NurseryId>,
    asked: Vec<(WorkerId, NurseryId)>,
    starting: Vec<WorkerId>,
    alive: BTreeMap<WorkerId, NurseryId>,
    to_die: BTreeSet<WorkerId>,
    leases: BTreeMap<WorkerId, RequestId>,
    open: Vec<(RequestId, bool)>,
    kept: BTreeMap<WorkerId, bool>,
    ever: BTreeSet<WorkerId>,
    tainted: BTreeSet<NurseryId>,
    granted: BTreeSet<RequestId>,
    refused: BTreeSet<RequestId>,
    ended: BTreeMap<WorkerId, Fate>,
    told_to_rehearse: BTreeSet<WorkerId>,
    requests: u64,
}

impl World {
    fn new(rules: Rules) -> Self {
        let mut world = Self {
            state: State::new(rules),
            now: Moment::ZERO,
            raised: BTreeSet::new(),
            serving: BTreeSet::new(),
            closed: BTreeSet::new(),
            asked: Vec::new(),
            starting: Vec::new(),
            alive: BTreeMap::new(),
            to_die: BTreeSet::new(),
            leases: BTreeMap::new(),
            open: Vec::new(),
            kept: BTreeMap::new(),
            ever: BTreeSet::new(),
            tainted: BTreeSet::new(),
            granted: BTreeSet::new(),
            refused: BTreeSet::new(),
            ended: BTreeMap::new(),
            told_to_rehearse: BTreeSet::new(),
            requests: 0,
        };
        world.tell(Event::Tick);
        world
    }

    fn tell(&mut self, event: Event) {
        for action in self.state.on(event, self.now) {
            self.check(action);
        }
        let census = self.state.census();
        let living = census.ready + census.coming + census.leased + census.ending;
        assert!(living <= usize::from(self.state.rules.most));
        assert!(census.nurseries <= living + 2 + self.closed.len(), "a nursery without a worker is current, rising or told to go");
    }

    fn check(&mut self, action: Action) {
        match action {
            Action::StartNursery(id) => assert!(self.raised.insert(id)),
            Action::CloseNursery(id) | Action::KillNursery(id) => {
                self.closed.insert(id);
            }
            Action::Spawn { nursery, worker, kept } => {
                assert!(self.serving.contains(&nursery), "only a nursery that is ready is asked");
                assert!(!self.tainted.contains(&nursery), "nothing new comes from a tainted generation");
                assert!(self.ever.insert(worker), "no id is used twice");
                assert!(!self.alive.keys().any(|id| id.slot == worker.slot), "one living worker a slot");
                self.asked.push((worker, nursery));
                self.kept.insert(worker, kept);
            }
            Action::Grant { request, worker } => {
                let nursery = self.alive[&worker];
                assert!(!self.tainted.contains(&nursery), "nothing unused of a tainted generation is handed out");
                let kept = self.kept[&worker];
                let first = self.open.iter().position(|(_, wants)| *wants == kept).unwrap();
                assert_eq!(self.open.remove(first), (request, kept), "first come, first served");
                assert!(self.granted.insert(request) && !self.refused.contains(&request));
                assert!(self.leases.insert(worker, request).is_none(), "a worker is used once");
            }
            Action::Refuse(request) => {
                assert!(self.refused.insert(request) && !self.granted.contains(&request));
                self.open.retain(|(open, _)| *open != request);
            }
            Action::Kill(worker) | Action::Bury(worker) => {
                if self.alive.contains_key(&worker) {
                    self.to_die.insert(worker);
                }
            }
            Action::Gone { worker, fate } => {
                assert!(self.ever.contains(&worker));
                assert!(self.ended.insert(worker, fate).is_none(), "a worker ends once");
                self.asked.retain(|(asked, _)| *asked != worker);
                self.alive.remove(&worker);
                self.starting.retain(|starting| *starting != worker);
                self.to_die.remove(&worker);
            }
            Action::Rehearse(worker) => {
                assert!(self.alive.contains_key(&worker) && !self.leases.contains_key(&worker), "only who waits has the time");
                assert!(self.told_to_rehearse.insert(worker), "once");
            }
            Action::Note(_) => {}
        }
    }

    fn pick<T: Copy>(from: &[T], choice: usize) -> Option<T> {
        from.get(choice.checked_rem(from.len())?).copied()
    }

    fn want(&mut self, kept: bool) -> RequestId {
        self.requests += 1;
        let request = RequestId(self.requests);
        self.open.push((request, kept));
        self.tell(Event::Want { request, kept });
        request
    }

    fn end_nursery(&mut self, id: NurseryId) {
        self.raised.remove(&id);
        self.serving.remove(&id);
        self.closed.remove(&id);
        self.tainted.insert(id);
        self.tell(Event::NurseryEnded { nursery: id });
    }

    fn exit(&mut self, worker: WorkerId, fate: Fate) {
        if fate.is_abnormal() {
            self.tainted.insert(self.alive[&worker]);
        }
        self.tell(Event::Exited { worker, fate });
    }

    /// One thing that can happen, chosen by two numbers.
    fn step(&mut self, what: u8, choice: usize) {
        let alive: Vec<WorkerId> = self.alive.keys().copied().collect();
        let leased: Vec<WorkerId> = self.leases.keys().filter(|id| self.alive.contains_key(id)).copied().collect();
        let raised: Vec<NurseryId> = self.raised.iter().copied().collect();
        match what {
            0..=3 => drop(self.want(false)),
            4 => drop(self.want(true)),
            5 => {
                if let Some((request, _)) = Self::pick(&self.open, choice) {
                    self.open.retain(|(open, _)| *open != request);
                    self.tell(Event::Unwant { request });
                }
            }
            6..=10 => self.answer_spawn(choice),
            11..=15 => {
                if let Some(worker) = Self::pick(&self.starting, choice) {
                    self.starting.retain(|starting| *starting != worker);
                    self.tell(Event::Verified { worker });
                }
            }
            16 => {
                if let Some(worker) = Self::pick(&self.starting, choice) {
                    self.tainted.insert(self.alive[&worker]);
                    self.tell(Event::Rejected { worker });
                }
            }
            17..=19 => {
                if let Some(worker) = Self::pick(&leased, choice) {
                    let release = if choice.is_multiple_of(2) { Release::Retired } else { Release::Killed };
                    self.tell(Event::Released { worker, release });
                }
            }
            20..=22 => {
                let dying: Vec<WorkerId> = self.to_die.iter().copied().collect();
                if let Some(worker) = Self::pick(&dying, choice).or(Self::pick(&leased, choice)) {
                    self.exit(worker, Fate::Signalled(9));
                }
            }
            23 => {
                if let Some(worker) = Self::pick(&alive, choice) {
                    self.exit(worker, if choice.is_multiple_of(3) { Fate::Exited(0) } else { Fate::Signalled(11) });
                }
            }
            24..=26 => {
                let fresh: Vec<NurseryId> =
                    raised.iter().copied().filter(|id| !self.serving.contains(id) && !self.closed.contains(id)).collect();
                if let Some(nursery) = Self::pick(&fresh, choice) {
                    self.serving.insert(nursery);
                    self.tell(Event::NurseryReady { nursery });
                }
            }
            27 => {
                if let Some(nursery) = Self::pick(&raised, choice) {
                    self.end_nursery(nursery);
                }
            }
            28 => {
                let closed: Vec<NurseryId> = self.closed.iter().copied().collect();
                if let Some(nursery) = Self::pick(&closed, choice) {
                    self.end_nursery(nursery);
                }
            }
            _ => self.pass(MS * u32::try_from(choice % 400).unwrap()),
        }
    }

    fn answer_spawn(&mut self, choice: usize) {
        let Some((worker, nursery)) = Self::pick(&self.asked, choice) else { return };
        self.asked.retain(|(asked, _)| *asked != worker);
        if choice.is_multiple_of(7) {
            self.tell(Event::SpawnFailed { worker });
        } else {
            self.alive.insert(worker, nursery);
            self.starting.push(worker);
            self.tell(Event::Spawned { worker });
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        if self.state.wake().is_some_and(|at| at <= self.now) {
            self.tell(Event::Tick);
        }
    }

    /// Nothing answers any more; time alone must do.
    fn run_out(&mut self) {
        self.tell(Event::Shutdown);
        for _ in 0..2_000 {
            if self.state.is_empty() {
                return;
            }
            let wake = self.state.wake().unwrap_or_else(|| panic!("something lives and nothing is due: {:?}", self.state));
            self.now = self.now.max(wake);
            self.tell(Event::Tick);
        }
        panic!("never empty: {:?}", self.state);
    }

    /// Everybody does as told.
    fn wind_down(&mut self) {
        self.tell(Event::Shutdown);
        for _ in 0..2_000 {
            if self.state.is_empty() {
                return;
            }
            if let Some((worker, nursery)) = self.asked.pop() {
                self.alive.insert(worker, nursery);
                self.tell(Event::Spawned { worker });
            } else if let Some(worker) = self.to_die.first().copied() {
                self.exit(worker, Fate::Signalled(9));
            } else if let Some(nursery) = self.closed.first().copied() {
                self.end_nursery(nursery);
            } else {
                panic!("not empty and nothing to do: {:?}", self.state);
            }
        }
        panic!("never empty: {:?}", self.state);
    }

    fn settle_requests(&self) {
        assert!(self.open.is_empty(), "every wish was granted, refused or withdrawn");
        for worker in &self.ever {
            assert!(self.ended.contains_key(worker), "every worker reaches Gone");
        }
        for worker in self.leases.keys() {
            assert!(self.ended.contains_key(worker), "each lease ends");
        }
    }

    /// The first nursery is ready and its workers wait.
    fn up(rules: Rules) -> Self {
        let mut world = Self::new(rules);
        world.serve(NurseryId(1));
        world.fill();
        world
    }

    fn serve(&mut self, nursery: NurseryId) {
        self.serving.insert(nursery);
        self.tell(Event::NurseryReady { nursery });
    }

    /// All spawns are answered and verified.
    fn fill(&mut self) {
        while let Some((worker, nursery)) = self.asked.pop() {
            self.alive.insert(worker, nursery);
            self.tell(Event::Spawned { worker });
            self.tell(Event::Verified { worker });
        }
    }

    fn lease(&mut self) -> WorkerId {
        let request = self.want(false);
        *self.leases.iter().find(|(_, held)| **held == request).unwrap().0
    }
}

#[test]
fn a_ready_worker_is_granted_without_any_spawn_and_replaced_after_the_delay() {
    let mut world = World::up(Rules { ready: 4, most: 9, ..Rules::default() });
    world.lease();
    assert!(world.asked.is_empty(), "three of four are more than half");
    world.pass(MS * 2);
    assert_eq!(world.asked.len(), 1);
}

#[test]
fn a_worker_that_nobody_waits_for_is_told_to_rehearse_and_one_that_is_granted_at_once_is_not() {
    let mut world = World::new(rules());
    world.want(false);
    world.serve(NurseryId(1));
    world.fill();
    let granted: BTreeSet<WorkerId> = world.leases.keys().copied().collect();
    assert_eq!((granted.len(), world.told_to_rehearse.len()), (1, 2), "one was waited for, two are ready");
    assert!(world.told_to_rehearse.is_disjoint(&granted));
    world.want(true);
    world.fill();
    assert_eq!(world.told_to_rehearse.len(), 2, "a kept one is always waited for");
}

#[test]
fn the_last_that_has_rehearsed_is_handed_out_first_and_if_none_has_the_first() {
    let mut world = World::up(Rules { ready: 4, most: 9, ..Rules::default() });
    let ready = world.state.ready.clone();
    assert_eq!(world.lease(), ready[0], "it has had the most time");
    world.pass(MS);
    assert_eq!(world.lease(), ready[3], "its pages are the warmest");
    world.fill();
    assert_eq!(world.lease(), ready[2], "those that came just now are rehearsing");
}

#[test]
fn at_half_of_the_ready_workers_the_refill_is_immediate() {
    let mut world = World::up(Rules { ready: 4, most: 9, ..Rules::default() });
    world.lease();
    world.lease();
    assert_eq!(world.asked.len(), 2);
}

#[test]
fn a_tainted_generation_finishes_what_it_has_handed_out() {
    let mut world = World::up(rules());
    let (first, second) = (world.lease(), world.lease());
    world.exit(first, Fate::Signalled(11));
    assert!(!world.to_die.contains(&second));
    assert!(!world.closed.contains(&NurseryId(1)));
    world.exit(second, Fate::Exited(0));
    for worker in world.to_die.clone() {
        world.exit(worker, Fate::Signalled(9));
    }
    while let Some((worker, nursery)) = world.asked.pop() {
        world.alive.insert(worker, nursery);
        world.tell(Event::Spawned { worker });
        world.exit(worker, Fate::Signalled(9));
    }
    assert!(world.closed.contains(&NurseryId(1)));
}

#[test]
fn our_own_kills_and_planned_ends_are_no_reason_for_a_new_generation() {
    for fate in [Fate::Signalled(9), Fate::Signalled(24), Fate::Exited(0), Fate::Exited(86)] {
        let mut world = World::up(rules());
        let worker = world.lease();
        world.exit(worker, fate);
        assert!(!world.raised.contains(&NurseryId(2)));
    }
}

#[test]
fn a_generation_ends_by_count_only_when_its_successor_is_ready() {
    let mut world = World::up(Rules { generation_workers: 2, ..rules() });
    assert!(world.raised.contains(&NurseryId(2)));
    let worker = world.lease();
    assert_eq!(world.alive[&worker], NurseryId(1), "the old one serves meanwhile");
    world.serve(NurseryId(2));
    world.fill();
    let newest = world.lease();
    assert_eq!(world.alive[&newest], NurseryId(2));
}

#[test]
fn a_generation_ends_by_age_even_when_nobody_asks_for_anything() {
    let mut world = World::up(rules());
    world.pass(Duration::from_secs(31));
    world.serve(NurseryId(2));
    world.fill();
    for worker in world.to_die.clone() {
        world.exit(worker, Fate::Exited(0));
    }
    assert!(world.closed.contains(&NurseryId(1)));
    assert_eq!(world.state.census().ready, 2);
}

#[test]
fn a_kept_worker_gets_a_slot_that_an_unused_worker_holds() {
    let mut world = World::up(Rules { ready: 2, most: 3, ..Rules::default() });
    world.lease();
    world.pass(MS * 5);
    world.fill();
    assert_eq!(world.state.census().ready, 2);
    let request = world.want(true);
    for worker in world.to_die.clone() {
        world.exit(worker, Fate::Signalled(9));
    }
    world.fill();
    assert!(world.granted.contains(&request));
}
