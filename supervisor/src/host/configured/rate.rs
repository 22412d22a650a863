//! How often a function may be called.
//!
//! Owns one window a function: never more than so many calls begin within any minute. Pure:
//! time is an argument.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The window.
const WINDOW: Duration = Duration::from_secs(60);
/// Most calls a minute that can be set.
pub(crate) const MOST: u32 = 60_000;

/// The calls of the last minute.
#[derive(Debug)]
pub(crate) struct Rate {
    most: usize,
    begun: VecDeque<Instant>,
}

impl Rate {
    /// At most so many a minute.
    pub(crate) fn per_minute(most: u32) -> Self {
        Self { most: usize::try_from(most).unwrap_or(usize::MAX), begun: VecDeque::new() }
    }

    /// Takes one, if there is one left.
    ///
    /// # Errors
    /// How long until there is.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        while self.begun.front().is_some_and(|begun| now.saturating_duration_since(*begun) >= WINDOW) {
            self.begun.pop_front();
        }
        if self.begun.len() < self.most {
            self.begun.push_back(now);
            return Ok(());
        }
        let first = self.begun.front().copied().unwrap_or(now);
        Err((first + WINDOW).saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_more_than_it_may_be_is_told_how_long_to_wait() {
        let (mut rate, now) = (Rate::per_minute(2), Instant::now());
        assert!(rate.take(now).is_ok() && rate.take(now + Duration::from_secs(10)).is_ok());
        assert_eq!(rate.take(now + Duration::from_secs(20)), Err(Duration::from_secs(40)));
        assert!(rate.take(now + WINDOW).is_ok());
        assert_eq!(rate.take(now + WINDOW), Err(Duration::from_secs(10)));
    }

    proptest! {
        #[test]
        fn no_minute_has_more_than_it_may(steps in prop::collection::vec(0_u64..20_000, 1..200), most in 1_u32..8) {
            let (mut rate, start) = (Rate::per_minute(most), Instant::now());
            let (mut now, mut taken) = (start, Vec::new());
            for step in steps {
                now += Duration::from_millis(step);
                if rate.take(now).is_ok() {
                    taken.push(now);
                }
            }
            for first in &taken {
                let within = taken.iter().filter(|other| **other >= *first && **other < *first + WINDOW).count();
                prop_assert!(within <= most as usize);
            }
        }
    }
}
