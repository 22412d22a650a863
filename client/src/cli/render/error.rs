//! Errors for people: what was wrong, where, why, and what to do.

use super::excerpt::{Window, window};
use super::{CONTINUATION, block, line, lines};
use crate::cli::read::Text;
use annotate_snippets::{Group, Level, Renderer};
use brig::{Error, ErrorCause, EvaluationCode, EvaluationError};
use serde_json::{Value, json};

/// Most causes that are shown, one below another.
const CAUSES: usize = 10;
/// Most lines of a stack that are shown.
const STACK_LINES: usize = 10;

/// The error of an evaluation.
pub(crate) fn evaluation_error(error: &EvaluationError, program: &Text) -> String {
    let name = line(&program.name);
    let title = title(error);
    // The place stands below the whole message, so its further lines are put there by hand.
    let (first, further) = title.split_once('\n').map_or((title.as_str(), String::new()), |(first, rest)| (first, format!("{rest}\n")));
    let mut group = Group::with_title(Level::ERROR.primary_title(first).id(error.code.as_str()));
    let place = error.line.map(|line| (index(line), error.column.map_or(1, index)));
    let window = place.and_then(|(row, column)| window(&program.text, row, column));
    if let Some(window) = &window {
        group = group.element(window.snippet());
    }
    for note in notes(error) {
        group = group.element(Level::NOTE.message(note));
    }
    for help in advice(error) {
        group = group.element(Level::HELP.message(help));
    }
    let rendered = Renderer::styled().render(&[group]);
    match (place, rendered.split_once('\n')) {
        (Some((row, column)), Some((title, rest))) => {
            format!("{title}\n{further}{}--> {name}:{row}:{column}\n{rest}\n", indent(window.as_ref()))
        }
        (Some((row, column)), None) => format!("{rendered}\n{further} --> {name}:{row}:{column}\n"),
        (None, Some((title, rest))) => format!("{title}\n{further}{rest}\n"),
        (None, None) => format!("{rendered}\n{further}"),
    }
}

/// As far as the line numbers of the excerpt reach.
fn indent(window: Option<&Window>) -> String {
    " ".repeat(window.map_or(1, |window| window.last_line().to_string().len()))
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn title(error: &EvaluationError) -> String {
    let named = error.name.is_empty() || error.name == error.code.as_str();
    let text = if named { error.message.clone() } else { format!("{}: {}", error.name, error.message) };
    if text.is_empty() { error.code.meaning().to_owned() } else { block(&text, CONTINUATION) }
}

/// What is known beside the message.
fn notes(error: &EvaluationError) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(data) = &error.data {
        notes.push(format!("data: {}", line(&data.to_string())));
    }
    let mut cause = error.cause.as_deref();
    for _ in 0..CAUSES {
        let Some(this) = cause else { break };
        notes.push(format!("caused by {}", one_cause(this)));
        cause = this.cause.as_deref();
    }
    for (number, member) in error.errors.iter().take(CAUSES).enumerate() {
        notes.push(format!("error {} of {}: {}", number + 1, error.errors.len(), one_cause(member)));
    }
    // One frame says no more than the place does.
    let frames: Vec<String> = error.stack.iter().flat_map(|stack| frames(stack)).collect();
    if frames.len() > 1 {
        notes.push(frames.join("\n"));
    }
    notes
}

/// The frames of a stack, without the message that stands above them.
fn frames(stack: &str) -> impl Iterator<Item = String> {
    stack.lines().map(str::trim).filter(|frame| frame.starts_with("at ")).take(STACK_LINES).map(line)
}

fn one_cause(cause: &ErrorCause) -> String {
    let code = cause.code.as_ref().map(|code| format!(" [{}]", line(code))).unwrap_or_default();
    format!("{}{code}: {}", line(&cause.name), block(&cause.message, "  "))
}

