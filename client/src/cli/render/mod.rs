//! What people read.
//!
//! Owns the looks of values, errors, notes and host calls. Everything that a guest
//! chose goes through an escape first.

mod error;
pub(crate) mod excerpt;
mod value;

pub(crate) use error::{client_error, evaluation_error};
pub(crate) use value::value;

use super::terminal::safe_lines;
use brig::protocol::escape::escaped;
use brig::{CallRecord, CallState, EvaluateResult};
use comfy_table::{CellAlignment, Table};

/// Longest part of a guest's text in one line of a message, in bytes.
const TEXT_BYTES: usize = 4000;

/// A result object as one line.
pub(crate) fn json_line(result: &impl serde::Serialize) -> String {
    // Types of the protocol always serialise.
    let line = serde_json::to_string(result).unwrap_or_default();
    // In JSON text a line end is only ever white space between tokens.
    format!("{}\n", line.replace('\n', " "))
}

/// Warnings, and what was cut.
pub(crate) fn notes(result: &EvaluateResult) -> String {
    let mut lines = Vec::new();
    for (cut, stream) in [(result.stdout_truncated, "stdout"), (result.stderr_truncated, "stderr")] {
        if cut {
            lines.push(format!("note: the program's {stream} was cut at limit consoleBytes"));
        }
    }
    for warning in &result.warnings {
        let message = escaped(&warning.message, TEXT_BYTES);
        // Most messages begin with their path already.
        let path = warning.path.as_deref().filter(|path| !warning.message.starts_with(*path));
        let place = path.map(|path| format!(" at {}", escaped(path, TEXT_BYTES))).unwrap_or_default();
        lines.push(format!("warning{place}: {message}"));
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// The host calls, a line each.
pub(crate) fn calls(calls: &[CallRecord]) -> String {
    if calls.is_empty() {
        return "no host calls\n".to_owned();
    }
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(["call", "function", "state", "code", "ms", "in", "out"]);
    for call in calls {
        table.add_row([
            call.call.to_string(),
            escaped(&call.function, TEXT_BYTES),
            state(call.state).to_owned(),
            call.code.map(|code| code.to_string()).unwrap_or_default(),
            format!("{:.2}", call.duration_ms),
            call.input_bytes.to_string(),
            call.output_bytes.to_string(),
        ]);
    }
    for index in [0, 4, 5, 6] {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = table.lines().map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned() + "\n").collect::<String>();
    if calls.iter().any(|call| call.state == CallState::Unknown) {
        text.push_str("unknown: it was started, and nobody can say whether it had its effect\n");
    }
    text
}

const fn state(state: CallState) -> &'static str {
    match state {
        CallState::Refused => "refused",
        CallState::Failed => "failed",
        CallState::Completed => "completed",
        CallState::Unknown => "unknown",
    }
}

/// One line of a guest's text, bounded.
fn line(text: &str) -> String {
    escaped(text, TEXT_BYTES)
}

/// Several lines of a guest's text.
fn lines(text: &str) -> String {
    safe_lines(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brig::CallCode;

    #[test]
    fn a_table_of_calls_tells_the_state_of_each() {
        let call = |call, state, code| CallRecord {
            call,
            function: "orders.refund".to_owned(),
            state,
            code,
            duration_ms: 1.25,
            input_bytes: 10,
            output_bytes: 2,
        };
        let text = calls(&[call(1, CallState::Completed, None), call(2, CallState::Unknown, Some(CallCode::FunctionTimedOut))]);
        assert!(text.contains("orders.refund") && text.contains("completed") && text.contains("function_timed_out"), "{text}");
        assert!(text.contains("nobody can say"), "{text}");
    }

    #[test]
    fn a_json_line_is_one_line() {
        let raw = serde_json::from_str::<Box<serde_json::value::RawValue>>("[\n1\n]").ok();
        assert_eq!(json_line(&raw), "[ 1 ]\n");
    }
}
