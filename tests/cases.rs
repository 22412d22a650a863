//! Real-world programs, schemas and faults with their right answers, one file a case.
//!
//! Every case of `cases/` runs against the real brigd; the format is described in
//! `cases/README.md`. Cases that wait for a later issue are listed by name in
//! `cases/waiting.txt`, and one that starts to pass fails this test until it is taken
//! off the list.
#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

use acceptance::{Brigd, Client, Handlers};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

/// The programs of one case: its `program`, or its variants, or what it generates.
fn programs(case: &Value) -> Vec<String> {
    if let Some(program) = case.get("program").and_then(Value::as_str) {
        return vec![program.to_owned()];
    }
    if let Some(variants) = case.get("variants").and_then(Value::as_array) {
        return variants.iter().map(|variant| variant.as_str().map_or_else(|| generated(variant), str::to_owned)).collect();
    }
    if let Some(sequence) = case.get("sequence").and_then(Value::as_array) {
        return sequence.iter().map(|step| step.as_str().map_or_else(|| generated(step), str::to_owned)).collect();
    }
    case.get("generated").and_then(Value::as_array).expect("a case has programs").iter().map(generated).collect()
}

fn generated(spec: &Value) -> String {
    if let Some(text) = spec.get("text").or_else(|| spec.get("program")).and_then(Value::as_str) {
        return text.to_owned();
    }
    let repeat = spec.get("repeat").and_then(Value::as_array).expect("repeat");
    let part = |index: usize| repeat.get(index).and_then(Value::as_str).unwrap_or_default();
    let count = usize::try_from(repeat.get(1).and_then(Value::as_u64).expect("a count")).expect("a size");
    let closer = match part(0) {
        "(" => ")",
        "{" => "}",
        "[" => "]",
        "`${" => "}`",
        _ => "",
    };
    let prefix = spec.get("prefix").and_then(Value::as_str).unwrap_or_default();
    format!("{prefix}{}{}{}", part(0).repeat(count), part(2), closer.repeat(count))
}

/// The params of `evaluate` that a case asks for.
fn params(case: &Value, program: &str) -> Value {
    let mut collections = Map::new();
    for (name, function) in case.get("hostFunctions").and_then(Value::as_object).into_iter().flatten() {
        let (collection, function_name) = name.split_once('.').expect("collection.function");
        let mut declaration = Map::new();
        for member in ["description", "inputSchema", "outputSchema", "examples", "timeoutMs", "effect"] {
            if let Some(value) = function.get(member) {
                declaration.insert(member.to_owned(), value.clone());
            }
        }
        let entry = collections.entry(collection).or_insert_with(|| json!({}));
        entry.as_object_mut().expect("an object").insert(function_name.to_owned(), Value::Object(declaration));
    }
    let limit = |name: &str| case.get("limits").and_then(|limits| limits.get(name)).and_then(Value::as_u64);
    let mut limits = Map::new();
    let mut set = |name: &str, value: Option<u64>| value.map(|value| limits.insert(name.to_owned(), json!(value)));
    set("heapBytes", limit("memoryMb").map(|mib| mib * 1024 * 1024));
    set("hostCalls", limit("maxHostCalls"));
    set("consoleBytes", limit("maxOutputBytes"));
    set("resultBytes", limit("maxResultBytes"));
    let mut params = json!({"source": program, "hostFunctions": collections, "limits": limits});
    let object = params.as_object_mut().expect("an object");
    if let Some(timeout) = limit("timeoutMs") {
        object.insert("timeoutMs".to_owned(), json!(timeout));
    }
    for member in ["inputs", "timeZone"] {
        if let Some(value) = case.get(member) {
            object.insert(member.to_owned(), value.clone());
        }
    }
    if let Some(permissions) = case.get("permissions") {
        object.insert("permissions".to_owned(), json!({"hostFunction": scope(permissions)}));
    }
    params
}

fn scope(permissions: &Value) -> Value {
    let patterns = |mode: &str| permissions.get(mode).and_then(Value::as_array).filter(|list| !list.is_empty()).cloned();
    let default = if permissions.get("allow").is_some() { "deny" } else { "allow" };
    let rules: Vec<Value> = ["allow", "deny"].iter().filter_map(|mode| Some(json!({"mode": mode, "patterns": patterns(mode)?}))).collect();
    json!({"default": default, "rules": rules})
}

