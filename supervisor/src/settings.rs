//! Arguments and configuration, turned into what the parts need.
//!
//! Owns the command line, the exit codes, and what the process does to itself before
//! it does anything else.

use crate::cgroup::{self, CgroupFault, Cgroups};
use crate::config::{Config, ConfigFault, Level, Origin};
use crate::journal::{Counts, Journal, OpenFault, Retention, StateDir, StateFault};
use crate::listener::BindFault;
use crate::policy::clock::SteadyClock;
use crate::policy::counters::Counters;
use crate::pool::{PoolError, WorkerSettings};
use crate::state::FileFault;
use crate::tools::Tool;
use brig_protocol::escape::ShowPath as _;
use rustix::process::{Resource, Rlimit};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// What the kernel gives a kept worker beyond `vms.cpu_ms`, in milliseconds: the
/// supervisor is to be first, for it can say what happened.
const KEPT_CPU_SLACK_MS: u32 = 1_000;

/// The brig supervisor: evaluates untrusted JavaScript next to trusted credentials.
#[derive(Debug, clap::Parser)]
#[command(name = "brigd", version, about, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    /// A tool to run instead of serving.
    #[command(subcommand)]
    pub(crate) tool: Option<Tool>,
    /// Path of the client socket; not needed when systemd hands one over.
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Path of the admin socket (server.admin_socket).
    #[arg(long, value_name = "PATH")]
    pub(crate) admin_socket: Option<PathBuf>,
    /// Path of brig-worker [default: beside brigd, then ../libexec/brig].
    #[arg(long, value_name = "PATH", env = "BRIG_WORKER")]
    pub(crate) worker: Option<PathBuf>,
    /// Configuration file (TOML) [default: the embedded one].
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Directory for what outlives brigd, the journal of write calls among it
    /// (server.state_dir) [default: $STATE_DIRECTORY, as systemd sets it; else none].
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Check the configuration and the sandbox, print what is active, and exit.
    #[arg(long)]
    pub(crate) check: bool,
    /// Least confinement with which brigd starts (sandbox.require).
    #[arg(long, value_enum)]
    pub(crate) require: Option<Level>,
    /// How workers are made (workers.origin).
    #[arg(long, value_enum)]
    pub(crate) origin: Option<Origin>,
    /// How many workers wait, ready (workers.ready).
    #[arg(long, value_name = "COUNT")]
    pub(crate) ready: Option<usize>,
    /// Whether workers live in namespaces of their own (sandbox.namespaces).
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set)]
    pub(crate) namespaces: Option<bool>,
    /// Threads that serve clients; 0 is one for each core (runtime.threads).
    #[arg(long, value_name = "COUNT")]
    pub(crate) threads: Option<usize>,
    /// End when standard input, a pipe, is closed: for a client that starts a brigd of
    /// its own, which must not outlive it however it ends.
    #[arg(long)]
    pub(crate) exit_on_stdin_close: bool,
    /// Level of the log (server.log).
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log: Option<String>,
}

