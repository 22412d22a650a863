//! Host functions that answer as a behaviour scripts them, and what an evaluation told.

use crate::expected::Fault;
use brig::{Canceller, Error, Evaluate, EvaluateResult, Evaluation, Function, FunctionError, HostCall, HostFunctions, Stream, WarningCode};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// How long anything may take that happens by itself.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

#[derive(Default)]
struct Seen {
    stdout: String,
    stderr: String,
    warnings: Vec<String>,
    inputs: HashMap<String, Vec<Value>>,
}

/// What one evaluation told its client.
pub(crate) struct Told {
    seen: Mutex<Seen>,
    cancel: Notify,
    /// Names of handlers that were told that their call is over.
    over: watch::Sender<Vec<String>>,
    /// How many calls wait for one another.
    meeting: watch::Sender<HashMap<String, u64>>,
}

impl Default for Told {
    fn default() -> Self {
        Self { seen: Mutex::default(), cancel: Notify::new(), over: watch::Sender::default(), meeting: watch::Sender::default() }
    }
}

/// Tells that a handler's future was dropped: its call is over.
struct Over(Arc<Told>, String);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.over.send_modify(|over| over.push(self.1.clone()));
    }
}

impl Told {
    fn seen<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was told, by the words of the list.
    pub(crate) fn by_listeners(&self) -> Value {
        self.seen(|seen| json!({"stdout": seen.stdout, "stderr": seen.stderr, "warnings": seen.warnings}))
    }

    /// The inputs of a handler.
    pub(crate) fn inputs(&self, name: &str) -> Vec<Value> {
        self.seen(|seen| seen.inputs.get(name).cloned().unwrap_or_default())
    }

    /// Waits until a handler of this name is told that its call is over.
    pub(crate) async fn is_over(&self, name: &str) -> Result<(), Fault> {
        let mut over = self.over.subscribe();
        let told = over.wait_for(|over| over.iter().any(|one| one == name));
        match tokio::time::timeout(Duration::from_secs(30), told).await {
            Ok(_) => Ok(()),
            Err(_) => Err(format!("{name} was not told that its call is over").into()),
        }
    }

    pub(crate) fn listen_to_output(self: &Arc<Self>, evaluate: Evaluate, cancels: bool) -> Evaluate {
        let told = Arc::clone(self);
        evaluate.on_output(move |note| {
            told.seen(|seen| match note.stream {
                Stream::Stdout => seen.stdout.push_str(&note.text),
                Stream::Stderr => seen.stderr.push_str(&note.text),
            });
            if cancels {
                told.cancel.notify_one();
            }
        })
    }

    pub(crate) fn listen_to_warnings(self: &Arc<Self>, evaluate: Evaluate) -> Evaluate {
        let told = Arc::clone(self);
        evaluate.on_warning(move |warning| {
            // How near a limit of time is depends on the machine.
            if warning.code != WarningCode::LimitNear {
                let code = json!(warning.code).as_str().unwrap_or_default().to_owned();
                told.seen(|seen| seen.warnings.push(code));
            }
        })
    }

    /// The result of an evaluation that is cancelled when that was asked for.
    pub(crate) async fn cancelling(&self, mut evaluation: Evaluation) -> Result<EvaluateResult, Error> {
        let canceller: Canceller = evaluation.canceller();
        loop {
            tokio::select! {
                result = &mut evaluation => return result,
                () = self.cancel.notified() => canceller.cancel(),
            }
        }
    }

    async fn meets(&self, name: &str, count: u64) {
        self.meeting.send_modify(|meeting| *meeting.entry(name.to_owned()).or_default() += 1);
        let mut meeting = self.meeting.subscribe();
        meeting.wait_for(|meeting| meeting.get(name).is_some_and(|there| *there >= count)).await.ok();
    }
}

