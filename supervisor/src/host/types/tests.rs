//! What becomes of schemas and descriptions.
#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use serde_json::json;

fn described(collection: &str, name: &str, member: Value) -> Described {
    let text = member.to_string();
    Described::of(collection, name, &serde_json::from_str(&text).unwrap()).unwrap()
}

fn input(schema: Value) -> String {
    let text = declarations(&[described("orders", "list", json!({"inputSchema": schema}))]).unwrap();
    let (_, rest) = text.split_once("  list(").unwrap();
    let (input, _) = rest.split_once("): Promise").unwrap();
    let input = input.split_once(": ").unwrap().1.to_owned();
    match text.split_once("declare const orders").unwrap().0 {
        "" => input,
        aliases => format!("{aliases}{input}"),
    }
}

#[test]
fn keywords_become_the_types_that_say_the_same() {
    for (schema, expected) in [
        (json!(true), "unknown"),
        (json!(false), "never"),
        (json!({"not": true}), "never"),
        (json!({"type": "string"}), "string"),
        (json!({"type": ["string", "null"]}), "string | null"),
        (json!({"type": "integer"}), "number"),
        (json!({"const": "a\"b"}), "\"a\\\"b\""),
        (json!({"enum": ["a", 1, true, null]}), "\"a\" | 1 | true | null"),
        (json!({"type": "string", "enum": ["a", null]}), "\"a\""),
        (json!({"type": "array", "items": {"type": ["string", "number"]}}), "(string | number)[]"),
        (json!({"type": "array"}), "unknown[]"),
        (
            json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "minItems": 1}),
            "[string, number?, ...unknown[]]",
        ),
        (json!({"type": "array", "prefixItems": [{"type": "string"}], "items": false, "minItems": 1}), "[string]"),
        (
            json!({"type": "array", "items": [{"type": "string"}], "additionalItems": {"type": "null"}, "minItems": 1}),
            "[string, ...null[]]",
        ),
        (json!({"type": "object"}), "{ [name: string]: unknown }"),
        (json!({"type": "object", "additionalProperties": false}), "{ [name: string]: never }"),
        (json!({"type": "object", "additionalProperties": {"type": "number"}}), "{ [name: string]: number }"),
        (
            json!({"type": "object", "patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": false}),
            "{ [name: string]: string /* names that match ^x- */ }",
        ),
        (
            json!({"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": {"type": "number"}}),
            "{ [name in \"a\" | \"b\"]?: number }",
        ),
        (json!({"properties": {"a": {"type": "string"}, "b-c": {"type": "number"}}, "required": ["a"]}), "{ a: string; \"b-c\"?: number }"),
        (
            json!({"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "number"}}),
            "{ a?: string; [name: string]: number | string | undefined }",
        ),
        (json!({"properties": {"a": {"type": "string", "readOnly": true}}}), "{ readonly a?: string }"),
        (json!({"anyOf": [{"type": "string"}, {"const": "a"}]}), "string"),
        (
            json!({"allOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {}}, "required": ["a"]}]}),
            "{ a: string; b?: unknown }",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            "{ a?: string } & ({ a: unknown } | { b: unknown })",
        ),
        (json!({"type": "object", "oneOf": [{"properties": {"kind": {"const": "a"}}}, {"type": "null"}]}), "{ kind?: \"a\" }"),
        (json!({"type": "string", "allOf": [{"type": "number"}]}), "never"),
        (
            json!({"if": {}, "then": {"properties": {"b": {"type": "string"}}}, "properties": {"a": {"type": "string"}}}),
            "{ a?: string; b?: string }",
        ),
        (json!({"$ref": "https://example.com/x"}), "unknown /* reference https://example.com/x is not followed */"),
    ] {
        assert_eq!(input(schema.clone()), expected, "{schema}");
    }
}

#[test]
fn what_comes_twice_or_goes_in_a_circle_has_a_name() {
    let tree = json!({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}}});
    assert_eq!(input(tree), "type OrdersNode = { kids?: OrdersNode[] };\nOrdersNode");
    let own = json!({"type": "object", "properties": {"next": {"$ref": "#"}}});
    assert_eq!(input(own), "type OrdersListInput = { next?: OrdersListInput };\n{ next?: OrdersListInput }");
    let once = json!({"properties": {"a": {"$ref": "#/definitions/x"}}, "definitions": {"x": {"properties": {"b": {"type": "string"}}}}});
    assert_eq!(input(once), "{ a?: { b?: string } }");
}