/// Why brigd does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// The operator's.
    #[error(transparent)]
    Config(#[from] ConfigFault),
    /// The operator's: nothing to listen on.
    #[error("there is no socket: give --socket PATH, set server.socket, or start brigd by systemd socket activation")]
    NoSocket,
    /// The operator's: files of configured functions that are not used.
    #[error("{0} of the files of configured functions can not be used; they are named above")]
    Functions(usize),
    /// The operator's: no such worker.
    #[error("there is no worker binary at {places}: install brig-worker there, or name it with --worker PATH")]
    NoWorker {
        /// Where it was looked for.
        places: String,
    },
    /// The operator's: a file in the state directory.
    #[error(transparent)]
    StateFile(#[from] FileFault),
    /// The host's, or the operator's.
    #[error("no workers: {0}")]
    Pool(#[from] PoolError),
    /// The host's, or the operator's: no cgroups where they are demanded.
    #[error("no workers: {0}, and sandbox.cgroup demands it")]
    Cgroup(#[from] CgroupFault),
    /// The host's, or the operator's.
    #[error(transparent)]
    Bind(#[from] BindFault),
    /// The operator's: figures can not be shown where they are to be.
    #[error(transparent)]
    Figures(#[from] crate::metrics::OpenFault),
    /// The host's, or somebody's who changed records.
    #[error(transparent)]
    Audit(#[from] crate::audit::OpenFault),
    /// The operator's: where brigd keeps what outlives it.
    #[error(transparent)]
    State(#[from] StateFault),
    /// The operator's, or the disk's.
    #[error(transparent)]
    Journal(#[from] OpenFault),
    /// The host's.
    #[error("cannot {what}: {fault}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why not.
        fault: io::Error,
    },
}

impl Fault {
    /// What was asked for could not be said.
    pub(crate) const fn output(fault: io::Error) -> Self {
        Self::System { what: "write to standard output", fault }
    }

    /// 2: fix the configuration or arguments; 3: the sandbox is not there; 4: the
    /// socket; 5: the state directory, what is in it, or the audit; 1: the system.
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) | Self::NoSocket | Self::NoWorker { .. } | Self::Functions(_) => 2,
            Self::Pool(_) | Self::Cgroup(_) => 3,
            Self::Bind(_) | Self::Figures(_) => 4,
            Self::Audit(_) | Self::State(_) | Self::StateFile(_) | Self::Journal(_) => 5,
            Self::System { .. } => 1,
        }
    }

    fn system(what: &'static str, fault: impl Into<io::Error>) -> Self {
        Self::System { what, fault: fault.into() }
    }
}

impl Arguments {
    /// Arguments win over the file.
    pub(crate) fn override_settings(&self, config: &mut Config) {
        if let Some(socket) = &self.socket {
            config.server.socket = Some(socket.clone());
        }
        if let Some(socket) = &self.admin_socket {
            config.server.admin_socket = Some(socket.clone());
        }
        if let Some(worker) = &self.worker {
            config.workers.path = Some(worker.clone());
        }
        if let Some(state) = self.state.clone().or_else(|| config.server.state_dir.take()).or_else(|| self.inherited_state()) {
            config.server.state_dir = Some(state);
        }
        if let Some(log) = &self.log {
            config.server.log.clone_from(log);
        }
        config.sandbox.require = self.require.unwrap_or(config.sandbox.require);
        config.sandbox.namespaces = self.namespaces.unwrap_or(config.sandbox.namespaces);
        config.workers.origin = self.origin.unwrap_or(config.workers.origin);
        config.workers.ready = self.ready.unwrap_or(config.workers.ready);
        config.runtime.threads = self.threads.unwrap_or(config.runtime.threads);
    }

    /// What systemd gives a service. A private brigd has no state of its own: there it
    /// would be that of the service that started it.
    fn inherited_state(&self) -> Option<PathBuf> {
        let given = std::env::var_os("STATE_DIRECTORY").filter(|given| !given.is_empty() && !self.exit_on_stdin_close)?;
        let first = given.as_encoded_bytes().split(|byte| *byte == b':').next()?;
        Some(PathBuf::from(std::ffi::OsStr::from_bytes(first)))
    }
}

/// The state directory, locked, and the journal in it; without one a journal in memory.
///
/// # Errors
/// [`Fault::State`] or [`Fault::Journal`], with the remedy.
pub(crate) fn journal(config: &Config) -> Result<(Option<StateDir>, Arc<Journal>), Fault> {
    let kept = &config.journal;
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let retention = Retention {
        age_ms: number(kept.retention_seconds).saturating_mul(1000),
        evaluations_each: number(kept.evaluations_each),
        bytes_each: number(kept.bytes_each),
        bytes: kept.bytes,
    };
    let Some(path) = &config.server.state_dir else {
        let journal = Journal::in_memory(retention).map_err(|fault| Fault::system("start the thread of the journal", fault))?;
        return Ok((None, journal));
    };
    let dir = StateDir::open(path)?;
    let journal = Journal::open(&dir, retention)?;
    Ok((Some(dir), journal))
}

/// What budgets used, kept where anything is.
///
/// # Errors
/// [`Fault::System`] when it can not be read: then no budget could be trusted.
pub(crate) fn counters(journal: &Arc<Journal>) -> Result<Counters, Fault> {
    if !journal.is_durable() {
        return Ok(Counters::default());
    }
    let counters = Counters::kept_in(Box::new(Counts::of(Arc::clone(journal))), Box::<SteadyClock>::default());
    counters.map_err(|fault| Fault::system("read what budgets used", io::Error::other(fault)))
}

/// Before anything else: no core, no debugger, files for nobody but this user and
/// group, and as many descriptors as may be.
///
/// # Errors
/// [`Fault::System`] when the kernel refuses.
pub(crate) fn harden() -> Result<(), Fault> {
    nix::sys::prctl::set_dumpable(false).map_err(|fault| Fault::system("make the process undumpable", fault))?;
    rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })
        .map_err(|fault| Fault::system("set the core limit", fault))?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o007));
    let files = rustix::process::getrlimit(Resource::Nofile);
    rustix::process::setrlimit(Resource::Nofile, Rlimit { current: files.maximum, maximum: files.maximum })
        .map_err(|fault| Fault::system("raise the limit of descriptors", fault))
}

/// The runtime: one thread for each core, a number of them, or none besides this one.
///
/// # Errors
/// [`Fault::System`] when threads can not be made.
pub(crate) fn runtime(threads: usize) -> Result<Runtime, Fault> {
    let mut builder = if threads == 1 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    if threads > 1 {
        builder.worker_threads(threads);
    }
    builder.thread_name("brigd").enable_all().build().map_err(|fault| Fault::system("start the runtime", fault))
}

