//! What happened, counted.
//!
//! Owns the counters. Never a label that a client or a guest chose.

use brig_protocol::client::Outcome;
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
}

impl Metrics {
    /// One more evaluation has ended so.
    pub(crate) fn ended(&self, outcome: Outcome) {
        match outcome {
            Outcome::Succeeded => self.succeeded.count(),
            Outcome::Failed => self.failed.count(),
            Outcome::TimedOut => self.timed_out.count(),
            Outcome::Cancelled => self.cancelled.count(),
        }
    }

    /// One line for the log.
    pub(crate) fn summary(&self) -> String {
        let counters = [
            ("connections", &self.connections),
            ("connections refused", &self.connections_refused),
            ("slow readers", &self.slow_readers),
            ("bad lines", &self.bad_lines),
            ("stray answers", &self.stray_answers),
            ("refused", &self.refused),
            ("succeeded", &self.succeeded),
            ("failed", &self.failed),
            ("timed out", &self.timed_out),
            ("cancelled", &self.cancelled),
            ("breaches", &self.breaches),
        ];
        let parts: Vec<String> = counters.iter().map(|(name, counter)| format!("{name} {}", counter.get())).collect();
        parts.join(", ")
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
