//! Behaviour of schemas, through the cache as every caller uses it.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod arbitrary;
mod bounds;

use super::cache::SchemaCache;
use super::{STEPS, Schema, payload};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;

async fn compiled(text: &str) -> Result<Arc<Schema>, String> {
    SchemaCache::default().compiled(0, vec![text]).await.remove(0).map_err(|fault| fault.0)
}

async fn schema(value: Value) -> Arc<Schema> {
    compiled(&value.to_string()).await.unwrap()
}

async fn fault(value: Value) -> String {
    compiled(&value.to_string()).await.unwrap_err()
}

/// What is wrong with a payload, or nothing.
fn wrong(schema: &Schema, payload: &Value) -> Option<String> {
    schema.cost(payload::measure(&payload.to_string()).unwrap()).unwrap();
    (!schema.is_valid(payload)).then(|| schema.explain(payload, false))
}

fn order() -> Value {
    json!({
        "type": "object",
        "properties": {
            "customer": {"type": "string"},
            "items": {"type": "array", "items": {
                "type": "object",
                "properties": {"sku": {"type": "string"}, "qty": {"type": "integer", "minimum": 1}},
                "required": ["sku", "qty"]}},
            "priority": {"enum": ["low", "normal", "high"]}
        },
        "required": ["customer", "items"],
        "additionalProperties": false
    })
}

#[tokio::test]
async fn all_problems_come_at_once_each_with_place_rule_and_choice() {
    let schema = schema(order()).await;
    let text =
        wrong(&schema, &json!({"customer": 42, "items": [{"sku": "A", "qty": 0}, {"qty": "two"}], "priority": "urgent!!", "extra": true}));
    assert_eq!(
        text.unwrap(),
        "does not match its schema:\n\
         - $ has \"extra\", which is not allowed; allowed are \"customer\", \"items\", \"priority\"\n\
         - $.customer must be a string; a number (42) was given\n\
         - $.items[0].qty must be at least 1; 0 was given\n\
         - $.items[1] must have \"sku\" (string)\n\
         - $.items[1].qty must be an integer; a string (\"two\") was given\n\
         - $.priority must be one of \"low\", \"normal\", \"high\"; \"urgent!!\" was given"
    );
}

#[tokio::test]
async fn misspelt_members_and_choices_are_recognised() {
    let schema = schema(order()).await;
    let text = wrong(&schema, &json!({"custmer": "c", "items": [], "priority": "hihg"})).unwrap();
    assert_eq!(
        text,
        "does not match its schema:\n\
         - $ must have \"customer\" (string); \"custmer\" was given instead\n\
         - $.priority must be one of \"low\", \"normal\", \"high\"; \"hihg\" was given; did you mean \"high\"?"
    );
}

#[tokio::test]
async fn alternatives_are_told_one_by_one_when_any_may_have_been_meant() {
    let schema = schema(json!({"type": "object", "anyOf": [
        {"type": "object", "properties": {"content": {"type": "string"}, "filename": {"type": "string"}}, "required": ["content", "filename"]},
        {"type": "object", "properties": {"source_url": {"type": "string", "format": "uri"}}, "required": ["source_url"]},
        {"type": "object", "properties": {"source_file_id": {"type": "string"}}, "required": ["source_file_id"]}]}))
    .await;
    let text = wrong(&schema, &json!({})).unwrap();
    assert!(["content", "source_url", "source_file_id"].iter().all(|name| text.contains(name)), "{text}");
    let text = wrong(&schema, &json!({"filename": "a.txt"})).unwrap();
    assert!(text.contains("content"), "{text}");
    assert!(wrong(&schema, &json!({"source_url": "https://example.com/a"})).is_none());
    assert!(wrong(&schema, &json!([])).unwrap().contains("object"));
}

#[tokio::test]
async fn the_alternative_that_was_meant_is_told_alone() {
    let schema = schema(json!({"oneOf": [
        {"type": "object", "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}}, "required": ["kind", "radius"]},
        {"type": "object", "properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"]}]}))
    .await;
    assert_eq!(
        wrong(&schema, &json!({"kind": "square", "side": "2"})).unwrap(),
        "does not match its schema:\n- $.side must be a number; a string (\"2\") was given"
    );
}

#[tokio::test]
async fn a_value_for_more_than_one_of_exclusive_alternatives_is_told_so() {
    let schema = schema(json!({"oneOf": [{"type": "number"}, {"minimum": 3}]})).await;
    assert!(wrong(&schema, &json!(5)).unwrap().contains("fits more than one of 2 alternatives (numbers 1, 2)"));
    assert!(wrong(&schema, &json!(2)).is_none());
}

