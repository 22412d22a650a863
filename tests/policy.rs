//! What an operator's policy says holds for real clients of a real brigd: who they are is
//! what the kernel says, and a budget is a budget however they come.
#![expect(clippy::expect_used, reason = "tests")]

use acceptance::{Brigd, BrigdOptions, Client, Handlers, binary};
use serde_json::{Value, json};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ONE: u32 = 20_001;
const OTHER: u32 = 20_002;

/// The section of the user that runs these tests.
fn own(rules: &str) -> String {
    let uid = nix::unistd::geteuid();
    format!("[principals.\"uid:{uid}\".callbacks]\n{rules}")
}

fn refund(amount: &Value) -> Value {
    json!({
        "source": format!("try {{ return await store.refund({{ amount: {amount} }}) }} catch (e) {{ return {{ code: e.code, message: e.message, data: e.data }} }}"),
        "hostFunctions": {"store": {"refund": {"inputSchema": {"type": "object"}}}},
    })
}

fn value_of(client: &mut Client, params: &Value, handlers: &mut Handlers) -> Value {
    client.evaluate_with(params, handlers).get("value").expect("a value").clone()
}

fn handlers() -> Handlers {
    Handlers::none().on("store.refund", json!({"kind": "static", "result": {"done": true}}))
}

#[test]
fn a_budget_holds_over_evaluations_connections_and_calls_at_once() {
    let brigd = BrigdOptions::default()
        .config(&own("rules = [{ mode = \"allow\", patterns = [\"store.*\"], budget = { calls = 5, per = \"day\" } }]\n"))
        .admin()
        .start();
    let racers: Vec<(u64, u64)> = std::thread::scope(|scope| {
        let run = || {
            let (mut client, mut handlers) = (brigd.connect(), handlers());
            let params = json!({
                "source": "const all = await Promise.allSettled([1, 2, 3, 4].map(() => store.refund({ amount: 1 })));\
                           return all.filter(one => one.status === 'rejected' && one.reason.code === 'budget_exhausted').length",
                "hostFunctions": {"store": {"refund": {}}},
            });
            let refused = value_of(&mut client, &params, &mut handlers).as_u64().expect("a number");
            (handlers.calls("store.refund"), refused)
        };
        let all: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        all.into_iter().map(|racer| racer.join().expect("a racer")).collect()
    });
    let (ran, refused) = racers.iter().fold((0, 0), |(ran, refused), racer| (ran + racer.0, refused + racer.1));
    assert_eq!((ran, refused), (5, 11), "{racers:?}");
    let mut unasked = handlers();
    let said = value_of(&mut brigd.connect(), &refund(&json!(1)), &mut unasked);
    assert_eq!(said.get("code"), Some(&json!("budget_exhausted")));
    let message = said.get("message").and_then(Value::as_str).expect("a message");
    assert!(message.contains("5 calls per day") && message.contains("free again in"), "{message}");
    assert!(said.pointer("/data/retryAfterMs").and_then(Value::as_u64).is_some_and(|wait| wait > 80_000_000), "{said}");
    assert_eq!(unasked.calls("store.refund"), 0);
}

#[test]
fn a_sum_is_taken_from_what_the_program_sends_and_a_person_is_not_passed_by() {
    let rules = "rules = [\n\
        { mode = \"allow\", patterns = [\"store.*\"], budget = { sum = \"/amount\", max = 0.3, per = \"hour\" } },\n\
        { mode = \"ask\", patterns = [\"store.*\"], when = { properties = { amount = { type = \"number\", minimum = 100 } }, required = [\"amount\"] }, ask = { approvers = [\"uid:0\"], wait_seconds = 1 }, why = \"w\" },\n]\n";
    let brigd = BrigdOptions::default().config(&own(rules)).admin().start();
    let mut client = brigd.connect();
    let mut handlers = handlers();
    for amount in [json!(0.1), json!(0.2)] {
        assert_eq!(value_of(&mut client, &refund(&amount), &mut handlers), json!({"done": true}));
    }
    for (amount, code) in [(json!(0.000_001), "budget_exhausted"), (json!("1"), "invalid_input"), (json!(-1), "invalid_input")] {
        assert_eq!(value_of(&mut client, &refund(&amount), &mut handlers).get("code"), Some(&json!(code)), "{amount}");
    }
    // Nobody agrees: whether somebody could be asked or not, it does not run.
    let unasked = value_of(&mut client, &refund(&json!(100)), &mut handlers);
    assert!(["permission_denied", "approval_expired"].iter().any(|code| unasked.get("code") == Some(&json!(code))), "{unasked}");
    assert_eq!(handlers.calls("store.refund"), 2);
}

