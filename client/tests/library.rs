//! The library against a server that a test plays.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

#[path = "library/calls.rs"]
mod calls;
#[path = "library/vms.rs"]
mod vms;

mod fake;

use brig::{
    CheckParams, Client, Error, Evaluate, Evaluation, Function, FunctionError, HostCall, HostFunctions, Outcome, RequestCode, VmOptions,
};
use fake::{DEADLINE, FakeServer, ended, succeeded};
use serde_json::{Value, json};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Barrier, mpsc, oneshot};

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, work).await.unwrap_or_else(|_| panic!("not within {DEADLINE:?}"))
}

async fn value_of(evaluation: Evaluation) -> Value {
    let result = soon(evaluation).await.unwrap();
    serde_json::from_str(result.value.unwrap().get()).unwrap()
}

fn one_function<F: Future<Output = Result<Value, FunctionError>> + Send + 'static>(
    handler: impl Fn(Value, HostCall) -> F + Send + Sync + 'static,
) -> HostFunctions {
    HostFunctions::new().collection("orders").function("list", json!({"type": "object"}), handler).finish()
}

/// Tells when a handler's future is dropped.
struct Dropped(mpsc::UnboundedSender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.send(()).ok();
    }
}

#[tokio::test]
async fn a_program_is_sent_as_it_is_and_its_result_comes_back() {
    let server = FakeServer::start(|peer| {
        let request = peer.expect("evaluate");
        let expected = json!({"source": "return inputs.a", "inputs": {"a": [1]}, "timeoutMs": 1500});
        assert_eq!(request["params"], expected, "nothing is said that nobody asked for");
        peer.answer(&request, &succeeded(json!([1])));
    });
    let client = Client::connect(server.socket()).await.unwrap();
    let evaluate = Evaluate::new("return inputs.a").inputs(json!({"a": [1]})).timeout(Duration::from_micros(1_499_500));
    let result = soon(client.evaluate(evaluate)).await.unwrap();
    assert_eq!((result.outcome, result.value.unwrap().get()), (Outcome::Succeeded, "[1]"));
    server.finish();
}

#[tokio::test]
async fn a_failed_program_is_a_result() {
    let server = FakeServer::start(|peer| {
        let request = peer.expect("evaluate");
        peer.answer(&request, &ended("timed_out", "timed_out"));
    });
    let client = Client::connect(server.socket()).await.unwrap();
    let result = soon(client.evaluate(Evaluate::new("x"))).await.unwrap();
    assert_eq!((result.outcome, result.error.unwrap().message.as_str()), (Outcome::TimedOut, "boom"));
    server.finish();
}

#[tokio::test]
async fn a_dropped_evaluation_is_cancelled() {
    let (sent, wait) = oneshot::channel();
    let server = FakeServer::start(move |peer| {
        let request = peer.expect("evaluate");
        sent.send(()).unwrap();
        assert_eq!(peer.expect("cancel")["params"], json!({"id": request["id"]}));
        // An answer that crosses the cancellation is nobody's any more.
        peer.answer(&request, &ended("cancelled", "cancelled"));
        let request = peer.expect("evaluate");
        peer.answer(&request, &succeeded(json!(2)));
    });
    let client = Client::connect(server.socket()).await.unwrap();
    let evaluation = client.evaluate(Evaluate::new("x"));
    soon(wait).await.unwrap();
    drop(evaluation);
    assert_eq!(value_of(client.evaluate(Evaluate::new("y"))).await, json!(2));
    server.finish();
}

#[tokio::test]
async fn a_canceller_ends_an_evaluation_and_leaves_its_result() {
    let server = FakeServer::start(|peer| {
        let request = peer.expect("evaluate");
        peer.expect("cancel");
        peer.answer(&request, &ended("cancelled", "cancelled"));
    });
    let client = Client::connect(server.socket()).await.unwrap();
    let evaluation = client.evaluate(Evaluate::new("x"));
    let canceller = evaluation.canceller();
    canceller.cancel();
    let result = soon(evaluation).await.unwrap();
    assert_eq!(result.outcome, Outcome::Cancelled);
    canceller.cancel();
    server.finish();
}

