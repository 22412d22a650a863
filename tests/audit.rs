//! The audit of the real brigd: records of real evaluations verify, a kill in the middle
//! is told and mended, a record that can not be written refuses its call, and no secret
//! is anywhere in what brigd wrote.
#![expect(clippy::expect_used, reason = "tests")]

#[path = "audit/disk.rs"]
mod disk;
#[path = "audit/secrets.rs"]
mod secrets;

use acceptance::{Brigd, BrigdOptions, Client, DEADLINE, Handlers, binary};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;
use tempfile::TempDir;

/// An audit folder of its own, that outlives a brigd.
struct Audit {
    folder: TempDir,
}

impl Audit {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn dir(&self) -> PathBuf {
        self.folder.path().join("audit")
    }

    fn options(&self, more: &str) -> BrigdOptions {
        BrigdOptions::default().config(&format!("[audit]\ndir = {:?}\n{more}\n", self.dir()))
    }

    fn segments(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.dir()).expect("the audit folder").flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some()).collect();
        paths.sort();
        paths
    }

    fn newest(&self) -> PathBuf {
        self.segments().pop().expect("a segment")
    }

    fn records(&self) -> Vec<Value> {
        let text: String = self.segments().iter().map(|path| std::fs::read_to_string(path).expect("a segment")).collect();
        // The last line may be one that is being written.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| serde_json::from_str(line).expect("a record")).collect()
    }

    /// Records of one kind.
    fn events(&self, event: &str) -> Vec<Value> {
        self.records().into_iter().filter(|record| record.get("event") == Some(&json!(event))).collect()
    }

    fn tool(&self, arguments: &[&str]) -> (Option<i32>, String) {
        said(Command::new(binary("brigd")).arg("audit").args(arguments).arg("--dir").arg(self.dir()))
    }

    fn verifies(&self) -> String {
        let (code, text) = self.tool(&["verify"]);
        assert_eq!(code, Some(0), "{text}");
        text
    }
}

fn said(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().expect("the tool runs");
    (status.code(), String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr))
}

fn stop(mut brigd: Brigd) {
    brigd.signal(Signal::SIGTERM);
    assert!(brigd.wait().success(), "{}", brigd.log());
}

/// Calls `svc.f` once; the evaluation's result.
fn call(client: &mut Client, handlers: &mut Handlers) -> Value {
    let source = "try { return await svc.f({n: 1}) } catch (error) { return error.code }";
    client.evaluate_with(&json!({"source": source, "hostFunctions": {"svc": {"f": {}}}}), handlers)
}

fn handlers() -> Handlers {
    Handlers::none().on("svc.f", json!({"kind": "static", "result": {"ok": true}}))
}

#[test]
fn the_records_of_real_evaluations_verify_and_tell_what_happened() {
    let audit = Audit::new();
    let brigd = audit.options("segment_bytes = 4096\nlog = false").start();
    let mut client = brigd.connect();
    for _ in 0..10 {
        assert_eq!(call(&mut client, &mut handlers()).get("outcome"), Some(&json!("succeeded")));
    }
    let denied = json!({"source": "await svc.f({})", "hostFunctions": {"svc": {"f": {}}}, "permissions": {"hostFunction": "deny"}});
    let denied = client.evaluate_with(&denied, &mut Handlers::none());
    // While it runs too.
    audit.verifies();
    stop(brigd);
    let text = audit.verifies();
    assert!(text.starts_with("ok: ") && audit.segments().len() > 2, "{text}");

    let records = audit.records();
    let first = records.first().expect("a record");
    assert_eq!(first.get("event"), Some(&json!("segment_opened")));
    let started = audit.events("started");
    assert!(started.len() == 1 && started.iter().all(|record| record.pointer("/layers/0").is_some()), "{started:?}");
    assert_eq!(records.last().and_then(|record| record.pointer("/reason/signal")), Some(&json!("SIGTERM")));
    let refused = audit.events("call_refused");
    assert_eq!(refused.first().and_then(|record| record.get("code")), Some(&json!("permission_denied")));
    let of_denied: Vec<&Value> = records.iter().filter(|record| record.get("evaluation") == denied.get("evaluation")).collect();
    let events: Vec<&str> = of_denied.iter().filter_map(|record| record.get("event")?.as_str()).collect();
    assert_eq!(events, ["evaluation_started", "call_refused", "evaluation_ended"]);
    assert_eq!(of_denied.last().and_then(|record| record.get("code")), Some(&json!("guest_error")), "{of_denied:?}");
    let permitted = audit.events("call_permitted");
    assert_eq!(permitted.len(), 10);
    assert!(permitted.iter().all(|record| record.pointer("/input/sha256").is_some() && record.get("rule").is_some()));
    assert!(audit.events("call_ended").iter().all(|record| record.get("state") == Some(&json!("completed"))));
}

