//! Calls with a key, across the end of brigd.

use super::*;

#[test]
fn a_call_with_a_key_is_answered_and_never_run_again_after_kill_9_at_every_stage() {
    let request = json!({"function": "shop.gate", "idempotencyKey": "once"});
    for (stage, ran, state, ended) in STAGES {
        let place = Place::new();
        keep_open(&gated(&place, ""));
        let options = || place.options("");
        let mut brigd = options().env("BRIG_TEST_KILL_AT", &stage.to_string()).start();
        let mut client = brigd.connect();
        client.request("functions.call", &request);
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&brigd.wait()), Some(9), "stage {stage}: {}", brigd.log());
        assert_eq!(marks(&place), *ran, "stage {stage}");
        let mut brigd = options().start();
        let result = brigd.connect().result("functions.call", &request);
        let code = if *ended { "-" } else { "interrupted" };
        assert_eq!(state_and_code(&result), ((*state).to_owned(), code.to_owned()), "stage {stage}: {result}");
        assert_eq!(result.get("value").is_some(), *ended, "stage {stage}: {result}");
        assert_eq!(result.pointer("/error/code").is_none(), *ended, "stage {stage}: {result}");
        brigd.signal(Signal::SIGKILL);
        brigd.wait();
        // As often as it is asked, across as many restarts.
        let again = options().start().connect().result("functions.call", &request);
        assert_eq!(again, result, "stage {stage}");
        assert_eq!(marks(&place), *ran, "stage {stage}: it ran again");
    }
}

#[test]
fn a_call_that_runs_when_brigd_is_killed_is_unknown_and_its_key_is_for_nothing_else() {
    let place = Place::new();
    let fifo = gated(&place, "");
    let options = || place.options("");
    let request = json!({"function": "shop.gate", "idempotencyKey": "once"});
    let mut brigd = options().start();
    let mut client = brigd.connect();
    client.request("functions.call", &request);
    until("it runs", || marks(&place) == 1);
    brigd.signal(Signal::SIGKILL);
    brigd.wait();
    keep_open(&fifo);
    let brigd = options().start();
    let result = brigd.connect().result("functions.call", &request);
    assert_eq!(state_and_code(&result), ("unknown".to_owned(), "interrupted".to_owned()), "{result}");
    assert!(message(&result).contains("is unknown") && message(&result).contains("not run again"), "{result}");
    for (method, params) in [
        ("functions.call", json!({"function": "shop.gate", "input": {"a": 1}, "idempotencyKey": "once"})),
        ("evaluate", json!({"source": "1", "idempotencyKey": "once"})),
    ] {
        let other = brigd.connect().call(method, &params);
        assert_eq!(other.pointer("/error/data/code"), Some(&json!("idempotency_conflict")), "{other}");
    }
    assert_eq!(marks(&place), 1);
    // Another key is another call.
    let other = brigd.connect().result("functions.call", &json!({"function": "shop.gate", "idempotencyKey": "other"}));
    assert_eq!(other.get("value"), Some(&json!(true)), "{other}");
    assert_eq!(marks(&place), 2);
}

#[test]
fn calls_without_a_program_do_not_fill_the_journal() {
    let place = Place::new();
    place.collection("shop", &place.function("echo", "", "args = [\"echo\"]"));
    let brigd = place.options("[journal]\nevaluations_each = 3").start();
    let mut client = brigd.connect();
    for _ in 0..8 {
        assert_eq!(value(&mut client, "shop.echo", &json!({"a": 1})), json!({"a": 1}));
    }
}

#[test]
fn without_a_state_directory_a_function_that_may_change_something_is_not_there_and_the_log_says_why() {
    let place = Place::new();
    place.collection("look", &place.function("echo", "effect = \"read\"", "args = [\"echo\"]"));
    place.collection(
        "act",
        &(place.function("echo", "", "args = [\"echo\"]") + &place.function("see", "effect = \"read\"", "args = [\"echo\"]")),
    );
    let folder = place.path("functions.d").display().to_string();
    let options = BrigdOptions::default().config(&format!("[functions]\ndir = {folder:?}\n"));
    let brigd = options.clone().start();
    let mut client = brigd.connect();
    assert_eq!(value(&mut client, "look.echo", &json!({"a": 1})), json!({"a": 1}));
    for function in ["act.echo", "act.see"] {
        let answer = client.call("functions.call", &json!({"function": function, "input": {}}));
        assert_eq!(answer.pointer("/error/data/code"), Some(&json!("invalid_params")), "{answer}");
        assert!(answer.to_string().contains("there is no configured function"), "{answer}");
    }
    for part in ["act.toml", "functions.echo.effect", "server.state_dir", "--state DIR"] {
        assert!(brigd.log().contains(part), "{part}: {}", brigd.log());
    }
    // A check by hand has not what systemd gives to the service, and only says so.
    let check = options.arg("--check").try_start().expect_err("it ends");
    assert!(check.contains("3 functions are configured") && check.contains("act.echo may change something"), "{check}");
    let brigd = place.brigd();
    assert_eq!(value(&mut brigd.connect(), "act.echo", &json!({"a": 2})), json!({"a": 2}));
}
