//! The nursery: makes workers on request, and reports how they end.
//! Owns: the start-up order, from the exec by the supervisor to the serving loop. Never:
//! runs guest code, reads a byte that a guest wrote, holds a secret, starts a thread.
//!
//! ```text
//! N0  exec'd by the supervisor with the control link as descriptor 0
//!  │  link → 3, all else closed · dies with the supervisor · Configure
//!  │  namespaces (probed first in a throw-away child), empty root
//!  ├─ N1  PID 1 of the pid namespace: the nursery (N0 only waits for it);
//!  │   │  without namespaces N0 itself is the nursery
//!  │   │  rehearsal: a child locks itself down and says which layers held
//!  │   │  engine warmed · base filter · Ready
//!  │   ├─ worker (PID ≥ 2): own id → lock-down → own randomness → sealed → ready
//!  │   └─ worker …
//! ```

mod fork;
mod handover;
mod image;
mod link;
mod namespaces;
pub mod probe;
mod rehearsal;
mod serve;
mod slots;
mod worker;

use std::os::fd::{AsFd, OwnedFd};

use brig_protocol::control::{Configure, Kind, Layers, Level, Origin, Ready, Report, Request, exit};
use rustix::process::Signal;

use crate::lockdown::{self, Breach, SEED_BYTES, filter, raw, table::Machine};
use link::Link;
pub use worker::image_main;

/// What a worker knows about itself.
#[derive(Debug, Clone)]
pub struct WorkerFacts {
    /// The layers that hold, for the hello.
    pub layers: Layers,
    /// The level that they amount to.
    pub level: Level,
    /// Kernel randomness of this worker's own: seeds `Math.random` and everything `crypto`.
    pub seed: [u8; SEED_BYTES],
    /// The supervisor's slot.
    pub slot: u16,
    /// Which worker of the slot.
    pub generation: u64,
    /// What it is for.
    pub kind: Kind,
    /// Ceiling of the engine's heap, bytes.
    pub heap_bytes: u64,
    /// Size of the main stack, bytes; the engine's own limit must be well below.
    pub stack_bytes: u64,
    /// CPU time after which the kernel kills, milliseconds.
    pub cpu_ms: u32,
}

/// What runs inside: the engine's three entry points.
#[derive(Debug)]
pub struct Program<W> {
    /// Builds the engine: once in a nursery that forks, once in every image.
    pub warm: fn(&Configure) -> W,
    /// In the worker, with all limits set, before the last filter: gives the engine this
    /// worker's own randomness.
    pub own: fn(&mut W, &WorkerFacts),
    /// In the sealed worker: says that it is ready, serves the socket (descriptor 3), then
    /// ends the process. The socket must not be dropped: `close` is a call that kills.
    pub run: fn(W, OwnedFd, &WorkerFacts) -> !,
}

impl<W> Clone for Program<W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Program<W> {}

/// Why a nursery ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The supervisor closed the link.
    Finished,
    /// The supervisor is gone.
    ParentGone,
    /// The supervisor sent something else than the protocol has.
    Protocol,
    /// A layer that must hold does not.
    Breach(Breach),
}

impl End {
    /// The exit code that says so.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Finished => exit::FINISHED,
            Self::ParentGone => exit::PARENT_GONE,
            Self::Protocol => exit::PROTOCOL,
            Self::Breach(_) => exit::LOCKDOWN_FAILED,
        }
    }
}

impl From<Breach> for End {
    fn from(breach: Breach) -> Self {
        Self::Breach(breach)
    }
}

/// Everything that the serving loop needs.
struct Nursery<W> {
    link: Link,
    config: Configure,
    program: Program<W>,
    /// What the namespaces gave.
    inherited: Layers,
    /// What the rehearsal found: every worker must do as well.
    found: Layers,
    ids: slots::SlotIds,
    /// The warmed engine (fork), or the image (exec).
    source: Source<W>,
}

enum Source<W> {
    Copies { realm: Option<W>, small: seccompiler::BpfProgram },
    Images(OwnedFd),
}

/// The nursery's whole life. The control link is descriptor 0.
pub fn main<W>(program: Program<W>) -> ! {
    let end = match fork::adopt(0) {
        Ok(stdin) => match lockdown::raw::only_descriptor_3(stdin.as_fd()) {
            Ok(socket) => {
                std::mem::forget(stdin);
                run(Link::new(socket), program)
            }
            Err(_) => End::Protocol,
        },
        Err(_) => End::Protocol,
    };
    raw::exit_now(end.code())
}

fn run<W>(link: Link, program: Program<W>) -> End {
    match start(&link) {
        Ok(started) => match prepare(link, program, started) {
            Ok(nursery) => nursery.serve(),
            Err(end) => end,
        },
        Err(end) => {
            confess(&link, end);
            end
        }
    }
}

