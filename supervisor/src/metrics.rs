//! What happened, counted.
//!
//! Owns the counters. Never a label that a client or a guest chose.

use brig_protocol::client::Outcome;
use brig_protocol::codes::EvaluationCode;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Connections taken.
    pub(crate) connections: Counter,
    /// Connections sent away at a bound.
    pub(crate) connections_refused: Counter,
    /// Connections ended because the client took nothing, or let too much wait.
    pub(crate) slow_readers: Counter,
    /// Lines that were no message.
    pub(crate) bad_lines: Counter,
    /// Answers to calls that nobody awaits (any more).
    pub(crate) stray_answers: Counter,
    /// Requests refused before anything ran.
    pub(crate) refused: Counter,
    /// Evaluations by outcome.
    pub(crate) succeeded: Counter,
    /// Evaluations by outcome.
    pub(crate) failed: Counter,
    /// Evaluations by outcome.
    pub(crate) timed_out: Counter,
    /// Evaluations by outcome.
    pub(crate) cancelled: Counter,
    /// Workers that broke their protocol.
    pub(crate) breaches: Counter,
    /// How evaluations failed.
    failures: Failures,
}

impl Metrics {
    /// One more evaluation has ended so.
    pub(crate) fn ended(&self, outcome: Outcome, code: Option<EvaluationCode>) {
        if let Some(counter) = code.and_then(|code| self.failures.0.get(&code)) {
            counter.count();
        }
        match outcome {
            Outcome::Succeeded => self.succeeded.count(),
            Outcome::Failed => self.failed.count(),
            Outcome::TimedOut => self.timed_out.count(),
            Outcome::Cancelled => self.cancelled.count(),
        }
    }

    /// One line for the log.
    pub(crate) fn summary(&self) -> String {
        let parts: Vec<String> = self.counters().iter().map(|(name, count)| format!("{} {count}", name.replace('_', " "))).collect();
        parts.join(", ")
    }

    /// All counters by name.
    pub(crate) fn counters(&self) -> [(&'static str, u64); 11] {
        [
            ("connections", &self.connections),
            ("connections_refused", &self.connections_refused),
            ("slow_readers", &self.slow_readers),
            ("bad_lines", &self.bad_lines),
            ("stray_answers", &self.stray_answers),
            ("refused", &self.refused),
            ("succeeded", &self.succeeded),
            ("failed", &self.failed),
            ("timed_out", &self.timed_out),
            ("cancelled", &self.cancelled),
            ("breaches", &self.breaches),
        ]
        .map(|(name, counter)| (name, counter.get()))
    }

    /// How evaluations failed: those codes of which there were any.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (EvaluationCode, u64)> {
        self.failures.0.iter().map(|(code, counter)| (*code, counter.get())).filter(|(_, count)| *count > 0)
    }
}

/// A counter for each code of the table.
#[derive(Debug)]
struct Failures(BTreeMap<EvaluationCode, Counter>);

impl Default for Failures {
    fn default() -> Self {
        Self(EvaluationCode::ALL.iter().map(|code| (*code, Counter::default())).collect())
    }
}

/// One counter.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// One more.
    pub(crate) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How many.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
