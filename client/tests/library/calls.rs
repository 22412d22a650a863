//! Host calls, their handlers and their ends.

use super::*;

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
