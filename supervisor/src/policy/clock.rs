//! The time that budgets are counted in.
//!
//! Owns that it never goes back while brigd runs, whatever is done to the system's clock.

use crate::time_of_day;

/// Milliseconds that never go back.
pub(crate) trait Clock: Send + Sync {
    /// Now, in milliseconds since the epoch.
    fn now_ms(&self) -> u64;
}

/// The system's time at the start, and what has gone by since.
#[derive(Debug)]
pub(crate) struct SteadyClock {
    base_ms: u64,
    started_ms: u64,
}

impl Default for SteadyClock {
    fn default() -> Self {
        Self { base_ms: time_of_day::now_ms(), started_ms: boot_ms() }
    }
}

impl Clock for SteadyClock {
    fn now_ms(&self) -> u64 {
        self.base_ms.saturating_add(boot_ms().saturating_sub(self.started_ms))
    }
}

/// Milliseconds since boot, sleep included.
fn boot_ms() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    seconds.saturating_mul(1_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or_default() / 1_000_000)
}