#[tokio::test]
async fn recursive_schemas_with_escaped_references_work_and_are_explained() {
    let schema = schema(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "$defs": {
            "group": {"type": "object", "properties": {"op": {"enum": ["and", "or"]}, "items": {"type": "array", "minItems": 1,
                "items": {"anyOf": [{"$ref": "#/$defs/group"}, {"$ref": "#/$defs/leaf~1v1"}]}}}, "required": ["op", "items"], "additionalProperties": false},
            "leaf/v1": {"type": "object", "properties": {"field": {"type": "string"}, "eq": {"type": ["string", "number", "boolean"]}},
                "required": ["field", "eq"], "additionalProperties": false}},
        "properties": {"filter": {"$ref": "#/$defs/group", "description": "sibling of $ref"}}, "required": ["filter"]}))
    .await;
    let leaf = json!({"field": "a", "eq": 1});
    assert!(wrong(&schema, &json!({"filter": {"op": "and", "items": [leaf, {"op": "or", "items": [leaf]}]}})).is_none());
    let text = wrong(&schema, &json!({"filter": {"op": "xor", "items": [leaf]}})).unwrap();
    assert!(text.contains("$.filter.op must be one of \"and\", \"or\""), "{text}");
    let text = wrong(&schema, &json!({"filter": {"op": "and", "items": [{"op": "or", "items": []}]}})).unwrap();
    assert!(text.contains("$.filter.items[0].items must have at least 1 items"), "{text}");
    let text = wrong(&schema, &json!({"filter": {"op": "and", "items": [{"field": "a", "eq": [1]}]}})).unwrap();
    assert!(text.contains("$.filter.items[0].eq must be a string or a number or a boolean") || text.contains("eq"), "{text}");
}

