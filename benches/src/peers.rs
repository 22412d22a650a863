//! The peer that is closest in design, in the same run, when it is installed.
//!
//! `BRIG_BENCH_PYTHON` names a Python that has `pydantic-monty`; without it the peer's
//! rows are left out, and the report says nothing about the bars that need them.

use crate::report::{Figures, Report};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

pub(crate) fn measure(report: &mut Report) {
    let Some(python) = std::env::var_os("BRIG_BENCH_PYTHON") else {
        eprintln!("BRIG_BENCH_PYTHON is not set: no peer rows");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/monty.py");
    let output = Command::new(python).arg(script).output().expect("the peer's script runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let row: Value = serde_json::from_str(line).expect("a row of the peer");
        let name = row.get("name").and_then(Value::as_str).expect("a name");
        let number = |member: &str| row.get(member).and_then(Value::as_f64);
        if let (Some(p50), Some(p99), Some(least)) = (number("p50"), number("p99"), number("least")) {
            report.row(name, Figures { p50, p99, least, runs: 1000 });
        } else if let Some(value) = number("value") {
            report.count(name, value, if name.ends_with("threads") { "1/s" } else { "µs" });
        }
    }
}
