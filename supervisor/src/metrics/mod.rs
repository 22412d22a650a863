//! What happened, counted, and shown to who may see it.
//!
//! Owns the counters ([`figures`]), what each is called ([`families`]), the text form
//! ([`text`]) and the socket that shows it ([`http`]). Never a label that a client or a
//! guest chose: labels are from closed lists, or names that the operator gave.

mod families;
mod family;
mod figures;
mod http;
mod text;

pub(crate) use families::families;
pub(crate) use family::{Family, Kind, Sample, Value};
pub(crate) use figures::{BOUNDS_US, Counter, Distribution, Histogram};
pub(crate) use http::{Door, OpenFault};

use brig_protocol::client::{CallRecord, CallState, Effect, EvaluationError, Outcome};
use brig_protocol::codes::{CallCode, EvaluationCode, RequestCode};
use brig_protocol::limits::LIMITS;
use figures::Table;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Outcomes, in the order of their numbers.
pub(super) const OUTCOMES: [(Outcome, &str); 4] =
    [(Outcome::Succeeded, "succeeded"), (Outcome::Failed, "failed"), (Outcome::TimedOut, "timed_out"), (Outcome::Cancelled, "cancelled")];
/// States of a host call, in the order of their numbers.
pub(super) const STATES: [(CallState, &str); 4] =
    [(CallState::Refused, "refused"), (CallState::Failed, "failed"), (CallState::Completed, "completed"), (CallState::Unknown, "unknown")];
/// Effects of configured functions, in the order of their numbers.
pub(super) const EFFECTS: [(Effect, &str); 2] = [(Effect::Read, "read"), (Effect::Write, "write")];

/// The word of an outcome.
pub(crate) fn outcome_word(outcome: Outcome) -> &'static str {
    OUTCOMES.get(outcome as usize).map_or("", |(_, word)| word)
}

/// The word of a state.
pub(crate) fn state_word(state: CallState) -> &'static str {
    STATES.get(state as usize).map_or("", |(_, word)| word)
}

/// Counters since the start.
#[derive(Debug)]
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
    pub(crate) refused: Refusals,
    /// Workers that broke their protocol.
    pub(crate) breaches: Counter,
    /// Waits for a turn.
    pub(crate) queue_wait: Histogram,
    /// Probes of the watchdog: passed, failed, late.
    pub(crate) probes: [Counter; 3],
    /// Reloads of the configuration: taken over, refused.
    pub(crate) reloads: [Counter; 2],
    /// Spans: exported, dropped for lack of room, lost with a failed export.
    pub(crate) spans: [Counter; 3],
    /// Evaluations by outcome and code; the last column is no code.
    evaluations: Table,
    /// Durations by outcome.
    durations: [Histogram; OUTCOMES.len()],
    /// CPU time of workers, in microseconds.
    cpu_us: Counter,
    /// Limits that ended an evaluation; the last one is none of the table.
    limits: Table,
    /// Host calls by state and code; the last column is no code.
    calls: Table,
    /// Configured functions, by their names.
    functions: Mutex<BTreeMap<String, FunctionFigures>>,
    begun: Instant,
}

/// What is known of one configured function.
#[derive(Debug)]
struct FunctionFigures {
    effect: Effect,
    durations: Histogram,
    states: [Counter; STATES.len()],
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            connections: Counter::default(),
            connections_refused: Counter::default(),
            slow_readers: Counter::default(),
            bad_lines: Counter::default(),
            stray_answers: Counter::default(),
            refused: Refusals::default(),
            breaches: Counter::default(),
            queue_wait: Histogram::default(),
            probes: Default::default(),
            reloads: Default::default(),
            spans: Default::default(),
            evaluations: Table::new(OUTCOMES.len(), EvaluationCode::ALL.len() + 1),
            durations: Default::default(),
            cpu_us: Counter::default(),
            limits: Table::new(1, LIMITS.len() + 1),
            calls: Table::new(STATES.len(), CallCode::ALL.len() + 1),
            functions: Mutex::default(),
            begun: Instant::now(),
        }
    }
}

/// Requests refused before anything ran, by code.
#[derive(Debug)]
pub(crate) struct Refusals(Table);

impl Default for Refusals {
    fn default() -> Self {
        Self(Table::new(1, RequestCode::ALL.len()))
    }
}

impl Refusals {
    /// One more.
    pub(crate) fn count(&self, code: RequestCode) {
        self.0.count(0, code as usize);
    }

    /// How many there were.
    pub(crate) fn get(&self, code: RequestCode) -> u64 {
        self.0.get(0, code as usize)
    }
}

