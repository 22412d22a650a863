//! The `brig` command against a server that a test plays.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod fake;

use fake::{FakeServer, Peer, ended, succeeded};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn brig(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brig"));
    command.args(arguments).env_remove("BRIG_SOCKET").env("BRIGD", "/nowhere/brigd").stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs the command against a server that plays `script`.
fn with_server(arguments: &[&str], script: impl FnOnce(&mut Peer) + Send + 'static) -> Output {
    let server = FakeServer::start(script);
    let output = brig(arguments).arg("--socket").arg(server.socket()).output().unwrap();
    server.finish();
    output
}

fn answering(result: Value) -> impl FnOnce(&mut Peer) + Send + 'static {
    move |peer| {
        let request = peer.expect("evaluate");
        peer.answer(&request, &result);
    }
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn script(folder: &Path, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = file(folder, name, &format!("#!/bin/sh\n{text}\n"));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn the_value_is_standard_output_and_nothing_else_is() {
    let mut result = succeeded(json!({"refunded": 1, "total": 2}));
    result["stdout"] = json!("from the program\u{1b}[2J\n");
    result["warnings"] = json!([{"code": "lossy_value", "message": "a NaN became null", "path": "$.a"}]);
    let output = with_server(&["eval", "1"], answering(result));
    assert_eq!(text(&output.stdout), "{\n  \"refunded\": 1,\n  \"total\": 2\n}\n");
    let errors = text(&output.stderr);
    assert!(errors.contains("from the program\\u{1b}[2J\n") && errors.contains("warning at $.a: a NaN became null"), "{errors}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn console_output_is_passed_through_as_it_comes_and_printed_once() {
    let output = with_server(&["eval", "1"], |peer| {
        let request = peer.expect("evaluate");
        peer.started(&request, "ev_1");
        peer.notify("evaluation.output", &json!({"evaluation": "ev_1", "stream": "stdout", "text": "hello\n"}));
        let mut result = succeeded(json!(1));
        result["stdout"] = json!("hello\n");
        peer.answer(&request, &result);
    });
    assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), ("1\n", "hello\n"));
}

#[test]
fn every_outcome_has_its_exit_code() {
    for (result, code) in [
        (ended("failed", "guest_error"), 1),
        (ended("failed", "syntax_error"), 1),
        (ended("failed", "memory_limit"), 3),
        (ended("timed_out", "timed_out"), 4),
        (ended("cancelled", "cancelled"), 5),
        (ended("failed", "worker_crashed"), 8),
    ] {
        let output = with_server(&["eval", "1"], answering(result.clone()));
        assert_eq!(output.status.code(), Some(code), "{result}");
        assert!(output.stdout.is_empty());
        assert!(text(&output.stderr).contains("Error: boom"), "{}", text(&output.stderr));
    }
}

#[test]
fn a_refusal_a_lost_connection_and_an_unreachable_brigd_have_theirs() {
    let refused = with_server(&["eval", "1"], |peer| {
        let request = peer.expect("evaluate");
        let data = json!({"code": "overloaded", "message": "busy", "retryable": true});
        peer.write(&json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32000, "message": "busy", "data": data}}));
    });
    assert_eq!(refused.status.code(), Some(6));
    assert!(text(&refused.stderr).contains("nothing ran"));
    let lost = with_server(&["eval", "1"], |peer| drop(peer.expect("evaluate")));
    assert_eq!(lost.status.code(), Some(9));
    let unreachable = brig(&["eval", "1", "--socket", "/nowhere/brig.sock"]).output().unwrap();
    assert_eq!(unreachable.status.code(), Some(7));
    assert!(text(&unreachable.stderr).contains("/nowhere/brig.sock"));
    let no_binary = brig(&["eval", "1", "--private"]).output().unwrap();
    assert_eq!(no_binary.status.code(), Some(7));
    assert!(text(&no_binary.stderr).contains("BRIGD names /nowhere/brigd"), "{}", text(&no_binary.stderr));
}

