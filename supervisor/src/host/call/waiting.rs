//! What ends the wait for a host call.
//!
//! Owns the times: the function's own, and the evaluation's, whose clock may stand still.

use super::ending::Stop;
use super::{Callback, HostCalls};
use crate::audit::AuditSink;
use crate::host::table::Function;
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

    /// How long a call that runs now may take.
    pub(super) fn time_left(&self, by: Option<Instant>) -> Duration {
        let now = Instant::now();
        let until = self.wall.deadline().map(tokio::time::Instant::into_std);
        let end = by.into_iter().chain(until).min().unwrap_or(now);
        end.saturating_duration_since(now).max(Duration::from_millis(1))
    }
}
