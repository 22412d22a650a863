//! The pool over the real `brig-worker` of this build, which must be built first.

use super::within;
use crate::lifecycle::Fate;
use crate::nursery::{Scope, read_generation, read_worker};
use crate::pool::{Lease, Pool, PoolError, WorkerSettings};
use crate::spawn;
use brig_protocol::control::{Layer, Layers, Level, Origin};
use brig_protocol::worker::{EvaluateOrder, FromWorker, evaluate_frame, read_from_worker};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn worker() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap().parent().unwrap();
    let path = folder.join("brig-worker");
    assert!(path.exists(), "brig-worker is not built; run `cargo build -p brig-worker` first");
    path
}

fn settings(origin: Origin, namespaces: bool) -> WorkerSettings {
    WorkerSettings { worker_path: worker(), origin, namespaces, ready: 3, most: 8, ..WorkerSettings::default() }
}

async fn start(settings: WorkerSettings) -> Arc<Pool> {
    within(Pool::start(settings)).await.unwrap()
}

async fn evaluate(lease: &mut Lease, source: &str) -> String {
    send(lease, source, false);
    finish(lease).await
}

fn send(lease: &mut Lease, source: &str, keep: bool) {
    let id = lease.conversation().begin(10, 10).unwrap();
    lease.queue(evaluate_frame(id, &EvaluateOrder { keep, ..EvaluateOrder::of(source) }).unwrap()).unwrap();
}

async fn finish(lease: &mut Lease) -> String {
    let body = within(lease.receive()).await.unwrap();
    let FromWorker::Finished { id, finished } = read_from_worker(&body).unwrap() else { panic!("not finished") };
    lease.conversation().finish(id).unwrap();
    assert!(finished.error.is_none(), "{:?}", finished.error);
    finished.value.unwrap().get().to_owned()
}

fn root() -> bool {
    rustix::process::geteuid().is_root()
}

#[tokio::test]
async fn real_workers_are_verified_and_evaluate_in_every_way_of_making_them() {
    for origin in [Origin::Fork, Origin::Exec] {
        for namespaces in [true, false] {
            let pool = start(settings(origin, namespaces)).await;
            for _ in 0..5 {
                let mut lease = within(pool.lease()).await.unwrap();
                assert_eq!(evaluate(&mut lease, "1+2").await, "3");
                lease.retire();
            }
            let stats = pool.stats();
            assert_eq!(stats.last_failure, None);
            assert!(stats.read_back.contains(&"status"), "{stats:?}");
            if root() {
                assert!(stats.read_back.contains(&"descriptors") && stats.read_back.contains(&"environment"), "{stats:?}");
                assert_eq!(stats.read_back.contains(&"namespaces"), pool.sandbox().layers.iter().any(|layer| layer.ends_with("namespace")));
            }
            within(pool.shutdown()).await;
        }
    }
}

#[tokio::test]
async fn the_level_that_is_required_is_the_level_that_is_there_or_the_layer_is_named() {
    for namespaces in [true, false] {
        let settings = WorkerSettings { require: Level::Full, ..settings(Origin::Fork, namespaces) };
        match within(Pool::start(settings)).await {
            Ok(pool) => {
                assert_eq!(pool.sandbox().level, "full");
                within(pool.shutdown()).await;
            }
            Err(PoolError::Nursery(fault)) => assert!(fault.to_string().contains("sandbox layer `"), "{fault}"),
            Err(fault) => panic!("{fault}"),
        }
    }
}

#[tokio::test]
async fn a_kept_worker_evaluates_again_in_its_realm() {
    let pool = start(settings(Origin::Fork, true)).await;
    let mut lease = within(pool.lease_kept()).await.unwrap();
    send(&mut lease, "globalThis.kept = 41; 1", true);
    assert_eq!(finish(&mut lease).await, "1");
    send(&mut lease, "kept + 1", true);
    assert_eq!(finish(&mut lease).await, "42");
    lease.retire();
    within(pool.shutdown()).await;
}

