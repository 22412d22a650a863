//! Budgets on the way of a call: what they stop, what goes back, what the guest hears.

use super::*;
use crate::policy::{Facts, Policy};

/// `orders.create` with a budget of `budget`, for the user of these tests.
fn operator(budget: &str) -> ScopeSet {
    let text = format!(
        "[[principals.\"uid:1000\".callbacks.rules]]\nmode = \"allow\"\npatterns = [\"**\"]\n\
         [[principals.\"uid:1000\".callbacks.rules]]\nmode = \"allow\"\npatterns = [\"orders.create\"]\nbudget = {budget}\n"
    );
    let policy = Policy::compile(&toml::from_str(&text).unwrap()).unwrap();
    policy.grant(&Facts { uid: 1000, gid: 1000, ..Facts::default() }).callbacks.clone()
}

async fn with_budget(says: Says, budget: &str) -> Scene {
    scene_for(says, json!({}), Limits::DEFAULT, operator(budget)).await
}

fn data(outcome: &CallOutcome) -> Option<Value> {
    match read_from_supervisor(&outcome.frame[PREFIX_BYTES..]).unwrap() {
        FromSupervisor::HostFailure { failure, .. } => failure.data.map(|data| serde_json::from_str(data.get()).unwrap()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_call_over_its_budget_does_not_run_and_hears_when_to_come_back() {
    let scene = with_budget(Says::Output("{\"id\":7}".to_owned()), "{ calls = 1, per = \"hour\" }").await;
    assert_eq!(output(&call(&scene, CREATE, "{\"qty\":1}").await), "{\"id\":7}");
    let outcome = call(&scene, CREATE, "{\"qty\":1}").await;
    let (code, message) = failure(&outcome);
    assert_eq!((code, outcome.record.state), (CallCode::BudgetExhausted, CallState::Refused));
    assert!(message.starts_with("orders.create: the call did not run: the budget of 1 call per hour is used up"), "{message}");
    let wait = data(&outcome).unwrap()["retryAfterMs"].as_u64().unwrap();
    assert!((3_500_000..=3_660_000).contains(&wait), "{wait}");
    assert_eq!(scene.journal.all().iter().filter(|entry| entry.starts_with("ran ")).count(), 1);
    // What has no budget still runs.
    assert_eq!(output(&call(&scene, ECHO, "{}").await), "{\"id\":7}");
}

#[tokio::test]
async fn only_a_call_that_could_run_takes_of_a_budget() {
    let mut scene = with_budget(Says::Output("{\"id\":7}".to_owned()), "{ calls = 1, per = \"evaluation\" }").await;
    assert_eq!(failure(&call(&scene, CREATE, "{}").await).0, CallCode::InvalidInput);
    let (client, journal) = (Arc::clone(&scene.calls.client), Arc::clone(&scene.journal));
    scene.calls.audit = Arc::new(FakeAudit { full: true, never_on_disk: false, journal: Arc::clone(&journal) });
    assert_eq!(failure(&call(&scene, CREATE, "{\"qty\":1}").await).0, CallCode::AuditUnavailable);
    scene.calls.audit = Arc::new(FakeAudit { full: false, never_on_disk: false, journal });
    scene.calls.client = client;
    assert_eq!(output(&call(&scene, CREATE, "{\"qty\":1}").await), "{\"id\":7}");
    assert_eq!(failure(&call(&scene, CREATE, "{\"qty\":1}").await).0, CallCode::BudgetExhausted);
}

#[tokio::test]
async fn what_may_have_had_its_effect_gives_nothing_back() {
    for says in [Says::Goes, Says::Fails("no".to_owned(), json!({})), Says::Output("{\"wrong\":1}".to_owned())] {
        let scene = with_budget(says, "{ calls = 1, per = \"day\" }").await;
        assert_ne!(failure(&call(&scene, CREATE, "{\"qty\":1}").await).0, CallCode::BudgetExhausted);
        assert_eq!(failure(&call(&scene, CREATE, "{\"qty\":1}").await).0, CallCode::BudgetExhausted);
    }
}

#[tokio::test]
async fn a_sum_is_counted_as_the_guest_wrote_it() {
    let scene = with_budget(Says::Output("{\"id\":7}".to_owned()), "{ sum = \"/more/amount\", max = 0.3, per = \"day\" }").await;
    let pay = |amount: &str| format!("{{\"qty\":1,\"more\":{{\"amount\":{amount}}}}}");
    for amount in ["0.1", "1e-1", "0.10"] {
        assert_eq!(output(&call(&scene, CREATE, &pay(amount)).await), "{\"id\":7}");
    }
    assert_eq!(failure(&call(&scene, CREATE, &pay("0.000000000001")).await).0, CallCode::BudgetExhausted);
    for (input, part) in [
        ("{\"qty\":1}".to_owned(), "needs a number at /more/amount"),
        (pay("-1"), "is negative"),
        (pay("\"1\""), "needs a number at /more/amount"),
        (pay("1e-13"), "more than 12 decimal places"),
        ("{\"qty\":1,\"more\":{\"amount\":0,\"amount\":5}}".to_owned(), "comes twice"),
        ("{\"qty\":1,\"more\":{\"amount\":0,\"\\u0061mount\":5}}".to_owned(), "comes twice"),
    ] {
        let (code, message) = failure(&call(&scene, CREATE, &input).await);
        assert_eq!(code, CallCode::InvalidInput);
        assert!(message.contains(part), "{message}");
    }
}
