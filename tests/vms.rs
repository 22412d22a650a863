//! Kept workers, through the real binaries: what persists, what ends a vm, who may use
//! it, and what the caller is told.
#![expect(clippy::expect_used, reason = "tests")]

#[path = "vms/functions.rs"]
mod functions;
#[path = "vms/owners.rs"]
mod owners;
#[path = "vms/repl.rs"]
mod repl;

use acceptance::{Brigd, BrigdOptions, Client, DEADLINE, Handlers, as_user, binary};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Instant;

fn create(client: &mut Client, params: &Value) -> String {
    let made = client.result("vm.create", params);
    made.get("vm").and_then(Value::as_str).expect("an id").to_owned()
}

fn new_vm(client: &mut Client) -> String {
    create(client, &json!({}))
}

fn run(client: &mut Client, vm: &str, source: &str) -> Value {
    client.result("evaluate", &json!({"source": source, "vm": vm}))
}

fn value(client: &mut Client, vm: &str, source: &str) -> Value {
    let result = run(client, vm, source);
    assert_eq!(result.get("outcome"), Some(&json!("succeeded")), "{source}: {result}");
    result.get("value").cloned().unwrap_or(Value::Null)
}

/// The code with which an evaluation in the vm is refused.
fn refusal(client: &mut Client, vm: &str) -> String {
    let answer = client.call("evaluate", &json!({"source": "1", "vm": vm}));
    let code = answer.pointer("/error/data/code").and_then(Value::as_str);
    code.map_or_else(|| format!("no refusal: {answer}"), str::to_owned)
}

fn error_code(result: &Value) -> &str {
    result.pointer("/error/code").and_then(Value::as_str).unwrap_or("none")
}

fn says_lost(result: &Value) -> bool {
    let warned = result
        .get("warnings")
        .and_then(Value::as_array)
        .is_some_and(|all| all.iter().any(|one| one.get("code") == Some(&json!("vm_lost"))));
    let hinted = result.pointer("/error/hint").and_then(Value::as_str).is_some_and(|hint| hint.contains("vm.create"));
    warned && hinted
}

/// Asks until the list of vms is as long as it should be.
fn await_count(client: &mut Client, count: usize) {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let list = client.result("vm.list", &json!({}));
        if list.get("vms").and_then(Value::as_array).map(Vec::len) == Some(count) {
            return;
        }
        assert!(Instant::now() < deadline, "not {count} vms: {list}");
        std::thread::yield_now();
    }
}

fn pids(brigd: &Brigd) -> HashSet<u32> {
    brigd.descendants().into_iter().map(|(pid, _)| pid).collect()
}

/// Kills all processes below brigd that have no children: the workers.
fn kill_workers(brigd: &Brigd) {
    let parent = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
    };
    let all = pids(brigd);
    let parents: HashSet<u32> = all.iter().filter_map(|pid| parent(*pid)).collect();
    for pid in all.difference(&parents) {
        kill(Pid::from_raw(i32::try_from(*pid).expect("a pid")), Signal::SIGKILL).ok();
    }
}

#[test]
fn names_persist_as_in_a_repl_and_each_may_be_declared_again() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let vm = new_vm(&mut client);
    value(&mut client, &vm, "let a = 1; const b = 2; var c = 3; function f(x) { return x + a } class K { get n() { return 7 } }");
    assert_eq!(value(&mut client, &vm, "[a, b, c, f(10), new K().n]"), json!([1, 2, 3, 11, 7]));
    value(&mut client, &vm, "a = 5; let b = 20");
    assert_eq!(value(&mut client, &vm, "return [a, b, f(1)]"), json!([5, 20, 6]));
    value(&mut client, &vm, "const later = await Promise.resolve(9)");
    assert_eq!(value(&mut client, &vm, "later"), json!(9));
    // A program without a vm has a fresh realm, and so has another vm.
    assert_eq!(client.evaluate("typeof a").get("value"), Some(&json!("undefined")));
    let other = new_vm(&mut client);
    assert_eq!(value(&mut client, &other, "typeof a"), json!("undefined"));
}

