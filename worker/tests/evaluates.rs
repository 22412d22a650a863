//! The engine behind the lock-down: programs run in sealed workers of the real binary.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../attack/supervisor.rs"]
#[expect(dead_code, reason = "the parts that only tests/nursery.rs uses")]
mod supervisor;

use std::os::fd::AsFd;
use std::path::Path;

use brig_protocol::control::{Configure, Origin, WaitStatus, exit};
use brig_protocol::frame::{BODY_BYTES, FrameDecoder};
use brig_protocol::worker::{EvaluateOrder, FromWorker, evaluate_frame, read_from_worker};
use supervisor::{Nursery, Worker, configuration, wait_readable};

fn ready(config: Configure) -> Nursery {
    Nursery::ready(Path::new(env!("CARGO_BIN_EXE_brig-worker")), None, config).unwrap().0
}

fn each_way() -> impl Iterator<Item = Configure> {
    [Origin::Fork, Origin::Exec].into_iter().flat_map(|origin| [true, false].map(|spaces| configuration(origin, spaces)))
}

/// Runs one program; the debug text of how it finished, or nothing if the worker died.
fn evaluate(worker: &Worker, source: &str) -> Option<String> {
    let frame = evaluate_frame(1, &EvaluateOrder::of(source)).unwrap();
    assert_eq!(rustix::io::write(&worker.socket, &frame), Ok(frame.len()));
    let mut decoder = FrameDecoder::new(BODY_BYTES);
    loop {
        while let Some(body) = decoder.next_frame().unwrap() {
            match read_from_worker(body).unwrap() {
                FromWorker::Finished { finished, .. } => return Some(format!("{finished:?}")),
                FromWorker::Ready(said) => assert!(said.layers.iter().any(|layer| layer == "seccomp")),
                _ => {}
            }
        }
        let mut bytes = [0; 4096];
        wait_readable(worker.socket.as_fd()).unwrap();
        match rustix::io::read(&worker.socket, &mut bytes) {
            Ok(0) | Err(_) => return None,
            Ok(length) => decoder.feed(bytes.get(..length).unwrap()),
        }
    }
}

#[test]
fn a_sealed_worker_evaluates_and_ends_as_planned() {
    for config in each_way() {
        let mut nursery = ready(config);
        for slot in 0..3 {
            let worker = nursery.spawn(slot, 1, 0).unwrap();
            let finished = evaluate(&worker, "return [1 + 2, new Date(0).toString(), Math.random() < 1]").unwrap();
            assert!(finished.contains("[3,") && finished.contains("true]"), "{finished}");
            drop(worker);
            assert_eq!(nursery.exited().unwrap().status, WaitStatus::Code(exit::FINISHED));
        }
    }
}

#[test]
fn random_numbers_differ_from_copy_to_copy() {
    let mut nursery = ready(configuration(Origin::Fork, true));
    let mut seen = std::collections::BTreeSet::new();
    for slot in 0..300 {
        let worker = nursery.spawn(slot % 8, slot.into(), 0).unwrap();
        let finished = evaluate(&worker, "return [Math.random(), Math.random()]").unwrap();
        let value = finished.split("value").nth(1).unwrap().split(']').next().unwrap().to_owned();
        assert!(seen.insert(value.clone()), "{value} came twice");
        drop(worker);
        nursery.exited().unwrap();
    }
}

#[test]
fn memory_in_all_forms_ends_the_worker_by_its_code() {
    let hogs = [
        "const all = []; for (;;) all.push(new Array(1000).fill(1))",
        "let text = 'x'; for (;;) text += text + text",
        "const all = []; for (;;) all.push(new ArrayBuffer(1 << 20))",
        "const all = new Map(); for (let i = 0; ; i++) all.set(i, {i})",
    ];
    for config in each_way() {
        let mut nursery = ready(config);
        for hog in hogs {
            let worker = nursery.spawn(0, 1, 0).unwrap();
            let finished = evaluate(&worker, hog);
            drop(worker);
            let status = nursery.exited().unwrap().status;
            let by_limit = status == WaitStatus::Code(exit::HEAP_LIMIT);
            assert!(by_limit || finished.is_some_and(|text| text.contains("RangeError") || text.contains("string")), "{hog}: {status:?}");
        }
    }
}

#[test]
fn cpu_time_that_no_interrupt_reaches_is_ended_by_the_kernel() {
    let mut nursery = ready(configuration(Origin::Fork, true));
    let worker = nursery.spawn(0, 1, 100).unwrap();
    let endless = "Array.prototype.indexOf.call({length: Number.MAX_SAFE_INTEGER}, 1)";
    assert_eq!(evaluate(&worker, endless), None);
    assert_eq!(nursery.exited().unwrap().status, WaitStatus::Signal(9));
}
