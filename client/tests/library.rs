//! The library against a server that a test plays.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

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
async fn a_host_call_is_answered_by_its_handler_and_its_declaration_is_sent() {
    let server = FakeServer::start(|peer| {
        let request = peer.expect("evaluate");
        let expected = json!({"list": {"description": "List.", "inputSchema": {"type": "object"}, "timeoutMs": 100, "effect": "read",
            "examples": [{"description": "one", "input": {"customer": "c1"}}]}});
        assert_eq!(request["params"]["hostFunctions"]["orders"], expected);
        peer.started(&request, "ev_1");
        peer.call("c1", "ev_1", 7, "orders.list", &json!({"customer": "c1"}));
        let answer = peer.read();
        assert_eq!(answer["id"], "c1");
        peer.answer(&request, &succeeded(answer["result"].clone()));
    });
    let client = Client::connect(server.socket()).await.unwrap();
    let function = Function::new(|input: Value, call: HostCall| async move {
        Ok(json!([input["customer"], call.call(), call.evaluation(), call.function(), call.idempotency_key()]))
    })
    .description("List.")
    .input_schema(json!({"type": "object"}))
    .timeout(Duration::from_millis(100))
    .effect(brig::Effect::Read)
    .example("one", json!({"customer": "c1"}));
    let functions = HostFunctions::new().collection("orders").add("list", function);
    let value = value_of(client.evaluate(Evaluate::new("x").host_functions(functions))).await;
    assert_eq!(value, json!(["c1", 7, "ev_1", "orders.list", "ev_1:7"]));
    server.finish();
}

#[tokio::test]
async fn a_handler_says_no_with_code_name_and_data() {
    let server = FakeServer::start(|peer| {
        let request = peer.expect("evaluate");
        peer.call("c1", "ev_1", 1, "orders.list", &json!({}));
        let answer = peer.read();
        let data = json!({"name": "RateLimitError", "code": "rate_limited", "data": {"retryAfter": 2}});
        assert_eq!(answer["error"], json!({"code": -32000, "message": "slow down", "data": data}));
        peer.answer(&request, &succeeded(json!(1)));
    });
    let client = Client::connect(server.socket()).await.unwrap();
    let functions = one_function(|_, _| async {
        Err(FunctionError::new("rate_limited", "slow down").with_name("RateLimitError").with_data(json!({"retryAfter": 2})))
    });
    value_of(client.evaluate(Evaluate::new("x").host_functions(functions))).await;
    server.finish();
}

#[tokio::test]
async fn a_call_of_a_function_that_is_not_offered_is_answered_too() {
    let server = FakeServer::start(|peer| {
        let request = peer.expect("evaluate");
        peer.call("c1", "ev_1", 1, "orders.drop", &json!({}));
        assert_eq!(peer.read()["error"]["data"]["code"], "unknown_function");
        peer.write(&json!({"jsonrpc": "2.0", "id": "c2", "method": "host.surprise", "params": {}}));
        assert_eq!(peer.read()["error"]["code"], -32601);
        peer.answer(&request, &succeeded(json!(1)));
    });
    let client = Client::connect(server.socket()).await.unwrap();
    value_of(client.evaluate(Evaluate::new("x").host_functions(one_function(|_, _| async { Ok(json!(1)) })))).await;
    server.finish();
}

