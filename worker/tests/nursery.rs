//! The nursery from outside: the control link, what its workers look like to the kernel,
//! and that nothing of it is left when any part of it dies.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

#[path = "../attack/cases.rs"]
#[expect(dead_code, reason = "the attacks that only tests/attack.rs runs")]
mod cases;
#[path = "../attack/supervisor.rs"]
mod supervisor;

use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use brig_protocol::control::{Configure, Kind, Layer, LayerState, Level, Origin, Report, Request, Spawn, WaitStatus, exit};
use cases::{SURVIVED, named};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use supervisor::{Nursery, Worker, configuration, wait_readable};

const ATTACK: &str = env!("CARGO_BIN_EXE_brig-attack");

fn path() -> &'static Path {
    Path::new(ATTACK)
}

fn root() -> bool {
    rustix::process::geteuid().is_root()
}

fn act(name: &str) -> u64 {
    named(name).unwrap().encode()
}

fn ready(config: Configure) -> Nursery {
    Nursery::ready(path(), None, config).unwrap().0
}

fn each_way() -> impl Iterator<Item = Configure> {
    [Origin::Fork, Origin::Exec].into_iter().flat_map(|origin| [true, false].map(|spaces| configuration(origin, spaces)))
}

/// A worker that waits, and has said so: it is sealed.
fn hold(nursery: &mut Nursery, slot: u16) -> Worker {
    let worker = nursery.spawn(slot, act("hold"), 0).unwrap();
    assert_eq!(said(&worker), b"h");
    worker
}

fn said(worker: &Worker) -> Vec<u8> {
    let mut bytes = [0; 4096];
    wait_readable(worker.socket.as_fd()).unwrap();
    let length = rustix::io::read(&worker.socket, &mut bytes).unwrap();
    bytes[..length].to_vec()
}

/// The process behind a handle, as this process sees it.
fn host_pid(handle: &OwnedFd) -> String {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", handle.as_raw_fd()));
    let info = info.unwrap();
    let line = info.lines().find(|line| line.starts_with("Pid:")).unwrap();
    line["Pid:".len()..].trim().to_owned()
}

fn status_of(pid: &str, field: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line[field.len() + 1..].trim().to_owned()
}

fn entries(path: &str) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn makes_workers(origin: Origin) {
    for spaces in [true, false] {
        let mut nursery = ready(configuration(origin, spaces));
        for generation in 0..3 {
            let worker = nursery.spawn(generation, act("hold"), 0).unwrap();
            assert_eq!(said(&worker), b"h");
            assert!(worker.pid >= 2);
            drop(worker.socket);
            let exited = nursery.exited().unwrap();
            assert_eq!((exited.slot, exited.generation), (generation, act("hold")));
            assert_eq!(exited.status, WaitStatus::Code(SURVIVED));
            assert!(exited.max_rss_kb > 0);
        }
        assert_eq!(nursery.close().unwrap().code(), Some(0));
    }
}

#[test]
fn a_forking_nursery_makes_workers() {
    makes_workers(Origin::Fork);
}

#[test]
fn an_execing_nursery_makes_workers() {
    makes_workers(Origin::Exec);
}

#[test]
fn a_worker_says_the_layers_that_the_nursery_promised() {
    for config in each_way() {
        let (mut nursery, promise) = Nursery::ready(path(), None, config).unwrap();
        let worker = nursery.spawn(0, act("layers"), 0).unwrap();
        let held: Vec<&str> = Layer::ALL.iter().filter(|layer| promise.layers.has(**layer)).map(|layer| layer.name()).collect();
        let level = promise.layers.level().unwrap().name();
        let told = String::from_utf8(said(&worker)).unwrap();
        assert_eq!(told, format!("{level}:{}", held.join(",")));
    }
}

