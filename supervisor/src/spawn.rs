//! The one file that starts a process: nurseries, and the keepers of functions' programs
//! (which start those: [`crate::keeper`]).
//!
//! Owns the thread that does it. The kernel kills a nursery when the *thread* that
//! started it ends (`PR_SET_PDEATHSIG`), and threads of the runtime come and go; so one
//! thread that lives as long as the process starts all of them. Never forks without an
//! exec, never passes on an environment, a terminal, or a descriptor of its own (all are
//! close-on-exec; what brigd itself inherited, the nursery closes before anything else).

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;

/// A child process. Killed when dropped, and then waited for by the thread that started it.
#[derive(Debug)]
pub(crate) struct Process {
    child: Option<Child>,
    pidfd: OwnedFd,
}

struct Order {
    program: PathBuf,
    stdin: OwnedFd,
    reply: oneshot::Sender<io::Result<Process>>,
}

/// The three descriptors of a program, and one of its keeper.
pub(crate) struct Stdio3 {
    /// Its orders, then its input.
    pub(crate) stdin: OwnedFd,
    /// Its output.
    pub(crate) stdout: OwnedFd,
    /// What it complains.
    pub(crate) stderr: OwnedFd,
    /// Where its keeper says that it could not be started. The program never has it.
    pub(crate) report: OwnedFd,
}

/// The keeper of a function's program: while it is there, so may be what the program
/// started. When dropped it is told to end all of it, and the thread that started it sees
/// to that.
pub(crate) struct Keeper {
    child: Option<Child>,
    pidfd: OwnedFd,
    /// Given back when nothing is left.
    held: Option<Box<dyn Send>>,
}

/// A keeper that was told to end.
struct Ending {
    child: Child,
    /// When it is killed instead.
    by: Instant,
    _held: Option<Box<dyn Send>>,
}

enum Errand {
    Start(Order),
    Keep(Stdio3, oneshot::Sender<io::Result<Keeper>>),
    Reap(Child),
    End(Ending),
}

/// How long a keeper may take to end what is below it, before it is taken to be unable.
const ENDING: Duration = Duration::from_secs(10);

/// Starts a keeper: this same binary, in another role.
///
/// # Errors
/// What the kernel says about one more process.
pub(crate) async fn start_keeper(stdio: Stdio3) -> io::Result<Keeper> {
    let (reply, started) = oneshot::channel();
    let gone = || io::Error::other("the thread that starts processes is gone");
    errands()?.send(Errand::Keep(stdio, reply)).map_err(|_| gone())?;
    started.await.map_err(|_| gone())?
}

fn keep(stdio: Stdio3) -> io::Result<Keeper> {
    // Only this thread starts processes, so that no other inherits it meanwhile.
    let report = stdio.report;
    rustix::io::fcntl_setfd(&report, rustix::io::FdFlags::empty())?;
    let child = Command::new("/proc/self/exe")
        .arg0("brigd")
        .arg(crate::keeper::KEEP)
        .arg(std::process::id().to_string())
        .arg(report.as_raw_fd().to_string())
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(stdio.stdin))
        .stdout(Stdio::from(stdio.stdout))
        .stderr(Stdio::from(stdio.stderr))
        .spawn()?;
    let (child, pidfd) = with_pidfd(child)?;
    Ok(Keeper { child: Some(child), pidfd, held: None })
}

impl Keeper {
    /// Gives it what is to be held until nothing is left of the program.
    pub(crate) fn hold(&mut self, held: Box<dyn Send>) {
        self.held = Some(held);
    }

    /// Waits for the end of all that it keeps; how the program ended, if it did.
    pub(crate) async fn ended(mut self) -> Option<ExitStatus> {
        await_exit(self.pidfd.as_fd()).await.ok()?;
        let mut child = self.child.take()?;
        child.try_wait().ok().flatten()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let Some(child) = self.child.take() else { return };
        pidfd_send_signal(&self.pidfd, Signal::TERM).unwrap_or(());
        let ending = Ending { child, by: Instant::now() + ENDING, _held: self.held.take() };
        drop(errands().map(|errands| errands.send(Errand::End(ending))));
    }
}

impl Ending {
    /// Whether it is over.
    fn is_over(&mut self, now: Instant) -> bool {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return true;
        }
        if now >= self.by {
            tracing::error!(
                pid = self.child.id(),
                "the keeper of a program does not end and is killed; what the program started may live on"
            );
            // Not to come here each time: a killed one is gone at the next look.
            self.by = now + ENDING;
            self.child.kill().unwrap_or(());
        }
        false
    }
}

/// Starts `program nursery` with `control` as its standard input, an empty environment,
/// and nothing else.
///
/// # Errors
/// What the kernel says about the program or about one more process.
pub(crate) async fn start_nursery(program: PathBuf, control: OwnedFd) -> io::Result<Process> {
    let (reply, started) = oneshot::channel();
    let gone = || io::Error::other("the thread that starts processes is gone");
    errands()?.send(Errand::Start(Order { program, stdin: control, reply })).map_err(|_| gone())?;
    started.await.map_err(|_| gone())?
}

/// The way to the thread; it is started by whoever comes first.
fn errands() -> io::Result<Sender<Errand>> {
    static ERRANDS: OnceLock<Sender<Errand>> = OnceLock::new();
    if let Some(sender) = ERRANDS.get() {
        return Ok(sender.clone());
    }
    let (sender, orders) = channel();
    std::thread::Builder::new().name("spawn".to_owned()).spawn(move || run_errands(&orders))?;
    // Whoever lost a race has started a thread that ends at once, with nothing to end.
    Ok(ERRANDS.get_or_init(|| sender).clone())
}

