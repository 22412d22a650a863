//! A client at one end, played workers at the other: what a hostile one of either kind
//! can not do.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod endings;
mod vms;

use super::serve;
use crate::config::Config;
use crate::host::configured::Catalogue;
use crate::listener::Peer;
use crate::pool::tests::{Speak, Spoken, played};
use crate::records::Records;
use crate::service::{Phase, Service};
use brig_protocol::client::{Stream, WarningCode};
use brig_protocol::frame::build;
use brig_protocol::worker;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

mod judged;

const PATIENCE: Duration = Duration::from_secs(20);

/// A worker that does what the source of its program says.
fn obedient(heard: &str) -> Spoken {
    let finished = |value: &str| framed(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"value":{value},"usage":{}}}}}"#, USAGE));
    let call = |id: u64, function: u32| worker::host_call_frame(id, function, "{}").unwrap();
    let said = |name: &str| heard.contains(&format!("\"source\":\"{name}\""));
    Spoken::Bytes(match () {
        () if said("three") => finished("3"),
        () if said("prints") => [worker::output_frame(Stream::Stdout, "hi\n", false).unwrap(), finished("1")].concat(),
        () if said("floods") => {
            let text = "x".repeat(100_000);
            (0..9).flat_map(|_| worker::output_frame(Stream::Stdout, &text, false).unwrap()).collect()
        }
        () if said("warns") => {
            let warning = brig_protocol::client::Warning { code: WarningCode::LossyValue, message: "m".to_owned(), path: None };
            let frames: Vec<u8> = (0..300).flat_map(|_| worker::warning_frame(&warning).unwrap()).collect();
            [frames, finished("1")].concat()
        }
        () if said("calls") => call(1, 0),
        () if said("calls twice") => [call(1, 0), call(2, 0)].concat(),
        () if said("leaves a call") => [call(1, 0), finished("1")].concat(),
        () if said("skips an id") => call(2, 0),
        () if said("calls nobody") => call(1, 7),
        () if said("answers another") => framed(&format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"value":1,"usage":{USAGE}}}}}"#)),
        () if said("says ready again") => worker::ready_frame(&worker::Ready::default()).unwrap(),
        () if said("both") => framed(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"value":1,"error":{{"code":"guest_error","name":"E","message":"m"}},"usage":{USAGE}}}}}"#
        )),
        () if said("claims") => framed(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"error":{{"code":"revoked","name":"E","message":"m"}},"usage":{USAGE}}}}}"#
        )),
        () if said("a line of its own") => {
            finished("[1,\\n{\"jsonrpc\":\"2.0\"}]").iter().map(|b| if *b == b'\\' { b' ' } else { *b }).collect()
        }
        () if said("a line feed") => finished("[1,\n2]"),
        () if said("too large") => finished(&format!("\"{}\"", "x".repeat(2_000))),
        () if said("large") => finished(&format!("\"{}\"", "x".repeat(3_000_000))),
        () if said("garbage") => framed("nonsense"),
        () if said("a huge length") => vec![255, 255, 255, 255],
        () if said("two results") => [finished("1"), finished("2")].concat(),
        () if said("out of memory") => return Spoken::Exit(worker::output_frame(Stream::Stdout, "before\n", false).unwrap(), 86),
        () if said("panics") => return Spoken::Exit(Vec::new(), 87),
        () if said("forbidden") => return Spoken::Signal(31),
        // `stuck`, a cancel, a reply to a call.
        () if heard.contains("\"result\":[1]") => finished("\"called\""),
        () if heard.contains("\"error\":") => finished("\"refused\""),
        () => Vec::new(),
    })
}

const USAGE: &str = r#"{"cpuMs":0.5,"peakMemoryBytes":1}"#;

fn framed(body: &str) -> Vec<u8> {
    build(|out| out.extend_from_slice(body.as_bytes())).unwrap()
}

struct Client {
    lines: BufReader<UnixStream>,
    served: JoinHandle<()>,
    service: Arc<Service>,
}

async fn service_of(speak: Speak, config: Config) -> Arc<Service> {
    let arguments = <crate::settings::Arguments as clap::Parser>::parse_from(["brigd"]);
    let source = crate::reload::Source::new(Arc::new(arguments));
    let journal = crate::settings::journal(&config).unwrap().1;
    let counters = crate::settings::counters(&journal).unwrap();
    Service::new(config, played(speak).await, Records::to_log(), source, Catalogue::default(), (journal, counters)).unwrap()
}

