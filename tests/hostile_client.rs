//! Attack 9: a client that is malformed, greedy, slow, rude or gone. brigd stays up,
//! answers everyone else, and holds bounded memory.
#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

use acceptance::{Brigd, Client, DEADLINE, Handlers, Incoming};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn code(answer: &Value) -> i64 {
    answer.pointer("/error/code").and_then(Value::as_i64).unwrap_or_default()
}

fn works(brigd: &Brigd) {
    assert_eq!(brigd.connect().evaluate("1+2").get("value"), Some(&json!(3)));
}

#[test]
fn a_malformed_line_is_answered_and_the_connection_lives() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    for (line, expected) in [
        (&b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\n"[..], -32700),
        (b"not json at all\n", -32700),
        (b"[]\n", -32600),
        (b"42\n", -32600),
        (b"{\"id\":2}\n", -32600),
        (b"{\"a\":\"\xff\xfe\"}\n", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"evaluate\"}\n", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"evaluate\"}\n", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"no.such\"}\n", -32601),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}]\n", -32600),
    ] {
        client.send_raw(line);
        let answer = client.next_message();
        assert_eq!(code(&answer), expected, "{} -> {answer}", String::from_utf8_lossy(line));
    }
    client.send_raw(b"\n");
    assert_eq!(client.evaluate("3").get("value"), Some(&json!(3)));
}

#[test]
fn a_line_over_the_limit_is_answered_and_skipped_in_bounded_memory() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let text = "x".repeat(1 << 20);
    let result = client.result("evaluate", &json!({"source": "return inputs.text.length", "inputs": {"text": text}}));
    assert_eq!(result.get("value"), Some(&json!(1 << 20)), "{result}");
    let before = brigd.rss_kib();
    let chunk = vec![b'y'; 1 << 20];
    for _ in 0..200 {
        client.send_raw(&chunk);
    }
    client.send_raw(b"\n");
    let answer = client.next_message();
    assert!(answer.to_string().contains("16777216"), "the limit is not named: {answer}");
    let grown = brigd.rss_kib().saturating_sub(before);
    assert!(grown < 64 * 1024, "brigd grew by {grown} KiB");
    assert_eq!(client.evaluate("4").get("value"), Some(&json!(4)));
}

#[test]
fn wrong_params_are_refused_by_name_and_nothing_runs() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    for (params, part) in [
        (json!({}), "source"),
        (json!({"source": 1}), "source"),
        (json!({"source": "1", "sorce": "2"}), "sorce"),
        (json!({"source": "1", "timeoutMs": "5"}), "timeoutMs"),
        (json!({"source": "1", "timeoutMs": 0}), "timeoutMs"),
        (json!({"source": "1", "timeoutMs": -5}), "timeoutMs"),
        (json!({"source": "1", "limits": {"heapBytes": 1}}), "heapBytes"),
        (json!({"source": "1", "limits": {"heapbytes": 100}}), "heapbytes"),
        (json!({"source": "1", "inputs": [1]}), "inputs"),
        (json!({"source": "1", "form": "poem"}), "form"),
        (json!({"source": "1", "output": {"capture": "some"}}), "capture"),
        (json!({"source": "1", "hostFunctions": {"a b": {"f": {}}}}), "a b"),
        (json!({"source": "1", "hostFunctions": {"a": {"f": {"inputSchema": {"type": "strin"}}}}}), "a.f"),
        (json!({"source": "1", "hostFunctions": {"a": {"f": {"inputSchema": {"$ref": "http://127.0.0.1/x"}}}}}), "a.f"),
        (json!({"source": "1", "permissions": {"hostFunction": "maybe"}}), "hostFunction"),
        (json!({"source": "1", "permissions": {"hostFunction": {"rules": []}}}), "rules"),
        (json!({"source": "1", "permissions": {"network": "allow"}}), "network"),
        (json!({"source": "1", "vm": "vm_of_another"}), "vm"),
        (json!("1"), "params"),
    ] {
        let answer = client.call("evaluate", &params);
        assert!(answer.get("error").is_some(), "{params} ran: {answer}");
        assert!(answer.to_string().contains(part), "{params}: {part} is not named in {answer}");
    }
    works(&brigd);
}

