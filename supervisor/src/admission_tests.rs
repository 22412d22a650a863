#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]
use super::*;
use futures_util::FutureExt;
use proptest::prelude::*;

fn bounds(running: usize, running_each: usize, waiting_each: usize) -> config::Queue {
    config::Queue { running, running_each, waiting: 100, waiting_each, wait_ms: 10_000 }
}

/// A principal of which policy says nothing: the queue's own bounds hold.
fn everybody(bounds: config::Queue) -> Part {
    Part::new(bounds, None, None, "*")
}

#[test]
fn one_who_floods_does_not_delay_another() {
    let bounds = bounds(1, 1, 100);
    let mut line = Line::new(bounds);
    let part = everybody(bounds);
    assert_eq!(line.ask(1, 1, &part), Asked::Now);
    for _ in 0..50 {
        assert!(matches!(line.ask(1, 1, &part), Asked::Wait(_)));
    }
    let Asked::Wait(theirs) = line.ask(2, 2, &part) else { panic!("must wait") };
    line.leave(1);
    assert_eq!(line.call_next().map(|(uid, _)| uid), Some(1));
    line.leave(1);
    assert_eq!(line.call_next(), Some((2, theirs)));
}

#[test]
fn one_connection_that_floods_does_not_delay_another_of_the_same_user() {
    let bounds = bounds(1, 1, 100);
    let mut line = Line::new(bounds);
    let part = everybody(bounds);
    assert_eq!(line.ask(1, 1, &part), Asked::Now);
    for _ in 0..50 {
        assert!(matches!(line.ask(1, 1, &part), Asked::Wait(_)));
    }
    let Asked::Wait(other) = line.ask(1, 2, &part) else { panic!("must wait") };
    line.leave(1);
    assert!(line.call_next().is_some_and(|(_, place)| place != other));
    line.leave(1);
    assert_eq!(line.call_next(), Some((1, other)));
}

#[test]
fn a_full_queue_sends_away_and_says_whose() {
    let bounds = bounds(1, 1, 1);
    let mut line = Line::new(bounds);
    let part = everybody(bounds);
    assert_eq!(line.ask(1, 1, &part), Asked::Now);
    assert!(matches!(line.ask(1, 1, &part), Asked::Wait(_)));
    assert_eq!(line.ask(1, 1, &part), Asked::Full { own: true });
    assert!(matches!(line.ask(2, 2, &part), Asked::Wait(_)));
}

#[test]
fn a_quota_of_the_policy_holds_within_the_queue_and_can_only_narrow_it() {
    let bounds = bounds(10, 3, 5);
    let mut line = Line::new(bounds);
    let part = Part::new(bounds, Some(1), Some(1), "user:alice");
    assert_eq!(line.ask(1, 1, &part), Asked::Now);
    let Asked::Wait(place) = line.ask(1, 1, &part) else { panic!("must wait") };
    assert_eq!(line.ask(1, 1, &part), Asked::Full { own: true });
    assert_eq!(line.call_next(), None);
    assert_eq!(line.ask(2, 2, &everybody(bounds)), Asked::Now);
    line.leave(1);
    assert_eq!(line.call_next(), Some((1, place)));
    assert_eq!(Part::new(bounds, Some(100), Some(100), "user:alice").running, 3);
}

#[tokio::test]
async fn who_is_over_its_quota_is_told_the_setting_of_its_own_section() {
    let bounds = bounds(10, 3, 5);
    let admission = Admission::new(bounds);
    let part = Part::new(bounds, Some(1), Some(0), "group:agents");
    let _ticket = admission.enter(1, 1, &part).await.unwrap();
    let refusal = admission.enter(1, 1, &part).await.unwrap_err();
    assert_eq!(refusal.code, RequestCode::QuotaExceeded);
    assert_eq!(refusal.setting.as_deref(), Some("principals.\"group:agents\".quotas.queued"));
    assert!(refusal.retry_after_ms.is_some(), "{refusal:?}");
}

