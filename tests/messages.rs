//! Every text that a program's author can be told, in one readable file: `messages.txt`
//! holds each program of `messages/programs.txt` with its error and hint, or its warnings,
//! as the answer over the real socket has them. A change of a text is a decision.
#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

use acceptance::{BrigdOptions, Client, Handlers};
use serde_json::{Value, json};
use std::path::Path;

/// Programs are divided by lines of this form: what follows it is their heading, and after
/// a bar members of the request in JSON.
const HEADING: &str = "=== ";

struct Case {
    heading: String,
    params: Value,
    source: String,
}

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()))
}

fn cases(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix(HEADING), cases.last_mut()) {
            (Some(heading), _) => {
                let (heading, params) = heading.split_once(" | ").unwrap_or((heading, "{}"));
                let params = serde_json::from_str(params).unwrap_or_else(|fault| panic!("{heading}: {fault}"));
                cases.push(Case { heading: heading.to_owned(), params, source: String::new() });
            }
            (None, Some(case)) => {
                case.source.push_str(&expanded(line));
                case.source.push('\n');
            }
            (None, None) => panic!("programs.txt begins with a heading, not with {line}"),
        }
    }
    cases
}

/// `⟪x⟫*3` is `xxx`: programs that are long are written short.
fn expanded(line: &str) -> String {
    let repeated = regex::Regex::new("⟪(.*?)⟫\\*([0-9]+)").expect("a pattern");
    let times = |found: &regex::Captures<'_>| found[1].repeat(found[2].parse().expect("a number"));
    repeated.replace_all(line, times).into_owned()
}

/// What the host functions of all programs do.
fn handlers() -> Handlers {
    Handlers::none()
        .on("orders.list", json!({"kind": "static", "result": [{"id": "o_1", "total": 30}]}))
        .on(
            "orders.refund",
            json!({"kind": "throws", "error": {"message": "the order is closed", "code": "closed", "data": {"order": "o_1"}}}),
        )
        .on("orders.count", json!({"kind": "static", "result": "many"}))
        .on("orders.slow", json!({"kind": "never"}))
}

fn answer(client: &mut Client, case: &Case) -> Value {
    let mut params = json!({
        "source": case.source,
        "inputs": {"ids": [3, 1], "user": {"name": "Ada"}},
        "hostFunctions": {"orders": {
            "list": {"inputSchema": {"type": "object", "properties": {"customer": {"type": "string"}, "limit": {"type": "integer", "maximum": 50}}, "additionalProperties": false}},
            "refund": {"inputSchema": {"type": "object", "properties": {"orderId": {"type": "string"}}, "required": ["orderId"]}},
            "count": {"outputSchema": {"type": "integer"}},
            "slow": {},
        }},
        "permissions": {"hostFunction": {"default": "allow", "rules": [{"mode": "deny", "patterns": ["orders.count"]}]}},
    });
    // The rule that denies names a function that not every request declares.
    if case.heading.contains("(may count)") || case.params.get("hostFunctions").is_some() {
        params.as_object_mut().expect("an object").remove("permissions");
    }
    for (name, value) in case.params.as_object().expect("members of a request") {
        params.as_object_mut().expect("an object").insert(name.clone(), value.clone());
    }
    let id = client.request("evaluate", &params);
    client.answer(id, &mut handlers())
}

