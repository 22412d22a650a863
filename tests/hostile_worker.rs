//! Attack 8: a worker that has been taken over and says what it likes on its socket.
//!
//! brigd runs with `brig-hostile` as its worker: the same lock-down, but each worker does
//! what the program's text names. brigd ends it with the documented code, answers its
//! caller once, stays within bounded memory, and serves the next evaluation.
#![expect(clippy::expect_used, reason = "tests")]

use acceptance::{BrigdOptions, Handlers, binary};
use serde_json::{Value, json};

const BREACH: &str = "protocol_violation";

/// What a worker does, and the ends that are right. `value` is the value that stands.
const ATTACKS: &[(&str, &str)] = &[
    ("length-zero", BREACH),
    ("length-4gib", BREACH),
    ("length-over", BREACH),
    ("truncated", "worker_crashed|protocol_violation"),
    ("stalled-frame", "protocol_violation|timed_out"),
    ("byte-by-byte", "protocol_violation|timed_out"),
    ("announced-never-sent", "protocol_violation|timed_out"),
    ("not-utf8", BREACH),
    ("not-json", BREACH),
    ("array", BREACH),
    ("unknown-method", BREACH),
    ("unknown-member", BREACH),
    ("duplicate-keys", BREACH),
    ("named-function", BREACH),
    ("ready-again", BREACH),
    ("reply-to-nobody", BREACH),
    ("lone-surrogate", BREACH),
    ("deep", BREACH),
    ("nodes", BREACH),
    ("forged-cancelled", BREACH),
    ("forged-crash", BREACH),
    ("value-and-error", BREACH),
    ("id-jump", BREACH),
    ("id-twice", BREACH),
    ("index-outside", BREACH),
    ("index-denied", "timed_out"),
    ("huge-input", BREACH),
    ("million-calls", BREACH),
    ("unread-replies", "timed_out|protocol_violation"),
    ("call-and-finish", "protocol_violation|value"),
    ("two-results", "value"),
    ("call-after-result", "value"),
    ("spin-after-result", "value"),
    ("huge-result", "protocol_violation|result_too_large"),
    ("output-flood", "timed_out|cpu_limit|output_limit|protocol_violation"),
    ("warning-flood", "timed_out|cpu_limit|output_limit|protocol_violation"),
    ("absurd-usage", BREACH),
    ("spin", "timed_out|cpu_limit"),
    ("silence", "timed_out"),
    ("exit", "worker_crashed"),
    ("panic", "worker_crashed"),
    ("forbidden-call", "worker_crashed"),
    ("abort", "worker_crashed"),
];

/// The code an evaluation ended with, or `value` when it succeeded with the first value.
fn end(result: &Value) -> String {
    match result.pointer("/error/code").and_then(Value::as_str) {
        Some(code) => code.to_owned(),
        None if result.get("value") == Some(&json!(1)) => "value".to_owned(),
        None => result.to_string(),
    }
}

#[test]
fn whatever_a_worker_says_brigd_ends_it_rightly_and_goes_on() {
    let worker = binary("brig-hostile").display().to_string();
    let brigd = BrigdOptions::default().arg("--worker").arg(&worker).start();
    let mut client = brigd.connect();
    let before = brigd.rss_kib();
    let mut wrong = Vec::new();
    for (attack, ends) in ATTACKS {
        let mut handlers =
            Handlers::none().on("host.echo", json!({"kind": "echo"})).on("host.secret", json!({"kind": "static", "result": "hunter2"}));
        let params = json!({
            "source": format!("hostile:{attack}"),
            "hostFunctions": {"host": {"echo": {}, "secret": {}}},
            "permissions": {"hostFunction": {"default": "allow", "rules": [{"mode": "deny", "patterns": ["host.secret"]}]}},
            "timeoutMs": 1500,
        });
        let result = client.evaluate_with(&params, &mut handlers);
        let seen = end(&result);
        if !ends.split('|').any(|end| end == seen) {
            let shown: String = result.to_string().chars().take(500).collect();
            wrong.push(format!("{attack}: expected {ends}, got {shown}"));
        }
        if handlers.calls("host.secret") > 0 {
            wrong.push(format!("{attack}: a denied function ran"));
        }
        let grown = brigd.rss_kib().saturating_sub(before);
        if grown > 128 * 1024 {
            wrong.push(format!("{attack}: brigd holds {grown} KiB more"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(!brigd.log().contains("panicked"), "{}", brigd.log());
}

#[test]
fn a_worker_that_dies_of_a_forbidden_call_is_reported_as_that() {
    let worker = binary("brig-hostile").display().to_string();
    let brigd = BrigdOptions::default().arg("--worker").arg(&worker).start();
    let result = brigd.connect().evaluate("hostile:forbidden-call");
    let message = result.pointer("/error/message").and_then(Value::as_str).expect("a message");
    assert!(message.contains("SIGSYS") && message.contains("system call"), "{message}");
}
