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
    cpu_start: Cell<Duration>,
    passed: Cell<Option<Passed>>,
}

impl Budget {
    /// Starts both clocks; either limit may be absent.
    pub(crate) fn start(&self, wall: Duration, cpu: Duration) {
        self.passed.set(None);
        self.cpu_start.set(clock::cpu());
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
        clock::cpu().saturating_sub(self.cpu_start.get())
    }

    /// Gives wall time back that passed while a person decided.
    pub(crate) fn extend_wall(&self, by: Duration) {
        self.wall_end.set(self.wall_end.get().map(|end| end.saturating_add(by)));
    }
}
