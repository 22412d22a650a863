//! What each figure is called, and where it comes from.
//!
//! Owns the names, which docs/metrics.md lists, and their labels. Only reads.

use super::family::{Family, Kind, Value};
use super::{EFFECTS, Metrics, OUTCOMES, STATES};
use crate::service::Service;
use brig_protocol::codes::{CallCode, EvaluationCode, RequestCode};
use brig_protocol::limits::LIMITS;
use std::sync::PoisonError;

/// The label of what has no code.
const NO_CODE: &str = "none";

/// Everything there is to show, in the order of the documentation.
pub(crate) fn families(service: &Service) -> Vec<Family> {
    let metrics = &service.metrics;
    let catalogue = service.catalogue();
    metrics.keep_functions(&|name| catalogue.has(name));
    let mut all = about(service);
    all.extend(evaluations(service));
    all.extend(workers(service));
    all.extend(calls(metrics));
    all.extend(clients(service));
    all.extend(kept(service));
    all.extend(watch(metrics));
    all
}

fn about(service: &Service) -> Vec<Family> {
    let sandbox = service.pool.sandbox();
    let mut layers = Family::new("brig_sandbox_layer", Kind::Gauge, "Layers of confinement that hold for new workers.");
    for layer in &sandbox.layers {
        layers = layers.with(&[("layer", layer)], 1);
    }
    vec![
        Family::new("brig_build_info", Kind::Gauge, "The version of brigd.").with(&[("version", env!("CARGO_PKG_VERSION"))], 1),
        Family::new("brig_sandbox_level", Kind::Gauge, "How new workers are confined: full, strong or minimal.")
            .with(&[("level", &sandbox.level)], 1),
        layers,
        Family::new("brig_uptime_seconds", Kind::Gauge, "Time since brigd started.")
            .sample(&[], Value::Real(service.metrics.begun.elapsed().as_secs_f64())),
        Family::count("brig_audit_failures_total", "Records that could not be written.", service.audit.failures()),
        Family::gauge("brig_configured_functions", "Functions of the operator that can be called.", service.catalogue().count()),
        Family::gauge("brig_configured_files_disabled", "Files of functions.d that are not used.", service.catalogue().disabled().len()),
    ]
}

fn evaluations(service: &Service) -> Vec<Family> {
    let metrics = &service.metrics;
    let (running, waiting) = service.admission.counts();
    let mut ended = Family::new("brig_evaluations_total", Kind::Counter, "Evaluations that ended, by outcome and code of the error.");
    let mut durations = Family::new("brig_evaluation_duration_seconds", Kind::Histogram, "From dispatch to a worker to the end.");
    for ((outcome, word), durations_of) in OUTCOMES.iter().zip(&metrics.durations) {
        durations = durations.sample(&[("outcome", word)], Value::Distribution(durations_of.distribution()));
        let codes = EvaluationCode::ALL.iter().map(|code| code.as_str()).chain([NO_CODE]);
        for (column, code) in codes.enumerate() {
            let count = metrics.evaluations.get(*outcome as usize, column);
            // What can be is shown from the start, so that its first time is an increase.
            if count > 0 || is_usual(word, code) {
                ended = ended.with(&[("outcome", word), ("code", code)], count);
            }
        }
    }
    let mut limits = Family::new("brig_limits_hit_total", Kind::Counter, "Evaluations that a limit ended, by its name.");
    for (place, name) in LIMITS.iter().map(|row| row.name).chain(["other"]).enumerate() {
        limits = limits.with(&[("limit", name)], metrics.limits.get(0, place));
    }
    vec![
        ended,
        durations,
        Family::new("brig_queue_wait_seconds", Kind::Histogram, "Wait for a turn in the queue.")
            .sample(&[], Value::Distribution(metrics.queue_wait.distribution())),
        Family::gauge("brig_evaluations_running", "Evaluations that run now.", running),
        Family::gauge("brig_evaluations_waiting", "Evaluations that wait in the queue.", waiting),
        limits,
        Family::new("brig_worker_cpu_seconds_total", Kind::Counter, "CPU time that workers used for evaluations.")
            .sample(&[], Value::Real(std::time::Duration::from_micros(metrics.cpu_us.get()).as_secs_f64())),
        Family::gauge("brig_vms", "Workers that are kept between evaluations.", service.vms.count()),
    ]
}

fn is_usual(outcome: &str, code: &str) -> bool {
    match outcome {
        "succeeded" => code == NO_CODE,
        "timed_out" | "cancelled" => code == outcome,
        _ => !["timed_out", "cancelled", NO_CODE].contains(&code),
    }
}

fn workers(service: &Service) -> Vec<Family> {
    let pool = service.pool.stats();
    let mut states = Family::new("brig_workers", Kind::Gauge, "Workers by state.");
    for (state, count) in [("coming", pool.coming), ("ready", pool.ready), ("leased", pool.leased), ("ending", pool.ending)] {
        states = states.with(&[("state", state)], u64::try_from(count).unwrap_or(u64::MAX));
    }
    vec![
        states,
        Family::gauge("brig_workers_wanted", "Leases that wait for a worker.", pool.waiting),
        Family::count("brig_workers_started_total", "Workers that were made and verified.", pool.workers_verified),
        Family::count("brig_worker_abnormal_deaths_total", "Workers that died of a signal that is none of ours.", pool.abnormal_deaths),
        Family::count("brig_worker_breaches_total", "Workers that broke their protocol and were killed.", service.metrics.breaches.get()),
        Family::gauge("brig_worker_failures", "Failures to make a worker, in a row.", usize::try_from(pool.failures).unwrap_or(usize::MAX)),
        Family::gauge("brig_nurseries", "Nurseries that live.", pool.nurseries),
        Family::count("brig_nursery_generations_total", "Nurseries that were started.", pool.nurseries_started),
    ]
}

