//! A person on the way of a call: what waits, what ends the wait, what is looked at again.

use super::*;
use crate::approvals::Bounds;
use crate::policy::{Facts, Policy, PolicyStore};
use brig_protocol::admin::{ApprovalInfo, ApprovalState};
use std::sync::Arc;

const ASKS: &str = "mode = \"ask\"\npatterns = [\"text.*\"]\nask = { approvers = [\"uid:7\"] }\n";

fn policy(rule: &str) -> Policy {
    let text = format!(
        "[[principals.\"*\".callbacks.rules]]\nmode = \"allow\"\npatterns = [\"**\"]\n[[principals.\"*\".callbacks.rules]]\n{rule}"
    );
    Policy::compile(&toml::from_str(&text).unwrap()).unwrap()
}

fn facts(uid: u32) -> Facts {
    Facts { uid, gid: uid, ..Facts::default() }
}

async fn asking() -> Scene {
    let policy = policy(ASKS);
    let grant = policy.grant(&facts(1000));
    let mut scene = scene_for(Says::Echo, json!({}), Limits::DEFAULT, grant.callbacks.clone()).await;
    scene.calls.policy = Arc::new(PolicyStore::new(policy));
    scene.calls.policy_version = Arc::clone(&grant.version);
    scene
}

/// Waits until so many calls wait.
async fn waiting(scene: &Scene, count: usize) -> Vec<ApprovalInfo> {
    loop {
        let all = scene.calls.approvals.list(false, None);
        if all.len() == count {
            return all;
        }
        tokio::task::yield_now().await;
    }
}

fn approve(scene: &Scene, info: &ApprovalInfo) {
    scene.calls.approvals.approve(&info.approval, &facts(7), &info.input_sha256, None).unwrap();
}

fn ran(scene: &Scene) -> usize {
    scene.journal.all().iter().filter(|entry| entry.starts_with("ran ")).count()
}

#[tokio::test]
async fn a_call_that_a_person_has_to_agree_to_runs_when_one_does_and_not_before() {
    let scene = asking().await;
    let deciding = async {
        let info = waiting(&scene, 1).await.remove(0);
        assert_eq!((ran(&scene), info.input_sha256.len(), info.function.as_str()), (0, 64, "text.echo"));
        approve(&scene, &info);
    };
    let (outcome, ()) = tokio::join!(call(&scene, ECHO, "{\"a\":1}"), deciding);
    assert_eq!(output(&outcome), "{\"a\":1}");
    assert!(scene.journal.all().iter().any(|entry| entry.starts_with("parked text.echo ap_")), "{:?}", scene.journal.all());
}

#[tokio::test]
async fn a_no_is_a_refusal_and_nothing_ran() {
    let scene = asking().await;
    let deciding = async {
        let info = waiting(&scene, 1).await.remove(0);
        scene.calls.approvals.deny(&info.approval, &facts(7), Some("secret remark".to_owned())).unwrap();
    };
    let (outcome, ()) = tokio::join!(call(&scene, ECHO, "{}"), deciding);
    let (code, message) = failure(&outcome);
    assert_eq!((code, outcome.record.state, ran(&scene)), (CallCode::ApprovalDenied, CallState::Refused, 0));
    assert!(message.contains("a person said no") && !message.contains("remark"), "{message}");
}

#[tokio::test]
async fn a_yes_under_a_policy_that_holds_no_more_is_asked_for_again_or_is_worth_nothing() {
    let scene = asking().await;
    let deciding = async {
        let first = waiting(&scene, 1).await.remove(0);
        scene.calls.policy.replace(policy(&ASKS.replace("uid:7", "uid:8")));
        approve(&scene, &first);
        // Another rule by now: its own approver is asked.
        let second = loop {
            let all = waiting(&scene, 1).await;
            if all[0].approval != first.approval {
                break all[0].clone();
            }
            tokio::task::yield_now().await;
        };
        assert_ne!(second.policy_version, first.policy_version);
        scene.calls.policy.replace(policy("mode = \"deny\"\npatterns = [\"text.*\"]\n"));
        scene.calls.approvals.approve(&second.approval, &facts(8), &second.input_sha256, None).unwrap();
    };
    let (outcome, ()) = tokio::join!(call(&scene, ECHO, "{}"), deciding);
    assert_eq!((failure(&outcome).0, ran(&scene)), (CallCode::PermissionDenied, 0));
}