#[test]
fn nothing_is_remembered_of_those_who_left() {
    let bounds = bounds(2, 2, 4);
    let mut line = Line::new(bounds);
    let part = everybody(bounds);
    for uid in 0..1000 {
        assert_eq!(line.ask(uid, u64::from(uid), &part), Asked::Now);
        line.leave(uid);
    }
    assert!(line.shares.is_empty() && line.turn.is_empty());
}

#[tokio::test]
async fn the_next_enters_when_a_ticket_is_dropped() {
    let bounds = bounds(1, 1, 4);
    let admission = Admission::new(bounds);
    let part = everybody(bounds);
    let first = admission.enter(1, 1, &part).await.unwrap();
    let mut second = Box::pin(admission.enter(1, 1, &part));
    assert!((&mut second).now_or_never().is_none());
    drop(first);
    let ticket = second.await.unwrap();
    assert_eq!(admission.counts(), (1, 0));
    drop(ticket);
    assert_eq!(admission.counts(), (0, 0));
}

#[tokio::test]
async fn one_who_gives_up_after_being_called_hands_the_turn_on() {
    let bounds = bounds(1, 1, 4);
    let admission = Admission::new(bounds);
    let part = everybody(bounds);
    let first = admission.enter(1, 1, &part).await.unwrap();
    let mut second = Box::pin(admission.enter(1, 1, &part));
    let mut third = Box::pin(admission.enter(1, 1, &part));
    assert!((&mut second).now_or_never().is_none() && (&mut third).now_or_never().is_none());
    drop(first);
    drop(second);
    drop(third.await.unwrap());
    assert_eq!(admission.counts(), (0, 0));
}

#[tokio::test]
async fn waiting_ends_at_its_deadline_with_advice() {
    let bounds = config::Queue { wait_ms: 1, ..bounds(1, 1, 4) };
    let admission = Admission::new(bounds);
    let part = everybody(bounds);
    let ticket = admission.enter(1, 1, &part).await.unwrap();
    let refusal = admission.enter(1, 1, &part).await.unwrap_err();
    assert_eq!(refusal.code, RequestCode::Overloaded);
    assert!(refusal.retry_after_ms.is_some() && refusal.retryable);
    drop(ticket);
    assert_eq!(admission.counts(), (0, 0));
}

proptest! {
    #[test]
    fn never_more_run_than_may_and_everyone_is_called_once(steps in proptest::collection::vec((0u32..4, 0u8..3), 0..200)) {
        let bounds = bounds(3, 2, 5);
        let mut line = Line::new(bounds);
        let part = everybody(bounds);
        let mut running: Vec<u32> = Vec::new();
        let mut waiting: Vec<(u32, Place)> = Vec::new();
        for (uid, step) in steps {
            match step {
                0 => match line.ask(uid, u64::from(uid), &part) {
                    Asked::Now => running.push(uid),
                    Asked::Wait(place) => waiting.push((uid, place)),
                    Asked::Full { .. } => {}
                },
                1 => if let Some(index) = running.iter().position(|other| *other == uid) {
                    running.remove(index);
                    line.leave(uid);
                },
                _ => if let Some(index) = waiting.iter().position(|(other, _)| *other == uid) {
                    let (uid, place) = waiting.remove(index);
                    prop_assert!(line.give_up(uid, u64::from(uid), place));
                },
            }
            while let Some(called) = line.call_next() {
                let index = waiting.iter().position(|other| *other == called);
                prop_assert!(index.is_some());
                waiting.remove(index.unwrap_or(0));
                running.push(called.0);
            }
            prop_assert!(running.len() <= 3);
            prop_assert!((0..4).all(|uid| running.iter().filter(|other| **other == uid).count() <= 2));
            prop_assert_eq!(line.counts(), (running.len(), waiting.len()));
            let idle = (0..4).any(|uid| running.iter().filter(|other| **other == uid).count() < 2
                && waiting.iter().any(|(other, _)| *other == uid));
            prop_assert!(!(idle && running.len() < 3));
        }
    }
}
