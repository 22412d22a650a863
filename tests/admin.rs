//! The admin socket, through the real binaries: who may speak, what each method does, and
//! what it says to wrong params.
#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

use acceptance::{Brigd, BrigdOptions, Client, DEADLINE, Handlers, as_user, binary};
use brig_protocol::admin::method;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

fn start() -> Brigd {
    BrigdOptions::default().admin().start()
}

fn code(answer: &Value) -> &str {
    answer.pointer("/error/data/code").and_then(Value::as_str).unwrap_or("none")
}

/// An evaluation that runs until it is ended.
fn endless(client: &mut Client) -> u64 {
    let params =
        json!({"source": "await orders.list({})", "timeoutMs": 60_000, "announce": true, "hostFunctions": {"orders": {"list": {}}}});
    client.request("evaluate", &params)
}

fn started(client: &mut Client) -> String {
    loop {
        let message = client.next_message();
        if message.get("method") == Some(&json!("evaluation.started")) {
            return message.pointer("/params/evaluation").and_then(Value::as_str).expect("an id").to_owned();
        }
    }
}

/// Waits for the call of the evaluation, so that it is open.
fn called(client: &mut Client) {
    while client.next_message().get("method") != Some(&json!("host.call")) {}
}

fn brig(brigd: &Brigd, arguments: &[&str]) -> Output {
    Command::new(binary("brig")).args(arguments).arg("--admin-socket").arg(brigd.admin_socket()).output().expect("brig runs")
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn the_status_says_what_there_is() {
    let brigd = start();
    let mut client = brigd.connect();
    client.evaluate("1 + 1");
    endless(&mut client);
    called(&mut client);
    let status = brigd.admin().result("status", &json!({}));
    assert_eq!(status.get("phase"), Some(&json!("serving")), "{status}");
    assert_eq!(status.pointer("/queue/running"), Some(&json!(1)));
    assert_eq!(status.pointer("/counters/succeeded"), Some(&json!(1)));
    assert_eq!(status.pointer("/principals/0/running"), Some(&json!(1)));
    assert!(status.pointer("/workers/nurseries").and_then(Value::as_u64).is_some_and(|count| count >= 1), "{status}");
    let list = brigd.admin().result("evaluations.list", &json!({}));
    assert_eq!(list.pointer("/evaluations/0/open"), Some(&json!(["orders.list"])), "{list}");
    assert_eq!(list.pointer("/evaluations/0/state"), Some(&json!("calling")));
}

#[test]
fn an_operator_ends_an_evaluation_and_its_client_is_told() {
    let brigd = start();
    let mut client = brigd.connect();
    let request = endless(&mut client);
    let evaluation = started(&mut client);
    let mut admin = brigd.admin();
    admin.result("evaluations.kill", &json!({"evaluation": evaluation, "reason": "it loops"}));
    let answer = client.answer(request, &mut Handlers::none().on("orders.list", json!({"kind": "never"})));
    assert_eq!(answer.pointer("/result/error/code"), Some(&json!("revoked")), "{answer}");
    assert!(brigd.log().contains("evaluation_killed") && brigd.log().contains("it loops"), "{}", brigd.log());
    assert_eq!(code(&admin.call("evaluations.kill", &json!({"evaluation": evaluation}))), "evaluation_not_found");
}

#[test]
fn a_revoked_function_is_called_no_more_until_it_is_restored_also_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = || BrigdOptions::default().admin().state(&folder.path().join("state"));
    let mut brigd = options().start();
    let mut client = brigd.connect();
    let request = endless(&mut client);
    called(&mut client);
    let mut admin = brigd.admin();
    let ended = admin.result("functions.revoke", &json!({"pattern": "orders.*"}));
    assert_eq!((ended.get("evaluations"), ended.get("persisted")), (Some(&json!(1)), Some(&json!(true))));
    let answer = client.answer(request, &mut Handlers::none());
    assert_eq!(answer.pointer("/result/calls/0/code"), Some(&json!("revoked")), "a running call ends: {answer}");
    assert_eq!(answer.pointer("/result/calls/0/state"), Some(&json!("unknown")), "it was with the client already");
    brigd.signal(nix::sys::signal::Signal::SIGKILL);
    brigd.wait();
    let again = options().start();
    let mut client = again.connect();
    let call =
        json!({"source": "try { await orders.list({}) } catch (error) { return error.code }", "hostFunctions": {"orders": {"list": {}}}});
    assert_eq!(client.result("evaluate", &call).get("value"), Some(&json!("revoked")));
    let mut admin = again.admin();
    assert_eq!(admin.result("functions.list", &json!({})).pointer("/functions/0/target"), Some(&json!("orders.*")));
    let wrong = admin.call("functions.restore", &json!({"pattern": "order.*"}));
    assert!(code(&wrong) == "invalid_params" && wrong.to_string().contains("did you mean"), "{wrong}");
    admin.result("functions.restore", &json!({"pattern": "orders.*"}));
    let mut handlers = Handlers::none().on("orders.list", json!({"kind": "static", "result": [1]}));
    assert_eq!(client.evaluate_with(&call, &mut handlers).get("outcome"), Some(&json!("succeeded")));
}

