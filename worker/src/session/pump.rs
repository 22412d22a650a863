//! Owns the turning of the wheel: jobs, timers, messages, waits, until a promise settles
//! or nothing can happen any more. It never blocks without a reason that will end.

use std::{rc::Rc, time::Duration};

use brig_protocol::worker::{self, FromSupervisor};
use rquickjs::{Ctx, Promise, Value, promise::PromiseState};

use crate::{
    bridge::Delivery,
    channel::{Channel, HungUp, Waited},
    engine::{
        Shared,
        budget::Passed,
        clock,
        raw::{self, Job},
        warn_when_near,
    },
};

/// Jobs that run between two looks at the clocks.
const JOBS_A_LOOK: u32 = 256;

/// Why a promise did not settle with a value.
pub(super) enum Stop<'js> {
    /// It rejected.
    Thrown(Value<'js>),
    /// A limit of time was passed, or the supervisor said to stop.
    Passed(Passed),
    /// No timer and no host call is pending: it never will.
    Deadlock,
    /// There is nobody to answer.
    HungUp,
}

/// What may still happen while a turn is made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The program runs.
    Running,
    /// Its value is ready: only host calls are waited for, timers stand still.
    Draining,
}

pub(super) struct Pump<'a, 'js> {
    pub(super) ctx: &'a Ctx<'js>,
    pub(super) shared: &'a Rc<Shared>,
    pub(super) channel: &'a Channel,
    /// What timers and microtasks threw, to be told at the end.
    pub(super) uncaught: Vec<Uncaught<'js>>,
}

/// What nobody caught, and whose it was.
pub(super) struct Uncaught<'js> {
    pub(super) whose: &'static str,
    pub(super) thrown: Value<'js>,
}

/// Uncaught exceptions that are remembered.
const UNCAUGHT: usize = 16;

impl<'js> Pump<'_, 'js> {
    /// Turns until the promise settles.
    pub(super) fn settle(&mut self, promise: &Promise<'js>) -> Result<Value<'js>, Stop<'js>> {
        loop {
            self.jobs()?;
            match (promise.state(), promise.result::<Value>()) {
                (PromiseState::Resolved, Some(Ok(value))) => return Ok(value),
                (PromiseState::Rejected, _) => return Err(Stop::Thrown(self.ctx.catch())),
                _ => {}
            }
            if self.fire_timer() || self.take_message()? {
                continue;
            }
            self.wait(Mode::Running, None)?;
        }
    }

    /// Turns until all host calls have settled or the time is over; whether they have.
    pub(super) fn drain(&mut self, time: Duration) -> Result<bool, Stop<'js>> {
        let end = clock::now().saturating_add(time);
        loop {
            self.jobs()?;
            if self.shared.calls.is_idle() {
                return Ok(true);
            }
            if self.take_message()? {
                continue;
            }
            if clock::now() >= end {
                return Ok(false);
            }
            self.wait(Mode::Draining, Some(end))?;
        }
    }

    /// Runs all jobs that are there and that they add.
    fn jobs(&mut self) -> Result<(), Stop<'js>> {
        let mut until_look = JOBS_A_LOOK;
        loop {
            match raw::run_job(self.ctx) {
                Job::Idle => break,
                Job::Done => {}
                Job::Threw(thrown) => {
                    // The interrupt ends a job this way too; it is no error of the program's.
                    self.look()?;
                    self.remember("a microtask", thrown);
                }
            }
            until_look -= 1;
            if until_look == 0 {
                until_look = JOBS_A_LOOK;
                self.shared.output.end_turn();
                self.look()?;
            }
        }
        self.shared.output.end_turn();
        self.look()
    }

    /// Asks the clocks; most programs are over before a limit is near.
    fn look(&self) -> Result<(), Stop<'js>> {
        warn_when_near(&self.shared.budget, &self.shared.outbox);
        if self.shared.outbox.has_hung_up() {
            return Err(Stop::HungUp);
        }
        if self.shared.budget.check()
            && let Some(passed) = self.shared.budget.passed()
        {
            return Err(Stop::Passed(passed));
        }
        Ok(())
    }

    fn fire_timer(&mut self) -> bool {
        match self.shared.timers.fire_one(self.ctx) {
            None => false,
            Some(Ok(())) => true,
            Some(Err(_)) => {
                let thrown = self.ctx.catch();
                self.remember("a timer's function", thrown);
                true
            }
        }
    }

    fn remember(&mut self, whose: &'static str, thrown: Value<'js>) {
        if self.uncaught.len() < UNCAUGHT {
            self.uncaught.push(Uncaught { whose, thrown });
        }
    }

    /// Takes one message that has come in, if there is one.
    fn take_message(&mut self) -> Result<bool, Stop<'js>> {
        let taken = self.channel.next_frame(|body| self.message(body));
        match taken {
            Ok(None) => Ok(false),
            Ok(Some(Ok(()))) => Ok(true),
            Ok(Some(Err(HungUp))) | Err(HungUp) => Err(Stop::HungUp),
        }
    }

    fn message(&self, body: &[u8]) -> Result<(), HungUp> {
        let settled = match worker::read_from_supervisor(body).map_err(|_| HungUp)? {
            FromSupervisor::HostResult { id, output } => self.shared.calls.deliver(self.ctx, id, &Delivery::Output(output.get())),
            FromSupervisor::HostFailure { id, failure } => self.shared.calls.deliver(self.ctx, id, &Delivery::Failure(&failure)),
            FromSupervisor::Cancel => {
                self.shared.budget.cancel();
                Ok(())
            }
            // Too late: what it would warm is in use.
            FromSupervisor::Rehearse => Ok(()),
            FromSupervisor::Evaluate { .. } => return Err(HungUp),
        };
        if settled.is_err() {
            // Only the interrupt gets here: whatever a guest throws stays in its promise.
            drop(self.ctx.catch());
        }
        Ok(())
    }

    /// Waits for a message or a timer.
    fn wait(&self, mode: Mode, end: Option<Duration>) -> Result<(), Stop<'js>> {
        let now = clock::now();
        let timer = if mode == Mode::Running { self.shared.timers.next_due() } else { None };
        let calls = !self.shared.calls.is_idle();
        if timer.is_none() && !calls {
            return Err(Stop::Deadlock);
        }
        // While host calls are open the supervisor's clock is the one that counts.
        let limit = if calls { None } else { self.shared.budget.wall_left() };
        let due = timer.into_iter().chain(end).map(|due| due.saturating_sub(now));
        let waited = self.channel.wait(due.chain(limit).min()).map_err(|HungUp| Stop::HungUp)?;
        if calls {
            self.shared.budget.extend_wall(clock::now().saturating_sub(now));
        }
        match waited {
            Waited::Came | Waited::TimedOut => Ok(()),
        }
    }
}
