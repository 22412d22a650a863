//! A cgroup for each worker, where the service manager delegates a subtree.
//!
//! Owns the subtree: brigd's own leaf, one leaf for each worker with its limits, and what
//! a leaf says of its worker's end. Never needed for the other layers: without a delegated
//! subtree there are no leaves, unless `sandbox.cgroup` demands them.
//!
//! A leaf bounds what the heap limit does not count (the engine's own memory, socket
//! buffers, page tables), lets the kernel kill one worker for lack of memory and nobody
//! else, and ends whatever a worker may have become, as a whole.
//!
//! Moving a process between cgroups waits for all readers in the kernel, so it is done on
//! a thread that may block, before a worker enters the pool; removal is a thread's of its
//! own. What it costs is in docs/operations.md.

mod shortage;

use crate::lifecycle::WorkerId;
use brig_protocol::escape::ShowPath as _;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

pub(crate) use shortage::{Kills, Shortage};

/// Memory of a worker besides its heap: engine, stack, frames on their way, page tables.
pub(crate) const OVERHEAD_BYTES: u64 = 64 << 20;
/// The name under which answers list the layer.
pub(crate) const LAYER: &str = "cgroup";
/// brigd's own leaf: a cgroup with processes of its own can not share out controllers.
const OWN_LEAF: &str = "supervisor";
/// How a worker's leaf is called before its slot and generation.
const WORKER_PREFIX: &str = "worker-";
/// What must be delegated; `cpu` is used where it is.
const NEEDED: [&str; 2] = ["memory", "pids"];
/// Share of the processor for brigd; a worker has 100.
const OWN_WEIGHT: &str = "1000";
/// How long the leaves of a brigd before this one may take to be emptied.
const SWEEP_DEADLINE: Duration = Duration::from_secs(5);
/// Pause until a leaf that is not empty yet is tried again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Why there are no leaves, or not this one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CgroupFault {
    /// No cgroup v2, or not ours to see.
    #[error("sandbox layer `cgroup`: this process is in no cgroup v2 that it can see ({0})")]
    Nowhere(String),
    /// Not given to us.
    #[error(
        "sandbox layer `cgroup`: {path} is not delegated to brigd ({why}); use the drop-in delegate.conf of the unit, or leave sandbox.cgroup out"
    )]
    NotDelegated {
        /// The cgroup.
        path: PathBuf,
        /// What was missing.
        why: String,
    },
    /// The kernel refused a step.
    #[error("sandbox layer `cgroup`: can not {what} {}: {why}", path.shown())]
    Refused {
        /// The step.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The kernel shows something else than was set.
    #[error("sandbox layer `cgroup`: {} has {found:?} and not {wanted:?}", path.shown())]
    Differs {
        /// The file.
        path: PathBuf,
        /// What it has.
        found: String,
        /// What it should have.
        wanted: String,
    },
}

/// Whether the operator wants leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Where the service manager delegates.
    WherePossible,
    /// Or brigd does not start.
    Demanded,
    /// Never.
    No,
}

impl From<Option<bool>> for Wish {
    fn from(set: Option<bool>) -> Self {
        match set {
            None => Self::WherePossible,
            Some(true) => Self::Demanded,
            Some(false) => Self::No,
        }
    }
}

/// The delegated subtree.
#[derive(Debug)]
pub(crate) struct Cgroups {
    root: PathBuf,
    memory_max: u64,
    has_cpu: bool,
    sweeper: Sender<PathBuf>,
}

/// One worker's cgroup; removed, with whatever is in it, when dropped.
#[derive(Debug)]
pub(crate) struct Leaf {
    path: PathBuf,
    memory_max: u64,
    sweeper: Sender<PathBuf>,
}

impl Cgroups {
    /// Takes the subtree: brigd goes into a leaf of its own, what another brigd left is
    /// removed, controllers are shared out. Nothing where nothing is delegated.
    ///
    /// # Errors
    /// [`CgroupFault`] when leaves are demanded and can not be.
    pub(crate) fn claim(wish: Wish, memory_max: u64) -> Result<Option<Arc<Self>>, CgroupFault> {
        if wish == Wish::No {
            return Ok(None);
        }
        let claimed = own_cgroup().and_then(|own| {
            let root = delegated_root(&own);
            // Where brigd is root it could take any cgroup: only what is given to it is its.
            if wish == Wish::WherePossible && !is_delegated(&root) {
                return Err(CgroupFault::NotDelegated { path: root, why: "the service manager has not marked it so".to_owned() });
            }
            Self::take(root, memory_max)
        });
        match claimed {
            Ok(cgroups) => Ok(Some(Arc::new(cgroups))),
            Err(fault) if wish == Wish::Demanded => Err(fault),
            Err(fault) => {
                tracing::debug!(%fault, "workers have no cgroups of their own");
                Ok(None)
            }
        }
    }