#[test]
fn a_failed_evaluation_keeps_the_realm() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let vm = new_vm(&mut client);
    value(&mut client, &vm, "let n = 1");
    for (source, code) in [
        ("n = 2; throw new Error('no')", "guest_error"),
        ("let = = 3", "syntax_error"),
        ("await new Promise(() => {})", "deadlock"),
        ("const cycle = {}; cycle.cycle = cycle; cycle", "unserializable_value"),
    ] {
        let result = run(&mut client, &vm, source);
        assert_eq!(error_code(&result), code, "{result}");
        assert!(!says_lost(&result), "{result}");
    }
    assert_eq!(value(&mut client, &vm, "n"), json!(2));
}

#[test]
fn a_time_out_and_every_limit_that_kills_lose_the_realm_and_say_so() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    for (source, limits, code) in [
        ("for (;;) {}", json!({"timeoutMs": 200}), "timed_out"),
        ("await new Promise((r) => setTimeout(r, 60000))", json!({"timeoutMs": 200}), "timed_out"),
        ("for (;;) {}", json!({"cpuMs": 100}), "cpu_limit"),
        ("const all = []; for (;;) all.push('x'.repeat(1000) + all.length)", json!({}), "memory_limit"),
    ] {
        let vm = create(&mut client, &json!({"limits": {"heapBytes": 4 << 20}}));
        let result = client.result("evaluate", &json!({"source": source, "vm": vm, "limits": limits}));
        assert_eq!(error_code(&result), code, "{result}");
        assert!(says_lost(&result), "{result}");
        assert_eq!(refusal(&mut client, &vm), "vm_lost");
    }
    await_count(&mut client, 0);
}

#[test]
fn the_heap_of_a_vm_is_that_of_all_its_evaluations_together() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let vm = create(&mut client, &json!({"limits": {"heapBytes": 8 << 20}}));
    value(&mut client, &vm, "var kept = []; 0");
    let mut rounds = 0;
    let ended = loop {
        let result = run(&mut client, &vm, "kept.push(new Uint8Array(1 << 20).fill(1)); kept.length");
        if error_code(&result) != "none" {
            break result;
        }
        rounds += 1;
        assert!(rounds < 20, "20 MiB in a heap of 8: {result}");
    };
    assert_eq!(error_code(&ended), "memory_limit", "{ended}");
    assert!(rounds >= 4, "{rounds}");
}

#[test]
fn a_vm_runs_one_evaluation_at_a_time() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let vm = create(&mut client, &json!({"hostFunctions": {"svc": {"f": {}}}}));
    let first = client.request("evaluate", &json!({"source": "svc.f({})", "vm": vm}));
    let call = client.next_message();
    assert_eq!(call.get("method"), Some(&json!("host.call")), "{call}");
    let mut other = brigd.connect();
    let busy = other.call("evaluate", &json!({"source": "1", "vm": vm}));
    assert_eq!(busy.pointer("/error/data/code"), Some(&json!("vm_busy")), "{busy}");
    assert_eq!(busy.pointer("/error/data/retryable"), Some(&json!(true)), "{busy}");
    let list = other.result("vm.list", &json!({}));
    assert_eq!(list.pointer("/vms/0/busy"), Some(&json!(true)), "{list}");
    client.take_call(&call, &mut Handlers::none().on("svc.f", json!({"kind": "static", "result": 1})));
    client.answer(first, &mut Handlers::none());
    // Its answer was there: the vm is free, for the same client and for another one.
    assert_eq!(value(&mut other, &vm, "2"), json!(2));
}

#[test]
fn as_many_vms_as_the_quota_says_and_a_disposed_one_makes_room() {
    let brigd = BrigdOptions::default().config("[vms]\nmost_each = 2\n").start();
    let mut client = brigd.connect();
    let first = new_vm(&mut client);
    new_vm(&mut client);
    let full = client.call("vm.create", &json!({}));
    assert_eq!(full.pointer("/error/data/code"), Some(&json!("quota_exceeded")), "{full}");
    assert_eq!(full.pointer("/error/data/setting"), Some(&json!("vms.most_each")), "{full}");
    assert_eq!(client.result("vm.dispose", &json!({"vm": first})), json!({}));
    assert_eq!(refusal(&mut client, &first), "vm_not_found");
    let again = client.call("vm.dispose", &json!({"vm": first}));
    assert_eq!(again.pointer("/error/data/code"), Some(&json!("vm_not_found")), "{again}");
    new_vm(&mut client);
}