#[test]
fn what_policy_denies_is_not_there_for_the_program_and_explained_to_the_client_alone() {
    let brigd = BrigdOptions::default()
        .config(&own("rules = [{ mode = \"allow\", patterns = [\"**\"] }, { mode = \"deny\", patterns = [\"store.refund\"], why = \"ask finance\" }]\n"))
        .start();
    let mut client = brigd.connect();
    let params = json!({
        "source": "return [typeof store.refund, Object.keys(store)]",
        "hostFunctions": {"store": {"refund": {}, "list": {}}},
    });
    let said = value_of(&mut client, &params, &mut Handlers::none());
    assert_eq!(said, json!(["undefined", ["list"]]));
    // A request says that it allows it: it narrows, and never widens.
    let mut wider = params.clone();
    wider.as_object_mut().expect("an object").insert("permissions".to_owned(), json!({"hostFunction": "allow"}));
    assert_eq!(value_of(&mut client, &wider, &mut Handlers::none()), said);

    let explained = client.result("policy.explain", &json!({"function": "store.refund", "callback": true}));
    assert_eq!(explained.get("decision"), Some(&json!("deny")));
    assert_eq!(explained.get("rule"), Some(&json!("operator:rules[1]")));
    assert_eq!(explained.get("why"), Some(&json!("ask finance")));
    let configured = client.result("policy.explain", &json!({"function": "store.refund"}));
    assert_eq!(configured.get("decision"), Some(&json!("deny")), "no host_function: nothing configured may be called");
    let spelt = client.result("policy.explain", &json!({"function": "store:refund", "callback": true}));
    assert_eq!(spelt, explained, "the command spelling is the same name");
    for wrong in [
        json!({"function": "store"}),
        json!({"function": "store:"}),
        json!({"function": "store.refund", "inptu": {}}),
        json!({"function": "a.b", "input": [1]}),
    ] {
        let answer = client.call("policy.explain", &wrong);
        assert_eq!(answer.pointer("/error/data/code"), Some(&json!("invalid_params")), "{answer}");
    }
}

#[test]
fn what_is_left_of_a_budget_is_explained_and_explaining_takes_nothing() {
    let brigd = BrigdOptions::default()
        .config(&own("rules = [{ mode = \"allow\", patterns = [\"**\"], budget = { sum = \"/amount\", max = 10, per = \"hour\" } }]\n"))
        .admin()
        .start();
    let mut client = brigd.connect();
    assert_eq!(value_of(&mut client, &refund(&json!(2.5)), &mut handlers()), json!({"done": true}));
    for _ in 0..3 {
        let said = client.result("policy.explain", &json!({"function": "store.refund", "callback": true, "input": {"amount": 8}}));
        assert_eq!(said.get("decision"), Some(&json!("allow")));
        assert_eq!(said.pointer("/budgets/0/left"), Some(&json!("7.5")), "{said}");
        assert!(said.pointer("/budgets/0/retryAfterMs").and_then(Value::as_u64).is_some_and(|wait| wait > 3_000_000), "{said}");
    }
    assert_eq!(value_of(&mut client, &refund(&json!(7.5)), &mut handlers()), json!({"done": true}));
}

