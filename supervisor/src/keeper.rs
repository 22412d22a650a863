//! The processes between brigd and the program of a configured function.
//!
//! Owns what happens after the `exec`: brigd, which never forks, starts itself again in one
//! of two roles, and both are over before they could be anything else.
//!
//! ```text
//! brigd ── keep-function (brigd's user) ── enter-function ══exec══> the program (its user)
//!          adopts what the program leaves   becomes the user,          └─ whatever it starts
//!          behind, ends all of it           takes the limits
//! ```
//!
//! The **keeper** is a child subreaper: whatever the program starts stays below it, also
//! after `setsid` and double forks. When the program has ended, or brigd says so
//! (SIGTERM), or brigd is gone (the same, by the kernel), it kills everything below it,
//! again and again until nothing is left, and ends as the program ended. It never reads
//! what goes to or comes from the program. As root it has another user than the program,
//! which so can not touch it; without, a program that kills its own keeper takes only
//! itself along (`PR_SET_PDEATHSIG`) and could leave others behind.
//!
//! The **second role** ([`enter`]) reads its orders from standard input, whose rest is the
//! program's, and becomes the program. Never shell, never PATH.
//!
//! Never runs more than one thread, and no `unsafe`: a hook before `exec` would need it,
//! a process of our own does not.

pub(crate) mod enter;

use crate::say;
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus as Reaped, waitpid};
use nix::unistd::Pid;
use rustix::process::{WaitOptions, WaitStatus};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode};

/// First argument of the keeper.
pub(crate) const KEEP: &str = "keep-function";
/// First argument of what becomes the program.
pub(crate) const ENTER: &str = "enter-function";
/// How both roles end when the program could not be started. A program may end so as well:
/// what tells brigd is a byte in a pipe that no program ever has.
const NOT_STARTED: u8 = 70;
/// What the keeper tells in that pipe: nothing ran; or the program was ended by a signal,
/// whose number follows. The keeper can not end by each of them itself: a handler of the
/// runtime has some, and others were ignored by whoever started brigd.
pub(crate) const NEVER_RAN: u8 = b'!';
pub(crate) const BY_SIGNAL: u8 = b'=';
/// How long the keeper waits before it looks again for what is left.
const LOOK_AGAIN: rustix::time::Timespec = rustix::time::Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// Plays the role that the arguments name, if they do. Comes back only when it failed.
pub(crate) fn play(arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let words: Vec<OsString> = arguments.skip(1).take(4).collect();
    let [role, parent, report] = words.as_slice() else { return None };
    let act: fn(&File) -> Result<(), String> = match role.to_str() {
        Some(KEEP) => keep,
        Some(ENTER) => enter::enter,
        _ => return None,
    };
    let number = |word: &OsString| word.to_str().and_then(|word| word.parse().ok()).unwrap_or(0);
    let mut report = match report_to(number(report)) {
        Ok(report) => report,
        Err(fault) => {
            say::complain(&format!("the program could not be started: it can not be told of: {fault}"));
            return Some(ExitCode::from(NOT_STARTED));
        }
    };
    let acted = begin(number(parent), &report).and_then(|()| act(&report));
    if let Err(fault) = acted {
        // Standard error goes to brigd's log.
        say::complain(&format!("the program could not be started: {fault}"));
    }
    // It fits: nobody wrote before, and brigd reads it when all is over.
    report.write_all(&[NEVER_RAN]).unwrap_or(());
    Some(ExitCode::from(NOT_STARTED))
}

/// The pipe that was passed on by its number, as one of our own that no program inherits.
fn report_to(number: i32) -> std::io::Result<File> {
    let file = File::options().write(true).open(format!("/proc/self/fd/{number}"))?;
    // Out of the way: what the program gets has the first numbers.
    Ok(rustix::io::fcntl_dupfd_cloexec(&file, 64)?.into())
}

/// What both roles do first.
fn begin(parent: i32, report: &File) -> Result<(), String> {
    prctl::set_dumpable(false).map_err(|errno| format!("it can not be made undumpable: {errno}"))?;
    close_all(report)?;
    // A new process keeps what its parent blocks.
    SigSet::all().thread_unblock().map_err(|errno| format!("its signals can not be let through: {errno}"))?;
    // The parent sends it when it dies; it may be dead already.
    let signal = Signal::SIGTERM;
    prctl::set_pdeathsig(signal).map_err(|errno| format!("it can not be tied to its parent: {errno}"))?;
    if nix::unistd::getppid().as_raw() == parent { Ok(()) } else { Err("what started it is gone".to_owned()) }
}