#[test]
fn a_vm_ends_when_idle_for_too_long_and_at_the_end_of_its_life() {
    for (config, told) in [("idle_timeout_ms = 80", "idle_timeout_ms"), ("lifetime_ms = 150", "lifetime_ms")] {
        let brigd = BrigdOptions::default().config(&format!("[vms]\n{config}\n")).start();
        let mut client = brigd.connect();
        let vm = new_vm(&mut client);
        await_count(&mut client, 0);
        let answer = client.call("evaluate", &json!({"source": "1", "vm": vm}));
        assert_eq!(answer.pointer("/error/data/code"), Some(&json!("vm_lost")), "{answer}");
        assert!(answer.pointer("/error/message").and_then(Value::as_str).is_some_and(|text| text.contains(told)), "{answer}");
    }
}

#[test]
fn the_end_of_its_life_ends_what_runs_in_a_vm_and_idle_time_does_not() {
    let brigd = BrigdOptions::default().config("[vms]\nlifetime_ms = 900\nidle_timeout_ms = 100\n").start();
    let mut client = brigd.connect();
    let vm = new_vm(&mut client);
    let result = run(&mut client, &vm, "await new Promise((r) => setTimeout(r, 60000))");
    assert_eq!(result.get("outcome"), Some(&json!("cancelled")), "{result}");
    assert!(result.pointer("/error/message").and_then(Value::as_str).is_some_and(|text| text.contains("lifetime")), "{result}");
    assert_eq!(refusal(&mut client, &vm), "vm_lost");
}

#[test]
fn the_cpu_time_of_a_vm_is_that_of_all_its_evaluations_together() {
    let brigd = BrigdOptions::default().config("[vms]\ncpu_ms = 400\n").start();
    let mut client = brigd.connect();
    let vm = new_vm(&mut client);
    let spin = "const until = performance.now() + 60; while (performance.now() < until) {}";
    let deadline = Instant::now() + DEADLINE;
    loop {
        let answer = client.call("evaluate", &json!({"source": spin, "vm": vm}));
        if answer.pointer("/result/outcome") != Some(&json!("succeeded")) {
            let code = answer.pointer("/result/error/code").or(answer.pointer("/error/data/code"));
            assert!([Some(&json!("cpu_limit")), Some(&json!("vm_lost"))].contains(&code), "{answer}");
            break;
        }
        assert!(Instant::now() < deadline, "its CPU time is never used up");
    }
    assert_eq!(refusal(&mut client, &vm), "vm_lost");
}

#[test]
fn disposing_cancels_what_runs() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let vm = create(&mut client, &json!({"hostFunctions": {"svc": {"f": {}}}}));
    let running = client.request("evaluate", &json!({"source": "console.log('so far'); await svc.f({})", "vm": vm}));
    client.next_message();
    let mut other = brigd.connect();
    assert_eq!(other.result("vm.dispose", &json!({"vm": vm})), json!({}));
    let answer = client.answer(running, &mut Handlers::none());
    assert_eq!(answer.pointer("/result/outcome"), Some(&json!("cancelled")), "{answer}");
    assert_eq!(answer.pointer("/result/stdout"), Some(&json!("so far\n")), "{answer}");
    assert_eq!(answer.pointer("/result/calls/0/state"), Some(&json!("unknown")), "{answer}");
    assert_eq!(refusal(&mut other, &vm), "vm_not_found");
}

