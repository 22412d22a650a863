//! Attack 6: any process dies or stops at any stage. Nobody is left behind, every caller
//! gets exactly one answer, and the next evaluation is as good as the first.
#![expect(clippy::expect_used, reason = "tests")]

use acceptance::{Brigd, Client, DEADLINE, Handlers};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

fn pid(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).expect("a pid"))
}

fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
}

/// Processes below brigd that have children of their own: the nursery and its guardian.
fn nursery(brigd: &Brigd) -> Vec<u32> {
    let all: Vec<u32> = brigd.descendants().into_iter().map(|(pid, _)| pid).collect();
    let parents: HashSet<u32> = all.iter().filter_map(|pid| parent(*pid)).collect();
    all.into_iter().filter(|pid| parents.contains(pid)).collect()
}

/// Processes below brigd without children: the workers.
fn workers(brigd: &Brigd) -> Vec<u32> {
    let nursery = nursery(brigd);
    brigd.descendants().into_iter().map(|(pid, _)| pid).filter(|pid| !nursery.contains(pid)).collect()
}

/// Starts a program that waits for a host call; its request id.
fn waiting_evaluation(client: &mut Client) -> u64 {
    let params =
        json!({"source": "console.log('so far'); return await svc.f({})", "hostFunctions": {"svc": {"f": {}}}, "timeoutMs": 20000});
    let id = client.request("evaluate", &params);
    let call = client.next_message();
    assert_eq!(call.get("method"), Some(&json!("host.call")), "{call}");
    id
}

fn works(brigd: &Brigd) {
    assert_eq!(brigd.connect().evaluate("1+2").get("value"), Some(&json!(3)));
}

fn gone(pids: &[u32]) {
    let deadline = Instant::now() + DEADLINE;
    for pid in pids {
        // A zombie of a process that another one must reap counts as gone.
        while is_alive(*pid) {
            assert!(Instant::now() < deadline, "process {pid} is left");
            std::thread::yield_now();
        }
    }
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    Path::new(&format!("/proc/{pid}")).exists() && stat.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with(['Z', 'X']))
}

#[test]
fn killing_the_supervisor_leaves_nobody_behind_at_any_stage() {
    for busy in [false, true] {
        let mut brigd = Brigd::start();
        let mut clients = Vec::new();
        if busy {
            let mut waiting = brigd.connect();
            waiting_evaluation(&mut waiting);
            let mut spinning = brigd.connect();
            spinning.request("evaluate", &json!({"source": "while (true) {}"}));
            clients.extend([waiting, spinning]);
        } else {
            works(&brigd);
        }
        let below: Vec<u32> = brigd.descendants().into_iter().map(|(pid, _)| pid).collect();
        assert!(!below.is_empty(), "brigd has no workers");
        brigd.signal(Signal::SIGKILL);
        brigd.wait();
        gone(&below);
    }
}

#[test]
fn killing_the_nursery_ends_its_evaluations_and_a_new_one_takes_over() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let id = waiting_evaluation(&mut client);
    for nursery in nursery(&brigd) {
        kill(pid(nursery), Signal::SIGKILL).ok();
    }
    let answer = client.answer(id, &mut Handlers::none());
    assert_eq!(answer.pointer("/result/error/code"), Some(&json!("worker_crashed")), "{answer}");
    assert_eq!(answer.pointer("/result/calls/0/state"), Some(&json!("unknown")), "{answer}");
    works(&brigd);
}

#[test]
fn killing_a_worker_gives_its_caller_one_answer_with_what_there_was() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let id = waiting_evaluation(&mut client);
    let killed = workers(&brigd);
    for worker in &killed {
        kill(pid(*worker), Signal::SIGKILL).ok();
    }
    // A ready one that has the signal and not died of it yet would still be handed out.
    gone(&killed);
    let answer = client.answer(id, &mut Handlers::none());
    assert_eq!(answer.pointer("/result/outcome"), Some(&json!("failed")), "{answer}");
    assert_eq!(answer.pointer("/result/error/code"), Some(&json!("worker_crashed")), "{answer}");
    assert_eq!(answer.pointer("/result/stdout"), Some(&json!("so far\n")), "{answer}");
    works(&brigd);
    assert_eq!(client.evaluate("5").get("value"), Some(&json!(5)));
}

#[test]
fn a_stopped_worker_is_ended_by_the_deadline() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let params = json!({"source": "return await svc.f({})", "hostFunctions": {"svc": {"f": {}}}, "timeoutMs": 1500});
    let id = client.request("evaluate", &params);
    client.next_message();
    let stopped = workers(&brigd);
    for worker in &stopped {
        kill(pid(*worker), Signal::SIGSTOP).ok();
    }
    let answer = client.answer(id, &mut Handlers::none());
    assert_eq!(answer.pointer("/result/outcome"), Some(&json!("timed_out")), "{answer}");
    // The others were ready ones, which nobody but this test would stop.
    for worker in &stopped {
        kill(pid(*worker), Signal::SIGCONT).ok();
    }
    works(&brigd);
}