#[tokio::test]
async fn evaluations_share_a_connection_and_never_each_others_calls_output_or_answers() {
    let server = FakeServer::start(|peer| {
        let a = peer.expect("evaluate");
        let b = peer.expect("evaluate");
        let c = peer.expect("evaluate");
        // Nothing but the first can be meant by an id that nobody has told.
        let announced = [&a, &b, &c].map(|request| request["params"]["announce"].clone());
        assert_eq!(announced, [Value::Null, json!(true), json!(true)]);
        peer.call("1", "ev_a", 1, "orders.list", &json!({}));
        let from_a = peer.read()["result"].clone();
        peer.started(&c, "ev_c");
        peer.started(&b, "ev_b");
        peer.notify("evaluation.output", &json!({"evaluation": "ev_b", "stream": "stdout", "text": "from b\n"}));
        peer.call("2", "ev_b", 1, "orders.list", &json!({}));
        let from_b = peer.read()["result"].clone();
        peer.call("3", "ev_c", 1, "orders.list", &json!({}));
        let from_c = peer.read()["result"].clone();
        peer.call("4", "ev_unknown", 1, "orders.list", &json!({}));
        assert_eq!(peer.read()["error"]["data"]["code"], "cancelled");
        peer.answer(&c, &succeeded(from_c));
        peer.answer(&b, &succeeded(from_b));
        peer.answer(&a, &succeeded(from_a));
    });
    let client = Client::connect(server.socket()).await.unwrap();
    let named = |name: &'static str| {
        Evaluate::new(name)
            .host_functions(one_function(move |_, _| async move { Ok(json!(name)) }))
            .on_output(move |note| assert_eq!((name, note.text.as_str()), ("b", "from b\n")))
    };
    let [a, b, c] = ["a", "b", "c"].map(|name| client.evaluate(named(name)));
    assert_eq!(tokio::join!(value_of(a), value_of(b), value_of(c)), (json!("a"), json!("b"), json!("c")));
    server.finish();
}

#[tokio::test]
async fn output_and_warnings_come_while_the_program_runs() {
    let server = FakeServer::start(|peer| {
        let request = peer.expect("evaluate");
        assert_eq!(request["params"]["output"], json!({"capture": "all", "stream": true}));
        peer.started(&request, "ev_1");
        peer.notify("evaluation.output", &json!({"evaluation": "ev_1", "stream": "stderr", "text": "line\n"}));
        peer.notify("evaluation.warning", &json!({"evaluation": "ev_1", "warning": {"code": "limit_near", "message": "near"}}));
        peer.notify("evaluation.of_tomorrow", &json!({"evaluation": "ev_1"}));
        // The listeners are asked for before the answer.
        peer.expect("evaluate");
        peer.answer(&request, &succeeded(json!(1)));
    });
    let client = Client::connect(server.socket()).await.unwrap();
    let (tell, mut told) = mpsc::unbounded_channel();
    let also = tell.clone();
    let evaluate = Evaluate::new("x")
        .on_output(move |note| tell.send(note.text.clone()).unwrap())
        .on_warning(move |warning| also.send(warning.message.clone()).unwrap());
    let evaluation = client.evaluate(evaluate);
    assert_eq!(soon(told.recv()).await.unwrap(), "line\n");
    assert_eq!(soon(told.recv()).await.unwrap(), "near");
    let other = client.evaluate(Evaluate::new("y"));
    value_of(evaluation).await;
    drop(other);
    server.finish();
}

#[tokio::test]
async fn a_lost_connection_ends_everything_and_says_that_nobody_knows() {
    let server = FakeServer::start(|peer| {
        peer.expect("evaluate");
        peer.call("c1", "ev_1", 1, "orders.list", &json!({}));
        peer.expect("evaluate");
    });
    let client = Client::connect(server.socket()).await.unwrap();
    let (tell, mut told) = mpsc::unbounded_channel();
    let begun = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&begun);
    let functions = one_function(move |_, _| {
        let dropped = Dropped(tell.clone());
        seen.store(true, Ordering::SeqCst);
        async move {
            let _kept = dropped;
            std::future::pending().await
        }
    });
    let first = client.evaluate(Evaluate::new("x").host_functions(functions));
    soon(async {
        while !begun.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let second = client.evaluate(Evaluate::new("y"));
    for evaluation in [first, second] {
        let error = soon(evaluation).await.unwrap_err();
        assert!(matches!(error, Error::ConnectionLost(_)) && !error.nothing_ran(), "{error}");
    }
    soon(told.recv()).await.unwrap();
    assert!(matches!(soon(client.evaluate(Evaluate::new("z"))).await, Err(Error::ConnectionLost(_))));
    server.finish();
}

#[tokio::test]
async fn what_is_not_the_protocol_ends_the_connection_with_a_reason() {
    for (text, reason) in [
        ("nonsense\n", "not JSON"),
        ("{\"jsonrpc\":\"2.0\",\"method\":\"host.cancel\",\"params\":{}}\n", "host.cancel"),
        ("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"the line is over the limit\"}}\n", "over the limit"),
    ] {
        let server = FakeServer::start(move |peer| {
            peer.expect("evaluate");
            peer.write_text(text);
            assert!(peer.closed());
        });
        let client = Client::connect(server.socket()).await.unwrap();
        let error = soon(client.evaluate(Evaluate::new("x"))).await.unwrap_err();
        assert!(matches!(&error, Error::Protocol(why) if why.contains(reason)), "{error}");
        server.finish();
    }
}

#[tokio::test]
async fn a_refusal_is_typed_and_means_that_nothing_ran() {
    let server = FakeServer::start(|peer| {
        let request = peer.expect("evaluate");
        let data = json!({"code": "overloaded", "message": "all workers are busy", "retryable": true, "retryAfterMs": 50});
        peer.write(
            &json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32000, "message": "all workers are busy", "data": data}}),
        );
        let request = peer.expect("check");
        peer.write(
            &json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32099, "message": "new", "data": {"code": "of_tomorrow"}}}),
        );
    });
    let client = Client::connect(server.socket()).await.unwrap();
    let error = soon(client.evaluate(Evaluate::new("x"))).await.unwrap_err();
    assert!(error.nothing_ran() && error.retryable());
    assert!(matches!(error, Error::Refused(data) if data.code == RequestCode::Overloaded && data.retry_after_ms == Some(50)));
    let error = soon(client.check(&CheckParams::default())).await.unwrap_err();
    assert!(matches!(error, Error::Rpc { code: -32099, .. }), "{error}");
    server.finish();
}