#[test]
fn json_is_the_whole_result_on_one_line() {
    let output = with_server(&["eval", "1", "--json"], answering(ended("failed", "guest_error")));
    let line = text(&output.stdout);
    assert_eq!(line.matches('\n').count(), 1);
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["error"]["code"], "guest_error");
    assert!(output.stderr.is_empty());
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn an_error_is_shown_in_the_source() {
    let folder = tempfile::tempdir().unwrap();
    let program = file(folder.path(), "program.js", "const a = 1;\nthrow new Error('boom');\n");
    let mut result = ended("failed", "guest_error");
    result["error"]["line"] = json!(2);
    result["error"]["column"] = json!(7);
    let output = with_server(&["run", &program], answering(result));
    let errors = text(&output.stderr);
    assert!(errors.contains("program.js:2:7") && errors.contains("throw new Error('boom');") && errors.contains("^^^"), "{errors}");
    assert!(!errors.contains('\u{1b}'), "no colours in a pipe");
}

#[test]
fn everything_that_the_arguments_say_is_in_the_request() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = file(folder.path(), "in.json", "{\n \"a\": 1,\n \"b\": 2\n}");
    let arguments = [
        "eval",
        "1",
        "--inputs",
        &inputs,
        "--inputs",
        "b=text",
        "--timeout",
        "5s",
        "--limit",
        "heapBytes=1MiB",
        "--allow",
        "orders.*",
        "--deny",
        "orders.refund",
        "--form",
        "expression",
        "--time-zone",
        "Europe/Prague",
        "--quiet",
    ];
    let output = with_server(&arguments, |peer| {
        let request = peer.expect("evaluate");
        let both = json!(["invoke", "list"]);
        let rules = json!([{"mode": "allow", "operations": both, "patterns": ["orders.*"]}, {"mode": "deny", "operations": both, "patterns": ["orders.refund"]}]);
        let expected = json!({"source": "1", "form": "expression", "inputs": {"a": 1, "b": "text"}, "timeoutMs": 5000,
            "limits": {"heapBytes": 1 << 20}, "permissions": {"hostFunction": {"rules": rules}}, "timeZone": "Europe/Prague"});
        assert_eq!(request["params"], expected);
        peer.answer(&request, &succeeded(json!(1)));
    });
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn a_program_comes_from_standard_input_too() {
    for arguments in [["eval", "-"], ["run", "-"]] {
        let server = FakeServer::start(|peer| {
            let request = peer.expect("evaluate");
            assert_eq!(request["params"]["source"], "return 1");
            peer.answer(&request, &succeeded(json!(1)));
        });
        let mut child = brig(&arguments).arg("--socket").arg(server.socket()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"return 1").unwrap();
        assert_eq!(text(&child.wait_with_output().unwrap().stdout), "1\n");
        server.finish();
    }
}

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

#[test]
fn ctrl_c_cancels_and_still_prints_what_there_is() {
    let (tell, told) = std::sync::mpsc::channel();
    let server = FakeServer::start(move |peer| {
        let request = peer.expect("evaluate");
        tell.send(()).unwrap();
        peer.expect("cancel");
        let mut result = ended("cancelled", "cancelled");
        result["stdout"] = json!("so far\n");
        result["calls"] =
            json!([{"call": 1, "function": "orders.refund", "state": "completed", "durationMs": 1, "inputBytes": 2, "outputBytes": 4}]);
        peer.answer(&request, &result);
    });
    let child = brig(&["eval", "1"]).arg("--socket").arg(server.socket()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    told.recv_timeout(fake::DEADLINE).unwrap();
    wait_until_it_catches_interrupts(child.id());
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    let errors = text(&output.stderr);
    assert!(errors.contains("so far") && errors.contains("orders.refund") && errors.contains("completed"), "{errors}");
    server.finish();
}

/// The request may be on its way a moment before the handler of the signal is there.
fn wait_until_it_catches_interrupts(pid: u32) {
    let caught = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim().to_owned();
        u64::from_str_radix(&mask, 16).unwrap() & (1 << 1) != 0
    };
    let deadline = std::time::Instant::now() + fake::DEADLINE;
    while !caught() {
        assert!(std::time::Instant::now() < deadline);
        std::thread::yield_now();
    }
}

#[test]
fn a_closed_pipe_is_quiet() {
    let server = FakeServer::start(answering(succeeded(json!("x".repeat(1 << 20)))));
    let mut child =
        brig(&["eval", "1"]).arg("--socket").arg(server.socket()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut errors = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut errors).unwrap();
    assert_eq!((errors.as_str(), child.wait().unwrap().code()), ("", Some(0)));
    server.finish();
}

