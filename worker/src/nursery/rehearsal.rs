//! The rehearsal: a child locks itself down as every worker will, and writes, from behind
//! its last filter, which layers held. Owns: what a nursery may promise. Never: guesses.

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, OwnedFd};

use brig_protocol::control::{Configure, FRAME_MAX, Layer, LayerState, Layers, Origin, Ready, Report, exit};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::getpid;

use super::End;
use super::fork::{self, Side};
use super::namespaces::Entered;
use crate::lockdown::{self, Breach, Limits, Plan, Promise, confine, filter, raw, table::Machine};

/// What was found out.
#[derive(Debug)]
pub(super) struct Found {
    /// State of every layer.
    pub layers: Layers,
    /// Landlock version of the kernel, 0 = none.
    pub landlock_abi: u8,
}

impl Found {
    /// The error number with which a layer is missing, 0 without one.
    pub(super) fn errno_of(&self, layer: Layer) -> u16 {
        match self.layers.get(layer) {
            LayerState::Active => 0,
            LayerState::Missing { errno, .. } => errno,
        }
    }
}

/// Forks the child and reads its report.
///
/// # Errors
/// [`End::Breach`] with the layer that the child could not do without, or with `Seccomp` if
/// it died without a word.
pub(super) fn find_out(config: &Configure, entered: &Entered) -> Result<Found, End> {
    let silent = |errno| End::Breach(Breach::of(Layer::Seccomp, errno));
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).map_err(silent)?;
    let plan = Plan {
        parent: Some(getpid()),
        own_id: entered.ids.of(0).map_err(silent)?.map(lockdown::OwnId::Take),
        limits: Limits::of(config, 0),
        inherited: entered.layers,
        promise: Promise::FindOut,
    };
    let child = match fork::fork().map_err(silent)? {
        Side::Child => perform(theirs, &plan, config.origin),
        Side::Parent(child) => child,
    };
    drop(theirs);
    let mut bytes = [0; FRAME_MAX];
    let read = rustix::io::read(&ours, &mut bytes);
    loop {
        match fork::reap(true).map_err(silent)? {
            Some(reaped) if reaped.pid == child => break,
            _ => {}
        }
    }
    let packet = read.ok().and_then(|length| bytes.get(..length));
    match packet.map(Report::decode) {
        Some(Ok(Report::Ready(ready))) => Ok(Found { layers: ready.layers, landlock_abi: ready.landlock_abi }),
        Some(Ok(Report::Failed { layer, errno })) => Err(End::Breach(Breach { layer, errno })),
        _ => Err(silent(rustix::io::Errno::IO)),
    }
}

/// The child. The socket becomes 3 at once, so that a failure can be told whichever layer
/// it comes from.
fn perform(socket: OwnedFd, plan: &Plan, origin: Origin) -> ! {
    let landlock_abi = raw::landlock_abi().unwrap_or(0);
    let placed = fork::place(socket.as_fd(), 3).and_then(|()| fork::adopt(3));
    std::mem::forget(socket);
    let Ok(socket) = placed else {
        raw::exit_now(exit::LOCKDOWN_FAILED);
    };
    let report = match rehearse(socket, plan, origin) {
        Ok(layers) => Report::Ready(Ready { layers, landlock_abi, pid: 0 }),
        Err(Breach { layer, errno }) => Report::Failed { layer, errno },
    };
    let told = fork::write_3(&report.encode());
    raw::exit_now(match (told, report) {
        (true, Report::Ready(_)) => exit::FINISHED,
        _ => exit::LOCKDOWN_FAILED,
    })
}

/// All filters as in a worker: what the nursery's own would refuse of the lock-down is
/// found out here, not by the first worker.
fn rehearse(socket: OwnedFd, plan: &Plan, origin: Origin) -> Result<Layers, Breach> {
    fork::default_signals().map_err(|errno| Breach::of(Layer::ParentDeath, errno))?;
    super::filter_nursery(origin)?;
    let last = match origin {
        Origin::Fork => filter::small(Machine::NATIVE),
        Origin::Exec => filter::whole(Machine::NATIVE).map_err(|_| super::uncompiled())?,
    };
    let limited = confine(ManuallyDrop::new(socket), plan)?.limit()?;
    limited.seal(&last).map(|sealed| sealed.layers)
}
