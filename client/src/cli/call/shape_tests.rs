//! Schemas as flags.
#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use serde_json::json;

fn kind_of(schema: &Value) -> Kind {
    let root =
        json!({"type": "object", "properties": {"it": schema}, "$defs": {"city": {"type": "string"}, "loop": {"$ref": "#/$defs/loop"}}});
    Shape::read(&root).fields.pop().unwrap().kind
}

#[test]
fn each_schema_has_the_flag_that_can_say_all_its_values() {
    let list = |kind| Kind::List(Box::new(kind));
    for (schema, expected) in [
        (json!({"type": "string"}), Kind::Text),
        (json!({"type": ["null", "integer"]}), Kind::Integer),
        (json!({"anyOf": [{"type": "number"}, {"type": "null"}]}), Kind::Number),
        (json!({"$ref": "#/$defs/city"}), Kind::Text),
        (json!({"allOf": [{"$ref": "#/$defs/city"}], "description": "x"}), Kind::Text),
        (json!({"type": "array", "items": {"type": "boolean"}}), list(Kind::Boolean)),
        (json!({"type": "array", "items": {"$ref": "#/$defs/city"}}), list(Kind::Text)),
        (json!({"type": "array"}), list(Kind::Json)),
        (json!({"type": "array", "items": {"type": "object", "properties": {"a": {}}}}), list(Kind::Json)),
        (json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}}}), list(Kind::Json)),
        (json!({"type": "array", "prefixItems": [{"type": "string"}]}), Kind::Json),
        (json!({"enum": ["a", 1, null]}), Kind::Choice(vec![json!("a"), json!(1), json!(null)])),
        (json!({"const": "a"}), Kind::Choice(vec![json!("a")])),
        (json!({"enum": [{"a": 1}]}), Kind::Json),
        (json!({"type": "object", "additionalProperties": {"type": "string"}}), Kind::Json),
        (json!({"type": ["string", "integer"]}), Kind::Json),
        (json!({"oneOf": [{"type": "string"}, {"type": "integer"}]}), Kind::Json),
        (json!({"$ref": "#/$defs/loop"}), Kind::Json),
        (json!({"$ref": "#/nowhere"}), Kind::Json),
        (json!({"$ref": "elsewhere.json"}), Kind::Json),
        (json!(true), Kind::Json),
        (json!({}), Kind::Json),
        (json!({"type": "string", "enum": 5, "anyOf": 7}), Kind::Text),
    ] {
        assert_eq!(kind_of(&schema), expected, "{schema}");
    }
}

#[test]
fn what_is_no_object_has_no_flags() {
    for schema in [json!(true), json!({}), json!({"type": "string"}), json!({"type": "object"}), json!({"properties": 5}), json!([1])] {
        assert_eq!(Shape::read(&schema), Shape::default(), "{schema}");
    }
}

#[test]
fn required_members_come_first_in_their_order() {
    let shape = Shape::read(&json!({"properties": {"a": {}, "b": {}, "c": {}, "d": {}}, "required": ["d", "b"]}));
    let names: Vec<&str> = shape.fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["d", "b", "a", "c"]);
}

#[test]
fn a_name_that_is_no_flag_has_none_and_is_counted() {
    let shape =
        Shape::read(&json!({"properties": {"a b": {}, "": {}, "x\u{1b}[2J": {}, "-": {}, "_": {}, "--help": {}, "é": {}, "ok": {}}}));
    assert_eq!((shape.fields.len(), shape.without_flag), (1, 7), "{shape:?}");
}

#[test]
fn a_schema_that_is_huge_or_turns_on_itself_is_read_within_bounds() {
    let wide: serde_json::Map<String, Value> = (0..100_000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
    let shape = Shape::read(&json!({"type": "object", "properties": wide}));
    assert_eq!((shape.fields.len(), shape.without_flag), (FIELDS, 100_000 - FIELDS));
    let itself = json!({"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}, "c": {"$ref": "#"}}});
    assert!(Shape::read(&itself).all().len() <= FIELDS);
    let each: serde_json::Map<String, Value> =
        (0..300).map(|n| (format!("p{n}"), json!({"type": "array", "items": {"$ref": "#"}}))).collect();
    assert_eq!(Shape::read(&json!({"type": "object", "properties": each})).fields.len(), 300);
}

#[test]
fn a_flag_is_the_command_spelling_where_that_is_one_member_else_the_name() {
    let shape = Shape::read(&json!({"properties": {
        "orderId": {}, "userId": {}, "user_id": {}, "cache": {"type": "boolean"}, "noCache": {}, "timeout": {}, "input": {"properties": {"x": {}}},
        "shipTo": {"properties": {"cityName": {}}},
    }}));
    let flag = |path: &[&str]| shape.flag(path, &|name| name == "timeout");
    for (path, expected) in [
        (vec!["orderId"], "order-id"),
        (vec!["userId"], "userId"),
        (vec!["user_id"], "user_id"),
        (vec!["cache"], "cache"),
        (vec!["noCache"], "noCache"),
        (vec!["timeout"], "input.timeout"),
        (vec!["input"], "input.input"),
        (vec!["input", "x"], "input.input.x"),
        (vec!["shipTo", "cityName"], "ship-to.city-name"),
    ] {
        assert_eq!(flag(&path).as_deref(), Some(expected), "{path:?}");
    }
    let lost = Shape::read(&json!({"properties": {"user-id": {}, "userId": {}}}));
    assert_eq!(lost.flag(&["user-id"], &|_| false), None);
    assert_eq!(lost.flag(&["userId"], &|_| false).as_deref(), Some("userId"));
}
