//! When an evaluation has to be looked at next.
//!
//! Owns the arithmetic of the wall-clock limit, the CPU budget and the grace before
//! the kill. Pure: time and CPU time are arguments.

use brig_protocol::limits::Limits;
use std::time::Duration;
use tokio::time::Instant;

/// How long a worker may take to answer politely after its evaluation is decided.
pub(crate) const GRACE: Duration = Duration::from_millis(50);
/// CPU time is not looked at more often than this.
const CPU_STEP: Duration = Duration::from_millis(5);

/// What time says about an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing.
    Nothing,
    /// The wall-clock limit has passed.
    TimedOut,
    /// The CPU budget is used up.
    CpuUsed,
    /// The grace is over: kill.
    Kill,
}

/// The times of one evaluation.
#[derive(Debug)]
pub(crate) struct Clock {
    started: Instant,
    deadline: Instant,
    cpu_before: Duration,
    cpu_budget: Duration,
    /// The CPU budget can not be used up before this.
    cpu_look: Instant,
    kill_at: Option<Instant>,
}

impl Clock {
    /// Starts now; the worker has used `cpu_before` until now.
    pub(crate) fn start(now: Instant, cpu_before: Duration, limits: &Limits) -> Self {
        let cpu_budget = Duration::from_millis(limits.cpu_ms);
        Self {
            started: now,
            deadline: now + Duration::from_millis(limits.timeout_ms),
            cpu_before,
            cpu_budget,
            cpu_look: now + cpu_budget,
            kill_at: None,
        }
    }

    /// When to look next.
    pub(crate) fn next_look(&self) -> Instant {
        self.kill_at.unwrap_or_else(|| self.deadline.min(self.cpu_look))
    }

    /// The evaluation is decided: its worker has [`GRACE`] to say its last.
    pub(crate) fn begin_grace(&mut self, now: Instant) {
        self.kill_at.get_or_insert(now + GRACE);
    }

    /// What is due now. `cpu_used` is asked only when it could matter.
    pub(crate) fn look(&mut self, now: Instant, cpu_used: impl FnOnce() -> Option<Duration>) -> Due {
        if let Some(kill_at) = self.kill_at {
            return if now >= kill_at { Due::Kill } else { Due::Nothing };
        }
        if now >= self.deadline {
            return Due::TimedOut;
        }
        if now < self.cpu_look {
            return Due::Nothing;
        }
        // No figure: the process is gone, and its socket will say so.
        let used = cpu_used().map_or(Duration::ZERO, |cpu| self.cpu_since(cpu));
        match self.cpu_budget.checked_sub(used) {
            None | Some(Duration::ZERO) => Due::CpuUsed,
            Some(left) => {
                self.cpu_look = now + left.max(CPU_STEP);
                Due::Nothing
            }
        }
    }

    /// CPU time of this evaluation when its worker's is `cpu`.
    pub(crate) fn cpu_since(&self, cpu: Duration) -> Duration {
        cpu.saturating_sub(self.cpu_before)
    }

    /// Wall-clock time of this evaluation.
    pub(crate) fn wall_since(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn clock(timeout_ms: u64, cpu_ms: u64) -> (Clock, Instant) {
        let now = Instant::now();
        (Clock::start(now, 3 * MS, &Limits { timeout_ms, cpu_ms, ..Limits::DEFAULT }), now)
    }

    #[test]
    fn cpu_is_looked_at_only_when_it_could_be_used_up() {
        let (mut clock, start) = clock(1000, 100);
        assert_eq!(clock.next_look(), start + 100 * MS);
        assert_eq!(clock.look(start + 99 * MS, || None), Due::Nothing);
        // 40 of 100 ms used: not before 60 ms from now.
        assert_eq!(clock.look(start + 100 * MS, || Some(43 * MS)), Due::Nothing);
        assert_eq!(clock.next_look(), start + 160 * MS);
        assert_eq!(clock.look(start + 160 * MS, || Some(103 * MS)), Due::CpuUsed);
    }

    #[test]
    fn the_deadline_comes_before_the_budget_and_the_kill_after_the_grace() {
        let (mut clock, start) = clock(50, 100);
        assert_eq!(clock.look(start + 50 * MS, || None), Due::TimedOut);
        clock.begin_grace(start + 50 * MS);
        clock.begin_grace(start + 90 * MS);
        assert_eq!(clock.next_look(), start + 50 * MS + GRACE);
        assert_eq!(clock.look(start + 60 * MS, || None), Due::Nothing);
        assert_eq!(clock.look(start + 50 * MS + GRACE, || None), Due::Kill);
    }
}
