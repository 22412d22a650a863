//! The behaviours of `behaviours.json`, by the Rust client, through a real brigd. What a
//! behaviour may say is in `README.md`; what has no implementation here fails.
#![expect(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod expected;
mod scripted;

use acceptance::Brigd;
use brig::protocol::client::CancelParams;
use brig::{CheckParams, Client, Error, Evaluate, EvaluationStatus, HostFunctions, Vm, VmOptions};
use expected::Fault;
use scripted::{DEADLINE, Told};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn behaviours() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("contract/behaviours.json");
    let text = std::fs::read_to_string(path).expect("the list");
    serde_json::from_str(&text.replace("{sdk}", "rust")).expect("a list of behaviours")
}

/// The steps of one behaviour.
struct Run {
    one: Client,
    another: Client,
    vm: Option<Vm>,
    other: Option<Vm>,
    /// Id of a vm that was disposed of.
    gone: Option<String>,
    detached: Option<String>,
    ids: Vec<Option<String>>,
}

/// Text of a member that has to be there.
fn text<'a>(value: &'a Value, member: &str) -> Result<&'a str, Fault> {
    value.get(member).and_then(Value::as_str).ok_or_else(|| format!("{member} has to be text: {value}").into())
}

fn set<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, Fault> {
    serde_json::from_value(value.clone()).map_err(|fault| format!("{value}: {fault}").into())
}

/// A program with its options and functions.
fn program(source: &str, step: &Value, told: &Arc<Told>) -> Result<Evaluate, Fault> {
    let mut evaluate = Evaluate::new(source).host_functions(functions(step, told)?);
    for (name, value) in step.get("options").and_then(Value::as_object).into_iter().flatten() {
        evaluate = match name.as_str() {
            "inputs" => evaluate.inputs(value),
            "form" => evaluate.form(set(value)?),
            "language" => evaluate.language(set(value)?),
            "collections" => evaluate.collections(set::<Vec<String>>(value)?),
            "permissions" => evaluate.permissions(value),
            "timeoutMs" => evaluate.timeout(Duration::from_millis(set(value)?)),
            "limits" => evaluate.limits(set(value)?),
            "output" => evaluate.capture(set(value.get("capture").ok_or("output has a capture")?)?),
            "timeZone" => evaluate.time_zone(set::<String>(value)?),
            "idempotencyKey" => evaluate.idempotency_key(set::<String>(value)?),
            "trace" => evaluate.trace(set::<String>(value)?),
            "check" if *value == json!(true) => evaluate.check_types(),
            "listen" if *value == json!(true) => told.listen_to_output(told.listen_to_warnings(evaluate), false),
            "listen" if *value == json!("warnings") => told.listen_to_warnings(evaluate),
            "cancelOn" if *value == json!("output") => told.listen_to_output(evaluate, true),
            _ => return Err(format!("the option {name} {value} has no implementation here").into()),
        };
    }
    Ok(evaluate)
}

fn functions(step: &Value, told: &Arc<Told>) -> Result<HostFunctions, Fault> {
    step.get("functions").map_or_else(|| Ok(HostFunctions::new()), |script| scripted::functions(script, told))
}

fn vm_options(wanted: &Value) -> Result<VmOptions, Fault> {
    let told = Arc::new(Told::default());
    let mut options = VmOptions::new();
    for (name, value) in wanted.as_object().ok_or("vm has to be an object")? {
        options = match name.as_str() {
            "functions" => options.host_functions(scripted::functions(value, &told)?),
            "limits" => options.limits(set(value)?),
            "timeZone" => options.time_zone(set::<String>(value)?),
            _ => return Err(format!("the option {name} of a vm has no implementation here").into()),
        };
    }
    Ok(options)
}

impl Run {
    fn client(&self, step: &Value) -> &Client {
        if step.get("by").is_some_and(|by| by == "another") { &self.another } else { &self.one }
    }

    /// The vm in which the step runs.
    fn vm(&self, step: &Value) -> Option<&Vm> {
        if step.get("in").is_some_and(|vm| vm == "other") { self.other.as_ref() } else { self.vm.as_ref() }
    }

    fn evaluation(&self) -> Result<&str, Fault> {
        self.detached.as_deref().ok_or_else(|| "nothing was detached".into())
    }

