//! The figures of an answer against those of the kernel: CPU time and memory of the worker
//! as `/proc` has them, wall-clock time as the client's own clock has it.
#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

use acceptance::{Brigd, Client, DEADLINE, Handlers, Incoming};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// What the kernel's own figures may be off by: it counts CPU time in ticks of 10 ms, for
/// user and system apart, and the worker reads and answers outside the program.
const TICKS_MS: f64 = 50.0;

fn figure(result: &Value, name: &str) -> f64 {
    let figure = result.pointer(&format!("/usage/{name}")).and_then(Value::as_f64);
    figure.unwrap_or_else(|| panic!("no {name}: {result}"))
}

/// CPU time of every process below brigd, in ms.
fn cpu_times(brigd: &Brigd) -> HashMap<u32, f64> {
    let tick_ms = 1000.0
        / f64::from(u32::try_from(nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).expect("ticks").expect("ticks")).expect("ticks"));
    let of = |pid: u32| -> Option<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |index: usize| fields.get(index)?.parse::<f64>().ok();
        Some((ticks(11)? + ticks(12)?) * tick_ms)
    };
    brigd.descendants().into_iter().filter_map(|(pid, _)| Some((pid, of(pid)?))).collect()
}

/// The most memory that a process ever had resident, in bytes.
fn peak_resident(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()).expect("a number") * 1024.0
}

fn vm(client: &mut Client) -> String {
    client.result("vm.create", &json!({})).get("vm").and_then(Value::as_str).expect("an id").to_owned()
}

/// Runs a program in a vm; its result, its worker, and the CPU time the kernel saw in it.
fn measured(brigd: &Brigd, client: &mut Client, params: &Value) -> (Value, u32, f64) {
    let before = cpu_times(brigd);
    let result = client.evaluate_with(params, &mut Handlers::none());
    let after = cpu_times(brigd);
    let grown = after.iter().filter_map(|(pid, now)| Some((*pid, now - before.get(pid)?)));
    let (worker, used) = grown.max_by(|a, b| a.1.total_cmp(&b.1)).expect("a worker");
    (result, worker, used)
}

/// Work of a fixed amount, enough for several ticks of the kernel's clock.
const WORK: &str = "let n = 0; for (let i = 0; i < 4e6; i++) n = (n * 31 + i) | 0; return n";

#[test]
fn cpu_time_is_what_the_kernel_counted_for_that_evaluation_alone() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let vm = vm(&mut client);
    // Each evaluation of a vm is told its own share, not the worker's total.
    for round in 0..3 {
        let (result, _, kernel) = measured(&brigd, &mut client, &json!({"source": WORK, "vm": vm}));
        let told = figure(&result, "cpuMs");
        assert!(kernel > 0.0, "round {round}: the kernel saw no work: {result}");
        assert!((told - kernel).abs() <= TICKS_MS + kernel * 0.1, "round {round}: {told} ms are told, {kernel} ms were used: {result}");
    }
}

#[test]
fn time_spent_waiting_is_wall_clock_time_and_time_of_the_host_but_no_cpu_time() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let params = json!({"source": "await host.slow({}); await host.slow({}); return 1", "hostFunctions": {"host": {"slow": {}}}});
    let started = Instant::now();
    let id = client.request("evaluate", &params);
    let mut waited = Duration::ZERO;
    for _ in 0..2 {
        let call = client.next_message();
        assert_eq!(call.get("method"), Some(&json!("host.call")), "{call}");
        // The host takes its time: nothing else comes while it does.
        let asked = Instant::now();
        assert!(matches!(client.next_until(asked + Duration::from_millis(120)), Incoming::Nothing));
        waited += asked.elapsed();
        client.send(&json!({"jsonrpc": "2.0", "id": call.get("id"), "result": null}));
    }
    let answer = client.answer(id, &mut Handlers::none());
    let result = answer.get("result").expect("a result");
    let elapsed = started.elapsed().as_secs_f64() * 1e3;
    let (wall, host, cpu) = (figure(result, "wallMs"), figure(result, "hostMs"), figure(result, "cpuMs"));
    let waited = waited.as_secs_f64() * 1e3;
    assert!(waited <= host && host <= wall && wall <= elapsed, "{waited} <= {host} <= {wall} <= {elapsed}: {result}");
    assert!(cpu <= wall - waited + TICKS_MS, "{cpu} ms of CPU time while waiting {waited} of {wall} ms: {result}");
}