#[test]
fn output_that_can_not_be_written_is_one_line_and_an_exit_code_of_its_own() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let told = |output: &Output| {
        let errors = text(&output.stderr);
        assert_eq!((output.status.code(), errors.matches('\n').count()), (Some(10), 1), "{errors}");
        assert!(errors.starts_with("brig: standard output can not be written: "), "{errors}");
    };
    for arguments in [&["eval", "1"][..], &["eval", "1", "--json"]] {
        let server = FakeServer::start(answering(succeeded(json!(1))));
        told(&brig(arguments).arg("--socket").arg(server.socket()).stdout(full()).output().unwrap());
        server.finish();
    }
    let server = FakeServer::start(|peer| {
        let request = peer.expect("check");
        peer.answer(&request, &json!({"ok": true}));
    });
    told(&brig(&["check", "-", "--json"]).arg("--socket").arg(server.socket()).stdout(full()).output().unwrap());
    server.finish();
    for arguments in
        [&["version", "--json", "--socket", "/nowhere.sock"][..], &["doctor", "--socket", "/nowhere.sock"], &["--help"], &["--version"]]
    {
        told(&brig(arguments).stdout(full()).output().unwrap());
    }
}

#[test]
fn with_json_an_error_without_a_result_is_a_line_of_json_too() {
    let refused = with_server(&["eval", "1", "--json"], |peer| {
        let request = peer.expect("evaluate");
        let data = json!({"code": "overloaded", "message": "busy", "retryable": true, "retryAfterMs": 5});
        peer.write(&json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32000, "message": "busy", "data": data}}));
    });
    let object = |output: &Output| {
        assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout).matches('\n').count(), 1);
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    assert_eq!(object(&refused), json!({"error": {"code": "overloaded", "message": "busy", "retryable": true, "retryAfterMs": 5}}));
    assert_eq!(refused.status.code(), Some(6));
    let unreachable = brig(&["check", "-", "--json", "--socket", "/nowhere/brig.sock"]).output().unwrap();
    assert_eq!((&object(&unreachable)["error"]["code"], unreachable.status.code()), (&json!("unreachable"), Some(7)));
    let lost = with_server(&["eval", "1", "--json"], |peer| drop(peer.expect("evaluate")));
    assert_eq!((&object(&lost)["error"]["code"], lost.status.code()), (&json!("connection_lost"), Some(9)));
}

#[test]
fn an_empty_variable_names_no_socket() {
    let output = brig(&["eval", "1", "--private"]).env("BRIG_SOCKET", "").output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    let named = brig(&["eval", "1"]).env("BRIG_SOCKET", "/nowhere/brig.sock").output().unwrap();
    assert!(text(&named.stderr).contains("/nowhere/brig.sock"), "{}", text(&named.stderr));
}

#[test]
fn a_private_brigd_that_was_asked_for_is_said_to_be_so() {
    let folder = tempfile::tempdir().unwrap();
    // Whoever connects to its socket comes to the test's. An empty variable is not passed on.
    script(folder.path(), "brigd", "[ -z \"${BRIG_WORKER+set}\" ] && ln -s \"$REAL_SOCKET\" \"$2\" && exec cat");
    let server = FakeServer::start(answering(succeeded(json!(1))));
    let mut command = brig(&["eval", "1", "--private"]);
    command.env("BRIGD", folder.path().join("brigd")).env("REAL_SOCKET", server.socket()).env("BRIG_WORKER", "");
    let output = command.output().unwrap();
    server.finish();
    let errors = text(&output.stderr);
    assert!(errors.starts_with("brig: as asked: started a private ") && !errors.contains("no service"), "{errors}");
}

#[test]
fn a_quiet_run_still_tells_of_a_collection_that_was_not_defined() {
    let message = "the collection JSON was not defined: JSON is already a global";
    let clash = || {
        let mut result = succeeded(json!(1));
        result["stderr"] = json!(format!("{message}\n"));
        result["warnings"] = json!([{"code": "collection_not_defined", "message": message}, {"code": "lossy_value", "message": "lost"}]);
        result
    };
    assert_eq!(text(&with_server(&["eval", "1"], answering(clash())).stderr), format!("{message}\nwarning: lost\n"));
    assert_eq!(text(&with_server(&["eval", "1", "-q"], answering(clash())).stderr), format!("warning: {message}\n"));
}

#[test]
fn a_quiet_check_says_nothing_of_a_program_without_problems() {
    for (arguments, said) in [(&["check", "-"][..], "standard input: no problems\n"), (&["check", "-q", "-"], "")] {
        let output = with_server(arguments, |peer| {
            let request = peer.expect("check");
            peer.answer(&request, &json!({"ok": true}));
        });
        assert_eq!((text(&output.stderr).as_str(), output.status.code()), (said, Some(0)));
    }
}

