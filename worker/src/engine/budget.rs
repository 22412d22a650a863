//! Owns the time limits of the running evaluation as the engine's interrupt sees them.
//! This is the polite way to end: natives that never poll are ended from outside. Whether
//! a limit was passed is decided by its own flag, never by what the guest threw.

use std::{cell::Cell, time::Duration};

use super::clock;

/// Which time limit was passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passed {
    /// Wall-clock time.
    Wall,
    /// CPU time.
    Cpu,
    /// The supervisor said so.
    Cancelled,
}

/// The times at which the evaluation must stop.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    wall_end: Cell<Option<Duration>>,
    cpu_end: Cell<Option<Duration>>,
    start: Cell<(Duration, Duration)>,
    limits: Cell<(Duration, Duration)>,
    passed: Cell<Option<Passed>>,
}

impl Budget {
    /// Starts both clocks; either limit may be absent.
    pub(crate) fn start(&self, wall: Duration, cpu: Duration) {
        self.passed.set(None);
        self.start.set((clock::now(), clock::cpu()));
        self.limits.set((wall, cpu));
        self.wall_end.set(Some(clock::now().saturating_add(wall)));
        self.cpu_end.set(Some(clock::cpu().saturating_add(cpu)));
    }

    /// No limit until the next [`Budget::start`].
    pub(crate) fn stop(&self) {
        self.wall_end.set(None);
        self.cpu_end.set(None);
    }

    /// Ends the evaluation for a reason from outside.
    pub(crate) fn cancel(&self) {
        self.set(Passed::Cancelled);
    }

    fn set(&self, passed: Passed) {
        // The first cause stands.
        if self.passed.get().is_none() {
            self.passed.set(Some(passed));
        }
    }

    /// Asks both clocks; tells whether the guest must stop. What the engine's interrupt calls.
    pub(crate) fn check(&self) -> bool {
        if self.passed.get().is_none() {
            if self.wall_end.get().is_some_and(|end| clock::now() >= end) {
                self.set(Passed::Wall);
            } else if self.cpu_end.get().is_some_and(|end| clock::cpu() >= end) {
                self.set(Passed::Cpu);
            }
        }
        self.passed.get().is_some()
    }

    /// The limit that was passed, if one was.
    pub(crate) fn passed(&self) -> Option<Passed> {
        self.passed.get()
    }

    /// Wall time left; `None`: no limit runs.
    pub(crate) fn wall_left(&self) -> Option<Duration> {
        self.wall_end.get().map(|end| end.saturating_sub(clock::now()))
    }

    /// CPU time used since the start.
    pub(crate) fn cpu_used(&self) -> Duration {
        clock::cpu().saturating_sub(self.start.get().1)
    }

    /// Wall time left by the clock on the wall, time given back not counted.
    pub(crate) fn real_wall_left(&self) -> Duration {
        let end = self.start.get().0.saturating_add(self.limits.get().0);
        end.saturating_sub(clock::now())
    }

    /// Time limits of which more than four fifths are used: name, used, limit.
    pub(crate) fn nearly_used(&self) -> impl Iterator<Item = (&'static str, Duration, Duration)> {
        let (wall, cpu) = self.limits.get();
        let wall_used = self.wall_left().map_or(Duration::ZERO, |left| wall.saturating_sub(left));
        let cpu_used = if self.cpu_end.get().is_some() { self.cpu_used() } else { Duration::ZERO };
        let all = [("timeoutMs", wall_used, wall), ("cpuMs", cpu_used, cpu)];
        all.into_iter().filter(|(_, used, limit)| *used > *limit / 5 * 4 && !limit.is_zero())
    }

    /// Gives wall time back that passed while the program waited for its host: whether that
    /// counts is the supervisor's to say, which knows of approvals.
    pub(crate) fn extend_wall(&self, by: Duration) {
        self.wall_end.set(self.wall_end.get().map(|end| end.saturating_add(by)));
    }
}