/// One request of another user, with another primary group and more groups.
fn ask_as(brigd: &Brigd, (uid, gid, groups): (u32, u32, &str), request: &Value) -> Value {
    let socket = brigd.socket();
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o777)).expect("mode of the socket");
    std::fs::set_permissions(socket.parent().expect("a folder"), std::fs::Permissions::from_mode(0o755)).expect("mode of the folder");
    let mut command = Command::new("setpriv");
    command.arg(format!("--reuid={uid}")).arg(format!("--regid={gid}"));
    command.arg(if groups.is_empty() { "--clear-groups".to_owned() } else { format!("--groups={groups}") });
    let output = command
        .arg(std::env::current_exe().expect("this test"))
        .args(["--exact", "says_one_line_as_another_user", "--ignored", "--nocapture"])
        .env("BRIG_TEST_SOCKET", &socket)
        .env("BRIG_TEST_LINE", request.to_string())
        .current_dir("/")
        .output()
        .expect("setpriv");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.split_once("ANSWER ")).map(|(_, line)| line.to_owned());
    let line = line.unwrap_or_else(|| format!("no answer: {text} {}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_str(&line).unwrap_or_else(|_| json!({"unread": line}))
}

/// Not a test by itself: the process of another user.
#[test]
#[ignore = "the helper of the tests with other users"]
fn says_one_line_as_another_user() {
    let (Ok(socket), Ok(line)) = (std::env::var("BRIG_TEST_SOCKET"), std::env::var("BRIG_TEST_LINE")) else { return };
    let mut client = Client::connect(Path::new(&socket));
    client.send_raw(format!("{line}\n").as_bytes());
    println!("ANSWER {}", client.next_message());
}

const SECTIONS: &str = r#"
[principals."uid:20001"]
callbacks = "allow"
[principals."uid:20001".limits]
cpu_ms = 500
[principals."gid:30001"]
callbacks = { rules = [{ mode = "allow", patterns = ["a.b"], budget = { calls = 1, per = "day" } }] }
[principals."gid:30002"]
callbacks = "deny"
"#;

#[test]
fn the_section_is_chosen_by_what_the_kernel_says_of_a_client() {
    if !nix::unistd::geteuid().is_root() {
        // The kernel lets only root be somebody else; the other tests are of one user.
        return;
    }
    let brigd = BrigdOptions::default().config(SECTIONS).admin().start();
    let explain = json!({"jsonrpc": "2.0", "id": 1, "method": "policy.explain", "params": {"function": "a.b", "callback": true}});
    for (who, section, decision) in [
        ((ONE, 30_001, "30001,30002"), "uid:20001", "allow"),
        ((OTHER, 30_001, ""), "gid:30001", "allow"),
        ((OTHER, 30_002, ""), "gid:30002", "deny"),
    ] {
        let answer = ask_as(&brigd, who, &explain);
        assert_eq!(answer.pointer("/result/section"), Some(&json!(section)), "{answer}");
        assert_eq!(answer.pointer("/result/decision"), Some(&json!(decision)), "{answer}");
    }
    // No section, not even for root.
    let answer = ask_as(&brigd, (OTHER, OTHER, ""), &explain);
    assert_eq!(answer.pointer("/error/data/code"), Some(&json!("not_permitted")), "{answer}");
    let answer = brigd.connect().call("evaluate", &json!({"source": "1"}));
    assert_eq!(answer.pointer("/error/data/setting"), Some(&json!("principals")), "{answer}");
    // Ceilings are the section's.
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
    let answer = ask_as(&brigd, (ONE, ONE, ""), &hello);
    assert_eq!(answer.pointer("/result/limits/cpuMs"), Some(&json!(500)), "{answer}");
}

fn guide() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/policies")
}

fn tool(args: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = Command::new(binary("brigd")).arg("policy").args(args).output().expect("brigd runs");
    (status.code(), String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr))
}