    fn take(root: PathBuf, memory_max: u64) -> Result<Self, CgroupFault> {
        let has = read(&root.join("cgroup.controllers"))?;
        if let Some(missing) = NEEDED.iter().find(|needed| !has.split_whitespace().any(|name| name == **needed)) {
            return Err(CgroupFault::NotDelegated { path: root, why: format!("the controller `{missing}` is not there") });
        }
        let has_cpu = has.split_whitespace().any(|name| name == "cpu");
        let own = root.join(OWN_LEAF);
        make(&own)?;
        write(&own.join("cgroup.procs"), &std::process::id().to_string())?;
        remove_left(&root)?;
        let enabled = if has_cpu { "+memory +pids +cpu" } else { "+memory +pids" };
        write(&root.join("cgroup.subtree_control"), enabled)?;
        if has_cpu {
            write(&own.join("cpu.weight"), OWN_WEIGHT)?;
        }
        let (sweeper, leaves) = channel();
        let thread = std::thread::Builder::new().name("cgroups".to_owned());
        thread.spawn(move || sweep(&leaves)).map_err(|fault| refused("start a thread for", &root, &fault))?;
        Ok(Self { root, memory_max: in_pages(memory_max), has_cpu, sweeper })
    }

    /// Where the leaves are, for the log.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Puts a worker that runs no program yet into a leaf of its own, and sees it there.
    /// May block; dropping the leaf ends the worker.
    ///
    /// # Errors
    /// [`CgroupFault`], and the leaf is gone again.
    pub(crate) fn enrol(&self, worker: WorkerId, pid: i32) -> Result<Leaf, CgroupFault> {
        let path = self.root.join(format!("{WORKER_PREFIX}{}-{}", worker.slot, worker.generation));
        fs::create_dir(&path).map_err(|fault| refused("make", &path, &fault))?;
        let leaf = Leaf { path, memory_max: self.memory_max, sweeper: self.sweeper.clone() };
        let memory_max = self.memory_max.to_string();
        leaf.set("memory.max", &memory_max)?;
        leaf.set("memory.oom.group", "1")?;
        // One task, and none besides it whatever it calls.
        leaf.set("pids.max", "1")?;
        if leaf.path.join("memory.swap.max").exists() {
            leaf.set("memory.swap.max", "0")?;
        }
        if self.has_cpu {
            leaf.set("cpu.weight", "100")?;
        }
        let pid = pid.to_string();
        leaf.set("cgroup.procs", &pid)?;
        leaf.shows("cgroup.procs", &pid)?;
        leaf.shows("memory.max", &memory_max)?;
        leaf.shows("pids.max", "1")?;
        Ok(leaf)
    }
}

impl Leaf {
    /// Whether the kernel killed the worker because memory ran out, and whose. Asked once
    /// it has ended; one small read.
    pub(crate) fn ran_out(&self) -> Option<Shortage> {
        Shortage::of_leaf(&fs::read_to_string(self.path.join("memory.events")).ok()?, self.memory_max)
    }

    fn set(&self, file: &'static str, value: &str) -> Result<(), CgroupFault> {
        write(&self.path.join(file), value)
    }

    fn shows(&self, file: &'static str, wanted: &str) -> Result<(), CgroupFault> {
        let path = self.path.join(file);
        let found = read(&path)?.trim().to_owned();
        if found == wanted { Ok(()) } else { Err(CgroupFault::Differs { path, found, wanted: wanted.to_owned() }) }
    }
}

impl Drop for Leaf {
    fn drop(&mut self) {
        // Without its thread brigd ends, and the service manager removes the whole subtree.
        drop(self.sweeper.send(std::mem::take(&mut self.path)));
    }
}

