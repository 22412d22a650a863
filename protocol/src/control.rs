//! The control link between the supervisor and a nursery: frames as pure types.
//!
//! The link is one `SOCK_SEQPACKET` pair, so a packet is a frame. Every frame has a fixed
//! size that follows from its tag, all numbers are little-endian, and nothing in a frame
//! was ever written by a guest. Owns: the frames, the layers and levels they speak of, the
//! exit codes of nursery and worker. Never: does I/O, passes a descriptor, allocates by a
//! length that it was told.
//!
//! ```text
//! supervisor → nursery   Configure (once, first) · Spawn
//! nursery → supervisor   Ready | Failed (once, answers Configure)
//!                        Spawned (carries 2 descriptors) | SpawnFailed (answers Spawn)
//!                        Exited (a worker was reaped)
//! ```
//!
//! `Spawned` carries exactly two descriptors by `SCM_RIGHTS`, in this order: the worker's
//! pidfd, the supervisor's end of the worker's stream socket. No other frame carries any.
//! A frame that does not decode, or that comes with too many, too few or truncated
//! descriptors, ends the link: there is no resynchronising.
//!
//! To retire a nursery the supervisor sends no more `Spawn`; to end it and all of its
//! workers it closes the link.

#[macro_use]
mod code;
mod layers;
mod wire;

pub use layers::{Cause, LAYERS, Layer, LayerState, Layers, Level};
use thiserror::Error;
use wire::{Reader, Writer};

/// First byte after the tag of every frame.
pub const VERSION: u8 = 1;

/// No frame is longer than this, in bytes: a receive buffer of this size plus one byte
/// tells every over-long packet.
pub const FRAME_MAX: usize = 128;

/// How many descriptors come with [`Report::Spawned`]: pidfd, then stream socket.
pub const SPAWNED_DESCRIPTORS: usize = 2;

/// Exit codes by which a worker or a nursery says why it ended itself.
pub mod exit {
    /// Planned end: the evaluation is over, or the supervisor closed the link.
    pub const FINISHED: u8 = 0;
    /// The guest's heap reached its limit; the allocator ended the worker.
    pub const HEAP_LIMIT: u8 = 86;
    /// A panic in our own code.
    pub const PANIC: u8 = 87;
    /// A layer that must be there could not be set up; no guest code ran.
    pub const LOCKDOWN_FAILED: u8 = 88;
    /// The parent (supervisor or nursery) was gone before the process was ready.
    pub const PARENT_GONE: u8 = 89;
    /// The peer broke the protocol: a frame that does not decode, or stray descriptors.
    pub const PROTOCOL: u8 = 90;
    /// Started with arguments that are none of `nursery`, `worker`, `probe`.
    pub const USAGE: u8 = 91;

    /// What an exit code says, for logs and `doctor`; `None` for a code that is not ours.
    #[must_use]
    pub fn meaning(code: u8) -> Option<&'static str> {
        Some(match code {
            FINISHED => "finished",
            HEAP_LIMIT => "heap limit reached",
            PANIC => "panic",
            LOCKDOWN_FAILED => "lock-down failed",
            PARENT_GONE => "parent gone",
            PROTOCOL => "protocol violation",
            USAGE => "bad arguments",
            _ => return None,
        })
    }
}

/// Why bytes are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The packet's length is not the one that its tag asks for.
    #[error("a frame of {got} bytes where {want} were expected")]
    Length {
        /// Bytes in the packet.
        got: usize,
        /// Bytes that the tag asks for.
        want: usize,
    },
    /// No frame of this direction has this tag.
    #[error("unknown frame tag {0}")]
    Tag(u8),
    /// The peer speaks another version of this protocol.
    #[error("control protocol version {0}, expected {VERSION}")]
    Version(u8),
    /// A field holds a value that it may not hold.
    #[error("field `{0}` out of range")]
    Field(&'static str),
}

coded_enum! {
    /// How a nursery makes workers.
    Origin ("origin") {
        /// Copies of the warmed nursery.
        Fork = 0,
        /// A fresh image per worker, with its own address-space layout.
        Exec = 1,
    }
}

coded_enum! {
    /// What a worker is for.
    Kind ("kind") {
        /// One evaluation, then thrown away.
        Once = 0,
        /// A vm: kept between evaluations, with its realm.
        Vm = 1,
    }
}

