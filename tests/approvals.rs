//! Host calls that wait for a person, through the real sockets, with users that are really
//! different. As an ordinary user there is only one, and these tests say so and pass.
#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

use acceptance::{Brigd, BrigdOptions, Client, DEADLINE, Handlers, binary};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::process::Command;
use std::time::Instant;

/// Asks for calls.
const AGENT: u32 = 20_001;
/// May decide them by her id, and is no admin.
const ADA: u32 = 20_002;
/// The same.
const BOB: u32 = 20_003;
/// May by the group 30001 and nothing else.
const FINANCE: u32 = 30_001;

const CONFIG: &str = r#"
[admin]
approvers = ["uid:20002", "uid:20003", "gid:30001"]
[principals."uid:20001"]
callbacks = { default = "allow", rules = [
  { mode = "ask", patterns = ["store.refund"], why = "Refunds need a person.",
    ask = { approvers = ["uid:20002", "uid:20003", "gid:30001", "uid:20001"], wait_seconds = 600, show = ["/orderId", "/amount"] } },
  { mode = "ask", patterns = ["store.soon"], ask = { approvers = ["uid:20002"], wait_seconds = 1 } },
] }
[principals."uid:0"]
callbacks = { default = "allow", rules = [{ mode = "ask", patterns = ["store.*"], ask = { approvers = ["uid:0", "uid:20002"] } }] }
"#;

fn is_root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        eprintln!("skipped: only root can be several users");
    }
    root
}

fn start() -> Brigd {
    BrigdOptions::default().config(CONFIG).admin().start()
}

fn agent(brigd: &Brigd) -> Client {
    Client::connect_as(&brigd.socket(), AGENT)
}

fn admin_as(brigd: &Brigd, uid: u32) -> Client {
    Client::connect_as(&brigd.admin_socket(), uid)
}

fn handlers() -> Handlers {
    ["store.refund", "store.soon", "orders.list", "orders.slow"].into_iter().fold(Handlers::none(), |all, name| {
        all.on(name, if name == "orders.slow" { json!({"kind": "never"}) } else { json!({"kind": "echo"}) })
    })
}

fn params(source: &str, timeout_ms: u64) -> Value {
    json!({"source": source, "timeoutMs": timeout_ms,
           "hostFunctions": {"store": {"refund": {}, "soon": {}}, "orders": {"list": {}, "slow": {}}}})
}

const REFUND: &str = "return await store.refund({orderId: 'o_1', amount: 140, card: '4111-1111'})";

/// The id of the approval of which the client was told.
fn told(client: &mut Client) -> Value {
    loop {
        let message = client.next_message();
        if message.get("method") == Some(&json!("evaluation.approval")) {
            return message.get("params").expect("params").clone();
        }
        assert!(message.get("id").is_none() || message.get("method").is_some(), "an answer came before anybody was asked: {message}");
    }
}

fn id_of(note: &Value) -> String {
    note.get("approval").and_then(Value::as_str).expect("an id").to_owned()
}

fn hash_of(admin: &mut Client, id: &str) -> String {
    let shown = admin.result("approvals.show", &json!({"approval": id}));
    shown.pointer("/approval/inputSha256").and_then(Value::as_str).expect("a hash").to_owned()
}

fn approve(admin: &mut Client, id: &str) -> Value {
    let hash = hash_of(admin, id);
    admin.call("approvals.approve", &json!({"approval": id, "inputSha256": hash, "comment": "looked at it"}))
}

fn code(answer: &Value) -> &str {
    answer.pointer("/error/data/code").and_then(Value::as_str).unwrap_or("none")
}

fn result(client: &mut Client, id: u64, handlers: &mut Handlers) -> Value {
    let answer = client.answer(id, handlers);
    answer.get("result").unwrap_or_else(|| panic!("refused: {answer}")).clone()
}

/// Asks for a refund and waits until a person is.
fn parked(brigd: &Brigd, timeout_ms: u64) -> (Client, u64, String) {
    let mut client = agent(brigd);
    let request = client.request("evaluate", &params(REFUND, timeout_ms));
    let id = id_of(&told(&mut client));
    (client, request, id)
}

fn state(admin: &mut Client, id: &str) -> String {
    let all = admin.result("approvals.list", &json!({"decided": true}));
    let all = all.get("approvals").and_then(Value::as_array).expect("a list").clone();
    let found = all.iter().find(|one| one.get("approval") == Some(&json!(id))).unwrap_or_else(|| panic!("{id} is not in {all:?}"));
    found.get("state").and_then(Value::as_str).expect("a state").to_owned()
}