#[test]
fn nesting_and_node_bombs_are_refused_before_anything_is_built() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    client.send_raw(
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"evaluate\",\"params\":{{\"source\":\"1\",\"inputs\":{{\"a\":{deep}}}}}}}\n")
            .as_bytes(),
    );
    assert_eq!(code(&client.next_message()), -32700);
    let before = brigd.rss_kib();
    let wide = format!("[{}{{\"\":0}}]", "{\"\":0},".repeat(2_000_000));
    client.send_raw(
        format!("{{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"evaluate\",\"params\":{{\"source\":\"1\",\"inputs\":{{\"a\":{wide}}}}}}}\n")
            .as_bytes(),
    );
    assert_eq!(code(&client.next_message()), -32700);
    let grown = brigd.rss_kib().saturating_sub(before);
    assert!(grown < 96 * 1024, "brigd grew by {grown} KiB");
    works(&brigd);
}

#[test]
fn answers_come_as_they_are_ready_and_a_duplicate_id_never_crosses_them() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let slow = json!({"source": "return await svc.slow({ tag: 'a' })", "hostFunctions": {"svc": {"slow": {}}}});
    client.send(&json!({"jsonrpc": "2.0", "id": "a", "method": "evaluate", "params": slow}));
    let call = client.next_message();
    client.send(&json!({"jsonrpc": "2.0", "id": "c", "method": "evaluate", "params": {"source": "while (true) {}", "timeoutMs": 300}}));
    client.send(&json!({"jsonrpc": "2.0", "id": "b", "method": "evaluate", "params": {"source": "return 'b'"}}));
    client.send(&json!({"jsonrpc": "2.0", "id": "a", "method": "evaluate", "params": {"source": "return 'dup'"}}));
    let mut order = Vec::new();
    for _ in 0..3 {
        let answer = client.next_message();
        let id = answer.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        match id.as_str() {
            "a" => assert_eq!(code(&answer), -32600, "{answer}"),
            "b" => assert_eq!(answer.pointer("/result/value"), Some(&json!("b")), "{answer}"),
            "c" => assert_eq!(answer.pointer("/result/outcome"), Some(&json!("timed_out")), "{answer}"),
            other => panic!("an answer to {other}"),
        }
        order.push(id);
    }
    assert_eq!(order.last().map(String::as_str), Some("c"), "the program that spins must not delay the others: {order:?}");
    client.send(&json!({"jsonrpc": "2.0", "id": call.get("id"), "result": {"tag": "a"}}));
    let answer = client.next_message();
    assert_eq!((answer.get("id"), answer.pointer("/result/value")), (Some(&json!("a")), Some(&json!({"tag": "a"}))), "{answer}");
}

#[test]
fn a_program_text_of_any_encoding_is_run_or_refused_clearly() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    client.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"evaluate\",\"params\":{\"source\":\"return '\\\\ud83d'.length\"}}\n");
    assert_eq!(client.next_message().pointer("/result/value"), Some(&json!(1)));
    client.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"evaluate\",\"params\":{\"source\":\"return '\\ud83d'.length\"}}\n");
    let answer = client.next_message();
    assert!(answer.pointer("/result/value") == Some(&json!(1)) || answer.to_string().contains("surrogate"), "{answer}");
    client.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"evaluate\",\"params\":{\"source\":\"\xff\xfe\"}}\n");
    assert_eq!(code(&client.next_message()), -32700);
    client.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"evaluate\",\"params\":{\"source\":\"return 'a\\u0000b'.length\"}}\n");
    assert_eq!(client.next_message().pointer("/result/value"), Some(&json!(3)));
    client.send_raw(
        b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"evaluate\",\"params\":{\"source\":\"// c\\u2028return 'x\\\\n'.length\"}}\n",
    );
    assert_eq!(client.next_message().pointer("/result/value"), Some(&json!(2)));
}