/// Closes every descriptor but the three and this: brigd may have inherited others.
fn close_all(report: &File) -> Result<(), String> {
    let numbers: Vec<i32> = std::fs::read_dir("/proc/self/fd")
        .map_err(|fault| format!("/proc/self/fd can not be read: {fault}"))?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    for number in numbers.into_iter().filter(|number| *number > 2 && *number != report.as_raw_fd()) {
        // The one that read the folder is closed already.
        nix::unistd::close(number).unwrap_or(());
    }
    Ok(())
}

/// The keeper's life.
fn keep(mut report: &File) -> Result<(), String> {
    let own = std::process::id();
    let children = format!("/proc/self/task/{own}/children");
    std::fs::read_to_string(&children).map_err(|fault| format!("{children} can not be read: {fault}"))?;
    prctl::set_child_subreaper(true).map_err(|errno| format!("it can not adopt processes: {errno}"))?;
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGCHLD);
    signals.thread_block().map_err(|errno| format!("signals can not be held: {errno}"))?;
    rustix::process::setsid().map_err(|errno| format!("it can not have a session of its own: {errno}"))?;
    // A duplicate is passed on by an exec; the second role takes it before it becomes the program.
    let passed = nix::unistd::dup(report).map_err(|errno| format!("it can not be told of: {errno}"))?;
    let number = passed.as_raw_fd().to_string();
    let child = Command::new("/proc/self/exe").arg0("brigd").args([ENTER, &own.to_string(), &number]).env_clear().spawn();
    drop(passed);
    let child = child.map_err(|fault| format!("it can not be entered: {fault}"))?;
    // From here on only the program holds what comes from it: its end is seen as one.
    release_stdio()?;
    let ended = await_end(&child, &signals);
    end_all(&children);
    signals.thread_unblock().map_err(|errno| errno.to_string())?;
    if let Some(code) = ended.and_then(WaitStatus::exit_status) {
        std::process::exit(code);
    }
    let signal = ended.and_then(WaitStatus::terminating_signal);
    if let Some(number) = signal.and_then(|number| u8::try_from(number).ok()) {
        report.write_all(&[BY_SIGNAL, number]).unwrap_or(());
    }
    end_by(signal.and_then(|number| Signal::try_from(number).ok()).unwrap_or(Signal::SIGKILL));
    Ok(())
}

/// Lets go of the three descriptors.
fn release_stdio() -> Result<(), String> {
    let null = std::fs::File::options().read(true).write(true).open("/dev/null");
    let null = null.map_err(|fault| format!("/dev/null can not be opened: {fault}"))?;
    nix::unistd::dup2_stdin(&null)
        .and_then(|()| nix::unistd::dup2_stdout(&null))
        .and_then(|()| nix::unistd::dup2_stderr(&null))
        .map_err(|errno| format!("its descriptors can not be let go: {errno}"))
}

/// Waits until the program has ended. Nothing: it was told to end everything before.
fn await_end(child: &Child, signals: &SigSet) -> Option<WaitStatus> {
    let program = i32::try_from(child.id()).unwrap_or(i32::MAX);
    loop {
        // Whatever it left behind and that has ended is reaped on the way.
        loop {
            // Real-time signals end processes too, and nix has no value for those.
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == program => return Some(status),
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break,
            }
        }
        match signals.wait() {
            Ok(Signal::SIGTERM) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

/// Kills everything below until nothing is left. What is killed leaves its children to
/// this process, so that none is out of reach for longer than a round.
fn end_all(children: &str) {
    loop {
        let below = below(children);
        for pid in &below {
            // A number that is not reaped yet can not be another's.
            kill(*pid, Signal::SIGKILL).unwrap_or(());
        }
        // One that was killed ends: there is nothing to wait for longer.
        let how = if below.is_empty() { Some(WaitPidFlag::WNOHANG) } else { None };
        match waitpid(Pid::from_raw(-1), how) {
            Err(Errno::ECHILD) => return,
            // Adopted after the look: it is there at the next.
            Ok(Reaped::StillAlive) => drop(rustix::thread::nanosleep(&LOOK_AGAIN)),
            _ => {}
        }
    }
}

/// Children of this process: only they are certain not to be another's by now.
fn below(children: &str) -> Vec<Pid> {
    let text = std::fs::read_to_string(children).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(|pid| *pid > 1).map(Pid::from_raw).collect()
}

/// Ends this process by a signal, and in any case.
fn end_by(signal: Signal) {
    raise(signal).unwrap_or(());
    // One that does not end a process by itself.
    raise(Signal::SIGKILL).unwrap_or(());
}