#[test]
fn the_kernel_confirms_what_a_worker_is() {
    for config in each_way() {
        let (mut nursery, promise) = Nursery::ready(path(), None, config).unwrap();
        let worker = hold(&mut nursery, 0);
        let pid = host_pid(&worker.handle);
        assert_eq!(status_of(&pid, "Seccomp:"), "2");
        assert_eq!(status_of(&pid, "NoNewPrivs:"), "1");
        for set in ["CapEff:", "CapPrm:", "CapInh:", "CapAmb:"] {
            assert_eq!(status_of(&pid, set), "0000000000000000", "{set}");
        }
        assert_eq!(status_of(&pid, "Threads:"), "1");
        assert_eq!(status_of(&pid, "SigCgt:"), "0000000000000000");
        assert_eq!(status_of(&pid, "SigBlk:"), "0000000000000000");
        if root() {
            looks_inside(&pid, &promise.layers);
        }
    }
}

/// What only root may look at: the process is not dumpable.
fn looks_inside(pid: &str, layers: &brig_protocol::control::Layers) {
    assert_eq!(entries(&format!("/proc/{pid}/fd")), ["3"]);
    assert!(std::fs::read(format!("/proc/{pid}/environ")).unwrap().is_empty());
    let spaces = [
        ("user", Layer::UserNamespace),
        ("mnt", Layer::MountNamespace),
        ("net", Layer::NetNamespace),
        ("ipc", Layer::IpcNamespace),
        ("uts", Layer::UtsNamespace),
        ("pid", Layer::PidNamespace),
        ("cgroup", Layer::CgroupNamespace),
    ];
    for (space, layer) in spaces {
        let of = |who: &str| std::fs::read_link(format!("/proc/{who}/ns/{space}")).unwrap();
        assert_eq!(of(pid) != of("self"), layers.has(layer), "{space}");
    }
    if layers.has(Layer::EmptyRoot) {
        assert_eq!(entries(&format!("/proc/{pid}/root/")), Vec::<String>::new());
    }
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    for zero in ["core file size", "file size", "processes", "locked memory", "msgqueue size"] {
        let line = limits.lines().find(|line| line.contains(&format!("Max {zero} ")));
        let words: Vec<&str> = line.unwrap().split_whitespace().collect();
        assert_eq!(words.iter().filter(|word| **word == "0").count(), 2, "{zero}");
    }
}

#[test]
fn three_hundred_workers_have_three_hundred_seeds() {
    for (origin, workers) in [(Origin::Fork, 300), (Origin::Exec, 20)] {
        let mut nursery = ready(configuration(origin, true));
        let mut seeds = BTreeSet::new();
        for _ in 0..workers {
            let worker = nursery.spawn(0, act("seed"), 0).unwrap();
            let seed = said(&worker);
            assert_eq!(seed.len(), 64);
            assert!(seeds.insert(seed));
            nursery.exited().unwrap();
        }
        assert_eq!(seeds.len(), workers);
    }
}

#[test]
fn as_root_each_slot_has_its_own_user() {
    if !root() {
        return;
    }
    for mut config in each_way() {
        (config.uid_base, config.uid_count) = (700_000, 4);
        let (mut nursery, promise) = Nursery::ready(path(), None, config).unwrap();
        assert!(promise.layers.has(Layer::OwnUid));
        let workers: Vec<Worker> = (0..3).map(|slot| hold(&mut nursery, slot)).collect();
        for (slot, worker) in workers.iter().enumerate() {
            let id = (700_001 + slot).to_string();
            let ids = status_of(&host_pid(&worker.handle), "Uid:");
            assert_eq!(ids.split_whitespace().collect::<Vec<_>>(), [id.as_str(); 4]);
            let ids = status_of(&host_pid(&worker.handle), "Gid:");
            assert_eq!(ids.split_whitespace().collect::<Vec<_>>(), [id.as_str(); 4]);
            assert_eq!(status_of(&host_pid(&worker.handle), "Groups:"), "");
        }
        let nurserys = status_of(&promise.pid.to_string(), "Uid:");
        assert!(nurserys.starts_with("700000"), "{nurserys}");
        assert_eq!(refusal(&mut nursery, 3), rustix::io::Errno::INVAL);
    }
}

fn request(slot: u16) -> Vec<u8> {
    Request::Spawn(Spawn { slot, generation: act("hold"), cpu_ms: 0, kind: Kind::Once }).encode()
}

