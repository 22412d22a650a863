//! What the supervisor tells a worker.

use crate::client::{Form, Language};
use crate::codes::CallCode;
use crate::frame::{self, FrameFault};
use crate::limits::Limits;
use crate::rpc::present;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// One collection of the table. A function's index is its place when all functions of
/// all collections are counted in order from 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectionTable<'a> {
    /// Name of the collection.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Names of its functions.
    #[serde(borrow)]
    pub functions: Vec<Cow<'a, str>>,
}

/// `evaluate`: a program and what it may use.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EvaluateOrder<'a> {
    /// The program as it was sent.
    #[serde(borrow)]
    pub source: Cow<'a, str>,
    /// How to read it.
    pub form: Form,
    /// In which language.
    pub language: Language,
    /// A JSON object; nothing is `{}`.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<&'a RawValue>,
    /// The table of host functions.
    #[serde(borrow, default)]
    pub collections: Vec<CollectionTable<'a>>,
    /// The limits that the worker holds itself to; the supervisor holds it to them too.
    pub limits: Limits,
    /// IANA time zone; nothing is UTC.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<Cow<'a, str>>,
    /// Whether the realm is kept for another evaluation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
    /// Parse only: the answer is a value of `null`, or a `syntax_error`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parse_only: bool,
}

impl<'a> EvaluateOrder<'a> {
    /// A program that is given nothing, under the usual limits.
    pub fn of(source: impl Into<Cow<'a, str>>) -> Self {
        Self {
            source: source.into(),
            form: Form::Auto,
            language: Language::Auto,
            inputs: None,
            collections: Vec::new(),
            limits: Limits::DEFAULT,
            time_zone: None,
            keep: false,
            parse_only: false,
        }
    }
}

/// Why a host call gave no output, as the guest sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostFailure<'a> {
    /// brig's code. The guest's `error.code` is `function_code` when there is one.
    pub code: CallCode,
    /// Name of the error's class at the host, when the function gave one.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Cow<'a, str>>,
    /// One sentence; no host stack, no path.
    #[serde(borrow)]
    pub message: Cow<'a, str>,
    /// The function's own code.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub function_code: Option<Cow<'a, str>>,
    /// The function's own data.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub data: Option<&'a RawValue>,
}

/// One message to a worker.
#[derive(Debug)]
pub enum FromSupervisor<'a> {
    /// Run this.
    Evaluate {
        /// Goes back in the answer.
        id: u64,
        /// What.
        order: Box<EvaluateOrder<'a>>,
    },
    /// A host call's output.
    HostResult {
        /// The id that the worker gave.
        id: u64,
        /// Raw JSON.
        output: &'a RawValue,
    },
    /// A host call's failure.
    HostFailure {
        /// The id that the worker gave.
        id: u64,
        /// Why.
        failure: HostFailure<'a>,
    },
    /// End politely now: answer with what there is. The kill follows.
    Cancel,
    /// Nobody waits for this worker: it is to run a throw-away program, so that what a first
    /// evaluation finds cold is warm. Of no effect once an evaluation came.
    Rehearse,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    #[serde(default)]
    id: Option<u64>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<Box<EvaluateOrder<'a>>>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<HostFailure<'a>>,
}

/// Reads one body from the supervisor.
///
/// # Errors
/// A sentence when it is none of the messages: the worker ends, it has lost its
/// supervisor.
pub fn read_from_supervisor(body: &[u8]) -> Result<FromSupervisor<'_>, String> {
    let text = std::str::from_utf8(body).map_err(|fault| fault.to_string())?;
    let envelope: Envelope<'_> = serde_json::from_str(text).map_err(|fault| fault.to_string())?;
    if envelope.jsonrpc != "2.0" || !crate::json::is_object(text) {
        return Err("not JSON-RPC 2.0".to_owned());
    }
    let none = || "none of the messages to a worker".to_owned();
    match envelope {
        Envelope { id: Some(id), method: Some(method), params: Some(order), result: None, error: None, .. } if method == "evaluate" => {
            Ok(FromSupervisor::Evaluate { id, order })
        }
        Envelope { id: None, method: Some(method), params: None, result: None, error: None, .. } => match &*method {
            "cancel" => Ok(FromSupervisor::Cancel),
            "rehearse" => Ok(FromSupervisor::Rehearse),
            _ => Err(none()),
        },
        Envelope { id: Some(id), method: None, params: None, result: Some(output), error: None, .. } => {
            Ok(FromSupervisor::HostResult { id, output })
        }
        Envelope { id: Some(id), method: None, params: None, result: None, error: Some(failure), .. } => {
            Ok(FromSupervisor::HostFailure { id, failure })
        }
        _ => Err(none()),
    }
}

