//! Vms over a connection.

use super::*;

async fn new_vm(client: &mut Client) -> Value {
    client.ask(r#"{"jsonrpc":"2.0","id":7,"method":"vm.create"}"#).await["result"]["vm"].clone()
}

async fn await_no_vms(client: &mut Client) {
    while client.service.vms.count() > 0 {
        client.ask(r#"{"jsonrpc":"2.0","id":8,"method":"vm.list"}"#).await;
    }
}

#[tokio::test]
async fn a_vm_goes_on_until_its_worker_speaks_unasked() {
    let mut client = client().await;
    let vm = new_vm(&mut client).await;
    // The second answer of the worker has the id of its evaluation, and is none.
    let answer = client.evaluate("two results", json!({"vm": vm})).await;
    assert_eq!(answer["result"]["value"], 1, "{answer}");
    tokio::time::timeout(PATIENCE, await_no_vms(&mut client)).await.unwrap();
    let answer = client.evaluate("three", json!({"vm": vm})).await;
    assert_eq!(code(&answer), "vm_lost", "{answer}");
    client.ended().await;
}

#[tokio::test]
async fn a_vm_is_busy_until_its_evaluation_is_over_and_disposing_ends_that() {
    let mut client = client().await;
    let vm = new_vm(&mut client).await;
    client.send(&json!({"jsonrpc": "2.0", "id": 5, "method": "evaluate", "params": {"source": "stuck", "vm": vm}}).to_string()).await;
    assert_eq!(code(&client.evaluate("three", json!({"vm": vm})).await), "vm_busy");
    client.send(&json!({"jsonrpc": "2.0", "method": "vm.dispose", "params": {"vm": vm}}).to_string()).await;
    let answer = client.receive().await;
    assert_eq!((&answer["id"], code(&answer)), (&json!(5), "cancelled"), "{answer}");
    assert_eq!(code(&client.evaluate("three", json!({"vm": vm})).await), "vm_not_found");
    assert_eq!(client.service.vms.count(), 0);
    client.ended().await;
}

#[tokio::test]
async fn a_request_that_is_refused_leaves_its_vm_as_it_was() {
    let mut config = Config::default();
    config.queue = crate::config::Queue { running: 1, running_each: 1, waiting: 0, waiting_each: 0, wait_ms: 1 };
    let mut client = client_with(config).await;
    let vm = new_vm(&mut client).await;
    client.send(r#"{"jsonrpc":"2.0","id":5,"method":"evaluate","params":{"source":"stuck"}}"#).await;
    assert_eq!(code(&client.evaluate("three", json!({"vm": vm})).await), "overloaded");
    assert_eq!(
        code(&client.evaluate("three", json!({"vm": vm, "hostFunctions": {"a": {"b": {"inputSchema": 5}}}})).await),
        "invalid_schema"
    );
    let list = client.ask(r#"{"jsonrpc":"2.0","id":8,"method":"vm.list"}"#).await;
    assert_eq!(list["result"]["vms"][0]["busy"], false, "{list}");
    client.ended().await;
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_no_vm() {
    let mut client = client().await;
    new_vm(&mut client).await;
    let service = Arc::clone(&client.service);
    client.ended().await;
    assert_eq!(service.vms.count(), 0);
}
