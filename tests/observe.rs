//! What brigd shows of itself: figures, traces, the log; and that nothing which a program
//! or a client wrote becomes part of their form.
#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

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

#[test]
fn the_port_takes_one_question_from_this_host_and_bounds_every_other() {
    let brigd = with_port();
    let port = port(&brigd);
    for (request, expected) in [
        ("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403),
        ("GET /other HTTP/1.1\r\n\r\n", 404),
        ("POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 405),
        ("nonsense\r\n\r\n", 400),
    ] {
        assert_eq!(ask(connected(&port), request.as_bytes()).0, expected, "{request:?}");
    }
    let long = format!("GET /metrics HTTP/1.1\r\nX: {}", "a".repeat(9_000));
    assert_eq!(ask(connected(&port), long.as_bytes()).0, 431);
    // As many as may ask at once say nothing; whoever comes then is hung up on, and clients
    // are served meanwhile. brigd gives the silent ones up by itself.
    let silent: Vec<TcpStream> = (0..16).map(|_| connected(&port)).collect();
    let mut one_more = connected(&port);
    assert_eq!(one_more.read(&mut [0; 1]).unwrap_or(0), 0);
    assert_eq!(brigd.connect().evaluate("1").get("value"), Some(&json!(1)));
    for mut stream in silent {
        assert_eq!(stream.read(&mut [0; 1]).expect("an end within the deadline"), 0);
    }
    scrape(&brigd);
}

#[test]
fn a_unix_socket_shows_the_same_to_its_group() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("metrics.sock");
    let brigd = BrigdOptions::default().config(&format!("[metrics]\nsocket = {path:?}\n")).start();
    assert_eq!(std::fs::metadata(&path).expect("the socket").permissions().mode() & 0o777, 0o660);
    let (status, body) = ask(UnixStream::connect(&path).expect("the socket"), b"GET /metrics HTTP/1.1\r\nHost: any\r\n\r\n");
    assert_eq!(status, 200);
    Scraped::parse(&body);
    drop(brigd);
}

#[test]
fn one_user_never_has_all_places_at_the_socket_of_figures() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("metrics.sock");
    let brigd = BrigdOptions::default().config(&format!("[metrics]\nsocket = {path:?}\n")).start();
    let question = b"GET /metrics HTTP/1.1\r\nHost: any\r\n\r\n";
    // They say nothing, which they may do for five seconds.
    let held: Vec<UnixStream> = (0..4).map(|_| UnixStream::connect(&path).expect("the socket")).collect();
    let mut one_more = UnixStream::connect(&path).expect("the socket");
    one_more.set_read_timeout(Some(std::time::Duration::from_secs(3))).expect("a time-out");
    // Hung up on, and not left waiting for its turn.
    let read = one_more.read(&mut [0; 1]);
    let hung_up = matches!(&read, Ok(0)) || read.as_ref().is_err_and(|fault| fault.kind() == std::io::ErrorKind::ConnectionReset);
    assert!(hung_up, "{read:?}");
    drop(held);
    let deadline = std::time::Instant::now() + DEADLINE;
    loop {
        let mut stream = UnixStream::connect(&path).expect("the socket");
        let mut told = String::new();
        if stream.write_all(question).and_then(|()| stream.read_to_string(&mut told)).is_ok() && told.starts_with("HTTP/1.1 200") {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "no place came free: {}", brigd.log());
    }
}

#[test]
fn figures_are_not_shown_to_other_hosts() {
    let log = BrigdOptions::default().config("[metrics]\nlisten = \"0.0.0.0:9464\"\n").try_start().expect_err("a refusal");
    assert!(log.contains("metrics.listen") && log.contains("loopback"), "{log}");
}

/// A collector that tells what it was sent: path and body.
fn collector() -> (String, mpsc::Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("its address"));
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let Some(sent) = taken(stream) else { continue };
            if sender.send(sent).is_err() {
                return;
            }
        }
    });
    (endpoint, receiver)
}

fn taken(mut stream: TcpStream) -> Option<(String, Value)> {
    stream.set_read_timeout(Some(DEADLINE)).ok()?;
    let (mut request, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let length = stream.read(&mut chunk).ok().filter(|length| *length > 0)?;
        request.extend_from_slice(chunk.get(..length)?);
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length: usize = head.lines().find_map(|line| line.strip_prefix("Content-Length: "))?.parse().ok()?;
        if body.len() >= length {
            let path = head.split(' ').nth(1)?.to_owned();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").ok()?;
            return Some((path, serde_json::from_str(body).expect("JSON")));
        }
    }
}