#[test]
fn answers_that_nobody_asked_for_change_nothing() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let params = json!({"source": "return await svc.f({})", "hostFunctions": {"svc": {"f": {}}}});
    let id = client.request("evaluate", &params);
    let call = client.next_message();
    client.send(&json!({"jsonrpc": "2.0", "id": "c99999", "result": "forged"}));
    client.send(&json!({"jsonrpc": "2.0", "id": 1, "result": "forged"}));
    client.send(&json!({"jsonrpc": "2.0", "id": call.get("id"), "result": "true"}));
    client.send(&json!({"jsonrpc": "2.0", "id": call.get("id"), "result": "second"}));
    let answer = client.answer(id, &mut Handlers::none());
    assert_eq!(answer.pointer("/result/value"), Some(&json!("true")), "{answer}");
    works(&brigd);
}

#[test]
fn a_client_of_one_connection_can_not_answer_the_calls_of_another() {
    let brigd = Brigd::start();
    let mut victim = brigd.connect();
    let params = json!({"source": "return await svc.f({})", "hostFunctions": {"svc": {"f": {}}}});
    let id = victim.request("evaluate", &params);
    let call = victim.next_message();
    let mut attacker = brigd.connect();
    attacker.send(&json!({"jsonrpc": "2.0", "id": call.get("id"), "result": "forged"}));
    assert_eq!(attacker.evaluate("1").get("value"), Some(&json!(1)));
    victim.send(&json!({"jsonrpc": "2.0", "id": call.get("id"), "result": "honest"}));
    assert_eq!(victim.answer(id, &mut Handlers::none()).pointer("/result/value"), Some(&json!("honest")));
}

#[test]
fn a_client_that_never_reads_is_bounded_and_delays_nobody() {
    let brigd = Brigd::start();
    let mut greedy = brigd.connect();
    let before = brigd.rss_kib();
    let request = json!({"jsonrpc": "2.0", "id": 0, "method": "evaluate", "params": {"source": "'x'.repeat(1000000)"}});
    let mut sent = 0;
    for id in 0..400 {
        let mut request = request.clone();
        request.as_object_mut().expect("an object").insert("id".to_owned(), json!(id));
        let line = request.to_string() + "\n";
        if !greedy.try_send_raw(line.as_bytes()) {
            break;
        }
        sent += 1;
    }
    assert!(sent > 0);
    for _ in 0..10 {
        works(&brigd);
    }
    let grown = brigd.rss_kib().saturating_sub(before);
    assert!(grown < 160 * 1024, "brigd grew by {grown} KiB");
}

#[test]
fn more_requests_in_flight_than_allowed_are_refused_and_every_one_is_answered() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let params = json!({"source": "return await svc.f({})", "hostFunctions": {"svc": {"f": {}}}, "timeoutMs": 5000});
    let count = 600;
    for _ in 0..count {
        client.request("evaluate", &params);
    }
    let mut answered = 0;
    let mut refused = 0;
    let deadline = Instant::now() + DEADLINE;
    while answered < count {
        let Incoming::Message(message) = client.next_until(deadline) else { panic!("{answered} of {count} were answered") };
        if message.get("method").is_some() {
            client.send(&json!({"jsonrpc": "2.0", "id": message.get("id"), "result": 1}));
        } else {
            answered += 1;
            if message.get("error").is_some() {
                refused += 1;
                let data = message.pointer("/error/data").cloned().unwrap_or_default();
                assert_eq!(data.get("retryable"), Some(&json!(true)), "{message}");
            }
        }
    }
    assert!(refused < count, "nothing ran at all");
    works(&brigd);
}

