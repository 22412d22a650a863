//! The wall clock of one evaluation, which stands still while all it waits for is people.
//!
//! Owns the deadline, and the arithmetic of moving it. It stands still exactly while at
//! least one host call is parked and no other is open: a program that also waits for a
//! function, has its time run. CPU time is no part of this: a program that computes while
//! a call is parked uses up its CPU budget as ever. [`Times`] is pure; [`Wall`] shares it
//! between an evaluation and its calls.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The times of one evaluation. Pure: now is an argument.
#[derive(Debug)]
pub(crate) struct Times {
    deadline: Instant,
    open: usize,
    parked: usize,
    still_since: Option<Instant>,
    stood_still: Duration,
}

impl Times {
    /// Runs until `deadline`.
    pub(crate) const fn until(deadline: Instant) -> Self {
        Self { deadline, open: 0, parked: 0, still_since: None, stood_still: Duration::ZERO }
    }

    /// A host call began. Whether the clock stands or runs differently now.
    pub(crate) fn begun(&mut self, now: Instant) -> bool {
        self.open += 1;
        self.turn(now)
    }

    /// A host call is over.
    pub(crate) fn ended(&mut self, now: Instant) -> bool {
        self.open = self.open.saturating_sub(1);
        self.turn(now)
    }

    /// A host call that is open begins to wait for a person.
    pub(crate) fn parked(&mut self, now: Instant) -> bool {
        self.parked += 1;
        self.turn(now)
    }

    /// It does so no longer.
    pub(crate) fn unparked(&mut self, now: Instant) -> bool {
        self.parked = self.parked.saturating_sub(1);
        self.turn(now)
    }

    /// When the time is over; nothing while the clock stands still.
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        if self.still_since.is_some() { None } else { Some(self.deadline) }
    }

    /// How long it has stood still so far.
    pub(crate) fn stood_still(&self, now: Instant) -> Duration {
        self.stood_still + self.still_since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    fn turn(&mut self, now: Instant) -> bool {
        let still = self.parked > 0 && self.parked >= self.open;
        match (still, self.still_since) {
            // What was over before anybody was asked stays over.
            (true, None) if now < self.deadline => self.still_since = Some(now),
            (false, Some(since)) => {
                let stood = now.saturating_duration_since(since);
                self.deadline += stood;
                self.stood_still += stood;
                self.still_since = None;
            }
            _ => return false,
        }
        true
    }
}

/// The wall clock, shared by an evaluation and its calls.
#[derive(Debug)]
pub(crate) struct Wall {
    times: Mutex<Times>,
    turned: Notify,
}

/// A call that waits for a person; not any more when dropped.
#[derive(Debug)]
pub(crate) struct Waiting<'a>(&'a Wall);

impl Wall {
    /// Runs until `deadline`.
    pub(crate) fn until(deadline: Instant) -> Self {
        Self { times: Mutex::new(Times::until(deadline)), turned: Notify::new() }
    }

    /// A host call began.
    pub(crate) fn begun(&self, now: Instant) {
        self.change(|times| times.begun(now));
    }

    /// A host call is over.
    pub(crate) fn ended(&self, now: Instant) {
        self.change(|times| times.ended(now));
    }

    /// A host call waits for a person as long as this lives.
    pub(crate) fn park(&self) -> Waiting<'_> {
        self.change(|times| times.parked(Instant::now()));
        Waiting(self)
    }

    /// When the time is over; nothing while the clock stands still.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.lock().deadline()
    }

    /// Whether it stands still.
    pub(crate) fn is_still(&self) -> bool {
        self.deadline().is_none()
    }

    /// How long it has stood still so far.
    pub(crate) fn stood_still(&self, now: Instant) -> Duration {
        self.lock().stood_still(now)
    }

    /// Waits until it began to stand still, or to run again. For the one task that runs
    /// the evaluation.
    pub(crate) async fn turned(&self) {
        self.turned.notified().await;
    }

    fn change(&self, change: impl FnOnce(&mut Times) -> bool) {
        let turned = change(&mut self.lock());
        if turned {
            self.turned.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.change(|times| times.unparked(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_clock_stands_still_only_while_every_open_call_waits_for_a_person() {
        let start = Instant::now();
        let mut times = Times::until(start + 100 * MS);
        assert!(!times.begun(start));
        assert!(times.parked(start + 10 * MS));
        assert_eq!(times.deadline(), None);
        // A second call runs: so does the clock.
        assert!(times.begun(start + 50 * MS));
        assert_eq!(times.deadline(), Some(start + 140 * MS));
        assert!(times.ended(start + 60 * MS));
        assert_eq!(times.deadline(), None);
        assert_eq!(times.stood_still(start + 70 * MS), 50 * MS);
        assert!(times.unparked(start + 260 * MS));
        assert_eq!(times.deadline(), Some(start + 340 * MS));
        assert_eq!(times.stood_still(start + 999 * MS), 240 * MS);
    }

    #[test]
    fn what_is_over_is_not_brought_back_by_asking_a_person() {
        let start = Instant::now();
        let mut times = Times::until(start + 10 * MS);
        times.begun(start);
        assert!(!times.parked(start + 10 * MS));
        assert_eq!(times.deadline(), Some(start + 10 * MS));
    }

    proptest! {
        #[test]
        fn a_program_gets_its_time_and_no_more(steps in proptest::collection::vec((0u8..4, 0u32..50), 0..60)) {
            let start = Instant::now();
            let limit = 10_000 * MS;
            let mut times = Times::until(start + limit);
            let (mut now, mut ran, mut open, mut parked) = (start, Duration::ZERO, 0usize, 0usize);
            for (step, wait) in steps {
                now += wait * MS;
                if parked == 0 || parked < open {
                    ran += wait * MS;
                }
                match step {
                    0 => { open += 1; times.begun(now); }
                    1 if open > parked => { parked += 1; times.parked(now); }
                    2 if parked > 0 => { parked -= 1; times.unparked(now); }
                    3 if open > parked => { open -= 1; times.ended(now); }
                    _ => {}
                }
            }
            prop_assert_eq!(times.stood_still(now), now - start - ran);
            if let Some(deadline) = times.deadline() {
                prop_assert_eq!(deadline - now, limit - ran);
            }
        }
    }
}