/// The thread's life. It never waits for a child: one that was killed and does not go yet
/// is looked at again later.
fn run_errands(orders: &Receiver<Errand>) {
    const LOOK_AGAIN: Duration = Duration::from_millis(20);
    let mut dying: Vec<Child> = Vec::new();
    let mut ending: Vec<Ending> = Vec::new();
    loop {
        let errand = if dying.is_empty() && ending.is_empty() {
            orders.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            orders.recv_timeout(LOOK_AGAIN)
        };
        match errand {
            // Nobody waits for it any more: dropping the process ends it.
            Ok(Errand::Start(order)) => drop(order.reply.send(start(&order.program, order.stdin))),
            Ok(Errand::Keep(stdio, reply)) => drop(reply.send(keep(stdio))),
            Ok(Errand::Reap(child)) => dying.push(child),
            Ok(Errand::End(keeper)) => ending.push(keeper),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        dying.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        let now = Instant::now();
        ending.retain_mut(|keeper| !keeper.is_over(now));
    }
}

fn start(program: &PathBuf, stdin: OwnedFd) -> io::Result<Process> {
    let child = Command::new(program)
        .arg("nursery")
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let (child, pidfd) = with_pidfd(child)?;
    Ok(Process { child: Some(child), pidfd })
}

/// A child that was just started, with its pidfd; without one it may not live.
fn with_pidfd(mut child: Child) -> io::Result<(Child, OwnedFd)> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let opened = pid.ok_or(rustix::io::Errno::SRCH).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()));
    match opened {
        Ok(pidfd) => Ok((child, pidfd)),
        Err(errno) => {
            child.kill()?;
            child.wait()?;
            Err(errno.into())
        }
    }
}

impl Process {
    /// Its pidfd.
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Kills it. One that is gone is no error.
    pub(crate) fn kill(&self) {
        kill(self.pidfd.as_fd());
    }

    /// Waits for its end and reaps it; nothing when another has.
    pub(crate) async fn ended(mut self) -> Option<ExitStatus> {
        await_exit(self.pidfd.as_fd()).await.ok()?;
        let mut child = self.child.take()?;
        child.try_wait().ok().flatten()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            self.kill();
            // With its thread gone the whole process is ending, and so is the child.
            drop(errands().map(|errands| errands.send(Errand::Reap(child))));
        }
    }
}

/// Kills by pidfd. One that is gone is no error; no other can be for a process of ours.
pub(crate) fn kill(pidfd: BorrowedFd<'_>) {
    pidfd_send_signal(pidfd, Signal::KILL).unwrap_or(());
}

/// Waits until the process of a pidfd has ended, reaped or not.
///
/// # Errors
/// When the pidfd can not be registered with the runtime.
pub(crate) async fn await_exit(pidfd: BorrowedFd<'_>) -> io::Result<()> {
    watch(pidfd.try_clone_to_owned()?)?.readable().await.map(drop)
}

/// Registers a descriptor that is to be read with the runtime.
///
/// # Errors
/// When it can not be registered.
pub(crate) fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    #[expect(deprecated, reason = "sound for an `OwnedFd`, whose number never changes; the other constructors are not safe functions")]
    AsyncFd::with_interest(descriptor, Interest::READABLE)
}

/// Whether the process of a pidfd has ended, reaped or not.
pub(crate) fn has_ended(pidfd: BorrowedFd<'_>) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut entry = [PollFd::new(&pidfd, PollFlags::IN)];
    poll(&mut entry, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    fn pair() -> (UnixStream, OwnedFd) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (ours, theirs.into())
    }

    /// A program that answers its standard input with what it can see.
    fn script(directory: &std::path::Path, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let path = directory.join("worker");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_an_error() {
        let (_ours, theirs) = pair();
        let fault = start_nursery("/nonexistent/brig-worker".into(), theirs).await.unwrap_err();
        assert_eq!(fault.kind(), io::ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn it_starts_with_its_role_its_link_and_no_environment() {
        let directory = tempfile::tempdir().unwrap();
        let program = script(directory.path(), "echo \"$1 $PWD ${CARGO_MANIFEST_DIR:-clear} $(readlink /proc/$$/fd/1 /proc/$$/fd/2)\" >&0");
        let (mut ours, theirs) = pair();
        let process = start_nursery(program, theirs).await.unwrap();
        let mut seen = String::new();
        ours.read_to_string(&mut seen).unwrap();
        assert_eq!(seen, "nursery / clear /dev/null\n/dev/null\n");
        assert!(process.ended().await.unwrap().success());
    }

    #[tokio::test]
    async fn a_killed_process_is_seen_to_end_and_a_dropped_one_too() {
        let directory = tempfile::tempdir().unwrap();
        let program = script(directory.path(), "echo up >&0; read line");
        for drop_it in [false, true] {
            let (mut ours, theirs) = pair();
            let process = start_nursery(program.clone(), theirs).await.unwrap();
            let mut up = [0; 3];
            ours.read_exact(&mut up).unwrap();
            let watch = process.pidfd().try_clone_to_owned().unwrap();
            assert!(!has_ended(watch.as_fd()));
            if drop_it {
                drop(process);
            } else {
                process.kill();
                process.kill();
                assert!(!process.ended().await.unwrap().success());
            }
            await_exit(watch.as_fd()).await.unwrap();
            assert!(has_ended(watch.as_fd()));
            drop(ours.write_all(b"\n"));
        }
    }
}
