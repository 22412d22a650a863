//! Callbacks: host functions that a client declared and runs itself.
//!
//! Owns the seam to the connection ([`Callback`]) and what of a client's failure may
//! reach a guest: its name, message, code and data, and nothing that looks like a
//! stack or a path of one. Never runs a callback without a call that went all the
//! way through [`super::call`].

use brig_protocol::client::{ApprovalNote, CallFailure};
use brig_protocol::codes::CallCode;
use brig_protocol::worker::HostFailure;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::time::Duration;

/// Longest message of a failure that a guest gets, in bytes.
const MESSAGE_BYTES: usize = 2_000;
/// Longest name or code of a failure, in bytes.
const WORD_BYTES: usize = 100;
/// Largest data of a failure, in bytes of JSON text.
const DATA_BYTES: usize = 64 * 1024;
/// Keys whose values are stacks in one host language or another, folded.
const STACK_KEYS: &[&str] = &["stack", "stacktrace", "traceback", "hoststack", "backtrace", "exceptionstack"];

/// One call to deliver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery<'a> {
    /// Of which evaluation.
    pub(crate) evaluation: &'a str,
    /// Its number within the evaluation.
    pub(crate) call: u64,
    /// `collection.function`, as declared.
    pub(crate) function: &'a str,
    /// A valid input, as the guest's JSON text.
    pub(crate) input: &'a RawValue,
    /// How long the answer is awaited.
    pub(crate) deadline: Duration,
    /// The same for every delivery of this call.
    pub(crate) idempotency_key: &'a str,
    /// The vm with which the function was declared; none: with the evaluation.
    pub(crate) vm: Option<&'a str>,
}

/// What a client, or a configured function, answered.
#[derive(Debug)]
pub(crate) enum CallAnswer {
    /// The function's output, as raw JSON text.
    Output(Box<RawValue>),
    /// The function failed: the error object of the client's answer.
    Failed {
        /// Its message.
        message: String,
        /// Its data, still raw.
        data: Option<Box<RawValue>>,
    },
    /// The client went away.
    Gone,
    /// It ran to its end, and what it gave can not be passed on.
    Spoilt {
        /// In which way.
        code: CallCode,
        /// A half sentence that follows "the output".
        fault: String,
        /// How much it gave.
        bytes: usize,
    },
    /// It began, and ended in a way that says nothing of what it did: a half sentence that
    /// follows its name.
    Crashed(String),
}

/// The connection of the client that declared the functions.
pub(crate) trait Callback: Send + Sync {
    /// Sends `host.call` and gives the client's answer. The caller keeps the deadline
    /// and may drop the future at any time; a late answer is then nobody's.
    fn host_call(&self, delivery: Delivery<'_>) -> impl Future<Output = CallAnswer> + Send;

    /// Tells whoever asked for the evaluation that a call waits for a person. Never waits.
    fn parked(&self, note: &ApprovalNote);

    /// Tells the client that nobody awaits a call any more. Never waits.
    fn host_cancel(&self, evaluation: &str, call: u64, reason: CallCode);
}

/// What a guest gets of a client's failure.
#[derive(Debug)]
pub(crate) struct CleanFailure {
    name: Option<String>,
    message: String,
    function_code: Option<String>,
    data: Option<Box<RawValue>>,
}

impl CleanFailure {
    /// Takes what may pass and leaves the rest.
    pub(crate) fn of(message: &str, data: Option<&RawValue>) -> Self {
        // Data of another shape than ours is not an error: it just says nothing.
        let said: CallFailure<'_> = data.and_then(|data| serde_json::from_str(data.get()).ok()).unwrap_or_default();
        let message = without_stack(message);
        let message = if message.is_empty() { "the function failed and gave no reason".to_owned() } else { cut(message, MESSAGE_BYTES) };
        let word = |text: String| Some(cut(first_line(&text), WORD_BYTES)).filter(|word| !word.is_empty());
        Self { name: said.name.and_then(word), message, function_code: said.code.and_then(word), data: said.data.and_then(clean_data) }
    }

    /// The failure as the worker is told.
    pub(crate) fn as_host_failure(&self) -> HostFailure<'_> {
        HostFailure {
            code: CallCode::FunctionFailed,
            name: self.name.as_deref().map(Cow::Borrowed),
            message: Cow::Borrowed(&self.message),
            function_code: self.function_code.as_deref().map(Cow::Borrowed),
            data: self.data.as_deref(),
        }
    }
}

/// The part of a message before anything that looks like a stack.
fn without_stack(message: &str) -> &str {
    let mut end = 0usize;
    for line in message.split_inclusive('\n') {
        if is_frame(line.trim_end()) {
            break;
        }
        end += line.len();
    }
    message.get(..end).unwrap_or_default().trim_end()
}