#[test]
fn bad_input_files_are_told_with_their_place_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let wrong_json = file(folder.path(), "wrong.json", "{\n  \"a\": 1,\n  oops\n}");
    let no_handler = file(folder.path(), "functions.json", "{\"orders\": {\n  \"list\": {\"description\": \"x\"}\n}}");
    let misspelt = file(folder.path(), "misspelt.json", "{\"orders\": {\n  \"list\": {\"comand\": [\"x\"]}\n}}");
    let array = file(folder.path(), "array.json", "[1]");
    for (arguments, expected) in [
        (vec!["eval", "1", "--inputs", &wrong_json], "wrong.json:3:3:"),
        (vec!["eval", "1", "--functions", &no_handler], "functions.json:2:11:"),
        (vec!["eval", "1", "--functions", &misspelt], "misspelt.json:2:"),
        (vec!["eval", "1", "--functions", &misspelt], "did you mean \"command\"?"),
        (vec!["eval", "1", "--inputs", &array], "array.json:1:1: inputs must be a JSON object, not an array"),
        (vec!["eval", "1", "--inputs", "a:={bad"], "brig: --inputs a, column 2: "),
        (vec!["eval", "1", "--inputs", "/nowhere.json"], "/nowhere.json"),
        (vec!["run", "/nowhere.js"], "/nowhere.js"),
        (vec!["eval", "1", "--timeout", "5"], "5s"),
        (vec!["eval", "1", "--limit", "heap=1"], "heapBytes"),
        (vec!["eval"], "PROGRAM"),
    ] {
        let output = brig(&arguments).output().unwrap();
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(expected), "{expected} is not in {errors}");
    }
}

#[test]
fn the_exit_codes_are_in_the_help() {
    for command in [
        &["--help"][..],
        &["eval", "--help"],
        &["run", "--help"],
        &["check", "--help"],
        &["version", "--help"],
        &["doctor", "--help"],
        &["repl", "--help"],
    ] {
        let help = text(&brig(command).output().unwrap().stdout);
        assert!(help.contains("Exit codes:") && help.contains("4   the wall-clock limit passed"), "{help}");
    }
}

#[test]
fn check_and_version_say_what_brigd_says() {
    let bad = with_server(&["check", "-"], |peer| {
        let request = peer.expect("check");
        let error = json!({"code": "syntax_error", "name": "SyntaxError", "message": "unexpected token", "line": 1, "column": 1, "retryable": false});
        peer.answer(&request, &json!({"ok": false, "error": error}));
    });
    assert_eq!(bad.status.code(), Some(1));
    assert!(text(&bad.stderr).contains("unexpected token"));
    let limits: serde_json::Map<String, Value> =
        brig::protocol::limits::LIMITS.iter().map(|row| (row.name.to_owned(), json!(row.default))).collect();
    let version = with_server(&["version"], move |peer| {
        let request = peer.expect("initialize");
        peer.answer(
            &request,
            &json!({"protocolVersion": "1", "server": {"name": "brigd", "version": "9.9.9"}, "limits": limits,
                "sandbox": {"level": "strong", "layers": []}, "principal": {"uid": 0, "gid": 0}}),
        );
    });
    assert!(text(&version.stdout).contains("brigd 9.9.9"), "{}", text(&version.stderr));
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

/// A brigd whose guests get out: each attack comes to another value, and the denied
/// function is called.
fn broken_brigd(peer: &mut Peer) {
    let request = peer.expect("initialize");
    peer.answer(&request, &json!({}));
    // The attacks, and the harmless program after them.
    for _ in 0..16 {
        let request = peer.expect("evaluate");
        if request["params"]["source"].as_str().unwrap().contains("call a denied function") {
            peer.started(&request, "ev_1");
            peer.call("c1", "ev_1", 1, "host.secret", &json!({}));
            peer.read();
        }
        peer.answer(&request, &succeeded(json!("got out")));
    }
}

#[test]
fn doctor_tells_a_brigd_whose_guests_get_out_from_one_that_holds() {
    let output = with_server(&["doctor", "--attack"], broken_brigd);
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{told}");
    for line in ["problem  attack cpu-loop", "problem  attack reach-import", "problem  after the attacks"] {
        assert!(told.contains(line), "no {line:?} in {told}");
    }
    assert!(told.contains("it reached a function that is denied") && told.contains("SECURITY.md"), "{told}");
}

/// Plays the answers to `brig call shop list-all …`: the list, the schema where it is asked
/// for, and then the call.
fn shop(result: Option<Value>) -> impl FnOnce(&mut Peer) + Send + 'static {
    move |peer| {
        let listed = peer.expect("functions.list");
        let about = json!({"function": "shop.listAll", "collection": "shop", "description": "", "effect": "read"});
        peer.answer(&listed, &json!({"functions": [about]}));
        let call = peer.expect("functions.call");
        assert_eq!(call["params"]["function"], "shop.listAll");
        if let Some(result) = result {
            peer.answer(&call, &result);
        }
    }
}

