//! (e) The making of a worker, step by step: the bench plays the supervisor and speaks to a
//! real nursery.

use crate::Size;
use crate::report::{Report, figures};
use brig_protocol::control::{Configure, Kind, Level, Origin, Report as Said, Request, Spawn};
use brig_protocol::worker::{EvaluateOrder, evaluate_frame, rehearse_frame};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags, SocketFlags, SocketType, recvmsg, send,
};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::Instant;

/// What a packet said, with its descriptors.
fn receive(link: &OwnedFd) -> (Said, Vec<OwnedFd>) {
    let mut bytes = [0u8; 256];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(link, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, RecvFlags::CMSG_CLOEXEC).expect("a packet");
    assert!(!received.flags.contains(ReturnFlags::CTRUNC), "too many descriptors");
    let descriptors = ancillary
        .drain()
        .flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(rights) => rights.collect::<Vec<_>>(),
            _ => Vec::new(),
        })
        .collect();
    let packet = bytes.get(..received.bytes).expect("within the buffer");
    (Said::decode(packet).expect("a report"), descriptors)
}

fn say(link: &OwnedFd, request: Request) {
    send(link, &request.encode(), SendFlags::empty()).expect("the nursery reads");
}

fn configure(origin: Origin) -> Configure {
    Configure {
        origin,
        namespaces: true,
        required: Level::Strong,
        heap_bytes: 64 << 20,
        stack_bytes: 8 << 20,
        address_space_bytes: 256 << 20,
        cpu_ms: 10_000,
        uid_base: 0,
        uid_count: 0,
    }
}

/// Waits for the worker's first frame: it is locked down and takes an order.
fn first_frame(socket: &OwnedFd) {
    let mut buffer = [0u8; 4096];
    let length = rustix::io::read(socket, &mut buffer).expect("the worker says that it is ready");
    assert!(length > 0, "the worker died");
}

/// The two messages that a worker waits for when it is ready, as frames.
struct Words {
    rehearse: Vec<u8>,
    evaluate: Vec<u8>,
}

impl Words {
    fn new() -> Self {
        let (rehearse, evaluate) = (rehearse_frame(), evaluate_frame(1, &EvaluateOrder::of("1+2")));
        Self { rehearse: rehearse.expect("a short frame"), evaluate: evaluate.expect("a short frame") }
    }
}

/// Sends what a worker is to do, and waits for the answer of the program at its end.
fn answered(socket: &OwnedFd, words: &[&[u8]]) {
    for word in words {
        rustix::io::write(socket, word).expect("the worker takes it");
    }
    let mut buffer = [0u8; 4096];
    let length = rustix::io::read(socket, &mut buffer).expect("the worker answers");
    let answer = String::from_utf8_lossy(buffer.get(..length).unwrap_or_default());
    assert!(answer.contains("\"value\":3"), "{answer}");
}

pub(crate) fn steps(size: Size, report: &mut Report) {
    for (name, origin, runs) in [("fork", Origin::Fork, size.long), ("exec", Origin::Exec, size.long / 4)] {
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).expect("a socket pair");
        let start = Instant::now();
        let mut child = Command::new(acceptance::binary("brig-worker"))
            .arg("nursery")
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the nursery");
        say(&ours, Request::Configure(configure(origin)));
        assert!(matches!(receive(&ours).0, Said::Ready(_)), "the nursery did not get ready");
        report.row(&format!("(e) {name}: nursery, exec to ready (namespaces, rehearsal, engine)"), figures(vec![start.elapsed()]));
        let words = Words::new();
        let (mut forked, mut ready, mut cold, mut rehearsed, mut gone) = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for generation in 1..=u64::try_from(runs.max(10)).unwrap_or(10) {
            let start = Instant::now();
            say(&ours, Request::Spawn(Spawn { slot: 0, generation, cpu_ms: 0, kind: Kind::Once }));
            let (said, descriptors) = receive(&ours);
            assert!(matches!(said, Said::Spawned(_)), "{said:?}");
            forked.push(start.elapsed());
            let socket = descriptors.get(1).expect("a pidfd and a socket");
            first_frame(socket);
            ready.push(start.elapsed());
            // In turn: one that somebody waited for, and one that nobody did.
            if generation % 2 == 0 {
                answered(socket, &[&words.evaluate]);
                cold.push(start.elapsed());
            } else {
                answered(socket, &[&words.rehearse, &words.evaluate]);
                rehearsed.push(start.elapsed());
            }
            let start = Instant::now();
            drop(descriptors);
            assert!(matches!(receive(&ours).0, Said::Exited(_)), "the worker was not reaped");
            gone.push(start.elapsed());
        }
        report.row(&format!("(e) {name}: asked to forked and handed over"), figures(forked));
        report.row(&format!("(e) {name}: asked to ready (locked down, takes an order)"), figures(ready));
        report.row(&format!("(e) {name}: asked to the answer of `1+2`, not rehearsed"), figures(cold));
        report.row(&format!("(e) {name}: asked to the answer of `1+2`, rehearsed before it"), figures(rehearsed));
        report.row(&format!("(e) {name}: hung up to reaped"), figures(gone));
        drop(ours);
        child.wait().expect("the nursery ends");
    }
}
