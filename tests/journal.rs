//! What brigd says of effects is true: after `kill -9` at every stage of a write call,
//! after a restart, with a full disk, and to nobody but whose it is.
#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

use acceptance::{Brigd, BrigdOptions, Client, DEADLINE, Handlers, Incoming};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A state directory, and the file that the write function appends to.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("appended")
    }

    fn lines(&self) -> usize {
        fs::read_to_string(self.file()).map_or(0, |text| text.lines().count())
    }

    fn start(&self) -> Brigd {
        BrigdOptions::default().state(&self.state()).start()
    }

    /// Appends a line: the effect.
    fn append(&self) {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(self.file()).expect("the file");
        file.write_all(b"line\n").expect("a line");
    }
}

/// Appends once and says so.
fn appending(key: &str, detach: bool) -> Value {
    json!({
        "source": "return await svc.append({line: 1})",
        "hostFunctions": {"svc": {"append": {"effect": "write"}}},
        "idempotencyKey": key,
        "detach": detach,
    })
}

/// Sends a request and does what brigd asks until brigd is dead; what it answered.
fn until_dead(client: &mut Client, params: &Value, place: &Place) -> Option<Value> {
    client.request("evaluate", params);
    let mut answer = None;
    loop {
        match client.next_until(Instant::now() + DEADLINE) {
            Incoming::Message(message) if message.get("method") == Some(&json!("host.call")) => {
                place.append();
                let line = json!({"jsonrpc": "2.0", "id": message.get("id"), "result": {"appended": true}});
                client.try_send_raw(format!("{line}\n").as_bytes());
            }
            Incoming::Message(message) => answer = Some(message),
            Incoming::Closed => return answer,
            Incoming::Nothing => panic!("brigd did not die"),
        }
    }
}

fn calls(result: &Value) -> Vec<(String, String)> {
    let calls = result.get("calls").and_then(Value::as_array).expect("calls").clone();
    let text = |call: &Value, name: &str| call.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    calls.iter().map(|call| (text(call, "state"), text(call, "code"))).collect()
}

/// What must be true after a crash at each stage: how often it ran, the state of its
/// call on record, and whether the answer is there.
const STAGES: &[(u32, usize, Option<&str>, bool)] = &[
    (1, 0, None, false),
    (2, 0, None, false),
    (3, 0, None, false),
    (4, 0, Some("unknown"), false),
    (5, 1, Some("unknown"), false),
    (6, 1, Some("unknown"), false),
    (7, 1, Some("completed"), false),
    (8, 1, Some("completed"), false),
    (9, 1, Some("completed"), false),
    (10, 1, Some("completed"), true),
];

fn killed_at(stage: u32, detach: bool) -> (Place, Value) {
    let place = Place::new();
    let options = BrigdOptions::default().state(&place.state()).env("BRIG_TEST_KILL_AT", &stage.to_string());
    let mut brigd = options.start();
    let params = appending("once", detach);
    let answer = until_dead(&mut brigd.connect(), &params, &place);
    assert_eq!(brigd.wait().signal(), Some(9), "stage {stage}: {}", brigd.log());
    if let Some(answer) = answer {
        assert!(detach && answer.pointer("/result/state") == Some(&json!("running")), "stage {stage}: {answer}");
    }
    (place, params)
}

#[test]
fn a_detached_write_call_is_told_as_it_is_after_kill_9_at_every_stage_and_never_runs_twice() {
    for (stage, ran, state, ended) in STAGES {
        let (place, params) = killed_at(*stage, true);
        assert_eq!(place.lines(), *ran, "stage {stage}");
        let brigd = place.start();
        let status = brigd.connect().result("evaluate", &params);
        let told = if *ended { "ended" } else { "unknown" };
        assert_eq!(status.get("state"), Some(&json!(told)), "stage {stage}: {status}");
        let result = status.get("result").expect("a result");
        let states: Vec<String> = calls(result).into_iter().map(|(state, _)| state).collect();
        assert_eq!(states, state.iter().map(|state| (*state).to_owned()).collect::<Vec<_>>(), "stage {stage}: {status}");
        let outcome = if *ended { "succeeded" } else { "failed" };
        assert_eq!(result.get("outcome"), Some(&json!(outcome)), "stage {stage}: {status}");
        let id = json!({"evaluation": status.get("evaluation")});
        assert_eq!(brigd.connect().result("evaluations.get", &id), status);
        assert_eq!(brigd.connect().result("evaluations.wait", &id), status);
        assert_eq!(place.lines(), *ran, "stage {stage}");
    }
}

