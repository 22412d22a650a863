//! How a program ended, as a model reads it.
//!
//! Owns the text and the structured form of a result: what went wrong, where, what to do
//! instead, and what was done that is not undone. Never leaves a cut unsaid.

use brig::protocol::client::ApprovalNote;
use brig::{CallRecord, CallState, Error, EvaluateResult, EvaluationError, Outcome};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

/// Longest text of a value or of a console stream, in bytes; the structured content has
/// all of it.
const TEXT_BYTES: usize = 64 * 1024;
/// Most calls that are listed in the text.
const CALLS: usize = 50;

/// The result of a program.
pub(super) fn result(result: &EvaluateResult) -> CallToolResult {
    let mut text = match &result.error {
        None => value_text(result),
        Some(error) => error_text(error, result),
    };
    for (name, stream) in [("console", &result.stdout), ("console (warnings and errors)", &result.stderr)] {
        if !stream.trim().is_empty() {
            section(&mut text, name, &cut(stream.trim_end()));
        }
    }
    for warning in &result.warnings {
        section(&mut text, "warning", &warning.message);
    }
    finished(text, structured(result), result.outcome != Outcome::Succeeded)
}

/// Why there is no result.
pub(super) fn failure(error: &Error) -> CallToolResult {
    let code = crate::cli::render::error_object(error);
    let text = crate::cli::render::client_error(error);
    finished(text, json!({ "error": code }), true)
}

/// A program that goes on once a person has said yes to a call of it.
pub(super) fn pending(evaluation: &str, asked: &[ApprovalNote]) -> CallToolResult {
    let name = |note: &ApprovalNote| format!("- {} ({}), for at most {} s", note.function, note.approval, note.expires_in_ms / 1000);
    let list: Vec<String> = asked.iter().map(name).collect();
    let text = format!(
        "pending: the program is not over. It has asked for a person's approval of\n{}\n\nIt goes on by itself once they decide \
         (brig approve); neither you nor your user can. Do not send the program again: it would run twice. Say that it waits, and \
         ask later how it went on with {{\"evaluation\": {evaluation:?}}} as the arguments of execute.",
        list.join("\n")
    );
    let approvals: Vec<Value> = asked
        .iter()
        .map(|note| json!({"function": note.function, "call": note.call, "approval": note.approval, "expiresInMs": note.expires_in_ms}))
        .collect();
    finished(text, json!({"state": "waiting_for_approval", "evaluation": evaluation, "approvals": approvals}), false)
}

/// A program that is not one of those that wait.
pub(super) fn not_kept(evaluation: &str) -> CallToolResult {
    let id = brig::protocol::escape::escaped(evaluation, 100);
    wrong(&format!(
        "no program {id:?} waits here: its end was told already, or it was cancelled, or brig mcp was started anew. If its effects \
         matter, find out what it did before you run anything again."
    ))
}

/// A tool that was not asked rightly, or whose answer is no program's.
pub(super) fn wrong(message: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(message)])
}

fn finished(text: String, structured: Value, is_error: bool) -> CallToolResult {
    let content = vec![ContentBlock::text(text)];
    let mut result = if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = Some(structured);
    result
}

fn value_text(result: &EvaluateResult) -> String {
    match &result.value {
        None => "The program gave no value: end it with an expression or `return`.".to_owned(),
        Some(value) => cut(value.get()),
    }
}

fn error_text(error: &EvaluationError, result: &EvaluateResult) -> String {
    let mut text = format!("{}: ", error.code.as_str());
    if !error.name.is_empty() && error.name != error.code.as_str() {
        text.push_str(&format!("{}: ", error.name));
    }
    text.push_str(if error.message.is_empty() { error.code.meaning() } else { &error.message });
    if let Some(line) = error.line {
        text.push_str(&format!("\nat line {line}, column {}", error.column.unwrap_or(1)));
    }
    if let Some(excerpt) = &error.excerpt {
        text.push_str(&format!("\n{excerpt}"));
    }
    if let Some(data) = &error.data {
        text.push_str(&format!("\ndata: {data}"));
    }
    let mut cause = error.cause.as_deref();
    while let Some(one) = cause {
        text.push_str(&format!("\ncaused by {}: {}", one.name, one.message));
        cause = one.cause.as_deref();
    }
    for one in error.errors.iter().take(10) {
        text.push_str(&format!("\n- {}: {}", one.name, one.message));
    }
    if let Some(hint) = &error.hint {
        section(&mut text, "hint", hint);
    }
    if let (Some(limit), Some(value)) = (&error.limit, error.limit_value) {
        section(&mut text, "limit", &format!("{limit} is {value}"));
    }
    if !result.calls.is_empty() {
        section(&mut text, "calls that were made, and are not undone", &calls(&result.calls));
    }
    text
}

fn calls(calls: &[CallRecord]) -> String {
    let line = |call: &CallRecord| {
        let code = call.code.map(|code| format!(" ({})", code.as_str())).unwrap_or_default();
        let state = match call.state {
            CallState::Refused => "refused, did not run",
            CallState::Failed => "failed",
            CallState::Completed => "completed",
            CallState::Unknown => "was started; whether it had its effect is unknown",
        };
        format!("{}. {} {state}{code}", call.call, call.function)
    };
    let mut lines: Vec<String> = calls.iter().take(CALLS).map(line).collect();
    if calls.len() > CALLS {
        lines.push(format!("… and {} more", calls.len() - CALLS));
    }
    format!("\n{}", lines.join("\n"))
}

fn section(text: &mut String, name: &str, body: &str) {
    let between = if body.contains('\n') && !body.starts_with('\n') { "\n" } else { " " };
    text.push_str(&format!("\n\n{name}:{between}{}", body.trim_end()));
}

/// A text of bounded length; a cut says so.
fn cut(text: &str) -> String {
    if text.len() <= TEXT_BYTES {
        return text.to_owned();
    }
    let mut end = TEXT_BYTES;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let shown = text.get(..end).unwrap_or_default();
    format!("{shown}\n… cut here: {end} of {} bytes are shown. Give back less: filter and sum up in the program.", text.len())
}

/// All of it that a program can use.
fn structured(result: &EvaluateResult) -> Value {
    let mut all = json!({ "outcome": result.outcome, "stdout": result.stdout, "stderr": result.stderr, "calls": result.calls });
    if let Some(members) = all.as_object_mut() {
        let value = result.value.as_ref().and_then(|value| serde_json::from_str::<Value>(value.get()).ok());
        members.extend(value.map(|value| ("value".to_owned(), value)));
        members.extend(result.error.as_ref().map(|error| ("error".to_owned(), json!(error))));
        if !result.warnings.is_empty() {
            members.insert("warnings".to_owned(), json!(result.warnings));
        }
    }
    all
}
