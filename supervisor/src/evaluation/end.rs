//! The end of an evaluation: one verdict, one answer.
//!
//! Owns what is done with the worker, the calls that are still open, and the figures.

use super::holding::Holding;
use super::run::Run;
use super::verdict::{self, Judged, Verdict};
use crate::admission::Ticket;
use crate::audit::Event;
use crate::journal::Effects;
use crate::metrics::outcome_word;
use crate::pool;
use crate::vm::Lost;
use brig_protocol::client::{CallRecord, EvaluateResult, EvaluationError, Usage};
use brig_protocol::codes::EvaluationCode;
use brig_protocol::limits::Limits;
use brig_protocol::worker::{Phase, WorkerUsage};
use futures_util::StreamExt;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// An answer, and what is to be let go once the client has it.
pub(crate) struct Ended {
    /// The answer.
    pub(crate) result: EvaluateResult,
    /// The same, for whoever asks again.
    pub(crate) kept: Kept,
    /// The worker, to be let go.
    pub(crate) worker: Holding,
    /// The place in the queue.
    pub(crate) ticket: Ticket,
}

/// An answer that may be asked for again.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// As it goes out.
    pub(crate) answer: Option<Arc<RawValue>>,
    /// It is in the journal.
    pub(crate) in_journal: bool,
}

impl Run {
    /// One host call less is open.
    pub(super) fn call_over(&mut self) {
        let now = Instant::now();
        self.host_time.ended(now);
        self.host.wall.ended(now);
    }

    /// The answer. The worker is killed unless it finished by itself.
    pub(super) async fn end(mut self) -> Ended {
        let (verdict, at) = self.verdict.take().unwrap_or((Verdict::Died, Instant::now()));
        self.end_calls().await;
        let mut cpu = self.lease.cpu_time();
        let polite = self.lease.conversation().phase() == Phase::Finished;
        let lost = if self.lease.is_kept() { verdict.loses(polite) } else { None };
        if verdict.kills() && (lost.is_some() || !self.lease.is_kept()) {
            self.lease.kill();
        }
        let report = if matches!(verdict, Verdict::Died) { Some(self.lease.ended().await) } else { None };
        if let Some(report) = &report {
            cpu = Some(report.cpu);
        }
        self.log(&verdict);
        // What the worker used before, for other evaluations in its vm, was not this one's.
        let report = report.map(|report| pool::Ended { cpu: self.clock.cpu_since(report.cpu), ..report });
        let Judged { outcome, value, mut error } = verdict.judged(&self.limits, &self.waiting, report.as_ref());
        if let Some(lost) = lost {
            let lost = more_precise(lost, error.as_ref());
            self.lease.lose(lost, error.as_mut()).into_iter().for_each(|warning| self.warnings.keep(warning));
        }
        if let (Some(error), Some(place)) = (&mut error, self.told.place.take()) {
            verdict::add_place(error, *place);
        }
        let wall = self.clock.wall_since(at);
        self.service.metrics.ended(outcome, error.as_ref(), wall);
        self.service.metrics.used(cpu.map_or(Duration::ZERO, |cpu| self.clock.cpu_since(cpu)));
        let usage = Usage {
            wall_ms: ms(wall),
            cpu_ms: cpu.map_or(self.told.usage.cpu_ms, |cpu| ms(self.clock.cpu_since(cpu))),
            host_ms: ms(self.host_time.total.saturating_sub(self.host.wall.stood_still(at))),
            approval_ms: ms(self.host.wall.stood_still(at)),
            peak_memory_bytes: peak(&error, &self.told.usage, &self.limits),
            host_calls: u64::try_from(self.records.len()).unwrap_or(u64::MAX),
        };
        self.service.audit.note(&Event::EvaluationEnded {
            evaluation: &self.host.evaluation,
            uid: self.host.principal.uid,
            outcome,
            code: error.as_ref().map(|error| error.code),
            usage: &usage,
        });
        if let Some(trace) = self.trace.take() {
            trace.ended(&self.service, &self.host.evaluation, outcome, error.as_ref(), self.records.len());
        }
        tracing::debug!(
            evaluation = self.host.evaluation,
            uid = self.host.principal.uid,
            outcome = outcome_word(outcome),
            code = error.as_ref().map(|error| error.code.as_str()),
            calls = usage.host_calls,
            wall_ms = usage.wall_ms,
            "an evaluation is over"
        );
        self.records.sort_unstable_by_key(|record| record.call);
        let printed = self.console.printed();
        let result = EvaluateResult {
            evaluation: self.host.evaluation.clone(),
            outcome,
            value,
            error,
            stdout: printed.stdout,
            stderr: printed.stderr,
            stdout_truncated: printed.stdout_truncated,
            stderr_truncated: printed.stderr_truncated,
            warnings: self.warnings.finish(),
            calls: self.records,
            usage,
            sandbox: (*self.lease.sandbox()).clone(),
        };
        let kept = if self.host.effects.listed() { keep(&self.host.effects, &result).await } else { Kept::default() };
        Ended { result, kept, worker: self.lease, ticket: self.ticket }
    }

