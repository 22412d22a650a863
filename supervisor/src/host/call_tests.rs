//! The whole way of a call, with a client that answers as it is told.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use super::*;
use crate::audit::{AuditFault, Written};
use crate::host::permission::ScopeSet;
use crate::host::schema::cache::SchemaCache;
use crate::host::table::Granted;
use crate::policy::counters::Counters;
use brig_protocol::client::{HostFunctions, Permissions};
use brig_protocol::frame::PREFIX_BYTES;
use brig_protocol::limits::Limits;
use brig_protocol::worker::{FromSupervisor, read_from_supervisor};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::Duration;

#[path = "call_ask_tests.rs"]
mod asking;
#[path = "call_budget_tests.rs"]
mod budgets;

const OWN: Principal = Principal { uid: 1000, gid: 1000 };

#[derive(Debug)]
enum Says {
    Output(String),
    Echo,
    Fails(String, Value),
    Goes,
    Never,
}

/// Everything that happened, in order.
#[derive(Debug, Default)]
struct Journal(Mutex<Vec<String>>);

impl Journal {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[derive(Debug)]
struct FakeClient {
    says: Says,
    journal: Arc<Journal>,
}

impl Callback for FakeClient {
    async fn host_call(&self, delivery: Delivery<'_>) -> CallAnswer {
        self.journal.note(format!("ran {} {} {}", delivery.function, delivery.input.get(), delivery.idempotency_key));
        assert!(!delivery.deadline.is_zero());
        match &self.says {
            Says::Output(text) => CallAnswer::Output(RawValue::from_string(text.clone()).unwrap()),
            Says::Echo => CallAnswer::Output(delivery.input.to_owned()),
            Says::Fails(message, data) => {
                CallAnswer::Failed { message: message.clone(), data: Some(serde_json::value::to_raw_value(data).unwrap()) }
            }
            Says::Goes => CallAnswer::Gone,
            Says::Never => std::future::pending().await,
        }
    }

    fn parked(&self, note: &brig_protocol::client::ApprovalNote) {
        self.journal.note(format!("parked {} {}", note.function, note.approval));
    }

    fn host_cancel(&self, evaluation: &str, call: u64, reason: CallCode) {
        self.journal.note(format!("cancel {evaluation}:{call} {reason}"));
    }
}

#[derive(Debug)]
struct FakeAudit {
    full: bool,
    never_on_disk: bool,
    journal: Arc<Journal>,
}

impl AuditSink for FakeAudit {
    fn write(&self, event: &Event<'_>) -> Result<Written, AuditFault> {
        if self.full {
            return Err(std::io::Error::other("no space left").into());
        }
        let value = serde_json::to_value(event).unwrap();
        let word = |name: &str| value.get(name).map(|word| word.to_string().replace('"', "")).unwrap_or_default();
        self.journal
            .note(format!("record {} {} {} {}", word("event"), word("function"), word("state"), word("code")).trim_end().to_owned());
        Ok(Written(0))
    }

