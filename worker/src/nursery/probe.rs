//! `brig-worker probe`: what this host allows, found out by doing it all in throw-away
//! children. Owns: one JSON object on standard output. Never: a guess, a guest.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};

use brig_protocol::control::{Cause, Configure, FRAME_MAX, LayerState, Layers, Level, Origin, Report, Request, exit};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use serde_json::{Map, Value, json};

use super::fork::{self, Side};
use super::{Program, WorkerFacts, main as nursery_main};
use crate::lockdown::raw;

/// Runs a nursery in a child up to its readiness, prints what it found, and ends.
pub fn main() -> ! {
    let code = match report() {
        Some(report) => {
            let object = describe(&report);
            match writeln!(std::io::stdout(), "{object}") {
                Ok(()) => exit::FINISHED,
                Err(_) => exit::PARENT_GONE,
            }
        }
        None => exit::LOCKDOWN_FAILED,
    };
    raw::exit_now(code)
}

/// The most that could be asked for; what is missing is what the answer is about.
fn configuration() -> Configure {
    Configure {
        origin: Origin::Fork,
        namespaces: true,
        required: Level::Minimal,
        heap_bytes: 64 << 20,
        stack_bytes: 8 << 20,
        address_space_bytes: 512 << 20,
        cpu_ms: 1000,
        uid_base: 0,
        uid_count: 0,
    }
}

fn report() -> Option<Report> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).ok()?;
    match fork::fork().ok()? {
        Side::Child => as_nursery(&theirs),
        Side::Parent(_) => drop(theirs),
    }
    let request = Request::Configure(configuration()).encode();
    rustix::io::write(&ours, &request).ok()?;
    let mut bytes = [0; FRAME_MAX];
    let length = rustix::io::read(&ours, &mut bytes).ok()?;
    let report = Report::decode(bytes.get(..length)?).ok();
    drop(ours);
    // The nursery sees the link close; its end is not waited for longer than that takes.
    fork::reap(true).ok()?;
    report
}

fn as_nursery(link: &OwnedFd) -> ! {
    if fork::place(link.as_fd(), 0).is_err() {
        raw::exit_now(exit::LOCKDOWN_FAILED);
    }
    nursery_main(Program {
        warm: |_: &Configure| (),
        own: |(), _: &WorkerFacts| (),
        run: |(), _, _: &WorkerFacts| raw::exit_now(exit::FINISHED),
    })
}

/// The object: level, Landlock's version, and each layer as `"active"` or why it is not.
fn describe(report: &Report) -> Value {
    match report {
        Report::Ready(ready) => json!({
            "level": ready.layers.level().ok().map(Level::name),
            "landlockAbi": ready.landlock_abi,
            "layers": describe_layers(&ready.layers),
        }),
        Report::Failed { layer, errno } => json!({
            "level": Value::Null,
            "failed": {"layer": layer.name(), "errno": errno},
        }),
        _ => json!({"level": Value::Null}),
    }
}

fn describe_layers(layers: &Layers) -> Map<String, Value> {
    layers
        .iter()
        .map(|(layer, state)| {
            let state = match state {
                LayerState::Active => json!("active"),
                LayerState::Missing { cause, errno } => {
                    json!({"missing": cause_name(cause), "errno": errno})
                }
            };
            (layer.name().to_owned(), state)
        })
        .collect()
}

fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::SwitchedOff => "switched_off",
        Cause::Unsupported => "unsupported",
        Cause::Refused => "refused",
        Cause::NeedsRoot => "needs_root",
        Cause::NoProc => "no_proc",
        Cause::NotTried => "not_tried",
    }
}