#[test]
fn functions_of_a_collection_share_the_names_of_what_they_share() {
    let shared = json!({"inputSchema": {"properties": {"a": {"$ref": "#/$defs/f"}, "b": {"$ref": "#/$defs/f"}}, "$defs": {"f": {"properties": {"x": {"type": "string"}}}}}});
    let text = declarations(&[described("o", "one", shared.clone()), described("o", "two", shared)]).unwrap();
    assert_eq!(text.matches("type OF = ").count(), 1, "{text}");
}

/// What stands neither in a comment nor in quotes.
fn outside(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let after = rest.get(character.len_utf8()..).unwrap();
        rest = if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/").unwrap().1
        } else if character == '"' {
            let end = after.char_indices().scan(false, |escaped, (at, c)| {
                let ends = c == '"' && !*escaped;
                *escaped = c == '\\' && !*escaped;
                Some((at, ends))
            });
            let (at, _) = end.into_iter().find(|(_, ends)| *ends).unwrap();
            after.get(at + 1..).unwrap()
        } else {
            out.push(character);
            after
        };
    }
    out
}

#[test]
fn nothing_that_a_client_writes_leaves_its_comment_or_its_quotes() {
    let evil = "*/ }; evil(); /* \u{2028} \r\n * @x */\u{202e}\n\n*/\n@return nothing";
    let schema = json!({"properties": {evil: {"description": evil, "default": evil, "pattern": evil, "enum": [evil]}}, "patternProperties": {evil: {}}});
    let text = declarations(&[described(
        "orders",
        "list",
        json!({"description": evil, "inputSchema": schema, "examples": [{"description": evil, "input": {"a": evil}}]}),
    )])
    .unwrap();
    let outside = outside(&text);
    assert!(!outside.contains("evil") && !outside.contains('@') && !outside.contains("*/"), "{outside}");
    assert!(!text.contains('\u{2028}') && !text.contains('\u{202e}') && !text.contains('\r'), "{text}");
}

#[test]
fn a_comment_carries_what_a_type_can_not() {
    let text = input(
        json!({"properties": {"limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10, "description": "How many."}}}),
    );
    assert!(text.contains("/** How many. @integer @default 10 @minimum 1 @maximum 50 */\n"), "{text}");
    let nullable = input(json!({"properties": {"at": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]}}}));
    assert!(nullable.contains("/** @format date */") && nullable.contains("at?: string | null"), "{nullable}");
}

#[test]
fn what_is_too_large_or_too_deep_says_so() {
    let deep = (0..40).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
    assert!(input(deep).contains("/* nested deeper than 20 levels */"));
    let many: Vec<String> = (0..1000).map(|number| format!("value{number}")).collect();
    assert!(input(json!({"enum": many})).starts_with("string /* one of 1000 values: \"value0\""));
    let wide: serde_json::Map<String, Value> = (0..3000).map(|number| (format!("p{number}"), json!({}))).collect();
    assert!(input(json!({"properties": wide})).contains("over 32768 bytes"));
    let many: Vec<Value> = (0..3000).map(|_| json!({})).collect();
    assert_eq!(input(json!({"allOf": many})), "unknown /* the schema is too large to be written out */");
}

#[test]
fn references_that_multiply_are_written_once() {
    let mut defs = serde_json::Map::new();
    for level in 0..40 {
        let next = json!({"$ref": format!("#/$defs/a{}", level + 1)});
        defs.insert(format!("a{level}"), json!({"properties": {"x": next, "y": next}}));
    }
    defs.insert("a40".to_owned(), json!({"type": "string"}));
    let text = input(json!({"$ref": "#/$defs/a0", "$defs": defs}));
    assert!(text.len() < 20_000, "{}", text.len());
}

#[test]
fn a_circle_without_a_value_in_between_ends() {
    let text = input(
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}}),
    );
    assert!(text.contains("refers to itself"), "{text}");
}

