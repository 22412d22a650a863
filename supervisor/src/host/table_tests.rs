//! What a client may declare.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::*;
use brig_protocol::client::Principal;
use serde_json::{Value, json};

const OWN: Principal = Principal { uid: 1000, gid: 1000 };

fn both(scopes: ScopeSet) -> Granted {
    Granted { callbacks: scopes.clone(), configured: scopes }
}

async fn built(functions: Value, permissions: Option<Value>) -> Result<(FunctionTable, Vec<Warning>), ErrorData> {
    let functions = functions.to_string();
    let permissions = permissions.map(|permissions| permissions.to_string());
    let declared: HostFunctions<'_> = serde_json::from_str(&functions).unwrap();
    let permissions: Option<Permissions<'_>> = permissions.as_deref().map(|text| serde_json::from_str(text).unwrap());
    let operator = ScopeSet::unconfigured(OWN.uid, 1000);
    FunctionTable::build(Some(&declared), permissions.as_ref(), (both(operator), &[]), &Limits::DEFAULT, (&SchemaCache::default(), 0)).await
}

async fn fault(functions: Value) -> (RequestCode, String) {
    let fault = built(functions, None).await.unwrap_err();
    (fault.code, fault.message)
}

#[tokio::test]
async fn an_index_is_the_place_in_the_worker_table() {
    let (table, warnings) = built(
        json!({"orders": {"list": {}, "admin.purge": {"effect": "write"}}, "empty": {}, "store": {"get-item": {"effect": "read"}}}),
        None,
    )
    .await
    .unwrap();
    assert!(warnings.is_empty());
    let flat: Vec<String> = table
        .collections()
        .iter()
        .flat_map(|collection| collection.functions.iter().map(|name| format!("{}.{name}", collection.name)).collect::<Vec<_>>())
        .collect();
    assert_eq!(flat, ["orders.admin.purge", "orders.list", "store.get-item"]);
    for (index, name) in flat.iter().enumerate() {
        assert_eq!(&table.get(u32::try_from(index).unwrap()).unwrap().full_name, name);
    }
    assert_eq!(table.len(), 3);
    assert!(table.get(3).is_none() && table.get(u32::MAX).is_none());
}

#[tokio::test]
async fn bad_names_are_refused_with_what_is_wrong() {
    for name in ["", "a b", "1st", "a/b", "naïve", "a\u{202e}", "-x", "__proto__ "] {
        let (code, message) = fault(json!({name: {"f": {}}})).await;
        assert_eq!(code, RequestCode::InvalidFunction);
        assert!(message.contains("can not be a name") && !message.contains('\u{202e}'), "{message}");
        assert_eq!(fault(json!({"c": {name: {}}})).await.0, RequestCode::InvalidFunction);
    }
}

#[tokio::test]
async fn names_that_are_one_command_are_refused_naming_both() {
    let (_, message) = fault(json!({"c": {"listOrders": {}, "list-orders": {}}})).await;
    assert!(message.contains("\"list-orders\" and \"listOrders\" are both \"list-orders\""), "{message}");
    let (_, message) = fault(json!({"orderStore": {}, "order_store": {}})).await;
    assert!(message.contains("orderStore") && message.contains("order_store"), "{message}");
}

#[tokio::test]
async fn a_bad_schema_names_its_function_and_what_is_wrong() {
    let (code, message) = fault(json!({"orders": {"list": {}, "refund": {"outputSchema": {"type": "strng"}}}})).await;
    assert_eq!(code, RequestCode::InvalidSchema);
    assert!(message.starts_with("hostFunctions.orders.refund.outputSchema: the schema has the type \"strng\""), "{message}");
}

#[tokio::test]
async fn everything_that_is_declared_is_bounded() {
    for declaration in [
        json!({"timeoutMs": 0}),
        json!({"timeoutMs": 300_001}),
        json!({"description": "x".repeat(20_000)}),
        json!({"examples": (0..21).map(|_| json!({"input": {}})).collect::<Vec<_>>()}),
    ] {
        assert_eq!(fault(json!({"c": {"f": declaration}})).await.0, RequestCode::InvalidFunction);
    }
    let many = |count: usize| (0..count).map(|index| (format!("f{index}"), json!({}))).collect::<serde_json::Map<_, _>>();
    assert!(built(json!({"a": many(1_024)}), None).await.is_ok());
    let (_, message) = fault(json!({"a": many(1_000), "b": many(25)})).await;
    assert!(message.contains("1025 functions; at most 1024"), "{message}");
}

#[tokio::test]
async fn a_time_out_above_the_ceiling_is_cut_and_told() {
    let (table, warnings) = built(json!({"c": {"f": {"timeoutMs": 60_000}}}), None).await.unwrap();
    assert_eq!(table.get(0).unwrap().timeout, Duration::from_secs(30));
    assert!(warnings[0].code == WarningCode::LimitCut && warnings[0].message.contains("functionTimeoutMs 30000"));
}

#[tokio::test]
async fn a_suspect_keyword_is_a_warning_with_its_place() {
    let (_, warnings) = built(json!({"c": {"f": {"inputSchema": {"tpye": "object"}}}}), None).await.unwrap();
    assert_eq!(warnings[0].code, WarningCode::SuspectSchema);
    assert!(warnings[0].message.starts_with("hostFunctions.c.f.inputSchema: keyword \"tpye\""));
}

#[tokio::test]
async fn what_the_operator_never_allows_is_not_there_and_what_the_request_denies_is() {
    let text = json!({"orders": {"list": {}, "refund": {}}}).to_string();
    let declared: HostFunctions<'_> = serde_json::from_str(&text).unwrap();
    let nobody = ScopeSet::unconfigured(OWN.uid, 0);
    let (table, warnings) =
        FunctionTable::build(Some(&declared), None, (both(nobody), &[]), &Limits::DEFAULT, (&SchemaCache::default(), 0)).await.unwrap();
    assert!(table.collections().is_empty() && table.len() == 0);
    assert!(warnings[0].code == WarningCode::FunctionDisabled && warnings[0].message.contains("\"orders.refund\""));

    let deny = json!({"hostFunction": {"rules": [{"mode": "allow", "patterns": ["orders.list"]}]}});
    let (table, _) = built(json!({"orders": {"list": {}, "refund": {}}}), Some(deny)).await.unwrap();
    assert_eq!(table.len(), 2);
}

#[tokio::test]
async fn a_condition_of_a_rule_is_compiled_and_held_to_patterns_that_always_answer() {
    let rule = |when: Value| json!({"hostFunction": {"rules": [{"mode": "deny", "patterns": ["c.f"], "when": when}]}});
    assert!(built(json!({"c": {"f": {}}}), Some(rule(json!({"required": ["x"]})))).await.is_ok());
    let fault = built(json!({"c": {"f": {}}}), Some(rule(json!({"type": "x"})))).await.unwrap_err();
    assert!(fault.code == RequestCode::InvalidPermissions && fault.message.contains("rules[0].when"), "{}", fault.message);
    let fault = built(json!({"c": {"f": {}}}), Some(rule(json!({"properties": {"a": {"pattern": "(?=x)"}}})))).await.unwrap_err();
    assert!(fault.message.contains("look-around"), "{}", fault.message);
}