#[tokio::test]
async fn calls_run_at_the_same_time() {
    let server = FakeServer::start(|peer| {
        let request = peer.expect("evaluate");
        for call in 1..=3 {
            peer.call(&format!("c{call}"), "ev_1", call, "orders.list", &json!({}));
        }
        let mut ids: Vec<String> = (0..3).map(|_| peer.read()["id"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        assert_eq!(ids, ["c1", "c2", "c3"]);
        peer.answer(&request, &succeeded(json!(3)));
    });
    let client = Client::connect(server.socket()).await.unwrap();
    let all_there = Arc::new(Barrier::new(3));
    let functions = one_function(move |_, _| {
        let all_there = Arc::clone(&all_there);
        async move {
            all_there.wait().await;
            Ok(json!(null))
        }
    });
    assert_eq!(value_of(client.evaluate(Evaluate::new("x").host_functions(functions))).await, json!(3));
    server.finish();
}

/// Tells when a handler's future is dropped.
struct Dropped(mpsc::UnboundedSender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.send(()).ok();
    }
}

#[tokio::test]
async fn a_cancelled_call_drops_its_handler_and_ends_its_token() {
    let (begin, begun) = std::sync::mpsc::channel();
    let server = FakeServer::start(move |peer| {
        let request = peer.expect("evaluate");
        peer.call("c1", "ev_1", 1, "orders.list", &json!({}));
        begun.recv_timeout(DEADLINE).unwrap();
        peer.notify("host.cancel", &json!({"id": "c1", "evaluation": "ev_1", "call": 1, "reason": "function_timed_out"}));
        assert_eq!(peer.read()["error"]["data"]["code"], "cancelled");
        peer.answer(&request, &succeeded(json!(1)));
    });
    let client = Client::connect(server.socket()).await.unwrap();
    let (tell, mut told) = mpsc::unbounded_channel();
    let functions = one_function(move |_, call: HostCall| {
        let dropped = Dropped(tell.clone());
        let tell = tell.clone();
        tokio::spawn(async move {
            call.cancelled().cancelled().await;
            tell.send(()).unwrap();
        });
        begin.send(()).unwrap();
        async move {
            let _kept = dropped;
            std::future::pending().await
        }
    });
    value_of(client.evaluate(Evaluate::new("x").host_functions(functions))).await;
    soon(told.recv()).await.unwrap();
    soon(told.recv()).await.unwrap();
    server.finish();
}

#[tokio::test]
async fn a_handler_that_panics_is_a_failed_call() {
    let server = FakeServer::start(|peer| {
        let request = peer.expect("evaluate");
        peer.call("c1", "ev_1", 1, "orders.list", &json!({}));
        let answer = peer.read();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("c1"), &json!(-32000)));
        assert!(!answer.to_string().contains("secret"), "{answer}");
        peer.answer(&request, &succeeded(json!(1)));
    });
    let client = Client::connect(server.socket()).await.unwrap();
    let functions = one_function(|_, _| async { panic!("secret") });
    value_of(client.evaluate(Evaluate::new("x").host_functions(functions))).await;
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
async fn a_call_of_a_dropped_evaluation_is_never_taken_for_that_of_the_next() {
    let (sent, wait) = oneshot::channel();
    let server = FakeServer::start(move |peer| {
        let dropped = peer.expect("evaluate");
        sent.send(()).unwrap();
        peer.expect("cancel");
        let next = peer.expect("evaluate");
        assert_eq!(next["params"]["announce"], true);
        peer.call("late", "ev_1", 1, "orders.list", &json!({}));
        assert_eq!(peer.read()["error"]["data"]["code"], "cancelled");
        peer.started(&next, "ev_2");
        peer.call("own", "ev_2", 1, "orders.list", &json!({}));
        let answer = peer.read();
        peer.answer(&dropped, &ended("cancelled", "cancelled"));
        peer.answer(&next, &succeeded(answer["result"].clone()));
    });
    let client = Client::connect(server.socket()).await.unwrap();
    let functions = || one_function(|_, call: HostCall| async move { Ok(json!(call.evaluation())) });
    let evaluation = client.evaluate(Evaluate::new("x").host_functions(functions()));
    soon(wait).await.unwrap();
    drop(evaluation);
    assert_eq!(value_of(client.evaluate(Evaluate::new("y").host_functions(functions()))).await, json!("ev_2"));
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
async fn a_vm_offers_its_functions_to_every_evaluation_and_is_disposed_of() {
    let server = FakeServer::start(|peer| {
        let request = peer.expect("vm.create");
        assert!(request["params"]["hostFunctions"]["orders"]["list"].is_object());
        peer.answer(&request, &json!({"vm": "vm_1", "idleTimeoutMs": 1000, "lifetimeMs": 2000}));
        for call in 1..=2 {
            let request = peer.expect("evaluate");
            assert_eq!((&request["params"]["vm"], &request["params"]["hostFunctions"]), (&json!("vm_1"), &Value::Null));
            peer.started(&request, &format!("ev_{call}"));
            peer.call_of(Some("vm_1"), "c1", &format!("ev_{call}"), 1, "orders.list", &json!({}));
            let answer = peer.read();
            peer.answer(&request, &succeeded(answer["result"].clone()));
        }
        let request = peer.expect("vm.list");
        peer.answer(&request, &json!({"vms": [{"vm": "vm_1", "busy": false, "evaluations": 2, "ageMs": 5, "idleMs": 1}]}));
        let request = peer.expect("vm.dispose");
        assert_eq!(request["params"], json!({"vm": "vm_1"}));
        peer.answer(&request, &json!({}));
    });
    let client = Client::connect(server.socket()).await.unwrap();
    let vm = client.create_vm(VmOptions::new().host_functions(one_function(|_, _| async { Ok(json!(42)) }))).await.unwrap();
    assert_eq!(value_of(vm.evaluate(Evaluate::new("let x = 1"))).await, json!(42));
    assert_eq!(value_of(vm.evaluate(Evaluate::new("x"))).await, json!(42));
    assert_eq!(soon(client.list_vms()).await.unwrap()[0].evaluations, 2);
    soon(vm.dispose()).await.unwrap();
    server.finish();
}

#[tokio::test]
async fn a_call_of_somebody_elses_evaluation_in_a_vm_made_here_is_not_taken_for_one_of_ours() {
    let server = FakeServer::start(|peer| {
        let request = peer.expect("vm.create");
        peer.answer(&request, &json!({"vm": "vm_1", "idleTimeoutMs": 1000, "lifetimeMs": 2000}));
        let own = peer.expect("evaluate");
        assert_eq!(own["params"]["announce"], true);
        peer.call_of(Some("vm_1"), "c1", "ev_other", 1, "orders.list", &json!({}));
        assert_eq!(peer.read()["result"], "vm");
        peer.call_of(Some("vm_1"), "c2", "ev_other", 2, "orders.drop", &json!({}));
        assert_eq!(peer.read()["error"]["data"]["code"], "unknown_function");
        peer.call_of(Some("vm_2"), "c5", "ev_other", 3, "orders.list", &json!({}));
        assert_eq!(peer.read()["error"]["data"]["code"], "cancelled");
        peer.started(&own, "ev_own");
        peer.call("c3", "ev_own", 1, "orders.list", &json!({}));
        assert_eq!(peer.read()["result"], "own");
        peer.answer(&own, &succeeded(json!(1)));
        let request = peer.expect("vm.dispose");
        peer.call_of(Some("vm_1"), "c4", "ev_other", 4, "orders.list", &json!({}));
        assert_eq!(peer.read()["error"]["data"]["code"], "cancelled");
        peer.answer(&request, &json!({}));
    });
    let client = Client::connect(server.socket()).await.unwrap();
    let vm = client.create_vm(VmOptions::new().host_functions(one_function(|_, _| async { Ok(json!("vm")) }))).await.unwrap();
    let own = Evaluate::new("1").host_functions(one_function(|_, _| async { Ok(json!("own")) }));
    assert_eq!(value_of(client.evaluate(own)).await, json!(1));
    soon(vm.dispose()).await.unwrap();
    server.finish();
}

#[tokio::test]
async fn a_vms_functions_answer_from_the_line_that_makes_it_and_beside_an_evaluation_that_began_before() {
    let server = FakeServer::start(|peer| {
        let own = peer.expect("evaluate");
        assert_eq!(own["params"]["announce"], Value::Null);
        let made = peer.expect("vm.create");
        peer.answer(&made, &json!({"vm": "vm_1", "idleTimeoutMs": 1000, "lifetimeMs": 2000}));
        peer.call_of(Some("vm_1"), "c1", "ev_other", 1, "orders.list", &json!({}));
        peer.call("c2", "ev_own", 1, "orders.list", &json!({}));
        let answers = [peer.read(), peer.read()];
        for (id, answer) in [("c1", "vm"), ("c2", "own")] {
            assert!(answers.iter().any(|one| one["id"] == id && one["result"] == answer), "{answers:?}");
        }
        peer.answer(&own, &succeeded(json!(1)));
        assert_eq!(peer.expect("vm.dispose")["params"], json!({"vm": "vm_1"}));
    });
    let client = Client::connect(server.socket()).await.unwrap();
    let own = client.evaluate(Evaluate::new("1").host_functions(one_function(|_, _| async { Ok(json!("own")) })));
    let vm = client.create_vm(VmOptions::new().host_functions(one_function(|_, _| async { Ok(json!("vm")) }))).await.unwrap();
    assert_eq!(value_of(own).await, json!(1));
    drop(vm);
    server.finish();
}

#[tokio::test]
async fn what_would_need_this_process_is_not_detached() {
    let server = FakeServer::start(|peer| assert!(peer.closed()));
    let client = Client::connect(server.socket()).await.unwrap();
    let program = || Evaluate::new("1");
    let asked = [
        program().host_functions(one_function(|_, _| async { Ok(json!(1)) })),
        program().on_output(|_| ()),
        program().on_warning(|_| ()),
        program().on_approval(|_| ()),
    ];
    for one in asked {
        let refused = soon(client.detach(one)).await.unwrap_err();
        assert!(refused.nothing_ran() && refused.to_string().contains("goes on without it"), "{refused}");
    }
    drop(client);
    server.finish();
}

#[tokio::test]
async fn a_vm_that_nobody_waited_for_is_disposed_of() {
    let (told, asked) = tokio::sync::oneshot::channel();
    let server = FakeServer::start(|peer| {
        let made = peer.expect("vm.create");
        told.send(()).unwrap();
        assert_eq!(peer.expect("cancel")["params"]["id"], made["id"]);
        peer.answer(&made, &json!({"vm": "vm_1", "idleTimeoutMs": 1000, "lifetimeMs": 2000}));
        assert_eq!(peer.expect("vm.dispose")["params"], json!({"vm": "vm_1"}));
    });
    let client = Client::connect(server.socket()).await.unwrap();
    tokio::select! {
        _ = client.create_vm(VmOptions::new()) => panic!("it was not made yet"),
        _ = asked => {}
    }
    tokio::task::spawn_blocking(|| server.finish()).await.unwrap();
}

#[tokio::test]
async fn an_approval_of_a_call_without_a_program_is_not_taken_for_one_of_an_evaluation() {
    let server = FakeServer::start(|peer| {
        let own = peer.expect("evaluate");
        let call = peer.expect("functions.call");
        let note = json!({"evaluation": "fc_1", "call": 1, "function": "billing.charge", "approval": "ap_1", "expiresInMs": 5000});
        peer.notify("evaluation.approval", &note);
        peer.call("c1", "ev_own", 1, "orders.list", &json!({}));
        assert_eq!(peer.read()["result"], "own");
        peer.answer(&call, &json!({"ok": true}));
        peer.answer(&own, &succeeded(json!(1)));
    });
    let client = Client::connect(server.socket()).await.unwrap();
    let evaluation = client.evaluate(
        Evaluate::new("1")
            .host_functions(one_function(|_, _| async { Ok(json!("own")) }))
            .on_approval(|note| panic!("told of {}", note.evaluation)),
    );
    let params = json!({"function": "billing.charge"});
    let called = client.request::<Value>("functions.call", &params);
    let (value, called) = tokio::join!(value_of(evaluation), soon(called));
    assert_eq!((value, called.unwrap()), (json!(1), json!({"ok": true})));
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