/// Page faults of a process so far that needed no disk, from `/proc`.
fn faults(lease: &Lease) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", lease.pid_for_test())).unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().nth(7).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_worker_rehearses_while_nobody_waits_for_it_and_only_then() {
    let pool = start(settings(Origin::Fork, true)).await;
    let mut awaited = within(pool.lease_kept()).await.unwrap();
    let before = faults(&awaited);
    assert_eq!(evaluate(&mut awaited, "1+2").await, "3");
    let first = faults(&awaited) - before;
    assert!(first > 20, "the first evaluation of a worker that was waited for finds everything cold: {first} page faults");

    let mut idle = within(pool.lease()).await.unwrap();
    within(async {
        // Nothing else is done with it: what it does was told to it before it was leased.
        while faults(&idle) < before + first / 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    assert_eq!(evaluate(&mut idle, "1+2").await, "3");
    awaited.retire();
    idle.retire();
    within(pool.shutdown()).await;
}

#[tokio::test]
async fn a_worker_that_runs_for_ever_is_seen_to_use_cpu_and_dies_by_the_kill() {
    let pool = start(settings(Origin::Fork, true)).await;
    let mut lease = within(pool.lease()).await.unwrap();
    send(&mut lease, "for (;;) {}", false);
    within(async {
        while lease.cpu_time().is_none_or(|used| used < Duration::from_millis(20)) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    lease.kill();
    let ended = within(lease.ended()).await;
    assert_eq!(ended.fate, Fate::Signalled(9));
    assert!(ended.cpu >= Duration::from_millis(20) && ended.max_rss_bytes > 0, "{ended:?}");
    assert_eq!(lease.cpu_time(), None);
    assert_eq!(pool.stats().nurseries_started, 1);
    within(pool.shutdown()).await;
}

#[tokio::test]
async fn a_crash_from_outside_brings_a_new_generation() {
    use rustix::process::{Signal, pidfd_send_signal};
    let pool = start(settings(Origin::Fork, true)).await;
    for signal in [Signal::SEGV, Signal::ILL, Signal::BUS, Signal::SYS, Signal::ABORT] {
        let before = pool.stats().nurseries_started;
        let mut lease = within(pool.lease()).await.unwrap();
        pidfd_send_signal(lease.watch_for_test(), signal).unwrap();
        assert_eq!(within(lease.ended()).await.fate, Fate::Signalled(u8::try_from(signal.as_raw()).unwrap()));
        let mut next = within(pool.lease()).await.unwrap();
        assert_eq!(evaluate(&mut next, "1+2").await, "3");
        assert_eq!(pool.stats().nurseries_started, before + 1);
    }
    within(pool.shutdown()).await;
}

#[tokio::test]
async fn when_the_nursery_is_killed_its_workers_die_and_the_pool_goes_on() {
    for namespaces in [true, false] {
        let pool = start(settings(Origin::Fork, namespaces)).await;
        let mut lease = within(pool.lease()).await.unwrap();
        send(&mut lease, "for (;;) {}", false);
        let status = std::fs::read_to_string(format!("/proc/{}/status", lease.pid_for_test())).unwrap();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap();
        let nursery = rustix::process::Pid::from_raw(parent).unwrap();
        let handle = rustix::process::pidfd_open(nursery, rustix::process::PidfdFlags::empty()).unwrap();
        spawn::kill(handle.as_fd());
        assert_eq!(within(lease.ended()).await.fate, Fate::Lost);
        assert!(spawn::has_ended(lease.watch_for_test().as_fd()));
        // Ready workers of the lost nursery may be handed out until the loss is seen.
        within(async {
            loop {
                let mut next = pool.lease().await.unwrap();
                send(&mut next, "1+2", false);
                if next.receive().await.is_ok() {
                    break;
                }
            }
        })
        .await;
        within(pool.shutdown()).await;
    }
}

#[tokio::test]
async fn when_a_shutdown_returns_every_process_is_gone() {
    for namespaces in [true, false] {
        let pool = start(settings(Origin::Fork, namespaces)).await;
        let mut leases = Vec::new();
        for _ in 0..8 {
            leases.push(within(pool.lease()).await.unwrap());
        }
        send(&mut leases[0], "for (;;) {}", false);
        let watches: Vec<OwnedFd> = leases.iter().map(Lease::watch_for_test).collect();
        within(pool.shutdown()).await;
        assert!(watches.iter().all(|watch| spawn::has_ended(watch.as_fd())));
    }
}

#[tokio::test]
async fn as_root_each_slot_has_a_user_of_its_own() {
    if !root() {
        return;
    }
    for namespaces in [true, false] {
        let settings = WorkerSettings { uid_range: Some((700_000, 16)), ..settings(Origin::Fork, namespaces) };
        let pool = start(settings).await;
        let mut held = Vec::new();
        for _ in 0..3 {
            let mut lease = within(pool.lease()).await.unwrap();
            assert_eq!(evaluate(&mut lease, "1+2").await, "3");
            held.push(lease);
        }
        assert!(pool.sandbox().layers.iter().any(|layer| layer == "own_uid"));
        within(pool.shutdown()).await;
    }
}

/// Medians over many readings of one worker.
fn time_of_reading(lease: &Lease) -> (Duration, Duration) {
    let pidfd = lease.watch_for_test();
    let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut layers = Layers::none();
    for layer in Layer::ALL.iter().filter(|layer| lease.sandbox().layers.iter().any(|name| name == layer.name())) {
        layers.activate(*layer);
    }
    let scope = Scope { layers, uid: None };
    let (mut each, mut first) = (Vec::new(), Vec::new());
    for _ in 0..500 {
        let begun = Instant::now();
        let mut facts = read_worker(&pidfd, socket.as_fd(), &scope).unwrap();
        each.push(begun.elapsed());
        let begun = Instant::now();
        read_generation(&pidfd, &mut facts, &scope).unwrap();
        first.push(begun.elapsed());
    }
    each.sort();
    first.sort();
    (each[250], first[250])
}

/// Prints what verification costs, and what a lease on a ready worker costs. No figure is
/// asserted: see `benches/` for figures that count.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_reading_back_costs() {
    let pool = start(WorkerSettings { ready: 16, most: 40, ..settings(Origin::Fork, true) }).await;
    let (mut leasing, mut evaluating) = (Vec::new(), Vec::new());
    for _ in 0..300 {
        let begun = Instant::now();
        let mut lease = within(pool.lease()).await.unwrap();
        leasing.push(begun.elapsed());
        assert_eq!(evaluate(&mut lease, "1+2").await, "3");
        evaluating.push(begun.elapsed());
        lease.retire();
    }
    let (each, first) = time_of_reading(&within(pool.lease()).await.unwrap());
    println!("reading back again and again: {each:?} for what each worker has, {first:?} more for what a generation has");
    let stats = pool.stats();
    leasing.sort();
    evaluating.sort();
    println!(
        "reading back: {:?} a worker over {} workers; lease p50 {:?} p99 {:?}; lease and evaluate p50 {:?} p99 {:?}",
        stats.read_back_time / u32::try_from(stats.workers_verified).unwrap(),
        stats.workers_verified,
        leasing[150],
        leasing[297],
        evaluating[150],
        evaluating[297],
    );
    within(pool.shutdown()).await;
}
