//! The decision against a reference that is as simple as the policy's own words.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::*;
use brig_protocol::client::{self, Permissions};
use brig_protocol::codes::RequestCode;
use proptest::prelude::*;
use serde_json::json;
use std::collections::HashMap;

const DECLARED: &[(&str, &str)] = &[("orders", "list"), ("orders", "refund"), ("store", "list"), ("orderStore", "listOrders")];

fn load(scope: &Value) -> Result<Scope, brig_protocol::rpc::ErrorData> {
    load_for(scope, DECLARED)
}

/// What a request that has this as its `hostFunction` asks for, of these functions.
pub(crate) fn load_for(scope: &Value, declared: &[(&str, &str)]) -> Result<Scope, brig_protocol::rpc::ErrorData> {
    let text = json!({"hostFunction": scope}).to_string();
    let permissions: Permissions<'_> = serde_json::from_str(&text).unwrap();
    let scope = permissions.host_function.as_ref().unwrap();
    let mut conditions = HashMap::new();
    if let client::Scope::Rules(rules) = scope {
        for raw in rules.rules.iter().filter_map(|rule| rule.when) {
            conditions.insert(raw.get(), Arc::new(Schema::compile(raw.get()).unwrap()));
        }
    }
    Scope::load(scope, declared, &conditions)
}

fn fault(scope: &Value) -> (RequestCode, String) {
    let fault = load(scope).unwrap_err();
    (fault.code, fault.message)
}

fn set(scope: &Value) -> ScopeSet {
    ScopeSet::default().and(Origin::Operator, Scope::All(Verdict::Allow)).and(Origin::Request, load(scope).unwrap())
}

/// No rule here adds anything up: the text is of no matter.
fn invoke<'a>(collection: &'a str, function: &'a str, input: Option<&'a Value>) -> Question<'a> {
    Question { collection, function, operation: Operation::Invoke, input: input.map(|tree| Input { tree, text: "{}" }) }
}

#[test]
fn nothing_is_allowed_where_nobody_said_so() {
    assert!(decide(&ScopeSet::default(), &invoke("orders", "list", None)).is_err());
    assert!(decide(&ScopeSet::unconfigured(1000, 1000), &invoke("orders", "list", None)).is_ok());
    assert!(decide(&ScopeSet::unconfigured(1000, 0), &invoke("orders", "list", None)).is_err());
}

#[test]
fn the_last_matching_rule_wins_and_without_a_default_the_answer_is_no() {
    let scopes = set(&json!({"rules": [
        {"mode": "allow", "operations": ["invoke"], "patterns": ["orders.*"]},
        {"mode": "deny", "operations": ["invoke"], "patterns": ["orders.refund"], "why": "refunds are made by people"}]}));
    assert_eq!(decide(&scopes, &invoke("orders", "list", None)).unwrap().rule(), "operator:all, request:rules[0]");
    let refusal = decide(&scopes, &invoke("orders", "refund", None)).unwrap_err();
    assert_eq!(refusal.rule, "request:rules[1]");
    assert_eq!(
        refusal.sentence("orders.refund"),
        "permission denied for orders.refund: the permissions of this evaluation do not allow this call: refunds are made by people"
    );
    assert_eq!(decide(&scopes, &invoke("store", "list", None)).unwrap_err().rule, "request:default");
    let list = Question { operation: Operation::List, ..invoke("orders", "list", None) };
    assert!(decide(&scopes, &list).is_err(), "the rules are about invoke only");
}

#[test]
fn a_rule_sees_the_input() {
    let scopes = set(&json!({"rules": [
        {"mode": "allow", "patterns": ["orders.refund"], "when": {"properties": {"amount": {"maximum": 100}}, "required": ["amount"]}},
        {"mode": "deny", "patterns": ["orders.refund"], "when": {"properties": {"customer": {"const": "c_vip"}}, "required": ["customer"]}}]}));
    assert!(scopes.looks_at_input());
    let decided = |input: Value| decide(&scopes, &invoke("orders", "refund", Some(&input))).is_ok();
    assert!(decided(json!({"amount": 100})));
    assert!(!decided(json!({"amount": 101})));
    assert!(!decided(json!({})));
    assert!(!decided(json!({"amount": 1, "customer": "c_vip"})));
    assert!(decide(&scopes, &invoke("orders", "refund", None)).is_ok(), "some call could be allowed");
    assert!(decide(&scopes, &invoke("orders", "list", None)).is_err());
}

