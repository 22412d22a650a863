//! Namespaces and the empty root. Owns: the whole sequence, and the throw-away child that
//! tries it first. Never: half a sequence that is called a success.
//!
//! Tried as a whole, because a security module may let `unshare` succeed and then refuse
//! everything that it was for.

use std::os::fd::OwnedFd;

use brig_protocol::control::{Cause, Configure, Layer, LayerState, Layers, WaitStatus, exit};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, getegid, geteuid, getpid, getppid};

use super::fork::{self, Side};
use super::link::{self, Link};
use super::slots::{NOBODY, SlotIds};
use super::{End, bind_to_supervisor};
use crate::lockdown::{self, Breach, filter, of_nix, raw, table::Machine};

/// Where the nursery is now.
#[derive(Debug)]
pub(super) struct Entered {
    /// State of the namespace layers and the root; the others are not tried yet.
    pub layers: Layers,
    /// Which ids slots get.
    pub ids: SlotIds,
    /// The nursery's process id outside.
    pub host_pid: u32,
    parent: Parent,
}

#[derive(Debug)]
enum Parent {
    /// The supervisor, which holds the other end of the link.
    Supervisor,
    /// N0, which holds the other end of this pipe.
    Waiter(OwnedFd),
}

impl Entered {
    /// Whether the process that this one must die with is still there. N0 can not be asked
    /// for by id from within the pid namespace, but its end of the pipe closes with it.
    pub(super) fn parent_lives(&self, link: &Link) -> bool {
        match &self.parent {
            Parent::Supervisor => !link.hung_up(),
            Parent::Waiter(pipe) => !link::hung_up(std::os::fd::AsFd::as_fd(pipe)),
        }
    }
}

/// The layers that one sequence gives.
#[derive(Debug, Clone, Copy)]
struct Sequence {
    user: bool,
    mapping: Mapping,
}

#[derive(Debug, Clone, Copy)]
enum Mapping {
    /// Nobody inside is the user outside.
    Own { user: u32, group: u32 },
    /// Nobody inside is the first of the range, slots are the rest.
    Range { base: u32, count: u32 },
}

/// Takes what namespaces there are. Returns in the process that is the nursery from now on.
///
/// # Errors
/// [`End::Breach`] when a sequence that the probe went through fails for real.
pub(super) fn enter(config: &Configure, link: &Link) -> Result<Entered, End> {
    let mut layers = Layers::none();
    if !config.namespaces {
        mark(&mut layers, missing(Cause::SwitchedOff, None));
        return Ok(outside(config, layers));
    }
    if !std::path::Path::new("/proc/self/uid_map").exists() {
        mark(&mut layers, missing(Cause::NoProc, Some(Errno::NOENT)));
        return Ok(outside(config, layers));
    }
    let mut first_refusal = None;
    for sequence in candidates(config) {
        match probe(sequence) {
            Ok(()) => return inside(config, link, sequence, first_refusal),
            Err(errno) => first_refusal = first_refusal.or(Some(errno)),
        }
    }
    let errno = first_refusal.unwrap_or(Errno::PERM);
    mark(&mut layers, missing(lockdown::cause_of(errno), Some(errno)));
    Ok(outside(config, layers))
}

fn missing(cause: Cause, errno: Option<Errno>) -> LayerState {
    let errno = errno.map_or(0, lockdown::number);
    LayerState::Missing { cause, errno }
}

fn mark(layers: &mut Layers, state: LayerState) {
    for layer in Layer::ALL.iter().filter(|layer| layer.is_namespace()) {
        layers.set(*layer, state);
    }
}

fn outside(config: &Configure, layers: Layers) -> Entered {
    Entered { layers, ids: SlotIds::real(config), host_pid: getpid().as_raw_nonzero().get().unsigned_abs(), parent: Parent::Supervisor }
}

/// With a user namespace; and for root, where those are refused, without.
fn candidates(config: &Configure) -> Vec<Sequence> {
    let root = geteuid().is_root();
    let mapping = if root && config.uid_count > 0 {
        Mapping::Range { base: config.uid_base, count: config.uid_count }
    } else {
        Mapping::Own { user: geteuid().as_raw(), group: getegid().as_raw() }
    };
    let mut sequences = vec![Sequence { user: true, mapping }];
    if root {
        sequences.push(Sequence { user: false, mapping });
    }
    sequences
}

