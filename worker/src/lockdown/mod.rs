//! A worker's lock-down: an ordered list of layers, one function each.
//! Owns: the order, what is tried, what must hold. Never: runs guest code, weakens a layer
//! that was promised, goes on after one that failed.
//!
//! The order is in the types: [`confine`] gives a [`Confined`], which [`Confined::limit`]
//! turns into a [`Limited`], which [`Limited::seal`] ends. Between them the engine is built
//! (where it is not inherited) and given its own randomness. Each step says why it stands
//! where it stands. A step that fails is a [`Breach`], and the process must end.

pub mod filter;
mod identity;
mod landlock;
mod limits;
pub mod raw;
pub mod table;

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, OwnedFd};

use brig_protocol::control::{Cause, Configure, Layer, LayerState, Layers};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use rustix::rand::GetRandomFlags;
use seccompiler::BpfProgram;

pub(crate) use identity::{drop_capabilities, keep_only_id_capabilities, take_ids};

/// Bytes of kernel randomness for each worker.
pub const SEED_BYTES: usize = 64;

/// A layer that could not be set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breach {
    /// Which.
    pub layer: Layer,
    /// The kernel's error number.
    pub errno: u16,
}

impl Breach {
    pub(crate) fn of(layer: Layer, errno: Errno) -> Self {
        Self { layer, errno: number(errno) }
    }
}

/// The kernel's error number as the control link carries it.
pub(crate) fn number(errno: Errno) -> u16 {
    u16::try_from(errno.raw_os_error()).unwrap_or(0)
}

/// Whether layers are being found out or must be as they were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// A rehearsal in a throw-away child: every layer is tried, what is missing is recorded.
    FindOut,
    /// A worker: optional layers that were found missing are skipped, all others must hold.
    Keep(Layers),
}

/// A worker's own user and group id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnId {
    /// To be taken.
    Take(u32),
    /// Taken before the image was exec'd, when there still were capabilities for it; to be
    /// verified.
    Taken(u32),
}

/// What one worker's lock-down is to do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The process that must still be the parent; `None` for a parent outside of the pid
    /// namespace, whose id reads as 0.
    pub parent: Option<Pid>,
    /// User and group id of this worker's own, where there is a range.
    pub own_id: Option<OwnId>,
    /// Ceilings.
    pub limits: Limits,
    /// What the namespaces gave, and how to treat the rest.
    pub inherited: Layers,
    /// See [`Promise`].
    pub promise: Promise,
}

/// Ceilings of a worker, enforced by the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// CPU time in milliseconds, at least 1.
    pub cpu_ms: u32,
    /// Main stack in bytes.
    pub stack_bytes: u64,
    /// Address space in bytes.
    pub address_space_bytes: u64,
}

impl Limits {
    /// The ceilings of a configuration, with `cpu_ms` where it asks for less (0: no wish).
    #[must_use]
    pub fn of(config: &Configure, cpu_ms: u32) -> Self {
        Self {
            cpu_ms: match cpu_ms {
                0 => config.cpu_ms,
                wish => wish.min(config.cpu_ms),
            },
            stack_bytes: config.stack_bytes,
            address_space_bytes: config.address_space_bytes,
        }
    }
}

/// Everything up to the engine is set up; see [`confine`].
#[derive(Debug)]
pub struct Confined {
    socket: Socket,
    ledger: Ledger,
    limits: Limits,
}

/// The kernel's ceilings hold; only the filter is missing. See [`Confined::limit`].
#[derive(Debug)]
pub struct Limited {
    socket: Socket,
    ledger: Ledger,
    seed: [u8; SEED_BYTES],
}

/// Descriptor 3, once it is that. Only the end of the process closes it: after the seal
/// `close` is a call that kills, and before it a failure is still to be told through it.
pub type Socket = ManuallyDrop<OwnedFd>;

/// Nothing is missing. See [`Limited::seal`].
#[derive(Debug)]
pub struct Sealed {
    /// Descriptor 3, the only one. It must never be dropped: `close` is not in the table.
    pub socket: Socket,
    /// What holds.
    pub layers: Layers,
}

