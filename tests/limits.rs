//! Every row of the limits table trips: with its code, its name, its value, and the
//! setting that raises it.
#![expect(clippy::expect_used, reason = "tests")]

use acceptance::{Brigd, Handlers};
use brig_protocol::limits::{LIMITS, row};
use serde_json::{Value, json};

struct Trip {
    limit: &'static str,
    value: u64,
    source: &'static str,
    /// `outcome/code` of the evaluation, or `guest/code` when the program catches it.
    end: &'static str,
}

const TRIPS: &[Trip] = &[
    Trip { limit: "timeoutMs", value: 300, source: "await new Promise((r) => setTimeout(r, 60000))", end: "timed_out/timed_out" },
    Trip { limit: "timeoutMs", value: 300, source: "for (;;) {}", end: "timed_out/timed_out" },
    Trip { limit: "timeoutMs", value: 300, source: "return await host.never({})", end: "timed_out/timed_out" },
    Trip { limit: "cpuMs", value: 200, source: "for (;;) {}", end: "failed/cpu_limit" },
    Trip {
        limit: "cpuMs",
        value: 200,
        source: "const s = 'a'.repeat(4e6) + 'b'; for (;;) s.indexOf('ab'.repeat(1000))",
        end: "failed/cpu_limit",
    },
    Trip { limit: "heapBytes", value: 1 << 20, source: "const a = []; for (;;) a.push({})", end: "failed/memory_limit" },
    Trip { limit: "heapBytes", value: 1 << 20, source: "new ArrayBuffer(5e7).byteLength", end: "failed/memory_limit" },
    Trip { limit: "heapBytes", value: 1 << 20, source: "Math.max.apply(null, { length: 8e6 })", end: "failed/memory_limit" },
    Trip { limit: "heapBytes", value: 8 << 20, source: "Math.max(...new Uint8Array(4e6))", end: "failed/memory_limit" },
    Trip {
        limit: "hostCalls",
        value: 3,
        source: "try { for (let i = 0; ; i++) await host.echo({ i }); } catch (e) { return e.code + ' ' + e.message; }",
        end: "guest/call_limit",
    },
    Trip {
        limit: "inputBytes",
        value: 100,
        source: "try { return await host.echo({ x: 'y'.repeat(200) }); } catch (e) { return e.code + ' ' + e.message; }",
        end: "guest/invalid_input",
    },
    Trip {
        limit: "outputBytes",
        value: 100,
        source: "try { return await host.big({}); } catch (e) { return e.code + ' ' + e.message; }",
        end: "guest/output_too_large",
    },
    Trip { limit: "resultBytes", value: 100, source: "'x'.repeat(200)", end: "failed/result_too_large" },
    Trip {
        limit: "functionTimeoutMs",
        value: 200,
        source: "try { return await host.never({}); } catch (e) { return e.code + ' ' + e.message; }",
        end: "guest/function_timed_out",
    },
];

fn run(brigd: &Brigd, limit: &str, value: u64, source: &str) -> (Value, Handlers) {
    let mut handlers = Handlers::none()
        .on("host.echo", json!({"kind": "echo"}))
        .on("host.big", json!({"kind": "big", "bytes": 1000}))
        .on("host.never", json!({"kind": "never"}))
        .on("host.slow", json!({"kind": "delay", "ms": 60_000, "then": {"kind": "echo"}}));
    let params = json!({
        "source": source,
        "limits": {limit: value},
        "hostFunctions": {"host": {"echo": {}, "big": {}, "never": {}, "slow": {}}},
    });
    let result = brigd.connect().evaluate_with(&params, &mut handlers);
    (result, handlers)
}