    /// Does what the step says, and gives the id of its evaluation.
    async fn take(&mut self, step: &Value) -> Result<Option<String>, Fault> {
        let members = step.as_object().ok_or("a step is an object")?;
        let kinds: Vec<&String> =
            members.keys().filter(|name| !["by", "in", "options", "functions", "expect"].contains(&name.as_str())).collect();
        let [kind] = kinds.as_slice() else { return Err(format!("one step does one thing, not {kinds:?}").into()) };
        let given = &step[kind.as_str()];
        let expect = step.get("expect").unwrap_or(&Value::Null);
        match kind.as_str() {
            "evaluate" => self.evaluate(text(step, "evaluate")?, step, expect).await,
            "together" => self.together(given).await.map(|()| None),
            "check" => self.check(text(step, "check")?, step, expect).await.map(|()| None),
            "types" => self.types(step, expect).await.map(|()| None),
            "detach" => {
                let told = Arc::new(Told::default());
                let begun = self.client(step).detach(program(text(step, "detach")?, step, &told)?).await;
                self.detached = self.status(begun, expect).await?;
                Ok(self.detached.clone())
            }
            "wait" => {
                let timeout = given.get("timeoutMs").and_then(Value::as_u64).map(Duration::from_millis);
                self.status(self.client(step).wait_evaluation(self.evaluation()?, timeout).await, expect).await.map(|_| None)
            }
            "get" => {
                let named = given.get("evaluation").and_then(Value::as_str);
                let evaluation = named.map_or_else(|| self.evaluation(), Ok)?;
                self.status(self.client(step).get_evaluation(evaluation).await, expect).await.map(|_| None)
            }
            "cancel" => {
                let params = CancelParams { id: None, evaluation: Some(self.evaluation()?.to_owned()) };
                self.client(step).request::<Value>("cancel", &params).await?;
                Ok(None)
            }
            "vms" => {
                let own = self.vm.as_ref().map(|vm| vm.id().to_owned());
                let listed = self.client(step).list_vms().await?.iter().any(|vm| Some(&vm.vm) == own.as_ref());
                expected::has(&json!({"own": listed}), expect, "vms").map(|()| None)
            }
            "dispose" => {
                let vm = self.vm.take().ok_or("there is no vm")?;
                self.gone = Some(vm.id().to_owned());
                vm.dispose().await?;
                Ok(None)
            }
            _ => Err(format!("the step {kind} has no implementation here").into()),
        }
    }

    async fn evaluate(&self, source: &str, step: &Value, expect: &Value) -> Result<Option<String>, Fault> {
        let told = Arc::new(Told::default());
        let evaluate = program(source, step, &told)?;
        let evaluation = match (self.vm(step), &self.gone) {
            (Some(vm), _) if step.get("by").is_some() => self.client(step).evaluate(evaluate.vm(vm.id())),
            (Some(vm), _) => vm.evaluate(evaluate),
            (None, Some(vm)) => self.one.evaluate(evaluate.vm(vm)),
            (None, None) => self.client(step).evaluate(evaluate),
        };
        let result = told.cancelling(evaluation).await;
        match (result, expect.get("refused")) {
            (Err(fault), Some(refused)) => expected::is_refusal(&fault, refused).map(|()| None),
            (result, None) => {
                let result = result?;
                expected::holds(&serde_json::to_value(&result)?, &told, &self.ids, expect).await?;
                Ok(Some(result.evaluation))
            }
            (Ok(result), Some(_)) => Err(format!("it was not refused: {result:?}").into()),
        }
    }

    async fn together(&self, steps: &Value) -> Result<(), Fault> {
        let steps = steps.as_array().ok_or("together has steps")?;
        let mut running = Vec::new();
        for step in steps {
            let source = text(step, "evaluate")?;
            let told = Arc::new(Told::default());
            // It is sent when it is made; awaited below.
            running.push((step, Arc::clone(&told), self.client(step).evaluate(program(source, step, &told)?)));
        }
        for (step, told, evaluation) in running {
            let result = serde_json::to_value(evaluation.await?)?;
            expected::holds(&result, &told, &[], step.get("expect").ok_or("nothing is expected")?).await?;
        }
        Ok(())
    }

    async fn check(&self, source: &str, step: &Value, expect: &Value) -> Result<(), Fault> {
        let mut params = CheckParams { source: Cow::Borrowed(source), ..CheckParams::default() };
        for (name, value) in step.get("options").and_then(Value::as_object).unwrap_or(&Map::new()) {
            match name.as_str() {
                "form" => params.form = set(value)?,
                "language" => params.language = set(value)?,
                _ => return Err(format!("the option {name} of check has no implementation here").into()),
            }
        }
        let found = self.client(step).check(&params).await?;
        expected::has(&serde_json::to_value(&found)?, expect, "check")
    }

