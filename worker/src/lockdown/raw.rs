//! The few calls of the lock-down that no safe crate wraps. Owns: unsafe of this directory.
//! Never: a decision; each function is one call and its error.
#![expect(unsafe_code, reason = "raw system calls and the C library's time zone state")]

use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

fn check(result: libc::c_long) -> Result<libc::c_long, Errno> {
    if result < 0 { Err(last_errno()) } else { Ok(result) }
}

/// Ends the process at once: no destructors, no handlers, one system call.
pub fn exit_now(code: u8) -> ! {
    // SAFETY: takes an integer and does not return.
    unsafe { libc::_exit(i32::from(code)) }
}

/// Makes `from` be descriptor 3 and closes every other, the standard three included.
///
/// # Errors
/// The kernel's refusal to duplicate or close.
pub fn only_descriptor_3(from: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    use std::os::fd::AsRawFd;
    let from = from.as_raw_fd();
    if from != 3 {
        // SAFETY: takes two descriptor numbers; whatever was 3 before is owned by nobody
        // who goes on: the callers are at their start and hold nothing but `from`.
        check(unsafe { libc::syscall(libc::SYS_dup3, from, 3, 0) })?;
    }
    close_range(4, u32::MAX)?;
    close_range(0, 2)?;
    // SAFETY: 3 is open by the duplication above, and the only owner is the result.
    Ok(unsafe { OwnedFd::from_raw_fd(3) })
}

/// Closes all descriptors from `first` to `last`.
fn close_range(first: u32, last: u32) -> Result<(), Errno> {
    // SAFETY: takes integers. Descriptors in the range belong to values that the calling
    // process will never use or drop again: it either ends in `_exit` or owns only 3.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) })?;
    Ok(())
}

/// Memory that was once writable never becomes executable (Linux 6.3).
///
/// # Errors
/// `EINVAL` where the kernel is older.
pub fn deny_write_execute() -> Result<(), Errno> {
    const PR_SET_MDWE: libc::c_int = 65;
    const PR_GET_MDWE: libc::c_int = 66;
    const REFUSE_EXEC_GAIN: libc::c_long = 1;
    const NONE: libc::c_long = 0;
    // SAFETY: integers only; the unused arguments must be zero and are.
    check(unsafe { libc::prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, NONE, NONE, NONE) }.into())?;
    // SAFETY: as above.
    match check(unsafe { libc::prctl(PR_GET_MDWE, NONE, NONE, NONE, NONE) }.into())? {
        bits if bits & REFUSE_EXEC_GAIN != 0 => Ok(()),
        _ => Err(Errno::INVAL),
    }
}

/// The Landlock version of this kernel.
///
/// # Errors
/// `ENOSYS` without Landlock, `EOPNOTSUPP` where it is off, `EPERM` under a filter that
/// does not know it.
pub fn landlock_abi() -> Result<u8, Errno> {
    const VERSION: libc::c_long = 1;
    // SAFETY: a null attribute of size 0 is how the version is asked for.
    let version = check(unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0usize, VERSION) })?;
    Ok(u8::try_from(version).unwrap_or(u8::MAX))
}

/// Sets the time zone to UTC and reads it into the C library, so that no later call opens
/// a file for it. Once: a copy of a process that did so finds it settled.
pub fn settle_time_zone() {
    unsafe extern "C" {
        fn tzset();
    }
    static SETTLED: AtomicBool = AtomicBool::new(false);
    if SETTLED.load(Ordering::Relaxed) {
        return;
    }
    // SAFETY: the process has one thread, so nobody reads the environment meanwhile; `when`
    // and `parts` are valid for the call, and a zeroed `tm` is a valid one.
    unsafe {
        std::env::set_var("TZ", "UTC0");
        tzset();
        let when: libc::time_t = 0;
        let mut parts: libc::tm = std::mem::zeroed();
        libc::localtime_r(&raw const when, &raw mut parts);
    }
    SETTLED.store(true, Ordering::Relaxed);
}