#[tokio::test]
async fn a_revoke_ends_the_wait_and_every_later_call() {
    let scene = asking().await;
    let revoking = async {
        waiting(&scene, 1).await;
        let entry = brig_protocol::admin::Revocation {
            target: "text.*".to_owned(),
            by: brig_protocol::admin::Person { uid: 0 },
            at_ms: 0,
            reason: None,
        };
        scene.calls.revocations.revoke_function(entry).unwrap();
    };
    let (outcome, ()) = tokio::join!(call(&scene, ECHO, "{}"), revoking);
    assert_eq!((failure(&outcome).0, outcome.record.state), (CallCode::Revoked, CallState::Refused));
    assert_eq!(failure(&call(&scene, ECHO, "{}").await).0, CallCode::Revoked);
    assert_eq!(scene.calls.approvals.list(true, None)[0].state, ApprovalState::Withdrawn);
}

#[tokio::test]
async fn the_end_of_the_evaluation_ends_the_wait() {
    let scene = asking().await;
    let ending = async {
        waiting(&scene, 1).await;
        scene.calls.cancelled.cancel();
    };
    let (outcome, ()) = tokio::join!(call(&scene, ECHO, "{}"), ending);
    assert_eq!((failure(&outcome).0, outcome.record.state), (CallCode::Cancelled, CallState::Refused));
    assert_eq!(scene.calls.approvals.waiting(), 0);
}

#[tokio::test]
async fn the_clock_stands_still_while_a_person_thinks_and_its_time_is_not_the_functions() {
    let mut scene = asking().await;
    let soon = tokio::time::Instant::now() + Duration::from_millis(30);
    scene.calls.wall = Arc::new(Wall::until(soon));
    scene.calls.wall.begun(tokio::time::Instant::now());
    let deciding = async {
        let info = waiting(&scene, 1).await.remove(0);
        assert!(scene.calls.wall.is_still());
        tokio::time::sleep_until(soon + Duration::from_millis(5)).await;
        approve(&scene, &info);
    };
    let (outcome, ()) = tokio::join!(call(&scene, ECHO, "{}"), deciding);
    assert_eq!(output(&outcome), "{}");
    assert!(!scene.calls.wall.is_still() && scene.calls.wall.stood_still(tokio::time::Instant::now()) >= Duration::from_millis(5));
}

#[tokio::test]
async fn no_more_wait_than_may_and_an_input_that_two_could_read_differently_is_not_asked_about() {
    let mut scene = asking().await;
    let full = Bounds { waiting: 0, ..Bounds::default() };
    let (code, message) = failure(&call(&scene, ECHO, "{\"a\":1,\"a\":2}").await);
    assert!(code == CallCode::InvalidInput && message.contains("comes twice"), "{message}");
    scene.calls.approvals = Approvals::open(full, None, recorder(&scene.journal)).unwrap();
    let (code, message) = failure(&call(&scene, ECHO, "{}").await);
    assert!(code == CallCode::CallLimit && message.contains("approvals.waiting"), "{message}");
}

#[tokio::test]
async fn nobody_is_asked_about_a_call_whose_budget_is_used_up() {
    let policy = policy(&format!("{ASKS}budget = {{ calls = 1, per = \"hour\" }}\n"));
    let grant = policy.grant(&facts(1000));
    let mut scene = scene_for(Says::Echo, json!({}), Limits::DEFAULT, grant.callbacks.clone()).await;
    scene.calls.policy = Arc::new(PolicyStore::new(policy));
    scene.calls.policy_version = Arc::clone(&grant.version);
    let deciding = async {
        let info = waiting(&scene, 1).await.remove(0);
        approve(&scene, &info);
    };
    let (outcome, ()) = tokio::join!(call(&scene, ECHO, "{\"a\":1}"), deciding);
    assert_eq!(output(&outcome), "{\"a\":1}");
    let outcome = tokio::select! {
        biased;
        outcome = call(&scene, ECHO, "{\"a\":2}") => outcome,
        asked = waiting(&scene, 1) => panic!("somebody is asked: {asked:?}"),
    };
    let (code, message) = failure(&outcome);
    assert_eq!(code, CallCode::BudgetExhausted, "{message}");
    assert!(message.contains("the budget of 1 call per hour is used up"), "{message}");
    assert_eq!((scene.calls.approvals.asked(), ran(&scene)), (1, 1));
}
