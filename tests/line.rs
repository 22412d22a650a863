//! The straight line: client, supervisor, worker, host call and back.
#![expect(clippy::unwrap_used, reason = "tests")]

use acceptance::{Brigd, BrigdOptions, Handlers};
use serde_json::{Value, json};

#[test]
fn an_expression_gives_its_value() {
    let brigd = Brigd::start();
    let result = brigd.connect().evaluate("1+2");
    assert_eq!(result.get("outcome"), Some(&json!("succeeded")), "{result}");
    assert_eq!(result.get("value"), Some(&json!(3)), "{result}");
}

#[test]
fn the_code_mode_program_refunds_one_order_of_two() {
    let brigd = Brigd::start();
    let params = json!({
        "source": "const orders = await store.listOrders({ customer: inputs.customer });\n\
            const pending = orders.filter((order) => order.status === \"pending\");\n\
            for (const order of pending) await store.refund({ orderId: order.id });\n\
            return { refunded: pending.length, total: pending.reduce((sum, o) => sum + o.total, 0) };",
        "inputs": {"customer": "customer_123"},
        "hostFunctions": {"store": {
            "listOrders": {"inputSchema": {"type": "object", "properties": {"customer": {"type": "string"}}, "required": ["customer"]}},
            "refund": {"inputSchema": {"type": "object", "properties": {"orderId": {"type": "string"}}, "required": ["orderId"]}},
        }},
        "timeoutMs": 5000,
    });
    let mut handlers = Handlers::none()
        .on(
            "store.listOrders",
            json!({"kind": "static", "result": [
                {"id": "o_1", "customer": "customer_123", "total": 40, "status": "shipped"},
                {"id": "o_2", "customer": "customer_123", "total": 2, "status": "pending"},
            ]}),
        )
        .on("store.refund", json!({"kind": "merge", "with": {"refunded": true}}));
    let result = brigd.connect().evaluate_with(&params, &mut handlers);
    assert_eq!(result.get("value"), Some(&json!({"refunded": 1, "total": 2})), "{result}");
    assert_eq!(handlers.seen.last().unwrap(), &("store.refund".to_owned(), json!({"orderId": "o_2"})));
    let states: Vec<&Value> = result.get("calls").and_then(Value::as_array).unwrap().iter().filter_map(|call| call.get("state")).collect();
    assert_eq!(states, [&json!("completed"), &json!("completed")]);
}

#[test]
fn the_answer_names_the_layers_that_confined_its_worker() {
    let brigd = Brigd::start();
    let result = brigd.connect().evaluate("null");
    let layers = result.pointer("/sandbox/layers").and_then(Value::as_array).unwrap();
    let root_has_more = nix::unistd::geteuid().is_root().then_some("own_uid");
    for layer in ["seccomp", "no_new_privs", "rlimits"].into_iter().chain(root_has_more) {
        assert!(layers.contains(&json!(layer)), "{layer} is not among {layers:?}");
    }
}

#[test]
fn host_calls_in_promise_all_run_at_the_same_time() {
    let brigd = Brigd::start();
    // Each call is answered only when all three have been asked for: one after the
    // other would never end.
    let params = json!({
        "source": "return await Promise.all([1, 2, 3].map((n) => svc.echo({ n })))",
        "hostFunctions": {"svc": {"echo": {}}},
    });
    let mut client = brigd.connect();
    let id = client.request("evaluate", &params);
    let asked: Vec<Value> = (0..3).map(|_| client.next_message()).collect();
    for call in asked.iter().rev() {
        client.send(&json!({"jsonrpc": "2.0", "id": call.get("id"), "result": call.pointer("/params/input")}));
    }
    let answer = client.answer(id, &mut Handlers::none());
    assert_eq!(answer.pointer("/result/value"), Some(&json!([{"n": 1}, {"n": 2}, {"n": 3}])), "{answer}");
}

#[test]
fn workers_that_are_fresh_images_run_the_same_line() {
    let brigd = BrigdOptions::default().arg("--origin").arg("exec").start();
    let params = json!({
        "source": "const { n } = await svc.echo({ n: 20 }); return n + 1",
        "hostFunctions": {"svc": {"echo": {"inputSchema": {"type": "object"}}}},
    });
    for _ in 0..3 {
        let result = brigd.connect().evaluate_with(&params, &mut Handlers::none().on("svc.echo", json!({"kind": "echo"})));
        assert_eq!(result.get("value"), Some(&json!(21)), "{result}");
    }
}