#[test]
fn thousands_of_connections_do_not_lock_others_out_for_good() {
    let brigd = Brigd::start();
    let mut held = Vec::new();
    for _ in 0..1500 {
        match std::os::unix::net::UnixStream::connect(brigd.socket()) {
            Ok(stream) => held.push(stream),
            Err(_) => break,
        }
    }
    drop(held);
    let deadline = Instant::now() + DEADLINE;
    loop {
        let mut client = brigd.connect();
        let sent = client.try_send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"evaluate\",\"params\":{\"source\":\"1\"}}\n");
        if sent && let Incoming::Message(answer) = client.next_until(Instant::now() + Duration::from_secs(5)) {
            if answer.pointer("/result/value") == Some(&json!(1)) {
                return;
            }
            // Until the closed ones are noticed, a new one is told to come again.
            assert_eq!(answer.pointer("/error/data/code"), Some(&json!("overloaded")), "{answer}");
        }
        assert!(Instant::now() < deadline, "nobody is served any more");
    }
}

/// Waits until brigd has no more processes below it than `count`.
fn settled(brigd: &Brigd, count: usize) {
    let deadline = Instant::now() + DEADLINE;
    while brigd.descendants().len() > count {
        assert!(Instant::now() < deadline, "{:?} are left", brigd.descendants());
        std::thread::yield_now();
    }
}

#[test]
fn the_evaluations_of_a_client_that_vanishes_end_with_it() {
    let brigd = Brigd::start();
    works(&brigd);
    let before = brigd.descendants().len();
    let mut clients: Vec<Client> = (0..6).map(|_| brigd.connect()).collect();
    for client in &mut clients {
        client.request("evaluate", &json!({"source": "await new Promise((r) => setTimeout(r, 50000))", "timeoutMs": 30000}));
        client.request("evaluate", &json!({"source": "while (true) {}", "timeoutMs": 30000}));
        client.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"eval");
    }
    drop(clients);
    // A spinning worker is gone long before its own limit would end it.
    // Ten is all there ever is while nothing runs: eight workers and their nursery. They
    // may not all have been there when they were counted.
    settled(&brigd, before.max(8) + 2);
    works(&brigd);
}

#[test]
fn cancel_ends_an_evaluation_with_the_outcome_cancelled() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let params = json!({"source": "console.log('begun'); return await svc.f({})", "hostFunctions": {"svc": {"f": {}}}});
    let id = client.request("evaluate", &params);
    let call = client.next_message();
    assert_eq!(call.get("method"), Some(&json!("host.call")), "{call}");
    client.send(&json!({"jsonrpc": "2.0", "method": "cancel", "params": {"id": id}}));
    let answer = client.answer(id, &mut Handlers::none());
    assert_eq!(answer.pointer("/result/outcome"), Some(&json!("cancelled")), "{answer}");
    assert_eq!(answer.pointer("/result/stdout"), Some(&json!("begun\n")), "{answer}");
    assert_eq!(answer.pointer("/result/calls/0/state"), Some(&json!("unknown")), "{answer}");
    assert!(client.notifications.iter().any(|note| note.get("method") == Some(&json!("host.cancel"))), "the handler was not told");
}

#[test]
fn nobody_can_cancel_the_evaluation_of_another_connection_by_its_request_id() {
    let brigd = Brigd::start();
    let mut victim = brigd.connect();
    let params = json!({"source": "return await svc.f({})", "hostFunctions": {"svc": {"f": {}}}});
    let id = victim.request("evaluate", &params);
    let call = victim.next_message();
    let mut other = brigd.connect();
    other.send(&json!({"jsonrpc": "2.0", "method": "cancel", "params": {"id": id}}));
    assert_eq!(other.evaluate("1").get("value"), Some(&json!(1)));
    victim.send(&json!({"jsonrpc": "2.0", "id": call.get("id"), "result": 5}));
    assert_eq!(victim.answer(id, &mut Handlers::none()).pointer("/result/value"), Some(&json!(5)));
}

#[test]
fn those_who_wait_for_the_answer_of_one_key_and_do_not_read_it_are_bounded() {
    let brigd = Brigd::start();
    let params = json!({"source": "'x'.repeat(4000000)", "idempotencyKey": "one"});
    assert_eq!(brigd.connect().result("evaluate", &params).get("outcome"), Some(&json!("succeeded")));
    let before = brigd.rss_kib();
    let mut greedy = brigd.connect();
    for _ in 0..200 {
        greedy.request("evaluate", &params);
    }
    // Answered in order after them: they have been taken up.
    works(&brigd);
    let first = greedy.next_message();
    assert_eq!(first.pointer("/result/outcome"), Some(&json!("succeeded")));
    let grown = brigd.rss_kib().saturating_sub(before);
    assert!(grown < 128 * 1024, "brigd grew by {grown} KiB");
}

