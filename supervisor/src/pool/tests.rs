#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod real_worker_tests;
mod test_nursery;

use super::seams::{Raising, Seams};
use super::*;
use crate::channel::ChannelFault;
use crate::lifecycle::{Fate, Rules};
use crate::nursery::{Link, Nursery, WorkerFacts};
use crate::spawn;
use brig_protocol::control::{Kind, Layer, Level};
use brig_protocol::frame::build;
use brig_protocol::worker::Phase;
use std::collections::BTreeSet;
use std::os::fd::{AsFd as _, OwnedFd};
use test_nursery::{Birth, Play, Start};

const PATIENCE: Duration = Duration::from_secs(20);

fn hasty(rules: &mut Rules) {
    rules.backoff = Duration::from_millis(5);
    rules.spawn_deadline = Duration::from_millis(100);
    rules.hello_deadline = Duration::from_millis(100);
    rules.start_deadline = Duration::from_millis(100);
}

fn seams(play: &Play, rules: fn(&mut Rules)) -> Seams {
    let play = play.clone();
    let raise = Arc::new(move |_program, configure| -> Raising {
        let play = play.clone();
        Box::pin(async move {
            let (link, theirs) = Link::pair()?;
            play.start(theirs);
            Nursery::introduce(link, None, &configure).await
        })
    });
    Seams { raise, adjust: rules, read_back: |_, _, _, _| Ok(WorkerFacts::default()) }
}

fn settings() -> WorkerSettings {
    WorkerSettings { ready: 2, most: 4, ..WorkerSettings::default() }
}

pub(crate) use test_nursery::{Speak, Spoken};

/// A pool of workers that are no sandbox and say what `speak` says.
pub(crate) async fn played(speak: Speak) -> Arc<Pool> {
    let play = Play::default();
    play.script(|script| script.speak = Some(speak));
    start(&play).await
}

async fn start(play: &Play) -> Arc<Pool> {
    within(Pool::start_with(settings(), seams(play, |_| ()))).await.unwrap()
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap()
}

fn frame(body: &str) -> Vec<u8> {
    build(|out| out.extend_from_slice(body.as_bytes())).unwrap()
}

async fn echo(lease: &mut Lease) {
    lease.queue(frame("echo")).unwrap();
    assert_eq!(&*within(lease.receive()).await.unwrap(), b"echo");
}

fn watched(lease: &Lease) -> OwnedFd {
    lease.watch_for_test()
}

