//! What ends the wait for a host call.
//!
//! Owns the times: the function's own, and the evaluation's, whose clock may stand still;
//! and the wait for a place among the calls that run.

use super::claim::Refused;
use super::ending::Stop;
use super::{Callback, HostCalls};
use crate::audit::AuditSink;
use crate::host::configured::Place;
use crate::host::table::Function;
use brig_protocol::codes::CallCode;
use std::time::{Duration, Instant};

impl<C: Callback, A: AuditSink> HostCalls<C, A> {
    /// Resolves when nobody awaits the call any more.
    pub(super) async fn stopped(&self, by: Option<Instant>, function: &Function) -> Stop {
        tokio::select! {
            biased;
            () = self.cancelled.cancelled() => Stop::Cancelled,
            () = self.revocations.function_named(&function.collection_name, &function.name) => Stop::Revoked,
            stop = self.time_over(by) => stop,
        }
    }

    /// The evaluation's own end can only move away meanwhile, so it is looked at again
    /// when it would have come.
    async fn time_over(&self, by: Option<Instant>) -> Stop {
        loop {
            let until = self.wall.deadline().map(tokio::time::Instant::into_std);
            let (end, stop) = match (by, until) {
                (Some(by), Some(until)) if until <= by => (until, Stop::Cancelled),
                (Some(by), _) => (by, Stop::TimedOut),
                (None, Some(until)) => (until, Stop::Cancelled),
                // Whatever ends this wait runs the clock again.
                (None, None) => return std::future::pending().await,
            };
            tokio::time::sleep_until(end.into()).await;
            if matches!(stop, Stop::TimedOut) || self.wall.deadline().is_some_and(|until| until <= tokio::time::Instant::now()) {
                return stop;
            }
        }
    }

    /// A place among the calls of a configured function that run.
    pub(super) async fn placed(&self, function: &Function) -> Result<Option<Place>, Refused> {
        let Some(configured) = function.configured() else { return Ok(None) };
        configured.place(self.principal.uid).await.map(Some).map_err(|wait| {
            let (name, seconds) = (&function.full_name, wait.as_secs_f64().ceil());
            let message = format!("{name}: it is called as often as it may be (calls_per_minute); it may be again in {seconds} s");
            Refused::new(CallCode::RateLimited, message)
        })
    }

    /// How long a call that runs now may take.
    pub(super) fn time_left(&self, by: Option<Instant>) -> Duration {
        let now = Instant::now();
        let until = self.wall.deadline().map(tokio::time::Instant::into_std);
        let end = by.into_iter().chain(until).min().unwrap_or(now);
        end.saturating_duration_since(now).max(Duration::from_millis(1))
    }
}
