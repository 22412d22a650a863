//! Who decides, who was first, and what becomes of the rest.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use super::*;
use crate::policy::selector::Selector;
use brig_protocol::codes::RequestCode;
use futures_util::FutureExt as _;
use proptest::prelude::*;

const HASH: &str = "9f86d081";

fn asked(uid: u32, input: &str, show: Option<&[&str]>) -> Asked {
    Asked {
        evaluation: "ev_1".to_owned(),
        call: 1,
        function: "store.refund".to_owned(),
        principal: Principal { uid, gid: uid },
        input: Arc::from(RawValue::from_string(input.to_owned()).unwrap()),
        input_sha256: HASH.to_owned(),
        recorded: Payload::unread(input.len()),
        terms: Arc::new(AskTerms {
            approvers: vec![Selector::Gid(30_001), Selector::Uid(1)],
            approver_names: vec!["group:finance".to_owned(), "uid:1".to_owned()],
            wait: Duration::from_secs(600),
            show: show.map(|show| show.iter().map(|&pointer| pointer.to_owned()).collect()),
            why: Some("Refunds need a person.".to_owned()),
            rule: "operator:rules[0]".to_owned(),
        }),
        policy_version: Arc::from("v1"),
    }
}

fn who(uid: u32, groups: &[u32]) -> Facts {
    Facts { uid, gid: uid, groups: groups.to_vec(), ..Facts::default() }
}

fn unheard() -> Recorder {
    Box::new(|_| Ok(()))
}

fn approvals() -> Arc<Approvals> {
    Approvals::open(Bounds { waiting: 3, waiting_each: 2, kept: 2 }, None, unheard()).unwrap()
}

fn park(approvals: &Arc<Approvals>, id: &str, uid: u32) -> Parked {
    approvals.park(id.to_owned(), asked(uid, "{}", None)).unwrap()
}

fn code<T>(outcome: Result<T, ErrorData>) -> RequestCode {
    outcome.err().unwrap().code
}

#[tokio::test]
async fn whoever_the_rule_names_lets_it_run_and_only_the_first_word_counts() {
    let approvals = approvals();
    let parked = park(&approvals, "ap_1", 20_001);
    let said = approvals.approve("ap_1", &who(20_002, &[30_001]), HASH, Some("fine".to_owned())).unwrap();
    assert_eq!((said.state, said.decision.as_ref().unwrap().by.uid), (ApprovalState::Approved, 20_002));
    let second = approvals.deny("ap_1", &who(1, &[]), None).unwrap_err();
    assert_eq!(second.code, RequestCode::ApprovalDecided);
    assert!(second.message.contains("user 20002 approved it"), "{second:?}");
    assert_eq!(parked.answered().await, Answer::Approved);
    assert_eq!(approvals.list(true, None).first().unwrap().decision.as_ref().unwrap().comment.as_deref(), Some("fine"));
}

#[tokio::test]
async fn whoever_the_rule_names_and_comes_too_late_hears_who_decided_and_how() {
    let approvals = approvals();
    let _parked = park(&approvals, "ap_1", 20_001);
    approvals.approve("ap_1", &who(20_002, &[30_001]), HASH, None).unwrap();
    for late in [who(20_003, &[30_001]), who(1, &[])] {
        let shown = approvals.show("ap_1", &late, true).unwrap();
        assert_eq!((shown.approval.state, shown.refused.as_deref()), (ApprovalState::Approved, Some("user 20002 approved it already")));
        assert!(shown.input.is_none());
        assert_eq!(approvals.list(true, Some(&late)).len(), 1);
    }
    // Neither the one who asked nor anybody else.
    for stranger in [who(20_001, &[30_001]), who(20_004, &[])] {
        assert_eq!(code(approvals.show("ap_1", &stranger, true)), RequestCode::ApprovalNotFound);
        assert!(approvals.list(true, Some(&stranger)).is_empty());
    }
}