/// Goes through the whole sequence in a child and a grandchild that then end.
fn probe(sequence: Sequence) -> Result<(), Errno> {
    let (answer, tell) = pipe_with(PipeFlags::CLOEXEC)?;
    let child = match fork::fork()? {
        Side::Parent(child) => child,
        Side::Child => {
            let errno = take(sequence).and_then(|()| first_process()).map_or_else(lockdown::number, |()| 0);
            let told = rustix::io::write(&tell, &errno.to_le_bytes());
            raw::exit_now(u8::from(told.is_err()))
        }
    };
    drop(tell);
    let mut errno = [0; 2];
    let read = rustix::io::read(&answer, &mut errno);
    let status = wait_for(child)?;
    match (read, status) {
        (Ok(2), WaitStatus::Code(0)) => match u16::from_le_bytes(errno) {
            0 => Ok(()),
            errno => Err(Errno::from_raw_os_error(errno.into())),
        },
        _ => Err(Errno::PERM),
    }
}

/// The next child is PID 1 of the namespace.
fn first_process() -> Result<(), Errno> {
    match fork::fork()? {
        Side::Child => raw::exit_now(u8::from(getpid() != Pid::INIT)),
        Side::Parent(child) => match wait_for(child)? {
            WaitStatus::Code(0) => Ok(()),
            _ => Err(Errno::PERM),
        },
    }
}

fn wait_for(child: Pid) -> Result<WaitStatus, Errno> {
    loop {
        match fork::reap(true)? {
            Some(reaped) if reaped.pid == child => return Ok(reaped.status),
            _ => {}
        }
    }
}

/// The sequence for good, then N1.
fn inside(config: &Configure, link: &Link, sequence: Sequence, refused: Option<Errno>) -> Result<Entered, End> {
    let breach = |layer| move |errno| End::Breach(Breach::of(layer, errno));
    take(sequence).map_err(breach(Layer::EmptyRoot))?;
    // Taking ids inside cleared it.
    bind_to_supervisor(link)?;
    let mut layers = Layers::none();
    mark(&mut layers, LayerState::Active);
    if let (false, Some(errno)) = (sequence.user, refused) {
        layers.set(Layer::UserNamespace, missing(lockdown::cause_of(errno), Some(errno)));
    }
    let (life, alive) = pipe_with(PipeFlags::CLOEXEC).map_err(breach(Layer::ParentDeath))?;
    match fork::fork().map_err(breach(Layer::PidNamespace))? {
        Side::Parent(nursery) => wait_out(nursery, alive),
        Side::Child => drop(alive),
    }
    // The pipe first says who we are outside, and then stays open as long as N0 lives.
    let mut host_pid = [0; 4];
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).map_err(breach(Layer::ParentDeath))?;
    if rustix::io::read(&life, &mut host_pid) != Ok(4) {
        return Err(End::ParentGone);
    }
    Ok(Entered {
        layers,
        ids: match (sequence.user, sequence.mapping) {
            (true, Mapping::Range { count, .. }) => SlotIds::Mapped { count },
            (true, Mapping::Own { .. }) => SlotIds::None,
            (false, _) => SlotIds::real(config),
        },
        host_pid: u32::from_le_bytes(host_pid),
        parent: Parent::Waiter(life),
    })
}

/// The rest of N0: nothing but waiting for the nursery, and ending as it did.
fn wait_out(nursery: Pid, alive: OwnedFd) -> ! {
    let id = nursery.as_raw_nonzero().get();
    let told = rustix::io::write(&alive, &id.to_le_bytes());
    let kept = raw::only_descriptor_3(std::os::fd::AsFd::as_fd(&alive));
    if told.is_err() || kept.is_err() {
        // The nursery sees the pipe close and ends.
        raw::exit_now(exit::LOCKDOWN_FAILED);
    }
    // A host without filters is for the nursery to report; N0 only waits, with or without.
    let _filtered = filter::waiter(Machine::NATIVE).is_ok_and(|program| lockdown::load_filter(&program).is_ok());
    let code = match wait_for(nursery) {
        Ok(WaitStatus::Code(code)) => code,
        Ok(WaitStatus::Signal(signal)) => 128 | signal,
        Err(_) => exit::PARENT_GONE,
    };
    raw::exit_now(code)
}

