//! What a worker says. Every byte of it is a claim.

use super::{Kind, Violation};
use crate::client::{EvaluationError, Stream, Warning};
use crate::frame::{self, FrameFault};
use crate::json::{self, Bounds};
use crate::rpc::present;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// `ready`: the worker is locked down and waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ready {
    /// Names of the layers that the worker says are active. The supervisor compares
    /// them with what the nursery reported and what the kernel shows.
    pub layers: Vec<String>,
}

/// What a worker says its evaluation cost. Told to the caller, never used to decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkerUsage {
    /// CPU time, in milliseconds.
    pub cpu_ms: f64,
    /// Most heap at one time above the warm realm, in bytes.
    pub peak_memory_bytes: u64,
}

/// `finished`: the answer to `evaluate`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Finished<'a> {
    /// The program's value; absent when it gave `undefined` or failed.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub value: Option<&'a RawValue>,
    /// When it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<EvaluationError>,
    /// What it cost.
    pub usage: WorkerUsage,
}

/// One message, its kind known, its content still to be judged.
#[derive(Debug)]
pub enum FromWorker<'a> {
    /// See [`Ready`].
    Ready(Ready),
    /// `host.call`.
    HostCall {
        /// Given by the worker, in sequence.
        id: u64,
        /// Index in the table of this evaluation.
        function: u32,
        /// Raw JSON, bounded in depth and nodes.
        input: &'a RawValue,
    },
    /// `output`.
    Output {
        /// Which stream.
        stream: Stream,
        /// What the program printed.
        text: Cow<'a, str>,
        /// Whether the worker has cut the rest of this stream at its limit.
        truncated: bool,
    },
    /// `warning`.
    Warning(Warning),
    /// The answer to `evaluate`.
    Finished {
        /// Of which `evaluate`.
        id: u64,
        /// See [`Finished`].
        finished: Box<Finished<'a>>,
    },
}

impl FromWorker<'_> {
    /// What kind of message it is, for the phase table.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Ready(_) => Kind::Ready,
            Self::HostCall { .. } => Kind::HostCall,
            Self::Output { .. } => Kind::Output,
            Self::Warning(_) => Kind::Warning,
            Self::Finished { .. } => Kind::Finished,
        }
    }
}

/// All members that any message of a worker has, read in one pass over the bytes;
/// which of them must be there, and which must not, depends on the kind.
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
    params: Option<Params<'a>>,
    #[serde(borrow, default)]
    result: Option<Finished<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params<'a> {
    #[serde(default)]
    layers: Option<Vec<String>>,
    #[serde(default)]
    function: Option<u32>,
    #[serde(borrow, default, deserialize_with = "present")]
    input: Option<&'a RawValue>,
    #[serde(default)]
    stream: Option<Stream>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(default)]
    truncated: Option<bool>,
    #[serde(default)]
    warning: Option<Warning>,
}

/// Reads one body from a worker.
///
/// # Errors
/// [`Violation::Malformed`] for anything that is not exactly one of the messages,
/// within the bounds of [`Bounds::ENVELOPE`].
pub fn read_from_worker(body: &[u8]) -> Result<FromWorker<'_>, Violation> {
    let text = std::str::from_utf8(body).map_err(|_| malformed("not UTF-8"))?;
    let counts = json::count(body, Bounds::ENVELOPE).map_err(|fault| Violation::Malformed(fault.to_string()))?;
    if counts.lone_surrogate {
        return Err(malformed("a lone surrogate"));
    }
    // A payload goes on to a client as it is, where a line feed ends the message: it
    // would let a worker write a message of its own. No JSON text that is made by a
    // worker as it should be has one outside of an escape.
    if body.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        return Err(malformed("a raw line break"));
    }
    let envelope: Envelope<'_> =
        serde_json::from_str(text).map_err(|fault| Violation::Malformed(crate::escape::escaped(&fault.to_string(), 200)))?;
    if !json::is_object(text) {
        return Err(malformed("not an object"));
    }
    if envelope.jsonrpc != "2.0" {
        return Err(malformed("not JSON-RPC 2.0"));
    }
    classify(envelope)
}

fn malformed(what: &str) -> Violation {
    Violation::Malformed(what.to_owned())
}

fn classify(envelope: Envelope<'_>) -> Result<FromWorker<'_>, Violation> {
    match envelope {
        Envelope { id: Some(id), method: None, params: None, result: Some(finished), .. } => {
            Ok(FromWorker::Finished { id, finished: Box::new(finished) })
        }
        Envelope { id, method: Some(method), params: Some(params), result: None, .. } => by_method(id, &method, params),
        _ => Err(malformed("neither a message nor an answer")),
    }
}

fn by_method<'a>(id: Option<u64>, method: &str, params: Params<'a>) -> Result<FromWorker<'a>, Violation> {
    let Params { layers, function, input, stream, text, truncated, warning } = params;
    match (method, id, layers, function, input, stream, text, truncated, warning) {
        ("host.call", Some(id), None, Some(function), Some(input), None, None, None, None) => {
            Ok(FromWorker::HostCall { id, function, input })
        }
        ("output", None, None, None, None, Some(stream), Some(text), truncated, None) => {
            Ok(FromWorker::Output { stream, text, truncated: truncated.unwrap_or(false) })
        }
        ("warning", None, None, None, None, None, None, None, Some(warning)) => Ok(FromWorker::Warning(warning)),
        ("ready", None, Some(layers), None, None, None, None, None, None) => Ok(FromWorker::Ready(Ready { layers })),
        _ => Err(malformed("the members do not fit the method")),
    }
}

