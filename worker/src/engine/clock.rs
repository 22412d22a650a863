//! Owns the two clocks that a confined worker may read. It never sleeps.

use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

fn read(clock: ClockId) -> Duration {
    clock_gettime(clock).map_or(Duration::ZERO, Duration::from)
}

/// Monotonic time since some fixed point.
pub(crate) fn now() -> Duration {
    read(ClockId::CLOCK_MONOTONIC)
}

/// CPU time that this process has used.
pub(crate) fn cpu() -> Duration {
    read(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}
