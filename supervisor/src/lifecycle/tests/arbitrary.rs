//! Whatever happens, in whatever order.

use super::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_worker_reaches_gone_and_each_lease_ends_once(steps in proptest::collection::vec((0u8..34, any::<usize>()), 0..300)) {
        let mut world = World::new(rules());
        for (what, choice) in steps {
            world.step(what, choice);
        }
        world.wind_down();
        world.settle_requests();
    }

    #[test]
    fn time_alone_empties_a_pool_in_which_nothing_answers(steps in proptest::collection::vec((0u8..34, any::<usize>()), 0..300)) {
        let mut world = World::new(rules());
        for (what, choice) in steps {
            world.step(what, choice);
        }
        world.run_out();
        world.settle_requests();
    }

    #[test]
    fn a_wish_never_hangs_while_time_passes_and_nothing_works(steps in proptest::collection::vec((0u8..34, any::<usize>()), 0..200)) {
        let mut world = World::new(rules());
        for (what, choice) in steps {
            world.step(what, choice);
        }
        // Leases that others hold may keep all slots taken: that is the caller's wait.
        for worker in world.leases.keys().copied().collect::<Vec<_>>() {
            world.tell(Event::Released { worker, release: Release::Killed });
        }
        for kept in [false, true] {
            world.want(kept);
        }
        for _ in 0..5_000 {
            if world.open.is_empty() {
                break;
            }
            let Some(wake) = world.state.wake() else { break };
            world.now = world.now.max(wake);
            for id in world.closed.clone() {
                world.end_nursery(id);
            }
            world.tell(Event::Tick);
        }
        prop_assert!(world.open.is_empty(), "{:?}", world.state);
    }

    #[test]
    fn events_about_nobody_change_nothing(what in 0u8..8, slot in 0u16..9, generation in 0u64..3) {
        let mut world = World::up(rules());
        let before = world.state.census();
        let worker = WorkerId { slot, generation: generation + 100 };
        let event = match what {
            0 => Event::Spawned { worker },
            1 => Event::SpawnFailed { worker },
            2 => Event::Verified { worker },
            3 => Event::Rejected { worker },
            4 => Event::Released { worker, release: Release::Killed },
            5 => Event::Exited { worker, fate: Fate::Signalled(11) },
            6 => Event::NurseryEnded { nursery: NurseryId(99) },
            _ => Event::NurseryReady { nursery: NurseryId(99) },
        };
        prop_assert_eq!(world.state.on(event, world.now), vec![]);
        prop_assert_eq!(world.state.census(), before);
    }
}