#[test]
fn a_request_with_a_key_is_answered_and_never_run_again_after_kill_9_at_every_stage() {
    for (stage, ran, state, ended) in STAGES {
        let (place, params) = killed_at(*stage, false);
        let brigd = place.start();
        // Nothing answers a host call here: one that ran again would be seen as a panic.
        let result = brigd.connect().result("evaluate", &params);
        if *ended {
            assert_eq!(result.get("value"), Some(&json!({"appended": true})), "stage {stage}: {result}");
        } else {
            assert_eq!(result.pointer("/error/code"), Some(&json!("interrupted")), "stage {stage}: {result}");
            assert_eq!(result.pointer("/error/retryable"), Some(&json!(false)));
        }
        let states: Vec<String> = calls(&result).into_iter().map(|(state, _)| state).collect();
        assert_eq!(states, state.iter().map(|state| (*state).to_owned()).collect::<Vec<_>>(), "stage {stage}: {result}");
        assert_eq!(place.lines(), *ran, "stage {stage}");
    }
}

#[test]
fn a_call_that_was_running_when_brigd_was_killed_is_unknown_and_one_that_failed_is_failed() {
    let place = Place::new();
    let mut brigd = place.start();
    let mut client = brigd.connect();
    let params = json!({
        "source": "await svc.no({}).catch(() => 0); console.log(await svc.look({})); return await svc.hang({})",
        "hostFunctions": {"svc": {"no": {"effect": "write"}, "look": {"effect": "read"}, "hang": {"effect": "write"}}},
        "announce": true,
    });
    client.request("evaluate", &params);
    let mut handlers =
        Handlers::none().on("svc.no", json!({"kind": "throws", "error": {"message": "no"}})).on("svc.look", json!({"kind": "echo"}));
    let mut evaluation = Value::Null;
    loop {
        let message = client.next_message();
        match message.pointer("/params/function").and_then(Value::as_str) {
            Some("svc.hang") => break,
            Some(_) => client.take_call(&message, &mut handlers),
            None => evaluation = message.pointer("/params/evaluation").expect("its id").clone(),
        }
    }
    brigd.signal(Signal::SIGKILL);
    brigd.wait();
    let brigd = place.start();
    let status = brigd.connect().result("evaluations.get", &json!({"evaluation": evaluation}));
    assert_eq!(status.get("state"), Some(&json!("unknown")), "{status}");
    let told = calls(status.get("result").expect("a result"));
    let expected = [("failed", "function_failed"), ("unknown", "interrupted")];
    assert_eq!(told, expected.map(|(state, code)| (state.to_owned(), code.to_owned())), "{status}");
    assert!(brigd.log().contains("nothing is run again"), "{}", brigd.log());
}

#[test]
fn an_evaluation_that_is_detached_goes_on_without_its_client_and_its_answer_outlives_brigd() {
    let place = Place::new();
    let mut brigd = place.start();
    let params = json!({
        "source": "const gone = await svc.ask({}).then(() => 'answered', error => error.code); \
                   await new Promise(done => setTimeout(done, 300)); return {gone, text: 'x'.repeat(100000)}",
        "hostFunctions": {"svc": {"ask": {"effect": "read"}}},
        "detach": true,
    });
    let mut client = brigd.connect();
    let id = client.request("evaluate", &params);
    let status = loop {
        let message = client.next_message();
        if message.get("id") == Some(&json!(id)) {
            break message.get("result").expect("a status").clone();
        }
    };
    assert_eq!(status.get("state"), Some(&json!("running")), "{status}");
    assert_eq!(status.get("result"), None);
    drop(client);
    let evaluation = json!({"evaluation": status.get("evaluation")});
    let ended = brigd.connect().result("evaluations.wait", &evaluation);
    assert_eq!(ended.get("state"), Some(&json!("ended")), "{ended}");
    assert_eq!(ended.pointer("/result/value/gone"), Some(&json!("client_gone")), "{ended}");
    assert_eq!(brigd.connect().result("evaluations.get", &evaluation), ended);
    brigd.signal(Signal::SIGTERM);
    assert!(brigd.wait().success(), "{}", brigd.log());
    let brigd = place.start();
    assert_eq!(brigd.connect().result("evaluations.get", &evaluation), ended);
}

