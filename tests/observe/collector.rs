//! What a collector is told by OTLP.

use super::*;

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
