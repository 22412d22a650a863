//! Flags into inputs and back.
#![expect(clippy::unwrap_used, reason = "tests")]

use super::super::words::{self, Reserved};
use super::*;
use proptest::prelude::*;
use serde_json::{Map, json};

fn shape(schema: &Value) -> Shape {
    Shape::read(schema)
}

fn orders() -> Shape {
    shape(&json!({"type": "object", "required": ["customer"], "properties": {
        "customer": {"type": "string"}, "limit": {"type": "integer"}, "minTotal": {"type": "number"}, "archived": {"type": "boolean"},
        "state": {"enum": ["open", "closed", 5, "5"]}, "tags": {"type": "array", "items": {"type": "string"}},
        "filter": {}, "shipTo": {"type": "object", "properties": {"city": {"type": "string"}, "poBox": {"type": "boolean"}}},
        "userId": {"type": "string"}, "user_id": {"type": "string"}, "cache": {"type": "boolean"}, "noCache": {"type": "boolean"},
    }}))
}

fn over(base: &str, flags: &[&str]) -> Result<String, String> {
    let tokens: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
    let settings = parse(&orders(), &tokens).map_err(|fault| fault.message)?;
    let base: Members = serde_json::from_str(base).unwrap();
    apply(base, settings).map(|members| serde_json::to_string(&members).unwrap()).map_err(|fault| fault.message)
}