/// What came of one program.
struct Run {
    answer: Value,
    /// The answer as it came.
    line: String,
    handlers: Handlers,
    wall: Duration,
    healthy: bool,
}

impl Run {
    fn result(&self) -> &Value {
        self.answer.get("result").unwrap_or(&Value::Null)
    }

    /// The outcome in the words of the cases.
    fn outcome(&self) -> &'static str {
        let result = self.result();
        let code = result.pointer("/error/code").and_then(Value::as_str).unwrap_or_default();
        match result.get("outcome").and_then(Value::as_str) {
            Some("succeeded") => "succeeded",
            Some("timed_out") => "timeout",
            Some("failed") if code.ends_with("_limit") || code == "result_too_large" => "limit",
            Some("failed") if code == "worker_crashed" => "crashed",
            // A request that was refused: nothing ran, and the caller was told why.
            Some("failed") | None => "failed",
            Some(_) => "cancelled",
        }
    }

    fn error_text(&self) -> String {
        let error = self.result().get("error").or_else(|| self.answer.get("error")).cloned().unwrap_or_default();
        error.to_string()
    }

    fn logs(&self) -> String {
        let text = |name: &str| self.result().get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        text("stdout") + &text("stderr")
    }
}

fn run(brigd: &Brigd, client: &mut Client, case: &Value, program: &str) -> Run {
    let mut handlers = Handlers::none();
    for (name, function) in case.get("hostFunctions").and_then(Value::as_object).into_iter().flatten() {
        handlers = handlers.on(name, function.get("handler").cloned().unwrap_or_else(|| json!({"kind": "echo"})));
    }
    let started = Instant::now();
    let id = client.request("evaluate", &params(case, program));
    let answer = client.answer(id, &mut handlers);
    let wall = started.elapsed();
    let healthy = brigd.connect().evaluate("return 1").get("value") == Some(&json!(1));
    Run { answer, line: client.last_line.clone(), handlers, wall, healthy }
}

/// What of `expect` does not hold.
fn violations(expect: &Value, run: &Run) -> Vec<String> {
    let mut wrong = Vec::new();
    let Some(expect) = expect.as_object() else { return vec![format!("not an expectation: {expect}")] };
    for (name, wanted) in expect {
        if let Some(why) = violation(name, wanted, run) {
            wrong.push(format!("{name} {wanted}: {why}"));
        }
    }
    wrong
}