#[test]
fn a_call_that_is_approved_later_than_the_evaluations_time_limit_still_succeeds() {
    if !is_root() {
        return;
    }
    let brigd = start();
    let began = Instant::now();
    let (mut client, request, id) = parked(&brigd, 2000);
    let mut ada = admin_as(&brigd, ADA);
    let shown = ada.result("approvals.show", &json!({"approval": id}));
    assert_eq!(shown.get("input"), Some(&json!({"orderId": "o_1", "amount": 140})), "{shown}");
    assert_eq!(shown.get("redacted"), Some(&json!(true)));
    assert_eq!(shown.pointer("/approval/why"), Some(&json!("Refunds need a person.")));
    assert_eq!(shown.pointer("/approval/principal/uid"), Some(&json!(AGENT)));
    assert!(!shown.to_string().contains("4111"), "{shown}");
    // The time limit passes: the clock of the evaluation does not.
    let mut root = brigd.admin();
    while began.elapsed().as_millis() < 2200 {
        let list = root.result("evaluations.list", &json!({}));
        assert_eq!(list.pointer("/evaluations/0/state"), Some(&json!("approval")), "{list}");
    }
    let decided = approve(&mut ada, &id);
    assert_eq!(decided.pointer("/result/approval/decision/by/uid"), Some(&json!(ADA)), "{decided}");
    let mut handlers = handlers();
    let result = result(&mut client, request, &mut handlers);
    assert_eq!(result.get("outcome"), Some(&json!("succeeded")), "{result}");
    assert_eq!(handlers.seen, [("store.refund".to_owned(), json!({"orderId": "o_1", "amount": 140, "card": "4111-1111"}))]);
    let waited = result.pointer("/usage/approvalMs").and_then(Value::as_f64).expect("a figure");
    assert!(waited >= 100.0, "{result}");
    assert!(brigd.log().contains("call_approved") && brigd.log().contains("looked at it"), "who said yes is on record");
}

#[test]
fn a_denied_call_does_not_run_and_the_guest_hears_that_a_person_said_no() {
    if !is_root() {
        return;
    }
    let brigd = start();
    let (mut client, request, id) = parked(&brigd, 5_000);
    let denied = admin_as(&brigd, BOB).call("approvals.deny", &json!({"approval": id, "comment": "not this one"}));
    assert_eq!(denied.pointer("/result/approval/state"), Some(&json!("denied")), "{denied}");
    let mut handlers = handlers();
    let result = result(&mut client, request, &mut handlers);
    assert_eq!(result.pointer("/calls/0/code"), Some(&json!("approval_denied")), "{result}");
    assert_eq!(result.pointer("/calls/0/state"), Some(&json!("refused")));
    assert!(!result.to_string().contains("not this one"), "the comment is not for the guest: {result}");
    assert!(handlers.seen.is_empty());
}

#[test]
fn nobody_decides_their_own_call_and_nobody_whom_the_rule_does_not_name() {
    if !is_root() {
        return;
    }
    let brigd = start();
    let (mut client, request, id) = parked(&brigd, 5_000);
    let hash = hash_of(&mut brigd.admin(), &id);
    let approve = json!({"approval": id, "inputSha256": hash});
    // The requester is named by the rule, and still no admin: it can not even speak there.
    let Value::Object(refused) = admin_as(&brigd, AGENT).next_message() else { panic!("no message") };
    assert_eq!(refused.get("id"), Some(&Value::Null));
    // Root is an admin, and the rule does not name it.
    for method in ["approvals.approve", "approvals.deny"] {
        let params = if method == "approvals.deny" { json!({"approval": id}) } else { approve.clone() };
        assert_eq!(code(&brigd.admin().call(method, &params)), "not_permitted");
    }
    // Root asks, the rule names it: still not for itself.
    let mut own = brigd.connect();
    own.request("evaluate", &params(REFUND, 5_000));
    let own_id = id_of(&told(&mut own));
    let own_hash = hash_of(&mut brigd.admin(), &own_id);
    let answer = brigd.admin().call("approvals.approve", &json!({"approval": own_id, "inputSha256": own_hash}));
    assert_eq!(code(&answer), "not_permitted", "{answer}");
    assert!(answer.to_string().contains("nobody decides their own"), "{answer}");
    // An approver who is not of this rule does not see that it is there.
    assert_eq!(code(&admin_as(&brigd, BOB).call("approvals.show", &json!({"approval": own_id}))), "approval_not_found");
    assert_eq!(code(&admin_as(&brigd, BOB).call("status", &json!({}))), "not_permitted");
    client.send(&json!({"jsonrpc": "2.0", "method": "cancel", "params": {"id": request}}));
    let result = result(&mut client, request, &mut handlers());
    assert_eq!(result.get("outcome"), Some(&json!("cancelled")), "a parked evaluation ends when it is cancelled: {result}");
    assert_eq!(state(&mut brigd.admin(), &id), "withdrawn");
}

