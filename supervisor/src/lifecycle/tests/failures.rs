//! What is lost, fails or does not answer.

use super::*;

#[test]
fn an_abnormal_death_throws_the_unused_away_and_raises_a_successor_at_once() {
    for signal in [4, 6, 7, 11, 31] {
        let mut world = World::up(rules());
        let worker = world.lease();
        world.pass(MS * 5);
        world.fill();
        world.exit(worker, Fate::Signalled(signal));
        assert_eq!(world.state.census().ready, 0, "signal {signal}");
        assert!(world.raised.contains(&NurseryId(2)));
        for worker in world.to_die.clone() {
            world.exit(worker, Fate::Signalled(9));
        }
        assert!(world.closed.contains(&NurseryId(1)), "with its last worker the old nursery goes");
    }
}

#[test]
fn a_lost_nursery_ends_its_leases_as_lost_and_comes_back_after_a_pause() {
    let mut world = World::up(rules());
    let worker = world.lease();
    world.end_nursery(NurseryId(1));
    assert!(!world.raised.contains(&NurseryId(2)));
    world.exit(worker, Fate::Lost);
    assert_eq!(world.ended[&worker], Fate::Lost);
    world.pass(MS * 50);
    assert!(world.raised.contains(&NurseryId(2)));
}

#[test]
fn pauses_double_up_to_their_bound_and_a_verified_worker_ends_them() {
    let mut world = World::up(rules());
    let mut pauses = Vec::new();
    for round in 1..14 {
        world.end_nursery(NurseryId(round));
        let at = world.state.not_before;
        pauses.push(at - world.now);
        world.now = at;
        world.tell(Event::Tick);
    }
    assert_eq!(pauses[..4], [MS * 50, MS * 100, MS * 200, MS * 400]);
    assert_eq!(*pauses.last().unwrap(), Duration::from_secs(10));
    world.serve(NurseryId(14));
    world.fill();
    world.end_nursery(NurseryId(14));
    assert_eq!(world.state.not_before - world.now, MS * 50);
}

#[test]
fn before_anything_worked_the_first_failure_is_told_at_once() {
    let mut world = World::new(rules());
    let request = world.want(false);
    world.end_nursery(NurseryId(1));
    assert!(world.refused.contains(&request));
}

#[test]
fn after_three_failures_in_a_row_waiting_leases_are_refused() {
    let mut world = World::up(rules());
    world.end_nursery(NurseryId(1));
    let request = world.want(false);
    for round in 2..4 {
        assert!(!world.refused.contains(&request));
        world.pass(MS * 500);
        world.end_nursery(NurseryId(round));
    }
    assert!(world.refused.contains(&request));
    let late = world.want(false);
    assert!(world.refused.contains(&late), "and so is whoever comes during the pause");
}

#[test]
fn spawns_that_fail_together_count_as_one_failure() {
    let mut world = World::up(rules());
    world.lease();
    world.lease();
    for (worker, _) in world.asked.clone() {
        world.asked.retain(|(asked, _)| *asked != worker);
        world.tell(Event::SpawnFailed { worker });
    }
    assert_eq!(world.state.census().failures, 1);
}

#[test]
fn a_successor_that_can_not_start_leaves_the_old_generation_serving() {
    let mut world = World::up(Rules { generation_workers: 1, ..rules() });
    for round in 2..6 {
        world.end_nursery(NurseryId(round));
        world.pass(Duration::from_secs(1));
    }
    world.lease();
    assert!(world.refused.is_empty());
}

#[test]
fn a_retired_worker_that_lingers_is_killed() {
    let mut world = World::up(rules());
    let worker = world.lease();
    world.tell(Event::Released { worker, release: Release::Retired });
    assert!(!world.to_die.contains(&worker));
    world.pass(MS * 250);
    assert!(world.to_die.contains(&worker));
}

#[test]
fn a_nursery_that_does_not_answer_or_reap_is_killed() {
    let mut world = World::up(rules());
    world.lease();
    world.pass(MS * 2);
    assert!(!world.asked.is_empty());
    world.pass(Duration::from_secs(5));
    assert!(world.closed.contains(&NurseryId(1)));
}

#[test]
fn a_worker_without_a_hello_is_killed_after_two_seconds() {
    let mut world = World::new(rules());
    world.serve(NurseryId(1));
    let (worker, nursery) = world.asked.pop().unwrap();
    world.alive.insert(worker, nursery);
    world.tell(Event::Spawned { worker });
    world.tainted.insert(nursery);
    world.pass(Duration::from_secs(2));
    assert!(world.to_die.contains(&worker));
}