fn violation(name: &str, wanted: &Value, run: &Run) -> Option<String> {
    let unless = |holds: bool, seen: String| (!holds).then_some(seen);
    let value = run.result().get("value");
    match name {
        "note" | "responses" => None,
        "outcome" => unless(wanted == run.outcome(), format!("{} {}", run.outcome(), run.error_text())),
        "outcomeIn" => unless(list(wanted).iter().any(|one| one == run.outcome()), format!("{} {}", run.outcome(), run.error_text())),
        "value" => unless(value.is_some_and(|value| same(value, wanted)), format!("{value:?}")),
        "valueSubset" => unless(value.is_some_and(|value| subset(value, wanted)), format!("{value:?}")),
        "valueAnyOf" => {
            let matches = |one: &Value| if one == "__absent__" { value.is_none() } else { value.is_some_and(|value| same(value, one)) };
            unless(list(wanted).iter().any(matches), format!("{value:?}"))
        }
        "valueMatches" => {
            let text = value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).unwrap_or_default();
            unless(matches_pattern(&text, wanted), text)
        }
        "valueText" => {
            let text = format!("\"value\":{}", wanted.as_str().unwrap_or_default());
            unless(run.line.contains(&text), run.line.clone())
        }
        "errorContains" | "errorMentions" => contains_all(&run.error_text(), wanted),
        "errorNotContains" => contains_none(&run.error_text(), wanted),
        "errorMatches" => unless(matches_pattern(&run.error_text(), wanted), run.error_text()),
        "errorKind" => unless(run.error_text().contains("guest_error") && wanted == "guest", run.error_text()),
        "errorLine" => unless(run.result().pointer("/error/line") == Some(wanted), run.error_text()),
        "logsContain" => contains_all(&run.logs(), wanted),
        "logsNotContain" => contains_none(&run.logs(), wanted),
        "logsMaxBytes" => unless(u64::try_from(run.logs().len()).ok() <= wanted.as_u64(), run.logs().len().to_string()),
        "warningContains" => contains_all(&run.result().get("warnings").map(Value::to_string).unwrap_or_default(), wanted),
        "truncatedFlag" => unless(flagged(run), "no flag".to_owned()),
        "calls" => calls(wanted, run),
        "callsMax" => {
            let total: u64 = run.handlers.all_calls().values().sum();
            unless(Some(total) <= wanted.as_u64(), total.to_string())
        }
        "hostSawOnly" => {
            unless(run.handlers.seen.iter().all(|(_, input)| list(wanted).contains(input)), format!("{:?}", run.handlers.seen))
        }
        "callRecord" => {
            let records = run.result().get("calls").cloned().unwrap_or_default();
            unless(list(&records).iter().any(|record| subset(record, wanted)), records.to_string())
        }
        "maxWallMs" => {
            let wall = u64::try_from(run.wall.as_millis()).unwrap_or(u64::MAX);
            // Twice the case's figure: the machine may be busy, a hang is far longer.
            unless(Some(wall) <= wanted.as_u64().map(|ms| ms * 2), format!("{wall} ms"))
        }
        "rssMaxMb" => {
            let peak = run.result().pointer("/usage/peakMemoryBytes").and_then(Value::as_u64).unwrap_or(0) >> 20;
            unless(Some(peak) <= wanted.as_u64(), format!("{peak} MiB"))
        }
        "healthAfter" => unless(run.healthy, "the next evaluation failed".to_owned()),
        "anyOf" => {
            let all: Vec<Vec<String>> = list(wanted).iter().map(|one| violations(one, run)).collect();
            unless(all.iter().any(Vec::is_empty), format!("{all:?}"))
        }
        "not" => unless(list(wanted).iter().all(|one| !violations(one, run).is_empty()), "that is what happened".to_owned()),
        other => Some(format!("this test does not know the expectation {other}")),
    }
}

fn flagged(run: &Run) -> bool {
    ["stdoutTruncated", "stderrTruncated"].iter().any(|flag| run.result().get(*flag) == Some(&json!(true)))
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_else(|| vec![value.clone()])
}

fn contains_all(text: &str, wanted: &Value) -> Option<String> {
    let text = text.to_lowercase();
    // Within JSON text quotes are escaped; a wanted text may have them or not.
    let plain = text.replace("\\\"", "\"");
    let missing: Vec<Value> = list(wanted)
        .into_iter()
        .filter(|part| {
            let part = part.as_str().unwrap_or_default().to_lowercase();
            !text.contains(&part) && !plain.contains(&part)
        })
        .collect();
    (!missing.is_empty()).then(|| format!("{missing:?} not in {text}"))
}

fn contains_none(text: &str, unwanted: &Value) -> Option<String> {
    let lower = text.to_lowercase();
    list(unwanted)
        .iter()
        .find(|part| lower.contains(&part.as_str().unwrap_or_default().to_lowercase()))
        .map(|part| format!("{part} is in {text}"))
}

fn calls(wanted: &Value, run: &Run) -> Option<String> {
    let wanted: Map<String, Value> = wanted.as_object().cloned().unwrap_or_default();
    let seen: Map<String, Value> = run.handlers.all_calls().iter().map(|(name, count)| (name.clone(), json!(count))).collect();
    (wanted != seen).then(|| format!("{seen:?}"))
}

/// Equality of JSON values, numbers by value.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y)),
        (Value::Object(x), Value::Object(y)) => x.len() == y.len() && x.iter().all(|(name, x)| y.get(name).is_some_and(|y| same(x, y))),
        _ => a == b,
    }
}

fn subset(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Object(value), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| value.get(name).is_some_and(|value| subset(value, wanted)))
        }
        _ => same(value, wanted),
    }
}