#[tokio::test]
async fn nobody_decides_their_own_and_nobody_whom_the_rule_does_not_name_not_even_root() {
    let approvals = approvals();
    let _parked = park(&approvals, "ap_1", 20_001);
    // In the group, and still the one who asked.
    let other_group = Facts { uid: 30_001, gid: 1, ..Facts::default() };
    for somebody in [who(20_001, &[30_001]), who(0, &[]), other_group, who(20_002, &[1])] {
        assert_eq!(code(approvals.approve("ap_1", &somebody, HASH, None)), RequestCode::NotPermitted, "{somebody:?}");
        assert_eq!(code(approvals.deny("ap_1", &somebody, None)), RequestCode::NotPermitted, "{somebody:?}");
        assert!(approvals.show("ap_1", &somebody, false).unwrap().refused.is_some());
        assert_eq!(code(approvals.show("ap_1", &somebody, true)), RequestCode::ApprovalNotFound);
        assert!(approvals.list(true, Some(&somebody)).is_empty());
    }
    let root_asks = park(&approvals, "ap_2", 1);
    assert_eq!(code(approvals.approve("ap_2", &who(1, &[30_001]), HASH, None)), RequestCode::NotPermitted);
    drop(root_asks);
    assert_eq!(approvals.waiting(), 1);
}

#[tokio::test]
async fn a_yes_to_another_input_is_none() {
    let approvals = approvals();
    let parked = park(&approvals, "ap_1", 20_001);
    for hash in ["", "9f86d08", "9F86D081", "9f86d0811"] {
        assert_eq!(code(approvals.approve("ap_1", &who(1, &[]), hash, None)), RequestCode::ApprovalChanged);
    }
    assert!(parked.answered().now_or_never().is_none());
}

#[tokio::test]
async fn what_nobody_decides_expires_and_stays_so() {
    let approvals = approvals();
    let mut asked = asked(20_001, "{}", None);
    Arc::make_mut(&mut asked.terms).wait = Duration::from_millis(1);
    let parked = approvals.park("ap_1".to_owned(), asked).unwrap();
    assert!(approvals.list(false, None).first().unwrap().expires_in_ms <= Some(1));
    assert_eq!(parked.answered().await, Answer::Expired);
    let late = approvals.approve("ap_1", &who(1, &[]), HASH, None).unwrap_err();
    assert!(late.code == RequestCode::ApprovalDecided && late.message.contains("expired"), "{late:?}");
}

#[tokio::test]
async fn what_is_not_awaited_any_more_can_not_be_decided() {
    let approvals = approvals();
    drop(park(&approvals, "ap_1", 20_001));
    let late = approvals.deny("ap_1", &who(1, &[]), None).unwrap_err();
    assert!(late.code == RequestCode::ApprovalDecided && late.message.contains("not awaited"), "{late:?}");
    assert_eq!(code(approvals.deny("ap_2", &who(1, &[]), None)), RequestCode::ApprovalNotFound);
}

#[test]
fn no_more_wait_than_may_and_records_are_bounded() {
    let approvals = approvals();
    let (one, two) = (park(&approvals, "ap_1", 1), park(&approvals, "ap_2", 1));
    let full = approvals.park("ap_3".to_owned(), asked(1, "{}", None)).unwrap_err();
    let NotParked::Full(full) = full else { panic!("{full:?}") };
    assert_eq!(full, Full { setting: "approvals.waiting_each", limit: 2 });
    let other = park(&approvals, "ap_3", 2);
    let NotParked::Full(full) = approvals.park("ap_4".to_owned(), asked(3, "{}", None)).unwrap_err() else { panic!("it is not full") };
    assert_eq!(full.setting, "approvals.waiting");
    drop((one, two, other));
    assert_eq!(approvals.list(true, None).iter().map(|info| info.approval.as_str()).collect::<Vec<_>>(), ["ap_2", "ap_3"]);
    assert_eq!((approvals.waiting(), approvals.asked()), (0, 3));
}

