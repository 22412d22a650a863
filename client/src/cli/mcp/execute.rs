//! One program that a model sent.
//!
//! Owns the way from a tool call to an evaluation, and what is told while it runs. Never
//! words a result: [`super::report`] does; never waits for it: [`super::waiting`] does.

use super::waiting::Running;
use brig::protocol::client::ApprovalNote;
use brig::{Client, Evaluate, HostFunctions, Permissions, RequestedLimits};
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
    /// How long a program that waits for a person keeps the model waiting.
    pub(super) pending_after: Duration,
}

/// A program, as the model sent it.
pub(super) struct Program {
    pub(super) code: String,
    pub(super) inputs: Option<Map<String, Value>>,
}

/// Begins a program.
pub(super) fn begin(
    client: &Client,
    (functions, permissions): (&HostFunctions, Option<Permissions<'static>>),
    settings: &Settings,
    program: Program,
    context: &RequestContext<RoleServer>,
) -> Running {
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
    let (asked, approvals) = mpsc::channel(WAITING);
    let (request, events) = match context.meta.get_progress_token() {
        Some(token) => {
            let (sender, events) = mpsc::channel(WAITING);
            (told(request, asked, &sender), Some((events, token)))
        }
        None => {
            let asks = move |note: &ApprovalNote| {
                asked.try_send(note.clone()).ok();
            };
            (request.on_approval(asks), None)
        }
    };
    let telling = events.map(|(events, token)| tokio::spawn(tell(events, token, context.peer.clone())));
    Running::new(client.evaluate(request), approvals, telling)
}

/// The request with listeners for what its caller may see happen.
fn told(request: Evaluate, asked: mpsc::Sender<ApprovalNote>, sender: &mpsc::Sender<String>) -> Evaluate {
    let (output, calls, approvals) = (sender.clone(), sender.clone(), sender.clone());
    request
        .on_output(move |note| {
            for line in note.text.lines().filter(|line| !line.is_empty()) {
                output.try_send(brig::protocol::escape::escaped(line, MESSAGE_BYTES)).ok();
            }
        })
        .on_call(move |call| {
            calls.try_send(format!("calls {}", call.function())).ok();
        })
        .on_approval(move |note| {
            approvals.try_send(format!("{} waits for a person's approval ({})", note.function, note.approval)).ok();
            asked.try_send(note.clone()).ok();
        })
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