/// One answer of one handler.
async fn answer(told: Arc<Told>, name: String, script: Value, input: Value, call: HostCall) -> Result<Value, FunctionError> {
    let Some((kind, wanted)) = script.as_object().and_then(|answer| answer.iter().next()) else { return Ok(Value::Null) };
    match kind.as_str() {
        "value" => Ok(wanted.clone()),
        "echo" => Ok(input),
        "repeat" => {
            let count = usize::try_from(wanted[1].as_u64().unwrap_or_default()).unwrap_or_default();
            Ok(json!(wanted[0].as_str().unwrap_or_default().repeat(count)))
        }
        "error" => Err(failure(wanted)),
        "crash" => panic!("the handler fails unprepared, as it was told to"),
        "facts" => Ok(json!({
            "call": call.call(),
            "keyed": call.idempotency_key() == format!("{}:{}", call.evaluation(), call.call()),
            "due": call.deadline() > Duration::ZERO,
        })),
        "meet" => {
            told.meets(&name, wanted.as_u64().unwrap_or_default()).await;
            Ok(wanted.clone())
        }
        kind => {
            // `never`, or `cancel`.
            if kind == "cancel" {
                told.cancel.notify_one();
            }
            let _over = Over(told, name);
            std::future::pending().await
        }
    }
}

fn failure(wanted: &Value) -> FunctionError {
    let member = |name: &str| wanted[name].as_str().unwrap_or_default();
    let mut failure = match wanted.get("code") {
        Some(_) => FunctionError::new(member("code"), member("message")),
        None => FunctionError::message(member("message")),
    };
    if wanted.get("name").is_some() {
        failure = failure.with_name(member("name"));
    }
    match wanted.get("data") {
        Some(data) => failure.with_data(data),
        None => failure,
    }
}

const ANSWERS: [&str; 9] = ["value", "echo", "repeat", "error", "crash", "facts", "meet", "never", "cancel"];

/// The functions of a script. What happens in them is written to `told`.
pub(crate) fn functions(script: &Value, told: &Arc<Told>) -> Result<HostFunctions, Fault> {
    let mut functions = HostFunctions::new();
    for (full, declared) in script.as_object().ok_or("functions is an object")? {
        let (collection, name) = full.split_once('.').ok_or("a function's name is collection.function")?;
        functions = functions.collection(collection).add(name, function(full, declared, told)?).finish();
    }
    Ok(functions)
}

fn function(full: &str, declared: &Value, told: &Arc<Told>) -> Result<Function, Fault> {
    let answers = declared["answers"].as_array().ok_or("a function has answers")?.clone();
    for kind in answers.iter().filter_map(Value::as_object).flat_map(serde_json::Map::keys) {
        if !ANSWERS.contains(&kind.as_str()) {
            return Err(format!("{full}: the answer {kind} has no implementation here").into());
        }
    }
    let (told, named) = (Arc::clone(told), full.to_owned());
    let mut function = Function::new(move |input: Value, call: HostCall| {
        let nth = told.seen(|seen| {
            let inputs = seen.inputs.entry(named.clone()).or_default();
            inputs.push(input.clone());
            inputs.len()
        });
        let script = answers.get(nth - 1).or(answers.last()).cloned().unwrap_or_default();
        answer(Arc::clone(&told), named.clone(), script, input, call)
    });
    for (member, value) in declared.as_object().into_iter().flatten() {
        function = match member.as_str() {
            "answers" => function,
            "description" => function.description(value.as_str().unwrap_or_default()),
            "inputSchema" => function.input_schema(value),
            "outputSchema" => function.output_schema(value),
            "timeoutMs" => function.timeout(Duration::from_millis(value.as_u64().unwrap_or_default())),
            "effect" => function.effect(serde_json::from_value(value.clone())?),
            "examples" => value.as_array().into_iter().flatten().fold(function, |function, example| {
                function.example(example["description"].as_str().unwrap_or_default(), &example["input"])
            }),
            _ => return Err(format!("the member {member} of {full} has no implementation here").into()),
        };
    }
    Ok(function)
}
