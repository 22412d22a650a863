//! One line of the client protocol, read as an envelope.

use crate::drive::{behaviour, fuzz};
use crate::same::assert_same;
use brig_protocol::rpc::{self, ID_BYTES, Id, Message};
use serde::Serialize;
use serde_json::value::RawValue;

/// Words of the client protocol.
pub(crate) const WORDS: &[&str] = &[
    "\"jsonrpc\":\"2.0\"",
    "\"id\":1",
    "\"id\":null",
    "\"id\":\"c1\"",
    "\"method\":\"evaluate\"",
    "\"params\":{}",
    "\"params\":null",
    "\"params\":[]",
    "\"result\":null",
    "\"error\":{\"code\":-32000,\"message\":\"m\"}",
    "\"error\":null",
    "\"data\":null",
    "null",
    "true",
    "false",
    "[]",
    "{}",
    "\"\"",
    ",",
    ":",
    "{",
    "}",
    "[",
    "]",
    "\"2.0\"",
    "\"allow\"",
    "\"deny\"",
    "\"ask\"",
    "\"rules\"",
    "\"default\"",
    "\"hostFunction\"",
    "\"patterns\"",
    "\"**\"",
    "\"invoke\"",
    "\"list\"",
    "\"source\"",
    "\"inputs\"",
    "\"limits\"",
    "\"timeoutMs\"",
    "\"form\":\"body\"",
    "\"value\"",
    "\"usage\"",
];

/// An answer with any error, not only with those that brig itself writes.
#[derive(Serialize)]
struct Failed<'a> {
    jsonrpc: &'static str,
    id: &'a Id,
    error: Failure<'a>,
}

#[derive(Serialize)]
struct Failure<'a> {
    code: i64,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
}

/// The line that says what `message` does.
fn written(message: &Message<'_>) -> String {
    let line = match message {
        Message::Request { id, method, params } => rpc::request(id, method, params),
        Message::Notification { method, params } => rpc::notification(method, params),
        Message::Response { id, outcome: Ok(result) } => rpc::result(id, result),
        Message::Response { id, outcome: Err(error) } => {
            let error = Failure { code: error.code, message: &error.message, data: error.data };
            serde_json::to_vec(&Failed { jsonrpc: "2.0", id, error }).unwrap()
        }
    };
    String::from_utf8(line).unwrap()
}

fn is_bounded(id: &Id) -> bool {
    match id {
        Id::Number(_) => true,
        Id::Text(text) => text.len() <= ID_BYTES,
    }
}

#[test]
fn a_line_is_refused_politely_or_understood_in_full() {
    fuzz(&crate::target("rpc", WORDS, 85), crate::seeds::lines(), |input| match rpc::read(input) {
        Ok(message) => {
            let again = written(&message);
            assert_same(std::str::from_utf8(input).unwrap(), &again);
            let id = match &message {
                Message::Request { id, .. } | Message::Response { id, .. } => Some(id),
                Message::Notification { .. } => None,
            };
            assert!(id.is_none_or(is_bounded));
            let reread = rpc::read(again.trim_end().as_bytes()).unwrap();
            assert_eq!(std::mem::discriminant(&reread), std::mem::discriminant(&message));
            let kind = match &message {
                Message::Request { method, params, .. } => format!("asks {} {}", method.len() > 8, params.is_some()),
                Message::Notification { method, params } => format!("tells {} {}", method.len() > 8, params.is_some()),
                Message::Response { outcome: Ok(_), .. } => "answers".to_owned(),
                Message::Response { outcome: Err(error), .. } => format!("fails {}", error.data.is_some()),
            };
            behaviour(&kind)
        }
        Err(fault) => {
            assert!(fault.message.len() <= 600, "{}", fault.message.len());
            assert!(!fault.message.contains(['\n', '\r', '\u{1b}', '\u{202e}', '\u{2028}']), "{:?}", fault.message);
            assert!(fault.id.as_ref().is_none_or(is_bounded));
            behaviour(&format!("{} {}", fault.id.is_some(), fault.message))
        }
    });
}