fn refusal(nursery: &mut Nursery, slot: u16) -> rustix::io::Errno {
    nursery.send(&request(slot), &[]).unwrap();
    match nursery.report().unwrap() {
        Some((Report::SpawnFailed { slot: of, errno, .. }, strays)) => {
            assert_eq!((of, strays.len()), (slot, 0));
            assert_ne!(errno, 0);
            rustix::io::Errno::from_raw_os_error(errno.into())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_slot_holds_one_living_worker() {
    let mut nursery = ready(configuration(Origin::Fork, true));
    let first = hold(&mut nursery, 7);
    assert_eq!(refusal(&mut nursery, 7), rustix::io::Errno::BUSY);
    drop(first);
    nursery.exited().unwrap();
    hold(&mut nursery, 7);
}

#[test]
fn a_worker_without_a_handle_is_killed() {
    // Taking descriptors away from a nursery that hides from its own user needs root.
    if !root() {
        return;
    }
    let (mut nursery, promise) = Nursery::ready(path(), None, configuration(Origin::Fork, true)).unwrap();
    let pid = Pid::from_raw(promise.pid.try_into().unwrap());
    // Enough for the pair of sockets, not for the handle.
    let two = rustix::process::Rlimit { current: Some(2), maximum: Some(64) };
    rustix::process::prlimit(pid, rustix::process::Resource::Nofile, two).unwrap();
    assert_eq!(refusal(&mut nursery, 0), rustix::io::Errno::MFILE);
    let many = rustix::process::Rlimit { current: Some(64), maximum: Some(64) };
    rustix::process::prlimit(pid, rustix::process::Resource::Nofile, many).unwrap();
    let worker = hold(&mut nursery, 0);
    // Only this one is left: the other was reaped without a word.
    let children = format!("/proc/{0}/task/{0}/children", promise.pid);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    let expected = host_pid(&worker.handle);
    while std::fs::read_to_string(&children).unwrap().trim() != expected {
        assert!(std::time::Instant::now() < deadline, "the other is not reaped");
        std::thread::yield_now();
    }
}

#[test]
fn a_spawn_can_not_ask_for_more_cpu_time_than_configured() {
    let mut config = configuration(Origin::Fork, true);
    config.cpu_ms = 100;
    let mut nursery = ready(config);
    nursery.spawn(0, act("spin"), 3_600_000).unwrap();
    let exited = nursery.exited().unwrap();
    assert_eq!(exited.status, WaitStatus::Signal(9));
    let used = exited.user_us + exited.system_us;
    assert!((50_000..3_000_000).contains(&used), "{used} microseconds");
}

#[test]
fn too_low_a_level_is_refused_and_named() {
    let mut config = configuration(Origin::Fork, false);
    config.required = Level::Full;
    let mut nursery = Nursery::start(path(), None).unwrap();
    nursery.send(&Request::Configure(config).encode(), &[]).unwrap();
    match nursery.report().unwrap() {
        Some((Report::Failed { layer, .. }, _)) => assert_eq!(layer, Layer::UserNamespace),
        other => panic!("{other:?}"),
    }
    assert!(nursery.report().unwrap().is_none());
    let code = nursery.close().unwrap().code();
    assert_eq!(code, Some(exit::LOCKDOWN_FAILED.into()));
}

#[test]
fn switched_off_namespaces_are_reported_as_that() {
    let (_nursery, promise) = Nursery::ready(path(), None, configuration(Origin::Fork, false)).unwrap();
    for layer in Layer::ALL.iter().filter(|layer| layer.is_namespace()) {
        assert!(matches!(promise.layers.get(*layer), LayerState::Missing { cause: brig_protocol::control::Cause::SwitchedOff, errno: 0 }));
    }
}

/// Sends what no supervisor would, to a nursery that is ready or not yet.
fn ends_of(what: &[u8], descriptors: usize, configured: bool) -> Option<i32> {
    let mut nursery = if configured { ready(configuration(Origin::Fork, true)) } else { Nursery::start(path(), None).unwrap() };
    let strays: Vec<OwnedFd> = (0..descriptors).map(|_| rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap()).collect();
    let strays: Vec<_> = strays.iter().map(AsFd::as_fd).collect();
    nursery.send(what, &strays).unwrap();
    assert!(nursery.report().unwrap().is_none(), "it answered {what:?}");
    nursery.close().unwrap().code()
}

#[test]
fn a_frame_that_is_none_ends_the_nursery() {
    let configure = Request::Configure(configuration(Origin::Fork, true)).encode();
    let mut long = request(0);
    long.resize(500, 0);
    let frames: [(&[u8], bool); 8] = [
        (&[2], true),
        (&[0; 128], true),
        (&request(0)[..5], true),
        (&long, true),
        (&configure, true),
        (&request(0), false),
        (&configure[..9], false),
        (&[255; 4], false),
    ];
    for (frame, configured) in frames {
        let end = ends_of(frame, 0, configured);
        assert_eq!(end, Some(exit::PROTOCOL.into()), "{frame:?} {configured}");
    }
}

#[test]
fn stray_descriptors_end_the_nursery() {
    let configure = Request::Configure(configuration(Origin::Fork, true)).encode();
    for descriptors in [1, 4, 8] {
        assert_eq!(ends_of(&request(0), descriptors, true), Some(exit::PROTOCOL.into()));
        assert_eq!(ends_of(&configure, descriptors, false), Some(exit::PROTOCOL.into()));
    }
}

fn gone(handle: &OwnedFd) {
    wait_readable(handle.as_fd()).unwrap();
}

fn open(pid: u32) -> OwnedFd {
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    pidfd_open(pid, PidfdFlags::empty()).unwrap()
}

#[test]
fn the_death_of_the_waiting_process_leaves_nothing() {
    for config in each_way() {
        let (mut nursery, promise) = Nursery::ready(path(), None, config).unwrap();
        let workers: Vec<Worker> = (0..3).map(|slot| hold(&mut nursery, slot)).collect();
        let inner = open(promise.pid);
        let outer = open(nursery.process.id());
        pidfd_send_signal(&outer, Signal::KILL).unwrap();
        nursery.process.wait().unwrap();
        gone(&inner);
        workers.iter().for_each(|worker| gone(&worker.handle));
    }
}

#[test]
fn the_death_of_the_nursery_leaves_nothing() {
    for config in each_way() {
        let (mut nursery, promise) = Nursery::ready(path(), None, config).unwrap();
        let workers: Vec<Worker> = (0..3).map(|slot| hold(&mut nursery, slot)).collect();
        let inner = open(promise.pid);
        pidfd_send_signal(&inner, Signal::KILL).unwrap();
        workers.iter().for_each(|worker| gone(&worker.handle));
        assert!(nursery.report().unwrap().is_none());
        let _status = nursery.process.wait().unwrap();
    }
}

#[test]
fn closing_the_link_ends_everything() {
    for config in each_way() {
        let mut nursery = ready(config);
        let workers: Vec<Worker> = (0..3).map(|slot| hold(&mut nursery, slot)).collect();
        assert_eq!(nursery.close().unwrap().code(), Some(0));
        workers.iter().for_each(|worker| gone(&worker.handle));
    }
}

#[test]
fn a_nursery_dies_with_the_thread_that_started_it() {
    let start = || {
        let (mut nursery, _) = Nursery::ready(path(), None, configuration(Origin::Fork, true)).unwrap();
        let worker = hold(&mut nursery, 0);
        (nursery, worker)
    };
    let (mut nursery, worker) = std::thread::spawn(start).join().unwrap();
    gone(&worker.handle);
    assert!(nursery.report().unwrap().is_none());
}

#[test]
fn a_stopped_worker_can_be_killed_by_its_handle() {
    let mut nursery = ready(configuration(Origin::Fork, true));
    let worker = hold(&mut nursery, 0);
    pidfd_send_signal(&worker.handle, Signal::STOP).unwrap();
    pidfd_send_signal(&worker.handle, Signal::KILL).unwrap();
    assert_eq!(nursery.exited().unwrap().status, WaitStatus::Signal(9));
}

#[test]
fn exits_that_come_together_are_all_reported() {
    let mut nursery = ready(configuration(Origin::Fork, true));
    let workers: Vec<Worker> = (0..20).map(|slot| hold(&mut nursery, slot)).collect();
    drop(workers);
    let slots: BTreeSet<u16> = (0..20).map(|_| nursery.exited().unwrap().slot).collect();
    assert_eq!(slots.len(), 20);
}