#[test]
fn without_a_state_directory_detached_answers_are_kept_while_brigd_lives() {
    let brigd = Brigd::start();
    let status = brigd.connect().result("evaluate", &json!({"source": "6 * 7", "detach": true, "idempotencyKey": "k"}));
    let evaluation = json!({"evaluation": status.get("evaluation")});
    let ended = brigd.connect().result("evaluations.wait", &evaluation);
    assert_eq!(ended.pointer("/result/value"), Some(&json!(42)), "{ended}");
    let again = brigd.connect().result("evaluate", &json!({"source": "6 * 7", "detach": true, "idempotencyKey": "k"}));
    assert_eq!(again, ended);
}

#[test]
fn a_wait_is_over_when_its_time_is_and_a_cancel_reaches_a_detached_evaluation() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let status = client.result("evaluate", &json!({"source": "await new Promise(done => setTimeout(done, 20000))", "detach": true}));
    let evaluation = status.get("evaluation").expect("its id").clone();
    let waited = client.result("evaluations.wait", &json!({"evaluation": evaluation, "timeoutMs": 30}));
    assert_eq!(waited.get("state"), Some(&json!("running")), "{waited}");
    let refused = client.call("evaluations.wait", &json!({"evaluation": evaluation, "timeoutMs": 600_001}));
    assert!(refused.pointer("/error/message").and_then(Value::as_str).is_some_and(|text| text.contains("600000")), "{refused}");
    client.result("cancel", &json!({"evaluation": evaluation}));
    let ended = client.result("evaluations.wait", &json!({"evaluation": evaluation}));
    assert_eq!(ended.pointer("/result/outcome"), Some(&json!("cancelled")), "{ended}");
}

#[test]
fn a_detached_evaluation_that_outlasts_the_drain_is_told_as_cancelled() {
    let place = Place::new();
    let options = BrigdOptions::default().state(&place.state()).config("[server]\ndrain_ms = 50\n");
    let mut brigd = options.start();
    let status =
        brigd.connect().result("evaluate", &json!({"source": "await new Promise(done => setTimeout(done, 20000))", "detach": true}));
    brigd.signal(Signal::SIGTERM);
    assert!(brigd.wait().success(), "{}", brigd.log());
    let brigd = place.start();
    let ended = brigd.connect().result("evaluations.get", &json!({"evaluation": status.get("evaluation")}));
    assert_eq!(ended.get("state"), Some(&json!("ended")), "{ended}");
    assert_eq!(ended.pointer("/result/outcome"), Some(&json!("cancelled")), "{ended}");
}

#[test]
fn an_idempotency_key_gives_its_answer_after_a_restart_and_no_other_request_can_use_it() {
    let place = Place::new();
    let mut brigd = place.start();
    let params = appending("k", false);
    let mut handlers = Handlers::none().on("svc.append", json!({"kind": "static", "result": 7}));
    let first = brigd.connect().evaluate_with(&params, &mut handlers);
    assert_eq!(first.get("value"), Some(&json!(7)));
    assert_eq!(brigd.connect().result("evaluate", &params), first);
    brigd.signal(Signal::SIGTERM);
    brigd.wait();
    let brigd = place.start();
    assert_eq!(brigd.connect().result("evaluate", &params), first);
    let other = brigd.connect().call("evaluate", &json!({"source": "1", "idempotencyKey": "k"}));
    assert_eq!(other.pointer("/error/data/code"), Some(&json!("idempotency_conflict")), "{other}");
    assert_eq!(handlers.calls("svc.append"), 1);
}

#[test]
fn a_second_request_with_the_key_of_one_that_runs_gets_its_answer() {
    let place = Place::new();
    let brigd = place.start();
    let params = appending("k", false);
    let (mut one, mut other) = (brigd.connect(), brigd.connect());
    let first = one.request("evaluate", &params);
    let call = one.next_message();
    let second = other.request("evaluate", &params);
    let mut handlers = Handlers::none().on("svc.append", json!({"kind": "static", "result": 7}));
    one.take_call(&call, &mut handlers);
    let first = one.answer(first, &mut Handlers::none());
    let second = other.answer(second, &mut Handlers::none());
    assert_eq!(first.get("result"), second.get("result"));
    assert_eq!(first.pointer("/result/value"), Some(&json!(7)));
}