#[test]
fn calls_at_the_same_time_are_no_more_host_time_than_the_clock_saw() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let params = json!({
        "source": "await Promise.all([1, 2, 3, 4].map(() => host.slow({}))); return 1",
        "hostFunctions": {"host": {"slow": {}}},
    });
    let id = client.request("evaluate", &params);
    let calls: Vec<Value> = (0..4).map(|_| client.next_message()).collect();
    let asked = Instant::now();
    assert!(matches!(client.next_until(asked + Duration::from_millis(100)), Incoming::Nothing));
    for call in &calls {
        client.send(&json!({"jsonrpc": "2.0", "id": call.get("id"), "result": null}));
    }
    let answer = client.answer(id, &mut Handlers::none());
    let result = answer.get("result").expect("a result");
    assert!(figure(result, "hostMs") >= 100.0 && figure(result, "hostMs") <= figure(result, "wallMs"), "{result}");
    assert!((figure(result, "hostCalls") - 4.0).abs() < f64::EPSILON, "{result}");
}

#[test]
fn peak_memory_is_what_was_held_and_the_kernel_saw_it_too() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let vm = vm(&mut client);
    let small = measured(&brigd, &mut client, &json!({"source": WORK, "vm": vm}));
    let before = peak_resident(small.1);
    let held = 24e6;
    // Freed before the end: the peak is told, not what is left.
    let source = format!(
        "{{ let big = new Uint8Array({held}); for (let i = 0; i < big.length; i += 4096) big[i] = 1; big = null }} {}",
        WORK.replace("let n", "var n")
    );
    let (result, worker, _) = measured(&brigd, &mut client, &json!({"source": source, "vm": vm}));
    assert_eq!(worker, small.1, "the vm has one worker");
    let told = figure(&result, "peakMemoryBytes");
    assert!((held..held + 8e6).contains(&told), "{result}");
    let grown = peak_resident(worker) - before;
    assert!((grown - held).abs() <= 8e6, "the kernel saw {grown} bytes more, {told} are told");
    assert!(figure(&small.0, "peakMemoryBytes") < 4e6, "{}", small.0);
}

#[test]
fn an_evaluation_that_was_ended_by_force_has_its_figures_too() {
    let brigd = Brigd::start();
    let result = brigd.connect().evaluate_with(&json!({"source": "for (;;) {}", "limits": {"cpuMs": 150}}), &mut Handlers::none());
    assert_eq!(result.pointer("/error/code"), Some(&json!("cpu_limit")), "{result}");
    let cpu = figure(&result, "cpuMs");
    assert!(cpu >= 150.0 - 10.0 && cpu <= figure(&result, "wallMs") + TICKS_MS, "{result}");
    assert!(figure(&result, "wallMs") <= DEADLINE.as_secs_f64() * 1e3, "{result}");
}

/// Memory of the engine that a process has to itself, in KiB. Only root may look.
fn own_heap_kib(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps")).ok()?;
    let mut in_heap = false;
    let mut own = 0;
    for line in text.lines() {
        match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["Private_Dirty:", kib, "kB"] if in_heap => own += kib.parse::<u64>().ok()?,
            [range, _, _, _, _, rest @ ..] if range.contains('-') => in_heap = rest == ["[heap]"],
            _ => {}
        }
    }
    Some(own)
}

#[test]
fn a_worker_that_evaluated_shares_what_its_nursery_warmed() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let vm = vm(&mut client);
    let (_, worker, _) = measured(&brigd, &mut client, &json!({"source": WORK, "vm": vm}));
    let own = own_heap_kib(worker).expect("the worker's memory");
    // 132 KiB on one kernel. Where using an object writes to it, as counting its references
    // does, it is 284; where nothing is shared, some 800.
    assert!((16..220).contains(&own), "{own} KiB of the warmed heap were copied");
}