#[test]
fn a_cancelled_evaluation_leaves_the_realm_when_its_worker_stops_in_time() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let vm = create(&mut client, &json!({"hostFunctions": {"svc": {"f": {}}}}));
    value(&mut client, &vm, "var n = 0");
    let running = client.request("evaluate", &json!({"source": "n = 1; await svc.f({}); n = 2", "vm": vm}));
    client.next_message();
    client.send(&json!({"jsonrpc": "2.0", "method": "cancel", "params": {"id": running}}));
    let answer = client.answer(running, &mut Handlers::none());
    assert_eq!(answer.pointer("/result/outcome"), Some(&json!("cancelled")), "{answer}");
    let lost = answer.get("result").is_some_and(says_lost);
    let next = client.call("evaluate", &json!({"source": "n", "vm": vm}));
    if lost {
        assert_eq!(next.pointer("/error/data/code"), Some(&json!("vm_lost")), "{next}");
    } else {
        assert_eq!(next.pointer("/result/value"), Some(&json!(1)), "{next}");
    }
}

#[test]
fn the_limits_and_the_time_zone_of_a_vm_hold_for_each_evaluation() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let vm = create(
        &mut client,
        &json!({"limits": {"hostCalls": 1, "timeoutMs": 5000}, "timeZone": "Asia/Tokyo", "hostFunctions": {"svc": {"f": {}}}}),
    );
    assert_eq!(value(&mut client, &vm, "Intl.DateTimeFormat().resolvedOptions().timeZone"), json!("Asia/Tokyo"));
    let mut handlers = Handlers::none().on("svc.f", json!({"kind": "static", "result": 1}));
    let params = json!({"source": "await svc.f({}); await svc.f({})", "vm": vm, "limits": {"hostCalls": 5}});
    let result = client.evaluate_with(&params, &mut handlers);
    assert_eq!(error_code(&result), "call_limit", "{result}");
    let own = client
        .result("evaluate", &json!({"source": "Intl.DateTimeFormat().resolvedOptions().timeZone", "vm": vm, "timeZone": "Europe/Prague"}));
    assert_eq!(own.get("value"), Some(&json!("Europe/Prague")), "{own}");
    let wrong = client.call("vm.create", &json!({"hostFunctions": {"svc": {"f": {"inputSchema": {"type": "nothing"}}}}}));
    assert_eq!(wrong.pointer("/error/data/code"), Some(&json!("invalid_schema")), "{wrong}");
}

#[test]
fn a_client_that_goes_takes_its_vms_with_it() {
    let brigd = Brigd::start();
    let mut other = brigd.connect();
    let mut client = brigd.connect();
    let vm = new_vm(&mut client);
    let mine = new_vm(&mut other);
    drop(client);
    await_count(&mut other, 1);
    assert_eq!(refusal(&mut other, &vm), "vm_lost");
    assert_eq!(value(&mut other, &mine, "1"), json!(1));
}

#[test]
fn a_vm_whose_worker_is_killed_is_lost_idle_or_busy() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let idle = new_vm(&mut client);
    value(&mut client, &idle, "1");
    kill_workers(&brigd);
    await_count(&mut client, 0);
    assert_eq!(refusal(&mut client, &idle), "vm_lost");

    let busy = create(&mut client, &json!({"hostFunctions": {"svc": {"f": {}}}}));
    let id = client.request("evaluate", &json!({"source": "await svc.f({})", "vm": busy}));
    client.next_message();
    kill_workers(&brigd);
    let answer = client.answer(id, &mut Handlers::none());
    assert_eq!(answer.pointer("/result/error/code"), Some(&json!("worker_crashed")), "{answer}");
    assert!(answer.get("result").is_some_and(says_lost), "{answer}");
    assert_eq!(refusal(&mut client, &busy), "vm_lost");
    let next = new_vm(&mut client);
    assert_eq!(value(&mut client, &next, "3"), json!(3));
}

#[test]
fn sigterm_ends_brigd_and_its_vms() {
    let mut brigd = Brigd::start();
    let mut client = brigd.connect();
    let vm = new_vm(&mut client);
    value(&mut client, &vm, "1");
    let below = pids(&brigd);
    let begun = Instant::now();
    brigd.signal(Signal::SIGTERM);
    assert!(brigd.wait().success(), "{}", brigd.log());
    assert!(begun.elapsed() < DEADLINE);
    let deadline = Instant::now() + DEADLINE;
    for pid in below {
        let is_alive = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with(['Z', 'X']))
        };
        while is_alive() {
            assert!(Instant::now() < deadline, "process {pid} is left");
            std::thread::yield_now();
        }
    }
}
