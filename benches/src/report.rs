//! Collecting figures and showing them as ratios.

use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The figures of one row, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) least: f64,
    pub(crate) runs: usize,
}

/// All rows, and the bars they are held against.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<(String, Figures)>,
    counts: Vec<(String, f64, &'static str)>,
    bars: Vec<(String, f64, f64)>,
}

/// Times `run` so often, after a tenth as many runs that do not count.
pub(crate) fn timed(runs: usize, mut run: impl FnMut()) -> Figures {
    for _ in 0..(runs / 10).max(3) {
        run();
    }
    let mut times: Vec<Duration> = Vec::with_capacity(runs);
    for _ in 0..runs {
        let start = Instant::now();
        run();
        times.push(start.elapsed());
    }
    figures(times)
}

/// Median, p99 and least of some durations.
pub(crate) fn figures(mut times: Vec<Duration>) -> Figures {
    times.sort();
    let micros = |share: usize| {
        let index = (times.len() * share / 100).min(times.len().saturating_sub(1));
        times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e6)
    };
    Figures { p50: micros(50), p99: micros(99), least: micros(0), runs: times.len() }
}

impl Report {
    pub(crate) fn row(&mut self, name: &str, figures: Figures) {
        eprintln!("{name}: p50 {:.1} µs, p99 {:.1} µs", figures.p50, figures.p99);
        self.rows.push((name.to_owned(), figures));
    }

    pub(crate) fn count(&mut self, name: &str, value: f64, unit: &'static str) {
        eprintln!("{name}: {value:.1} {unit}");
        self.counts.push((name.to_owned(), value, unit));
    }

    /// The median of a row, in microseconds.
    pub(crate) fn p50(&self, name: &str) -> Option<f64> {
        self.rows.iter().find(|(row, _)| row == name).map(|(_, figures)| figures.p50)
    }

    fn value(&self, name: &str) -> Option<f64> {
        self.counts.iter().find(|(row, _, _)| row == name).map(|(_, value, _)| *value)
    }

    /// Compares with the bars of the design that one run can decide.
    pub(crate) fn judge(&mut self) {
        let mut bars: Vec<(&str, Option<f64>, Option<f64>)> = Vec::new();
        let round_trip = self.p50("floor: round trip, two processes, 100 B");
        let evaluate = self.p50("(a) 1+2, ready worker");
        bars.push(("(a) 1+2 ÷ two bare round trips, at most 3", ratio(evaluate, round_trip.map(|t| 2.0 * t)), Some(3.0)));
        let call = self.value("(b) one host call, sequential");
        bars.push(("(b) one host call ÷ two bare round trips, at most 2.5", ratio(call, round_trip.map(|t| 2.0 * t)), Some(2.5)));
        bars.push((
            "(b') one of 100 host calls at once, µs, at most 25",
            self.value("(b') one of 100 host calls in one Promise.all"),
            Some(25.0),
        ));
        bars.push(("(d) PSS of a ready worker, KiB, at most 512", self.value("(d) ready worker, PSS"), Some(512.0)));
        bars.push(("(d) brigd idle, RSS in KiB, at most 25600", self.value("(d) brigd idle, RSS"), Some(25600.0)));
        bars.push(("(e) fork to ready, µs, at most 300", self.p50("(e) fork: asked to ready (locked down, takes an order)"), Some(300.0)));
        bars.push(("(f) 1 MB there and back, µs, at most 10000", self.p50("(f) 1 MB through a host call and back"), Some(10_000.0)));
        bars.push(("(g) first evaluation after start, µs, at most 50000", self.p50("(g) start of brigd to first answer"), Some(50_000.0)));
        if let Some(monty) = self.p50("peer: monty, worker reused, 1+2") {
            bars.push(("(a) 1+2 ÷ monty's reused worker, at most 1", ratio(evaluate, Some(monty)), Some(1.0)));
        }
        if let Some(monty) = self.value("peer: monty, one host call") {
            bars.push(("(b) one host call ÷ monty's, at most 1", ratio(call, Some(monty)), Some(1.0)));
        }
        if let Some(monty) = self.value("peer: monty, evaluations/s, 8 threads") {
            bars.push((
                "(c) monty's evaluations/s ÷ ours with 8 clients, at most 1",
                ratio(Some(monty), self.value("(c) evaluations/s, 8 clients")),
                Some(1.0),
            ));
        }
        self.bars = bars.into_iter().filter_map(|(name, value, bar)| Some((name.to_owned(), value?, bar?))).collect();
    }

    pub(crate) fn print(&self) {
        println!("{:<66} {:>10} {:>10} {:>10}", "µs", "p50", "p99", "least");
        for (name, figures) in &self.rows {
            println!("{name:<66} {:>10.1} {:>10.1} {:>10.1}", figures.p50, figures.p99, figures.least);
        }
        println!();
        for (name, value, unit) in &self.counts {
            println!("{name:<66} {value:>10.1} {unit}");
        }
        println!();
        for (name, value, bar) in &self.bars {
            println!("{name:<66} {value:>9.2}  {}", if value <= bar { "met" } else { "MISSED" });
        }
    }

    pub(crate) fn json(&self) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|(name, f)| json!({"name": name, "p50Us": f.p50, "p99Us": f.p99, "leastUs": f.least, "runs": f.runs}))
            .collect();
        let counts: Vec<Value> =
            self.counts.iter().map(|(name, value, unit)| json!({"name": name, "value": value, "unit": unit})).collect();
        let bars: Vec<Value> =
            self.bars.iter().map(|(name, value, bar)| json!({"name": name, "value": value, "bar": bar, "met": value <= bar})).collect();
        json!({"rows": rows, "counts": counts, "bars": bars})
    }
}

fn ratio(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(a? / b?)
}