#[test]
fn only_what_the_rule_shows_is_shown_and_the_hash_is_of_all_of_it() {
    let approvals = approvals();
    let input = r#"{"amount":140,"card":"4111"}"#;
    let _all = approvals.park("ap_1".to_owned(), asked(2, input, None)).unwrap();
    let _part = approvals.park("ap_2".to_owned(), asked(2, input, Some(&["/amount"]))).unwrap();
    let all = approvals.show("ap_1", &who(1, &[]), true).unwrap();
    assert_eq!((all.input.unwrap().get(), all.redacted), (input, false));
    let part = approvals.show("ap_2", &who(1, &[]), true).unwrap();
    assert_eq!((part.input.unwrap().get(), part.redacted), (r#"{"amount":140}"#, true));
    assert_eq!((part.approval.input_bytes, part.approval.input_sha256.as_str(), part.refused), (28, HASH, None));
}

#[test]
fn what_waited_when_brigd_died_is_abandoned_and_no_input_is_written_down() {
    let folder = tempfile::tempdir().unwrap();
    let approvals = Approvals::open(Bounds::default(), Some(folder.path()), unheard()).unwrap();
    let _parked = approvals.park("ap_1".to_owned(), asked(2, r#"{"card":"4111"}"#, None)).unwrap();
    let _other = approvals.park("ap_2".to_owned(), asked(2, "{}", None)).unwrap();
    approvals.deny("ap_2", &who(1, &[]), Some("no".to_owned())).unwrap();
    approvals.save();
    let text = std::fs::read_to_string(folder.path().join("approvals.json")).unwrap();
    assert!(!text.contains("4111"), "{text}");
    let again = Approvals::open(Bounds::default(), Some(folder.path()), unheard()).unwrap();
    // In which order they are told is a matter of the millisecond in which each began.
    let states: std::collections::BTreeMap<_, _> = again.list(true, None).into_iter().map(|info| (info.approval, info.state)).collect();
    assert_eq!(states.get("ap_1"), Some(&ApprovalState::Abandoned));
    assert_eq!((states.get("ap_2"), states.len()), (Some(&ApprovalState::Denied), 2));
    let late = again.approve("ap_1", &who(1, &[]), HASH, None).unwrap_err();
    assert!(late.message.contains("abandoned"), "{late:?}");
    std::fs::write(folder.path().join("approvals.json"), "[{").unwrap();
    assert!(Approvals::open(Bounds::default(), Some(folder.path()), unheard()).is_err());
}

proptest! {
    /// Whatever happens in whatever order: each call ends once, and as its record says.
    #[test]
    fn each_call_ends_once_and_as_its_record_says(steps in proptest::collection::vec((0u8..5, 0usize..4), 0..40)) {
        let approvals = Approvals::open(Bounds { waiting: 4, waiting_each: 4, kept: 100 }, None, unheard()).unwrap();
        let mut parked: Vec<Option<Parked>> = Vec::new();
        let mut ends: Vec<Option<ApprovalState>> = Vec::new();
        for (step, index) in steps {
            let id = format!("ap_{index}");
            match step {
                0 => if let Ok(waiting) = approvals.park(format!("ap_{}", parked.len()), asked(2, "{}", None)) {
                    parked.push(Some(waiting));
                    ends.push(None);
                },
                1 => if approvals.approve(&id, &who(1, &[]), HASH, None).is_ok() {
                    prop_assert_eq!(ends[index].replace(ApprovalState::Approved), None);
                },
                2 => if approvals.deny(&id, &who(1, &[]), None).is_ok() {
                    prop_assert_eq!(ends[index].replace(ApprovalState::Denied), None);
                },
                3 => if let Some(waiting) = parked.get_mut(index).and_then(Option::take) {
                    drop(waiting);
                    ends[index].get_or_insert(ApprovalState::Withdrawn);
                },
                _ => if approvals.finish(&id, ApprovalState::Expired) {
                    prop_assert_eq!(ends[index].replace(ApprovalState::Expired), None);
                },
            }
        }
        let records = approvals.list(true, None);
        prop_assert_eq!(records.len(), ends.len());
        for (index, end) in ends.iter().enumerate() {
            let id = format!("ap_{index}");
            let record = records.iter().find(|info| info.approval == id).unwrap();
            prop_assert_eq!(record.state, end.unwrap_or(ApprovalState::Waiting));
        }
    }
}

#[tokio::test]
async fn a_question_and_what_becomes_of_it_are_on_record_each_once() {
    let heard: Arc<Mutex<Vec<serde_json::Value>>> = Arc::default();
    let ear = Arc::clone(&heard);
    let recorder: Recorder = Box::new(move |event| {
        ear.lock().unwrap().push(serde_json::to_value(event).unwrap());
        Ok(())
    });
    let approvals = Approvals::open(Bounds::default(), None, recorder).unwrap();
    let parked = [park(&approvals, "ap_1", 20_001), park(&approvals, "ap_2", 20_001), park(&approvals, "ap_3", 20_001)];
    approvals.approve("ap_1", &who(1, &[]), HASH, Some("fine".to_owned())).unwrap();
    approvals.deny("ap_2", &who(1, &[]), None).unwrap();
    drop(parked);
    let told: Vec<String> = heard
        .lock()
        .unwrap()
        .iter()
        .map(|event| format!("{} {} {}", event["event"], event["approval"], event["approved"]).replace('"', ""))
        .collect();
    let asked = ["approval_asked ap_1 null", "approval_asked ap_2 null", "approval_asked ap_3 null"];
    assert_eq!(told[..3], asked);
    assert_eq!(told[3..], ["approval_decided ap_1 true", "approval_decided ap_2 false", "approval_expired ap_3 null"]);
    assert_eq!(heard.lock().unwrap()[3]["by"], serde_json::json!({"uid": 1}));
    assert_eq!(heard.lock().unwrap()[3]["comment"], "fine");
}

#[tokio::test]
async fn what_can_not_be_recorded_is_not_asked_and_no_yes_is_taken_but_a_no_is() {
    let full = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let disk = Arc::clone(&full);
    let recorder: Recorder =
        Box::new(move |_| if disk.load(Ordering::Relaxed) { Err(std::io::Error::other("no space left").into()) } else { Ok(()) });
    let approvals = Approvals::open(Bounds::default(), None, recorder).unwrap();
    let refused = approvals.park("ap_0".to_owned(), asked(20_001, "{}", None));
    assert!(matches!(refused, Err(NotParked::Unrecorded(_))));
    assert_eq!((approvals.waiting(), approvals.asked()), (0, 0));
    full.store(false, Ordering::Relaxed);
    let mut parked = park(&approvals, "ap_1", 20_001);
    full.store(true, Ordering::Relaxed);
    assert_eq!(code(approvals.approve("ap_1", &who(1, &[]), HASH, None)), RequestCode::JournalUnavailable);
    assert!(approvals.waiting() == 1 && parked.answer.try_recv().is_err(), "it waits still");
    approvals.deny("ap_1", &who(1, &[]), None).unwrap();
    assert_eq!(parked.answered().await, Answer::Denied);
}

#[tokio::test]
async fn a_few_principals_lock_no_other_out_of_waiting_and_push_only_their_own_out_of_the_history() {
    let approvals = Approvals::open(Bounds { waiting: 16, waiting_each: 8, kept: 8 }, None, unheard()).unwrap();
    let mut waiting = Vec::new();
    for uid in [1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2] {
        waiting.extend(approvals.park(format!("ap_{}", waiting.len()), asked(uid, "{}", None)).ok());
    }
    assert_eq!(waiting.len(), 14);
    let others = [park(&approvals, "ap_3rd", 3), park(&approvals, "ap_4th", 4)];
    drop(others);
    drop(waiting);
    for number in 0..50 {
        drop(park(&approvals, &format!("ap_more_{number}"), 1));
    }
    let kept: Vec<u32> = approvals.list(true, None).iter().map(|info| info.principal.uid).collect();
    assert_eq!(kept.len(), 8);
    assert!(kept.contains(&3) && kept.contains(&4) && kept.contains(&2), "{kept:?}");
}