#[test]
fn odd_names_are_reached_as_the_guest_reaches_them() {
    let text = declarations(&[
        described("order-store", "list-orders", json!({})),
        described("order-store", "admin.list", json!({})),
        described("delete", "all", json!({})),
        described("Map", "all", json!({})),
    ])
    .unwrap();
    for expected in [
        "declare const orderStore: {",
        "  listOrders(",
        "  \"list-orders\"(",
        "  adminList(",
        "  \"admin.list\"(",
        "globalThis[\"delete\"]",
        "globalThis[\"Map\"]",
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
}

#[test]
fn an_argument_that_can_be_empty_can_be_left_out() {
    let text = declarations(&[
        described("a", "one", json!({})),
        described("a", "two", json!({"inputSchema": {"properties": {"x": {}}}})),
        described("a", "three", json!({"inputSchema": {"properties": {"x": {}}, "required": ["x"]}})),
    ])
    .unwrap();
    assert!(text.contains("one(input?:") && text.contains("two(input?:") && text.contains("three(input:"), "{text}");
}

#[test]
fn the_globals_that_are_known_here_are_those_of_the_guest() {
    let mut guests: Vec<&str> = include_str!("../../../../tests/globals.txt").lines().filter_map(|line| line.split(' ').next()).collect();
    guests.retain(|name| words::is_identifier(name) && *name != "orders");
    for name in guests {
        assert_eq!(words::unreachable(name), Some("every program has a global of that name"), "{name}");
    }
}

#[test]
fn what_is_no_schema_is_refused_with_its_member() {
    let refused = |member: Value| Described::of("a", "b", &serde_json::from_str(&member.to_string()).unwrap()).unwrap_err();
    assert!(refused(json!({"inputSchema": 5})).contains("inputSchema"));
    assert!(refused(json!({"outputSchema": "x".repeat(SCHEMA_BYTES)})).contains("outputSchema"));
}

#[test]
fn the_text_of_all_is_bounded_and_names_every_function() {
    let members: serde_json::Map<String, Value> =
        (0..220).map(|number| (format!("member{number}"), json!({"type": "string", "description": "x".repeat(80)}))).collect();
    let all: Vec<Described> =
        (0..60).map(|number| described("big", &format!("f{number}"), json!({"inputSchema": {"properties": members}}))).collect();
    let text = declarations(&all).unwrap();
    assert!(text.len() < TEXT_BYTES + 100 * 60, "{}", text.len());
    assert!(text.contains("  f59(input?: any): Promise<any>; // no room"));
}

/// Schemas that are small, and took minutes, gigabytes or the stack when each reference,
/// level or list was gone through again wherever it came.
fn hostile() -> Vec<(&'static str, Value)> {
    let required: Vec<String> = (0..4_500).map(|number| format!("r{number}")).collect();
    let again: Vec<Value> = (0..900).map(|_| json!({"$ref": "#/$defs/a"})).collect();
    let chain: serde_json::Map<String, Value> =
        (0..1_900).map(|number| (format!("a{number}"), json!({"$ref": format!("#/$defs/a{}", number + 1)}))).collect();
    let wide: serde_json::Map<String, Value> = (0..1_500).map(|number| (format!("member{number}"), json!({"type": "null"}))).collect();
    let nested = (0..18).fold(json!({"properties": wide}), |inner, _| json!({"properties": {"n": inner}}));
    let parts: serde_json::Map<String, Value> =
        (0..900).map(|number| (format!("p{number}"), json!({"items": {"$ref": format!("#/properties/p{}", number + 1)}}))).collect();
    let literals: Vec<Value> =
        (0..90).map(|number| json!({"enum": (0..60).map(|value| number * 100 + value).collect::<Vec<_>>()})).collect();
    vec![
        ("a long list that is referred to again and again", json!({"$defs": {"a": {"required": required}}, "allOf": again})),
        ("a long default that is", json!({"$defs": {"a": {"default": "x".repeat(36_000)}}, "allOf": again})),
        ("a long run of references", json!({"$ref": "#/$defs/a0", "$defs": chain})),
        ("many members far down", nested),
        ("references to parts of the whole", json!({"properties": parts})),
        ("many literals", json!({"anyOf": literals})),
    ]
}

#[test]
fn no_schema_takes_much_work_to_write_out_or_more_stack_than_it_is_given() {
    for (what, schema) in hostile() {
        let all: Vec<Described> =
            (0..4).map(|number| described("big", &format!("f{number}"), json!({"inputSchema": schema, "outputSchema": schema}))).collect();
        let stack = 1024 * 1024 + 4 * 1024 * usize::try_from(STEPS).unwrap();
        let work = move || {
            let mut aliases = aliases::Aliases::default();
            // Time is no measure of work where others are at work as well.
            let text = written(&all, &mut aliases, Instant::now() + Duration::from_secs(3600));
            (text.map(|text| text.len()), aliases.asked)
        };
        let thread = std::thread::Builder::new().stack_size(stack).spawn(work).unwrap();
        let (written, asked) = thread.join().unwrap();
        assert!(written.is_ok_and(|length| length < TEXT_BYTES + 100 * 4), "{what}: {written:?}");
        // Of eight schemas each may ask for twice of what one may have.
        assert!(asked <= 8 * 2 * 2_000, "{what}: {asked} parts");
    }
}
