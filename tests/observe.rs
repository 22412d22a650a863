//! What brigd shows of itself: figures, traces, the log; and that nothing which a program
//! or a client wrote becomes part of their form.
#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "observe/collector.rs"]
mod collector;
#[path = "observe/packaged.rs"]
mod packaged;
#[path = "observe/port.rs"]
mod port;

use acceptance::{Brigd, BrigdOptions, DEADLINE, Handlers};
use brig_protocol::codes::{CallCode, EvaluationCode, RequestCode};
use brig_protocol::limits::LIMITS;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::Instant;

const HOSTILE: &str = "\u{1b}[31mRAW\nbrig_forged_total 1\nERROR brigd: FORGED\u{202e}\"} 1";

fn with_port() -> Brigd {
    BrigdOptions::default().config("[metrics]\nlisten = \"127.0.0.1:0\"\n[server]\nlog = \"trace\"\n").start()
}

/// Labels of one series, in order.
type Labels = Vec<(String, String)>;

/// Where the figures are: the log says so before brigd is ready.
fn port(brigd: &Brigd) -> String {
    let log = brigd.log();
    let line = log.lines().find(|line| line.contains("figures are shown")).unwrap_or_else(|| panic!("no address:\n{log}"));
    line.split("address=").nth(1).expect("an address").trim().to_owned()
}

/// One question over any stream: status and body.
fn ask(mut stream: impl Read + Write, request: &[u8]) -> (u16, String) {
    stream.write_all(request).expect("the request goes out");
    let mut answer = Vec::new();
    // A question that was not read to its end is answered with a reset behind the answer.
    stream.read_to_end(&mut answer).ok();
    let answer = String::from_utf8(answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    (head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status"), body.to_owned())
}

fn connected(port: &str) -> TcpStream {
    let stream = TcpStream::connect(port).expect("the port");
    stream.set_read_timeout(Some(DEADLINE)).expect("a time-out");
    stream
}

fn scrape(brigd: &Brigd) -> Scraped {
    let (status, body) = ask(connected(&port(brigd)), b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(status, 200, "{body}");
    Scraped::parse(&body)
}

/// The text form, read strictly.
#[derive(Debug, Default)]
struct Scraped {
    types: BTreeMap<String, String>,
    /// Value by name and labels, in their order.
    samples: BTreeMap<(String, Vec<(String, String)>), f64>,
}

impl Scraped {
    fn parse(text: &str) -> Self {
        assert!(text.ends_with('\n') && text.is_ascii());
        let mut found = Self::default();
        let mut helped = None;
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, sentence) = help.split_once(' ').expect("a sentence");
                assert!(!found.types.contains_key(name), "{name} comes twice");
                assert!(sentence.ends_with('.') && sentence.len() > 5, "{line}");
                helped = Some(name.to_owned());
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').expect("a type");
                assert_eq!(helped.take().as_deref(), Some(name), "HELP comes before TYPE");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert!(name.starts_with("brig_") && (kind != "counter" || name.ends_with("_total")), "{line}");
                found.types.insert(name.to_owned(), kind.to_owned());
            } else {
                found.sample(line);
            }
        }
        found.check_histograms();
        found
    }

    fn sample(&mut self, line: &str) {
        let name_end = line.find(['{', ' ']).unwrap_or_else(|| panic!("no sample: {line:?}"));
        let (name, rest) = line.split_at(name_end);
        let (labels, value) = labels(rest);
        let value: f64 = value.strip_prefix(' ').and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no value: {line:?}"));
        assert!(value >= 0.0, "{line}");
        let family = self.types.iter().rev().find(|(family, kind)| {
            let rest = name.strip_prefix(family.as_str());
            rest == Some("") && *kind != "histogram" || *kind == "histogram" && matches!(rest, Some("_bucket" | "_sum" | "_count"))
        });
        assert!(family.is_some(), "{line} is of no family");
        assert!(self.samples.insert((name.to_owned(), labels), value).is_none(), "{line} comes twice");
    }

    fn check_histograms(&self) {
        for name in self.types.iter().filter(|(_, kind)| *kind == "histogram").map(|(name, _)| name) {
            let mut series: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
            for ((sample, labels), value) in &self.samples {
                if *sample == format!("{name}_bucket") {
                    let bound = labels.iter().find(|(label, _)| label == "le").map(|(_, bound)| bound.replace("+Inf", "inf"));
                    let others = labels.iter().filter(|(label, _)| label != "le").cloned().collect();
                    series.entry(others).or_default().push((bound.and_then(|bound| bound.parse().ok()).expect("a bound"), *value));
                }
            }
            assert!(!series.is_empty(), "{name} has no buckets");
            for (labels, mut buckets) in series {
                buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
                assert!(buckets.is_sorted_by(|one, other| one.1 <= other.1), "{name} {buckets:?}");
                let all = self.samples.get(&(format!("{name}_count"), labels.clone())).expect("a count");
                assert_eq!(buckets.last().map(|(bound, count)| (bound.is_infinite(), count)), Some((true, all)), "{name}");
                assert!(self.samples.contains_key(&(format!("{name}_sum"), labels)), "{name} has no sum");
            }
        }
    }

    fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let key = (name.to_owned(), labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect());
        *self.samples.get(&key).unwrap_or_else(|| panic!("no {name} {labels:?}"))
    }
}

