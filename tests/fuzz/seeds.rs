//! What the targets begin with: the golden lines of the client protocol, and messages of
//! each kind made by the crate's own builders.

use brig_protocol::client::{EvaluationError, Form, Language, Stream, Warning, WarningCode};
use brig_protocol::codes::{CallCode, EvaluationCode};
use brig_protocol::frame::PREFIX_BYTES;
use brig_protocol::limits::Limits;
use brig_protocol::worker::{self, CollectionTable, EvaluateOrder, Finished, HostFailure, Ready, WorkerUsage};
use serde_json::value::RawValue;
use std::path::Path;

/// The golden lines, without their LF.
pub(crate) fn golden() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocol/tests/golden");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    files.iter().map(|file| std::fs::read_to_string(file).unwrap().trim_end().as_bytes().to_vec()).collect()
}

/// Lines that the golden ones do not have.
pub(crate) fn lines() -> Vec<Vec<u8>> {
    let more = [
        r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"1","client":{"name":"c","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"check","params":{"source":"1+","form":"body","language":"typescript"}}"#,
        r#"{"jsonrpc":"2.0","id":-3,"method":"vm.create","params":{"hostFunctions":{"a":{"b":{}}},"limits":{"drainMs":0},"timeZone":"Asia/Tokyo"}}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"vm.dispose","params":{"vm":"vm_1"}}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"functions.call","params":{"function":"a.b","input":{"x":[1,2.5,null]},"timeoutMs":1}}"#,
        r#"{"jsonrpc":"2.0","method":"host.cancel","params":{"id":"c1","evaluation":"ev_1","call":1,"reason":"cancelled"}}"#,
        r#"{"jsonrpc":"2.0","method":"cancel","params":{"evaluation":"ev_1"}}"#,
        r#"{"jsonrpc":"2.0","id":6,"result":null}"#,
        r#"{"jsonrpc":"2.0","id":6,"error":{"code":-32601,"message":"no"}}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"x"}]"#,
        r#"{"jsonrpc":"2.0","id":8,"method":"evaluate","params":{"source":"1","permissions":{"hostFunction":{"default":"allow","rules":[{"mode":"deny","operations":["invoke"],"patterns":["orders.*","a:b"],"when":{"type":"object"},"why":"no"},{"mode":"ask","patterns":["**"]}]}},"collections":["a"],"vm":"v","timeZone":"UTC","idempotencyKey":"k","detach":true,"check":true,"trace":"00-0","output":{"capture":"none","stream":true}}}"#,
    ];
    golden().into_iter().chain(more.iter().map(|line| line.as_bytes().to_vec())).collect()
}

fn body(frame: Result<Vec<u8>, brig_protocol::frame::FrameFault>) -> Vec<u8> {
    frame.unwrap()[PREFIX_BYTES..].to_vec()
}

/// One body of each kind that a worker sends.
pub(crate) fn from_worker() -> Vec<Vec<u8>> {
    let value = RawValue::from_string(r#"{"refunded":1,"total":[2,null]}"#.to_owned()).unwrap();
    let usage = WorkerUsage { cpu_ms: 1.5, peak_memory_bytes: 4096 };
    let mut error = EvaluationError::new(EvaluationCode::GuestError, "TypeError", "x is not a function").with_limit("cpuMs", 5);
    error.line = Some(3);
    error.data = Some(serde_json::json!({"a": [1]}));
    error.errors = vec![serde_json::from_str(r#"{"name":"E","message":"m","code":"c","cause":{"name":"E","message":"n"}}"#).unwrap()];
    let warning = Warning { code: WarningCode::LossyValue, message: "a Date".into(), path: Some("$.a".into()) };
    vec![
        body(worker::ready_frame(&Ready { layers: vec!["seccomp".into(), "rlimits".into()] })),
        body(worker::host_call_frame(1, 0, r#"{"customer":"c1"}"#)),
        body(worker::host_call_frame(2, 1, "null")),
        body(worker::output_frame(Stream::Stdout, "a line\n", false)),
        body(worker::output_frame(Stream::Stderr, "more\n", true)),
        body(worker::warning_frame(&warning)),
        body(worker::finished_frame(1, &Finished { value: Some(&value), error: None, usage })),
        body(worker::finished_frame(1, &Finished { value: None, error: Some(error), usage })),
        body(worker::finished_frame(2, &Finished { value: None, error: None, usage })),
    ]
}

/// One body of each kind that the supervisor sends.
pub(crate) fn from_supervisor() -> Vec<Vec<u8>> {
    let inputs = RawValue::from_string(r#"{"customer":"c1"}"#.to_owned()).unwrap();
    let order = EvaluateOrder {
        source: "return 1 + \"2\"".into(),
        form: Form::Body,
        language: Language::Typescript,
        inputs: Some(&inputs),
        collections: vec![CollectionTable { name: "orders".into(), functions: vec!["list".into(), "refund".into()] }],
        limits: Limits::DEFAULT,
        time_zone: Some("Europe/Prague".into()),
        keep: true,
        parse_only: true,
    };
    let failure = HostFailure {
        code: CallCode::FunctionFailed,
        name: Some("RateLimitError".into()),
        message: "slow down".into(),
        function_code: Some("rate_limited".into()),
        data: Some(&inputs),
    };
    vec![
        body(worker::evaluate_frame(1, &order)),
        body(worker::host_result_frame(1, r#"[{"id":"o_1"}]"#)),
        body(worker::host_failure_frame(2, &failure)),
        body(worker::cancel_frame()),
        body(worker::rehearse_frame()),
    ]
}
