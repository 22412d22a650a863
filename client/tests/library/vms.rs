//! Vms, and what is not taken for another's.

use super::*;

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