/// The sequence itself; changes this process for good, whatever comes of it.
fn take(sequence: Sequence) -> Result<(), Errno> {
    let mut flags = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWCGROUP;
    if sequence.user {
        flags |= CloneFlags::CLONE_NEWUSER;
        match sequence.mapping {
            Mapping::Own { user, group } => {
                unshare(flags).map_err(of_nix)?;
                map_own(user, group)?;
            }
            Mapping::Range { base, count } => {
                map_range(base, count, || unshare(flags).map_err(of_nix))?;
                lockdown::take_ids(NOBODY)?;
            }
        }
    } else {
        unshare(flags).map_err(of_nix)?;
    }
    empty_root()
}

fn write_proc(process: &str, file: &str, text: &str) -> Result<(), Errno> {
    std::fs::write(format!("/proc/{process}/{file}"), text).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// A process may map its own user only, and must give `setgroups` up for the group.
fn map_own(user: u32, group: u32) -> Result<(), Errno> {
    write_proc("self", "setgroups", "deny")?;
    write_proc("self", "uid_map", &format!("{NOBODY} {user} 1\n"))?;
    write_proc("self", "gid_map", &format!("{NOBODY} {group} 1\n"))
}

/// A range is mapped by a process that is still root outside: a child from before.
fn map_range(base: u32, count: u32, unshare: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
    let (go, ready) = pipe_with(PipeFlags::CLOEXEC)?;
    let mapper = match fork::fork()? {
        Side::Parent(mapper) => mapper,
        Side::Child => {
            drop(ready);
            let mapped = match rustix::io::read(&go, &mut [0]) {
                Ok(1) => write_range(base, count),
                _ => Err(Errno::PIPE),
            };
            raw::exit_now(mapped.map_or_else(|errno| u8::try_from(errno.raw_os_error()).unwrap_or(u8::MAX), |()| 0))
        }
    };
    // Unsharing the pid namespace changes children to come, not the mapper.
    let unshared = unshare();
    if unshared.is_ok() {
        rustix::io::write(&ready, &[1])?;
    }
    drop(ready);
    let status = wait_for(mapper)?;
    unshared?;
    match status {
        WaitStatus::Code(0) => Ok(()),
        WaitStatus::Code(errno) => Err(Errno::from_raw_os_error(errno.into())),
        WaitStatus::Signal(_) => Err(Errno::PERM),
    }
}

fn write_range(base: u32, count: u32) -> Result<(), Errno> {
    let parent = getppid().ok_or(Errno::SRCH)?.as_raw_nonzero().to_string();
    let slots = count.saturating_sub(1);
    let map = format!("{NOBODY} {base} 1\n1 {} {slots}\n", base.saturating_add(1));
    write_proc(&parent, "uid_map", &map)?;
    write_proc(&parent, "gid_map", &map)
}

/// An empty, read-only file system becomes the root, and the old one goes.
fn empty_root() -> Result<(), Errno> {
    // Any directory that is there will do; this one was just written to, or looked at.
    const PLACE: &str = "/proc";
    let none = None::<&str>;
    let locked = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(none, "/", none, private, none).map_err(of_nix)?;
    let options = Some("size=4k,nr_inodes=2,mode=0555");
    mount(Some("brig"), PLACE, Some("tmpfs"), locked, options).map_err(of_nix)?;
    rustix::process::chdir(PLACE)?;
    let read_only = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | locked;
    mount(none, ".", none, read_only, none).map_err(of_nix)?;
    nix::unistd::pivot_root(".", ".").map_err(of_nix)?;
    umount2(".", MntFlags::MNT_DETACH).map_err(of_nix)?;
    rustix::process::chdir("/")?;
    let mut entries = std::fs::read_dir("/").map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(Errno::NOTEMPTY),
    }
}