/// Tells the supervisor which layer failed, if it was a layer.
fn confess(link: &Link, end: End) {
    if let End::Breach(Breach { layer, errno }) = end {
        // If nobody hears it, there is nobody left to tell.
        let _heard = link.send(&Report::Failed { layer, errno }, &[]).is_ok();
    }
}

struct Started {
    config: Configure,
    entered: namespaces::Entered,
    image: Option<OwnedFd>,
}

/// N0 up to the namespaces; returns in the process that is the nursery.
fn start(link: &Link) -> Result<Started, End> {
    bind_to_supervisor(link)?;
    go_before_the_supervisor();
    // Here, where a file may be looked for; the workers find it settled.
    raw::settle_time_zone();
    let config = match link.receive()? {
        Some(Request::Configure(config)) => config,
        Some(Request::Spawn(_)) => return Err(End::Protocol),
        None => return Err(End::Finished),
    };
    // Before the root is exchanged: afterwards there is no path to anything.
    let image = match config.origin {
        Origin::Fork => None,
        Origin::Exec => Some(image::open()?),
    };
    let entered = namespaces::enter(&config, link)?;
    Ok(Started { config, entered, image })
}

/// The signal first, then the look: a supervisor that died in between sent none.
fn bind_to_supervisor(link: &Link) -> Result<(), End> {
    let bound = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    if bound.is_err() || link.hung_up() {
        return Err(End::ParentGone);
    }
    Ok(())
}

/// What the score of the supervisor is raised by, for it and what it makes: half of the
/// memory in question, far more than the supervisor's buffers.
const OOM_SCORE: i32 = 500;

/// When memory runs out, the kernel is to end a worker and never the supervisor, whatever
/// their sizes are. Of no use where there is no `/proc`, and nothing depends on it.
fn go_before_the_supervisor() {
    const FILE: &str = "/proc/self/oom_score_adj";
    let held: i32 = std::fs::read_to_string(FILE).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let score = held.saturating_add(OOM_SCORE).min(1000);
    drop(std::fs::write(FILE, score.to_string()));
}

/// The nursery itself: harden, rehearse, warm, filter, say that it is ready.
fn prepare<W>(link: Link, program: Program<W>, started: Started) -> Result<Nursery<W>, End> {
    let Started { config, entered, image } = started;
    let prepared = harden(&link, &entered).and_then(|()| {
        let found = rehearsal::find_out(&config, &entered)?;
        match found.layers.missing_for(config.required) {
            Some(layer) => Err(End::Breach(Breach { layer, errno: found.errno_of(layer) })),
            None => Ok(found),
        }
    });
    let found = match prepared {
        Ok(found) => found,
        Err(end) => {
            confess(&link, end);
            return Err(end);
        }
    };
    let source = match image {
        None => Source::Copies { realm: Some((program.warm)(&config)), small: filter::small(Machine::NATIVE) },
        Some(image) => Source::Images(image),
    };
    if let Err(breach) = filter_nursery(config.origin) {
        confess(&link, breach.into());
        return Err(breach.into());
    }
    let ready = Ready { layers: found.layers, landlock_abi: found.landlock_abi, pid: entered.host_pid };
    link.send(&Report::Ready(ready), &[])?;
    Ok(Nursery { link, config, program, inherited: entered.layers, found: found.layers, ids: entered.ids, source })
}

/// What the nursery itself gives up; its workers give up more.
fn harden(link: &Link, entered: &namespaces::Entered) -> Result<(), End> {
    use brig_protocol::control::Layer;
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    let breach = |layer| move |errno| End::Breach(Breach::of(layer, errno));
    entered.ids.settle().map_err(breach(Layer::NoCapabilities))?;
    // Changing ids cleared it.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(breach(Layer::ParentDeath))?;
    if !entered.parent_lives(link) {
        return Err(End::ParentGone);
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(breach(Layer::NotDumpable))?;
    rustix::thread::set_no_new_privs(true).map_err(breach(Layer::NoNewPrivs))?;
    fork::notice_children().map_err(breach(Layer::ParentDeath))
}

/// The nursery's own filter, which its children inherit.
fn filter_nursery(origin: Origin) -> Result<(), Breach> {
    let program = match origin {
        Origin::Fork => filter::base(Machine::NATIVE),
        Origin::Exec => filter::base_for_images(Machine::NATIVE),
    };
    lockdown::load_filter(&program.map_err(|_| uncompiled())?)
}

/// The table does not compile: a fault of the build, found by its tests.
fn uncompiled() -> Breach {
    Breach { layer: brig_protocol::control::Layer::Seccomp, errno: 0 }
}
