//! The help of a function, hostile ones too.
#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use serde_json::{Value, json};

fn help(schema: Value, description: &str, examples: Value) -> String {
    let about = json!({
        "function": "orderStore.listOrders", "collection": "orderStore", "description": description, "inputSchema": schema,
        "examples": examples, "timeoutMs": 5000, "effect": "read", "retry": "safe",
    });
    let about: FunctionsDescribeResult = serde_json::from_str(&about.to_string()).unwrap();
    function("brig call order-store list-orders", &about, &Shape::read(&schema), &Reserved::new())
}

#[test]
fn a_function_says_its_flags_and_its_examples_as_they_would_be_typed() {
    let schema = json!({"required": ["customer"], "properties": {
        "customer": {"type": "string", "description": "Whose orders"}, "maxAge": {"type": "integer", "default": 30},
        "archived": {"type": "boolean"}, "state": {"enum": ["open", "closed"]}, "tags": {"type": "array", "items": {"type": "string"}},
        "shipTo": {"properties": {"city": {"type": "string"}}}, "timeout": {"type": "integer"}, "a b": {},
    }});
    let examples =
        json!([{"description": "All open ones", "input": {"customer": "it's \"x\"", "state": "open", "archived": false, "a b": 1}}]);
    let text = help(schema, "Lists orders.\nNewest first.", examples);
    assert!(text.starts_with("Lists orders.\nNewest first.\n\nUsage: brig call order-store list-orders [FLAGS] [OPTIONS]\n"), "{text}");
    for expected in [
        "  --customer TEXT             Whose orders [required]\n",
        "  --max-age INTEGER           [default: 30]\n",
        "  --archived, --no-archived\n",
        "  --state open|closed\n",
        "  --tags TEXT                 [can be repeated; --no-tags for none]\n",
        "  --ship-to.city TEXT\n",
        "  --input.timeout INTEGER\n",
        "  1 more members are not listed; --json gives any\n",
        "Examples:\n  All open ones\n    brig call order-store list-orders --no-archived --customer 'it'\\''s \"x\"' --state open --json '{\"a b\":1}'\n",
        "orderStore.listOrders: effect read; safe to call again; at most 5000 ms\n",
        "  6   refused: ",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
}

#[test]
fn nothing_that_a_schema_says_reaches_a_terminal_unescaped() {
    let bad = "\u{1b}[2J\u{1b}]0;owned\u{7}\r\u{9b}31m\u{202e}\u{2028}\0";
    let schema = json!({"properties": {
        "a": {"type": "string", "description": bad, "default": bad}, "b": {"enum": [bad, "x"]}, "c": {"type": "array", "items": {"enum": [bad]}},
        bad: {"type": "string", "description": bad},
    }});
    let text = help(schema, &format!("{bad}\n{bad}"), json!([{"description": bad, "input": {"a": bad, "b": bad, bad: bad}}]));
    let moves = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202e}' | '\u{2028}');
    assert!(!text.contains(moves), "{text:?}");
    assert!(text.contains("owned"));
    let name = format!("shop.{bad}");
    let listed = FunctionListed { function: name, collection: "shop".to_owned(), description: bad.to_owned(), effect: Effect::Read };
    assert!(!collection("brig call shop", &[&listed]).contains(moves));
}

#[test]
fn a_huge_schema_has_a_help_that_can_be_read() {
    let long = "x".repeat(5_000);
    let many: serde_json::Map<String, Value> =
        (0..5000).map(|n| (format!("p{n}"), json!({"enum": [long, long], "description": long, "default": long}))).collect();
    let schema = json!({"properties": many});
    let examples: Vec<Value> = (0..50).map(|_| json!({"description": long, "input": {"p1": long}})).collect();
    let text = help(schema, &long, json!(examples));
    assert!(text.len() < 250_000, "{}", text.len());
    assert!(text.contains("4800 more members"), "{text}");
    assert_eq!(text.lines().filter(|line| line.trim_start().starts_with("--p")).count(), FLAGS);
}