fn calls(metrics: &Metrics) -> Vec<Family> {
    let mut all = Family::new("brig_host_calls_total", Kind::Counter, "Host calls that ended, by what is known of their effect and code.");
    for (state, word) in &STATES {
        let codes = CallCode::ALL.iter().map(|code| code.as_str()).chain([NO_CODE]);
        for (column, code) in codes.enumerate() {
            let count = metrics.calls.get(*state as usize, column);
            if count > 0 || (*word == "refused") == (code != NO_CODE) && ["refused", "completed"].contains(word) {
                all = all.with(&[("state", word), ("code", code)], count);
            }
        }
    }
    let mut called = Family::new("brig_function_calls_total", Kind::Counter, "Calls of configured functions, by state.");
    let mut durations =
        Family::new("brig_function_duration_seconds", Kind::Histogram, "Time of calls of configured functions that were not refused.");
    for (name, figures) in &*metrics.functions.lock().unwrap_or_else(PoisonError::into_inner) {
        let effect = EFFECTS.get(figures.effect as usize).map_or("", |(_, word)| word);
        for ((_, state), count) in STATES.iter().zip(&figures.states) {
            called = called.with(&[("function", name), ("effect", effect), ("state", state)], count.get());
        }
        durations = durations.sample(&[("function", name)], Value::Distribution(figures.durations.distribution()));
    }
    vec![all, called, durations]
}

fn clients(service: &Service) -> Vec<Family> {
    let metrics = &service.metrics;
    let mut refused = Family::new("brig_requests_refused_total", Kind::Counter, "Requests refused before anything ran, by code.");
    for code in RequestCode::ALL {
        refused = refused.with(&[("code", code.as_str())], metrics.refused.get(*code));
    }
    vec![
        Family::gauge("brig_connections", "Clients that are connected.", service.doors.count()),
        Family::count("brig_connections_total", "Clients that connected.", metrics.connections.get()),
        Family::count("brig_connections_refused_total", "Clients sent away at a bound.", metrics.connections_refused.get()),
        Family::count("brig_slow_clients_total", "Clients disconnected because they took nothing.", metrics.slow_readers.get()),
        Family::count("brig_bad_lines_total", "Lines of clients that were no message.", metrics.bad_lines.get()),
        Family::count("brig_stray_answers_total", "Answers of clients to calls that nobody awaits.", metrics.stray_answers.get()),
        refused,
        Family::gauge("brig_held_bytes", "Bytes that brigd holds for clients.", service.budget.used()),
        Family::gauge("brig_held_bytes_limit", "Bytes that it may hold (clients.buffer_bytes).", service.config.clients.buffer_bytes),
    ]
}

fn kept(service: &Service) -> Vec<Family> {
    let revoked = service.revocations.list();
    let journal = service.journal.figures();
    let size = Family::new("brig_journal_bytes", Kind::Gauge, "Size of the journal's files.");
    let size = journal.bytes().map_or(size.clone(), |bytes| size.with(&[], bytes));
    vec![
        Family::gauge("brig_approvals_waiting", "Host calls that wait for a person.", service.approvals.waiting()),
        Family::count("brig_approvals_asked_total", "Host calls that a person was asked about.", service.approvals.asked()),
        Family::gauge("brig_revoked", "Functions and principals that are revoked now.", revoked.functions.len() + revoked.principals.len()),
        size,
        Family::new("brig_journal_commit_seconds", Kind::Histogram, "Time of one transaction of the journal.")
            .sample(&[], Value::Distribution(journal.commits.distribution())),
        Family::count("brig_journal_failures_total", "Transactions of the journal that failed.", journal.failures.get()),
    ]
}

fn watch(metrics: &Metrics) -> Vec<Family> {
    let by = |family: Family, label: &'static str, words: &[&str], counts: &[super::Counter]| {
        words.iter().zip(counts).fold(family, |family, (word, count)| family.with(&[(label, word)], count.get()))
    };
    vec![
        by(
            Family::new("brig_watchdog_probes_total", Kind::Counter, "Probes for the service manager's watchdog."),
            "result",
            &["passed", "failed", "late"],
            &metrics.probes,
        ),
        by(
            Family::new("brig_reloads_total", Kind::Counter, "Reloads of the configuration."),
            "result",
            &["taken_over", "refused"],
            &metrics.reloads,
        ),
        by(
            Family::new("brig_spans_total", Kind::Counter, "Spans for OpenTelemetry, by what became of them."),
            "result",
            &["exported", "dropped", "lost"],
            &metrics.spans,
        ),
        by(Family::new("brig_log_events_total", Kind::Counter, "Lines of the log."), "level", &["error", "warn"], &crate::logging::COUNTS),
    ]
}
