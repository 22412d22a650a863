//! What is said where little is to be said, and of output that nobody takes.

use super::*;

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
