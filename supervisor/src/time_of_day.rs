//! The time of day, as records and files carry it.
//!
//! Owns reading it in one way everywhere. It can be set back: whatever must not notice
//! that counts by [`crate::policy::clock`] or a monotonic clock instead.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What has gone by since 1970; nothing when the clock stands before that.
pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The same in milliseconds.
pub(crate) fn now_ms() -> u64 {
    u64::try_from(now().as_millis()).unwrap_or(u64::MAX)
}