    async fn types(&self, step: &Value, expect: &Value) -> Result<(), Fault> {
        let types = self.client(step).types(None, &functions(step, &Arc::new(Told::default()))?).await?;
        for (name, wanted) in expect.as_object().ok_or("types expects something")? {
            match name.as_str() {
                "declarations" => expected::contains(&types.declarations, wanted)?,
                "tool" => expected::contains(&types.tool.description, wanted)?,
                "toolName" => expected::has(&json!(types.tool.name), wanted, "the tool's name")?,
                _ => return Err(format!("the expectation {name} has no implementation here").into()),
            }
        }
        Ok(())
    }

    /// Whether a status is as expected; the id of its evaluation.
    async fn status(&self, status: Result<EvaluationStatus, Error>, expect: &Value) -> Result<Option<String>, Fault> {
        if let (Err(fault), Some(refused)) = (&status, expect.get("refused")) {
            return expected::is_refusal(fault, refused).map(|()| None);
        }
        let status = status?;
        let told = serde_json::to_value(&status)?;
        for (name, wanted) in expect.as_object().ok_or("a status is expected")? {
            match name.as_str() {
                "state" if wanted.as_array().is_some_and(|states| states.contains(&told["state"])) => {}
                "result" => expected::holds(&told["result"], &Told::default(), &[], wanted).await?,
                "sameAs" if Some(Some(&status.evaluation)) == self.ids.get(set::<usize>(wanted)?).map(Option::as_ref) => {}
                _ => return Err(format!("{name} is not {wanted}, or has no implementation here: {told}").into()),
            }
        }
        let running = told["state"] == "running";
        if status.result.is_none() != running || status.ended_ms.is_none() != running || status.started_ms == 0 {
            return Err(format!("a status that contradicts itself: {told}").into());
        }
        Ok(Some(status.evaluation))
    }
}

async fn vm(client: &Client, wanted: Option<&Value>) -> Result<Option<Vm>, Fault> {
    match wanted {
        Some(wanted) => Ok(Some(client.create_vm(vm_options(wanted)?).await?)),
        None => Ok(None),
    }
}

async fn runs(behaviour: &Value, brigd: &Brigd) -> Result<(), Fault> {
    let members = behaviour.as_object().ok_or("a behaviour is an object")?;
    if let Some(odd) = members.keys().find(|name| !["name", "steps", "vm", "other", "sdks", "why"].contains(&name.as_str())) {
        return Err(format!("the member {odd} has no implementation here").into());
    }
    let (one, another) = (Client::connect(brigd.socket()).await?, Client::connect(brigd.socket()).await?);
    let (vm, other) = (vm(&one, behaviour.get("vm")).await?, vm(&one, behaviour.get("other")).await?);
    let mut run = Run { one, another, vm, other, gone: None, detached: None, ids: Vec::new() };
    for (index, step) in behaviour["steps"].as_array().ok_or("a behaviour has steps")?.iter().enumerate() {
        let id = run.take(step).await.map_err(|fault| format!("step {index} ({step:.300}): {fault}"))?;
        run.ids.push(id);
    }
    Ok(())
}

#[tokio::test]
async fn the_rust_client_does_what_every_sdk_does() {
    let brigd = Brigd::start();
    let all = behaviours();
    let (mut ran, mut skipped, mut failed) = (0, 0, Vec::new());
    for behaviour in &all {
        let name = text(behaviour, "name").expect("a behaviour has a name");
        if behaviour.get("sdks").and_then(Value::as_array).is_some_and(|sdks| !sdks.contains(&json!("rust"))) {
            assert!(behaviour.get("why").is_some(), "{name} does not say why it is not for all");
            skipped += 1;
            continue;
        }
        let done = tokio::time::timeout(DEADLINE, runs(behaviour, &brigd)).await;
        match done.unwrap_or_else(|_| Err(format!("not within {DEADLINE:?}").into())) {
            Ok(()) => ran += 1,
            Err(fault) => failed.push(format!("{name}: {fault}")),
        }
    }
    assert!(failed.is_empty(), "{} of {} behaviours:\n{}", failed.len(), all.len(), failed.join("\n"));
    assert!(ran >= 40 && ran + skipped == all.len(), "{ran} of {} ran", all.len());
}
