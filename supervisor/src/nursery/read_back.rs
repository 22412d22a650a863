//! What the kernel says about a worker, read from outside before it enters the pool.
//!
//! Owns the comparison of the kernel's facts with the layers that the nursery reported.
//! Never claims what it could not read: a fact that this user may not see, or that needs a
//! `/proc` that is not there, is missing from the answer; one that differs is a
//! [`Mismatch`], and the worker must die.
//!
//! Cost, on the machine and build of the test `what_reading_back_costs`: some 25 µs for
//! what every worker has of its own (process id, status, descriptors), some 50 µs more for
//! what all workers of a nursery inherit (namespaces, root, environment). So the former is
//! read of each worker, the latter of the first of each nursery.

use brig_protocol::control::{Layer, Layers};
use rustix::fs::{Mode, OFlags, RawDir};
use rustix::io::Errno;
use rustix::net::SocketType;
use std::borrow::Cow;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// What was read and found right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Filter, privileges, capabilities, user.
    pub status: bool,
    /// The descriptor table.
    pub descriptors: bool,
    /// The environment.
    pub environment: bool,
    /// The namespaces.
    pub namespaces: bool,
    /// The root directory.
    pub root: bool,
}

impl Facts {
    /// Names of what was read, for `doctor` and the log.
    pub(crate) fn names(self) -> Vec<&'static str> {
        [
            (self.status, "status"),
            (self.descriptors, "descriptors"),
            (self.environment, "environment"),
            (self.namespaces, "namespaces"),
            (self.root, "root"),
        ]
        .into_iter()
        .filter_map(|(read, name)| read.then_some(name))
        .collect()
    }
}

/// Which worker it should be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    /// What the nursery reported.
    pub layers: Layers,
    /// The user id that it should have, where slots have their own.
    pub uid: Option<u32>,
}

/// A worker's own facts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkerFacts {
    /// Its process id as we see it; nothing when we can not.
    pub pid: Option<i32>,
    /// What was read.
    pub facts: Facts,
}

/// A worker that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Mismatch {
    /// The kernel shows something else than the layer promises.
    #[error("sandbox layer `{}`: the kernel shows {fact} {found}", layer.name())]
    Layer {
        /// Which layer is not there.
        layer: Layer,
        /// What was looked at.
        fact: &'static str,
        /// What was seen.
        found: String,
    },
    /// It did not say the layers that its nursery reported.
    #[error("its hello names the layers {said}, the nursery reported {promised}")]
    Hello {
        /// The worker's.
        said: String,
        /// The nursery's.
        promised: String,
    },
    /// What it said first was not a hello.
    #[error("its first message: {0}")]
    Breach(String),
    /// What came as a pidfd is none, or what came as its socket is not a stream.
    #[error("a descriptor is not what it should be: {0}")]
    Descriptor(&'static str),
    /// It could not be put into a cgroup of its own.
    #[error("{0}")]
    Cgroup(String),
    /// It ended while it was looked at.
    #[error("it ended while it was looked at")]
    Gone,
}

fn differs(layer: Layer, fact: &'static str, found: impl Into<String>) -> Mismatch {
    Mismatch::Layer { layer, fact, found: found.into() }
}

/// Reads what each worker has of its own.
///
/// # Errors
/// The first [`Mismatch`].
pub(crate) fn read_worker(pidfd: &OwnedFd, socket: BorrowedFd<'_>, scope: &Scope) -> Result<WorkerFacts, Mismatch> {
    if rustix::net::sockopt::socket_type(socket) != Ok(SocketType::STREAM) {
        return Err(Mismatch::Descriptor("the socket"));
    }
    let mut worker = WorkerFacts { pid: host_pid(pidfd)?, ..WorkerFacts::default() };
    let Some(pid) = worker.pid else { return Ok(worker) };
    let read = read_own(pid, scope);
    still_there(pidfd)?;
    worker.facts = read?;
    Ok(worker)
}

fn read_own(pid: i32, scope: &Scope) -> Result<Facts, Mismatch> {
    let mut facts = Facts::default();
    let mut buffer = [0; STATUS_BYTES];
    if let Some(status) = readable(read_small(&format!("/proc/{pid}/status"), &mut buffer))? {
        check_status(&status, scope)?;
        facts.status = true;
    }
    facts.descriptors = check_descriptors(pid)?;
    Ok(facts)
}