fn advice(error: &EvaluationError) -> Vec<String> {
    let mut advice = Vec::new();
    if let Some(hint) = &error.hint {
        advice.push(block(hint, ""));
    }
    if let (Some(limit), Some(value)) = (&error.limit, error.limit_value) {
        let setting =
            error.setting.as_ref().map(|setting| format!(", raised by {} in brigd's configuration", line(setting))).unwrap_or_default();
        advice.push(format!("limit {} is {value}{setting}", line(limit)));
    }
    // What was cancelled, or ran out of time, does the same when it is run again.
    let in_vain = matches!(error.code, EvaluationCode::Cancelled | EvaluationCode::TimedOut | EvaluationCode::CpuLimit);
    if error.retryable && !in_vain {
        advice.push("the same program may succeed when it is run again".to_owned());
    }
    advice
}

/// Why there is no result, as `--json` prints it: what brigd sent, or a code of this
/// command's own with its sentence.
pub(crate) fn error_object(error: &Error) -> Value {
    let code = match error {
        Error::Refused(data) => return json!(data),
        Error::Rpc { code, message, data } => {
            return json!({"code": format!("rpc_{code}"), "message": message, "retryable": false, "data": data});
        }
        Error::Request(_) => "bad_request",
        Error::Connect { .. } => "unreachable",
        Error::Start(_) => "not_started",
        Error::ConnectionLost(_) => "connection_lost",
        Error::Protocol(_) => "protocol_error",
        _ => "unknown",
    };
    json!({"code": code, "message": error.to_string(), "retryable": error.retryable()})
}