impl Metrics {
    /// One more evaluation has ended so.
    pub(crate) fn ended(&self, outcome: Outcome, error: Option<&EvaluationError>, took: Duration) {
        let code = error.map_or(EvaluationCode::ALL.len(), |error| error.code as usize);
        self.evaluations.count(outcome as usize, code);
        if let Some(durations) = self.durations.get(outcome as usize) {
            durations.observe(took);
        }
        // A worker may name a limit: it counts only when it is one.
        if let Some(limit) = error.and_then(|error| error.limit.as_deref()) {
            self.limits.count(0, LIMITS.iter().position(|row| row.name == limit).unwrap_or(LIMITS.len()));
        }
    }

    /// A worker took so much CPU time for an evaluation.
    pub(crate) fn used(&self, cpu: Duration) {
        self.cpu_us.add(u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX));
    }

    /// One more host call is over; of a configured function, `effect` is what it does.
    pub(crate) fn called(&self, record: &CallRecord, effect: Option<Effect>) {
        self.calls.count(record.state as usize, record.code.map_or(CallCode::ALL.len(), |code| code as usize));
        let Some(effect) = effect else { return };
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if !functions.contains_key(&record.function) {
            functions
                .insert(record.function.clone(), FunctionFigures { effect, durations: Histogram::default(), states: Default::default() });
        }
        let Some(figures) = functions.get_mut(&record.function) else { return };
        figures.effect = effect;
        if let Some(state) = figures.states.get(record.state as usize) {
            state.count();
        }
        // What was refused took no time of the function.
        if record.state != CallState::Refused {
            figures.durations.observe(Duration::try_from_secs_f64(record.duration_ms / 1_000.0).unwrap_or_default());
        }
    }

    /// Forgets functions that are configured no more: what there is to show stays bounded.
    pub(crate) fn keep_functions(&self, still: &dyn Fn(&str) -> bool) {
        self.functions.lock().unwrap_or_else(PoisonError::into_inner).retain(|name, _| still(name));
    }

    /// One line for the log.
    pub(crate) fn summary(&self) -> String {
        let parts: Vec<String> = self.counters().iter().map(|(name, count)| format!("{} {count}", name.replace('_', " "))).collect();
        parts.join(", ")
    }

    /// The main counters by name, for people.
    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
        let counters = [
            ("connections", self.connections.get()),
            ("connections_refused", self.connections_refused.get()),
            ("slow_readers", self.slow_readers.get()),
            ("bad_lines", self.bad_lines.get()),
            ("stray_answers", self.stray_answers.get()),
            ("refused", self.refused.0.row(0)),
        ];
        let outcomes = OUTCOMES.iter().map(|(outcome, word)| (*word, self.evaluations.row(*outcome as usize)));
        counters.into_iter().chain(outcomes).chain([("breaches", self.breaches.get())]).collect()
    }

    /// How evaluations failed: those codes of which there were any.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (EvaluationCode, u64)> {
        let count = |code: EvaluationCode| (0..OUTCOMES.len()).map(|row| self.evaluations.get(row, code as usize)).sum();
        EvaluationCode::ALL.iter().map(move |code| (*code, count(*code))).filter(|(_, count)| *count > 0)
    }

    /// Evaluations that ended so.
    #[cfg(test)]
    pub(crate) fn count_of(&self, outcome: Outcome) -> u64 {
        self.evaluations.row(outcome as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_enums_are_places_in_their_lists() {
        assert!(OUTCOMES.iter().enumerate().all(|(place, (outcome, _))| place == *outcome as usize));
        assert!(STATES.iter().enumerate().all(|(place, (state, _))| place == *state as usize));
        assert!(EFFECTS.iter().enumerate().all(|(place, (effect, _))| place == *effect as usize));
        assert!(EvaluationCode::ALL.iter().enumerate().all(|(place, code)| place == *code as usize));
        assert!(CallCode::ALL.iter().enumerate().all(|(place, code)| place == *code as usize));
        assert!(RequestCode::ALL.iter().enumerate().all(|(place, code)| place == *code as usize));
    }

    #[test]
    fn a_limit_that_a_worker_made_up_is_no_label() {
        let metrics = Metrics::default();
        let mut error = EvaluationError::new(EvaluationCode::MemoryLimit, "x", "x");
        error.limit = Some("evil\"} 1\n".to_owned());
        metrics.ended(Outcome::Failed, Some(&error), Duration::ZERO);
        assert_eq!(metrics.limits.get(0, LIMITS.len()), 1);
    }
}