/// What a reader of the answer sees, without what differs from run to run.
fn shown(case: &Case, answer: &Value) -> String {
    let mut out = format!("{HEADING}{}\n", case.heading);
    let mut line = |name: &str, value: Option<&Value>| {
        let text = match value {
            None | Some(Value::Null) => return,
            Some(Value::String(text)) if text.is_empty() => return,
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        let text = text.trim_end_matches('\n').replace('\n', "\n           ");
        out.push_str(&format!("{name:>9}: {text}\n"));
    };
    let program = Value::String(case.source.clone());
    line("program", (case.source.len() < 500).then_some(&program));
    if let Some(refusal) = answer.get("error") {
        line("refused", refusal.get("message"));
    }
    let result = answer.get("result").cloned().unwrap_or_default();
    line("value", result.get("value").filter(|value| value.to_string().len() < 2_000));
    if let Some(error) = result.get("error") {
        line("code", error.get("code"));
        line("name", error.get("name"));
        for part in ["message", "hint", "excerpt", "data", "cause", "errors", "limit", "limitValue", "setting"] {
            line(part, error.get(part));
        }
    }
    // How much of a limit of time was used when it was told differs from run to run.
    let of_time = case.params.pointer("/timeoutMs").or(case.params.pointer("/limits/cpuMs")).is_some() && result.get("value").is_none();
    for warning in result.get("warnings").filter(|_| !of_time).and_then(Value::as_array).into_iter().flatten() {
        line("warning", warning.get("message"));
    }
    line("stderr", result.get("stderr"));
    out
}

/// `BRIG_BLESS=1 cargo test -p acceptance --test messages` writes the texts anew.
#[test]
fn every_text_that_a_program_s_author_is_told_is_the_listed_one() {
    let brigd = BrigdOptions::default().start();
    let mut client = brigd.connect();
    let cases = cases(&read("messages/programs.txt"));
    let seen: Vec<String> = cases.iter().map(|case| shown(case, &answer(&mut client, case))).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("messages/messages.txt");
    if std::env::var_os("BRIG_BLESS").is_some() {
        std::fs::write(&path, seen.join("\n")).expect("the texts are written");
    }
    let listed = read("messages/messages.txt");
    let listed: Vec<&str> = listed.split("\n\n").collect();
    for (seen, listed) in seen.iter().zip(&listed) {
        assert_eq!(seen.trim_end(), listed.trim_end());
    }
    assert_eq!(seen.len(), listed.len(), "messages.txt has another number of texts");
}

/// The sources of the worker whose texts a program's author can be told. Each sentence in
/// them that is long enough to be one has to occur in `messages.txt`.
const SOURCES: &[&str] = &[
    "failure.rs",
    "failure/hints.rs",
    "failure/hints/absent.rs",
    "source/refuse.rs",
    "source/shape.rs",
    "source/lower.rs",
    "source/exports.rs",
    "source/bounds.rs",
    "source/persist.rs",
    "session/evaluation.rs",
    "session/endings.rs",
];

/// Texts that no program can bring about in a test, each with why.
const OUT_OF_REACH: &[(&str, &str)] = &[
    ("return typeof {name}", "code, not a text"),
    ("the program is too large", "a text of more than 4 GiB; a request ends at 16 MiB"),
    ("the value's JSON is broken", "a fault of our own"),
    ("the program's world could not be made", "a fault of our own"),
    ("string too long", "a string of a gigabyte; the limit of the heap comes first"),
    ("(timeoutMs){waiting}", "brigd says it anew, with the setting"),
    ("(limits.cpuMs){waiting}", "brigd says it anew, with the setting"),
    ("timeZone: there is no time zone", "brigd refuses the request first"),
    ("the evaluation was cancelled", "the client that cancelled knows"),
    ("this vm's globalThis does not take", "it takes two programs in one vm: a test of the worker has them"),
];

#[test]
fn no_text_of_the_worker_is_missing_from_the_list() {
    let listed = read("messages/messages.txt").split_whitespace().collect::<Vec<_>>().join(" ");
    let mut missing = Vec::new();
    for source in SOURCES {
        let text = read(&format!("../worker/src/{source}"));
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        for literal in literals(text) {
            let known = OUT_OF_REACH.iter().any(|(part, _)| literal.contains(part));
            if !known && !pieces(&literal).iter().all(|piece| listed.contains(piece.as_str())) {
                missing.push(format!("{source}: {literal}"));
            }
        }
    }
    assert!(missing.is_empty(), "no program of programs.txt brings these about:\n{}", missing.join("\n"));
}

/// The string literals of a source, comments left out, line continuations joined.
fn literals(text: &str) -> Vec<String> {
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect();
    let literal = regex::Regex::new(r#""((?:[^"\\]|\\[\s\S])*)""#).expect("a pattern");
    let continued = regex::Regex::new(r"\\\n\s*").expect("a pattern");
    let found = literal.captures_iter(&code).filter_map(|found| found.get(1));
    let joined = found.map(|found| continued.replace_all(found.as_str(), "").replace("\\\"", "\""));
    joined.filter(|literal| literal.split_whitespace().count() >= 3).collect()
}

/// The parts of a format string between its arguments that say something.
fn pieces(literal: &str) -> Vec<String> {
    let argument = regex::Regex::new(r"\{\{|\}\}|\{[^{}]*\}").expect("a pattern");
    let parts = argument.split(literal).map(|part| part.split_whitespace().collect::<Vec<_>>().join(" ").trim_end_matches('.').to_owned());
    parts.filter(|part| part.split_whitespace().count() >= 2).collect()
}