    async fn settled(&self, _: Written) -> Result<(), AuditFault> {
        if self.never_on_disk { Err(std::io::Error::other("the disk is gone").into()) } else { Ok(()) }
    }
}

struct Scene {
    calls: HostCalls<FakeClient, FakeAudit>,
    journal: Arc<Journal>,
}

/// `orders.create` with a schema on both sides, `text.echo` without any, and
/// `orders.refund`, which the request denies.
async fn scene(says: Says) -> Scene {
    scene_with(
        says,
        json!({"hostFunction": {"default": "allow", "rules": [{"mode": "deny", "patterns": ["orders.refund"]}]}}),
        Limits::DEFAULT,
    )
    .await
}

async fn scene_with(says: Says, permissions: Value, limits: Limits) -> Scene {
    scene_for(says, permissions, limits, ScopeSet::unconfigured(OWN.uid, 1000)).await
}

async fn scene_for(says: Says, permissions: Value, limits: Limits, operator: ScopeSet) -> Scene {
    let functions = json!({
        "orders": {
            "create": {"inputSchema": {"type": "object", "properties": {"qty": {"type": "integer"}, "pin": {"type": "string", "format": "password", "maxLength": 4}}, "required": ["qty"]},
                       "outputSchema": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"], "additionalProperties": false}},
            "refund": {"inputSchema": {"required": ["amount"]}}},
        "text": {"echo": {}}
    })
    .to_string();
    let permissions = permissions.to_string();
    let declared: HostFunctions<'_> = serde_json::from_str(&functions).unwrap();
    let permissions: Permissions<'_> = serde_json::from_str(&permissions).unwrap();
    let operator = Granted { callbacks: operator.clone(), configured: operator };
    let (table, _) =
        FunctionTable::build(Some(&declared), Some(&permissions), (operator, &[]), &limits, (&SchemaCache::default(), 0)).await.unwrap();
    let journal = Arc::new(Journal::default());
    let calls = HostCalls {
        evaluation: "ev_1".to_owned(),
        effects: Effects::default(),
        principal: OWN,
        table: Arc::new(table),
        client: Arc::new(FakeClient { says, journal: Arc::clone(&journal) }),
        audit: Arc::new(FakeAudit { full: false, never_on_disk: false, journal: Arc::clone(&journal) }),
        judges: Arc::new(Judges::default()),
        wall: Arc::new(Wall::until(tokio::time::Instant::now() + Duration::from_secs(60))),
        facts: Facts { uid: OWN.uid, ..Facts::default() },
        policy: Arc::new(PolicyStore::new(crate::policy::Policy::compile(&crate::config::Config::default()).unwrap())),
        policy_version: Arc::from(""),
        revocations: Arc::new(Revocations::open(None).unwrap()),
        approvals: Approvals::open(crate::approvals::Bounds::default(), None, recorder(&journal)).unwrap(),
        counts: Arc::new(Counters::default()).for_evaluation(),
        cancelled: CancellationToken::new(),
    };
    Scene { calls, journal }
}

/// What approvals record goes where that of calls goes.
fn recorder(journal: &Arc<Journal>) -> crate::approvals::Recorder {
    let audit = FakeAudit { full: false, never_on_disk: false, journal: Arc::clone(journal) };
    Box::new(move |event| audit.write(event).map(drop))
}

const CREATE: u32 = 0;
const REFUND: u32 = 1;
const ECHO: u32 = 2;

async fn call(scene: &Scene, function: u32, input: &str) -> CallOutcome {
    scene.calls.run(Asked { call: 1, function, input: RawValue::from_string(input.to_owned()).unwrap() }).await
}

fn output(outcome: &CallOutcome) -> String {
    match read_from_supervisor(&outcome.frame[PREFIX_BYTES..]).unwrap() {
        FromSupervisor::HostResult { id: 1, output } => output.get().to_owned(),
        other => panic!("{other:?}"),
    }
}

fn failure(outcome: &CallOutcome) -> (CallCode, String) {
    match read_from_supervisor(&outcome.frame[PREFIX_BYTES..]).unwrap() {
        FromSupervisor::HostFailure { id: 1, failure } => (failure.code, failure.message.into_owned()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_good_call_is_recorded_before_it_runs_and_after() {
    let scene = scene(Says::Output("{\"id\":7}".to_owned())).await;
    let outcome = call(&scene, CREATE, "{\"qty\":1}").await;
    assert_eq!(output(&outcome), "{\"id\":7}");
    assert_eq!((outcome.record.state, outcome.record.code), (CallState::Completed, None));
    assert_eq!((outcome.record.input_bytes, outcome.record.output_bytes), (9, 8));
    assert_eq!(
        scene.journal.all(),
        ["record call_permitted orders.create", "ran orders.create {\"qty\":1} ev_1:1", "record call_ended orders.create completed"]
    );
}

#[tokio::test]
async fn permission_is_asked_before_the_input_is_looked_at() {
    let scene = scene(Says::Echo).await;
    let outcome = call(&scene, REFUND, "{\"wrong\":true}").await;
    let (code, message) = failure(&outcome);
    assert_eq!(code, CallCode::PermissionDenied);
    assert!(
        message.contains("permission denied for orders.refund") && !message.contains("amount") && !message.contains("create"),
        "{message}"
    );
    assert_eq!(outcome.record.state, CallState::Refused);
    assert_eq!(scene.journal.all(), ["record call_refused orders.refund  permission_denied"]);
}

#[tokio::test]
async fn an_input_that_does_not_fit_never_reaches_the_client() {
    let scene = scene(Says::Echo).await;
    for (input, part) in [
        ("{}", "orders.create: the input does not match its schema:\n- $ must have \"qty\" (integer)"),
        ("[1]", "must be one object"),
        ("null", "must be one object"),
        ("{\"qty\":1,\"qty\":2}", "comes twice"),
        ("{\"qty\":1e999}", "out of range"),
        ("{\"qty\":\"\\ud800\"}", "surrogate"),
    ] {
        let outcome = call(&scene, CREATE, input).await;
        let (code, message) = failure(&outcome);
        assert_eq!((code, outcome.record.state), (CallCode::InvalidInput, CallState::Refused));
        assert!(message.contains(part), "{message}");
    }
    let (_, message) = failure(&call(&scene, CREATE, "{\"qty\":1,\"pin\":\"hunter2\"}").await);
    assert!(message.contains("$.pin must have at most 4 characters") && !message.contains("hunter2"), "{message}");
    assert!(scene.journal.all().iter().all(|line| line.starts_with("record call_refused")));
}

#[tokio::test]
async fn a_call_that_can_not_be_recorded_does_not_run() {
    let mut scene = scene(Says::Echo).await;
    for full in [true, false] {
        scene.calls.audit = Arc::new(FakeAudit { full, never_on_disk: true, journal: Arc::clone(&scene.journal) });
        let outcome = call(&scene, ECHO, "{}").await;
        assert_eq!(failure(&outcome).0, CallCode::AuditUnavailable);
        assert_eq!(outcome.record.state, CallState::Refused);
        assert!(!scene.journal.all().iter().any(|line| line.starts_with("ran")));
    }
}

#[tokio::test]
async fn payloads_pass_as_the_bytes_they_are() {
    for input in ["{\"id\":9007199254740993,\"__proto__\":{\"x\":1}, \"spaced\" : 1.0}", "{\"s\":\"\\u0041 žluť\"}"] {
        let scene = scene(Says::Echo).await;
        assert_eq!(output(&call(&scene, ECHO, input).await), input);
    }
    let scene = scene(Says::Output("{\"id\": 9007199254740993}".to_owned())).await;
    assert_eq!(output(&call(&scene, CREATE, "{\"qty\":1}").await), "{\"id\": 9007199254740993}");
}

#[tokio::test]
async fn nesting_up_to_the_limit_passes_both_ways() {
    let scene = scene(Says::Echo).await;
    let nested = |levels: usize| format!("{}1{}", "{\"p\":".repeat(levels), "}".repeat(levels));
    assert_eq!(output(&call(&scene, ECHO, &nested(512)).await), nested(512));
    assert_eq!(failure(&call(&scene, ECHO, &nested(513)).await).0, CallCode::InvalidInput);
    let scene = scene_with(Says::Output("[".repeat(513) + &"]".repeat(513)), json!({}), Limits::DEFAULT).await;
    assert_eq!(failure(&call(&scene, ECHO, "{}").await).0, CallCode::InvalidOutput);
}

#[tokio::test]
async fn a_large_payload_is_judged_apart_and_passes() {
    let scene = scene(Says::Echo).await;
    let input = format!("{{\"text\":\"{}\"}}", "x".repeat(1_000_000));
    assert_eq!(output(&call(&scene, ECHO, &input).await).len(), input.len());
    let over = format!("{{\"text\":\"{}\"}}", "x".repeat(1_100_000));
    let (code, message) = failure(&call(&scene, ECHO, &over).await);
    assert_eq!(code, CallCode::InvalidInput);
    assert!(message.contains("limit inputBytes is 1048576") && message.contains("limits.input_bytes"), "{message}");
}

#[tokio::test]
async fn an_output_that_does_not_fit_is_not_shown_and_its_effect_is_told() {
    let scene = scene(Says::Output("{\"id\":1,\"ssn\":\"078-05-1120\"}".to_owned())).await;
    let outcome = call(&scene, CREATE, "{\"qty\":1}").await;
    let (code, message) = failure(&outcome);
    assert_eq!(code, CallCode::InvalidOutput);
    assert!(message.contains("\"ssn\"") && message.contains("The function ran.") && !message.contains("078"), "{message}");
    assert_eq!((outcome.record.state, outcome.record.code), (CallState::Completed, Some(CallCode::InvalidOutput)));

    let limits = Limits { output_bytes: 20, ..Limits::DEFAULT };
    let scene = scene_with(Says::Output("\"01234567890123456789\"".to_owned()), json!({}), limits).await;
    let outcome = call(&scene, ECHO, "{}").await;
    let (code, message) = failure(&outcome);
    assert_eq!((code, outcome.record.state), (CallCode::OutputTooLarge, CallState::Completed));
    assert!(message.contains("limit outputBytes is 20"), "{message}");
    let scene = scene_with(Says::Output("\"\\udc00\"".to_owned()), json!({}), Limits::DEFAULT).await;
    assert_eq!(failure(&call(&scene, ECHO, "{}").await).0, CallCode::InvalidOutput);
}

#[tokio::test]
async fn a_function_that_fails_says_so_without_its_stack() {
    let data = json!({"name": "RateLimitError", "code": "rate_limited", "data": {"retryAfter": 2}, "stack": "at /srv/app.js:1"});
    let scene = scene(Says::Fails("slow down\n    at q (/srv/app.js:1:1)".to_owned(), data)).await;
    let outcome = call(&scene, ECHO, "{}").await;
    assert_eq!((outcome.record.state, outcome.record.code), (CallState::Failed, Some(CallCode::FunctionFailed)));
    let frame = String::from_utf8(outcome.frame[PREFIX_BYTES..].to_vec()).unwrap();
    assert!(
        frame.contains("rate_limited") && frame.contains("retryAfter") && frame.contains("slow down") && !frame.contains("/srv"),
        "{frame}"
    );
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_the_effect_unknown() {
    let scene = scene(Says::Goes).await;
    let outcome = call(&scene, ECHO, "{}").await;
    assert_eq!((outcome.record.state, outcome.record.code), (CallState::Unknown, Some(CallCode::ClientGone)));
    assert_eq!(scene.journal.all().last().unwrap(), "record call_ended text.echo unknown client_gone");
}

#[tokio::test]
async fn a_function_that_does_not_answer_is_cancelled_at_its_time_out() {
    let scene = scene_with(Says::Never, json!({}), Limits { function_timeout_ms: 30, ..Limits::DEFAULT }).await;
    let outcome = call(&scene, ECHO, "{}").await;
    let (code, message) = failure(&outcome);
    assert_eq!((code, outcome.record.state), (CallCode::FunctionTimedOut, CallState::Unknown));
    assert!(message.contains("30 ms"), "{message}");
    assert!(scene.journal.all().contains(&"cancel ev_1:1 function_timed_out".to_owned()));
}

#[tokio::test]
async fn an_evaluation_that_ends_takes_its_calls_with_it() {
    let scene = scene(Says::Never).await;
    let cancelled = scene.calls.cancelled.clone();
    let journal = Arc::clone(&scene.journal);
    let end_once_it_runs = async {
        while !journal.all().iter().any(|line| line.starts_with("ran ")) {
            tokio::task::yield_now().await;
        }
        cancelled.cancel();
    };
    let (outcome, ()) = tokio::join!(call(&scene, ECHO, "{}"), end_once_it_runs);
    assert_eq!((outcome.record.state, outcome.record.code), (CallState::Unknown, Some(CallCode::Cancelled)));
    assert!(scene.journal.all().contains(&"cancel ev_1:1 cancelled".to_owned()));
    let late = call(&scene, ECHO, "{}").await;
    assert_eq!((late.record.state, late.record.code), (CallState::Refused, Some(CallCode::Cancelled)));
}

#[tokio::test]
async fn a_dropped_call_tells_the_client_that_nobody_awaits_it() {
    let scene = scene(Says::Never).await;
    let journal = Arc::clone(&scene.journal);
    tokio::select! {
        biased;
        _ = call(&scene, ECHO, "{}") => panic!("it never answers"),
        () = async { while !journal.all().iter().any(|line| line.starts_with("ran ")) { tokio::task::yield_now().await; } } => {}
    }
    assert!(scene.journal.all().contains(&"cancel ev_1:1 cancelled".to_owned()));
}

#[tokio::test]
async fn an_index_outside_of_the_table_is_no_function() {
    let scene = scene(Says::Echo).await;
    for index in [3, u32::MAX] {
        let outcome = call(&scene, index, "{}").await;
        assert_eq!((outcome.record.state, outcome.record.code), (CallState::Refused, Some(CallCode::UnknownFunction)));
    }
}

#[tokio::test]
async fn a_rule_on_the_input_decides_each_call_anew() {
    let rule = json!({"hostFunction": {"rules": [{"mode": "allow", "patterns": ["text.echo"], "when": {"properties": {"amount": {"maximum": 100}}}}]}});
    let scene = scene_with(Says::Echo, rule, Limits::DEFAULT).await;
    assert_eq!(output(&call(&scene, ECHO, "{\"amount\":100}").await), "{\"amount\":100}");
    assert_eq!(failure(&call(&scene, ECHO, "{\"amount\":101}").await).0, CallCode::PermissionDenied);
    assert_eq!(failure(&call(&scene, ECHO, "{\"amount\":1,\"amount\":101}").await).0, CallCode::InvalidInput);
}

#[tokio::test]
async fn a_call_that_there_is_no_room_for_does_not_run_and_says_what_raises_it() {
    let scene = scene(Says::Echo).await;
    let outcome = scene.calls.turned_away(1, ECHO, 900_000);
    assert_eq!((outcome.record.state, outcome.record.code), (CallState::Refused, Some(CallCode::CallLimit)));
    let text = String::from_utf8_lossy(&outcome.frame).into_owned();
    assert!(text.contains("clients.buffer_bytes") && text.contains("did not run"), "{text}");
    assert_eq!(scene.journal.all(), ["record call_refused text.echo  call_limit"]);
}

#[tokio::test]
async fn an_answer_that_the_worker_has_no_room_for_is_withheld_and_its_effect_stays_known() {
    let scene = scene(Says::Echo).await;
    let outcome = call(&scene, ECHO, "{\"a\":1}").await;
    let withheld = scene.calls.withheld(outcome);
    assert_eq!((withheld.record.state, withheld.record.code), (CallState::Completed, Some(CallCode::OutputTooLarge)));
    assert!(!String::from_utf8_lossy(&withheld.frame).contains("\"a\""));
}

#[tokio::test]
async fn an_evaluation_that_ends_does_not_wait_for_its_output_to_be_checked() {
    use futures_util::FutureExt;
    let scene = scene(Says::Output(format!("\"{}\"", "x".repeat(100_000)))).await;
    let (done, until) = std::sync::mpsc::channel::<()>();
    let wait = move || until.recv_timeout(Duration::from_secs(60)).is_ok();
    let judges = Arc::clone(&scene.calls.judges);
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get).max(2);
    let (wait, mut busy) = (Arc::new(Mutex::new(Some(wait))), Vec::new());
    for _ in 0..threads / 2 {
        let wait = Arc::clone(&wait);
        let mut other = Box::pin(judges.run(OWN.uid, Cost::LONG, move || wait.lock().unwrap().take().is_some_and(|wait| wait())));
        assert!((&mut other).now_or_never().is_none());
        busy.push(other);
    }
    let mut waiting = Box::pin(call(&scene, ECHO, "{}"));
    if (&mut waiting).now_or_never().is_none() {
        scene.calls.cancelled.cancel();
        let outcome = waiting.await;
        assert_eq!((outcome.record.state, outcome.record.code), (CallState::Completed, Some(CallCode::Cancelled)));
    }
    drop(done);
}