/// Labels in braces, and what follows.
fn labels(text: &str) -> (Vec<(String, String)>, &str) {
    let Some(mut rest) = text.strip_prefix('{') else { return (Vec::new(), text) };
    let mut found = Vec::new();
    loop {
        let (name, after) = rest.split_once("=\"").expect("a label");
        let mut value = String::new();
        let mut letters = after.char_indices();
        let end = loop {
            match letters.next().expect("the end of a value") {
                (place, '"') => break place,
                (_, '\\') => match letters.next().expect("an escape").1 {
                    'n' => value.push('\n'),
                    letter @ ('\\' | '"') => value.push(letter),
                    other => panic!("no such escape: {other}"),
                },
                (_, letter) => value.push(letter),
            }
        };
        found.push((name.to_owned(), value));
        rest = after.get(end + 1..).expect("more");
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return (found, rest.strip_prefix('}').expect("a brace")),
        }
    }
}

/// What each label may be, whatever clients and guests do.
fn closed() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let codes = EvaluationCode::ALL.iter().map(|code| code.as_str()).chain(CallCode::ALL.iter().map(|code| code.as_str()));
    let codes = codes.chain(RequestCode::ALL.iter().map(|code| code.as_str())).chain(["none"]).collect();
    let set = |words: &[&'static str]| words.iter().copied().collect();
    BTreeMap::from([
        ("outcome", set(&["succeeded", "failed", "timed_out", "cancelled"])),
        ("code", codes),
        ("state", set(&["refused", "failed", "completed", "unknown", "coming", "ready", "leased", "ending"])),
        ("limit", LIMITS.iter().map(|row| row.name).chain(["other"]).collect()),
        ("level", set(&["full", "strong", "minimal", "error", "warn"])),
        ("effect", set(&["read", "write"])),
        ("result", set(&["passed", "failed", "late", "taken_over", "refused", "exported", "dropped", "lost"])),
        ("version", set(&[env!("CARGO_PKG_VERSION")])),
    ])
}

/// Programs, functions and requests that would be labels if anything of theirs could be.
fn be_hostile(brigd: &Brigd) {
    let mut client = brigd.connect();
    for source in [
        format!("console.log({HOSTILE:?}); throw new Error({HOSTILE:?})"),
        format!("const e = new Error({HOSTILE:?}); e.name = {HOSTILE:?}; e.code = {HOSTILE:?}; throw e"),
        "syntax error (".to_owned(),
        "const all = []; for (;;) all.push(new Array(100000).fill(1))".to_owned(),
    ] {
        client.evaluate(&source);
    }
    let functions = json!({"hostileNamed": {"forgedByClient": {}, "failing": {}}});
    let mut handlers = Handlers::none()
        .on("hostileNamed.forgedByClient", json!({"kind": "echo"}))
        .on("hostileNamed.failing", json!({"kind": "throws", "error": {"message": HOSTILE, "code": HOSTILE}}));
    let source = "await hostileNamed.forgedByClient({a: 1}); await hostileNamed.failing({}).catch(() => 0); 1";
    let result = client.evaluate_with(&json!({"source": source, "hostFunctions": functions}), &mut handlers);
    assert_eq!(result.get("value"), Some(&json!(1)), "{result}");
    client.call(HOSTILE, &json!({}));
    client.call("evaluate", &json!({"source": "1", HOSTILE: 1}));
    client.call("initialize", &json!({"client": {"name": HOSTILE, "version": HOSTILE}}));
}

#[test]
fn figures_are_valid_and_their_labels_closed_whatever_programs_and_clients_write() {
    let brigd = with_port();
    be_hostile(&brigd);
    let figures = scrape(&brigd);
    let closed = closed();
    for (name, labels) in figures.samples.keys() {
        for (label, value) in labels.iter().filter(|(label, _)| label != "le" && label != "layer") {
            assert!(closed.get(label.as_str()).is_some_and(|words| words.contains(value.as_str())), "{name}: {label}={value:?}");
        }
    }
    assert!(figures.value("brig_evaluations_total", &[("outcome", "failed"), ("code", "guest_error")]) >= 2.0);
    assert!(figures.value("brig_evaluations_total", &[("outcome", "succeeded"), ("code", "none")]) >= 1.0);
    assert!(figures.value("brig_limits_hit_total", &[("limit", "heapBytes")]) >= 1.0);
    assert!(figures.value("brig_host_calls_total", &[("state", "completed"), ("code", "none")]) >= 1.0);
    assert!(figures.value("brig_host_calls_total", &[("state", "failed"), ("code", "function_failed")]) >= 1.0);
    assert!(figures.value("brig_requests_refused_total", &[("code", "method_not_found")]) >= 1.0);
    assert!(figures.value("brig_connections", &[]) >= 0.0);
    // The same labels again after more of the same: nothing grows.
    let before = figures.samples.len();
    be_hostile(&brigd);
    assert_eq!(scrape(&brigd).samples.len(), before);
}