#[test]
fn inputs_of_calls_that_nobody_answers_are_bounded_and_end_no_connection() {
    let brigd = Brigd::start();
    let before = brigd.rss_kib();
    let mut client = brigd.connect();
    let source = "const x = 'y'.repeat(1000000); const all = [];
        for (let i = 0; i < 60; i++) all.push(svc.f({ x }).catch((e) => e.code));
        return await Promise.race(all)";
    let count = 4;
    for _ in 0..count {
        client.request("evaluate", &json!({"source": source, "hostFunctions": {"svc": {"f": {}}}, "timeoutMs": 20000}));
    }
    let deadline = Instant::now() + DEADLINE;
    let mut ended = 0;
    while ended < count {
        match client.next_until(deadline) {
            Incoming::Message(message) if message.get("method").is_none() => {
                let code = message.pointer("/result/value").or_else(|| message.pointer("/result/error/code")).cloned();
                assert!([Some(json!("call_limit")), Some(json!("timed_out"))].contains(&code), "{code:?}");
                ended += 1;
            }
            Incoming::Message(_) => {}
            other => panic!("{ended} ended: {other:?}"),
        }
        let grown = brigd.rss_kib().saturating_sub(before);
        assert!(grown < 128 * 1024, "brigd grew by {grown} KiB");
    }
    works(&brigd);
}

#[test]
fn a_key_whose_client_went_away_before_anything_came_of_it_runs_for_whoever_asks_again() {
    let brigd = Brigd::start();
    let params = json!({"source": "await new Promise((r) => setTimeout(r, 300)); return 7", "idempotencyKey": "again",
        "announce": true});
    let mut first = brigd.connect();
    first.request("evaluate", &params);
    assert_eq!(first.next_message().get("method"), Some(&json!("evaluation.started")));
    let mut second = brigd.connect();
    let id = second.request("evaluate", &params);
    drop(first);
    let answer = second.answer(id, &mut Handlers::none());
    assert_eq!(answer.pointer("/result/value"), Some(&json!(7)), "{answer}");
    let again = brigd.connect().result("evaluate", &params);
    assert_eq!(again.get("evaluation"), answer.pointer("/result/evaluation"));
}

#[test]
fn a_request_whose_schemas_take_long_can_be_cancelled_and_delays_no_other_user() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let property =
        |index: usize| (format!("p{index}"), json!({"type": "string", "pattern": format!("^([a-z\\d]{{1,30}}_){{1,{}}}$", 2 + index % 5)}));
    let schema = |number: usize| {
        let properties: serde_json::Map<String, Value> = (0..150).map(property).collect();
        json!({"inputSchema": {"title": format!("{number}"), "type": "object", "properties": properties}})
    };
    let functions: serde_json::Map<String, Value> = (0..300).map(|number| (format!("f{number}"), schema(number))).collect();
    let id = client.request("evaluate", &json!({"source": "1", "hostFunctions": {"svc": functions}}));
    client.send(&json!({"jsonrpc": "2.0", "method": "cancel", "params": {"id": id}}));
    let answer = client.answer(id, &mut Handlers::none());
    assert_eq!(answer.pointer("/error/data/code"), Some(&json!("cancelled")), "{answer}");
    works(&brigd);
}

#[test]
fn inherited_and_odd_names_are_no_functions() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    for name in ["items.constructor", "items.toString", "__proto__.get", "items.__proto__", "constructor.prototype", "", "items..get"] {
        let answer = client.call("functions.call", &json!({"function": name, "input": {}}));
        let message = answer.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
        assert!(message.contains(&format!("{name:?}")), "{name:?}: {answer}");
    }
    works(&brigd);
}