#[test]
fn every_limit_trips_with_its_code_name_value_and_setting() {
    let brigd = Brigd::start();
    let mut wrong = Vec::new();
    for trip in TRIPS {
        let (result, _) = run(&brigd, trip.limit, trip.value, trip.source);
        let setting = row(trip.limit).expect("a row").setting;
        let (kind, code) = trip.end.split_once('/').expect("an end");
        let text = if kind == "guest" {
            result.get("value").and_then(Value::as_str).unwrap_or_default().to_owned()
        } else {
            result.get("error").map(Value::to_string).unwrap_or_default()
        };
        let ended = if kind == "guest" {
            text.starts_with(code)
        } else {
            result.get("outcome") == Some(&json!(kind)) && result.pointer("/error/code") == Some(&json!(code))
        };
        let named = [trip.limit, &trip.value.to_string(), setting].iter().all(|part| text.contains(part));
        if !ended || !named {
            wrong.push(format!("{} = {}: expected {}, got {result}", trip.limit, trip.value, trip.end));
        }
        if brigd.connect().evaluate("1").get("value") != Some(&json!(1)) {
            wrong.push(format!("{}: the next evaluation failed", trip.limit));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_row_of_the_table_has_a_test_here() {
    let covered: Vec<&str> = TRIPS.iter().map(|trip| trip.limit).chain(["hostCallsInFlight", "consoleBytes", "drainMs"]).collect();
    for row in LIMITS {
        assert!(covered.contains(&row.name), "{} has no test", row.name);
    }
}

#[test]
fn no_more_calls_are_in_flight_than_allowed_and_the_others_wait_their_turn() {
    let brigd = Brigd::start();
    let mut client = brigd.connect();
    let params = json!({
        "source": "return (await Promise.all([1, 2, 3, 4, 5].map((n) => host.echo({ n })))).length",
        "limits": {"hostCallsInFlight": 2},
        "hostFunctions": {"host": {"echo": {}}},
    });
    let id = client.request("evaluate", &params);
    for _ in 0..5 {
        let call = client.next_message();
        assert_eq!(call.get("method"), Some(&json!("host.call")), "{call}");
        client.send(&json!({"jsonrpc": "2.0", "id": call.get("id"), "result": {}}));
    }
    assert_eq!(client.answer(id, &mut Handlers::none()).pointer("/result/value"), Some(&json!(5)));
}

#[test]
fn console_output_over_its_limit_is_cut_with_a_marker_and_the_flag() {
    let brigd = Brigd::start();
    let source = "console.log('a'.repeat(50)); console.log('é'.repeat(300)); console.log('never'); console.error('err'); return 1";
    let (result, _) = run(&brigd, "consoleBytes", 300, source);
    let stdout = result.get("stdout").and_then(Value::as_str).expect("stdout");
    assert!(stdout.starts_with(&"a".repeat(50)) && !stdout.contains("never"), "{stdout}");
    assert!(stdout.len() <= 300 && stdout.contains("consoleBytes"), "{stdout}");
    assert_eq!(result.get("stdoutTruncated"), Some(&json!(true)), "{result}");
    assert_eq!(result.get("stderr"), Some(&json!("err\n")), "{result}");
    assert_eq!(result.get("stderrTruncated"), Some(&json!(false)), "{result}");
}

#[test]
fn calls_that_outlast_the_drain_are_cancelled_and_listed() {
    let brigd = Brigd::start();
    let (result, handlers) = run(&brigd, "drainMs", 2000, "host.slow({}); host.echo({}); return 7");
    assert_eq!(result.get("value"), Some(&json!(7)), "{result}");
    assert_eq!(handlers.calls("host.slow"), 1);
    assert_eq!(result.pointer("/calls/0/state"), Some(&json!("unknown")), "{result}");
    assert_eq!(result.pointer("/calls/1/state"), Some(&json!("completed")), "{result}");
    assert!(result.get("warnings").map(Value::to_string).unwrap_or_default().contains("host.slow"), "{result}");
}

#[test]
fn a_limit_asked_above_its_ceiling_is_cut_and_told() {
    let brigd = Brigd::start();
    let (result, _) = run(&brigd, "cpuMs", 3_000_000, "1");
    let warnings = result.get("warnings").map(Value::to_string).unwrap_or_default();
    assert!(warnings.contains("limit_cut") && warnings.contains("limits.cpu_ms"), "{result}");
}

#[test]
fn usage_agrees_with_what_the_program_did() {
    let brigd = Brigd::start();
    let source =
        "let n = 0; for (let i = 0; i < 3e6; i++) n += i; const big = new Uint8Array(8e6).fill(1); await host.echo({}); return big.length";
    let (result, _) = run(&brigd, "timeoutMs", 20_000, source);
    let usage = |name: &str| result.pointer(&format!("/usage/{name}")).and_then(Value::as_f64).unwrap_or(-1.0);
    assert!(usage("cpuMs") > 1.0 && usage("cpuMs") <= usage("wallMs") * 1.5 + 5.0, "{result}");
    assert!(usage("peakMemoryBytes") >= 8e6 && usage("peakMemoryBytes") < 32e6, "{result}");
    assert!((usage("hostCalls") - 1.0).abs() < f64::EPSILON, "{result}");
    assert!(usage("hostMs") >= 0.0 && usage("hostMs") <= usage("wallMs"), "{result}");
}