/// Reads what all workers of a nursery inherit, from one of them.
///
/// # Errors
/// The first [`Mismatch`].
pub(crate) fn read_generation(pidfd: &OwnedFd, worker: &mut WorkerFacts, scope: &Scope) -> Result<(), Mismatch> {
    let Some(pid) = worker.pid else { return Ok(()) };
    let read = read_inherited(pid, scope, worker.facts);
    // Before the look at the pidfd: of one that was waited for meanwhile there is no flag.
    let ending = is_ending(pid);
    still_there(pidfd)?;
    worker.facts = read?;
    // One that is ending may have lost some of this already: that it shows nothing wrong is
    // not that all was read.
    if ending { Err(Mismatch::Gone) } else { Ok(()) }
}

fn read_inherited(pid: i32, scope: &Scope, mut facts: Facts) -> Result<Facts, Mismatch> {
    if let Some(environment) = readable(std::fs::read(format!("/proc/{pid}/environ")))? {
        if !environment.is_empty() {
            return Err(differs(Layer::NotDumpable, "an environment of", format!("{} bytes", environment.len())));
        }
        facts.environment = true;
    }
    facts.namespaces = check_namespaces(pid, &scope.layers)?;
    facts.root = scope.layers.has(Layer::EmptyRoot) && check_root(pid)?;
    Ok(facts)
}

/// Process ids are used again; the pidfd is not. What was read, right or wrong, is of this
/// worker only if it lives afterwards.
fn still_there(pidfd: &OwnedFd) -> Result<(), Mismatch> {
    use std::os::fd::AsFd as _;
    if crate::spawn::has_ended(pidfd.as_fd()) { Err(Mismatch::Gone) } else { Ok(()) }
}

/// The process id of a pidfd as this process sees it.
fn host_pid(pidfd: &OwnedFd) -> Result<Option<i32>, Mismatch> {
    let mut buffer = [0; 512];
    let Some(info) = readable(read_small(&format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()), &mut buffer))? else {
        return Ok(None);
    };
    let pid = field(&info, "Pid:").ok_or(Mismatch::Descriptor("the pidfd"))?;
    match pid.parse::<i32>() {
        Ok(-1) => Err(Mismatch::Gone),
        Ok(pid) => Ok(Some(pid).filter(|pid| *pid > 0)),
        Err(_) => Err(Mismatch::Descriptor("the pidfd")),
    }
}

fn check_status(status: &str, scope: &Scope) -> Result<(), Mismatch> {
    let expect = |layer, fact, name, right: &dyn Fn(&str) -> bool| match field(status, name) {
        Some(value) if right(value) => Ok(()),
        Some(value) => Err(differs(layer, fact, value)),
        None => Err(differs(layer, fact, "nothing")),
    };
    let zero = |value: &str| value.bytes().all(|digit| digit == b'0');
    expect(Layer::Seccomp, "Seccomp", "Seccomp:", &|value| value == "2")?;
    expect(Layer::NoNewPrivs, "NoNewPrivs", "NoNewPrivs:", &|value| value == "1")?;
    expect(Layer::NoCapabilities, "CapInh", "CapInh:", &zero)?;
    expect(Layer::NoCapabilities, "CapPrm", "CapPrm:", &zero)?;
    expect(Layer::NoCapabilities, "CapEff", "CapEff:", &zero)?;
    expect(Layer::NoCapabilities, "CapAmb", "CapAmb:", &zero)?;
    if let Some(uid) = scope.uid.filter(|_| scope.layers.has(Layer::OwnUid)) {
        let wanted = uid.to_string();
        let only = |value: &str| value.split_whitespace().all(|id| id == wanted);
        expect(Layer::OwnUid, "Uid", "Uid:", &only)?;
        expect(Layer::OwnUid, "Gid", "Gid:", &only)?;
    }
    Ok(())
}

/// Each namespace that should be its own is not ours. False when one could not be read.
fn check_namespaces(pid: i32, layers: &Layers) -> Result<bool, Mismatch> {
    const NAMESPACES: [(Layer, &str); 7] = [
        (Layer::UserNamespace, "user"),
        (Layer::MountNamespace, "mnt"),
        (Layer::NetNamespace, "net"),
        (Layer::IpcNamespace, "ipc"),
        (Layer::UtsNamespace, "uts"),
        (Layer::PidNamespace, "pid"),
        (Layer::CgroupNamespace, "cgroup"),
    ];
    let mut read = false;
    for (layer, name) in NAMESPACES {
        if !layers.has(layer) {
            continue;
        }
        let ours = readable(std::fs::read_link(format!("/proc/self/ns/{name}")))?;
        let theirs = readable(std::fs::read_link(format!("/proc/{pid}/ns/{name}")))?;
        let (Some(ours), Some(theirs)) = (ours, theirs) else { return Ok(false) };
        if ours == theirs {
            return Err(differs(layer, "the namespace", "that is ours"));
        }
        read = true;
    }
    Ok(read)
}