#[test]
fn a_made_up_evaluation_is_not_found() {
    let brigd = Brigd::start();
    for method in ["evaluations.get", "evaluations.wait"] {
        for id in ["ev_00000000000000000000000000000000", "", "x' OR 1=1 --", "\u{0}"] {
            let answer = brigd.connect().call(method, &json!({"evaluation": id}));
            assert_eq!(answer.pointer("/error/data/code"), Some(&json!("evaluation_not_found")), "{answer}");
        }
        let answer = brigd.connect().call(method, &json!({"evaluation": "ev_1", "surprise": 1}));
        assert_eq!(answer.pointer("/error/data/code"), Some(&json!("invalid_params")), "{answer}");
    }
}

/// What `method` answers to another user about this evaluation.
fn asked_as(uid: u32, brigd: &Brigd, evaluation: &str) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "evaluations.get", "params": {"evaluation": evaluation}});
    let script = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\ns.sendall(sys.argv[2].encode()+b'\\n')\nprint(s.makefile().readline())";
    let output = acceptance::as_user(uid, Path::new("/usr/bin/python3"))
        .args(["-c", script, &brigd.socket().display().to_string(), &request.to_string()])
        .output()
        .expect("python3");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|fault| panic!("{fault}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn an_evaluation_of_another_principal_is_as_unknown_as_a_made_up_one() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("not root: one user only, nothing to tell apart");
        return;
    }
    let place = Place::new();
    let config = "[server]\nsocket_mode = \"0660\"\n[clients]\nuids = [1234]\n";
    let brigd = BrigdOptions::default().state(&place.state()).config(config).start();
    std::os::unix::fs::chown(brigd.socket(), None, Some(1234)).expect("its group");
    fs::set_permissions(brigd.socket().parent().expect("a folder"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its mode");
    let ended = brigd.connect().result("evaluate", &json!({"source": "'secret'", "idempotencyKey": "k"}));
    let id = ended.get("evaluation").and_then(Value::as_str).expect("its id").to_owned();
    assert_eq!(brigd.connect().result("evaluations.get", &json!({"evaluation": id})).get("state"), Some(&json!("ended")));
    let theirs = asked_as(1234, &brigd, &id);
    let made_up = asked_as(1234, &brigd, "ev_00000000000000000000000000000000");
    assert_eq!(theirs.pointer("/error/data/code"), Some(&json!("evaluation_not_found")), "{theirs}");
    assert_eq!(theirs, made_up);
}

#[test]
fn with_a_full_store_write_calls_are_refused_and_everything_else_goes_on() {
    let place = Place::new();
    let config = "[journal]\nbytes = 8388608\nbytes_each = 1000000000\n";
    let brigd = BrigdOptions::default().state(&place.state()).config(config).start();
    let mut client = brigd.connect();
    let mut number = 0;
    let mut stored = Vec::new();
    for size in [1_000_000, 100_000, 1] {
        for _ in 0..400 {
            number += 1;
            let params = json!({"source": format!("'x'.repeat({size})"), "idempotencyKey": format!("k{number}")});
            let answer = client.call("evaluate", &params);
            if let Some(refused) = answer.pointer("/error/data/code") {
                assert_eq!(refused, &json!("journal_unavailable"), "{answer}");
                break;
            }
            stored.push(params);
            // The answer itself did not fit: it is given all the same, and smaller ones are tried.
            if brigd.log().matches("an answer is not in the journal").count() > 0 && size > 1 {
                break;
            }
        }
    }
    let refused = client.call("evaluate", &json!({"source": "1", "detach": true}));
    assert_eq!(refused.pointer("/error/data/code"), Some(&json!("journal_unavailable")), "{refused}");
    let source = "const read = await svc.look({a: 1}); const code = await svc.append({}).then(() => 'ran', error => error.code); return {read, code}";
    let params = json!({"source": source, "hostFunctions": {"svc": {"look": {"effect": "read"}, "append": {"effect": "write"}}}});
    let mut handlers = Handlers::none().on("svc.look", json!({"kind": "echo"})).on("svc.append", json!({"kind": "echo"}));
    let result = client.evaluate_with(&params, &mut handlers);
    assert_eq!(result.get("value"), Some(&json!({"read": {"a": 1}, "code": "journal_unavailable"})), "{result}");
    assert_eq!(calls(&result).get(1), Some(&("refused".to_owned(), "journal_unavailable".to_owned())));
    assert_eq!(handlers.calls("svc.append"), 0);
    let first = client.result("evaluate", stored.first().expect("one was stored"));
    assert_eq!(first.get("value").and_then(Value::as_str).map(str::len), Some(1_000_000));
}

#[test]
fn the_oldest_of_a_principal_go_first_and_what_was_promised_stays() {
    let place = Place::new();
    let brigd = BrigdOptions::default().state(&place.state()).config("[journal]\nevaluations_each = 3\n").start();
    let mut client = brigd.connect();
    let mut handlers = Handlers::none().on("svc.append", json!({"kind": "echo"}));
    let mut ids = Vec::new();
    for _ in 0..5 {
        let mut params = appending("k", false);
        params.as_object_mut().expect("params").remove("idempotencyKey");
        ids.push(client.evaluate_with(&params, &mut handlers).get("evaluation").expect("its id").clone());
    }
    let kept = |client: &mut Client, id: &Value| client.call("evaluations.get", &json!({"evaluation": id})).get("result").is_some();
    assert_eq!(ids.iter().map(|id| kept(&mut client, id)).collect::<Vec<_>>(), [false, false, true, true, true]);
    for key in 0..3 {
        client.evaluate_with(&appending(&format!("k{key}"), false), &mut handlers);
    }
    let refused = client.call("evaluate", &appending("k4", false));
    assert_eq!(refused.pointer("/error/data/code"), Some(&json!("quota_exceeded")), "{refused}");
    assert_eq!(refused.pointer("/error/data/setting"), Some(&json!("journal.evaluations_each")), "{refused}");
}

#[test]
fn brigd_does_not_start_on_a_damaged_journal_or_a_directory_that_another_has() {
    let place = Place::new();
    let brigd = place.start();
    let fault = BrigdOptions::default().state(&place.state()).try_start().expect_err("two brigds share their state");
    assert!(fault.contains("in use by another brigd") && fault.contains("exit status: 5"), "{fault}");
    drop(brigd);
    let file = place.state().join("journal.sqlite");
    let whole = fs::read(&file).expect("the journal");
    let half = whole.get(..whole.len() / 2).expect("a half");
    fs::write(&file, half).expect("the journal is damaged");
    for name in ["journal.sqlite-wal", "journal.sqlite-shm"] {
        fs::remove_file(place.state().join(name)).ok();
    }
    let fault = BrigdOptions::default().state(&place.state()).try_start().expect_err("a damaged journal is taken");
    assert!(fault.contains("journal.sqlite") && fault.contains("Restore it from a backup"), "{fault}");
    assert_eq!(fs::read(&file).expect("the journal"), half, "it was changed");
}

#[test]
fn a_private_brigd_does_not_take_the_state_of_the_service_that_starts_it() {
    let place = Place::new();
    fs::create_dir(place.state()).expect("a state directory");
    fs::set_permissions(place.state(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("its mode");
    let brigd = acceptance::binary("brigd");
    let check = |arguments: &[&str]| {
        let mut command = std::process::Command::new(&brigd);
        command.args(["--socket"]).arg(place.folder.path().join("sock")).args(arguments);
        command.env("STATE_DIRECTORY", place.state()).stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
        let mut child = command.spawn().expect("brigd");
        let deadline = Instant::now() + DEADLINE;
        while std::os::unix::net::UnixStream::connect(place.folder.path().join("sock")).is_err() {
            assert!(Instant::now() < deadline, "brigd does not listen");
            std::thread::yield_now();
        }
        child.kill().expect("its end");
        child.wait().expect("its end");
        fs::remove_file(place.folder.path().join("sock")).ok();
        place.state().join("journal.sqlite").exists()
    };
    assert!(!check(&["--exit-on-stdin-close"]));
    assert!(check(&[]));
}