#[test]
fn a_revoked_principal_loses_what_it_runs_and_gets_nothing_new() {
    let brigd = start();
    let uid = nix::unistd::geteuid().as_raw();
    let mut client = brigd.connect();
    let request = endless(&mut client);
    called(&mut client);
    let mut admin = brigd.admin();
    let ended = admin.result("principals.revoke", &json!({"principal": format!("uid:{uid}")}));
    assert_eq!(ended.get("evaluations"), Some(&json!(1)), "{ended}");
    let answer = client.answer(request, &mut Handlers::none());
    assert_eq!(answer.pointer("/result/error/code"), Some(&json!("revoked")), "{answer}");
    assert_eq!(code(&client.call("evaluate", &json!({"source": "1"}))), "not_permitted");
    admin.result("principals.restore", &json!({"principal": format!("uid:{uid}")}));
    assert_eq!(client.evaluate("1").get("outcome"), Some(&json!("succeeded")));
}

#[test]
fn whoever_is_no_admin_is_sent_away_though_the_file_mode_lets_them_in() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can be several users");
        return;
    }
    let brigd = BrigdOptions::default().config("[admin]\nuids = [20002]\ngroups = [\"30001\"]\n").admin().start();
    let mut stranger = Client::connect_as(&brigd.admin_socket(), 20_001);
    let refused = stranger.next_message();
    assert_eq!(code(&refused), "not_permitted", "{refused}");
    assert!(matches!(stranger.next_until(Instant::now() + DEADLINE), acceptance::Incoming::Closed));
    for uid in [20_002, 30_001] {
        let mut admin = Client::connect_as(&brigd.admin_socket(), uid);
        assert_eq!(admin.result("status", &json!({})).get("phase"), Some(&json!("serving")));
    }
    let output =
        as_user(20_001, &binary("brig")).args(["admin", "status", "--admin-socket"]).arg(brigd.admin_socket()).output().expect("brig runs");
    assert_eq!(output.status.code(), Some(6), "{}", text(&output));
}

