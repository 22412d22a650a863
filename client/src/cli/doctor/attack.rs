//! `brig doctor --attack`: programs that try to get out, on the brigd that answers here.
//!
//! Owns the set: some of the attacks that the tests run, with the ends that they must come
//! to written in their heads. Never a feature of brigd: they go the way of any program.

use super::Finding;
use brig::protocol::escape::escaped;
use brig::{Client, Evaluate, EvaluateResult, HostFunctions, Permissions};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Wall clock of one attack, unless its head says less.
const TIME: Duration = Duration::from_secs(10);
/// What a denied function would say.
const SECRET: &str = "hunter2";

macro_rules! attacks {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("../../../../tests/escape/", $name, ".js")))),*] };
}

/// By name, with the program as the tests have it.
const ATTACKS: &[(&str, &str)] = attacks![
    "cpu-loop",
    "cpu-indexof",
    "cpu-json-dag",
    "cpu-regexp",
    "mem-array",
    "mem-buffer",
    "mem-string",
    "stack-recursion",
    "reach-async-constructors",
    "reach-constructor-chain",
    "reach-denied-function",
    "reach-global-surface",
    "reach-import",
    "reach-n8n-child-process",
    "time-shared-memory",
];

/// Runs all of them, and then a program that does no harm.
pub(super) async fn run(client: &Client) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, program) in ATTACKS {
        findings.push(attack(client, name, program).await);
    }
    let after = client.evaluate(Evaluate::new("6 * 7")).await;
    findings.push(match after {
        Ok(result) if value_of(&result) == Some(json!(42)) => Finding::good("after the attacks", "the next program runs as ever"),
        Ok(_) => Finding::bad("after the attacks", "the next program came to something else", None),
        Err(fault) => Finding::bad("after the attacks", fault.to_string(), None),
    });
    findings
}

async fn attack(client: &Client, name: &str, program: &str) -> Finding {
    let what = format!("attack {name}");
    let reached = Arc::new(AtomicBool::new(false));
    let time = head(program, "wall").and_then(|wall| wall.parse().ok()).map_or(TIME, Duration::from_millis);
    let evaluate = Evaluate::new(program).timeout(time).host_functions(functions(&reached)).permissions(permissions());
    let result = match client.evaluate(evaluate).await {
        Ok(result) => result,
        Err(fault) => {
            let remedy = "let this user evaluate (root may), or see what brigd says of it";
            return Finding::bad(what, escaped(&fault.to_string(), 300), Some(remedy.to_owned()));
        }
    };
    let expected = head(program, "expect").unwrap_or_default();
    let value = value_of(&result);
    let code = result.error.as_ref().map(|error| error.code.as_str());
    if reached.load(Ordering::SeqCst) {
        return Finding::bad(what, "it reached a function that is denied", Some(remedy()));
    }
    if !holds(expected, value.as_ref(), code) {
        let came_to = code.map_or_else(|| value.unwrap_or_default().to_string(), str::to_owned);
        return Finding::bad(what, format!("expected {expected}, came to {}", escaped(&came_to, 200)), Some(remedy()));
    }
    let stopped_by = head(program, "stops").unwrap_or_default();
    Finding::good(what, format!("held ({stopped_by}): {}", code.unwrap_or("its value is harmless")))
}

fn remedy() -> String {
    "stop brigd, keep its log and journal, and report this: see SECURITY.md".to_owned()
}

/// What a head of `// name: text` lines says.
fn head<'t>(program: &'t str, name: &str) -> Option<&'t str> {
    let lines = program.lines().map_while(|line| line.strip_prefix("// "));
    lines.filter_map(|line| line.split_once(": ")).find(|(found, _)| *found == name).map(|(_, text)| text.trim())
}

/// Whether an end is one of those expected: `value JSON` or `code one|another`, with ` or `
/// between them.
fn holds(expected: &str, value: Option<&Value>, code: Option<&str>) -> bool {
    expected.split(" or ").any(|end| match end.trim().split_once(' ') {
        Some(("value", wanted)) => code.is_none() && value == serde_json::from_str(wanted).ok().as_ref(),
        Some(("code", wanted)) => wanted.split('|').any(|wanted| code == Some(wanted.trim())),
        _ => false,
    })
}

fn value_of(result: &EvaluateResult) -> Option<Value> {
    result.value.as_ref().and_then(|value| serde_json::from_str(value.get()).ok())
}

/// Functions in reach: two that are allowed, one that is denied.
fn functions(reached: &Arc<AtomicBool>) -> HostFunctions {
    let reached = Arc::clone(reached);
    HostFunctions::new()
        .collection("host")
        .function("echo", json!({"type": "object"}), async |input: Value, _| Ok(input))
        .function("list", json!({"type": "object"}), async |_: Value, _| Ok(json!({"list": [1, 2, 3]})))
        .function("secret", json!({"type": "object"}), move |_: Value, _| {
            reached.store(true, Ordering::SeqCst);
            async { Ok(SECRET) }
        })
        .finish()
}

fn permissions() -> Permissions<'static> {
    Permissions { host_function: super::super::run::scope(&[], &["host.secret".to_owned()]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_attack_says_what_must_stop_it_and_how_it_must_end() {
        for (name, program) in ATTACKS {
            let expected = head(program, "expect").unwrap_or_default();
            assert!(expected.starts_with("code ") || expected.starts_with("value "), "{name}: {expected}");
            assert!(head(program, "stops").is_some_and(|stops| !stops.is_empty()), "{name}");
        }
    }

    #[test]
    fn an_end_that_is_not_expected_is_told_from_one_that_is() {
        assert!(holds("code timed_out|cpu_limit", None, Some("cpu_limit")));
        assert!(!holds("code timed_out|cpu_limit", Some(&json!(1)), None));
        assert!(holds("value [true] or code guest_error", Some(&json!([true])), None));
        assert!(!holds("value [true]", Some(&json!([false])), None));
        assert!(!holds("value true", Some(&json!(true)), Some("guest_error")));
        assert!(!holds("", None, None), "an attack without an expectation holds nothing");
    }
}
