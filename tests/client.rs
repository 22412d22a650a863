//! The Rust client under load, through a real brigd: many evaluations on one connection,
//! each with handlers of its own, of which some fail, are cancelled or are left; vms in which
//! several clients evaluate; and a brigd that dies under all of it.
#![expect(clippy::expect_used, reason = "tests")]

use acceptance::{Brigd, BrigdOptions};
use brig::{
    CallCode, CallState, Client, Error, Evaluate, EvaluationCode, Function, FunctionError, HostCall, HostFunctions, Outcome, VmOptions,
};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long all of a test may take.
const DEADLINE: Duration = Duration::from_secs(240);
/// Evaluations at the same time; brigd takes 256 on one connection.
const MANY: usize = 240;

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, work).await.expect("within the deadline")
}

/// Counts, and lets others wait for a count.
#[derive(Clone)]
struct Counter(Arc<watch::Sender<usize>>);

impl Counter {
    fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    fn add(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    fn count(&self) -> usize {
        *self.0.borrow()
    }

    async fn reaches(&self, count: usize) {
        self.0.subscribe().wait_for(|there| *there >= count).await.expect("the counter lives");
    }
}

/// Tells when a handler's future is dropped or done.
struct Over(Counter);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.add();
    }
}

/// A function that never answers; `begun` and `over` hear of its calls.
fn never(begun: &Counter, over: &Counter) -> Function {
    let (begun, over) = (begun.clone(), over.clone());
    Function::new(move |_: Value, _: HostCall| {
        let (begun, over) = (begun.clone(), Over(over.clone()));
        async move {
            let _over = over;
            begun.add();
            std::future::pending::<Result<Value, FunctionError>>().await
        }
    })
}

fn only(function: Function) -> HostFunctions {
    HostFunctions::new().collection("t").add("f", function).finish()
}

/// What an evaluation does, by its number.
async fn one(client: Client, number: usize) {
    let source = "try { return await t.f({ n: inputs.n }) } catch (e) { return e.code }";
    let program = |function: Function| Evaluate::new(source).inputs(json!({"n": number})).host_functions(only(function));
    let (begun, over) = (Counter::new(), Counter::new());
    match number % 6 {
        0 | 1 => {
            let seen = Arc::new(AtomicUsize::new(0));
            let told = Arc::clone(&seen);
            let echo = Function::new(move |input: Value, call: HostCall| {
                told.fetch_add(1, Ordering::SeqCst);
                async move { Ok(json!([input, call.call()])) }
            });
            let result = client.evaluate(program(echo)).await.expect("a result");
            assert_eq!(result.value.map(|value| value.get().to_owned()), Some(json!([{"n": number}, 1]).to_string()));
            assert_eq!(seen.load(Ordering::SeqCst), 1);
        }
        2 => {
            let fails = Function::new(move |_: Value, _: HostCall| async move {
                Err::<Value, _>(FunctionError::new(format!("no_{number}"), "as it was told to"))
            });
            let result = client.evaluate(program(fails)).await.expect("a result");
            assert_eq!(result.value.map(|value| value.get().to_owned()), Some(format!("\"no_{number}\"")));
            assert_eq!(result.calls.first().map(|call| call.state), Some(CallState::Failed));
        }
        3 => {
            let slow = never(&begun, &over).timeout(Duration::from_millis(50));
            let result = client.evaluate(program(slow)).await.expect("a result");
            assert_eq!(result.value.map(|value| value.get().to_owned()), Some("\"function_timed_out\"".to_owned()));
            // On a busy machine it may be over before its handler was begun.
            over.reaches(begun.count()).await;
        }
        4 => {
            let mut running = client.evaluate(program(never(&begun, &over)));
            let canceller = running.canceller();
            tokio::select! {
                result = &mut running => panic!("it can not end by itself: {result:?}"),
                () = begun.reaches(1) => canceller.cancel(),
            }
            let result = running.await.expect("a result");
            assert_eq!((result.outcome, result.error.map(|error| error.code)), (Outcome::Cancelled, Some(EvaluationCode::Cancelled)));
            assert_eq!(result.calls.first().map(|call| (call.state, call.code)), Some((CallState::Unknown, Some(CallCode::Cancelled))));
            over.reaches(1).await;
        }
        _ => {
            tokio::select! {
                result = client.evaluate(program(never(&begun, &over))) => panic!("it can not end by itself: {result:?}"),
                () = begun.reaches(1) => {}
            }
            // Its future was dropped: its handler hears so, without an answer being awaited.
            over.reaches(1).await;
        }
    }
}