#[test]
fn every_method_says_what_is_wrong_with_its_params_and_the_connection_lives() {
    let brigd = start();
    let mut admin = brigd.admin();
    for name in method::ALL {
        let answer = admin.call(name, &json!({"surprise": 1}));
        assert_eq!(code(&answer), "invalid_params", "{name}: {answer}");
        assert!(answer.to_string().contains("surprise"), "{name}: {answer}");
    }
    let long = "x".repeat(501);
    for (name, params) in [
        (method::EVALUATIONS_KILL, json!({})),
        (method::EVALUATIONS_KILL, json!({"evaluation": 5})),
        (method::EVALUATIONS_KILL, json!({"evaluation": "ev_1", "reason": long})),
        (method::APPROVALS_LIST, json!({"decided": "yes"})),
        (method::APPROVALS_SHOW, json!({})),
        (method::APPROVALS_APPROVE, json!({"approval": "ap_1"})),
        (method::APPROVALS_DENY, json!({"approval": "ap_1", "comment": long})),
        (method::FUNCTIONS_REVOKE, json!({"pattern": "orders"})),
        (method::FUNCTIONS_REVOKE, json!({"pattern": "a b"})),
        (method::FUNCTIONS_RESTORE, json!({"pattern": "never.revoked"})),
        (method::PRINCIPALS_REVOKE, json!({"principal": "1000"})),
        (method::PRINCIPALS_REVOKE, json!({"principal": "user:there-is-no-such-user"})),
        (method::PRINCIPALS_RESTORE, json!({"principal": "uid:4242"})),
    ] {
        let answer = admin.call(name, &params);
        assert_eq!(code(&answer), "invalid_params", "{name} {params}: {answer}");
    }
    for (line, expected) in [("{", "parse_error"), ("[]", "invalid_request"), ("\u{7f}", "parse_error")] {
        admin.send_raw(format!("{line}\n").as_bytes());
        assert_eq!(code(&admin.next_message()), expected, "{line}");
    }
    admin.send_raw(format!("{}\n", "x".repeat(70_000)).as_bytes());
    assert_eq!(code(&admin.next_message()), "line_too_long");
    assert_eq!(code(&admin.call("evaluate", &json!({"source": "1"}))), "method_not_found");
    assert_eq!(code(&brigd.connect().call("status", &json!({}))), "method_not_found", "the client socket has no admin methods");
    assert_eq!(admin.result("status", &json!({})).get("phase"), Some(&json!("serving")));
}

#[test]
fn a_reload_takes_over_what_is_valid_and_nothing_of_what_is_not() {
    let uid = nix::unistd::geteuid().as_raw();
    let allow = format!("[principals.\"uid:{uid}\"]\ncallbacks = \"allow\"\n");
    let brigd = BrigdOptions::default().config(&allow).admin().start();
    let file = brigd.folder().join("brig.toml");
    let mut admin = brigd.admin();
    let before = admin.result("policy.check", &json!({}));
    std::fs::write(&file, "[principals.\"uid:0\"]\ncallback = \"deny\"\n").expect("written");
    for name in [method::POLICY_CHECK, method::POLICY_RELOAD] {
        let answer = admin.call(name, &json!({}));
        assert!(code(&answer) == "invalid_params" && answer.to_string().contains("callback"), "{answer}");
    }
    assert_eq!(admin.result("status", &json!({})).get("policyVersion"), before.get("policyVersion"));
    std::fs::write(&file, allow.replace("allow", "deny")).expect("written");
    let after = admin.result("policy.reload", &json!({}));
    assert_ne!(after.get("policyVersion"), before.get("policyVersion"));
    let call = json!({"source": "typeof orders", "hostFunctions": {"orders": {"list": {}}}});
    let result = brigd.connect().result("evaluate", &call);
    assert!(result.to_string().contains("function_disabled"), "{result}");
}

#[test]
fn without_an_admin_socket_there_is_none_and_one_connection_can_not_hold_the_others_out() {
    let plain = Brigd::start();
    assert!(!plain.admin_socket().exists());
    let brigd = start();
    let mut held: Vec<Client> = (0..16).map(|_| brigd.admin()).collect();
    assert_eq!(held.last_mut().expect("one").result("status", &json!({})).get("phase"), Some(&json!("serving")));
    assert_eq!(code(&brigd.admin().next_message()), "overloaded");
    drop(held);
    let until = Instant::now() + DEADLINE;
    loop {
        let mut admin = brigd.admin();
        admin.request("status", &json!({}));
        if admin.next_message().get("result").is_some() {
            break;
        }
        assert!(Instant::now() < until, "still full");
    }
}