async fn client() -> Client {
    client_with(Config::default()).await
}

async fn client_with(config: Config) -> Client {
    connect(service_of(obedient, config).await, rustix::process::geteuid().as_raw())
}

fn connect(service: Arc<Service>, uid: u32) -> Client {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let door = service.doors.enter(uid).unwrap();
    let served = tokio::spawn(serve(ours, Peer { uid, gid: 0, pid: None }, Arc::clone(&service), door));
    Client { lines: BufReader::new(theirs), served, service }
}

impl Client {
    async fn send(&mut self, text: &str) {
        self.lines.get_mut().write_all(format!("{text}\n").as_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        let mut line = String::new();
        tokio::time::timeout(PATIENCE, self.lines.read_line(&mut line)).await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap_or(Value::Null)
    }

    async fn ask(&mut self, text: &str) -> Value {
        self.send(text).await;
        self.receive().await
    }

    async fn evaluate(&mut self, source: &str, more: Value) -> Value {
        let mut params = json!({"source": source});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "evaluate", "params": params}).to_string()).await
    }

    async fn ended(self) {
        drop(self.lines);
        tokio::time::timeout(PATIENCE, self.served).await.unwrap().unwrap();
        assert_eq!(self.service.admission.counts(), (0, 0));
    }
}

fn orders() -> Value {
    json!({"hostFunctions": {"orders": {"list": {}}}})
}

fn code(answer: &Value) -> &str {
    answer["result"]["error"]["code"].as_str().or_else(|| answer["error"]["data"]["code"].as_str()).unwrap_or("none")
}

#[tokio::test]
async fn a_program_is_answered_with_its_value() {
    let mut client = client().await;
    let answer = client.evaluate("three", json!({})).await;
    assert_eq!(answer["result"]["value"], 3, "{answer}");
    assert_eq!(answer["result"]["outcome"], "succeeded");
    assert!(answer["result"]["evaluation"].as_str().unwrap().starts_with("ev_"));
    client.ended().await;
}

#[tokio::test]
async fn whatever_a_worker_may_not_say_ends_it_and_is_one_clear_answer() {
    let mut client = client().await;
    for source in [
        "skips an id",
        "calls nobody",
        "answers another",
        "says ready again",
        "both",
        "claims",
        "a line feed",
        "garbage",
        "a huge length",
        "floods",
    ] {
        let answer = client.evaluate(source, json!({"limits": {"consoleBytes": 1000}})).await;
        assert_eq!(code(&answer), "protocol_violation", "{source}: {answer}");
        assert_eq!(answer["result"]["outcome"], "failed");
    }
    let answer = client.evaluate("too large", json!({"limits": {"resultBytes": 1000}})).await;
    assert_eq!(code(&answer), "protocol_violation");
    assert_eq!(client.evaluate("three", json!({})).await["result"]["value"], 3);
    assert_eq!(client.service.metrics.breaches.get(), 11);
    client.ended().await;
}

#[tokio::test]
async fn the_first_result_stands_and_what_follows_reaches_nobody() {
    let mut client = client().await;
    let answer = client.evaluate("two results", json!({})).await;
    assert_eq!(answer["result"]["value"], 1, "{answer}");
    assert_eq!(client.evaluate("three", json!({})).await["result"]["value"], 3);
    client.ended().await;
}

#[tokio::test]
async fn each_death_of_a_worker_has_its_code_and_keeps_what_was_printed() {
    let mut client = client().await;
    let answer = client.evaluate("out of memory", json!({})).await;
    assert_eq!(code(&answer), "memory_limit", "{answer}");
    assert_eq!(answer["result"]["error"]["setting"], "limits.heap_bytes");
    assert_eq!(answer["result"]["stdout"], "before\n");
    assert_eq!(code(&client.evaluate("panics", json!({})).await), "worker_crashed");
    let answer = client.evaluate("forbidden", json!({})).await;
    assert!(answer["result"]["error"]["message"].as_str().unwrap().contains("SIGSYS"), "{answer}");
    client.ended().await;
}