/// The frame of `evaluate`.
///
/// # Errors
/// When the body is over [`frame::BODY_BYTES`].
pub fn evaluate_frame(id: u64, order: &EvaluateOrder<'_>) -> Result<Vec<u8>, FrameFault> {
    #[derive(Serialize)]
    struct Asked<'a> {
        jsonrpc: &'static str,
        id: u64,
        method: &'static str,
        params: &'a EvaluateOrder<'a>,
    }
    let message = Asked { jsonrpc: "2.0", id, method: "evaluate", params: order };
    frame::build(|out| drop(serde_json::to_writer(out, &message)))
}

/// The frame of a host call's output; `output` is JSON text that was checked.
///
/// # Errors
/// When the body is over [`frame::BODY_BYTES`].
pub fn host_result_frame(id: u64, output: &str) -> Result<Vec<u8>, FrameFault> {
    frame::build(|out| {
        out.reserve(output.len() + 64);
        out.extend_from_slice(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":").as_bytes());
        out.extend_from_slice(output.as_bytes());
        out.push(b'}');
    })
}

/// The frame of a host call's failure.
///
/// # Errors
/// When the body is over [`frame::BODY_BYTES`].
pub fn host_failure_frame(id: u64, failure: &HostFailure<'_>) -> Result<Vec<u8>, FrameFault> {
    #[derive(Serialize)]
    struct Failed<'a> {
        jsonrpc: &'static str,
        id: u64,
        error: &'a HostFailure<'a>,
    }
    let message = Failed { jsonrpc: "2.0", id, error: failure };
    frame::build(|out| drop(serde_json::to_writer(out, &message)))
}

/// The frame of `cancel`.
///
/// # Errors
/// Never in fact; the type is that of the other builders.
pub fn cancel_frame() -> Result<Vec<u8>, FrameFault> {
    notification_frame("cancel")
}

/// The frame of `rehearse`.
///
/// # Errors
/// Never in fact; the type is that of the other builders.
pub fn rehearse_frame() -> Result<Vec<u8>, FrameFault> {
    notification_frame("rehearse")
}

fn notification_frame(method: &str) -> Result<Vec<u8>, FrameFault> {
    frame::build(|out| out.extend_from_slice(format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#).as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(frame: Result<Vec<u8>, FrameFault>) -> Vec<u8> {
        frame.map(|frame| frame.get(frame::PREFIX_BYTES..).unwrap_or_default().to_vec()).unwrap_or_default()
    }

    #[test]
    fn an_order_reads_back_as_it_was_built() {
        let order = EvaluateOrder {
            collections: vec![CollectionTable { name: "orders".into(), functions: vec!["list".into()] }],
            ..EvaluateOrder::of("1+2")
        };
        let body = body(evaluate_frame(1, &order));
        let read_back = read_from_supervisor(&body);
        assert!(
            matches!(&read_back, Ok(FromSupervisor::Evaluate { id: 1, order }) if order.source == "1+2" && order.collections.len() == 1),
            "{read_back:?}"
        );
    }

    #[test]
    fn results_failures_and_cancels_read_back() {
        assert!(matches!(read_from_supervisor(&body(host_result_frame(2, "null"))), Ok(FromSupervisor::HostResult { id: 2, .. })));
        let failure = HostFailure {
            code: CallCode::FunctionFailed,
            name: None,
            message: "no".into(),
            function_code: Some("rate_limited".into()),
            data: None,
        };
        assert!(matches!(
            read_from_supervisor(&body(host_failure_frame(3, &failure))),
            Ok(FromSupervisor::HostFailure { id: 3, failure }) if failure.function_code.as_deref() == Some("rate_limited")
        ));
        assert!(matches!(read_from_supervisor(&body(cancel_frame())), Ok(FromSupervisor::Cancel)));
        assert!(matches!(read_from_supervisor(&body(rehearse_frame())), Ok(FromSupervisor::Rehearse)));
    }
}
