//! The guest's world, name by name: every property of the global object with its type and
//! attributes is pinned in `globals.txt`. Something new there is a decision, not an accident.
#![expect(clippy::expect_used, reason = "tests")]

use acceptance::{Brigd, Handlers};
use serde_json::{Value, json};
use std::path::Path;

/// One line a property: name, type, and which of writable, enumerable, configurable it is.
const PROGRAM: &str = "return Reflect.ownKeys(globalThis).map((key) => { \
    const d = Reflect.getOwnPropertyDescriptor(globalThis, key); \
    const kind = 'value' in d ? typeof d.value : 'accessor'; \
    return [String(key), kind, (d.writable ? 'w' : '-') + (d.enumerable ? 'e' : '-') + (d.configurable ? 'c' : '-')].join(' '); \
}).sort()";

fn surface(params: &Value) -> String {
    let brigd = Brigd::start();
    let result = brigd.connect().evaluate_with(params, &mut Handlers::none());
    let lines = result.get("value").and_then(Value::as_array).cloned().unwrap_or_default();
    assert!(!lines.is_empty(), "{result}");
    lines.iter().filter_map(Value::as_str).map(|line| format!("{line}\n")).collect()
}

/// `BRIG_BLESS=1 cargo test -p acceptance --test globals` writes the list anew.
#[test]
fn the_globals_are_exactly_those_that_are_listed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("globals.txt");
    let seen = surface(&json!({"source": PROGRAM, "hostFunctions": {"orders": {"list": {}}}}));
    if std::env::var_os("BRIG_BLESS").is_some() {
        std::fs::write(&path, &seen).expect("the list is written");
    }
    let listed = std::fs::read_to_string(&path).expect("the list");
    assert_eq!(seen, listed, "the guest's world is not the listed one");
}