#[test]
fn nothing_that_a_program_or_client_writes_is_raw_in_the_log() {
    let brigd = with_port();
    be_hostile(&brigd);
    let log = brigd.log();
    assert!(log.contains("an evaluation is over"), "{log}");
    assert!(!log.contains(['\u{1b}', '\u{202e}']), "{log}");
    assert!(!log.lines().any(|line| line.starts_with("ERROR brigd") || line.starts_with("brig_forged")), "{log}");
}

/// What somebody would write to look like lines of brigd, to steer a terminal, or to be more
/// than a line can hold.
fn hostile_texts() -> Vec<String> {
    let mut texts: Vec<String> = ["\n", "\r", "\r\n", "\u{b}", "\u{c}", "\u{85}", "\u{2028}", "\u{2029}", "\0", "\u{1b}[1A\u{1b}[2K"]
        .iter()
        .map(|end| format!("a{end}2031-01-01T00:00:00.000000Z ERROR FORGED{end}\u{9b}31m\u{202e}\u{7f}"))
        .collect();
    texts.push("\"}\n{\"level\":\"ERROR\",\"fields\":{\"message\":\"FORGED\"}}\n".to_owned());
    texts.push("y\nMESSAGE=FORGED\nPRIORITY=0\n".repeat(4_000));
    texts
}

/// Says `text` wherever a program or a client has a say.
fn say_everywhere(brigd: &Brigd, text: &str) {
    let mut client = brigd.connect();
    client.call("initialize", &json!({"client": {"name": text, "version": text}}));
    client.evaluate(&format!("console.log({text:?}); console.error({text:?} + '\\ud800'); throw new Error({text:?} + '\\udfff')"));
    client.evaluate(&format!("const e = new Error({text:?}); e.name = {text:?}; e.code = {text:?}; e.stack = {text:?}; throw e"));
    client.evaluate(text);
    let functions = json!({"ordinary": {"failing": {"description": text.get(..200).unwrap_or(text)}}});
    let failing = json!({"kind": "throws", "error": {"message": text, "code": text}});
    let mut handlers = Handlers::none().on("ordinary.failing", failing);
    let source = format!("await ordinary.failing({{a: {text:?}}}).catch(() => 0); throw {text:?}");
    client.evaluate_with(&json!({"source": source, "hostFunctions": functions}), &mut handlers);
    for params in [
        json!({"source": "1", "hostFunctions": {text: {"a": {}}}}),
        json!({"source": "1", "hostFunctions": {"a": {text: {}}}}),
        json!({"source": "1", "globals": {text: 1}}),
        json!({"source": "1", "idempotencyKey": text}),
        json!({"source": "1", "vm": text, "trace": text}),
    ] {
        client.call("evaluate", &params);
    }
    client.call(text, &json!({}));
    client.call("cancel", &json!({"evaluation": text}));
    client.send(&json!({"jsonrpc": "2.0", "method": text}));
    client.send(&json!({"jsonrpc": "2.0", "method": "cancel", "params": {"evaluation": text}}));
    client.send(&json!({"jsonrpc": "2.0", "id": "c999", "error": {"code": 1, "message": text}}));
    client.send_raw(b"{\"method\": \"\xff\xfe\x1b[31mFORGED\"}\n\x1b[31m\x9b FORGED\n");
    assert_eq!(brigd.connect().evaluate("1").get("value"), Some(&json!(1)));
    // A longer line is skipped there.
    let (mut admin, text) = (brigd.admin(), text.get(..4_000).unwrap_or(text));
    for (method, params) in [
        ("functions.revoke", json!({"pattern": text, "reason": text})),
        ("functions.revoke", json!({"pattern": "ordinary.other", "reason": text})),
        ("principals.revoke", json!({"principal": text, "reason": text})),
        ("evaluations.kill", json!({"evaluation": text, "reason": text})),
        ("approvals.deny", json!({"approval": text, "comment": text})),
        (text, json!({})),
    ] {
        admin.call(method, &params);
    }
}

#[test]
fn every_event_stays_one_line_of_bounded_length_whatever_text_is_in_it() {
    let brigd = BrigdOptions::default().admin().config("[server]\nlog = \"trace\"\n").start();
    for text in hostile_texts() {
        say_everywhere(&brigd, &text);
    }
    let log = brigd.log();
    let began = regex::Regex::new(r"^20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z +(TRACE|DEBUG|INFO|WARN|ERROR) ").expect("a pattern");
    assert!(log.matches("an evaluation is over").count() > hostile_texts().len(), "{log:.3000}");
    for line in log.split('\n').filter(|line| !line.is_empty()) {
        assert!(began.is_match(line) && !line.starts_with("2031"), "no line of brigd: {line:.300}");
        let raw = line.chars().find(|letter| letter.is_control() || "\u{202e}\u{2028}\u{2029}".contains(*letter));
        assert_eq!(raw, None, "{line:.300}");
        assert!(line.len() < 16_384, "{} bytes: {line:.300}", line.len());
    }
}
