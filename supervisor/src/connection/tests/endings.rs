//! How connections end, and what is behind.

use super::*;

#[tokio::test]
async fn one_more_request_than_may_be_in_flight_is_refused() {
    let mut config = Config::default();
    config.clients.requests_in_flight = 2;
    let mut client = client_with(config).await;
    for id in 1..=2 {
        client.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"evaluate","params":{{"source":"stuck"}}}}"#)).await;
    }
    let answer = client.ask(r#"{"jsonrpc":"2.0","id":3,"method":"evaluate","params":{"source":"three"}}"#).await;
    assert_eq!((&answer["id"], code(&answer)), (&json!(3), "too_many_in_flight"));
    client.ended().await;
}

#[tokio::test]
async fn a_client_that_only_closed_its_half_still_gets_its_answer() {
    let mut client = client().await;
    client.send(r#"{"jsonrpc":"2.0","id":1,"method":"evaluate","params":{"source":"stuck","timeoutMs":100}}"#).await;
    client.lines.get_mut().shutdown().await.unwrap();
    assert_eq!(code(&client.receive().await), "timed_out");
    assert_eq!(client.receive().await, Value::Null);
    client.ended().await;
}

#[tokio::test]
async fn a_client_that_went_away_leaves_nothing_running() {
    let mut client = client().await;
    assert_eq!(client.evaluate("calls", orders()).await["method"], "host.call");
    let service = Arc::clone(&client.service);
    client.ended().await;
    assert_eq!(service.metrics.count_of(brig_protocol::client::Outcome::Cancelled), 1);
}

#[tokio::test]
async fn while_draining_nothing_new_starts_and_at_the_end_what_runs_is_answered() {
    let mut client = client().await;
    client.send(r#"{"jsonrpc":"2.0","id":7,"method":"evaluate","params":{"source":"stuck"}}"#).await;
    assert_eq!(client.ask("{").await["id"], Value::Null);
    client.service.advance(Phase::Draining);
    assert_eq!(code(&client.evaluate("three", json!({})).await), "shutting_down");
    client.service.advance(Phase::Ending);
    let answer = client.receive().await;
    assert_eq!((&answer["id"], code(&answer)), (&json!(7), "cancelled"));
    assert_eq!(client.receive().await, Value::Null);
    client.ended().await;
}

#[tokio::test]
async fn a_client_that_was_behind_is_read_again_once_it_has_caught_up() {
    let mut client = client().await;
    client.send(r#"{"jsonrpc":"2.0","id":1,"method":"evaluate","params":{"source":"large"}}"#).await;
    // The answer does not fit the socket: it waits for a client that reads slowly.
    tokio::time::timeout(PATIENCE, client.lines.get_ref().readable()).await.unwrap().unwrap();
    client.send(r#"{"jsonrpc":"2.0","id":2,"method":"evaluate","params":{"source":"three"}}"#).await;
    assert_eq!(client.receive().await["id"], 1);
    assert_eq!(client.receive().await["result"]["value"], 3);
    client.ended().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected_and_delays_nobody() {
    let mut config = Config::default();
    config.clients.slow_reader_ms = 50;
    let service = service_of(obedient, config).await;
    let own = rustix::process::geteuid().as_raw();
    let mut slow = connect(Arc::clone(&service), own);
    let line = format!("{}\n", json!({"jsonrpc": "2.0", "id": "x".repeat(200), "method": "nope".repeat(1000)}));
    let flood = line.repeat(4000);
    let writing = slow.lines.get_mut().write_all(flood.as_bytes());
    assert!(tokio::time::timeout(PATIENCE, writing).await.unwrap().is_err(), "the connection is closed in the middle of it");
    let mut other = connect(Arc::clone(&service), own);
    assert_eq!(other.evaluate("three", json!({})).await["result"]["value"], 3);
    assert_eq!(service.metrics.slow_readers.get(), 1);
    slow.ended().await;
    other.ended().await;
}

#[tokio::test]
async fn an_end_waits_for_who_was_let_in_before_his_task_had_its_turn() {
    let service = service_of(obedient, Config::default()).await;
    let mut client = connect(Arc::clone(&service), rustix::process::geteuid().as_raw());
    service.expected.close();
    // Nothing was awaited since: the task of this client has not begun.
    assert_eq!(service.expected.len(), 1);
    service.advance(Phase::Draining);
    assert_eq!(code(&client.evaluate("three", json!({})).await), "shutting_down");
    tokio::time::timeout(PATIENCE, service.expected.wait()).await.unwrap();
    client.ended().await;
}
