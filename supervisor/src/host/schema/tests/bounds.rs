//! What a schema or a payload may cost.

use super::*;

#[tokio::test]
async fn patterns_with_look_around_work_and_can_not_run_away() {
    let schema = schema(json!({"properties": {"p": {"pattern": "^(?=.*[0-9])(?!.*x)(a|aa)+[0-9]$"}}})).await;
    assert!(schema.steps_back());
    assert!(wrong(&schema, &json!({"p": "aaa1"})).is_none());
    let text = wrong(&schema, &json!({"p": format!("{}!1b", "a".repeat(200))})).unwrap();
    assert!(text.contains("$.p "), "{text}");
    let many = json!({"p": (0..5_000).map(|_| "a").collect::<Vec<_>>()});
    assert!(schema.cost(payload::measure(&many.to_string()).unwrap()).is_err());
}

#[tokio::test]
async fn deep_payloads_are_judged_on_the_stack_that_their_cost_names() {
    let schema = schema(json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [
        {"type": "object", "properties": {"p": {"$ref": "#/$defs/b"}}}, {"type": "object", "properties": {"p": {"$ref": "#/$defs/a"}}}]},
        "b": {"allOf": [{"$ref": "#/$defs/c"}]}, "c": {"not": {"not": {"$ref": "#/$defs/a"}}}}}))
    .await;
    let text = format!("{}1{}", "{\"p\":".repeat(511), "}".repeat(511));
    let cost = schema.cost(payload::measure(&text).unwrap()).unwrap();
    let judged = crate::host::call::Judges::default().run(0, cost, move || schema.is_valid(&payload::tree(&text).unwrap())).await;
    assert_eq!(judged, Some(false));
}

#[tokio::test]
async fn the_same_text_is_compiled_once_and_the_store_stays_bounded() {
    let cache = SchemaCache::default();
    let first = cache.compiled(0, vec!["{}", "{\"minLength\":1}"]).await;
    let again = cache.compiled(0, vec!["{\"minLength\":1}", "true"]).await;
    assert!(Arc::ptr_eq(first[1].as_ref().unwrap(), again[0].as_ref().unwrap()));
    let texts: Vec<String> = (0..6_000).map(|index| format!("{{\"minLength\":{index}}}")).collect();
    for chunk in texts.chunks(500) {
        assert!(cache.compiled(0, chunk.iter().map(String::as_str).collect()).await.iter().all(Result::is_ok));
    }
    let (kept, bytes) = cache.held();
    assert!(kept <= 4_096 && bytes <= 64 * 1024 * 1024, "{kept} {bytes}");
}

#[tokio::test]
async fn an_account_is_bounded_whatever_is_wrong() {
    let schema = schema(json!({"additionalProperties": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#"}}]}})).await;
    let many: serde_json::Map<String, Value> =
        (0..5_000).map(|index| (format!("{index}{}", "k".repeat(300)), json!("\u{202e}\n"))).collect();
    let text = wrong(&schema, &Value::Object(many)).unwrap();
    assert!(text.len() < 5_000 && text.contains("more"), "{}", text.len());
    assert!(!text.contains('\u{202e}'));
}

#[tokio::test]
async fn explaining_recursive_alternatives_takes_a_bounded_number_of_steps() {
    let schema = schema(json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [
        {"type": "object", "properties": {"p": {"$ref": "#/$defs/a"}, "q": {"$ref": "#/$defs/a"}}},
        {"type": "object", "properties": {"p": {"$ref": "#/$defs/a"}, "q": {"$ref": "#/$defs/a"}}},
        {"type": "object", "properties": {"p": {"$ref": "#/$defs/a"}, "q": {"$ref": "#/$defs/a"}}}]}}}))
    .await;
    let mut value = json!(1);
    for _ in 0..40 {
        value = json!({"p": value, "q": 2});
    }
    assert!(wrong(&schema, &value).unwrap().starts_with("does not match its schema"));
}

#[tokio::test]
async fn the_longest_chain_at_the_deepest_place_stays_on_its_stack() {
    let mut defs = serde_json::Map::new();
    for link in 0..95 {
        let next = json!({"$ref": format!("#/$defs/a{}", link + 1)});
        let step = match link % 6 {
            0 => json!({"allOf": [next, true]}),
            1 => json!({"anyOf": [false, next]}),
            2 => json!({"oneOf": [false, next]}),
            3 => json!({"if": next, "then": true, "else": false}),
            4 => json!({"dependentSchemas": {"p": next}}),
            5 if link < 20 => json!({"allOf": [next], "unevaluatedProperties": false}),
            _ => next,
        };
        defs.insert(format!("a{link}"), step);
    }
    defs.insert("a95".to_owned(), json!({"properties": {"p": {"$ref": "#/$defs/a0"}}, "additionalProperties": {"$ref": "#/$defs/a0"}}));
    let schema = schema(json!({"$ref": "#/$defs/a0", "$defs": defs})).await;
    let text = format!("{}1{}", "{\"p\":".repeat(511), "}".repeat(511));
    let cost = schema.cost(payload::measure(&text).unwrap()).unwrap();
    assert!(cost.steps > 90_000, "{cost:?}");
    let judges = crate::host::call::Judges::default();
    let judged = judges.run(0, cost, move || schema.holds(&payload::tree(&text).unwrap())).await;
    assert!(judged.is_some());
}

/// A chain of so many subschemas at each level of a payload.
fn chain(links: usize) -> Result<Schema, super::super::SchemaFault> {
    let mut defs = serde_json::Map::new();
    for link in 0..links {
        defs.insert(format!("a{link}"), json!({"$ref": format!("#/$defs/a{}", link + 1)}));
    }
    defs.insert(format!("a{links}"), json!({"properties": {"p": {"$ref": "#/$defs/a0"}}}));
    Schema::compile(&json!({"$ref": "#/$defs/a0", "$defs": defs}).to_string())
}

#[test]
fn a_schema_that_could_outgrow_its_stack_is_none_and_the_longest_that_is_one_does_not() {
    let mut longest = None;
    for links in 50..250 {
        match chain(links) {
            Ok(schema) => longest = Some(schema),
            Err(fault) => {
                assert!(fault.to_string().contains("in a row for one place of the value; at most 200"), "{fault}");
                break;
            }
        }
    }
    assert!(chain(249).is_err());
    let deepest = payload::measure(&format!("{}1{}", "{\"p\":".repeat(511), "}".repeat(511))).unwrap();
    let cost = longest.unwrap().cost(deepest).unwrap();
    assert!(cost.steps > 90_000 && cost.steps <= STEPS, "{cost:?}");
}