#[test]
fn a_group_of_the_rule_may_decide_and_another_group_may_not() {
    if !is_root() {
        return;
    }
    let brigd = start();
    let (mut client, request, id) = parked(&brigd, 5_000);
    let as_member = |uid: u32, groups: &str, arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", &uid.to_string(), "--regid", &uid.to_string(), "--groups", groups]);
        command.arg(binary("brig")).arg("approve").arg("--admin-socket").arg(brigd.admin_socket()).args(arguments);
        command.output().expect("brig runs")
    };
    let wrong = as_member(20_009, "30002", &["--json", &id]);
    assert!(!wrong.status.success(), "{}", String::from_utf8_lossy(&wrong.stdout));
    assert!(
        String::from_utf8_lossy(&wrong.stderr).contains("may not use the admin socket")
            || String::from_utf8_lossy(&wrong.stdout).contains("not_permitted")
    );
    let list = as_member(20_009, &FINANCE.to_string(), &["list"]);
    let text = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(
        list.status.success() && text.contains(&id) && text.contains("store.refund"),
        "{text}{}",
        String::from_utf8_lossy(&list.stderr)
    );
    let shown = as_member(20_009, &FINANCE.to_string(), &["show", &id]);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(text.contains("o_1") && text.contains("Refunds need a person.") && !text.contains("4111"), "{text}");
    let yes = as_member(20_009, &FINANCE.to_string(), &["--yes", "--comment", "fine", &id]);
    assert!(yes.status.success(), "{}{}", String::from_utf8_lossy(&yes.stdout), String::from_utf8_lossy(&yes.stderr));
    assert_eq!(result(&mut client, request, &mut handlers()).get("outcome"), Some(&json!("succeeded")));
}

#[test]
fn of_two_people_who_race_one_wins_and_the_other_is_told_who() {
    if !is_root() {
        return;
    }
    let brigd = start();
    for _ in 0..8 {
        let (mut client, request, id) = parked(&brigd, 5_000);
        let (mut ada, mut bob) = (admin_as(&brigd, ADA), admin_as(&brigd, BOB));
        let hash = hash_of(&mut ada, &id);
        let yes = ada.request("approvals.approve", &json!({"approval": id, "inputSha256": hash}));
        let no = bob.request("approvals.deny", &json!({"approval": id}));
        let (yes, no) = (ada.answer(yes, &mut Handlers::none()), bob.answer(no, &mut Handlers::none()));
        let (won, lost, winner) = if yes.get("result").is_some() { (&yes, &no, ADA) } else { (&no, &yes, BOB) };
        assert!(won.get("result").is_some(), "{yes} {no}");
        assert_eq!(code(lost), "approval_decided", "{lost}");
        assert!(lost.to_string().contains(&format!("user {winner}")), "{lost}");
        let mut handlers = handlers();
        let result = result(&mut client, request, &mut handlers);
        assert_eq!(handlers.seen.len(), usize::from(winner == ADA), "{result}");
    }
}

#[test]
fn a_hash_that_is_not_the_inputs_approves_nothing() {
    if !is_root() {
        return;
    }
    let brigd = start();
    let (_client, _request, id) = parked(&brigd, 5_000);
    let mut ada = admin_as(&brigd, ADA);
    let answer = ada.call("approvals.approve", &json!({"approval": id, "inputSha256": "0".repeat(64)}));
    assert_eq!(code(&answer), "approval_changed", "{answer}");
    assert_eq!(code(&ada.call("approvals.approve", &json!({"approval": id}))), "invalid_params");
    assert_eq!(state(&mut brigd.admin(), &id), "waiting");
}

#[test]
fn what_nobody_decides_expires_and_says_so() {
    if !is_root() {
        return;
    }
    let brigd = start();
    let mut client = agent(&brigd);
    let request = client.request("evaluate", &params("try { await store.soon({}) } catch (error) { return error.code }", 200));
    let id = id_of(&told(&mut client));
    let result = result(&mut client, request, &mut handlers());
    assert_eq!(result.get("value"), Some(&json!("approval_expired")), "{result}");
    assert_eq!(state(&mut brigd.admin(), &id), "expired");
    let late = admin_as(&brigd, ADA).call("approvals.approve", &json!({"approval": id, "inputSha256": "0".repeat(64)}));
    assert!(code(&late) == "approval_decided" && late.to_string().contains("expired"), "{late}");
}

#[test]
fn the_clock_runs_while_anything_else_is_waited_for() {
    if !is_root() {
        return;
    }
    let brigd = start();
    let mut client = agent(&brigd);
    let source = "await Promise.all([store.refund({orderId: 'o_1', amount: 1}), orders.slow({})])";
    let request = client.request("evaluate", &params(source, 300));
    let result = result(&mut client, request, &mut handlers());
    assert_eq!(result.get("outcome"), Some(&json!("timed_out")), "{result}");
}

