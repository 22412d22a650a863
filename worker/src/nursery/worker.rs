//! The worker's side of its making: from the fork (or the start of its image) through the
//! lock-down to the engine's entry points. Owns: the order of those. Never: returns.

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, OwnedFd};

use brig_protocol::control::{Configure, Layers, Spawn, exit};
use rustix::io::Errno;
use rustix::process::Pid;
use seccompiler::BpfProgram;

use super::fork;
use super::handover::Handover;
use super::{Program, WorkerFacts};
use crate::lockdown::{self, Breach, Confined, Limits, OwnId, Plan, Promise, confine, filter, raw, table::Machine};

/// What the nursery decided about one worker.
#[derive(Debug, Clone, Copy)]
pub(super) struct Birth {
    pub config: Configure,
    pub spawn: Spawn,
    pub inherited: Layers,
    pub found: Layers,
    pub own_id: Option<u32>,
    pub parent: Pid,
}

impl Birth {
    fn plan(&self, own_id: Option<OwnId>) -> Plan {
        Plan {
            parent: Some(self.parent),
            own_id,
            limits: Limits::of(&self.config, self.spawn.cpu_ms),
            inherited: self.inherited,
            promise: Promise::Keep(self.found),
        }
    }
}

/// A copy's life, right after the fork.
pub(super) fn live_as_copy<W>(birth: &Birth, socket: OwnedFd, realm: W, small: &BpfProgram, program: Program<W>) -> ! {
    let plan = birth.plan(birth.own_id.map(OwnId::Take));
    let ready = fork::default_signals().map_err(breach_of_start).and_then(|()| confine(ManuallyDrop::new(socket), &plan));
    match ready {
        Ok(confined) => live(birth, confined, realm, small, program),
        Err(breach) => fail(breach),
    }
}

/// A copy on its way to a fresh image: own id first, then the four descriptors that the
/// image starts with, then `execveat`.
pub(super) fn become_image(birth: &Birth, socket: &OwnedFd, image: &OwnedFd) -> ! {
    if hand_over(birth, socket).is_ok() {
        fork::exec_image(image.as_fd(), c"brig-worker", c"worker");
    }
    raw::exit_now(exit::LOCKDOWN_FAILED)
}

fn hand_over(birth: &Birth, socket: &OwnedFd) -> Result<(), Errno> {
    fork::default_signals()?;
    if let Some(id) = birth.own_id {
        lockdown::take_ids(id)?;
    }
    lockdown::drop_capabilities()?;
    let bytes = Handover {
        config: birth.config,
        spawn: birth.spawn,
        inherited: birth.inherited,
        found: birth.found,
        own_id: birth.own_id.unwrap_or(0),
        parent: birth.parent.as_raw_nonzero().get().unsigned_abs(),
    }
    .encode();
    // All of these sit above 3, so that no placing overwrites one that is still needed.
    let socket = above_3(socket)?;
    let (facts, tell) = raised_pipe()?;
    rustix::io::write(&tell, &bytes)?;
    fork::place(facts.as_fd(), 0)?;
    for number in 1..=3 {
        fork::place(socket.as_fd(), number)?;
    }
    // The write end closes with the exec: the image reads to the end.
    std::mem::forget((facts, tell, socket));
    Ok(())
}

fn raised_pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (facts, tell) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    Ok((above_3(&facts)?, above_3(&tell)?))
}

fn above_3(fd: &OwnedFd) -> Result<OwnedFd, Errno> {
    rustix::io::fcntl_dupfd_cloexec(fd, 4)
}

/// The life of a fresh image: facts on 0, its socket on 1, 2 and 3.
pub fn image_main<W>(program: Program<W>) -> ! {
    let (facts, socket) = match (fork::adopt(0), fork::adopt(3)) {
        (Ok(facts), Ok(socket)) => (facts, socket),
        _ => raw::exit_now(exit::USAGE),
    };
    let Some(handover) = read_to_end(&facts) else {
        raw::exit_now(exit::USAGE);
    };
    std::mem::forget(facts);
    let Some(parent) = i32::try_from(handover.parent).ok().and_then(Pid::from_raw) else {
        raw::exit_now(exit::USAGE);
    };
    let birth = Birth {
        config: handover.config,
        spawn: handover.spawn,
        inherited: handover.inherited,
        found: handover.found,
        own_id: (handover.own_id != 0).then_some(handover.own_id),
        parent,
    };
    let plan = birth.plan(birth.own_id.map(OwnId::Taken));
    let ready = fork::default_signals()
        .map_err(breach_of_start)
        .and_then(|()| filter::whole(Machine::NATIVE).map_err(|_| super::uncompiled()))
        .and_then(|whole| Ok((whole, confine(ManuallyDrop::new(socket), &plan)?)));
    match ready {
        Ok((whole, confined)) => {
            let realm = (program.warm)(&birth.config);
            live(&birth, confined, realm, &whole, program)
        }
        Err(breach) => fail(breach),
    }
}

fn read_to_end(facts: &OwnedFd) -> Option<Handover> {
    let mut bytes = [0; 4096];
    let mut length = 0;
    loop {
        match rustix::io::read(facts, bytes.get_mut(length..)?) {
            Ok(0) => return Handover::decode(bytes.get(..length)?).ok(),
            Ok(more) => length += more,
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// From the confined process to the guest's: limits, own randomness, seal, run.
fn live<W>(birth: &Birth, confined: Confined, mut realm: W, last_filter: &BpfProgram, program: Program<W>) -> ! {
    let limited = match confined.limit() {
        Ok(limited) => limited,
        Err(breach) => fail(breach),
    };
    let layers = limited.layers();
    let facts = match layers.level() {
        Ok(level) if level >= birth.config.required => WorkerFacts {
            layers,
            level,
            seed: *limited.seed(),
            slot: birth.spawn.slot,
            generation: birth.spawn.generation,
            kind: birth.spawn.kind,
            heap_bytes: birth.config.heap_bytes,
            stack_bytes: birth.config.stack_bytes,
            cpu_ms: Limits::of(&birth.config, birth.spawn.cpu_ms).cpu_ms,
        },
        _ => raw::exit_now(exit::LOCKDOWN_FAILED),
    };
    (program.own)(&mut realm, &facts);
    match limited.seal(last_filter) {
        Ok(sealed) => (program.run)(realm, ManuallyDrop::into_inner(sealed.socket), &facts),
        Err(breach) => fail(breach),
    }
}

fn breach_of_start(errno: Errno) -> Breach {
    Breach::of(brig_protocol::control::Layer::ParentDeath, errno)
}

/// No guest code runs in a process that is not locked down.
fn fail(_breach: Breach) -> ! {
    raw::exit_now(exit::LOCKDOWN_FAILED)
}