#[test]
fn the_tools_find_a_change_and_say_where_and_tell_it_by_their_exit_code() {
    let audit = Audit::new();
    assert_eq!(audit.tool(&["verify"]).0, Some(2));
    let brigd = audit.options("log = false").start();
    let mut client = brigd.connect();
    call(&mut client, &mut handlers());
    stop(brigd);
    let text = audit.verifies();
    let hash = text.trim_end().rsplit(' ').next().expect("the last hash").to_owned();
    assert_eq!(audit.tool(&["verify", "--anchor", &hash]).0, Some(0));
    let (code, text) = audit.tool(&["verify", "--anchor", &"1".repeat(64)]);
    assert!(code == Some(1) && text.contains("anchored"), "{text}");

    let path = audit.newest();
    let good = std::fs::read_to_string(&path).expect("a segment");
    std::fs::write(&path, good.replacen("\"svc.f\"", "\"svc.g\"", 1)).expect("a change");
    let (code, text) = audit.tool(&["verify"]);
    assert!(code == Some(1) && text.contains("segment-0000000001.jsonl:4: the record was changed"), "{text}");
    // The command of brig's is the same tool.
    let mut brig = Command::new(binary("brig"));
    let (code, forwarded) = said(brig.args(["audit", "verify", "--dir"]).arg(audit.dir()).env("BRIGD", binary("brigd")));
    assert_eq!((code, forwarded), (Some(1), text));
    assert_eq!(audit.tool(&["export"]).0, Some(1));

    std::fs::write(&path, &good).expect("it is as it was");
    let lines: Vec<&str> = good.lines().collect();
    let cut: String = lines.iter().take(lines.len() - 1).map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, cut).expect("a cut");
    let (code, text) = audit.tool(&["verify"]);
    assert!(code == Some(1) && text.contains("the end is cut off"), "{text}");
    let log = audit.options("").try_start().expect_err("brigd does not go on after a cut");
    assert!(log.contains("cut off") && log.contains("brigd audit verify") && log.contains("exit status: 5"), "{log}");
}

#[test]
fn export_and_tail_show_what_was_asked_for() {
    let audit = Audit::new();
    let brigd = audit.options("segment_bytes = 4096\nlog = false").start();
    let mut client = brigd.connect();
    let mut results: Vec<Value> = Vec::new();
    for _ in 0..8 {
        results.push(call(&mut client, &mut handlers()));
    }
    let id = results.first().and_then(|result| result.get("evaluation")?.as_str()).expect("an id").to_owned();
    let (code, text) = audit.tool(&["export", "--evaluation", &id]);
    assert_eq!((code, text.lines().count()), (Some(0), 4), "{text}");
    assert_eq!(audit.tool(&["export", "--function", "svc.*"]).1.lines().count(), 16);
    assert_eq!(audit.tool(&["export", "--function", "other.*"]).1, "");
    assert_eq!(audit.tool(&["export", "--principal", "uid:4294967294"]).1, "");
    assert_eq!(audit.tool(&["export", "--to", "2020-01-01T00:00:00Z"]).1, "");
    let (code, csv) = audit.tool(&["export", "--format", "csv", "--from", "2020-01-01T00:00:00Z", "--function", "svc.f"]);
    assert!(code == Some(0) && csv.starts_with("seq,time,event,") && csv.lines().count() == 17, "{csv}");
    assert_eq!(audit.tool(&["tail", "-n", "30", "--json"]).1.lines().count(), 30, "over more than one segment");
    let shown = audit.tool(&["tail", "-n", "1"]).1;
    assert!(shown.contains(" evaluation_ended ") && !shown.contains("prev"), "{shown}");
    assert_eq!(audit.tool(&["export", "--from", "yesterday"]).0, Some(2));
    stop(brigd);
}

#[test]
fn tail_follows_over_segments() {
    let audit = Audit::new();
    let brigd = audit.options("segment_bytes = 4096\nlog = false").start();
    let mut tail = Command::new(binary("brigd"));
    tail.args(["audit", "tail", "-n", "1000", "--follow", "--json", "--dir"]).arg(audit.dir()).stdout(Stdio::piped());
    let mut tail = tail.spawn().expect("the tool");
    let lines = BufReader::new(tail.stdout.take().expect("its output")).lines();
    let (sender, receiver) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let mut client = brigd.connect();
    for _ in 0..10 {
        call(&mut client, &mut handlers());
    }
    stop(brigd);
    let mut next = 1;
    loop {
        let line = receiver.recv_timeout(DEADLINE).expect("a record in time");
        let record: Value = serde_json::from_str(&line).expect("a record");
        assert_eq!(record.get("seq"), Some(&json!(next)));
        next += 1;
        if record.get("event") == Some(&json!("stopped")) {
            break;
        }
    }
    assert!(audit.segments().len() > 1);
    tail.kill().expect("an end");
    tail.wait().expect("its end");
    drop(receiver);
    reader.join().expect("the reader").ok();
}