#[test]
fn the_ten_policies_of_the_guide_decide_as_it_says() {
    let mut count = 0;
    for entry in std::fs::read_dir(guide()).expect("the policies") {
        let cases = entry.expect("an entry").path();
        let Some(name) = cases.to_str().and_then(|path| path.strip_suffix(".test.toml")) else { continue };
        count += 1;
        let (code, said) = tool(&["test", &cases.display().to_string()]);
        assert_eq!(code, Some(0), "{said}");
        // The guide's own policies have nothing suspect.
        let (code, said) = tool(&["check", &format!("{name}.toml"), "--names", &cases.display().to_string()]);
        assert!(code == Some(0) && !said.contains("warning:"), "{said}");
    }
    assert_eq!(count, 10);
}

#[test]
fn what_the_guide_shows_loads_and_runs() {
    let text = std::fs::read_to_string(guide().join("../policy.md")).expect("the guide");
    let blocks = |language: &str| -> Vec<String> {
        let fence = format!("```{language}\n");
        text.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).map(str::to_owned).collect()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("brig.toml");
    assert!(!blocks("toml").is_empty() && !blocks("sh").is_empty());
    for block in blocks("toml") {
        std::fs::write(&file, block).expect("the policy");
        let (code, said) = tool(&["check", &file.display().to_string()]);
        assert!(code == Some(0) && !said.contains("warning:"), "{said}");
    }
    let bin = binary("brigd").parent().expect("a folder").display().to_string();
    for block in blocks("sh") {
        let path = format!("{bin}:{}", std::env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("bash");
        let output =
            shell.args(["-euo", "pipefail", "-c", &block]).env("PATH", path).current_dir(guide().join("../..")).output().expect("bash");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_case_that_is_not_as_expected_ends_with_1_and_the_difference() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(guide().join("02-refunds.toml"), folder.path().join("02-refunds.toml")).expect("the policy");
    let cases = std::fs::read_to_string(guide().join("02-refunds.test.toml")).expect("the cases");
    let wrong = folder.path().join("wrong.toml");
    std::fs::write(&wrong, cases.replace("{ times = 3, expect = \"allow\", rule = \"rules[1]\" }", "{ times = 4, expect = \"allow\" }"))
        .expect("cases");
    let (code, said) = tool(&["test", &wrong.display().to_string()]);
    assert_eq!(code, Some(1), "{said}");
    for part in ["A small refund runs", "steps[0], time 4", "- expected allow", "+ decided  budget", "1 of 5 cases"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    for (find, put, part) in [
        ("expect = \"ask\"", "expct = \"ask\"", "expct"),
        ("principal = \"agent\"", "principal = \"agnet\"", "there is no [principals.agnet]"),
        ("after = \"1h\"", "after = \"1w\"", "\"61m\""),
        ("agents = 30001", "agent = 30001", "no group"),
    ] {
        std::fs::write(&wrong, cases.replace(find, put)).expect("cases");
        let (code, said) = tool(&["test", &wrong.display().to_string()]);
        assert!(code == Some(2) && said.contains(part), "{find}: {said}");
    }
}

#[test]
fn a_policy_is_checked_and_explained_without_a_brigd_running() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("brig.toml");
    let path = file.display().to_string();
    let write = |text: &str| std::fs::write(&file, text).expect("the policy");
    write(
        "[principals.\"*\".host_function]\nrules = [{ mode = \"deny\", patterns = [\"a.b\"] }, { mode = \"allow\", patterns = [\"**\"], when = { properties = { n = { maximum = 3 } } } }, { mode = \"allow\", patterns = [\"**\"] }]\n",
    );
    let (code, said) = tool(&["check", &path]);
    assert_eq!(code, Some(0), "{said}");
    for part in ["rules[0]", "never decides", "everybody who can reach the socket", "an input without \"n\"", "brig.toml:2"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    write(
        "[principals.\"uid:7\".host_function]\nrules = [{ mode = \"allow\", patterns = [\"a.b\"], when = { properties = { n = { maximum = 3 } } }, budget = { calls = 2, per = \"hour\" } }]\n",
    );
    let explain = |principal: &str, input: &str| tool(&["explain", &path, "--principal", principal, "--function", "a.b", "--input", input]);
    let (code, said) = explain("uid:7", "{\"n\":3}");
    assert!(
        code == Some(0) && said.contains("a.b is allowed by operator:rules[0] of uid:7") && said.contains("2 calls per hour"),
        "{said}"
    );
    assert!(explain("uid:7", "{\"n\":4}").1.contains("denied by operator:default"));
    assert!(explain("uid:8", "{}").1.contains("denied: no section of [principals] is about this principal"));
    let (code, said) = explain("uid:7", "{\"n\":3,\"n\":4}");
    assert!(code == Some(2) && said.contains("comes twice"), "{said}");
    write("[principals.\"uid:7\".host_function]\nrules = [{ mode = \"allow\", patterns = [\"a\"] }]\n");
    let (code, said) = tool(&["check", &path]);
    assert!(code == Some(2) && said.contains("brig.toml:2") && said.contains("did you mean \"a.*\"?"), "{said}");
    // The same before it serves, and by the other command.
    let brigd = BrigdOptions::default().config(&std::fs::read_to_string(&file).expect("it")).try_start();
    assert!(brigd.is_err_and(|log| log.contains("did you mean \"a.*\"?")));
    let brig = Command::new(binary("brig")).args(["policy", "check", &path]).env("BRIGD", binary("brigd")).output().expect("brig");
    assert_eq!(brig.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&brig.stderr).contains("did you mean \"a.*\"?"));
}

#[test]
fn a_budget_of_a_day_is_not_begun_where_a_restart_would_give_it_back() {
    let config = own("rules = [{ mode = \"allow\", patterns = [\"store.*\"], budget = { calls = 1, per = \"day\" } }]\n");
    let log = BrigdOptions::default().config(&config).try_start().expect_err("brigd does not start");
    assert!(log.contains("server.state_dir") && log.contains("--state DIR") && log.contains("survive a restart"), "{log}");
    // With one it holds over a kill.
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    std::fs::DirBuilder::new().mode(0o700).create(&state).expect("a folder");
    let once = || {
        let brigd = BrigdOptions::default().config(&config).state(&state).start();
        let (mut client, mut handlers) = (brigd.connect(), handlers());
        let params = json!({"source": "try { await store.refund({}); return 'ran' } catch (e) { return e.code }", "hostFunctions": {"store": {"refund": {}}}});
        client.evaluate_with(&params, &mut handlers).pointer("/value").cloned()
    };
    assert_eq!(once(), Some(json!("ran")));
    assert_eq!(once(), Some(json!("budget_exhausted")));
}

#[test]
fn a_quota_of_calls_a_minute_is_for_all_functions_together() {
    let uid = nix::unistd::geteuid().as_raw();
    let config = format!("[principals.\"uid:{uid}\"]\ncallbacks = \"allow\"\n[principals.\"uid:{uid}\".quotas]\ncalls_per_minute = 3\n");
    let brigd = BrigdOptions::default().config(&config).start();
    let mut client = brigd.connect();
    let source = "const codes = []; for (const f of [a.one, a.two, a.one, a.two, a.one]) { try { await f({}); codes.push('ran') } catch (e) { codes.push(e.code) } } return codes";
    let params = json!({"source": source, "hostFunctions": {"a": {"one": {}, "two": {}}}});
    let spec = json!({"kind": "static", "result": 1});
    let mut handlers = Handlers::none().on("a.one", spec.clone()).on("a.two", spec);
    let result = client.evaluate_with(&params, &mut handlers);
    assert_eq!(result.get("value"), Some(&json!(["ran", "ran", "ran", "budget_exhausted", "budget_exhausted"])), "{result}");
}