#[test]
fn a_crash_ends_the_generation_so_that_nothing_learned_from_it_stays_true() {
    let brigd = Brigd::start();
    works(&brigd);
    let before: HashSet<u32> = nursery(&brigd).into_iter().collect();
    let mut client = brigd.connect();
    let id = waiting_evaluation(&mut client);
    let killed = workers(&brigd);
    for worker in &killed {
        kill(pid(*worker), Signal::SIGSEGV).ok();
    }
    // A ready one that has the signal and not died of it yet would still be handed out.
    gone(&killed);
    let answer = client.answer(id, &mut Handlers::none());
    assert_eq!(answer.pointer("/result/error/code"), Some(&json!("worker_crashed")), "{answer}");
    let deadline = Instant::now() + DEADLINE;
    loop {
        works(&brigd);
        let now: HashSet<u32> = nursery(&brigd).into_iter().collect();
        if !now.is_empty() && now.is_disjoint(&before) {
            break;
        }
        assert!(Instant::now() < deadline, "the old nursery is still there: {before:?} {now:?}");
    }
}

#[test]
fn who_was_let_in_just_before_the_end_still_hears_that_it_came_too_late() {
    let mut brigd = Brigd::start();
    // As many as take longer to say what they want than brigd would take to end.
    let mut clients: Vec<Client> = (0..100).map(|_| brigd.connect()).collect();
    for client in &mut clients {
        assert!(client.call("initialize", &json!({})).get("result").is_some(), "it is not let in");
    }
    brigd.signal(Signal::SIGTERM);
    // Its path goes when nobody is let in any more.
    let deadline = Instant::now() + DEADLINE;
    while brigd.socket().exists() {
        assert!(Instant::now() < deadline, "brigd does not stop: {}", brigd.log());
        std::thread::yield_now();
    }
    for client in &mut clients {
        let answer = client.call("evaluate", &json!({"source": "1"}));
        assert_eq!(answer.pointer("/error/data/code"), Some(&json!("shutting_down")), "{answer}");
    }
    assert!(brigd.wait().success(), "{}", brigd.log());
}

/// How long an end takes with clients that had their answers, or never asked for anything.
fn end_with_idle_clients(they_asked: bool) -> Duration {
    let mut brigd = Brigd::start();
    let mut clients: Vec<Client> = (0..10).map(|_| brigd.connect()).collect();
    for client in &mut clients {
        assert!(client.call("initialize", &json!({})).get("result").is_some(), "it is not let in");
        if they_asked {
            assert_eq!(client.evaluate("1").get("value"), Some(&json!(1)));
        }
    }
    if !they_asked {
        // Longer than anybody is a newcomer, on any machine.
        let slow = brigd.connect().evaluate("await new Promise((done) => setTimeout(done, 2500)); return 1");
        assert_eq!(slow.get("value"), Some(&json!(1)), "{slow}");
    }
    let asked = Instant::now();
    brigd.signal(Signal::SIGTERM);
    assert!(brigd.wait().success(), "{}", brigd.log());
    asked.elapsed()
}

#[test]
fn an_end_does_not_wait_for_clients_that_have_said_what_they_came_for() {
    // The wait for newcomers is half a second, on any machine: one end that was faster shows it.
    let took: Vec<Duration> = (0..5).map(|_| end_with_idle_clients(true)).collect();
    assert!(took.iter().any(|took| *took < Duration::from_millis(500)), "{took:?}");
}

#[test]
fn an_end_does_not_wait_for_clients_that_have_long_asked_for_nothing() {
    let took: Vec<Duration> = (0..3).map(|_| end_with_idle_clients(false)).collect();
    assert!(took.iter().any(|took| *took < Duration::from_millis(500)), "{took:?}");
}

#[test]
fn sigterm_answers_what_runs_takes_nothing_new_and_leaves_nobody() {
    let mut brigd = Brigd::start();
    let mut client = brigd.connect();
    let id = waiting_evaluation(&mut client);
    let mut other = brigd.connect();
    assert_eq!(other.evaluate("1").get("value"), Some(&json!(1)));
    let below: Vec<u32> = brigd.descendants().into_iter().map(|(pid, _)| pid).collect();
    brigd.signal(Signal::SIGTERM);
    // The evaluation that runs gets to its end, new ones are refused as retryable.
    let refused = loop {
        let answer = other.call("evaluate", &json!({"source": "1"}));
        if answer.get("error").is_some() {
            break answer;
        }
    };
    assert_eq!(refused.pointer("/error/data/code"), Some(&json!("shutting_down")), "{refused}");
    client.send(&json!({"jsonrpc": "2.0", "id": "unknown", "result": 1}));
    client.send(&json!({"jsonrpc": "2.0", "method": "cancel", "params": {"id": id}}));
    let answer = client.answer(id, &mut Handlers::none());
    assert_eq!(answer.pointer("/result/outcome").and_then(Value::as_str), Some("cancelled"), "{answer}");
    assert!(brigd.wait().success(), "{}", brigd.log());
    gone(&below);
    assert!(!brigd.socket().exists(), "the socket is left");
}

/// What the kernel goes by when it has to end something for lack of memory.
fn oom_score(pid: u32) -> i32 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).expect("a score");
    text.trim().parse().expect("a number")
}

#[test]
fn when_memory_runs_out_the_kernel_ends_workers_before_brigd() {
    for origin in ["fork", "exec"] {
        let brigd = acceptance::BrigdOptions::default().config(&format!("[workers]\norigin = \"{origin}\"\n")).start();
        works(&brigd);
        let own = oom_score(brigd.pid());
        let below = brigd.descendants();
        assert!(below.len() > 1, "{below:?}");
        for (pid, _) in below.iter().filter(|(pid, _)| is_alive(*pid)) {
            assert_eq!(oom_score(*pid), (own + 500).min(1000), "{origin}: {below:?}");
        }
    }
}
