//! `brig call`: one call, and what became of it.

use super::*;

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