#[derive(Serialize)]
struct Told<'a, P: Serialize> {
    jsonrpc: &'static str,
    method: &'a str,
    params: P,
}

#[derive(Serialize)]
struct Answered<'a> {
    jsonrpc: &'static str,
    id: u64,
    result: &'a Finished<'a>,
}

fn told(method: &str, params: impl Serialize) -> Result<Vec<u8>, FrameFault> {
    let message = Told { jsonrpc: "2.0", method, params };
    // A type of this crate always serialises; were that ever wrong, the empty frame
    // is refused right here.
    frame::build(|out| drop(serde_json::to_writer(out, &message)))
}

/// The frame of `ready`.
///
/// # Errors
/// When the body is over [`frame::BODY_BYTES`].
pub fn ready_frame(ready: &Ready) -> Result<Vec<u8>, FrameFault> {
    told("ready", ready)
}

/// The frame of `host.call`; `input` is JSON text made by the worker.
///
/// # Errors
/// When the body is over [`frame::BODY_BYTES`].
pub fn host_call_frame(id: u64, function: u32, input: &str) -> Result<Vec<u8>, FrameFault> {
    frame::build(|out| {
        out.reserve(input.len() + 96);
        let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"host.call\",\"params\":{{\"function\":{function},\"input\":");
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(input.as_bytes());
        out.extend_from_slice(b"}}");
    })
}

/// The frame of `output`.
///
/// # Errors
/// When the body is over [`frame::BODY_BYTES`].
pub fn output_frame(stream: Stream, text: &str, truncated: bool) -> Result<Vec<u8>, FrameFault> {
    #[derive(Serialize)]
    struct Output<'a> {
        stream: Stream,
        text: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        truncated: bool,
    }
    told("output", Output { stream, text, truncated })
}

/// The frame of `warning`.
///
/// # Errors
/// When the body is over [`frame::BODY_BYTES`].
pub fn warning_frame(warning: &Warning) -> Result<Vec<u8>, FrameFault> {
    #[derive(Serialize)]
    struct Wrapped<'a> {
        warning: &'a Warning,
    }
    told("warning", Wrapped { warning })
}

/// The frame of the answer to `evaluate`.
///
/// # Errors
/// When the body is over [`frame::BODY_BYTES`].
pub fn finished_frame(id: u64, finished: &Finished<'_>) -> Result<Vec<u8>, FrameFault> {
    let answer = Answered { jsonrpc: "2.0", id, result: finished };
    frame::build(|out| drop(serde_json::to_writer(out, &answer)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn body(frame: Result<Vec<u8>, FrameFault>) -> Vec<u8> {
        frame.map(|frame| frame.get(frame::PREFIX_BYTES..).unwrap_or_default().to_vec()).unwrap_or_default()
    }

    #[test]
    fn a_host_call_reads_back_as_it_was_built() {
        let body = body(host_call_frame(3, 1, "{\"a\":[1,2]}"));
        assert!(
            matches!(read_from_worker(&body), Ok(FromWorker::HostCall { id: 3, function: 1, input }) if input.get() == "{\"a\":[1,2]}")
        );
    }

    #[test]
    fn an_input_can_not_reach_out_of_its_place() {
        let body = body(host_call_frame(3, 1, "1},\"params\":{\"function\":9,\"input\":2"));
        assert!(read_from_worker(&body).is_err());
    }

    #[test]
    fn a_payload_can_not_end_the_line_that_carries_it_to_a_client() {
        for text in [
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"value\":[1,\n2],\"usage\":{\"cpuMs\":0,\"peakMemoryBytes\":0}}}",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"host.call\",\"params\":{\"function\":0,\"input\":{\r}}}",
        ] {
            assert!(read_from_worker(text.as_bytes()).is_err(), "{text}");
            let harmless = text.replace(['\n', '\r'], " ");
            assert!(read_from_worker(harmless.as_bytes()).is_ok(), "{harmless}");
        }
    }

    #[test]
    fn members_that_do_not_fit_the_method_are_a_breach() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"host.call","params":{"function":0}}"#,
            r#"{"jsonrpc":"2.0","method":"host.call","params":{"function":0,"input":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"host.call","params":{"function":0,"input":{},"text":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"host.call","params":{"function":-1,"input":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"host.call","params":{"function":0,"function":0,"input":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"host.call","params":{"function":0,"input":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1.0,"method":"host.call","params":{"function":0,"input":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"evaluate","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"usage":{"cpuMs":0,"peakMemoryBytes":0}},"method":"output"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"usage":{"cpuMs":0,"peakMemoryBytes":0},"principal":"root"}}"#,
            r#"{"jsonrpc":"2.0","method":"output","params":{"stream":"stdout","text":"\ud800"}}"#,
            r#"[{"jsonrpc":"2.0","method":"ready","params":{"layers":[]}}]"#,
            r#"["2.0",null,"ready",{"layers":[]},null]"#,
            "null",
        ] {
            assert!(read_from_worker(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_finished_value_of_null_is_a_value() {
        let body = br#"{"jsonrpc":"2.0","id":1,"result":{"value":null,"usage":{"cpuMs":0.5,"peakMemoryBytes":1}}}"#;
        let message = read_from_worker(body);
        assert!(matches!(&message, Ok(FromWorker::Finished { finished, .. }) if finished.value.is_some()), "{message:?}");
    }

    proptest! {
        #[test]
        fn no_body_makes_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            drop(read_from_worker(&bytes));
        }
    }
}