#[tokio::test]
async fn a_client_that_is_sent_away_at_the_door_is_refused() {
    let server = FakeServer::start(|peer| {
        let data = json!({"code": "overloaded", "message": "there are as many connections as may be", "retryable": true});
        peer.write(&json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "no room", "data": data}}));
    });
    let client = Client::connect(server.socket()).await.unwrap();
    let error = soon(client.evaluate(Evaluate::new("x"))).await.unwrap_err();
    assert!(matches!(&error, Error::Refused(data) if data.code == RequestCode::Overloaded), "{error}");
    server.finish();
}

#[tokio::test]
async fn what_brigd_would_not_take_is_not_sent() {
    let server = FakeServer::start(|peer| {
        let request = peer.expect("evaluate");
        assert_eq!(request["params"]["source"], "the only one that is sent");
        peer.answer(&request, &succeeded(json!(1)));
    });
    let client = Client::connect(server.socket()).await.unwrap();
    let mut deep = json!(1);
    for _ in 0..600 {
        deep = json!([deep]);
    }
    for (evaluate, reason) in [
        (Evaluate::new("x".repeat(1024 * 1024 + 1)), "bytes"),
        (Evaluate::new("x").inputs(json!([1])), "object"),
        (Evaluate::new("x").inputs(json!({"a": "x".repeat(17 * 1024 * 1024)})), "at most"),
        (Evaluate::new("x").inputs(json!({"a": deep})), "nested deeper"),
        (Evaluate::new("x").permissions(json!({"hostFunctions": "allow"})), "hostFunctions"),
    ] {
        let error = soon(client.evaluate(evaluate)).await.unwrap_err();
        assert!(matches!(&error, Error::Request(why) if why.contains(reason)), "{error}");
    }
    value_of(client.evaluate(Evaluate::new("the only one that is sent"))).await;
    server.finish();
}

#[tokio::test]
async fn large_requests_and_answers_pass_through_small_socket_buffers() {
    let server = FakeServer::start(|peer| {
        let request = peer.expect("evaluate");
        let text = request["params"]["inputs"]["a"].as_str().unwrap();
        peer.answer(&request, &succeeded(json!(format!("{text}{text}"))));
    });
    let client = Client::connect(server.socket()).await.unwrap();
    let text = "x".repeat(8 * 1024 * 1024);
    let value = value_of(client.evaluate(Evaluate::new("x").inputs(json!({"a": text})))).await;
    assert_eq!(value.as_str().map(str::len), Some(16 * 1024 * 1024));
    server.finish();
}

#[tokio::test]
async fn raw_json_with_line_breaks_stays_on_its_line() {
    let server = FakeServer::start(|peer| {
        let request = peer.expect("evaluate");
        assert_eq!(request["params"]["inputs"], json!({"a": [1, 2]}));
        peer.call("c1", "ev_1", 1, "orders.list", &json!({}));
        assert_eq!(peer.read()["result"], json!([1, 2]));
        peer.answer(&request, &succeeded(json!(1)));
    });
    let raw = |text: &str| serde_json::from_str::<Box<serde_json::value::RawValue>>(text).unwrap();
    let client = Client::connect(server.socket()).await.unwrap();
    let functions = HostFunctions::new()
        .collection("orders")
        .add("list", Function::new(move |_: Value, _| std::future::ready(Ok(raw("[\n1,\r\n2\n]")))));
    value_of(client.evaluate(Evaluate::new("x").inputs(raw("{\n\"a\":\n[1,\n2]}")).host_functions(functions))).await;
    server.finish();
}

#[tokio::test]
async fn a_client_that_is_dropped_closes_its_connection() {
    let server = FakeServer::start(|peer| assert!(peer.closed()));
    let client = Client::connect(server.socket()).await.unwrap();
    let other = client.clone();
    drop(client);
    drop(other);
    tokio::task::yield_now().await;
    server.finish();
}

#[tokio::test]
async fn a_socket_without_a_server_is_told_by_its_path() {
    let error = Client::connect("/nowhere/brig.sock").await.unwrap_err();
    assert!(error.nothing_ran() && error.to_string().contains("/nowhere/brig.sock"), "{error}");
}
