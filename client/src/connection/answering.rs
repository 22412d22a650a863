//! Answering `host.call`: the client's half of a host call.
//!
//! Owns one run of one handler, and that it is answered however it ends. Never decides
//! whether a call is permitted: brigd did.

use super::lock;
use super::table::CallListener;
use super::wire::Wire;
use crate::functions::{FunctionError, Handler, HostCall};
use brig_protocol::client::CallFailure;
use brig_protocol::codes::CallCode;
use brig_protocol::json::{self, Bounds};
use brig_protocol::limits;
use brig_protocol::rpc::{self, Id};
use serde_json::value::RawValue;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Who answers a call, and who is told of it.
pub(super) struct Answers {
    /// None: no such function is offered.
    pub(super) handler: Option<Handler>,
    pub(super) on_call: Option<CallListener>,
    /// Ends with whatever the call is for.
    pub(super) cancelled: CancellationToken,
}

pub(super) async fn run_call(mut answering: Answering, answers: Answers, input: Box<RawValue>, call: HostCall) {
    let cancelled = call.cancelled.clone();
    if let Some(listener) = &answers.on_call {
        listener(&call);
    }
    let work = async {
        let unknown = FunctionError::new(CallCode::UnknownFunction.as_str(), format!("{} is not offered here", call.function));
        match answers.handler {
            Some(handler) => handler(input, call).await,
            None => Err(unknown),
        }
    };
    let outcome = tokio::select! {
        biased;
        () = cancelled.cancelled() => Err(FunctionError::new(CallCode::Cancelled.as_str(), "the call was cancelled")),
        outcome = work => outcome,
    };
    answering.answer(outcome);
}

/// Sees to it that a call is answered, also when its handler panics.
pub(super) struct Answering {
    pub(super) wire: Arc<Wire>,
    pub(super) id: Id,
    pub(super) answered: bool,
}

impl Answering {
    fn answer(&mut self, outcome: Result<Box<RawValue>, FunctionError>) {
        self.answered = true;
        let line = answer_line(&self.id, outcome);
        lock(&self.wire.table).calls.remove(&self.id);
        self.wire.send(&line);
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if !self.answered {
            self.answer(Err(FunctionError::message("the function's handler ended without an answer")));
        }
    }
}

/// The line that answers a call; an answer that brigd could not read becomes a failure.
pub(super) fn answer_line(id: &Id, outcome: Result<Box<RawValue>, FunctionError>) -> Vec<u8> {
    let failure = match outcome {
        Ok(output) => {
            let line = rpc::result(id, &output);
            match check_line(&line) {
                Ok(()) => return line,
                Err(why) => FunctionError::new(CallCode::OutputTooLarge.as_str(), format!("the function's output is too large: {why}")),
            }
        }
        Err(failure) => failure,
    };
    let line = rpc::failure(id, &failure.message, failure.to_wire().as_ref());
    if check_line(&line).is_ok() {
        return line;
    }
    let message = failure.message.chars().take(1000).collect::<String>();
    rpc::failure(id, &message, Some(&CallFailure { name: failure.name, code: failure.code, data: None }))
}

/// Whether brigd would take this line.
pub(super) fn check_line(line: &[u8]) -> Result<(), String> {
    if line.len() > limits::REQUEST_LINE_BYTES {
        return Err(format!("it has {} bytes with its envelope; one line has at most {}", line.len(), limits::REQUEST_LINE_BYTES));
    }
    json::count(line, Bounds::ENVELOPE).map(drop).map_err(|fault| format!("it is {fault}"))
}