#[test]
fn flags_become_members_with_all_their_digits() {
    for (flags, expected) in [
        (vec!["--customer", "x", "--limit", "12345678901234567890123"], r#"{"customer":"x","limit":12345678901234567890123}"#),
        (vec!["--min-total=-1.50e3", "--archived"], r#"{"minTotal":-1.50e3,"archived":true}"#),
        (vec!["--no-archived", "--customer", "-h"], r#"{"archived":false,"customer":"-h"}"#),
        (vec!["--archived=false", "--customer=--raw"], r#"{"archived":false,"customer":"--raw"}"#),
        (vec!["--tags", "a", "--tags=b=c", "--tags", ""], r#"{"tags":["a","b=c",""]}"#),
        (vec!["--no-tags"], r#"{"tags":[]}"#),
        (vec!["--state", "open"], r#"{"state":"open"}"#),
        (vec!["--filter", r#"{"a": [1]}"#], r#"{"filter":{"a": [1]}}"#),
        (vec!["--ship-to.city", "Brno", "--no-ship-to.po-box"], r#"{"shipTo":{"city":"Brno","poBox":false}}"#),
        (vec!["--ship-to.city", "Brno", "--ship-to", r#"{"zip":1,"city":"Wien"}"#], r#"{"shipTo":{"zip":1,"city":"Brno"}}"#),
        (vec!["--input.customer", "x", "--minTotal", "1"], r#"{"customer":"x","minTotal":1}"#),
        (vec!["--userId", "a", "--user_id", "b"], r#"{"userId":"a","user_id":"b"}"#),
        (vec!["--noCache", "--cache=false"], r#"{"noCache":true,"cache":false}"#),
    ] {
        assert_eq!(over("{}", &flags).as_deref(), Ok(expected), "{flags:?}");
    }
}

#[test]
fn flags_win_over_the_json_and_leave_the_rest_of_it() {
    assert_eq!(over(r#"{"customer":"a","other":1.0}"#, &["--customer", "b"]).unwrap(), r#"{"other":1.0,"customer":"b"}"#);
    assert_eq!(over(r#"{"shipTo":{"zip":1,"city":"a"}}"#, &["--ship-to.city", "b"]).unwrap(), r#"{"shipTo":{"zip":1,"city":"b"}}"#);
    assert_eq!(over(r#"{"tags":["a","b"]}"#, &["--tags", "c"]).unwrap(), r#"{"tags":["c"]}"#);
    let told = over(r#"{"shipTo":5}"#, &["--ship-to.city", "b"]).unwrap_err();
    assert!(told.contains("--ship-to.city") && told.contains("no object"), "{told}");
}

#[test]
fn what_is_wrong_is_told_in_one_line_with_the_flag_and_what_would_be_right() {
    for (flags, expected) in [
        (vec!["--limit", "1.5"], "--limit is a whole number, not \"1.5\""),
        (vec!["--limit", ""], "--limit is a whole number"),
        (vec!["--limit", "+1"], "--limit is a whole number"),
        (vec!["--limit=01"], "--limit is a whole number"),
        (vec!["--min-total", "NaN"], "--min-total is a number"),
        (vec!["--min-total", " 1"], "--min-total is a number"),
        (vec!["--archived", "yes"], "yes comes after nothing that takes a value"),
        (vec!["--archived=yes"], "--archived is true or false"),
        (vec!["--no-archived=false"], "--no-archived takes no value"),
        (vec!["--no-customer"], "--no-customer is no flag"),
        (vec!["--state", "lost"], "--state is one of \"open\", \"closed\", 5, \"5\", not \"lost\""),
        (vec!["--state", "5"], "--state can mean 5, \"5\""),
        (vec!["--customer"], "--customer needs a value"),
        (vec!["--customer", "--limit", "5"], "--customer needs a value"),
        (vec!["--customer", "a", "--customer", "b"], "--customer is given twice"),
        (vec!["--tags", "a", "--no-tags"], "--no-tags is given twice"),
        (vec!["--custmer", "a"], "did you mean --customer?"),
        (vec!["--ship-to.cty", "a"], "did you mean --ship-to.city?"),
        (vec!["--user-id", "a"], "--user-id can mean \"userId\" and \"user_id\""),
        (vec!["--no-cache"], "--no-cache can mean \"noCache\" and no \"cache\""),
        (vec!["--filter", "{"], "--filter is JSON"),
        (vec!["--ship-to", "[]"], "--ship-to is a JSON object"),
        (vec!["--ship-to.city.x", "a"], "--ship-to.city.x is no flag"),
        (vec!["--limit", "\u{1b}[2J\n"], "not \"\\\\u{1b}[2J\\\\u{a}\""),
        (vec!["--\u{1b}]0;x\u{7}", "1"], "--\\u{1b}]0;x\\u{7} is no flag"),
    ] {
        let told = over("{}", &flags).unwrap_err();
        assert!(told.contains(expected) && !told.contains('\n') && !told.contains('\u{1b}'), "{flags:?}: {told}");
    }
}

/// A schema and a value that it takes, of the shapes that have flags.
fn member(depth: u32) -> BoxedStrategy<(Value, Value)> {
    let text = any::<String>;
    let scalar = prop_oneof![
        text().prop_map(|text| (json!({"type": "string"}), json!(text))),
        any::<i64>().prop_map(|number| (json!({"type": "integer"}), json!(number))),
        (-1e9..1e9f64).prop_map(|number| (json!({"type": "number"}), json!(number))),
        any::<bool>().prop_map(|yes| (json!({"type": "boolean"}), json!(yes))),
        prop::sample::select(vec![json!("a"), json!("--b"), json!(1), json!(null), json!("null"), json!("1")])
            .prop_map(|one| (json!({"enum": ["a", "--b", 1, null, "null", "1"]}), one)),
        prop::collection::vec(text(), 0..4).prop_map(|all| (json!({"type": "array", "items": {"type": "string"}}), json!(all))),
        prop::collection::vec(any::<i32>(), 0..4).prop_map(|all| (json!({"type": "array", "items": {"type": "integer"}}), json!(all))),
        prop::collection::vec(any::<bool>(), 0..4).prop_map(|all| (json!({"type": "array", "items": {"type": "boolean"}}), json!(all))),
        prop::collection::vec(any::<Option<i8>>(), 0..3).prop_map(|any| (json!({}), json!({"deep": any}))),
        // Of another type than the schema says: it has to survive too.
        prop::sample::select(vec![json!(null), json!({"a": "\u{1b}"}), json!([[]]), json!("")])
            .prop_map(|one| (json!({"type": "integer"}), one)),
    ];
    if depth == 0 { scalar.boxed() } else { prop_oneof![4 => scalar, 1 => object(depth - 1)].boxed() }
}

fn object(depth: u32) -> BoxedStrategy<(Value, Value)> {
    let name = prop_oneof![
        4 => "[a-zA-Z_$][a-zA-Z0-9_$-]{0,6}",
        1 => prop::sample::select(vec!["json", "timeout", "help", "input", "no-a", "noA", "a", "A", "raw", "userId", "user_id", "user-id"]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    prop::collection::vec((name, member(depth), any::<bool>()), 0..6)
        .prop_map(|members| {
            let (mut properties, mut value) = (Map::new(), Map::new());
            for (name, (schema, one), given) in members {
                if given {
                    value.insert(name.clone(), one);
                } else {
                    value.remove(&name);
                }
                properties.insert(name, schema);
            }
            (json!({"type": "object", "properties": properties}), Value::Object(value))
        })
        .boxed()
}

proptest! {
    #[test]
    fn every_input_survives_flags_and_back((schema, input) in object(2)) {
        let shape = Shape::read(&schema);
        let reserved = Reserved::new();
        let members: Members = serde_json::from_str(&input.to_string()).unwrap();
        let written = arguments(&shape, &members, &|name| reserved.has(name));
        let words = ["shop".to_owned(), "f".to_owned()].into_iter().chain(written.clone());
        let read = words::read(words.map(Into::into).collect()).map_err(|fault| TestCaseError::fail(format!("{written:?}: {}", fault.message)))?;
        prop_assert!(!read.help);
        let base: Members = read.own.options.json.map_or_else(Members::default, |json| serde_json::from_str(&json).unwrap());
        let settings = parse(&shape, &read.flags).map_err(|fault| TestCaseError::fail(format!("{written:?}: {}", fault.message)))?;
        let again = apply(base, settings).unwrap();
        // Both are read from text: reading a long fraction may round its last digit.
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        prop_assert_eq!(value(&serde_json::to_string(&again).unwrap()), value(&input.to_string()), "{:?}", written);
    }

    #[test]
    fn no_flags_panic_and_no_fault_can_move_a_cursor(tokens in prop::collection::vec("(--)?(no-)?(customer|limit|tags|ship-to|\\PC{0,5}|.)(=.{0,4}|\\.city)?", 0..6)) {
        if let Err(fault) = parse(&orders(), &tokens) {
            prop_assert!(!fault.message.contains(|c: char| c.is_control()), "{:?}", fault.message);
        }
    }
}