#[test]
fn a_revoke_ends_what_waits_and_what_comes() {
    if !is_root() {
        return;
    }
    let brigd = start();
    let (mut client, request, id) = parked(&brigd, 5_000);
    let mut root = brigd.admin();
    let ended = root.result("functions.revoke", &json!({"pattern": "store.*", "reason": "the key leaked"}));
    assert_eq!((ended.get("evaluations"), ended.get("persisted")), (Some(&json!(1)), Some(&json!(true))), "{ended}");
    let result = result(&mut client, request, &mut handlers());
    assert_eq!(result.pointer("/calls/0/code"), Some(&json!("revoked")), "{result}");
    assert_eq!(state(&mut root, &id), "withdrawn");
    assert_eq!(code(&admin_as(&brigd, ADA).call("approvals.deny", &json!({"approval": id}))), "approval_decided");
}

#[test]
fn what_waits_when_brigd_is_killed_is_on_record_as_abandoned_and_did_not_run() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let options = || BrigdOptions::default().config(CONFIG).admin().state(&folder.path().join("state"));
    let mut brigd = options().start();
    let (mut client, _request, id) = parked(&brigd, 5_000);
    // Written down in the background: until it is there, there is nothing to survive.
    let until = Instant::now() + DEADLINE;
    while !std::fs::read_to_string(folder.path().join("state/approvals.json")).is_ok_and(|text| text.contains(&id)) {
        assert!(Instant::now() < until, "not written down");
        std::thread::yield_now();
    }
    brigd.signal(Signal::SIGKILL);
    brigd.wait();
    assert!(matches!(client.next_until(Instant::now() + DEADLINE), acceptance::Incoming::Closed));
    let again = options().start();
    let mut ada = admin_as(&again, ADA);
    assert_eq!(state(&mut again.admin(), &id), "abandoned");
    let late = ada.call("approvals.approve", &json!({"approval": id, "inputSha256": "0".repeat(64)}));
    assert!(code(&late) == "approval_decided" && late.to_string().contains("brigd ended"), "{late}");
}

#[test]
fn a_flood_of_calls_that_wait_is_bounded_and_each_refusal_names_the_setting() {
    if !is_root() {
        return;
    }
    let brigd = start();
    let mut client = agent(&brigd);
    let source = "let full = 0; const fails = ({code}) => { if (code === 'call_limit' && ++full === 24) console.log('full'); }; \
                  await Promise.all(Array.from({length: 40}, () => store.refund({orderId: 'o', amount: 1}).catch(fails))); \
                  return full";
    let mut params = params(source, 5_000);
    params.as_object_mut().expect("params").insert("output".to_owned(), json!({"stream": true}));
    let request = client.request("evaluate", &params);
    // Nobody decides before all others were refused: one that comes later could wait.
    let (mut notes, mut full) = (Vec::new(), false);
    while notes.len() < 16 || !full {
        let message = client.next_message();
        match message.get("method").and_then(Value::as_str) {
            Some("evaluation.approval") => notes.push(id_of(message.get("params").expect("params"))),
            Some("evaluation.output") => full = true,
            _ => assert!(message.get("method").is_some(), "an answer came before anybody decided: {message}"),
        }
    }
    let mut root = brigd.admin();
    let status = root.result("status", &json!({}));
    assert_eq!(status.get("approvalsWaiting"), Some(&json!(16)), "{status}");
    let mut bob = admin_as(&brigd, BOB);
    for id in notes {
        bob.result("approvals.deny", &json!({"approval": id}));
    }
    let result = result(&mut client, request, &mut handlers());
    assert_eq!(result.get("value"), Some(&json!(24)), "{result}");
}

#[test]
fn a_client_that_goes_away_and_a_drain_end_what_waits() {
    if !is_root() {
        return;
    }
    let mut brigd = BrigdOptions::default().config(&format!("[server]\ndrain_ms = 100\n{CONFIG}")).admin().start();
    let (client, _request, id) = parked(&brigd, 5_000);
    drop(client);
    let mut root = brigd.admin();
    let until = Instant::now() + DEADLINE;
    while state(&mut root, &id) != "withdrawn" {
        assert!(Instant::now() < until, "it waits still");
    }
    let (mut client, request, _id) = parked(&brigd, 60_000);
    root.result("drain", &json!({}));
    let result = result(&mut client, request, &mut handlers());
    assert_eq!(result.get("outcome"), Some(&json!("cancelled")), "{result}");
    assert!(brigd.wait().success());
}

#[test]
fn rules_that_ask_need_a_place_to_write_down_what_is_said() {
    let log = BrigdOptions::default().config(CONFIG).try_start().expect_err("there is no state directory");
    assert!(log.contains("server.state_dir") && log.contains("--state"), "{log}");
}
