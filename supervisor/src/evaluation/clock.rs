//! When an evaluation has to be looked at next.
//!
//! Owns the arithmetic of the CPU budget and the grace before the kill; the wall-clock
//! limit, which may stand still, is [`crate::host::wall`]'s. Pure: time, that limit and CPU
//! time are arguments.

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
        Self { started: now, cpu_before, cpu_budget, cpu_look: now + cpu_budget, kill_at: None }
    }

    /// When to look next. `deadline` is that of the wall clock; nothing while it stands still.
    pub(crate) fn next_look(&self, deadline: Option<Instant>) -> Instant {
        self.kill_at.unwrap_or_else(|| deadline.map_or(self.cpu_look, |deadline| deadline.min(self.cpu_look)))
    }

    /// The evaluation is decided: its worker has [`GRACE`] to say its last.
    pub(crate) fn begin_grace(&mut self, now: Instant) {
        self.kill_at.get_or_insert(now + GRACE);
    }

    /// What is due now. `cpu_used` is asked only when it could matter.
    pub(crate) fn look(&mut self, now: Instant, deadline: Option<Instant>, cpu_used: impl FnOnce() -> Option<Duration>) -> Due {
        if let Some(kill_at) = self.kill_at {
            return if now >= kill_at { Due::Kill } else { Due::Nothing };
        }
        if deadline.is_some_and(|deadline| now >= deadline) {
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

    fn clock(cpu_ms: u64) -> (Clock, Instant) {
        let now = Instant::now();
        (Clock::start(now, 3 * MS, &Limits { cpu_ms, ..Limits::DEFAULT }), now)
    }

    #[test]
    fn cpu_is_looked_at_only_when_it_could_be_used_up() {
        let (mut clock, start) = clock(100);
        let late = Some(start + 1000 * MS);
        assert_eq!(clock.next_look(late), start + 100 * MS);
        assert_eq!(clock.look(start + 99 * MS, late, || None), Due::Nothing);
        // 40 of 100 ms used: not before 60 ms from now.
        assert_eq!(clock.look(start + 100 * MS, late, || Some(43 * MS)), Due::Nothing);
        assert_eq!(clock.next_look(late), start + 160 * MS);
        assert_eq!(clock.look(start + 160 * MS, late, || Some(103 * MS)), Due::CpuUsed);
    }

    #[test]
    fn the_deadline_comes_before_the_budget_and_the_kill_after_the_grace() {
        let (mut clock, start) = clock(100);
        let deadline = Some(start + 50 * MS);
        assert_eq!(clock.next_look(deadline), start + 50 * MS);
        assert_eq!(clock.look(start + 50 * MS, deadline, || None), Due::TimedOut);
        clock.begin_grace(start + 50 * MS);
        clock.begin_grace(start + 90 * MS);
        assert_eq!(clock.next_look(deadline), start + 50 * MS + GRACE);
        assert_eq!(clock.look(start + 60 * MS, deadline, || None), Due::Nothing);
        assert_eq!(clock.look(start + 50 * MS + GRACE, deadline, || None), Due::Kill);
    }

    #[test]
    fn while_the_wall_clock_stands_still_only_the_cpu_budget_and_the_kill_come() {
        let (mut clock, start) = clock(100);
        assert_eq!(clock.next_look(None), start + 100 * MS);
        assert_eq!(clock.look(start + 5_000 * MS, None, || Some(3 * MS)), Due::Nothing);
        assert_eq!(clock.look(start + 5_100 * MS, None, || Some(103 * MS)), Due::CpuUsed);
        clock.begin_grace(start + 5_100 * MS);
        assert_eq!(clock.look(start + 5_100 * MS + GRACE, None, || None), Due::Kill);
    }
}