fn call_record(state: &str) -> Value {
    json!({"call": 1, "function": "shop.listAll", "state": state, "durationMs": 1.0, "inputBytes": 2, "outputBytes": 0})
}

#[test]
fn only_a_call_that_completed_with_a_value_is_a_success() {
    let error = json!({"code": "function_failed", "message": "no\n\u{1b}[2Jorders"});
    for (result, code, said) in [
        (json!({"call": call_record("completed"), "value": null}), 0, ""),
        (json!({"call": call_record("completed"), "error": error}), 1, "function_failed: no\\u{a}\\u{1b}[2Jorders\n"),
        (json!({"call": call_record("completed")}), 9, "protocol_error: "),
        (json!({"call": call_record("unknown"), "value": 1}), 9, "protocol_error: "),
        (json!({"call": call_record("failed"), "error": error}), 1, "function_failed: no\\u{a}\\u{1b}[2Jorders\n"),
        (json!({"call": call_record("refused"), "error": error}), 6, "function_failed: "),
        (json!({"call": call_record("unknown"), "error": error}), 9, "unknown\n"),
    ] {
        let output = with_server(&["call", "shop", "list-all"], shop(Some(result.clone())));
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{result}: {errors}");
        assert!(errors.contains(said) && errors.lines().count() <= 1 && !errors.contains('\u{1b}'), "{result}: {errors:?}");
        assert_eq!(output.stdout.is_empty(), code != 0);
    }
}

#[test]
fn a_connection_that_is_lost_during_a_call_leaves_its_effect_unknown() {
    let output = with_server(&["call", "shop", "list-all"], shop(None));
    assert_eq!(output.status.code(), Some(9));
    assert!(text(&output.stderr).starts_with("connection_lost: "), "{}", text(&output.stderr));
}

#[test]
fn a_call_that_is_interrupted_is_cancelled_and_its_state_is_told() {
    let (sender, called) = std::sync::mpsc::channel();
    let server = FakeServer::start(move |peer| {
        let listed = peer.expect("functions.list");
        peer.answer(&listed, &json!({"functions": []}));
        let call = peer.expect("functions.call");
        assert_eq!(call["params"]["function"], "shop:list-all");
        sender.send(()).unwrap();
        let cancel = peer.expect("cancel");
        assert_eq!(cancel["params"]["id"], call["id"]);
        let error = json!({"code": "cancelled", "message": "it was cancelled"});
        peer.answer(&call, &json!({"call": call_record("unknown"), "error": error}));
    });
    let child =
        brig(&["call", "shop", "list-all", "--socket"]).arg(server.socket()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    called.recv_timeout(fake::DEADLINE).unwrap();
    let pid = nix::unistd::Pid::from_raw(child.id().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    server.finish();
    assert_eq!(output.status.code(), Some(9));
    assert!(text(&output.stderr).starts_with("cancelled: it was cancelled; whether"), "{}", text(&output.stderr));
}

#[test]
fn names_that_meet_in_their_spelling_are_refused_and_nothing_is_called_or_linked() {
    let functions = json!({"functions": [
        {"function": "shop.listAll", "collection": "shop", "description": "", "effect": "read"},
        {"function": "shop.list_all", "collection": "shop", "description": "", "effect": "read"},
        {"function": "Shop.x", "collection": "Shop", "description": "", "effect": "read"},
    ]});
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap().to_owned();
    for arguments in [vec!["call", "shop", "list-all"], vec!["link", &place]] {
        let functions = functions.clone();
        let output = with_server(&arguments, move |peer| {
            let listed = peer.expect("functions.list");
            peer.answer(&listed, &functions);
            assert!(peer.closed(), "something was asked for");
        });
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("\"Shop\" and \"shop\""), "{}", text(&output.stderr));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