/// What the pool is told.
///
/// # Errors
/// [`Fault::NoWorker`] with the places; [`Fault::Config`].
pub(crate) fn worker_settings(config: &Config) -> Result<WorkerSettings, Fault> {
    Ok(WorkerSettings {
        worker_path: worker_path(config.workers.path.as_deref())?,
        origin: match config.workers.origin {
            Origin::Fork => brig_protocol::control::Origin::Fork,
            Origin::Exec => brig_protocol::control::Origin::Exec,
        },
        namespaces: config.sandbox.namespaces,
        require: match config.sandbox.require {
            Level::Full => brig_protocol::control::Level::Full,
            Level::Strong => brig_protocol::control::Level::Strong,
            Level::Minimal => brig_protocol::control::Level::Minimal,
        },
        uid_range: config.workers.uid_range.or_else(|| uid_range_of_root(config.workers.most)),
        ceilings: config.ceilings()?,
        kept_cpu_ms: config.vms.cpu_ms.saturating_add(KEPT_CPU_SLACK_MS),
        ready: config.workers.ready,
        most: config.workers.most,
        generation_workers: config.workers.generation_workers,
        generation_age: Duration::from_secs(config.workers.generation_seconds),
        ..WorkerSettings::default()
    })
}

/// Cgroups for workers, as the operator wishes and the service manager delegates.
///
/// # Errors
/// [`Fault::Cgroup`] when they are demanded; [`Fault::Config`].
pub(crate) fn claim_cgroups(config: &Config) -> Result<Option<Arc<Cgroups>>, Fault> {
    let memory_max = match config.sandbox.cgroup_memory_bytes {
        Some(bytes) => bytes,
        None => config.ceilings()?.heap_bytes.saturating_add(cgroup::OVERHEAD_BYTES),
    };
    let cgroups = Cgroups::claim(config.sandbox.cgroup.into(), memory_max)?;
    if let Some(cgroups) = &cgroups {
        tracing::info!(root = %cgroups.root().shown(), memory_max, "each worker has a cgroup");
    }
    Ok(cgroups)
}

/// First of the uids that workers get from root when no range is set: no distribution,
/// service manager or container tool gives ids between 65536 and 524287 to anybody.
const ROOT_UID_BASE: u32 = 400_000;

/// Uids for workers where none are set: as root one each, where this user namespace has
/// them; an ordinary user has none to give.
fn uid_range_of_root(most: usize) -> Option<(u32, u32)> {
    let count = u32::try_from(most).ok()?.checked_add(2)?;
    let map = std::fs::read_to_string("/proc/self/uid_map").ok()?;
    (rustix::process::geteuid().is_root() && holds(&map, ROOT_UID_BASE, count)).then_some((ROOT_UID_BASE, count))
}

/// Whether an `uid_map` has all of `count` ids from `first` on, in one line of it.
fn holds(map: &str, first: u32, count: u32) -> bool {
    map.lines().any(|line| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        matches!(numbers.as_slice(), [inside, _, length]
            if *inside <= u64::from(first) && u64::from(first) + u64::from(count) <= inside + length)
    })
}

/// The worker binary: as set, or beside brigd, or in libexec.
fn worker_path(set: Option<&Path>) -> Result<PathBuf, Fault> {
    let places = match set {
        Some(path) => vec![path.to_owned()],
        None => places_beside(&std::env::current_exe().map_err(|fault| Fault::system("find the path of brigd", fault))?),
    };
    let found = places.iter().find(|path| path.is_file()).and_then(|path| std::path::absolute(path).ok());
    found.ok_or_else(|| {
        let places: Vec<String> = places.iter().map(|path| path.shown().to_string()).collect();
        Fault::NoWorker { places: places.join(" or ") }
    })
}

fn places_beside(program: &Path) -> Vec<PathBuf> {
    let directory = program.parent().unwrap_or(Path::new("/"));
    vec![directory.join("brig-worker"), directory.join("../libexec/brig/brig-worker"), PathBuf::from("/usr/libexec/brig/brig-worker")]
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use clap::Parser as _;

    #[test]
    fn a_range_of_ids_must_be_wholly_in_one_line_of_the_map() {
        assert!(holds("         0          0 4294967295\n", 400_000, 130));
        assert!(holds("0 100000 65536\n400000 900000 130\n", 400_000, 130));
        assert!(!holds("0 100000 65536\n", 400_000, 130));
        assert!(!holds("0 0 400100\n", 400_000, 130));
        assert!(!holds("", 400_000, 130));
    }

    #[test]
    fn arguments_win_over_the_file() {
        let arguments =
            Arguments::try_parse_from(["brigd", "--socket", "/s", "--ready", "3", "--namespaces", "false", "--origin", "exec"]).unwrap();
        let mut config = Config::default();
        arguments.override_settings(&mut config);
        assert_eq!(config.server.socket.as_deref(), Some(Path::new("/s")));
        assert_eq!((config.workers.ready, config.sandbox.namespaces, config.workers.origin), (3, false, Origin::Exec));
    }

    #[test]
    fn a_worker_that_is_not_there_is_named_with_the_remedy() {
        let fault = worker_path(Some(Path::new("/no/such/worker"))).unwrap_err();
        assert!(fault.to_string().contains("/no/such/worker") && fault.to_string().contains("--worker"), "{fault}");
        assert_eq!(fault.exit_code(), 2);
    }
}
