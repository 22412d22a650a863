//! Schemas and values of all kinds, made up.

use super::*;

/// Schemas of everything that the account of problems knows.
fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!(false)),
        Just(json!({"type": "integer"})),
        Just(json!({"type": ["string", "null"]})),
        Just(json!({"enum": ["a", 1, null]})),
        Just(json!({"const": 2})),
        Just(json!({"minimum": 1, "maximum": 2})),
        Just(json!({"minLength": 1, "pattern": "^a"})),
        Just(json!({"required": ["a"]})),
        Just(json!({"minItems": 1, "uniqueItems": true})),
        Just(json!({"$ref": "#/$defs/d"})),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            two.clone().prop_map(|(a, b)| json!({"properties": {"a": a, "b": b}})),
            two.clone().prop_map(|(a, b)| json!({"properties": {"a": a}, "additionalProperties": b})),
            inner.clone().prop_map(|a| json!({"properties": {"a": a}, "additionalProperties": false})),
            inner.clone().prop_map(|a| json!({"patternProperties": {"^b": a}})),
            inner.clone().prop_map(|a| json!({"items": a})),
            two.clone().prop_map(|(a, b)| json!({"prefixItems": [a], "items": b})),
            inner.clone().prop_map(|a| json!({"contains": a})),
            two.clone().prop_map(|(a, b)| json!({"allOf": [a, b]})),
            two.clone().prop_map(|(a, b)| json!({"anyOf": [a, b]})),
            two.clone().prop_map(|(a, b)| json!({"oneOf": [a, b]})),
            inner.clone().prop_map(|a| json!({"not": a})),
            two.clone().prop_map(|(a, b)| json!({"if": a, "then": b})),
            two.clone().prop_map(|(a, b)| json!({"if": a, "else": b, "type": "object"})),
            two.prop_map(|(a, b)| json!({"dependentSchemas": {"a": a}, "propertyNames": b})),
        ]
    })
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!(null)), Just(json!(1)), Just(json!(2.5)), Just(json!("a")), Just(json!("")), Just(json!(true))];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map("[abc]", inner, 0..3).prop_map(|members| members.into_iter().collect::<Value>())
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn problems_are_found_exactly_where_the_validator_says_no(schema in schemas(), value in values()) {
        let whole = json!({"allOf": [schema], "$defs": {"d": {"type": "object", "properties": {"a": {"$ref": "#/$defs/d"}}}}});
        let compiled = Schema::compile(&whole.to_string()).unwrap();
        let account = compiled.explain(&value, false);
        prop_assert_eq!(compiled.is_valid(&value), account == "does not match its schema", "{} {}", value, account);
    }
}