/// Why there is no result.
pub(crate) fn client_error(error: &Error) -> String {
    let mut text = lines(&error.to_string());
    let mut add = |more: &str| {
        text.push_str("\n  ");
        text.push_str(more);
    };
    match error {
        Error::Refused(data) => {
            add("nothing ran");
            if let Some(hint) = &data.hint {
                add(&line(hint));
            }
            if let Some(limit) = &data.limit {
                let setting = data.setting.as_ref().map(|setting| format!(" (setting {})", line(setting))).unwrap_or_default();
                add(&format!("limit {}{setting}", line(limit)));
            }
            if let Some(time) = data.retry_after_ms {
                add(&format!("try again in {time} ms"));
            }
        }
        Error::Connect { listening: true, .. } => add("nothing ran"),
        Error::Connect { .. } => add("nothing ran; leave --socket out (and BRIG_SOCKET unset) to start a private brigd"),
        Error::ConnectionLost(_) => add("whether the program ran, and what it did, is unknown"),
        _ => {}
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use brig::protocol::rpc::ErrorData;
    use brig::{EvaluationCode, RequestCode};

    fn plain(error: &EvaluationError, text: &str) -> String {
        let program = Text { name: "program.js".to_owned(), text: text.to_owned() };
        let styled = evaluation_error(error, &program);
        anstream::adapter::strip_str(&styled).to_string()
    }

    #[test]
    fn an_error_is_shown_with_its_place_its_causes_and_what_to_do() {
        let mut error = EvaluationError::new(EvaluationCode::GuestError, "TypeError", "orders.lst is not a function");
        (error.line, error.column) = (Some(2), Some(14));
        error.hint = Some("did you mean orders.list?".to_owned());
        error.cause = Some(Box::new(ErrorCause {
            name: "HostError".to_owned(),
            message: "slow down".to_owned(),
            code: Some("rate_limited".to_owned()),
            data: None,
            cause: None,
        }));
        let text = plain(&error, "const a = 1;\nawait orders.lst();\n");
        for expected in [
            "error[guest_error]: TypeError: orders.lst is not a function",
            "program.js:2:14",
            "^^^",
            "caused by HostError [rate_limited]: slow down",
            "did you mean orders.list?",
        ] {
            assert!(text.contains(expected), "{expected} is not in\n{text}");
        }
    }

    #[test]
    fn nothing_that_a_guest_says_reaches_the_terminal_as_it_is() {
        let mut error = EvaluationError::new(EvaluationCode::GuestError, "E\u{1b}]0;x\u{7}", "m\u{9b}2J\u{202e}");
        error.stack = Some("at a\u{1b}\nat b\u{1b}".to_owned());
        error.data = Some(serde_json::json!({"x\u{202e}": "\u{9b}"}));
        error.hint = Some("h\u{1b}".to_owned());
        error.errors = vec![ErrorCause {
            name: "n\u{1b}".to_owned(),
            message: "m\u{1b}".to_owned(),
            code: Some("c\u{1b}".to_owned()),
            data: None,
            cause: None,
        }];
        let program = Text { name: "p\u{1b}".to_owned(), text: "\u{1b}[2J".to_owned() };
        let text = evaluation_error(&error, &program);
        // The only escape sequences left are the renderer's own colours.
        let colourless = anstream::adapter::strip_str(&text).to_string();
        for bad in ['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}'] {
            assert!(!colourless.contains(bad), "{colourless:?}");
        }
        assert!(
            text.split('\u{1b}').skip(1).all(|rest| rest.starts_with('[') && rest.split('m').next().is_some_and(|codes| codes.len() < 16))
        );
    }

    #[test]
    fn a_message_of_several_lines_is_shown_as_such_above_its_place() {
        let message = "orders.list: the input does not match its schema:\n- $ must have \"customer\" (string)\u{1b}";
        let mut error = EvaluationError::new(EvaluationCode::GuestError, "HostError", message);
        (error.line, error.column) = (Some(1), Some(7));
        error.cause =
            Some(Box::new(ErrorCause { name: "E".to_owned(), message: "one\ntwo".to_owned(), code: None, data: None, cause: None }));
        let text = plain(&error, "await orders.list({});\n");
        let expected = "error[guest_error]: HostError: orders.list: the input does not match its schema:\n    \
                        - $ must have \"customer\" (string)\\u{1b}\n --> program.js:1:7\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.lines().any(|line| line.starts_with("  ") && line.ends_with("  two")), "{text}");
        (error.line, error.column) = (None, None);
        assert!(plain(&error, "x").contains("schema:\n    - $ must have"), "{}", plain(&error, "x"));
        error.cause = None;
        assert!(plain(&error, "x").ends_with("\\u{1b}\n"), "{}", plain(&error, "x"));
    }

    #[test]
    fn nobody_is_told_to_run_again_what_ran_out_of_time() {
        for (code, told) in [(EvaluationCode::TimedOut, false), (EvaluationCode::CpuLimit, false), (EvaluationCode::WorkerCrashed, true)] {
            let text = plain(&EvaluationError::new(code, code.as_str(), "x"), "x");
            assert_eq!(text.contains("may succeed"), told, "{text}");
        }
    }

    #[test]
    fn a_limit_is_named_with_its_value_and_its_setting() {
        let error = EvaluationError::new(EvaluationCode::MemoryLimit, "memory_limit", "out of memory").with_limit("heapBytes", 1024);
        let text = plain(&error, "x");
        assert!(text.contains("limit heapBytes is 1024, raised by limits.heap_bytes"), "{text}");
    }

    #[test]
    fn a_refusal_says_that_nothing_ran_and_when_to_come_back() {
        let mut data = ErrorData::new(RequestCode::Overloaded, "all workers are busy");
        data.retry_after_ms = Some(50);
        let text = client_error(&Error::Refused(Box::new(data)));
        assert!(text.contains("overloaded") && text.contains("nothing ran") && text.contains("50 ms"), "{text}");
    }

    #[test]
    fn a_lost_connection_never_claims_that_nothing_ran() {
        let text = client_error(&Error::ConnectionLost("brigd closed it".to_owned()));
        assert!(text.contains("unknown") && !text.contains("nothing ran"), "{text}");
    }
}