/// Whether a line is a stack frame, or opens a stack, of a common host language.
fn is_frame(line: &str) -> bool {
    let bare = line.trim_start();
    let indented = bare.len() < line.len();
    (indented && bare.starts_with("at ") && (bare.contains(':') || bare.contains('(')))
        || bare.starts_with("Traceback (most recent call last)")
        || bare.starts_with("Traceback: ")
        || (bare.starts_with("File \"") && bare.contains(", line "))
        || bare.starts_with("stack backtrace:")
        || bare.starts_with("goroutine ") && bare.ends_with("]:")
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Cut at a character, with a mark.
fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// The data as it is, or without its stacks, or nothing when it is out of bounds.
fn clean_data(data: &RawValue) -> Option<Box<RawValue>> {
    let text = data.get();
    if text.len() > DATA_BYTES || super::schema::payload::measure(text).is_err() {
        return None;
    }
    let mut value = super::schema::payload::tree(text).ok()?;
    if strip(&mut value) { serde_json::value::to_raw_value(&value).ok() } else { Some(data.to_owned()) }
}

/// Takes stacks out; whether there were any.
fn strip(value: &mut Value) -> bool {
    match value {
        Value::Object(members) => {
            let before = members.len();
            members.retain(|key, _| !is_stack_key(key));
            let mut changed = members.len() < before;
            for member in members.values_mut() {
                changed |= strip(member);
            }
            changed
        }
        Value::Array(items) => {
            let mut changed = false;
            for item in items {
                changed |= strip(item);
            }
            changed
        }
        Value::String(text) if text.contains('\n') || text.starts_with("Traceback") => {
            let clean = without_stack(text).to_owned();
            let changed = clean.len() < text.trim_end().len();
            if changed {
                *text = clean;
            }
            changed
        }
        _ => false,
    }
}

fn is_stack_key(key: &str) -> bool {
    let folded: String = key.chars().filter(|character| !matches!(character, '_' | '-')).flat_map(char::to_lowercase).collect();
    STACK_KEYS.contains(&folded.as_str())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    fn failure(message: &str, data: &Value) -> CleanFailure {
        CleanFailure::of(message, Some(&serde_json::value::to_raw_value(data).unwrap()))
    }

    #[test]
    fn name_message_code_and_data_pass_as_they_are() {
        let clean = failure("slow down", &json!({"name": "RateLimitError", "code": "rate_limited", "data": {"retryAfter": 2}}));
        let told = clean.as_host_failure();
        assert_eq!(told.name.as_deref(), Some("RateLimitError"));
        assert_eq!(told.message, "slow down");
        assert_eq!(told.function_code.as_deref(), Some("rate_limited"));
        assert_eq!(told.data.map(RawValue::get), Some(r#"{"retryAfter":2}"#));
    }

    #[test]
    fn nothing_that_looks_like_a_host_stack_passes() {
        for message in [
            "query failed\n    at Db.query (/srv/app/db.js:10:5)\n    at main",
            "query failed\nTraceback (most recent call last):\n  File \"/srv/app/db.py\", line 42, in q",
            "query failed\n  File \"/srv/app/db.py\", line 42",
            "query failed\n\nstack backtrace:\n   0: db::query\n             at /srv/src/db.rs:3",
            "query failed\ngoroutine 1 [running]:\nmain.main()\n\t/srv/app/main.go:4",
        ] {
            let clean = failure(
                message,
                &json!({"name": "Error\n    at /srv/x.js:1", "stack": "/srv/a", "hostStack": "/srv/b", "data": {
                    "stack": "Error\n at /srv/x.js:1:1", "deep": [{"stack_trace": ["/srv"], "note": "oops\n    at f (/srv/y.js:1:1)"}], "id": 9_007_199_254_740_993_u64}}),
            );
            let told = clean.as_host_failure();
            assert_eq!(told.message, "query failed");
            let wire = serde_json::to_string(&told).unwrap();
            assert!(!wire.contains("/srv"), "{wire}");
            assert!(wire.contains("9007199254740993") && wire.contains("oops"), "{wire}");
        }
    }

    #[test]
    fn a_message_of_many_ordinary_lines_stays() {
        let message = "two problems:\n  at least one item is needed\n  look at the docs";
        assert_eq!(failure(message, &json!({})).as_host_failure().message, message);
    }

    #[test]
    fn everything_about_a_failure_is_bounded() {
        let clean =
            failure(&"é".repeat(5_000), &json!({"name": "n".repeat(1_000), "code": "c".repeat(1_000), "data": "d".repeat(100_000)}));
        let told = clean.as_host_failure();
        assert!(told.message.len() <= MESSAGE_BYTES + 3 && told.message.ends_with('…'));
        assert!(told.name.unwrap().len() <= WORD_BYTES + 3);
        assert!(told.data.is_none());
    }

    #[test]
    fn data_of_another_shape_says_nothing_and_breaks_nothing() {
        for data in [json!(7), json!(["x"]), json!({"name": 5}), json!(null)] {
            assert_eq!(failure("no", &data).as_host_failure().message, "no");
        }
        assert!(!CleanFailure::of("", None).as_host_failure().message.is_empty());
    }
}