fn next(sent: &mpsc::Receiver<(String, Value)>, path: &str) -> Value {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let (to, body) = sent.recv_timeout(left).unwrap_or_else(|_| panic!("nothing came to {path} in time"));
        if to == path {
            return body;
        }
    }
}

#[test]
fn a_collector_is_told_of_an_evaluation_and_its_calls_and_of_no_content() {
    let (endpoint, sent) = collector();
    let mut brigd = BrigdOptions::default().config(&format!("[telemetry]\notlp_endpoint = {endpoint:?}\n")).start();
    let mut handlers = Handlers::none().on("secretNamed.lookUp", json!({"kind": "static", "result": "secretOutput"}));
    let params = json!({
        "source": "const secretSource = await secretNamed.lookUp({secretInput: 1}); throw new Error('secretMessage')",
        "hostFunctions": {"secretNamed": {"lookUp": {}}},
        "trace": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    });
    let result = brigd.connect().evaluate_with(&params, &mut handlers);
    let told = next(&sent, "/v1/traces");
    let spans = told.pointer("/resourceSpans/0/scopeSpans/0/spans").and_then(Value::as_array).expect("spans");
    let of = |name: &str| spans.iter().find(|span| span.get("name") == Some(&json!(name))).unwrap_or_else(|| panic!("no {name}: {told}"));
    let (evaluation, call) = (of("evaluation"), of("host call"));
    assert_eq!(evaluation.get("traceId"), Some(&json!("0af7651916cd43dd8448eb211c80319c")));
    assert_eq!(evaluation.get("parentSpanId"), Some(&json!("b7ad6b7169203331")));
    assert_eq!(evaluation.pointer("/status"), Some(&json!({"code": 2, "message": "guest_error"})));
    assert_eq!((call.get("traceId"), call.get("parentSpanId")), (evaluation.get("traceId"), evaluation.get("spanId")));
    let attribute = |span: &Value, key: &str| {
        let all = span.get("attributes").and_then(Value::as_array).expect("attributes").clone();
        all.iter().find(|one| one.get("key") == Some(&json!(key))).and_then(|one| one.pointer("/value/stringValue")).cloned()
    };
    assert_eq!(attribute(evaluation, "brig.evaluation").as_ref(), result.get("evaluation"));
    assert_eq!(attribute(call, "brig.call.state"), Some(json!("completed")));
    assert_eq!(attribute(call, "brig.function"), None);
    assert!(!told.to_string().contains("secret"), "{told}");
    // What a client does not sample is not told; the end of brigd tells the last figures.
    let quiet = "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    brigd.connect().evaluate_with(&json!({"source": "1", "trace": quiet}), &mut Handlers::none());
    brigd.signal(nix::sys::signal::Signal::SIGTERM);
    let metrics = next(&sent, "/v1/metrics");
    let metrics = metrics.pointer("/resourceMetrics/0/scopeMetrics/0/metrics").and_then(Value::as_array).expect("metrics").clone();
    let named = |name: &str| metrics.iter().find(|one| one.get("name") == Some(&json!(name))).cloned().expect("the metric");
    assert_eq!(named("brig_evaluations_total").pointer("/sum/isMonotonic"), Some(&json!(true)));
    assert!(named("brig_evaluation_duration_seconds").pointer("/histogram/dataPoints/0/bucketCounts").is_some());
    let exported = named("brig_spans_total").to_string();
    assert!(exported.contains(r#""asInt":"2","attributes":[{"key":"result","value":{"stringValue":"exported"}}]"#), "{exported}");
    assert!(brigd.wait().success());
}

#[test]
fn a_collector_that_is_not_there_costs_spans_and_nothing_else() {
    // A port that was free a moment ago, and where nobody listens.
    let nobody = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
    let config = format!("[metrics]\nlisten = \"127.0.0.1:0\"\n[telemetry]\notlp_endpoint = \"http://{nobody}\"\n");
    let brigd = BrigdOptions::default().config(&config).start();
    let mut client = brigd.connect();
    let deadline = Instant::now() + DEADLINE;
    loop {
        assert_eq!(client.evaluate("1").get("value"), Some(&json!(1)));
        if scrape(&brigd).value("brig_spans_total", &[("result", "lost")]) > 0.0 {
            break;
        }
        assert!(Instant::now() < deadline, "no span was lost");
    }
    assert!(brigd.log().contains("takes no telemetry"), "{}", brigd.log());
}

fn packaged(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging").join(name)).expect("the file")
}

/// Names of metrics in an expression, with the values that it compares labels of ours to.
fn named_in(expression: &str) -> (BTreeSet<String>, Vec<(String, String)>) {
    let metrics = regex::Regex::new(r"\bbrig_[a-z0-9_]+").expect("a pattern");
    let matchers = regex::Regex::new(r#"\b([a-z_]+)\s*=~?\s*"([^"]*)""#).expect("a pattern");
    let words = matchers.captures_iter(expression).filter_map(|found| Some((found.get(1)?.as_str(), found.get(2)?.as_str())));
    let words = words.flat_map(|(label, values)| values.split('|').map(move |value| (label.to_owned(), value.to_owned())));
    (metrics.find_iter(expression).map(|found| found.as_str().to_owned()).collect(), words.collect())
}

/// Whether brigd shows what an expression asks for.
fn check_expression(figures: &Scraped, expression: &str) -> usize {
    let (names, words) = named_in(expression);
    for name in &names {
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        let kind = figures.types.get(base).or_else(|| figures.types.get(name));
        // Of these there is nothing before a function is configured, or a state directory.
        let later = ["brig_function_calls_total", "brig_function_duration_seconds", "brig_journal_bytes"].contains(&base);
        assert!(kind.is_some() || later, "{name} does not exist: {expression}");
        if kind.is_some_and(|kind| kind == "counter") {
            assert!(expression.contains("rate(") || expression.contains("increase("), "{name} only grows: {expression}");
        }
    }
    let closed = closed();
    for (label, value) in words.iter().filter(|(label, _)| !["job", "instance"].contains(&label.as_str())) {
        assert!(closed.get(label.as_str()).is_some_and(|words| words.contains(value.as_str())), "{label}={value} can not be: {expression}");
    }
    let mut depth = 0;
    for letter in expression.chars() {
        depth += i32::from("([{".contains(letter)) - i32::from(")]}".contains(letter));
        assert!(depth >= 0, "{expression}");
    }
    assert_eq!(depth, 0, "{expression}");
    names.len()
}

#[test]
fn the_alert_rules_ask_for_what_brigd_shows() {
    let figures = scrape(&with_port());
    let all = yaml_rust2::YamlLoader::load_from_str(&packaged("prometheus/alerts.yml")).expect("YAML");
    let groups = all.first().and_then(|file| file["groups"].as_vec()).expect("groups");
    let rules: Vec<_> = groups.iter().flat_map(|group| group["rules"].as_vec().expect("rules")).collect();
    let mut names = BTreeSet::new();
    for rule in &rules {
        let name = rule["alert"].as_str().expect("a name");
        assert!(names.insert(name), "{name} comes twice");
        assert!(check_expression(&figures, rule["expr"].as_str().expect("an expression")) > 0, "{name}");
        assert!(["info", "warning", "critical"].contains(&rule["labels"]["severity"].as_str().expect("a severity")), "{name}");
        for text in ["summary", "description"] {
            assert!(rule["annotations"][text].as_str().is_some_and(|text| text.ends_with('.')), "{name} has no {text}");
        }
    }
    assert!(names.len() > 10);
}

#[test]
fn the_dashboard_asks_for_what_brigd_shows_and_shows_all_of_it() {
    let figures = scrape(&with_port());
    let dashboard: Value = serde_json::from_str(&packaged("grafana/dashboard.json")).expect("JSON");
    let panels = dashboard.get("panels").and_then(Value::as_array).expect("panels");
    let (mut ids, mut shown) = (BTreeSet::new(), String::new());
    for panel in panels {
        let at = |pointer: &str| panel.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {pointer}: {panel}"));
        assert!(ids.insert(at("/id")) && at("/gridPos/x") + at("/gridPos/w") <= 24, "{panel}");
        let targets = panel.get("targets").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        assert!(panel.get("type") == Some(&json!("row")) || !targets.is_empty(), "{panel}");
        for target in targets {
            let expression = target.get("expr").and_then(Value::as_str).expect("an expression").replace("$__rate_interval", "5m");
            assert!(check_expression(&figures, &expression) > 0, "{panel}");
            writeln!(shown, "{expression}").expect("a line");
        }
    }
    // Left out knowingly: what is beside another figure, or only for whoever looks into it.
    let beside = [
        "brig_sandbox_layer",
        "brig_uptime_seconds",
        "brig_configured_functions",
        "brig_configured_files_disabled",
        "brig_approvals_asked_total",
        "brig_revoked",
        "brig_connections_total",
        "brig_bad_lines_total",
        "brig_stray_answers_total",
        "brig_journal_failures_total",
        "brig_reloads_total",
    ];
    for name in figures.types.keys().filter(|name| !beside.contains(&name.as_str())) {
        assert!(shown.contains(name.as_str()), "{name} is on no panel");
    }
}

#[test]
fn every_metric_is_in_the_reference_and_nothing_else_is() {
    let figures = scrape(&with_port());
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md")).expect("the reference");
    let rows: BTreeSet<&str> = text.lines().filter_map(|line| line.strip_prefix("| `brig_")?.split('`').next()).collect();
    let later = ["function_calls_total", "function_duration_seconds", "journal_bytes"];
    let shown = figures.types.keys().filter_map(|name| name.strip_prefix("brig_")).chain(later).collect();
    assert_eq!(rows, shown);
}

/// Runs Prometheus' own linter.
fn promtool(what: &[&str], input: &str) {
    let mut file = tempfile::Builder::new().suffix(".yml").tempfile().expect("a file");
    file.write_all(input.as_bytes()).expect("it is written");
    let mut linter = Command::new("promtool");
    linter.arg("check").args(what);
    if what.first() == Some(&"metrics") {
        linter.stdin(std::fs::File::open(file.path()).expect("the file"));
    } else {
        linter.arg(file.path());
    }
    let output = linter.output().expect("promtool, which tests/run installs");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{what:?}: {}", String::from_utf8_lossy(&said));
}

#[test]
fn the_linter_of_prometheus_takes_figures_alert_rules_and_each_query_of_the_dashboard() {
    let brigd = with_port();
    let figures = ask(connected(&port(&brigd)), b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").1;
    promtool(&["metrics"], &figures);
    promtool(&["rules", "--lint=all", "--lint-fatal"], &packaged("prometheus/alerts.yml"));
    // A query is what a recording rule has.
    let dashboard: Value = serde_json::from_str(&packaged("grafana/dashboard.json")).expect("JSON");
    let targets = dashboard.get("panels").and_then(Value::as_array).expect("panels").iter();
    let targets = targets.filter_map(|panel| panel.get("targets")?.as_array()).flatten();
    let (mut rules, mut count) = ("groups:\n- name: dashboard\n  rules:\n".to_owned(), 0);
    for query in targets.filter_map(|target| target.get("expr")?.as_str()) {
        let query = json!(query.replace("$__rate_interval", "5m"));
        writeln!(rules, "  - {{record: 'panel:query:{count}', expr: {query}}}").expect("a line");
        count += 1;
    }
    assert!(count > 10, "{rules}");
    promtool(&["rules"], &rules);
}

#[test]
fn the_dashboard_uses_no_variable_that_it_does_not_define() {
    let text = packaged("grafana/dashboard.json");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let listed = dashboard.pointer("/templating/list").and_then(Value::as_array).expect("variables");
    let names: BTreeSet<&str> = listed.iter().filter_map(|one| one.get("name")?.as_str()).collect();
    let inputs: Vec<&Value> = dashboard.get("__inputs").and_then(Value::as_array).into_iter().flatten().collect();
    let inputs = inputs.iter().filter_map(|one| one.get("name")?.as_str());
    let defined: BTreeSet<&str> = names.into_iter().chain(inputs).chain(["__rate_interval", "__all"]).collect();
    let used = regex::Regex::new(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)").expect("a pattern");
    let used: BTreeSet<&str> = used.captures_iter(&text).filter_map(|found| Some(found.get(1)?.as_str())).collect();
    assert!(!used.is_empty() && used.is_subset(&defined), "used: {used:?}, defined: {defined:?}");
    for panel in dashboard.get("panels").and_then(Value::as_array).expect("panels") {
        let source = panel.pointer("/datasource/uid").and_then(Value::as_str);
        assert!(panel.get("type") == Some(&json!("row")) || source.is_some_and(|uid| uid.starts_with("${")), "{panel}");
    }
}