#[test]
fn after_a_kill_in_the_middle_the_records_verify_and_the_next_brigd_goes_on() {
    let audit = Audit::new();
    for round in 0..3 {
        let mut brigd = audit.options("segment_bytes = 8192\nlog = false").start();
        let mut waiting = brigd.connect();
        waiting.request("evaluate", &json!({"source": "await svc.f({})", "hostFunctions": {"svc": {"f": {}}}}));
        assert_eq!(waiting.next_message().get("method"), Some(&json!("host.call")));
        let mut busy = brigd.connect();
        for _ in 0..20 {
            busy.request("evaluate", &json!({"source": "1"}));
        }
        busy.next_message();
        brigd.signal(Signal::SIGKILL);
        brigd.wait();
        let text = audit.verifies();
        assert!(!text.contains("BROKEN"), "round {round}: {text}");
    }
    // As if the kill had come in the middle of a write.
    let mut bytes = std::fs::read(audit.newest()).expect("the newest segment");
    bytes.extend_from_slice(b"{\"seq\":");
    std::fs::write(audit.newest(), bytes).expect("a torn record");
    assert!(audit.verifies().contains("7 bytes of a record"));
    let brigd = audit.options("segment_bytes = 8192\nlog = false").start();
    call(&mut brigd.connect(), &mut handlers());
    stop(brigd);
    assert!(audit.verifies().contains("what there was of it was cut off"));
    assert_eq!(audit.events("started").len(), 4);
    assert_eq!(audit.events("tail_repaired").len(), 1);
    // The calls whose end nobody recorded are there as permitted and never as ended.
    assert_eq!((audit.events("call_permitted").len(), audit.events("call_ended").len()), (4, 1));
}

#[test]
fn old_segments_go_as_configured_and_what_is_left_verifies() {
    let audit = Audit::new();
    for _ in 0..2 {
        let brigd = audit.options("segment_bytes = 4096\nkeep_bytes = 10000\nlog = false").start();
        let mut client = brigd.connect();
        for _ in 0..20 {
            call(&mut client, &mut handlers());
        }
        stop(brigd);
        assert!(audit.segments().len() <= 6, "{:?}", audit.segments());
    }
    assert!(audit.verifies().contains("removed as configured"));
}

#[test]
fn with_sync_call_evaluations_run_and_verify() {
    let audit = Audit::new();
    let brigd = audit.options("sync = \"call\"\nlog = false").start();
    let mut client = brigd.connect();
    for _ in 0..5 {
        assert_eq!(call(&mut client, &mut handlers()).get("value"), Some(&json!({"ok": true})));
    }
    stop(brigd);
    audit.verifies();
}

#[test]
fn a_reload_is_recorded_with_both_versions_and_a_refused_one_with_what_is_wrong() {
    let audit = Audit::new();
    let brigd = audit.options("log = false").start();
    let path = brigd.folder().join("brig.toml");
    let before = std::fs::read_to_string(&path).expect("the configuration");
    let recorded = |event: &str| {
        let until = Instant::now() + DEADLINE;
        loop {
            if let Some(record) = audit.events(event).pop() {
                return record;
            }
            assert!(Instant::now() < until, "no record of {event} in time");
            std::thread::yield_now();
        }
    };
    std::fs::write(&path, format!("{before}\n[clients]\nuids = [4294967294]\n")).expect("another configuration");
    brigd.signal(Signal::SIGHUP);
    let reloaded = recorded("policy_reloaded");
    assert_eq!(reloaded.pointer("/by/signal"), Some(&json!("SIGHUP")));
    let started = audit.events("started").pop().expect("a start");
    assert_eq!(reloaded.get("old"), started.get("policy"));
    assert_ne!(reloaded.get("old"), reloaded.get("new"));
    std::fs::write(&path, format!("{before}\n[clientss]\n")).expect("a wrong configuration");
    brigd.signal(Signal::SIGHUP);
    let refused = recorded("policy_refused");
    assert_eq!(refused.get("holds"), reloaded.get("new"));
    assert!(refused.get("why").and_then(Value::as_str).is_some_and(|why| why.contains("clientss")), "{refused}");
    stop(brigd);
    audit.verifies();
}

/// A text that is another one in each encoding.
const SECRET: &str = "pLANTED/7+f3?\"ž&Q-secret";
