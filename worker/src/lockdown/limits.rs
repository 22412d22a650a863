//! The CPU timer and the resource limits. Never: a limit that a guest could raise again:
//! soft and hard are one value.

use std::time::Duration;

use nix::sys::signal::{SigEvent, SigevNotify, Signal};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;
use rlimit::Resource;
use rustix::io::Errno;

use super::{Limits, of_nix};

/// Descriptors 0 to 3: 3 must be a legal number, and nothing above.
const DESCRIPTORS: u64 = 4;

/// Kills this process once it has used `cpu_ms` of CPU time from now on. It works only for a
/// process that is not the init of its pid namespace: the kernel shields that one.
///
/// # Errors
/// The kernel's refusal.
pub(super) fn arm_cpu_timer(cpu_ms: u32) -> Result<(), Errno> {
    let event = SigEvent::new(SigevNotify::SigevSignal { signal: Signal::SIGKILL, si_value: 0 });
    let mut timer = Timer::new(ClockId::CLOCK_PROCESS_CPUTIME_ID, event).map_err(of_nix)?;
    let budget = Duration::from_millis(u64::from(cpu_ms.max(1)));
    timer.set(Expiration::OneShot(budget.into()), TimerSetTimeFlags::empty()).map_err(of_nix)?;
    // Dropping it would disarm it.
    std::mem::forget(timer);
    Ok(())
}

/// Sets every limit, soft and hard alike.
///
/// # Errors
/// The kernel's refusal of any of them.
pub(super) fn set(limits: Limits) -> Result<(), Errno> {
    // The backstop behind the timer: whole seconds, never before it. What the process used
    // so far (a fresh image building its engine) counts here and not in the timer.
    let cpu_seconds = u64::from(limits.cpu_ms).div_ceil(1000) + 2;
    let ceilings = [
        (Resource::CORE, 0),
        (Resource::FSIZE, 0),
        (Resource::NPROC, 0),
        (Resource::MEMLOCK, 0),
        (Resource::MSGQUEUE, 0),
        (Resource::NOFILE, DESCRIPTORS),
        (Resource::CPU, cpu_seconds),
        (Resource::STACK, limits.stack_bytes),
        (Resource::AS, limits.address_space_bytes),
    ];
    for (resource, ceiling) in ceilings {
        lower(resource, ceiling)?;
    }
    Ok(())
}

/// One call where it can be: only a hard limit that is lower already, and that we may not
/// raise, takes a look; it stays then.
fn lower(resource: Resource, ceiling: u64) -> Result<(), Errno> {
    if resource.set(ceiling, ceiling).is_ok() {
        return Ok(());
    }
    let (_, hard) = resource.get().map_err(|error| of_io(&error))?;
    let ceiling = ceiling.min(hard);
    resource.set(ceiling, ceiling).map_err(|error| of_io(&error))
}

fn of_io(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