#[test]
fn the_command_shows_and_does_the_same() {
    let brigd = start();
    let mut client = brigd.connect();
    let request = endless(&mut client);
    let evaluation = started(&mut client);
    called(&mut client);
    for (arguments, part) in [
        (vec!["admin", "status"], "serving"),
        (vec!["admin", "evaluations"], evaluation.as_str()),
        (vec!["admin", "revoke", "store.*", "--reason", "leaked"], "store.*"),
        (vec!["admin", "revoked"], "leaked"),
        (vec!["admin", "restore", "store.*"], "store.*"),
        (vec!["admin", "reload"], "policy"),
        (vec!["approve", "list"], "nothing waits"),
        (vec!["admin", "kill", evaluation.as_str()], evaluation.as_str()),
    ] {
        let output = brig(&brigd, &arguments);
        assert!(output.status.success() && text(&output).contains(part), "{arguments:?}: {}", text(&output));
    }
    assert_eq!(client.answer(request, &mut Handlers::none()).pointer("/result/error/code"), Some(&json!("revoked")));
    let output = brig(&brigd, &["admin", "status", "--json"]);
    let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|fault| panic!("{fault}: {}", text(&output)));
    assert_eq!(status.get("phase"), Some(&json!("serving")));
    let missing =
        Command::new(binary("brig")).args(["admin", "status", "--admin-socket", "/nowhere/admin.sock"]).output().expect("brig runs");
    assert_eq!(missing.status.code(), Some(7), "{}", text(&missing));
}

#[test]
fn top_prints_one_frame_that_fits_and_escapes_what_a_guest_chose() {
    let brigd = start();
    let mut client = brigd.connect();
    endless(&mut client);
    called(&mut client);
    let output = Command::new(binary("brig"))
        .args(["top", "--once", "--admin-socket"])
        .arg(brigd.admin_socket())
        .env("COLUMNS", "80")
        .env("LINES", "24")
        .output()
        .expect("brig runs");
    let frame = text(&output);
    assert!(output.status.success() && frame.contains("orders.list") && frame.contains("serving"), "{frame}");
    assert!(frame.lines().count() <= 24 && frame.lines().all(|line| line.chars().count() <= 80), "{frame}");
    assert!(!frame.contains('\u{1b}'), "no escape sequences where nobody looks: {frame:?}");
}

#[test]
fn a_drain_lets_what_runs_end_takes_nothing_new_and_ends_brigd() {
    let mut brigd = start();
    let mut client = brigd.connect();
    let request = endless(&mut client);
    let output = brig(&brigd, &["admin", "drain"]);
    assert!(output.status.success(), "{}", text(&output));
    let answer = client.answer(request, &mut Handlers::none().on("orders.list", json!({"kind": "static", "result": []})));
    assert_eq!(answer.pointer("/result/outcome"), Some(&json!("succeeded")), "{answer}");
    assert!(brigd.wait().success());
}

#[test]
fn a_drain_is_in_the_chain_with_the_user_who_asked_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut brigd = recording(folder.path()).start();
    let output = brig(&brigd, &["admin", "drain"]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(brigd.wait().success());
    let segment = std::fs::read_to_string(folder.path().join("audit/segment-0000000001.jsonl")).expect("a segment");
    let asked: Vec<Value> = segment
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|record| record.get("event") == Some(&json!("drain_asked")))
        .collect();
    assert_eq!(asked.len(), 1, "{segment}");
    let uid = nix::unistd::geteuid().as_raw();
    assert_eq!(asked.first().and_then(|record| record.pointer("/by/uid")), Some(&json!(uid)), "{segment}");
}

/// A brigd whose records go to a folder.
fn recording(folder: &Path) -> BrigdOptions {
    let audit = folder.join("audit");
    BrigdOptions::default().config(&format!("[audit]\ndir = {:?}\n", audit.display().to_string())).admin()
}

fn records(admin: &mut Client) -> Vec<Value> {
    let told = admin.result("audit.tail", &json!({"lines": 100}));
    told.get("records").and_then(Value::as_array).expect("records").clone()
}

