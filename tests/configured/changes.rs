//! Hearing that what may be called has changed: `functions.wait`.

use super::{Place, value};
use acceptance::{Client, Handlers};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

fn version(client: &mut Client) -> String {
    client.result("functions.wait", &json!({})).get("version").and_then(Value::as_str).expect("a version").to_owned()
}

fn names(client: &mut Client) -> String {
    let types = client.result("functions.types", &json!({}));
    let listed = client.result("functions.list", &json!({}));
    let functions = listed.get("functions").and_then(Value::as_array).expect("a list");
    let names: Vec<&str> = functions.iter().filter_map(|one| one.get("function")?.as_str()).collect();
    for name in &names {
        let method = name.split_once('.').map_or("", |(_, method)| method);
        assert!(types.to_string().contains(&format!("  {method}(")), "{name} is listed and not declared: {types}");
    }
    names.join(" ")
}

#[test]
fn who_waits_for_changes_hears_of_a_reload_a_revoke_and_a_restore_and_of_nothing_else() {
    let place = Place::new();
    place.collection("shop", &(place.function("one", "", "args = [\"echo\"]") + &place.function("two", "", "args = [\"echo\"]")));
    let brigd = place.options("").admin().start();
    let (mut client, mut admin) = (brigd.connect(), brigd.admin());
    let mut known = version(&mut client);
    assert_eq!(names(&mut client), "shop.one shop.two");
    value(&mut client, "shop.one", &json!({}));
    let same = client.result("functions.wait", &json!({"version": known, "timeoutMs": 0}));
    assert_eq!(same.get("version"), Some(&json!(known)), "nothing has changed");

    let mut change = |client: &mut Client, admin: &mut Client, method: &str, params: &Value| {
        let waiting = client.request("functions.wait", &json!({"version": known, "timeoutMs": 600_000}));
        admin.result(method, params);
        let answer = client.answer(waiting, &mut Handlers::none());
        let next = answer.pointer("/result/version").and_then(Value::as_str).expect("a version").to_owned();
        assert_ne!(next, known, "after {method}");
        known = next;
        names(client)
    };
    let revoked = change(&mut client, &mut admin, "functions.revoke", &json!({"pattern": "shop.o*"}));
    assert_eq!(revoked, "shop.two");
    let refused = client.result("functions.call", &json!({"function": "shop.one"}));
    assert_eq!(refused.pointer("/call/code"), Some(&json!("revoked")), "it is refused as what it is: {refused}");
    client.result("functions.describe", &json!({"function": "shop.one"}));
    assert_eq!(change(&mut client, &mut admin, "functions.restore", &json!({"pattern": "shop.o*"})), "shop.one shop.two");
    place.collection("shop", &place.function("three", "", "args = [\"echo\"]"));
    assert_eq!(change(&mut client, &mut admin, "policy.reload", &json!({})), "shop.three");
}

#[test]
fn waiting_for_changes_ends_when_it_is_cancelled_and_holds_up_no_end_of_brigd() {
    let mut brigd = Place::new().options("").start();
    let mut client = brigd.connect();
    let known = version(&mut client);
    let code = |answer: &Value| answer.pointer("/error/data/code").cloned().unwrap_or_default();
    for (params, member) in
        [(json!({"timeoutMs": 600_001}), "timeoutMs"), (json!({"since": 1}), "since"), (json!({"version": 1}), "string")]
    {
        let wrong = client.call("functions.wait", &params);
        assert!(code(&wrong) == "invalid_params" && wrong.to_string().contains(member), "{wrong}");
    }
    let forever = json!({"version": known, "timeoutMs": 600_000});
    let waiting = client.request("functions.wait", &forever);
    client.send(&json!({"jsonrpc": "2.0", "method": "cancel", "params": {"id": waiting}}));
    assert_eq!(code(&client.answer(waiting, &mut Handlers::none())), "cancelled");
    let waiting = client.request("functions.wait", &forever);
    client.result("initialize", &json!({}));
    brigd.signal(Signal::SIGTERM);
    assert_eq!(code(&client.answer(waiting, &mut Handlers::none())), "shutting_down");
    brigd.wait();
}