#[tokio::test]
async fn many_evaluations_on_one_connection_keep_to_their_own_however_they_end() {
    // However busy the machine is, none is refused for having waited.
    let brigd = BrigdOptions::default().config("[queue]\nwait_ms = 200000\n").start();
    let client = Client::connect(brigd.socket()).await.expect("a client");
    let mut running = JoinSet::new();
    for number in 0..MANY {
        running.spawn(one(client.clone(), number));
    }
    while let Some(done) = soon(running.join_next()).await {
        done.expect("it went as it should");
    }
    let after = soon(client.evaluate(Evaluate::new("1 + 1"))).await.expect("the connection lives");
    assert_eq!(after.value.map(|value| value.get().to_owned()), Some("2".to_owned()));
}

#[tokio::test]
async fn vms_of_one_client_answer_those_who_evaluate_in_them_at_the_same_time_each_with_its_own() {
    let brigd = Brigd::start();
    let maker = Client::connect(brigd.socket()).await.expect("a client");
    let named = |name: &'static str| only(Function::new(move |_: Value, _: HostCall| async move { Ok(name) }));
    let (first, other) = (
        maker.create_vm(VmOptions::new().host_functions(named("first"))).await.expect("a vm"),
        maker.create_vm(VmOptions::new().host_functions(named("other"))).await.expect("a vm"),
    );
    let mut running = JoinSet::new();
    for number in 0..6 {
        let client = if number < 2 { maker.clone() } else { Client::connect(brigd.socket()).await.expect("a client") };
        let (id, name) = if number % 2 == 0 { (first.id(), "first") } else { (other.id(), "other") };
        let id = id.to_owned();
        running.spawn(async move {
            let mut ran = 0;
            while ran < 20 {
                match client.evaluate(Evaluate::new("[await t.f(), await t.f()].join()").vm(&id)).await {
                    Ok(result) => {
                        assert_eq!(
                            result.value.map(|value| value.get().to_owned()),
                            Some(format!("\"{name},{name}\"")),
                            "{:?}",
                            result.error
                        );
                        ran += 1;
                    }
                    // Another runs in it: it may be asked again.
                    Err(fault) => assert!(fault.retryable() && fault.nothing_ran(), "{fault}"),
                }
            }
        });
    }
    while let Some(done) = soon(running.join_next()).await {
        done.expect("it went as it should");
    }
}

#[tokio::test]
async fn all_that_runs_when_brigd_dies_ends_as_lost_and_another_brigd_is_connected_to() {
    let mut brigd = Brigd::start();
    let client = Client::connect(brigd.socket()).await.expect("a client");
    let (begun, over) = (Counter::new(), Counter::new());
    let mut running = JoinSet::new();
    for _ in 0..50 {
        let evaluation = client.evaluate(Evaluate::new("await t.f({})").host_functions(only(never(&begun, &over))));
        running.spawn(evaluation);
    }
    soon(begun.reaches(50)).await;
    brigd.signal(Signal::SIGKILL);
    brigd.wait();
    while let Some(done) = soon(running.join_next()).await {
        let fault = done.expect("no panic").expect_err("brigd is gone");
        assert!(matches!(fault, Error::ConnectionLost(_)) && !fault.nothing_ran(), "{fault}");
    }
    soon(over.reaches(50)).await;
    soon(client.closed()).await;
    let refused = soon(client.evaluate(Evaluate::new("1"))).await.expect_err("it is over");
    assert!(matches!(refused, Error::ConnectionLost(_)), "{refused}");
    let again = Brigd::start();
    let client = Client::connect(again.socket()).await.expect("a client");
    assert_eq!(soon(client.evaluate(Evaluate::new("1"))).await.expect("a result").outcome, Outcome::Succeeded);
}
