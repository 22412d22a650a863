//! The supervisor's side of a nursery: starting one, asking it, hearing it.
//!
//! Owns the control link and the process at its other end. Never decides (`lifecycle`
//! does), never speaks to a worker (`channel` does).

mod link;
mod read_back;

pub(crate) use link::{Link, LinkFault, Packet};
pub(crate) use read_back::{Mismatch, Scope, WorkerFacts, read_generation, read_worker};

use crate::spawn::{self, Process};
use brig_protocol::client::Sandbox;
use brig_protocol::control::{Configure, Layer, Layers, Level, Ready, Report, Request, exit};
use brig_protocol::escape::ShowPath as _;
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;

/// A nursery that is ready to make workers.
#[derive(Debug)]
pub(crate) struct Nursery {
    /// The way to it.
    pub link: Arc<Link>,
    /// The process that was started; nothing in tests that play the nursery in a thread.
    pub process: Option<Process>,
    /// What every worker of it has.
    pub layers: Layers,
    /// The same as it is told to callers.
    pub sandbox: Arc<Sandbox>,
}

/// Why there is no nursery, or no worker of it.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum NurseryFault {
    /// It could not be started at all.
    #[error("can not start {}: {reason}", path.shown())]
    Start {
        /// Which program.
        path: PathBuf,
        /// What the kernel said.
        reason: String,
    },
    /// A layer that must hold does not.
    #[error("sandbox layer `{}` is missing ({}), and sandbox.require is `{}`", layer.name(), why(*errno), required.name())]
    Layer {
        /// Which.
        layer: Layer,
        /// The kernel's error number, 0 when there was none.
        errno: u16,
        /// The level that was asked for.
        required: Level,
    },
    /// It did not become ready in time.
    #[error("the nursery was not ready in time")]
    StartLate,
    /// It went away.
    #[error("the nursery ended: {0}")]
    Ended(String),
    /// It does not speak the protocol.
    #[error("control link: {0}")]
    Link(#[from] LinkFault),
    /// It said something that is legal, but not now.
    #[error("control link: an unexpected {0}")]
    Unexpected(&'static str),
    /// It could not make a worker.
    #[error("the nursery could not make a worker: {}", why(*errno))]
    Spawn {
        /// The kernel's error number.
        errno: u16,
    },
    /// It did not answer a spawn, or report an exit, in time.
    #[error("the nursery does not answer")]
    Stalled,
    /// A worker is not what it should be.
    #[error("a worker failed its check: {0}")]
    Worker(#[from] Mismatch),
    /// A worker ended before it was ready.
    #[error("a worker ended before it was ready: {0}")]
    DiedEarly(String),
    /// A worker did not say hello in time.
    #[error("a worker was not ready in time")]
    HelloLate,
}

fn why(errno: u16) -> String {
    match errno {
        0 => "not supported here".to_owned(),
        number => Errno::from_raw_os_error(i32::from(number)).to_string(),
    }
}

/// What an exit code of nursery or worker says.
pub(crate) fn exit_text(code: u8) -> String {
    exit::meaning(code).map_or_else(|| format!("exit code {code}"), str::to_owned)
}

fn status_text(status: Option<ExitStatus>) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => u8::try_from(code).map_or_else(|_| format!("exit code {code}"), exit_text),
        Some((None, Some(signal))) => format!("signal {signal}"),
        _ => "it closed the control link".to_owned(),
    }
}

impl Nursery {
    /// Execs one and waits until it is ready. The caller bounds the wait; dropping the
    /// future ends the process.
    ///
    /// # Errors
    /// [`NurseryFault`], naming what was missing.
    pub(crate) async fn start(program: PathBuf, configure: &Configure) -> Result<Self, NurseryFault> {
        let (link, theirs) = Link::pair()?;
        let process = spawn::start_nursery(program.clone(), theirs)
            .await
            .map_err(|fault| NurseryFault::Start { path: program, reason: fault.to_string() })?;
        Self::introduce(link, Some(process), configure).await
    }

    /// The first exchange, with whoever is at the other end.
    ///
    /// # Errors
    /// [`NurseryFault`], naming what was missing.
    pub(crate) async fn introduce(link: Link, process: Option<Process>, configure: &Configure) -> Result<Self, NurseryFault> {
        link.send(&Request::Configure(*configure))?;
        match link.receive().await {
            Ok(Packet { report: Report::Ready(ready), .. }) => Self::judged(link, process, &ready, configure.required),
            Ok(Packet { report: Report::Failed { layer, errno }, .. }) => {
                Err(NurseryFault::Layer { layer, errno, required: configure.required })
            }
            Ok(packet) => Err(NurseryFault::Unexpected(packet.name())),
            Err(LinkFault::Closed) => Err(NurseryFault::Ended(Self::last_words(process).await)),
            Err(fault) => Err(fault.into()),
        }
    }

    async fn last_words(process: Option<Process>) -> String {
        match process {
            Some(process) => status_text(process.ended().await),
            None => status_text(None),
        }
    }

    fn judged(link: Link, process: Option<Process>, ready: &Ready, required: Level) -> Result<Self, NurseryFault> {
        let layers = ready.layers;
        let level = match (layers.level(), layers.missing_for(required)) {
            (Ok(level), None) => level,
            (Err(layer), _) | (_, Some(layer)) => return Err(NurseryFault::Layer { layer, errno: errno_of(&layers, layer), required }),
        };
        let sandbox = Sandbox { level: level.name().to_owned(), layers: layer_names(&layers).map(str::to_owned).collect() };
        Ok(Self { link: Arc::new(link), process, layers, sandbox: Arc::new(sandbox) })
    }
}

fn errno_of(layers: &Layers, layer: Layer) -> u16 {
    match layers.get(layer) {
        brig_protocol::control::LayerState::Missing { errno, .. } => errno,
        brig_protocol::control::LayerState::Active => 0,
    }
}

/// Names of the active layers, in the order in which they are set up.
pub(crate) fn layer_names(layers: &Layers) -> impl Iterator<Item = &'static str> + '_ {
    layers.iter().filter(|(layer, _)| layers.has(*layer)).map(|(layer, _)| layer.name())
}

/// The two descriptors that come with a worker.
#[derive(Debug)]
pub(crate) struct WorkerEnds {
    /// Names the process for ever.
    pub pidfd: OwnedFd,
    /// Our end of its one socket.
    pub socket: OwnedFd,
}
