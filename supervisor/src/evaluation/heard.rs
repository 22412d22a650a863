//! What a worker says while it runs a program.
//!
//! Owns judging each frame: the conversation before the content, the limits before
//! anything is kept or passed on. Whatever a worker may not say is a breach.

use super::end::ms;
use super::run::Run;
use super::verdict::Verdict;
use crate::host::call::Asked;
use brig_protocol::client::{OutputNote, Stream, Warning, WarningNote, method};
use brig_protocol::frame::Body;
use brig_protocol::limits::Limits;
use brig_protocol::rpc;
use brig_protocol::worker::{Finished, FromWorker, Kind, Violation, WorkerUsage, read_from_worker};
use std::ops::ControlFlow;
use std::sync::Arc;
use tokio::time::Instant;

/// CPU time that a worker may have used before its program was sent, in milliseconds.
const USAGE_SLACK_MS: f64 = 1_000.0;
/// Bytes of a frame besides its payload.
const ENVELOPE_BYTES: u64 = 1024 * 1024;

impl Run {
    /// Takes one frame. A break is the end.
    ///
    /// # Errors
    /// The breach that it is.
    pub(super) fn heard(&mut self, body: &Body) -> Result<ControlFlow<()>, Violation> {
        let length = u64::try_from(body.len()).unwrap_or(u64::MAX);
        if length > self.frame_bytes {
            return Err(Violation::Oversized { what: "frame", bytes: body.len(), limit: self.frame_bytes });
        }
        let message = read_from_worker(body)?;
        self.lease.conversation().admit(message.kind())?;
        match message {
            FromWorker::HostCall { id, function, input } => {
                self.lease.conversation().call(id)?;
                self.check_input(input.get().len())?;
                let functions = self.host.table.len();
                if usize::try_from(function).is_ok_and(|index| index >= functions) {
                    return Err(Violation::Function { index: function, functions });
                }
                let host = Arc::clone(&self.host);
                let bytes = input.get().len();
                let mut held = self.service.budget.part(self.host.principal.uid);
                let asked = held.resize(bytes).then(|| Asked { call: id, function, input: input.to_owned() });
                self.open.begun(id, function);
                let now = Instant::now();
                self.host_time.begun(now);
                self.host.wall.begun(now);
                self.calls.push(Box::pin(async move {
                    let outcome = match asked {
                        Some(asked) => host.run(asked).await,
                        None => host.turned_away(id, function, bytes),
                    };
                    drop(held);
                    outcome
                }));
            }
            FromWorker::Output { stream, text, truncated } => self.printed(stream, &text, truncated)?,
            FromWorker::Warning(warning) => self.warned(warning)?,
            FromWorker::Finished { id, finished } => {
                self.lease.conversation().finish(id)?;
                return self.finished(*finished);
            }
            FromWorker::Ready(_) => {
                return Err(Violation::Phase { phase: self.lease.conversation().phase(), kind: Kind::Ready });
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The worker rejects a larger input by itself.
    fn check_input(&self, bytes: usize) -> Result<(), Violation> {
        let limit = self.limits.input_bytes;
        if u64::try_from(bytes).unwrap_or(u64::MAX) > limit {
            return Err(Violation::Oversized { what: "input", bytes, limit });
        }
        Ok(())
    }

    /// What a worker says it used is told to the caller; what can not be is a breach.
    fn check_usage(&self, usage: &WorkerUsage) -> Result<(), Violation> {
        let possible = ms(self.clock.wall_since(Instant::now())) + USAGE_SLACK_MS;
        if !(0.0..=possible).contains(&usage.cpu_ms) || usage.peak_memory_bytes > self.limits.heap_bytes {
            return Err(Violation::Malformed("a usage that can not be".to_owned()));
        }
        Ok(())
    }

    fn printed(&mut self, stream: Stream, text: &str, truncated: bool) -> Result<(), Violation> {
        let fits = self.console.take(stream, text, truncated)?;
        if self.stream && !fits.is_empty() {
            let note = OutputNote { evaluation: self.host.evaluation.clone(), stream, text: fits.to_owned() };
            self.outbox.send_if_room(rpc::notification(method::EVALUATION_OUTPUT, &note));
        }
        Ok(())
    }

    fn warned(&mut self, warning: Warning) -> Result<(), Violation> {
        let kept = self.warnings.take(warning)?;
        if let Some(kept) = kept.filter(|_| self.stream) {
            let note = WarningNote { evaluation: self.host.evaluation.clone(), warning: kept.clone() };
            self.outbox.send_if_room(rpc::notification(method::EVALUATION_WARNING, &note));
        }
        Ok(())
    }

    fn finished(&mut self, finished: Finished<'_>) -> Result<ControlFlow<()>, Violation> {
        self.check_usage(&finished.usage)?;
        self.told.usage = finished.usage;
        if self.verdict.is_some() {
            self.told.place = finished.error.map(Box::new);
            return Ok(ControlFlow::Break(()));
        }
        let verdict = match (finished.value, finished.error) {
            (Some(_), Some(_)) => return Err(Violation::Malformed("both a value and an error".to_owned())),
            (None, Some(error)) => {
                self.told.place = matches!(error.code.as_str(), "timed_out" | "cpu_limit").then(|| Box::new(error.clone()));
                Verdict::of_error(error)?
            }
            (value, None) => {
                let bytes = value.map_or(0, |value| value.get().len());
                let limit = self.limits.result_bytes;
                if u64::try_from(bytes).unwrap_or(u64::MAX) > limit {
                    return Err(Violation::Oversized { what: "value", bytes, limit });
                }
                Verdict::Value(value.map(ToOwned::to_owned))
            }
        };
        Ok(self.decide(verdict))
    }
}

/// No honest frame is longer: the largest payload, escaped where it is text.
pub(super) fn frame_bytes(limits: &Limits) -> u64 {
    let payload = limits.input_bytes.max(limits.result_bytes).max(limits.console_bytes.saturating_mul(6));
    payload.saturating_add(ENVELOPE_BYTES)
}
