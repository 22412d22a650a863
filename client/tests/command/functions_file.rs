//! Handlers that are commands of a file.

use super::*;

/// Calls functions of a `functions.json` and gives their answers.
fn answers(folder: &Path, functions: &Value, calls: &[(&'static str, Value)]) -> Vec<Value> {
    let path = file(folder, "functions.json", &serde_json::to_string_pretty(functions).unwrap());
    let (tell, told) = std::sync::mpsc::channel();
    let calls = calls.to_vec();
    let output = with_server(&["eval", "1", "--functions", &path], move |peer| {
        let request = peer.expect("evaluate");
        peer.started(&request, "ev_1");
        for (number, (function, input)) in calls.iter().enumerate() {
            peer.call(&format!("c{number}"), "ev_1", 1, function, input);
            tell.send(peer.read()).unwrap();
        }
        peer.answer(&request, &succeeded(json!(1)));
    });
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    told.iter().collect()
}

#[test]
fn a_command_gets_its_input_and_gives_its_output_without_a_shell() {
    let folder = tempfile::tempdir().unwrap();
    script(
        folder.path(),
        "echo.sh",
        r#"read -r input; printf '{"input":%s,"argument":"%s","function":"%s","folder":"%s"}' "$input" "$1" "$BRIG_FUNCTION" "$PWD""#,
    );
    script(folder.path(), "silent.sh", "exit 0");
    script(folder.path(), "bad.sh", "echo nonsense");
    let functions = json!({"f": {
        "echo": {"command": ["./echo.sh", "$(id) *"]}, "silent": {"command": ["./silent.sh"]}, "bad": {"command": ["./bad.sh"]},
        "fixed": {"static": {"a": null}}, "absent": {"command": ["./absent.sh"]}, "on-path": {"command": ["cat"]}}});
    let call = |name| (name, json!({"a": "x\n"}));
    let all = answers(
        folder.path(),
        &functions,
        &[call("f.echo"), call("f.silent"), call("f.bad"), call("f.fixed"), call("f.absent"), call("f.on-path")],
    );
    let own = std::fs::canonicalize(folder.path()).unwrap();
    assert_eq!(all[0]["result"], json!({"input": {"a": "x\n"}, "argument": "$(id) *", "function": "f.echo", "folder": own}));
    assert_eq!(all[1]["result"], Value::Null);
    assert_eq!(all[2]["error"]["data"]["code"], "bad_output");
    assert_eq!(all[3]["result"], json!({"a": null}));
    assert_eq!(all[4]["error"]["data"]["code"], "not_started");
    assert!(!all[4].to_string().contains("absent.sh"), "no path of the host for the guest: {}", all[4]);
    assert_eq!(all[5]["result"], json!({"a": "x\n"}));
}

#[test]
fn a_command_fails_with_its_exit_code_or_with_an_error_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    script(folder.path(), "exit.sh", "echo 'no such order' >&2; exit 3");
    script(folder.path(), "told.sh", r#"echo '{"message":"slow down","code":"rate_limited","data":{"retryAfter":2}}'; exit 1"#);
    script(folder.path(), "signal.sh", "kill -TERM $$");
    script(folder.path(), "loud.sh", "while :; do echo 0123456789012345678901234567890123456789; done | head -c 100000 >&2; exit 1");
    let functions = json!({"f": {"exit": {"command": ["./exit.sh"]}, "told": {"command": ["./told.sh"]},
        "signal": {"command": ["./signal.sh"]}, "loud": {"command": ["./loud.sh"]}}});
    let call = |name| (name, json!({}));
    let all = answers(folder.path(), &functions, &[call("f.exit"), call("f.told"), call("f.signal"), call("f.loud")]);
    assert_eq!((&all[0]["error"]["data"]["code"], &all[0]["error"]["message"]), (&json!("exit_3"), &json!("no such order")));
    assert_eq!(all[1]["error"]["data"], json!({"code": "rate_limited", "data": {"retryAfter": 2}}));
    assert_eq!(all[2]["error"]["data"]["code"], "signal_15");
    assert!(all[3]["error"]["message"].as_str().unwrap().len() <= 2048);
}

#[test]
fn a_cancelled_call_kills_its_command_and_what_that_started() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("held");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // The child holds the pipe open for writing for as long as it lives.
    script(folder.path(), "slow.sh", "sleep 1000 > held & wait");
    let path = file(folder.path(), "functions.json", &json!({"f": {"slow": {"command": ["./slow.sh"]}}}).to_string());
    let output = with_server(&["eval", "1", "--functions", &path], move |peer| {
        let request = peer.expect("evaluate");
        peer.call("c1", "ev_1", 1, "f.slow", &json!({}));
        // Opens once the child is there, and ends once it is gone.
        let mut held = std::fs::File::open(fifo).unwrap();
        peer.notify("host.cancel", &json!({"id": "c1", "evaluation": "ev_1", "call": 1, "reason": "function_timed_out"}));
        assert_eq!(peer.read()["error"]["data"]["code"], "cancelled");
        assert_eq!(held.read_to_end(&mut Vec::new()).unwrap(), 0);
        peer.answer(&request, &succeeded(json!(1)));
    });
    assert_eq!(output.status.code(), Some(0));
}

/// The repository's `examples/`.
fn examples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

#[test]
fn the_handlers_of_the_refund_example_do_what_they_say() {
    let folder = examples().join("refund");
    let (program, functions, inputs) = (folder.join("program.js"), folder.join("functions.json"), folder.join("inputs.json"));
    let arguments = ["run", program.to_str().unwrap(), "--functions", functions.to_str().unwrap(), "--inputs", inputs.to_str().unwrap()];
    let output = with_server(&arguments, |peer| {
        let request = peer.expect("evaluate");
        assert_eq!(request["params"]["inputs"], json!({"customer": "customer_123"}));
        let mut ask = |function, input: Value| {
            peer.call("c", "ev_1", 1, function, &input);
            peer.read()
        };
        let list = ask("orders.list", json!({"customer": "customer_123"}));
        let second = json!({"id": "o_2", "customer": "customer_123", "total": 2, "status": "pending"});
        assert_eq!((&list["result"][0]["status"], &list["result"][1]), (&json!("shipped"), &second));
        assert_eq!(ask("orders.list", json!({"customer": "customer_9"}))["result"], json!([]));
        assert_eq!(ask("orders.refund", json!({"orderId": "o_2"}))["result"], json!({"orderId": "o_2", "refunded": true}));
        let refused = ask("orders.refund", json!({"orderId": "o_1"}));
        assert_eq!(refused["error"]["data"], json!({"code": "not_pending", "data": {"status": "shipped"}}));
        assert_eq!(ask("orders.refund", json!({"orderId": "o_9"}))["error"]["data"]["code"], "not_found");
        peer.answer(&request, &succeeded(json!(1)));
    });
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}