/// The patterns of the cases are alternatives of literals and a few classes.
fn matches_pattern(text: &str, pattern: &Value) -> bool {
    let pattern = pattern.as_str().unwrap_or_default();
    regex::Regex::new(pattern).expect("the pattern of a case").is_match(text)
}

/// What is wrong with one program case; nothing when it holds.
fn judge_program(brigd: &Brigd, case: &Value) -> Vec<String> {
    let expect = case.get("expect").expect("a case expects something");
    let mut wrong = Vec::new();
    let mut shared = brigd.connect();
    for (index, program) in programs(case).iter().enumerate() {
        let per_variant = expect.get("perVariant").map(|list| list.get(index).cloned().unwrap_or_else(|| json!({})));
        let mut common = expect.clone();
        common.as_object_mut().expect("an object").remove("perVariant");
        let run = run(brigd, &mut shared, case, program);
        let mut found = violations(&common, &run);
        found.extend(per_variant.iter().flat_map(|expect| violations(expect, &run)));
        wrong.extend(found.into_iter().map(|why| format!("program {index}: {}", shortened(&why))));
    }
    wrong.extend(judge_checks(brigd, case));
    wrong
}

/// The inputs of a schema case, each by itself: its error must say what is wrong.
fn judge_checks(brigd: &Brigd, case: &Value) -> Vec<String> {
    let Some(checks) = case.get("checks").and_then(Value::as_array) else { return Vec::new() };
    let mut wrong = Vec::new();
    let mut client = brigd.connect();
    for check in checks {
        let mut one = case.clone();
        one.as_object_mut().expect("an object").insert("inputs".to_owned(), json!({"input": check.get("input")}));
        let run = run(brigd, &mut client, &one, "return await tool.call(inputs.input)");
        let valid = check.get("valid") == Some(&json!(true));
        if (run.outcome() == "succeeded") != valid {
            wrong.push(format!("{}: {}", check, shortened(&run.answer.to_string())));
        } else if let Some(wanted) = check.get("errorContains") {
            wrong.extend(contains_all(&run.error_text(), wanted).map(|why| format!("{check}: {}", shortened(&why))));
        }
    }
    wrong
}

fn shortened(text: &str) -> String {
    text.chars().take(1500).collect()
}

/// Cases that are listed as waiting for a later issue.
fn waiting() -> BTreeSet<String> {
    let text = std::fs::read_to_string(folder().join("waiting.txt")).unwrap_or_default();
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

fn cases(kind: &str) -> Vec<Value> {
    let only = std::env::var("BRIG_CASE").ok();
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder()).expect("the cases").flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
        .iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| {
            // A half surrogate pair, which only some cases' programs have, is no text here:
            // U+FFFD stands for it, as a client in this language would have it.
            let text = std::fs::read_to_string(path).expect("a case").replace("\\ud800'", "\\ufffd'");
            serde_json::from_str(&text).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()))
        })
        .filter(|case: &Value| case.get("kind").and_then(Value::as_str) == Some(kind))
        .filter(|case| only.as_ref().is_none_or(|only| case.get("id").and_then(Value::as_str).is_some_and(|id| id.starts_with(only))))
        .collect()
}

#[test]
fn every_program_case_has_its_right_answer() {
    let brigd = Brigd::start();
    let waiting = waiting();
    let mut failed = Vec::new();
    let cases = cases("program");
    assert!(!cases.is_empty(), "no cases were found");
    for case in &cases {
        let id = case.get("id").and_then(Value::as_str).expect("a case has an id");
        let wrong = judge_program(&brigd, case);
        match (wrong.is_empty(), waiting.contains(id)) {
            (true, true) => failed.push(format!("{id} passes now: take it off cases/waiting.txt")),
            (false, false) => failed.push(format!("{id}:\n    {}", wrong.join("\n    "))),
            _ => {}
        }
    }
    assert!(failed.is_empty(), "{} of {} cases:\n{}", failed.len(), cases.len(), failed.join("\n"));
}

#[test]
fn every_waiting_case_exists() {
    for id in waiting() {
        assert!(folder().join(format!("{id}.json")).exists(), "{id} is on the list of waiting cases, but there is no such case");
    }
}
