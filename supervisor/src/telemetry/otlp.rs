//! The JSON form of OTLP, version 1.
//!
//! Owns the names of its members: ids in hexadecimal, 64-bit numbers as strings, as the
//! mapping of its protocol buffers to JSON has it.

use super::{Attribute, Span};
use crate::metrics::{BOUNDS_US, Distribution, Family, Kind, Sample, Value};
use serde_json::{Value as Json, json};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`
const CUMULATIVE: u32 = 2;
/// `SPAN_KIND_INTERNAL`, `SPAN_KIND_SERVER`
const KINDS: [u32; 2] = [1, 2];
/// `STATUS_CODE_ERROR`
const ERROR: u32 = 2;

fn resource() -> Json {
    json!({ "attributes": [word("service.name", "brigd"), word("service.version", env!("CARGO_PKG_VERSION"))] })
}

fn scope() -> Json {
    json!({ "name": "brigd", "version": env!("CARGO_PKG_VERSION") })
}

fn word(key: &str, value: &str) -> Json {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// The body for `/v1/traces`.
pub(super) fn traces(spans: &[Span]) -> Vec<u8> {
    let spans: Vec<Json> = spans.iter().map(span).collect();
    json!({ "resourceSpans": [{ "resource": resource(), "scopeSpans": [{ "scope": scope(), "spans": spans }] }] }).to_string().into_bytes()
}

fn span(span: &Span) -> Json {
    let [internal, server] = KINDS;
    let attributes: Vec<Json> = span
        .attributes
        .iter()
        .map(|(key, value)| match value {
            Attribute::Word(value) => word(key, value),
            Attribute::Name(value) => word(key, value),
            Attribute::Number(value) => json!({ "key": key, "value": { "intValue": value.to_string() } }),
        })
        .collect();
    let mut out = json!({
        "traceId": data_encoding::HEXLOWER.encode(&span.trace),
        "spanId": data_encoding::HEXLOWER.encode(&span.id),
        "name": span.name,
        "kind": if span.name == "evaluation" { server } else { internal },
        "startTimeUnixNano": span.began_ns.to_string(),
        "endTimeUnixNano": span.ended_ns.to_string(),
        "attributes": attributes,
    });
    if let Some(members) = out.as_object_mut() {
        if let Some(parent) = span.parent {
            members.insert("parentSpanId".to_owned(), data_encoding::HEXLOWER.encode(&parent).into());
        }
        if let Some(fault) = span.fault {
            members.insert("status".to_owned(), json!({ "code": ERROR, "message": fault }));
        }
    }
    out
}

/// The body for `/v1/metrics`.
pub(super) fn metrics(families: &[Family], began_ns: u64, now_ns: u64) -> Vec<u8> {
    let times = (began_ns.to_string(), now_ns.to_string());
    let metrics: Vec<Json> = families.iter().filter(|family| !family.samples.is_empty()).map(|family| metric(family, &times)).collect();
    json!({ "resourceMetrics": [{ "resource": resource(), "scopeMetrics": [{ "scope": scope(), "metrics": metrics }] }] })
        .to_string()
        .into_bytes()
}

fn metric(family: &Family, times: &(String, String)) -> Json {
    let points: Vec<Json> = family.samples.iter().map(|sample| point(sample, times)).collect();
    let data = match family.kind {
        Kind::Counter => ("sum", json!({ "dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": true })),
        Kind::Gauge => ("gauge", json!({ "dataPoints": points })),
        Kind::Histogram => ("histogram", json!({ "dataPoints": points, "aggregationTemporality": CUMULATIVE })),
    };
    json!({ "name": family.name, "description": family.help, data.0: data.1 })
}

fn point(sample: &Sample, (began, now): &(String, String)) -> Json {
    let attributes: Vec<Json> = sample.labels.iter().map(|(key, value)| word(key, value)).collect();
    let mut out = json!({ "attributes": attributes, "startTimeUnixNano": began, "timeUnixNano": now });
    if let Some(members) = out.as_object_mut() {
        match &sample.value {
            Value::Whole(value) => {
                members.insert("asInt".to_owned(), value.to_string().into());
            }
            Value::Real(value) => {
                members.insert("asDouble".to_owned(), (*value).into());
            }
            Value::Distribution(distribution) => members.extend(buckets(distribution)),
        }
    }
    out
}

fn buckets(distribution: &Distribution) -> serde_json::Map<String, Json> {
    let Distribution { counts, sum_seconds } = distribution;
    let bounds: Vec<f64> = BOUNDS_US.iter().map(|bound| std::time::Duration::from_micros(*bound).as_secs_f64()).collect();
    let each: Vec<String> = counts.iter().map(u64::to_string).collect();
    let all: u64 = counts.iter().sum();
    let members = json!({ "count": all.to_string(), "sum": sum_seconds, "bucketCounts": each, "explicitBounds": bounds });
    if let Json::Object(members) = members { members } else { serde_json::Map::new() }
}
