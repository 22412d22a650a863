//! What people read.
//!
//! Owns the looks of values, errors, notes and host calls. Everything that a guest
//! chose goes through an escape first.

mod error;
pub(crate) mod excerpt;
mod value;

pub(crate) use error::{client_error, error_object, evaluation_error};
pub(crate) use value::value;

use super::terminal::safe_lines;
use brig::protocol::escape::escaped;
use brig::{CallRecord, CallState, EvaluateResult, Warning, WarningCode};
use comfy_table::{CellAlignment, Table};

/// Longest part of a guest's text in one line of a message, in bytes.
const TEXT_BYTES: usize = 4000;
/// Before every line but the first of a message.
const CONTINUATION: &str = "    ";

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
    lines.extend(result.warnings.iter().filter(|warning| !is_said_elsewhere(warning, result)).map(warning_line));
    lines.into_iter().map(|line| line + "\n").collect()
}

/// The warnings that are shown even when nobody wants to see notes: a program that lacks
/// what it was given fails in ways that nothing else explains.
pub(crate) fn undefined_collections(result: &EvaluateResult) -> String {
    let warnings = result.warnings.iter().filter(|warning| warning.code == WarningCode::CollectionNotDefined);
    warnings.map(|warning| warning_line(warning) + "\n").collect()
}

fn warning_line(warning: &Warning) -> String {
    let path = warning.path.as_deref().filter(|path| !mentions(&warning.message, path));
    let place = path.map(|path| format!(" at {}", line(path))).unwrap_or_default();
    format!("warning{place}: {}", block(&warning.message, CONTINUATION))
}

/// Whether a message has the path already, whole and not as the beginning of another.
fn mentions(message: &str, path: &str) -> bool {
    let ends = |rest: Option<&str>| rest.and_then(|rest| rest.chars().next()).is_none_or(|next| next == ':' || next.is_whitespace());
    !path.is_empty() && message.match_indices(path).any(|(index, found)| ends(message.get(index + found.len()..)))
}

/// Whether the error or the program's own standard error says the same.
fn is_said_elsewhere(warning: &Warning, result: &EvaluateResult) -> bool {
    match warning.code {
        WarningCode::LimitNear => {
            let limit = result.error.as_ref().and_then(|error| error.limit.as_ref());
            limit.is_some_and(|limit| warning.message.contains(&format!("the limit {limit} ")))
        }
        WarningCode::CollectionNotDefined => result.stderr.lines().any(|line| line == warning.message),
        _ => false,
    }
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

/// A message of several lines, bounded: what follows its first line is indented, so that
/// it can not be taken for a line of this command.
fn block(text: &str, indent: &str) -> String {
    let mut left = TEXT_BYTES;
    let mut shown = Vec::new();
    for part in text.trim_end().split('\n') {
        if left == 0 {
            shown.push("…".to_owned());
            break;
        }
        let part = escaped(part, left);
        left = left.saturating_sub(part.len() + 1);
        shown.push(part);
    }
    shown.join(&format!("\n{indent}"))
}

/// Several lines of a guest's text.
fn lines(text: &str) -> String {
    safe_lines(text)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
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

    fn with_warnings(warnings: Vec<Warning>) -> EvaluateResult {
        let error =
            brig::EvaluationError::new(brig::EvaluationCode::TimedOut, "timed_out", "30000 ms passed").with_limit("timeoutMs", 30_000);
        EvaluateResult { warnings, error: Some(error), ..serde_json::from_value(serde_json::json!({"evaluation": "ev_1", "outcome": "timed_out",
            "usage": {"wallMs": 1, "cpuMs": 1, "hostMs": 0, "approvalMs": 0, "peakMemoryBytes": 1, "hostCalls": 0}, "sandbox": {"level": "strong", "layers": []}})).unwrap() }
    }

    fn warning(code: WarningCode, message: &str, path: Option<&str>) -> Warning {
        Warning { code, message: message.to_owned(), path: path.map(str::to_owned) }
    }

    #[test]
    fn a_path_is_shown_once() {
        let shown = |message, path| warning_line(&warning(WarningCode::LossyValue, message, Some(path)));
        assert_eq!(
            shown("input of orders.list: $.customer: NaN became null", "$.customer"),
            "warning: input of orders.list: $.customer: NaN became null"
        );
        assert_eq!(shown("$.ab: NaN became null", "$.a"), "warning at $.a: $.ab: NaN became null");
    }

    #[test]
    fn a_limit_that_was_broken_is_not_also_told_to_be_near() {
        let near =
            |name: &str| warning(WarningCode::LimitNear, &format!("29000 ms were used of the limit {name} = 30000, over 80 % of it"), None);
        let text = notes(&with_warnings(vec![near("timeoutMs"), near("cpuMs")]));
        assert!(!text.contains("timeoutMs") && text.contains("cpuMs"), "{text}");
    }

    #[test]
    fn a_clash_that_the_programs_standard_error_tells_is_told_once() {
        let message = "the collection JSON was not defined: JSON is already a global";
        let mut result = with_warnings(vec![warning(WarningCode::CollectionNotDefined, message, None)]);
        assert!(notes(&result).contains(message));
        assert!(undefined_collections(&result).contains(message));
        result.stderr = format!("{message}\n");
        assert_eq!(notes(&result), "");
        assert!(undefined_collections(&result).contains(message), "without the standard error it is the only one");
    }

    #[test]
    fn lines_of_a_message_are_indented_and_escaped_and_bounded() {
        assert_eq!(block("a\n- b\u{1b}[2J\r\n", "  "), "a\n  - b\\u{1b}[2J");
        assert!(block(&"x\n".repeat(100_000), "  ").len() < 4 * TEXT_BYTES);
    }

    #[test]
    fn a_json_line_is_one_line() {
        let raw = serde_json::from_str::<Box<serde_json::value::RawValue>>("[\n1\n]").ok();
        assert_eq!(json_line(&raw), "[ 1 ]\n");
    }
}
