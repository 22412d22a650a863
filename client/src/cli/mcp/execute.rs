//! One program that a model sent.
//!
//! Owns the way from a tool call to an evaluation: its progress, and its cancellation.
//! Never words a result: [`super::report`] does.

use brig::{Client, Error, Evaluate, EvaluateResult, HostFunctions, Permissions, RequestedLimits};
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::sync::mpsc;

/// Most events that wait to be told; what is over it is not told, and the result has it.
const WAITING: usize = 256;
/// Longest event, in bytes.
const MESSAGE_BYTES: usize = 1_000;

/// What holds for every program.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) timeout: Option<Duration>,
    pub(super) limits: RequestedLimits,
    pub(super) time_zone: Option<String>,
}

/// A program, as the model sent it.
pub(super) struct Program {
    pub(super) code: String,
    pub(super) inputs: Option<Map<String, Value>>,
}

/// Runs a program; a request that is cancelled ends it, and what it did until then is
/// still awaited.
pub(super) async fn execute(
    client: &Client,
    (functions, permissions): (&HostFunctions, Option<Permissions<'static>>),
    settings: &Settings,
    program: Program,
    context: &RequestContext<RoleServer>,
) -> Result<EvaluateResult, Error> {
    let mut request = Evaluate::new(program.code).host_functions(functions.clone()).limits(settings.limits);
    if let Some(inputs) = program.inputs {
        request = request.inputs(inputs);
    }
    if let Some(time) = settings.timeout {
        request = request.timeout(time);
    }
    if let Some(zone) = &settings.time_zone {
        request = request.time_zone(zone);
    }
    if let Some(permissions) = permissions {
        request = request.permissions(permissions);
    }
    let (request, telling) = match context.meta.get_progress_token() {
        Some(token) => {
            let (request, events) = told(request);
            (request, Some(tokio::spawn(tell(events, token, context.peer.clone()))))
        }
        None => (request, None),
    };
    let mut evaluation = client.evaluate(request);
    let canceller = evaluation.canceller();
    let answer = tokio::select! {
        answer = &mut evaluation => answer,
        () = context.ct.cancelled() => {
            canceller.cancel();
            evaluation.await
        }
    };
    // Progress comes before the answer or not at all.
    if let Some(telling) = telling {
        telling.await.ok();
    }
    answer
}

/// The request with listeners for what its caller may see happen.
fn told(request: Evaluate) -> (Evaluate, mpsc::Receiver<String>) {
    let (sender, events) = mpsc::channel(WAITING);
    let output = sender.clone();
    let request = request
        .on_output(move |note| {
            for line in note.text.lines().filter(|line| !line.is_empty()) {
                output.try_send(brig::protocol::escape::escaped(line, MESSAGE_BYTES)).ok();
            }
        })
        .on_call(move |call| {
            sender.try_send(format!("calls {}", call.function())).ok();
        });
    (request, events)
}

/// Tells events one by one, until the evaluation has let go of its listeners.
async fn tell(mut events: mpsc::Receiver<String>, token: ProgressToken, peer: Peer<RoleServer>) {
    let mut count = 0.0;
    while let Some(message) = events.recv().await {
        count += 1.0;
        let note = ProgressNotificationParam::new(token.clone(), count).with_message(message);
        if peer.notify_progress(note).await.is_err() {
            return;
        }
    }
}