/// The layers before the engine, in order. `socket` becomes descriptor 3.
///
/// # Errors
/// The first layer that must hold and does not.
pub fn confine(socket: Socket, plan: &Plan) -> Result<Confined, Breach> {
    let mut ledger = Ledger::new(plan);
    own_uid(&mut ledger, plan)?;
    no_capabilities(&mut ledger)?;
    parent_death(&mut ledger, plan)?;
    let socket = only_the_socket(&mut ledger, socket)?;
    not_dumpable(&mut ledger)?;
    mdwe(&mut ledger)?;
    no_new_privs(&mut ledger)?;
    landlock_deny_all(&mut ledger)?;
    time_zone();
    Ok(Confined { socket, ledger, limits: plan.limits })
}

impl Confined {
    /// The kernel's ceilings. After the engine was built: building it costs memory and CPU
    /// time that are not the guest's.
    ///
    /// # Errors
    /// The first layer that does not hold.
    pub fn limit(self) -> Result<Limited, Breach> {
        let Self { socket, mut ledger, limits } = self;
        let seed = randomness()?;
        cpu_timer(&mut ledger, limits)?;
        rlimits(&mut ledger, limits)?;
        Ok(Limited { socket, ledger, seed })
    }
}

impl Limited {
    /// Kernel randomness of this worker's own, drawn while it could still be asked for.
    #[must_use]
    pub fn seed(&self) -> &[u8; SEED_BYTES] {
        &self.seed
    }

    /// The socket, for who must write to it before the seal.
    #[must_use]
    pub fn socket(&self) -> std::os::fd::BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// What will hold once sealed.
    #[must_use]
    pub fn layers(&self) -> Layers {
        let mut layers = self.ledger.layers;
        layers.activate(Layer::Seccomp);
        layers
    }

    /// The last layer: system calls. Last, because all others need calls that it takes away.
    ///
    /// # Errors
    /// The filter was not loaded; the process must end.
    pub fn seal(self, program: &BpfProgram) -> Result<Sealed, Breach> {
        let Self { socket, mut ledger, .. } = self;
        load_filter(program)?;
        ledger.layers.activate(Layer::Seccomp);
        Ok(Sealed { socket, layers: ledger.layers })
    }
}

/// Loads a seccomp program for good.
///
/// # Errors
/// The kernel's refusal.
pub fn load_filter(program: &BpfProgram) -> Result<(), Breach> {
    seccompiler::apply_filter(program).map_err(|error| Breach {
        layer: Layer::Seccomp,
        errno: match error {
            seccompiler::Error::Seccomp(error) | seccompiler::Error::Prctl(error) => Errno::from_io_error(&error).map_or(0, number),
            _ => 0,
        },
    })
}

/// First: whoever the process was started as, it should do nothing more as that user. Also,
/// changing ids clears the parent-death signal and the dumpable bit, which come after.
fn own_uid(ledger: &mut Ledger, plan: &Plan) -> Result<(), Breach> {
    match plan.own_id {
        Some(OwnId::Take(id)) => ledger.attempt(Layer::OwnUid, || take_ids(id)),
        Some(OwnId::Taken(id)) => ledger.attempt(Layer::OwnUid, || identity::verify_ids(id)),
        None => {
            ledger.miss(Layer::OwnUid, Cause::NeedsRoot, None);
            Ok(())
        }
    }
}

/// Right after the ids, which needed some. Read back: nothing may be left in any set.
fn no_capabilities(ledger: &mut Ledger) -> Result<(), Breach> {
    ledger.attempt(Layer::NoCapabilities, drop_capabilities)
}

/// Before anything that takes time, so that a parent that dies takes this process along;
/// after the ids, which would clear it. The parent is looked at after the signal is set:
/// one that died in between sent none.
fn parent_death(ledger: &mut Ledger, plan: &Plan) -> Result<(), Breach> {
    ledger.attempt(Layer::ParentDeath, || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        if rustix::process::getppid() == plan.parent { Ok(()) } else { Err(Errno::SRCH) }
    })
}

/// Early, so that no later step could use, or leave behind, what was inherited.
fn only_the_socket(ledger: &mut Ledger, socket: Socket) -> Result<Socket, Breach> {
    match raw::only_descriptor_3(socket.as_fd()) {
        Ok(socket) => {
            ledger.layers.activate(Layer::Descriptors);
            Ok(ManuallyDrop::new(socket))
        }
        Err(errno) => Err(Breach::of(Layer::Descriptors, errno)),
    }
}

