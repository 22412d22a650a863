//! Handlers of host calls, as the cases describe them.

use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::time::Duration;

/// What a handler says.
#[derive(Debug)]
pub enum Reply {
    /// Nothing, ever.
    Never,
    /// `"result":…` or `"error":…`, after a delay.
    After(Duration, String),
}

/// Handlers by function name, with what they saw.
#[derive(Debug, Default)]
pub struct Handlers {
    specs: HashMap<String, Value>,
    counts: HashMap<String, u64>,
    /// Every call, in order: function and input.
    pub seen: Vec<(String, Value)>,
}

impl Handlers {
    /// No functions.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// With a handler for `collection.function`, in the form of the cases.
    #[must_use]
    pub fn on(mut self, function: &str, spec: Value) -> Self {
        self.specs.insert(function.to_owned(), spec);
        self
    }

    /// How often a function was called.
    #[must_use]
    pub fn calls(&self, function: &str) -> u64 {
        self.counts.get(function).copied().unwrap_or(0)
    }

    /// Every function that was called, with its count.
    #[must_use]
    pub fn all_calls(&self) -> &HashMap<String, u64> {
        &self.counts
    }

    /// Runs one call.
    pub fn handle(&mut self, function: &str, input: &Value) -> Reply {
        let count = self.counts.entry(function.to_owned()).or_default();
        *count += 1;
        let count = *count;
        self.seen.push((function.to_owned(), input.clone()));
        let spec = self.specs.get(function).unwrap_or_else(|| panic!("brigd asked for {function}, which was not declared")).clone();
        answer(&spec, input, count)
    }
}

impl Handlers {
    /// Runs one call whose input is only text: such a handler can only hand it back.
    pub fn handle_raw(&mut self, function: &str, input: &str) -> Reply {
        *self.counts.entry(function.to_owned()).or_default() += 1;
        self.seen.push((function.to_owned(), Value::String(input.to_owned())));
        Reply::After(Duration::ZERO, format!("\"result\":{input}"))
    }
}

fn ok(value: &Value) -> Reply {
    Reply::After(Duration::ZERO, format!("\"result\":{value}"))
}

fn answer(spec: &Value, input: &Value, count: u64) -> Reply {
    let get = |name: &str| spec.get(name).cloned().unwrap_or(Value::Null);
    match spec.get("kind").and_then(Value::as_str).expect("a handler has a kind") {
        "static" => ok(&get("result")),
        "echo" => ok(input),
        "counter" => ok(&json!({ "n": count })),
        "never" => Reply::Never,
        "rawJson" => Reply::After(Duration::ZERO, format!("\"result\":{}", get("text").as_str().expect("text"))),
        "big" => ok(&json!("x".repeat(usize::try_from(get("bytes").as_u64().expect("bytes")).expect("a size")))),
        "sum" => ok(&json!(sum(input, get("path").as_str().expect("path")))),
        "length" => ok(&json!(at(input, get("path").as_str().expect("path")).as_array().map_or(0, Vec::len))),
        "throws" => throws(&get("error")),
        "delay" => match answer(&get("then"), input, count) {
            Reply::After(_, body) => Reply::After(Duration::from_millis(get("ms").as_u64().expect("ms")), body),
            Reply::Never => Reply::Never,
        },
        "sequence" => {
            let steps = get("steps");
            let steps = steps.as_array().expect("steps");
            let index = usize::try_from(count - 1).expect("a count").min(steps.len() - 1);
            answer(steps.get(index).expect("a step"), input, count)
        }
        "lookup" => lookup(spec, input, count),
        "filter" => ok(&filter(spec, input)),
        "page" => ok(&page(spec, input)),
        "merge" => ok(&merge(input, &get("with"))),
        other => panic!("unknown kind of handler {other}"),
    }
}

fn throws(error: &Value) -> Reply {
    let message = error.get("message").and_then(Value::as_str).unwrap_or("failed");
    let mut data = Map::new();
    for name in ["name", "code", "data"] {
        if let Some(value) = error.get(name) {
            data.insert(name.to_owned(), value.clone());
        }
    }
    // What a careless client would add; none of it may reach the guest.
    if let Some(stack) = error.get("hostStack") {
        data.insert("stack".to_owned(), stack.clone());
    }
    let body = json!({"code": -32000, "message": message, "data": data});
    Reply::After(Duration::ZERO, format!("\"error\":{body}"))
}

fn lookup(spec: &Value, input: &Value, count: u64) -> Reply {
    let key = spec
        .get("keys")
        .and_then(Value::as_array)
        .map(|keys| keys.iter().map(|key| text_of(input.get(key.as_str().unwrap_or_default()))).collect::<Vec<_>>().join("|"))
        .unwrap_or_else(|| text_of(input.get(spec.get("key").and_then(Value::as_str).unwrap_or_default())));
    let found = spec.get("table").and_then(|table| table.get(&key)).or_else(|| spec.get("default"));
    match found {
        Some(value) if value.get("kind").is_some_and(Value::is_string) && value.get("error").is_some() => answer(value, input, count),
        Some(value) => ok(value),
        None => ok(&Value::Null),
    }
}

fn text_of(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "undefined".to_owned(),
    }
}

fn at<'v>(value: &'v Value, path: &str) -> &'v Value {
    path.split('.').filter(|part| !part.is_empty()).fold(value, |value, part| {
        part.parse::<usize>().ok().and_then(|index| value.get(index)).or_else(|| value.get(part)).unwrap_or(&Value::Null)
    })
}

fn sum(input: &Value, path: &str) -> f64 {
    let value = at(input, path);
    value.as_array().map_or_else(|| value.as_f64().unwrap_or(0.0), |items| items.iter().filter_map(Value::as_f64).sum())
}

fn filter(spec: &Value, input: &Value) -> Value {
    let rows = spec.get("rows").and_then(Value::as_array).cloned().unwrap_or_default();
    let by: Vec<String> = match spec.get("by") {
        Some(Value::String(name)) => vec![name.clone()],
        Some(Value::Array(names)) => names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    };
    let kept: Vec<Value> =
        rows.into_iter().filter(|row| by.iter().all(|name| input.get(name).is_none_or(|wanted| row.get(name) == Some(wanted)))).collect();
    match spec.get("wrap").and_then(Value::as_str) {
        Some(name) => json!({ name: kept }),
        None => Value::Array(kept),
    }
}

fn page(spec: &Value, input: &Value) -> Value {
    let rows = spec.get("rows").and_then(Value::as_array).cloned().unwrap_or_default();
    let size = spec.get("size").and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok()).unwrap_or(10);
    let cursor = spec.get("cursor").and_then(Value::as_str).unwrap_or("cursor");
    let start = match input.get(cursor) {
        Some(Value::String(text)) => text.parse().unwrap_or(0),
        Some(Value::Number(number)) => number.as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0),
        _ => 0usize,
    };
    let items: Vec<Value> = rows.iter().skip(start).take(size).cloned().collect();
    let next = start + items.len();
    let next = if next < rows.len() { json!(next.to_string()) } else { Value::Null };
    json!({"items": items, "nextCursor": next})
}

fn merge(input: &Value, with: &Value) -> Value {
    let mut merged = input.as_object().cloned().unwrap_or_default();
    merged.extend(with.as_object().cloned().unwrap_or_default());
    Value::Object(merged)
}