/// Waits until the counts are as asked.
async fn until(pool: &Pool, right: impl Fn(&PoolStats) -> bool) {
    within(async {
        while !right(&pool.stats()) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_lease_is_past_its_hello_and_its_worker_is_used_once() {
    let pool = start(&Play::default()).await;
    let mut seen = BTreeSet::new();
    for _ in 0..6 {
        let mut lease = within(pool.lease()).await.unwrap();
        assert_eq!(lease.conversation().phase(), Phase::Ready);
        assert_eq!(lease.sandbox().level, "full");
        echo(&mut lease).await;
        assert!(seen.insert(lease.worker()));
        lease.retire();
    }
    assert_eq!(pool.sandbox().layers.len(), Layer::ALL.len());
    pool.shutdown().await;
}

#[tokio::test]
async fn leases_beyond_the_bound_wait_and_are_served_in_order() {
    let pool = start(&Play::default()).await;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(within(pool.lease()).await.unwrap());
    }
    let (done, mut order) = tokio::sync::mpsc::unbounded_channel();
    for number in 0..3 {
        let (asking, done) = (Arc::clone(&pool), done.clone());
        tokio::spawn(async move {
            let lease = asking.lease().await.unwrap();
            done.send((number, lease)).unwrap();
        });
        until(&pool, |stats| stats.waiting == number + 1).await;
    }
    for expected in 0..3 {
        held.pop().unwrap().retire();
        let (number, lease) = within(order.recv()).await.unwrap();
        assert_eq!(number, expected);
        held.push(lease);
        let stats = pool.stats();
        assert!(stats.ready + stats.coming + stats.leased + stats.ending <= 4);
        held.rotate_right(1);
    }
    pool.shutdown().await;
}

#[tokio::test]
async fn a_start_that_fails_names_what_failed() {
    for (begin, birth, text) in [
        (Start::Misses(Layer::Landlock), Birth::Good, "`landlock` is missing"),
        (Start::ReadyWithout(Layer::Seccomp), Birth::Good, "`seccomp` is missing"),
        (Start::Dies, Birth::Good, "nursery ended"),
        (Start::Garbage, Birth::Good, "control link"),
        (Start::Silent, Birth::Good, "not ready in time"),
        (Start::Ready, Birth::Fails(11), "could not make a worker"),
        (Start::Ready, Birth::Descriptors(0), "0 descriptors with a frame that carries 2"),
        (Start::Ready, Birth::Descriptors(1), "1 descriptors"),
        (Start::Ready, Birth::Descriptors(3), "3 descriptors"),
        (Start::Ready, Birth::Descriptors(16), "cut"),
        (Start::Ready, Birth::Truncated, "control link"),
        (Start::Ready, Birth::Dies, "nursery ended"),
        (Start::Ready, Birth::Silent, "does not answer"),
        (Start::Ready, Birth::NoHello, "not ready in time"),
        (Start::Ready, Birth::Hangs, "not ready in time"),
        (Start::Ready, Birth::ExitsEarly(88), "lock-down failed"),
        (Start::Ready, Birth::Hello("{}"), "first message"),
        (Start::Ready, Birth::Hello(r#"{"jsonrpc":"2.0","method":"output","params":{"stream":"stdout","text":"x"}}"#), "first message"),
        (
            Start::Ready,
            Birth::Hello(r#"{"jsonrpc":"2.0","method":"ready","params":{"layers":["seccomp"]}}"#),
            "its hello names the layers seccomp,",
        ),
    ] {
        let play = Play::default();
        play.script(|script| {
            script.starts = vec![begin; 50];
            script.births = vec![birth; 50];
        });
        let fault = within(Pool::start_with(settings(), seams(&play, hasty))).await.unwrap_err();
        assert!(fault.to_string().contains(text), "{begin:?} {birth:?}: {fault}");
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let settings = WorkerSettings { worker_path: "/nonexistent/brig-worker".into(), ..settings() };
    let fault = within(Pool::start(settings)).await.unwrap_err();
    assert!(fault.to_string().contains("/nonexistent/brig-worker"), "{fault}");
}

#[tokio::test]
async fn below_the_required_level_the_pool_does_not_start() {
    let play = Play::default();
    play.script(|script| script.starts = vec![Start::ReadyWithout(Layer::Mdwe); 9]);
    let settings = WorkerSettings { require: Level::Full, ..settings() };
    let fault = within(Pool::start_with(settings, seams(&play, hasty))).await.unwrap_err();
    assert!(fault.to_string().contains("`mdwe` is missing"), "{fault}");
    assert_eq!(play.script(|script| script.configured[0].required), Level::Full);
}

#[tokio::test]
async fn a_worker_that_fails_its_check_is_never_handed_out() {
    let play = Play::default();
    let pool = within(Pool::start_with(settings(), seams(&play, hasty))).await.unwrap();
    for bad in [Birth::Hello("{}"), Birth::NoHello, Birth::ExitsEarly(88), Birth::Fails(11)] {
        play.script(|script| script.births = vec![bad]);
        for _ in 0..4 {
            let mut lease = within(pool.lease()).await.unwrap();
            echo(&mut lease).await;
            lease.retire();
        }
        until(&pool, |stats| stats.ready == 2 && stats.failures == 0).await;
        assert!(play.script(|script| script.births.is_empty()), "{bad:?} was played");
    }
    pool.shutdown().await;
}

#[tokio::test]
async fn an_abnormal_death_ends_the_generation_and_spares_what_is_running() {
    let play = Play::default();
    let pool = start(&play).await;
    let mut first = within(pool.lease()).await.unwrap();
    let mut second = within(pool.lease()).await.unwrap();
    until(&pool, |stats| stats.ready == 2).await;
    first.queue(frame("segv")).unwrap();
    assert_eq!(within(first.receive()).await, Err(ChannelFault::Closed));
    assert_eq!(within(first.ended()).await.fate, Fate::Signalled(11));
    until(&pool, |stats| stats.nurseries_started == 2 && stats.ready == 2).await;
    echo(&mut second).await;
    assert_eq!(pool.stats().nurseries, 2, "the old one has a worker to finish");
    second.retire();
    until(&pool, |stats| stats.nurseries == 1).await;
    assert_eq!(pool.stats().abnormal_deaths, 1);
    assert_eq!(pool.stats().failures, 0);
    pool.shutdown().await;
}

#[tokio::test]
async fn with_its_nursery_a_lease_ends_lost_and_the_next_one_works() {
    let pool = start(&Play::default()).await;
    let mut lease = within(pool.lease()).await.unwrap();
    let mut other = within(pool.lease()).await.unwrap();
    lease.queue(frame("nursery dies")).unwrap();
    assert_eq!(within(lease.receive()).await, Err(ChannelFault::Closed));
    for lease in [&mut lease, &mut other] {
        assert_eq!(within(lease.ended()).await.fate, Fate::Lost);
        assert!(spawn::has_ended(watched(lease).as_fd()));
    }
    echo(&mut within(pool.lease()).await.unwrap()).await;
    pool.shutdown().await;
}

#[tokio::test]
async fn failure_after_failure_refuses_with_the_reason_and_passes() {
    let play = Play::default();
    let pool = within(Pool::start_with(settings(), seams(&play, hasty))).await.unwrap();
    // More than can be started before the failure has been seen.
    play.script(|script| script.starts = vec![Start::Misses(Layer::Landlock); 100_000]);
    // Kept: a lease that is dropped has its worker killed, perhaps before it reads.
    let mut doomed = within(pool.lease()).await.unwrap();
    doomed.queue(frame("nursery dies")).unwrap();
    until(&pool, |stats| stats.failures >= 1).await;
    drop(doomed);
    let fault = within(async {
        loop {
            if let Err(fault) = pool.lease().await {
                break fault;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(fault.to_string().contains("landlock"), "{fault}");
    play.script(|script| script.starts.clear());
    within(async {
        while pool.lease().await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    pool.shutdown().await;
}

#[tokio::test]
async fn a_kill_ends_with_the_report_of_the_kernel() {
    let pool = start(&Play::default()).await;
    let mut lease = within(pool.lease()).await.unwrap();
    lease.kill();
    let ended = within(lease.ended()).await;
    assert_eq!(ended, Ended { fate: Fate::Signalled(9), cpu: Duration::from_micros(1500), max_rss_bytes: 2 << 20, shortage: None });
    assert_eq!(within(lease.ended()).await, ended);
    assert_eq!(lease.queue(frame("x")), Err(ChannelFault::Closed));
    assert_eq!(pool.stats().nurseries_started, 1);
    pool.shutdown().await;
}

#[tokio::test]
async fn a_lease_that_is_dropped_or_lingers_after_its_end_is_killed() {
    let play = Play::default();
    play.script(|script| script.births = vec![Birth::Lingers; 30]);
    let pool = start(&play).await;
    let dropped = within(pool.lease()).await.unwrap();
    let watch = watched(&dropped);
    drop(dropped);
    within(spawn::await_exit(watch.as_fd())).await.unwrap();
    let retired = within(pool.lease()).await.unwrap();
    let watch = watched(&retired);
    retired.retire();
    within(spawn::await_exit(watch.as_fd())).await.unwrap();
    let mut awaited = within(pool.lease()).await.unwrap();
    assert_eq!(within(awaited.ended()).await.fate, Fate::Signalled(9));
    pool.shutdown().await;
}

#[tokio::test]
async fn a_ready_worker_that_has_died_is_not_handed_out() {
    let pool = start(&Play::default()).await;
    until(&pool, |stats| stats.ready == 2).await;
    let victims = pool.core.ready_for_test();
    assert_eq!(victims.len(), 2);
    for victim in &victims {
        spawn::kill(victim.as_fd());
        spawn::await_exit(victim.as_fd()).await.unwrap();
    }
    echo(&mut within(pool.lease()).await.unwrap()).await;
    pool.shutdown().await;
}

#[tokio::test]
async fn shutting_down_refuses_who_waits_and_leaves_no_process() {
    let play = Play::default();
    play.script(|script| script.births = vec![Birth::Lingers; 9]);
    let pool = start(&play).await;
    let mut leases = Vec::new();
    for _ in 0..4 {
        leases.push(within(pool.lease()).await.unwrap());
    }
    let watches: Vec<OwnedFd> = leases.iter().map(watched).collect();
    let waiting = tokio::spawn({
        let pool = Arc::clone(&pool);
        async move { pool.lease().await.map(drop) }
    });
    until(&pool, |stats| stats.waiting == 1).await;
    within(pool.shutdown()).await;
    assert!(matches!(waiting.await.unwrap(), Err(LeaseError::ShuttingDown)));
    assert!(watches.iter().all(|watch| spawn::has_ended(watch.as_fd())));
    assert!(matches!(within(pool.lease()).await, Err(LeaseError::ShuttingDown)));
    assert_eq!(within(leases[0].ended()).await.fate, Fate::Signalled(9));
    let stats = pool.stats();
    assert_eq!((stats.nurseries, stats.ready, stats.leased, stats.ending), (0, 0, 0, 0));
}

#[tokio::test]
async fn a_pool_that_is_dropped_takes_its_workers_along() {
    let pool = start(&Play::default()).await;
    let lease = within(pool.lease()).await.unwrap();
    let watch = watched(&lease);
    drop(pool);
    within(spawn::await_exit(watch.as_fd())).await.unwrap();
}

#[tokio::test]
async fn a_wait_that_is_given_up_takes_no_worker() {
    let pool = start(&Play::default()).await;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(within(pool.lease()).await.unwrap());
    }
    for _ in 0..3 {
        let waiting = tokio::time::timeout(Duration::from_millis(2), pool.lease());
        assert!(waiting.await.is_err());
    }
    assert_eq!(pool.stats().waiting, 0);
    held.pop().unwrap().retire();
    echo(&mut within(pool.lease()).await.unwrap()).await;
    pool.shutdown().await;
}

#[tokio::test]
async fn reports_about_other_generations_are_credited_to_nobody_and_strays_are_killed() {
    let play = Play::default();
    play.script(|script| script.births = vec![Birth::WithStrays; 2]);
    let pool = start(&play).await;
    until(&pool, |stats| stats.ready == 2).await;
    let (mut one, mut two) = (within(pool.lease()).await.unwrap(), within(pool.lease()).await.unwrap());
    echo(&mut one).await;
    echo(&mut two).await;
    let strays = play.script(|script| std::mem::take(&mut script.strays));
    assert_eq!(strays, [true, true], "they were killed");
    assert_eq!(pool.stats().abnormal_deaths, 0);
    pool.shutdown().await;
}

#[tokio::test]
async fn a_kept_worker_is_made_on_demand_with_a_budget_of_its_own() {
    let play = Play::default();
    let pool = start(&play).await;
    let mut lease = within(pool.lease_kept()).await.unwrap();
    echo(&mut lease).await;
    let asked = play.script(|script| script.asked.clone());
    let kept: Vec<_> = asked.iter().filter(|spawn| spawn.kind == Kind::Vm).collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].cpu_ms, settings().kept_cpu_ms);
    assert!(asked.iter().all(|spawn| spawn.kind == Kind::Vm || spawn.cpu_ms < kept[0].cpu_ms));
    pool.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_all_get_a_worker_and_nothing_is_left() {
    let play = Play::default();
    let settings = WorkerSettings { ready: 3, most: 8, ..settings() };
    let pool = within(Pool::start_with(settings, seams(&play, |_| ()))).await.unwrap();
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let pool = Arc::clone(&pool);
            tokio::spawn(async move {
                for round in 0..12 {
                    let mut lease = pool.lease().await.unwrap();
                    echo(&mut lease).await;
                    match (task + round) % 3 {
                        0 => lease.retire(),
                        1 => drop(lease),
                        _ => assert!(lease.ended().await.fate != Fate::Lost),
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        within(task).await.unwrap();
    }
    until(&pool, |stats| stats.ready == 3 && stats.ending == 0).await;
    within(pool.shutdown()).await;
    assert!(pool.stats().last_failure.is_none(), "{:?}", pool.stats());
}