/// Supervisor → nursery, once and first: what workers will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Configure {
    /// How workers are made.
    pub origin: Origin,
    /// Whether namespaces are to be tried.
    pub namespaces: bool,
    /// Below this the nursery answers [`Report::Failed`] and ends.
    pub required: Level,
    /// The engine's heap ceiling for one worker, bytes, at least 1.
    pub heap_bytes: u64,
    /// `RLIMIT_STACK`, bytes, at least 1.
    pub stack_bytes: u64,
    /// `RLIMIT_AS`, bytes, at least 1.
    pub address_space_bytes: u64,
    /// CPU time after which the kernel kills a worker, milliseconds, at least 1. A `Spawn`
    /// can ask for less, never for more.
    pub cpu_ms: u32,
    /// First id of the range of user and group ids for workers (as root), or 0 for none.
    pub uid_base: u32,
    /// Ids in the range, the nursery's own included: slots 0 to `uid_count - 2` have one.
    /// 0 exactly when `uid_base` is; else 2 to 65,000.
    pub uid_count: u32,
}

/// Supervisor → nursery: make a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spawn {
    /// The supervisor's slot; one living worker a slot.
    pub slot: u16,
    /// Which worker of this slot: tells late frames and exits from the successor's.
    pub generation: u64,
    /// CPU budget in milliseconds; 0 = the ceiling of `Configure`.
    pub cpu_ms: u32,
    /// What the worker is for.
    pub kind: Kind,
}

/// Nursery → supervisor: set up, waiting for `Spawn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// What every worker of this nursery will have; each says so again in its hello.
    pub layers: Layers,
    /// Landlock version of the kernel, 0 = none.
    pub landlock_abi: u8,
    /// The nursery's own process id as the host sees it, 0 when it can not know.
    pub pid: u32,
}

/// Nursery → supervisor, with [`SPAWNED_DESCRIPTORS`] descriptors: a worker lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spawned {
    /// As in the `Spawn`.
    pub slot: u16,
    /// As in the `Spawn`.
    pub generation: u64,
    /// Process id as the nursery sees it, at least 2. For logs only: kill by pidfd.
    pub pid: u32,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitStatus {
    /// By itself, with this code.
    Code(u8),
    /// By this signal.
    Signal(u8),
}

/// Nursery → supervisor: a worker was reaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exited {
    /// As in the `Spawn`.
    pub slot: u16,
    /// As in the `Spawn`.
    pub generation: u64,
    /// How it ended.
    pub status: WaitStatus,
    /// CPU time in user mode, microseconds.
    pub user_us: u64,
    /// CPU time in the kernel, microseconds.
    pub system_us: u64,
    /// Largest resident set, kibibytes.
    pub max_rss_kb: u64,
}

/// Supervisor → nursery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Once, first.
    Configure(Configure),
    /// Make a worker.
    Spawn(Spawn),
}

/// Nursery → supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// Answers `Configure`.
    Ready(Ready),
    /// Answers `Configure`: this layer could not be set up; the nursery ends.
    Failed {
        /// The layer.
        layer: Layer,
        /// The kernel's error number, 0 when there was none.
        errno: u16,
    },
    /// Answers `Spawn`; two descriptors come along.
    Spawned(Spawned),
    /// Answers `Spawn`: no worker.
    SpawnFailed {
        /// As in the `Spawn`.
        slot: u16,
        /// As in the `Spawn`.
        generation: u64,
        /// The kernel's error number; `EBUSY` for a slot whose worker lives, `EINVAL` for a
        /// slot without a user id.
        errno: u16,
    },
    /// A worker was reaped.
    Exited(Exited),
}

const TAG_CONFIGURE: u8 = 1;
const TAG_SPAWN: u8 = 2;
const TAG_READY: u8 = 65;
const TAG_FAILED: u8 = 66;
const TAG_SPAWNED: u8 = 67;
const TAG_SPAWN_FAILED: u8 = 68;
const TAG_EXITED: u8 = 69;

/// Whole frame, tag and version included, in bytes.
fn size_of_frame(tag: u8) -> Option<usize> {
    Some(match tag {
        TAG_CONFIGURE => 2 + 3 + 3 * 8 + 3 * 4,
        TAG_SPAWN => 2 + 2 + 8 + 4 + 1,
        TAG_READY => 2 + LAYERS * 4 + 1 + 4,
        TAG_FAILED => 2 + 1 + 2,
        TAG_SPAWNED => 2 + 2 + 8 + 4,
        TAG_SPAWN_FAILED => 2 + 2 + 8 + 2,
        TAG_EXITED => 2 + 2 + 8 + 2 + 3 * 8,
        _ => return None,
    })
}

impl Configure {
    /// Whether every field is in its range.
    fn check(self) -> Result<Self, FrameError> {
        let refuse = |field| Err(FrameError::Field(field));
        match self {
            Self { heap_bytes: 0, .. } => refuse("heap_bytes"),
            Self { stack_bytes: 0, .. } => refuse("stack_bytes"),
            Self { address_space_bytes: 0, .. } => refuse("address_space_bytes"),
            Self { cpu_ms: 0, .. } => refuse("cpu_ms"),
            Self { uid_base: 0, uid_count: 0, .. } => Ok(self),
            Self { uid_base: 0, .. } => refuse("uid_base"),
            Self { uid_base, uid_count: count @ 2..=65_000, .. } if uid_base.checked_add(count).is_some_and(|end| end < u32::MAX) => {
                Ok(self)
            }
            _ => refuse("uid_count"),
        }
    }
}

