//! Processes: fork, exec, wait, and the one signal handler. Owns: unsafe of this directory.
//! Never: a decision; each function is one step and its error.
#![expect(unsafe_code, reason = "fork, execveat, wait4 and signal handlers")]

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use brig_protocol::control::WaitStatus;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use rustix::io::Errno;
use rustix::process::Pid;

use crate::lockdown::of_nix;

/// Which side of a fork this is.
#[derive(Debug)]
pub(super) enum Side {
    /// The one that goes on, with the child's id.
    Parent(Pid),
    /// The copy.
    Child,
}

/// A child that ended, and what it used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reaped {
    /// Its id, free to be used again by now.
    pub pid: Pid,
    /// How it ended.
    pub status: WaitStatus,
    /// CPU time in user mode, microseconds.
    pub user_us: u64,
    /// CPU time in the kernel, microseconds.
    pub system_us: u64,
    /// Largest resident set, kibibytes.
    pub max_rss_kb: u64,
}

/// Copies this process.
///
/// # Errors
/// `EAGAIN` or `ENOMEM` when the kernel can not.
pub(super) fn fork() -> Result<Side, Errno> {
    // SAFETY: this program never starts a thread, so the child may do whatever the parent
    // may: no lock can be held by a thread that is not there.
    match unsafe { nix::unistd::fork() }.map_err(of_nix)? {
        nix::unistd::ForkResult::Child => Ok(Side::Child),
        nix::unistd::ForkResult::Parent { child } => match Pid::from_raw(child.as_raw()) {
            Some(pid) => Ok(Side::Parent(pid)),
            None => Err(Errno::SRCH),
        },
    }
}

/// Becomes the program behind `image`, with these arguments and an empty environment.
/// Returns only on failure.
pub(super) fn exec_image(image: BorrowedFd<'_>, name: &CStr, role: &CStr) -> Errno {
    let arguments = [name.as_ptr(), role.as_ptr(), std::ptr::null()];
    let environment: [*const libc::c_char; 1] = [std::ptr::null()];
    // SAFETY: all pointers are valid for the call, both lists end in null.
    unsafe {
        libc::syscall(libc::SYS_execveat, image.as_raw_fd(), c"".as_ptr(), arguments.as_ptr(), environment.as_ptr(), libc::AT_EMPTY_PATH);
    }
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Puts a copy of `from` at exactly the number `to`, closing what was there.
///
/// # Errors
/// The kernel's refusal.
pub(super) fn place(from: BorrowedFd<'_>, to: i32) -> Result<(), Errno> {
    if from.as_raw_fd() == to {
        return rustix::io::fcntl_setfd(from, rustix::io::FdFlags::empty());
    }
    // SAFETY: integers. Used by children on their way to exec or lock-down only, which own
    // nothing at the numbers 0 to 3.
    if unsafe { libc::syscall(libc::SYS_dup3, from.as_raw_fd(), to, 0) } < 0 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO));
    }
    Ok(())
}

/// Takes ownership of a standard descriptor (0 to 3) at the start of a process.
///
/// # Errors
/// `EBADF` when it is not open.
pub(super) fn adopt(number: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: F_GETFD takes integers.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return Err(Errno::BADF);
    }
    // SAFETY: open, as was just seen; called once a number, at start, before anyone else
    // could own it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Writes to descriptor 3, in a process that is about to end.
#[must_use]
pub(super) fn write_3(bytes: &[u8]) -> bool {
    // SAFETY: the pointer and the length are of one live slice.
    let written = unsafe { libc::write(3, bytes.as_ptr().cast(), bytes.len()) };
    usize::try_from(written) == Ok(bytes.len())
}

/// The path by which the kernel was told to run this program; for where `/proc` is missing.
#[must_use]
pub(super) fn own_path() -> Option<&'static CStr> {
    // SAFETY: the auxiliary vector is set up by the kernel and never changes; the string it
    // points at lives as long as the process.
    unsafe {
        let path = libc::getauxval(libc::AT_EXECFN) as *const libc::c_char;
        if path.is_null() { None } else { Some(CStr::from_ptr(path)) }
    }
}

/// Takes the status of one child, if one has ended; with `wait`, waits for it.
///
/// # Errors
/// `ECHILD` when there are no children at all.
pub(super) fn reap(wait: bool) -> Result<Option<Reaped>, Errno> {
    let mut status: libc::c_int = 0;
    // SAFETY: a zeroed rusage is a valid one.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let flags = if wait { 0 } else { libc::WNOHANG };
    loop {
        // SAFETY: both pointers are valid for the call.
        let pid = unsafe { libc::wait4(-1, &raw mut status, flags, &raw mut usage) };
        if pid < 0 {
            let errno = Errno::from_io_error(&std::io::Error::last_os_error());
            match errno.unwrap_or(Errno::IO) {
                Errno::INTR => continue,
                errno => return Err(errno),
            }
        }
        let Some(pid) = Pid::from_raw(pid) else {
            return Ok(None);
        };
        return Ok(Some(Reaped {
            pid,
            status: wait_status(status),
            user_us: microseconds(usage.ru_utime),
            system_us: microseconds(usage.ru_stime),
            max_rss_kb: u64::try_from(usage.ru_maxrss).unwrap_or(0),
        }));
    }
}

fn wait_status(status: libc::c_int) -> WaitStatus {
    let byte = |value: libc::c_int| u8::try_from(value & 0xff).unwrap_or(u8::MAX);
    if libc::WIFSIGNALED(status) {
        WaitStatus::Signal(byte(libc::WTERMSIG(status)))
    } else {
        WaitStatus::Code(byte(libc::WEXITSTATUS(status)))
    }
}

fn microseconds(time: libc::timeval) -> u64 {
    let (seconds, rest) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_usec));
    seconds.unwrap_or(0) * 1_000_000 + rest.unwrap_or(0)
}

extern "C" fn noticed(_signal: libc::c_int) {}

/// SIGCHLD only ever interrupts the one wait of the serving loop: it is blocked all the time
/// but there, and its handler does nothing.
///
/// # Errors
/// The kernel's refusal.
pub(super) fn notice_children() -> Result<(), Errno> {
    let mut blocked = SigSet::empty();
    blocked.add(Signal::SIGCHLD);
    blocked.thread_block().map_err(of_nix)?;
    let action = SigAction::new(SigHandler::Handler(noticed), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler does nothing, so it is safe at any time.
    unsafe { sigaction(Signal::SIGCHLD, &action) }.map_err(of_nix)?;
    Ok(())
}

/// What a worker starts with: nothing blocked, no handler. The Rust library's own handlers
/// for SIGSEGV and SIGBUS go as well: behind the filter they would turn every crash into a
/// forbidden call. SIGPIPE stays ignored, so that a closed socket is an error.
///
/// # Errors
/// The kernel's refusal.
pub(super) fn default_signals() -> Result<(), Errno> {
    let action = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGCHLD, Signal::SIGSEGV, Signal::SIGBUS] {
        // SAFETY: the default action has no handler.
        unsafe { sigaction(signal, &action) }.map_err(of_nix)?;
    }
    SigSet::empty().thread_set_mask().map_err(of_nix)
}