#[test]
fn a_scope_that_could_not_mean_what_it_says_is_refused_with_what_to_write() {
    let rule = |patterns: Value| json!({"rules": [{"mode": "allow", "patterns": patterns}]});
    for (scope, parts) in [
        (json!({"rules": []}), vec!["rules is empty"]),
        (rule(json!([])), vec!["rules[0].patterns has 0 patterns"]),
        (json!({"rules": [{"mode": "allow", "operations": [], "patterns": ["**"]}]}), vec!["rules[0].operations is empty"]),
        (rule(json!(["**", "orders.lst"])), vec!["rules[0].patterns[1]", "did you mean \"orders.list\"?"]),
        (rule(json!(["order.*"])), vec!["did you mean \"orders.*\"?"]),
        (rule(json!(["order-store:list-order"])), vec!["did you mean \"order-store:list-orders\"?"]),
        (rule(json!(["refund"])), vec!["did you mean \"orders.refund\"?"]),
        (rule(json!(["orders"])), vec!["did you mean \"orders.*\"?"]),
        (rule(json!(["*"])), vec!["did you mean \"**\"?"]),
        (rule(json!(["billing.charge"])), vec!["declared are \"orders.list\""]),
        (rule(json!(["Orders.list"])), vec!["did you mean \"orders.list\"?"]),
        (rule(json!(["оrders.list"])), vec!["can not be part of a name"]),
    ] {
        let (code, message) = fault(&scope);
        assert_eq!(code, RequestCode::InvalidPermissions);
        assert!(parts.iter().all(|part| message.contains(part)), "{scope}: {message}");
    }
    assert!(load(&rule(json!(["order-store:list-orders"]))).is_ok());
}

#[test]
fn ask_is_refused_as_long_as_nobody_can_be_asked() {
    for scope in [
        json!({"rules": [{"mode": "ask", "patterns": ["orders.refund"]}]}),
        json!({"default": "ask", "rules": [{"mode": "allow", "patterns": ["orders.refund"]}]}),
    ] {
        let (code, message) = fault(&scope);
        assert_eq!(code, RequestCode::Unsupported, "{message}");
        assert!(message.contains("nobody can be asked"));
    }
}

/// The policy's words, as plainly as they can be written.
fn reference(layers: &[Value], collection: &str, function: &str, operation: &str, input: &Value) -> bool {
    let one = |scope: &Value| {
        if let Some(word) = scope.as_str() {
            return word == "allow";
        }
        let mut answer = scope.get("default").and_then(Value::as_str).unwrap_or("deny") == "allow";
        for rule in scope["rules"].as_array().unwrap() {
            let operations = rule["operations"].as_array().unwrap();
            let named = rule["patterns"].as_array().unwrap().iter().any(|pattern| {
                let (c, f) = pattern.as_str().unwrap().split_once('.').unwrap_or(("*", "*"));
                (c == "*" || c == collection) && (f == "*" || f == function)
            });
            let fits =
                rule.get("when").is_none_or(|when| input["n"].as_i64().unwrap() <= when["properties"]["n"]["maximum"].as_i64().unwrap());
            if named && fits && operations.iter().any(|own| own == operation) {
                answer = rule["mode"] == "allow";
            }
        }
        answer
    };
    layers.iter().all(one)
}

fn scopes() -> impl Strategy<Value = Value> {
    let mode = prop_oneof![Just("allow"), Just("deny")];
    let pattern = prop_oneof![
        Just("**"),
        Just("*.*"),
        Just("orders.*"),
        Just("*.list"),
        Just("orders.list"),
        Just("orders.refund"),
        Just("store.list")
    ];
    let operations = prop_oneof![Just(json!(["invoke"])), Just(json!(["list"])), Just(json!(["invoke", "list"]))];
    let when = proptest::option::of(0i64..10);
    let rule = (mode.clone(), proptest::collection::vec(pattern, 1..3), operations, when).prop_map(|(mode, patterns, operations, when)| {
        let mut rule = json!({"mode": mode, "patterns": patterns, "operations": operations});
        if let Some(maximum) = when {
            rule["when"] = json!({"properties": {"n": {"maximum": maximum}}});
        }
        rule
    });
    let ruled = (mode.clone(), any::<bool>(), proptest::collection::vec(rule, 1..5)).prop_map(|(mode, explicit, rules)| match explicit {
        true => json!({"default": mode, "rules": rules}),
        false => json!({"rules": rules}),
    });
    prop_oneof![1 => mode.prop_map(Value::from), 6 => ruled]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_call_runs_exactly_when_the_reference_says_so_and_narrowing_never_widens(
        layers in proptest::collection::vec(scopes(), 1..3),
        narrower in scopes(),
        which in 0usize..3,
        lists in any::<bool>(),
        n in 0i64..10,
    ) {
        let (collection, function) = DECLARED[which];
        let input = json!({"n": n});
        let operation = if lists { Operation::List } else { Operation::Invoke };
        let question = Question { operation, ..invoke(collection, function, Some(&input)) };
        let mut set = ScopeSet::default();
        for layer in &layers {
            set = set.and(Origin::Operator, load(layer).unwrap());
        }
        let expected = reference(&layers, collection, function, if lists { "list" } else { "invoke" }, &input);
        prop_assert_eq!(decide(&set, &question).is_ok(), expected);
        // A function that could be called is never told to be impossible.
        if expected {
            let open = Question { input: None, ..question };
            prop_assert!(decide(&set, &open).is_ok());
        }
        let narrowed = set.and(Origin::Request, load(&narrower).unwrap());
        prop_assert!(expected || decide(&narrowed, &question).is_err());
    }
}