impl Request {
    /// The frame's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Configure(c) => {
                Writer::new(TAG_CONFIGURE)
                    .u8(c.origin as u8)
                    .u8(u8::from(c.namespaces))
                    .u8(c.required as u8)
                    .u64(c.heap_bytes)
                    .u64(c.stack_bytes)
                    .u64(c.address_space_bytes)
                    .u32(c.cpu_ms)
                    .u32(c.uid_base)
                    .u32(c.uid_count)
                    .0
            }
            Self::Spawn(s) => Writer::new(TAG_SPAWN).u16(s.slot).u64(s.generation).u32(s.cpu_ms).u8(s.kind as u8).0,
        }
    }

    /// Reads one packet.
    ///
    /// # Errors
    /// [`FrameError`] for anything that [`Request::encode`] would not have made.
    pub fn decode(packet: &[u8]) -> Result<Self, FrameError> {
        let (tag, mut r) = Reader::open(packet)?;
        match tag {
            TAG_CONFIGURE => Configure {
                origin: Origin::from_code(r.u8())?,
                namespaces: r.flag("namespaces")?,
                required: Level::from_code(r.u8())?,
                heap_bytes: r.u64(),
                stack_bytes: r.u64(),
                address_space_bytes: r.u64(),
                cpu_ms: r.u32(),
                uid_base: r.u32(),
                uid_count: r.u32(),
            }
            .check()
            .map(Self::Configure),
            TAG_SPAWN => Ok(Self::Spawn(Spawn { slot: r.u16(), generation: r.u64(), cpu_ms: r.u32(), kind: Kind::from_code(r.u8())? })),
            other => Err(FrameError::Tag(other)),
        }
    }
}

impl Report {
    /// The frame's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Ready(ready) => {
                let mut w = Writer::new(TAG_READY);
                for (_, state) in ready.layers.iter() {
                    w = match state {
                        LayerState::Active => w.u8(1).u8(0).u16(0),
                        LayerState::Missing { cause, errno } => w.u8(0).u8(cause as u8).u16(errno),
                    };
                }
                w.u8(ready.landlock_abi).u32(ready.pid).0
            }
            Self::Failed { layer, errno } => Writer::new(TAG_FAILED).u8(*layer as u8).u16(*errno).0,
            Self::Spawned(s) => Writer::new(TAG_SPAWNED).u16(s.slot).u64(s.generation).u32(s.pid).0,
            Self::SpawnFailed { slot, generation, errno } => Writer::new(TAG_SPAWN_FAILED).u16(*slot).u64(*generation).u16(*errno).0,
            Self::Exited(e) => {
                let w = Writer::new(TAG_EXITED).u16(e.slot).u64(e.generation);
                match e.status {
                    WaitStatus::Code(code) => w.u8(0).u8(code),
                    WaitStatus::Signal(signal) => w.u8(1).u8(signal),
                }
                .u64(e.user_us)
                .u64(e.system_us)
                .u64(e.max_rss_kb)
                .0
            }
        }
    }

    /// Reads one packet.
    ///
    /// # Errors
    /// [`FrameError`] for anything that [`Report::encode`] would not have made.
    pub fn decode(packet: &[u8]) -> Result<Self, FrameError> {
        let (tag, mut r) = Reader::open(packet)?;
        Ok(match tag {
            TAG_READY => Self::Ready(Ready { layers: r.layers()?, landlock_abi: r.u8(), pid: r.u32() }),
            TAG_FAILED => Self::Failed { layer: Layer::from_code(r.u8())?, errno: r.u16() },
            TAG_SPAWNED => {
                let (slot, generation) = (r.u16(), r.u64());
                match r.u32() {
                    0 | 1 => return Err(FrameError::Field("pid")),
                    pid => Self::Spawned(Spawned { slot, generation, pid }),
                }
            }
            TAG_SPAWN_FAILED => Self::SpawnFailed { slot: r.u16(), generation: r.u64(), errno: r.u16() },
            TAG_EXITED => Self::Exited(Exited {
                slot: r.u16(),
                generation: r.u64(),
                status: r.status()?,
                user_us: r.u64(),
                system_us: r.u64(),
                max_rss_kb: r.u64(),
            }),
            other => return Err(FrameError::Tag(other)),
        })
    }
}

#[cfg(test)]
mod tests;