/// Only descriptor 3 is open. False when it could not be read.
fn check_descriptors(pid: i32) -> Result<bool, Mismatch> {
    match readable(entries(&format!("/proc/{pid}/fd")))? {
        Some(names) if names == "3" => Ok(true),
        Some(names) if names.is_empty() && is_ending(pid) => Err(Mismatch::Gone),
        Some(names) if names.is_empty() => Err(differs(Layer::Descriptors, "descriptors", "that are none")),
        Some(names) => Err(differs(Layer::Descriptors, "descriptors", names)),
        None => Ok(false),
    }
}

/// The root directory is empty. False when it could not be read.
fn check_root(pid: i32) -> Result<bool, Mismatch> {
    match readable(entries(&format!("/proc/{pid}/root/")))? {
        Some(names) if names.is_empty() => Ok(true),
        Some(names) => Err(differs(Layer::EmptyRoot, "a root directory with", names)),
        None => Ok(false),
    }
}

/// Whether a process is on its way out. The kernel takes its descriptors, namespaces and
/// root from it some time before the pidfd tells that it has ended.
fn is_ending(pid: i32) -> bool {
    let mut buffer = [0; STATUS_BYTES];
    read_small(&format!("/proc/{pid}/stat"), &mut buffer).is_ok_and(|stat| has_exit_flag(&stat))
}

/// The seventh field after the name, which is the only one that can hold a parenthesis or
/// a space, has the kernel's flags of the task.
fn has_exit_flag(stat: &str) -> bool {
    const PF_EXITING: u32 = 0x4;
    let flags = stat.rsplit_once(')').and_then(|(_, fields)| fields.split_whitespace().nth(6));
    flags.and_then(|flags| flags.parse::<u32>().ok()).is_some_and(|flags| flags & PF_EXITING != 0)
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// A status has some 1,500 bytes, and up to 11 more for each supplementary group.
const STATUS_BYTES: usize = 4096;

/// Reads a file of `/proc`: with one call, unless it is longer than the buffer.
fn read_small<'a>(path: &str, buffer: &'a mut [u8]) -> io::Result<Cow<'a, str>> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let length = rustix::io::read(&file, &mut *buffer)?;
    if length == buffer.len() {
        return Ok(Cow::Owned(String::from_utf8_lossy(&std::fs::read(path)?).into_owned()));
    }
    Ok(String::from_utf8_lossy(buffer.get(..length).unwrap_or_default()))
}

/// Names in a directory, commas between them.
fn entries(path: &str) -> io::Result<String> {
    let directory = rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut buffer = [MaybeUninit::uninit(); 1024];
    let mut listing = RawDir::new(&directory, &mut buffer);
    let mut names = String::new();
    while let Some(entry) = listing.next() {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy();
        if name != "." && name != ".." {
            names.push_str(if names.is_empty() { "" } else { "," });
            names.push_str(&name);
        }
    }
    Ok(names)
}