#[tokio::test]
async fn tuples_are_read_in_the_spelling_of_either_draft() {
    let new = schema(json!({"type": "object", "properties": {"point": {"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}], "items": false, "minItems": 2}}})).await;
    let old = schema(json!({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"point": {"type": "array", "items": [{"type": "number"}, {"type": "number"}], "additionalItems": false, "minItems": 2}}})).await;
    for schema in [new, old] {
        assert!(wrong(&schema, &json!({"point": [1, 2.5]})).is_none());
        assert!(wrong(&schema, &json!({"point": [1, "2"]})).unwrap().contains("$.point[1] must be a number"));
        assert!(wrong(&schema, &json!({"point": [1, 2, 3]})).unwrap().contains("$.point[2] is one item too many"));
        assert!(wrong(&schema, &json!({"point": [1]})).unwrap().contains("at least 2 items"));
    }
    assert!(fault(json!({"items": [{"type": "number"}]})).await.contains("prefixItems"));
}

#[tokio::test]
async fn formats_of_the_standard_are_asserted_and_others_are_notes() {
    let schema = schema(json!({"properties": {
        "page": {"type": "integer", "format": "uint32", "minimum": 0}, "when": {"format": "date-time"}, "day": {"format": "date"},
        "site": {"format": "uri"}, "ip": {"format": "ipv4"}, "mail": {"format": "email"}, "weird": {"format": "x-thing"}}}))
    .await;
    for good in
        [json!({"page": 3}), json!({"page": 3.0}), json!({"weird": "any"}), json!({"when": "2026-03-01T10:00:00Z", "day": "2026-02-28"})]
    {
        assert!(wrong(&schema, &good).is_none(), "{good}");
    }
    for (name, bad) in [
        ("page", json!(-1)),
        ("page", json!(1.5)),
        ("when", json!("yesterday")),
        ("day", json!("2026-02-30")),
        ("site", json!("not a url")),
        ("ip", json!("300.1.1.1")),
        ("mail", json!("nobody")),
    ] {
        let text = wrong(&schema, &json!({name: bad})).unwrap();
        assert!(text.contains(&format!("$.{name} ")), "{text}");
    }
    assert!(wrong(&schema, &json!({"when": "yesterday"})).unwrap().contains("must be a valid date-time; \"yesterday\" was given"));
}

#[tokio::test]
async fn money_is_a_multiple_of_a_cent_as_people_count() {
    let schema = schema(json!({"properties": {"price": {"type": "number", "multipleOf": 0.01}}})).await;
    for good in [json!(0.07), json!(19.99), json!(1.1), json!(0), json!(1_000_000_000_000_000.0)] {
        assert!(wrong(&schema, &json!({"price": good})).is_none(), "{good}");
    }
    for bad in [json!(0.075), json!(19.999)] {
        assert!(wrong(&schema, &json!({"price": bad})).unwrap().contains("must be a multiple of 0.01"));
    }
}

#[tokio::test]
async fn members_by_pattern_and_names_by_rule_are_checked() {
    let schema = schema(json!({"properties": {
        "typed": {"type": "object", "additionalProperties": {"type": "number"}, "maxProperties": 2},
        "patterned": {"type": "object", "patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": false},
        "named": {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}}}}))
    .await;
    let says = |value: Value, part: &str| {
        let text = wrong(&schema, &value).unwrap();
        assert!(text.contains(part), "{text}");
    };
    says(json!({"typed": {"a": "1"}}), "$.typed.a must be a number");
    says(json!({"typed": {"a": 1, "b": 2, "c": 3}}), "$.typed must have at most 2 members; it has 3");
    says(json!({"patterned": {"y-id": "1"}}), "$.patterned has \"y-id\", which is not allowed");
    says(json!({"patterned": {"x-id": 1}}), "$.patterned[\"x-id\"] must be a string");
    says(json!({"named": {"Abc": 1}}), "$.named.Abc has a name that must match the pattern \"^[a-z]+$\"");
    assert!(wrong(&schema, &json!({"patterned": {"x-id": "1"}, "extra": 1})).is_none());
}

#[tokio::test]
async fn what_is_marked_secret_is_never_shown() {
    let schema = schema(json!({"properties": {
        "password": {"type": "string", "format": "password", "minLength": 20},
        "token": {"writeOnly": true, "enum": ["a", "b"]},
        "pin": {"allOf": [{"writeOnly": true}, {"pattern": "^[0-9]{4}$"}]},
        "deep": {"$ref": "#/$defs/secret", "maximum": 5}}, "$defs": {"secret": {"writeOnly": true, "type": "integer"}}}))
    .await;
    let text = wrong(&schema, &json!({"password": "hunter2", "token": "s3cr3t", "pin": "hunter2", "deep": 77_777})).unwrap();
    for secret in ["hunter2", "s3cr3t", "77777", "77_777"] {
        assert!(!text.contains(secret), "{text}");
    }
    assert_eq!(text.matches("\n- ").count(), 4, "{text}");
    let hidden = schema.explain(&json!({"deep": 1.5}), true);
    assert!(!hidden.contains("1.5"), "{hidden}");
}

#[tokio::test]
async fn patterns_that_could_be_given_up_do_not_stand_where_no_means_yes() {
    let text = fault(json!({"properties": {"p": {"not": {"pattern": "^(?=a)(a|aa)+$"}}}})).await;
    assert!(text.contains("look-around"), "{text}");
}

#[tokio::test]
async fn a_bad_schema_is_refused_with_what_is_wrong_and_where() {
    for (schema, parts) in [
        (json!({"properties": {"a": {"type": "strng"}}}), vec!["\"strng\"", "/properties/a/type"]),
        (json!({"properties": {"a": {"pattern": "("}}}), vec!["regular expression", "/properties/a/pattern"]),
        (json!({"$ref": "#/$defs/no"}), vec!["#/$defs/no"]),
        (json!({"$ref": "https://example.com/s.json"}), vec!["never a file or the network"]),
        (json!({"$ref": "file:///etc/passwd"}), vec!["never a file or the network"]),
        (json!({"$schema": "https://example.com/mine"}), vec!["$schema", "2020-12"]),
        (json!([]), vec!["neither an object"]),
        (json!({"required": "a"}), vec!["not a JSON Schema", "/required"]),
    ] {
        let text = fault(schema).await;
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
    assert!(compiled("{").await.is_err());
    assert!(compiled(&format!("{{\"title\":\"{}\"}}", "x".repeat(70_000))).await.unwrap_err().contains("bytes"));
    let deep = format!("{}{{}}{}", "{\"not\":".repeat(200), "}".repeat(200));
    assert!(compiled(&deep).await.unwrap_err().contains("levels"));
}

#[tokio::test]
async fn a_keyword_that_looks_misspelt_is_pointed_out() {
    let schema = schema(json!({"properties": {"a": {"tpye": "string"}}, "requierd": ["a"], "x-own": 1, "example": {}})).await;
    assert_eq!(schema.lint().len(), 2);
    assert!(schema.lint().iter().any(|sentence| sentence.contains("did you mean \"type\"?")));
}

#[test]
fn no_http_client_comes_in_through_the_schema_validator() {
    let output = std::process::Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--package", "jsonschema", "--edges", "normal", "--prefix", "none", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .unwrap();
    let tree = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && tree.contains("jsonschema"), "{}", String::from_utf8_lossy(&output.stderr));
    for unwanted in ["reqwest", "hyper", "rustls", "native-tls", "curl", "ureq"] {
        assert!(!tree.lines().any(|line| line.starts_with(&format!("{unwanted} "))), "{unwanted} is in the tree of jsonschema");
    }
}

#[tokio::test]
async fn every_check_of_the_schema_cases_holds_with_what_its_error_must_say() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cases");
    let mut checked = 0;
    let is_schema_case = |name: &str| name.starts_with('S') && name.ends_with(".json");
    for file in std::fs::read_dir(folder).unwrap().flatten().filter(|file| file.file_name().to_str().is_some_and(is_schema_case)) {
        let case: Value = serde_json::from_str(&std::fs::read_to_string(file.path()).unwrap()).unwrap();
        let Some(checks) = case.get("checks").and_then(Value::as_array) else { continue };
        let Some(input) = case.pointer("/hostFunctions/tool.call/inputSchema") else { continue };
        let schema = schema(input.clone()).await;
        for check in checks {
            let wrong = wrong(&schema, &check["input"]);
            assert_eq!(wrong.is_none(), check["valid"] == true, "{}: {}: {wrong:?}", case["id"], check["input"]);
            for part in check.get("errorContains").and_then(Value::as_array).into_iter().flatten() {
                let (text, part) = (wrong.clone().unwrap().to_lowercase(), part.as_str().unwrap().to_lowercase());
                assert!(text.contains(&part), "{}: {part:?} is not in {text}", case["id"]);
            }
            checked += 1;
        }
    }
    assert!(checked > 40, "{checked} checks");
}
