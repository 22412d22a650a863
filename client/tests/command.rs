//! The `brig` command against a server that a test plays.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

#[path = "command/call.rs"]
mod call;
#[path = "command/functions_file.rs"]
mod functions_file;
#[path = "command/quiet.rs"]
mod quiet;

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

fn script(folder: &Path, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = file(folder, name, &format!("#!/bin/sh\n{text}\n"));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
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
