//! Questions that may take time: they have their turn among those of their user, and
//! nothing else of the connection waits for them.

use super::*;
use crate::host::schema::Cost;
use std::sync::mpsc;

fn asked(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// Takes every thread for long work that this user may have, until the sender is dropped.
fn busy(service: &Arc<Service>, uid: u32) -> mpsc::Sender<()> {
    let (done, until) = mpsc::channel::<()>();
    let until = Arc::new(std::sync::Mutex::new(until));
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get).max(2) / 2;
    for _ in 0..threads {
        let (service, until) = (Arc::clone(service), Arc::clone(&until));
        tokio::spawn(async move {
            let work = move || until.lock().unwrap().recv_timeout(PATIENCE).is_ok();
            service.judges.run(uid, Cost::LONG, work).await
        });
    }
    done
}

#[tokio::test]
async fn declarations_of_large_schemas_are_written_in_the_turn_of_their_user_and_off_the_runtime() {
    let client = client().await;
    let uid = rustix::process::geteuid().as_raw();
    let done = busy(&client.service, uid);
    tokio::task::yield_now().await;
    let mut client = client;
    let schema = json!({"description": "x".repeat(40_000)});
    let large = json!({"hostFunctions": {"orders": {"list": {"inputSchema": schema}}}});
    client.send(&asked(1, "functions.types", &large)).await;
    client.send(&asked(2, "functions.types", &json!({"hostFunctions": {"orders": {"list": {}}}}))).await;
    client.send(&asked(3, "functions.list", &json!({}))).await;
    client.send(&asked(4, "functions.describe", &json!({"function": "x".repeat(400_000)}))).await;
    client.send(&asked(5, "vm.list", &json!({}))).await;
    let mut at_once: Vec<u64> = Vec::new();
    for _ in 0..3 {
        at_once.push(client.receive().await["id"].as_u64().unwrap());
    }
    at_once.sort_unstable();
    assert_eq!(at_once, [2, 3, 5]);
    drop(done);
    let mut later = [client.receive().await, client.receive().await];
    later.sort_by_key(|answer| answer["id"].as_u64());
    assert!(later[0]["result"]["declarations"].is_string() && later[1]["error"].is_object(), "{later:?}");
    client.ended().await;
}

#[tokio::test]
async fn a_request_that_there_is_no_room_for_is_refused_by_its_id_where_that_came() {
    let mut config = Config::default();
    config.clients.buffer_bytes = 1024 * 1024;
    for (beginning, id) in [
        (r#"{"jsonrpc":"2.0","id":17,"method":"evaluate","params":{"source":""#, json!(17)),
        (r#"{"jsonrpc":"2.0","method":"evaluate","params":{"source":""#, Value::Null),
    ] {
        let mut client = client_with(config.clone()).await;
        let line = format!("{beginning}{}", "x".repeat(600_000));
        // brigd hangs up before it has taken all of it.
        client.lines.get_mut().write_all(line.as_bytes()).await.ok();
        let refused = client.receive().await;
        assert_eq!(refused.pointer("/error/data/code"), Some(&json!("overloaded")), "{refused}");
        assert_eq!(refused.get("id"), Some(&id), "{refused}");
    }
}