/// The removing thread's life: as long as anybody can have a leaf.
fn sweep(leaves: &Receiver<PathBuf>) {
    let mut left: Vec<PathBuf> = Vec::new();
    loop {
        let next =
            if left.is_empty() { leaves.recv().map_err(|_| RecvTimeoutError::Disconnected) } else { leaves.recv_timeout(LOOK_AGAIN) };
        match next {
            Ok(path) => left.push(path),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                left.retain(|path| !remove(path));
                return;
            }
        }
        left.retain(|path| !remove(path));
    }
}

/// Kills what is in a leaf and removes it. False: it is not empty yet.
fn remove(path: &Path) -> bool {
    match fs::remove_dir(path) {
        Err(fault) if fault.kind() == ErrorKind::ResourceBusy => {
            // Its worker, or what came of it, lives.
            if let Err(fault) = fs::write(path.join("cgroup.kill"), "1") {
                tracing::warn!(%fault, leaf = %path.shown(), "a cgroup can not be killed");
            }
            false
        }
        Err(fault) if fault.kind() != ErrorKind::NotFound => {
            tracing::warn!(%fault, leaf = %path.shown(), "a cgroup can not be removed");
            true
        }
        Ok(()) | Err(_) => true,
    }
}

/// What a brigd that was killed has left: its workers are dead or die now.
fn remove_left(root: &Path) -> Result<(), CgroupFault> {
    let until = Instant::now() + SWEEP_DEADLINE;
    let entries = fs::read_dir(root).map_err(|fault| refused("list", root, &fault))?;
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(WORKER_PREFIX)) {
        let path = entry.path();
        while !remove(&path) {
            if Instant::now() > until {
                return Err(refused("empty", &path, &io::Error::other("its processes do not end")));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        tracing::info!(leaf = %path.shown(), "removed a cgroup that was left over");
    }
    Ok(())
}

/// The cgroup of this process, as a folder.
fn own_cgroup() -> Result<PathBuf, CgroupFault> {
    let read = |path: &str| fs::read_to_string(path).map_err(|fault| CgroupFault::Nowhere(format!("{path}: {fault}")));
    folder_of(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)
        .ok_or_else(|| CgroupFault::Nowhere("it is on cgroup v1 only, or not mounted".to_owned()))
}

/// The folder of the cgroup that `own` names, in one of the mounts.
fn folder_of(own: &str, mounts: &str) -> Option<PathBuf> {
    let own = Path::new(own.lines().find_map(|line| line.strip_prefix("0::"))?);
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        if kind.split(' ').next() != Some("cgroup2") {
            return None;
        }
        let mut fields = place.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        Some(Path::new(point).join(own.strip_prefix(root).ok()?))
    })
}

/// What is delegated when brigd is in `own`: that, or what is above when the service
/// manager put brigd into a leaf (`DelegateSubgroup=`), or a brigd before this one did.
fn delegated_root(own: &Path) -> PathBuf {
    match own.parent() {
        Some(parent) if own.file_name().is_some_and(|name| name == OWN_LEAF) => parent.to_owned(),
        _ => own.to_owned(),
    }
}

/// The mark of systemd.
fn is_delegated(root: &Path) -> bool {
    ["user.delegate", "trusted.delegate"].iter().any(|name| {
        let mut value = [0_u8; 8];
        rustix::fs::getxattr(root, *name, &mut value).is_ok_and(|length| value.get(..length) == Some(b"1".as_slice()))
    })
}

/// The kernel counts in pages, and none has larger ones.
const fn in_pages(bytes: u64) -> u64 {
    const LARGEST: u64 = 64 << 10;
    bytes.div_ceil(LARGEST) * LARGEST
}

fn make(path: &Path) -> Result<(), CgroupFault> {
    match fs::create_dir(path) {
        Err(fault) if fault.kind() == ErrorKind::AlreadyExists => Ok(()),
        outcome => outcome.map_err(|fault| match fault.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                CgroupFault::NotDelegated { path: path.parent().unwrap_or(path).to_owned(), why: fault.to_string() }
            }
            _ => refused("make", path, &fault),
        }),
    }
}

fn write(path: &Path, value: &str) -> Result<(), CgroupFault> {
    fs::write(path, value).map_err(|fault| refused("write", path, &fault))
}

fn read(path: &Path) -> Result<String, CgroupFault> {
    fs::read_to_string(path).map_err(|fault| refused("read", path, &fault))
}

fn refused(what: &'static str, path: &Path, fault: &io::Error) -> CgroupFault {
    CgroupFault::Refused { what, path: path.to_owned(), why: fault.to_string() }
}

#[cfg(test)]
mod tests;