/// What may not be seen is no fact; what is no more is a worker that ended.
fn readable<T>(outcome: io::Result<T>) -> Result<Option<T>, Mismatch> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(fault) if Errno::from_io_error(&fault) == Some(Errno::SRCH) => Err(Mismatch::Gone),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use rustix::process::{WaitId, WaitIdOptions};
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;

    const GOOD: &str = "Name:\tx\nUid:\t7\t7\t7\t7\nGid:\t7\t7\t7\t7\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\n\
                        CapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t2\n";

    fn scope(uid: Option<u32>) -> Scope {
        let mut layers = Layers::none();
        for layer in Layer::ALL {
            layers.activate(*layer);
        }
        Scope { layers, uid }
    }

    fn own_pidfd() -> OwnedFd {
        rustix::process::pidfd_open(rustix::process::getpid(), rustix::process::PidfdFlags::empty()).unwrap()
    }

    #[test]
    fn each_fact_of_the_status_is_held_against_its_layer() {
        assert_eq!(check_status(GOOD, &scope(Some(7))), Ok(()));
        for (from, to, layer) in [
            ("Seccomp:\t2", "Seccomp:\t0", Layer::Seccomp),
            ("Seccomp:\t2\n", "", Layer::Seccomp),
            ("NoNewPrivs:\t1", "NoNewPrivs:\t0", Layer::NoNewPrivs),
            ("CapEff:\t0000000000000000", "CapEff:\t0000000000000001", Layer::NoCapabilities),
            ("CapPrm:\t0000000000000000", "CapPrm:\t0000000000200000", Layer::NoCapabilities),
            ("CapAmb:\t0000000000000000", "CapAmb:\t0000000000200000", Layer::NoCapabilities),
            ("Uid:\t7\t7\t7\t7", "Uid:\t7\t0\t7\t7", Layer::OwnUid),
            ("Gid:\t7\t7\t7\t7", "Gid:\t7\t7\t7\t8", Layer::OwnUid),
        ] {
            let found = check_status(&GOOD.replace(from, to), &scope(Some(7)));
            assert!(matches!(&found, Err(Mismatch::Layer { layer: named, .. }) if *named == layer), "{to}: {found:?}");
        }
    }

    #[test]
    fn a_process_that_is_not_confined_is_found_out() {
        let (socket, _other) = UnixStream::pair().unwrap();
        let found = read_worker(&own_pidfd(), socket.as_fd(), &scope(None));
        assert!(matches!(&found, Err(Mismatch::Layer { .. })), "{found:?}");
        let mut own = WorkerFacts { pid: Some(rustix::process::getpid().as_raw_nonzero().get()), ..WorkerFacts::default() };
        assert!(read_generation(&own_pidfd(), &mut own, &scope(None)).is_err());
    }

    #[test]
    fn open_descriptors_and_a_root_with_entries_are_named() {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        assert!(matches!(check_descriptors(pid), Err(Mismatch::Layer { layer: Layer::Descriptors, .. })));
        assert!(matches!(check_root(pid), Err(Mismatch::Layer { layer: Layer::EmptyRoot, .. })));
    }

    #[test]
    fn shared_namespaces_are_named() {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let found = check_namespaces(pid, &scope(None).layers);
        assert!(matches!(found, Err(Mismatch::Layer { layer: Layer::UserNamespace, .. })));
        assert_eq!(check_namespaces(pid, &Layers::none()), Ok(false));
    }

    /// A process that has ended and is not reaped: the kernel shows what is left of it.
    fn ended() -> (std::process::Child, OwnedFd, i32) {
        let child = std::process::Command::new("true").spawn().unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        rustix::process::waitid(WaitId::Pid(pid), options).unwrap();
        (child, pidfd, pid.as_raw_nonzero().get())
    }

    #[test]
    fn a_process_that_lost_its_descriptors_by_ending_is_gone_and_no_alarm() {
        let (mut child, pidfd, pid) = ended();
        assert_eq!(entries(&format!("/proc/{pid}/fd")).unwrap(), "");
        assert_eq!(check_descriptors(pid), Err(Mismatch::Gone));
        let (socket, _other) = UnixStream::pair().unwrap();
        // Its status has no filter; but by now its number could be another's.
        assert_eq!(read_worker(&pidfd, socket.as_fd(), &scope(None)).unwrap_err(), Mismatch::Gone);
        child.wait().unwrap();
    }

    #[test]
    fn a_process_that_lives_without_its_descriptor_is_told() {
        let program = "import os, signal; os.closerange(0, 1 << 16); os.kill(os.getpid(), signal.SIGSTOP)";
        let mut child = std::process::Command::new("python3").args(["-c", program]).spawn().unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        let found = check_descriptors(pid.as_raw_nonzero().get());
        child.kill().unwrap();
        child.wait().unwrap();
        let told = found.unwrap_err().to_string();
        assert_eq!(told, format!("sandbox layer `{}`: the kernel shows descriptors that are none", Layer::Descriptors.name()));
    }

    #[test]
    fn the_flag_of_ending_is_read_behind_any_name() {
        let stat = |name: &str, flags: u32| format!("7 ({name}) R 1 7 7 0 -1 {flags} 0 0 0\n");
        for name in ["x", "a b) R 1 2 3 4 5 4 (", ")"] {
            assert!(has_exit_flag(&stat(name, 0x0040_0004)), "{name}");
            assert!(!has_exit_flag(&stat(name, 0x0040_0000)), "{name}");
        }
        assert!(!has_exit_flag("") && !is_ending(rustix::process::getpid().as_raw_nonzero().get()));
    }

    #[test]
    fn descriptors_in_the_wrong_order_are_found_out() {
        let (socket, _other) = UnixStream::pair().unwrap();
        let swapped = read_worker(&OwnedFd::from(socket), own_pidfd().as_fd(), &scope(None));
        assert!(matches!(swapped, Err(Mismatch::Descriptor(_))));
        let (one, two) = UnixStream::pair().unwrap();
        assert_eq!(read_worker(&OwnedFd::from(one), two.as_fd(), &scope(None)).unwrap_err(), Mismatch::Descriptor("the pidfd"));
    }
}