#[test]
fn what_operators_do_is_in_the_chain_with_who_did_it_and_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let brigd = recording(folder.path()).start();
    let mut client = brigd.connect();
    endless(&mut client);
    let evaluation = started(&mut client);
    let mut admin = brigd.admin();
    admin.result("evaluations.kill", &json!({"evaluation": evaluation, "reason": "it loops"}));
    admin.result("functions.revoke", &json!({"pattern": "orders.*", "reason": "incident 7"}));
    admin.result("functions.restore", &json!({"pattern": "orders.*"}));
    admin.result("principals.revoke", &json!({"principal": "uid:4242"}));
    admin.result("principals.restore", &json!({"principal": "uid:4242"}));
    admin.result("policy.reload", &json!({}));
    let own = json!({"uid": nix::unistd::geteuid().as_raw()});
    let acts = [("revoked", json!({"evaluation": evaluation})), ("revoked", json!({"function": "orders.*"}))].into_iter().chain([
        ("restored", json!({"function": "orders.*"})),
        ("revoked", json!({"principal": "uid:4242"})),
        ("restored", json!({"principal": "uid:4242"})),
        ("policy_reloaded", Value::Null),
    ]);
    let found = records(&mut admin);
    let of_operators: Vec<&Value> = found.iter().filter(|record| record.get("by") == Some(&own)).collect();
    let told: Vec<(&str, Value)> = of_operators
        .iter()
        .map(|record| (record.get("event").and_then(Value::as_str).unwrap_or_default(), record.get("what").cloned().unwrap_or_default()))
        .collect();
    assert_eq!(told, acts.collect::<Vec<_>>(), "{found:#?}");
    let reasons: Vec<Option<&str>> = of_operators.iter().map(|record| record.get("comment").and_then(Value::as_str)).collect();
    assert_eq!(reasons.get(..2), Some([Some("it loops"), Some("incident 7")].as_slice()));
    assert!(brigd.log().contains("function_revoked"), "the log has it too");
}

#[test]
fn the_chain_is_verified_over_the_admin_socket_and_a_changed_record_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let brigd = recording(folder.path()).start();
    brigd.connect().evaluate("1");
    let mut admin = brigd.admin();
    let status = admin.result("status", &json!({}));
    let (seq, hash) = (status.pointer("/audit/seq").cloned(), status.pointer("/audit/hash").cloned());
    assert!(seq.as_ref().and_then(Value::as_u64).is_some_and(|seq| seq > 2), "{status}");
    assert_eq!(status.pointer("/journal/durable"), Some(&json!(true)));
    let checked = admin.result("audit.verify", &json!({"anchors": [hash]}));
    assert_eq!((checked.get("intact"), checked.get("findings")), (Some(&json!(true)), Some(&json!([]))), "{checked}");
    let output = brig(&brigd, &["admin", "audit", "verify"]);
    assert!(output.status.success() && text(&output).starts_with("ok: "), "{}", text(&output));
    assert!(text(&brig(&brigd, &["admin", "audit", "tail", "-n", "1"])).starts_with("{\"seq\":"));
    // As if somebody had another start than there was.
    let segment = first_segment(&folder.path().join("audit"));
    let changed = std::fs::read_to_string(&segment).expect("records").replacen("\"event\":\"started\"", "\"event\":\"stopped\"", 1);
    std::fs::write(&segment, changed).expect("a changed record");
    let checked = admin.result("audit.verify", &json!({}));
    assert_eq!(checked.get("intact"), Some(&json!(false)), "{checked}");
    let output = brig(&brigd, &["admin", "audit", "verify"]);
    assert!(output.status.code() == Some(1) && text(&output).contains("BROKEN: "), "{}", text(&output));
}

fn first_segment(audit: &Path) -> PathBuf {
    let files = std::fs::read_dir(audit).expect("the audit's folder").flatten().map(|entry| entry.path());
    files.filter(|path| path.extension().is_some_and(|kind| kind == "jsonl")).min().expect("a segment")
}

#[test]
fn without_a_folder_of_records_there_is_nothing_to_ask_and_bounds_are_told() {
    let brigd = start();
    let mut admin = brigd.admin();
    for method in ["audit.tail", "audit.verify"] {
        let answer = admin.call(method, &json!({}));
        assert_eq!((code(&answer), answer.pointer("/error/data/setting")), ("unsupported", Some(&json!("audit.dir"))), "{answer}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let brigd = recording(folder.path()).start();
    let mut admin = brigd.admin();
    for (method, params) in [
        ("audit.tail", json!({"lines": 0})),
        ("audit.tail", json!({"lines": 1_001})),
        ("audit.verify", json!({"anchors": ["abc"]})),
        ("audit.verify", json!({"anchors": vec!["0".repeat(64); 101]})),
    ] {
        assert_eq!(code(&admin.call(method, &params)), "invalid_params", "{params}");
    }
}