/// After the ids, which reset it. From here on no other process of this user looks inside.
fn not_dumpable(ledger: &mut Ledger) -> Result<(), Breach> {
    use rustix::process::{DumpableBehavior, dumpable_behavior, set_dumpable_behavior};
    ledger.attempt(Layer::NotDumpable, || {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        match dumpable_behavior()? {
            DumpableBehavior::NotDumpable => Ok(()),
            _ => Err(Errno::PERM),
        }
    })
}

/// Before the engine: no mapping of it may ever be writable and executable. The filter says
/// so again, but this one also covers what the filter can not see: page permissions.
fn mdwe(ledger: &mut Ledger) -> Result<(), Breach> {
    ledger.attempt(Layer::Mdwe, raw::deny_write_execute)
}

/// Before Landlock and the filter: without it an unprivileged process may load neither.
fn no_new_privs(ledger: &mut Ledger) -> Result<(), Breach> {
    ledger.attempt(Layer::NoNewPrivs, || {
        rustix::thread::set_no_new_privs(true)?;
        match rustix::thread::no_new_privs()? {
            true => Ok(()),
            false => Err(Errno::PERM),
        }
    })
}

/// After the descriptors, since its own one must not stay; before the engine, which has no
/// business with files. A domain for each worker, so that its signals end at itself.
fn landlock_deny_all(ledger: &mut Ledger) -> Result<(), Breach> {
    ledger.attempt(Layer::Landlock, landlock::deny_all)
}

/// Before the filter: the first local time would open a file, and die of it.
fn time_zone() {
    raw::settle_time_zone();
}

/// Before the limits and the filter: `getrandom` is not in the table.
fn randomness() -> Result<[u8; SEED_BYTES], Breach> {
    let mut seed = [0; SEED_BYTES];
    match rustix::rand::getrandom(&mut seed, GetRandomFlags::empty()) {
        Ok(SEED_BYTES) => Ok(seed),
        // Up to 256 bytes the kernel gives all or an error.
        Ok(_) => Err(Breach::of(Layer::Seccomp, Errno::IO)),
        Err(errno) => Err(Breach::of(Layer::Seccomp, errno)),
    }
}

/// After the engine was built, which is not on the guest's budget; before `RLIMIT_SIGPENDING`
/// or any other limit could stand in its way.
fn cpu_timer(ledger: &mut Ledger, limits: Limits) -> Result<(), Breach> {
    ledger.attempt(Layer::CpuTimer, || limits::arm_cpu_timer(limits.cpu_ms))
}

/// Next to last: `prlimit64` is not in the table, and the steps before open descriptors.
fn rlimits(ledger: &mut Ledger, limits: Limits) -> Result<(), Breach> {
    ledger.attempt(Layer::Rlimits, || limits::set(limits))
}

/// What holds so far, and what the promise was.
#[derive(Debug)]
struct Ledger {
    layers: Layers,
    promise: Promise,
}

impl Ledger {
    fn new(plan: &Plan) -> Self {
        Self { layers: plan.inherited, promise: plan.promise }
    }

    fn attempt(&mut self, layer: Layer, step: impl FnOnce() -> Result<(), Errno>) -> Result<(), Breach> {
        if let Promise::Keep(found) = self.promise
            && !layer.is_required()
            && !found.has(layer)
        {
            self.layers.set(layer, found.get(layer));
            return Ok(());
        }
        match (step(), self.promise) {
            (Ok(()), _) => self.layers.activate(layer),
            (Err(errno), Promise::FindOut) if !layer.is_required() => {
                self.miss(layer, cause_of(errno), Some(errno));
            }
            (Err(errno), _) => return Err(Breach::of(layer, errno)),
        }
        Ok(())
    }

    fn miss(&mut self, layer: Layer, cause: Cause, errno: Option<Errno>) {
        let errno = errno.map_or(0, number);
        self.layers.set(layer, LayerState::Missing { cause, errno });
    }
}

/// The same error number in the other crate's type.
pub(crate) fn of_nix(error: nix::errno::Errno) -> Errno {
    match error as i32 {
        0 => Errno::IO,
        number => Errno::from_raw_os_error(number),
    }
}

/// What an error number most likely says about a layer.
pub(crate) fn cause_of(errno: Errno) -> Cause {
    match errno {
        Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL => Cause::Unsupported,
        _ => Cause::Refused,
    }
}
