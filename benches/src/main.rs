//! Side-by-side benchmarks: brig beside the floor of the same machine, in one run.
//!
//! Prints a table and, with `--json`, one JSON object. Figures are medians (and p99) of
//! at least 1,000 runs where a run is short; what counts is the ratio to the floor of
//! the same run. `--quick` takes fewer runs, to see that everything works. `--sizing` prints
//! the table of docs/operations.md instead.
//!
//! `cargo build --release --workspace && cargo run --release -p brig-benches`
#![expect(
    clippy::expect_used,
    clippy::cast_precision_loss,
    reason = "a benchmark stops at the first thing that is wrong, and prints rounded figures"
)]

mod floor;
mod line;
mod memory;
mod peers;
mod report;
mod sizing;
mod startup;

use acceptance::Brigd;
use report::Report;

/// How much is run.
#[derive(Clone, Copy, Debug)]
struct Size {
    /// Runs of something short.
    short: usize,
    /// Runs of something longer (a program with 100 host calls, 1 MB).
    long: usize,
    /// Evaluations of the throughput rows, per client.
    throughput: usize,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "echo") {
        return floor::echo_peer();
    }
    let quick = args.iter().any(|arg| arg == "--quick");
    if args.iter().any(|arg| arg == "--sizing") {
        return sizing::print(quick);
    }
    let size = if quick { Size { short: 100, long: 20, throughput: 100 } } else { Size { short: 2000, long: 300, throughput: 3000 } };
    let mut report = Report::default();

    floor::measure(size, &mut report);
    startup::steps(size, &mut report);
    line::first_evaluation(if quick { 3 } else { 20 }, &mut report);
    let brigd = Brigd::start();
    line::latency(&brigd, size, &mut report);
    line::host_calls(&brigd, size, &mut report);
    line::large_values(&brigd, size, &mut report);
    memory::idle(&brigd, &mut report);
    line::throughput(&brigd, size, &mut report);
    memory::after(&brigd, &mut report);
    peers::measure(&mut report);
    report.judge();

    if args.iter().any(|arg| arg == "--json") { println!("{}", report.json()) } else { report.print() }
}