    /// Ends what still runs; each call says what is known of its effect.
    async fn end_calls(&mut self) {
        self.host.cancelled.cancel();
        while let Some(outcome) = self.calls.next().await {
            self.call_over();
            let index = self.open.ended(outcome.record.call);
            self.listed(outcome.record, index);
        }
        self.host.client.forget(&self.host.evaluation);
    }

    /// Puts a call that is over in the answer, and counts it.
    pub(super) fn listed(&mut self, record: CallRecord, index: Option<u32>) {
        let function = index.and_then(|index| self.host.table.get(index)).filter(|function| function.configured().is_some());
        if let Some(trace) = &mut self.trace {
            trace.called(&record, function.is_some());
        }
        self.service.metrics.called(&record, function.map(|function| function.effect));
        self.records.push(record);
    }

    fn log(&self, verdict: &Verdict) {
        let (evaluation, uid) = (self.host.evaluation.as_str(), self.host.principal.uid);
        match verdict {
            Verdict::Breach(violation) => {
                self.service.metrics.breaches.count();
                let violation = brig_protocol::escape::escaped(&violation.to_string(), 300);
                tracing::warn!(evaluation, uid, worker = ?self.lease.worker(), %violation, "a worker broke its protocol and was killed");
            }
            Verdict::Died => tracing::warn!(evaluation, uid, worker = ?self.lease.worker(), "a worker died"),
            _ => {}
        }
    }
}

/// Puts the answer in the journal.
async fn keep(effects: &Effects, result: &EvaluateResult) -> Kept {
    let Ok(answer) = serde_json::value::to_raw_value(result).map(Arc::<RawValue>::from) else { return Kept::default() };
    let in_journal = effects.ended(result.outcome, &answer).await;
    Kept { answer: Some(answer), in_journal }
}

/// Time during which at least one host call was running.
#[derive(Debug, Default)]
pub(super) struct HostTime {
    open: usize,
    since: Option<Instant>,
    total: Duration,
}

impl HostTime {
    pub(super) fn begun(&mut self, now: Instant) {
        self.open += 1;
        self.since.get_or_insert(now);
    }

    pub(super) fn ended(&mut self, now: Instant) {
        self.open = self.open.saturating_sub(1);
        if self.open == 0
            && let Some(since) = self.since.take()
        {
            self.total += now.saturating_duration_since(since);
        }
    }
}

/// What a worker died of is in its error.
fn more_precise(lost: Lost, error: Option<&EvaluationError>) -> Lost {
    match (lost, error.map(|error| error.code)) {
        (Lost::Died, Some(EvaluationCode::MemoryLimit)) => Lost::Memory,
        (Lost::Died, Some(EvaluationCode::CpuLimit)) => Lost::CpuUsed,
        _ => lost,
    }
}

/// A worker that its heap limit ended had no time to say how much it held.
fn peak(error: &Option<EvaluationError>, told: &WorkerUsage, limits: &Limits) -> u64 {
    let at_limit = error.as_ref().is_some_and(|error| error.limit.as_deref() == Some("heapBytes"));
    if at_limit { limits.heap_bytes } else { told.peak_memory_bytes }
}

/// Milliseconds with three decimals: the clock says no more.
pub(super) fn ms(duration: Duration) -> f64 {
    let micros = u32::try_from(duration.as_micros()).map_or(f64::MAX, f64::from);
    if micros == f64::MAX { duration.as_secs_f64() * 1000.0 } else { micros / 1000.0 }
}