#[tokio::test]
async fn a_worker_that_never_answers_is_killed_at_the_deadline_with_its_output_kept() {
    let mut client = client().await;
    let answer = client.evaluate("stuck", json!({"timeoutMs": 30})).await;
    assert_eq!((code(&answer), &answer["result"]["outcome"]), ("timed_out", &json!("timed_out")));
    assert_eq!(client.evaluate("three", json!({})).await["result"]["value"], 3);
    client.ended().await;
}

#[tokio::test]
async fn a_host_call_goes_to_the_client_and_back() {
    let mut client = client().await;
    let call = client.evaluate("calls", orders()).await;
    assert_eq!((&call["id"], &call["method"], &call["params"]["function"]), (&json!("c1"), &json!("host.call"), &json!("orders.list")));
    let answer = client.ask(r#"{"jsonrpc":"2.0","id":"c1","result":[1]}"#).await;
    assert_eq!(answer["result"]["value"], "called", "{answer}");
    assert_eq!(answer["result"]["calls"][0]["state"], "completed");
    assert_eq!(answer["result"]["usage"]["hostCalls"], 1);
    client.ended().await;
}

#[tokio::test]
async fn a_call_that_is_open_at_the_deadline_is_unknown_and_the_client_is_told() {
    let mut client = client().await;
    let mut with = orders();
    with["timeoutMs"] = json!(50);
    let call = client.evaluate("calls", with).await;
    assert_eq!(call["method"], "host.call");
    let cancel = client.receive().await;
    assert_eq!((&cancel["method"], &cancel["params"]["id"]), (&json!("host.cancel"), &json!("c1")));
    let answer = client.receive().await;
    assert_eq!(code(&answer), "timed_out", "{answer}");
    assert!(answer["result"]["error"]["message"].as_str().unwrap().contains("orders.list"), "{answer}");
    assert_eq!((&answer["result"]["calls"][0]["state"], &answer["result"]["calls"][0]["code"]), (&json!("unknown"), &json!("cancelled")));
    client.send(r#"{"jsonrpc":"2.0","id":"c1","result":[1]}"#).await;
    assert_eq!(client.evaluate("three", json!({})).await["result"]["value"], 3);
    assert_eq!(client.service.metrics.stray_answers.get(), 1);
    client.ended().await;
}

#[tokio::test]
async fn a_call_left_open_at_the_end_is_listed() {
    let mut client = client().await;
    let mut message = client.evaluate("leaves a call", orders()).await;
    while message.get("method").is_some() {
        message = client.receive().await;
    }
    assert_eq!(message["result"]["value"], 1, "{message}");
    assert_eq!(message["result"]["calls"][0]["code"], "cancelled");
    client.ended().await;
}

#[tokio::test]
async fn more_calls_than_may_be_in_flight_are_a_breach() {
    let mut client = client().await;
    let mut with = orders();
    with["limits"] = json!({"hostCallsInFlight": 1});
    let mut message = client.evaluate("calls twice", with).await;
    while message.get("method").is_some() {
        message = client.receive().await;
    }
    assert_eq!(code(&message), "protocol_violation", "{message}");
    client.ended().await;
}

#[tokio::test]
async fn warnings_are_bounded_and_output_is_streamed_when_asked_for() {
    let mut client = client().await;
    let answer = client.evaluate("warns", json!({})).await;
    assert_eq!(answer["result"]["warnings"].as_array().unwrap().len(), 100);
    let note = client.evaluate("prints", json!({"output": {"stream": true, "capture": "none"}})).await;
    assert_eq!((&note["method"], &note["params"]["text"]), (&json!("evaluation.output"), &json!("hi\n")));
    let answer = client.receive().await;
    assert_eq!(answer["result"]["stdout"], "", "{answer}");
    client.ended().await;
}

#[tokio::test]
async fn cancel_ends_an_evaluation_by_request_id_or_by_its_own_and_says_when_there_is_none() {
    let mut client = client().await;
    client.send(r#"{"jsonrpc":"2.0","id":"e","method":"evaluate","params":{"source":"stuck"}}"#).await;
    let twice = client.ask(r#"{"jsonrpc":"2.0","id":"e","method":"evaluate","params":{"source":"three"}}"#).await;
    assert_eq!(code(&twice), "duplicate_id");
    client.send(r#"{"jsonrpc":"2.0","method":"cancel","params":{"id":"e"}}"#).await;
    let answer = client.receive().await;
    assert_eq!((&answer["id"], code(&answer)), (&json!("e"), "cancelled"));
    let nothing = client.ask(r#"{"jsonrpc":"2.0","id":2,"method":"cancel","params":{"id":"e"}}"#).await;
    assert_eq!(code(&nothing), "evaluation_not_found");
    let both = client.ask(r#"{"jsonrpc":"2.0","id":3,"method":"cancel","params":{}}"#).await;
    assert_eq!(code(&both), "invalid_params");
    client.ended().await;
}

#[tokio::test]
async fn another_user_may_neither_evaluate_nor_cancel() {
    let service = service_of(obedient, Config::default()).await;
    let own = rustix::process::geteuid().as_raw();
    let mut stranger = connect(Arc::clone(&service), own + 1);
    assert_eq!(code(&stranger.evaluate("three", json!({})).await), "not_permitted");
    let hello = stranger.ask(r#"{"jsonrpc":"2.0","id":2,"method":"initialize"}"#).await;
    assert_eq!(hello["result"]["principal"]["uid"], own + 1);
    let mut owner = connect(service, own);
    let call = owner.evaluate("calls", orders()).await;
    let evaluation = call["params"]["evaluation"].as_str().unwrap().to_owned();
    let cancel = format!(r#"{{"jsonrpc":"2.0","id":3,"method":"cancel","params":{{"evaluation":"{evaluation}"}}}}"#);
    assert_eq!(code(&stranger.ask(&cancel).await), "evaluation_not_found");
    owner.send(&cancel).await;
    assert_eq!(owner.receive().await["result"], json!({}));
    assert_eq!(owner.receive().await["method"], "host.cancel");
    assert_eq!(code(&owner.receive().await), "cancelled");
    stranger.ended().await;
    owner.ended().await;
}

#[tokio::test]
async fn bad_lines_are_answered_and_the_connection_lives() {
    let mut client = client().await;
    for (line, expected) in [
        ("{bad", "parse_error"),
        ("[]", "invalid_request"),
        (r#"{"jsonrpc":"2.0","id":9,"method":"nope"}"#, "method_not_found"),
        (r#"{"jsonrpc":"1.0","id":9,"method":"evaluate"}"#, "invalid_request"),
        (r#"{"jsonrpc":"2.0","id":9,"method":"evaluate"}"#, "invalid_params"),
        (r#"{"jsonrpc":"2.0","id":9,"method":"evaluate","params":[1]}"#, "invalid_request"),
        (r#"{"jsonrpc":"2.0","id":9,"method":"policy.explain"}"#, "invalid_params"),
        (r#"{"jsonrpc":"2.0","id":9,"method":"evaluate","params":{"source":"1","check":true}}"#, "unsupported"),
        (r#"{"jsonrpc":"2.0","id":9,"method":"vm.create","params":{"limts":{}}}"#, "invalid_params"),
        (r#"{"jsonrpc":"2.0","id":9,"method":"vm.create","params":{"timeZone":"../etc"}}"#, "invalid_params"),
    ] {
        let answer = client.ask(line).await;
        assert_eq!(code(&answer), expected, "{line}: {answer}");
    }
    client.send("").await;
    client.send("   ").await;
    client.send(&"x".repeat(brig_protocol::limits::REQUEST_LINE_BYTES + 10)).await;
    assert_eq!(code(&client.receive().await), "line_too_long");
    assert_eq!(client.evaluate("three", json!({})).await["result"]["value"], 3);
    client.ended().await;
}

#[tokio::test]
async fn the_same_key_gives_the_same_answer_and_runs_once() {
    let mut client = client().await;
    let first = client.evaluate("three", json!({"idempotencyKey": "k"})).await;
    let second = client.evaluate("three", json!({"idempotencyKey": "k"})).await;
    assert_eq!(first["result"], second["result"]);
    assert_eq!(client.service.metrics.count_of(brig_protocol::client::Outcome::Succeeded), 1);
    assert_eq!(code(&client.evaluate("prints", json!({"idempotencyKey": "k"})).await), "idempotency_conflict");
    client.ended().await;
}
