//! The socket of one connection, and what its lines say.
//!
//! Owns reading and writing envelopes. Never looks into a value.

use super::answering::{Answering, answer_line, run_call};
use super::lock;
use super::table::Table;
use crate::error::Error;
use crate::functions::{FunctionError, HostCall};
use brig_protocol::client::{
    ApprovalNote, HostCallParams, HostCancelParams, OutputNote, StartedNote, VmDisposeParams, WarningNote, method,
};
use brig_protocol::codes::{CallCode, RequestCode};
use brig_protocol::json::Bounds;
use brig_protocol::limits;
use brig_protocol::rpc::{self, ErrorData, ErrorObject, Id, Message};
use serde_json::value::RawValue;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// What an answer may hold: a value at its limits, and the calls and warnings around it.
const ANSWER_BOUNDS: Bounds = Bounds { depth: Bounds::ENVELOPE.depth + 8, nodes: 2 * limits::JSON_NODES };

/// What the socket did not take yet. Bounded by what waits for an answer: each request
/// and each call puts at most one line here.
#[derive(Default)]
pub(super) struct Unsent {
    pub(super) bytes: Vec<u8>,
    written: usize,
}

impl Unsent {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn rest(&self) -> &[u8] {
        self.bytes.get(self.written..).unwrap_or_default()
    }

    pub(super) fn advance(&mut self, written: usize) {
        self.written += written;
        if self.written >= self.bytes.len() {
            *self = Self::default();
        }
    }
}

/// The part of a connection that its tasks share.
pub(crate) struct Wire {
    pub(super) stream: UnixStream,
    pub(super) unsent: Mutex<Unsent>,
    pub(super) more: Notify,
    pub(super) table: Mutex<Table>,
    /// Ends with the connection.
    pub(super) over: CancellationToken,
}

impl Wire {
    /// Sends a line: at once when the socket takes it, by the writer task otherwise.
    pub(super) fn send(&self, line: &[u8]) {
        let mut unsent = lock(&self.unsent);
        let mut rest = line;
        if unsent.is_empty() {
            match self.stream.try_write(line) {
                Ok(written) => rest = line.get(written..).unwrap_or_default(),
                Err(fault) if fault.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return self.read_to_the_end(),
            }
        }
        if !rest.is_empty() {
            unsent.bytes.extend_from_slice(rest);
            drop(unsent);
            self.more.notify_one();
        }
    }

    /// Nothing can be written any more. What brigd said before that may still be there
    /// to be read, and says why; after it the reader finds the end.
    pub(super) fn read_to_the_end(&self) {
        rustix::net::shutdown(&self.stream, rustix::net::Shutdown::Read).ok();
    }

    /// Ends everything that waits, with the same reason. The first reason stands.
    pub(super) fn lose(&self, reason: &Error) {
        self.over.cancel();
        let (waiting, calls) = {
            let mut table = lock(&self.table);
            let reason = table.lost.get_or_insert_with(|| reason.clone()).clone();
            table.evaluations.clear();
            table.kept.clear();
            let waiting: Vec<_> = table.requests.drain().map(|(_, pending)| (pending, reason.clone())).collect();
            (waiting, std::mem::take(&mut table.calls))
        };
        // brigd learns at once that nobody waits any more.
        rustix::net::shutdown(&self.stream, rustix::net::Shutdown::Both).ok();
        calls.into_values().for_each(|call| call.cancel());
        for (pending, reason) in waiting {
            if let Some(offer) = &pending.offer {
                offer.ended.cancel();
            }
            pending.answer.send(Err(reason)).ok();
        }
    }

    pub(super) fn take_line(self: &Arc<Self>, line: &[u8]) -> Result<(), Error> {
        match rpc::read_within(line, ANSWER_BOUNDS).map_err(|fault| unread(line, &fault.message))? {
            Message::Response { id, outcome } => self.answered(&id, outcome),
            Message::Request { id, method, params } if method == method::HOST_CALL => self.host_call(id, params)?,
            Message::Request { id, method, .. } => self.refuse(&id, &method),
            Message::Notification { method, params } => self.told(&method, params)?,
        }
        Ok(())
    }

    fn answered(&self, id: &Id, outcome: Result<&RawValue, ErrorObject<'_>>) {
        let Id::Number(request) = id else { return };
        // An answer that nobody waits for any more is that of a dropped request.
        let mut table = lock(&self.table);
        let Some(mut pending) = table.remove(*request) else { return };
        let made = outcome.as_ref().ok().and_then(|answer| table.made(&mut pending, answer));
        drop(table);
        let outcome = outcome.map(RawValue::to_owned).map_err(|error| refusal(&error));
        if pending.answer.send(outcome).is_err()
            && let Some(vm) = made
        {
            self.dispose(&vm);
        }
    }

    /// Has a vm ended that nobody has any more.
    pub(super) fn dispose(&self, vm: &str) {
        lock(&self.table).kept.remove(vm);
        self.send(&rpc::notification(method::VM_DISPOSE, &VmDisposeParams { vm: vm.to_owned() }));
    }

    fn refuse(&self, id: &Id, asked: &str) {
        let message = format!("a client answers {} only, not {:?}", method::HOST_CALL, brig_protocol::escape::escaped(asked, 100));
        let data = ErrorData::new(RequestCode::MethodNotFound, message);
        self.send(&rpc::error(Some(id), &data));
    }

    fn told(&self, told: &str, params: Option<&RawValue>) -> Result<(), Error> {
        match told {
            method::HOST_CANCEL => {
                let note: HostCancelParams = read_params(told, params)?;
                if let Some(call) = lock(&self.table).calls.remove(&note.id) {
                    call.cancel();
                }
            }
            method::EVALUATION_STARTED => {
                let note: StartedNote = read_params(told, params)?;
                if let Id::Number(request) = note.id {
                    lock(&self.table).name(request, &note.evaluation);
                }
            }
            method::EVALUATION_OUTPUT => {
                let note: OutputNote = read_params(told, params)?;
                let listener = lock(&self.table).offer(&note.evaluation).and_then(|offer| offer.on_output.clone());
                if let Some(listener) = listener {
                    listener(&note);
                }
            }
            method::EVALUATION_WARNING => {
                let note: WarningNote = read_params(told, params)?;
                let listener = lock(&self.table).offer(&note.evaluation).and_then(|offer| offer.on_warning.clone());
                if let Some(listener) = listener {
                    listener(&note.warning);
                }
            }
            method::EVALUATION_APPROVAL => {
                let note: ApprovalNote = read_params(told, params)?;
                let listeners = lock(&self.table).approval_listeners(&note);
                listeners.iter().for_each(|listener| listener(&note));
            }
            // A newer brigd may tell more.
            _ => {}
        }
        Ok(())
    }

    fn host_call(self: &Arc<Self>, id: Id, params: Option<&RawValue>) -> Result<(), Error> {
        let params: HostCallParams<'_> = read_params(method::HOST_CALL, params)?;
        let mut table = lock(&self.table);
        let Some(answers) = table.answers(&params) else {
            drop(table);
            let failure = FunctionError::new(CallCode::Cancelled.as_str(), "this client runs no such evaluation");
            self.send(&answer_line(&id, Err(failure)));
            return Ok(());
        };
        table.calls.insert(id.clone(), answers.cancelled.clone());
        drop(table);
        let call = HostCall {
            evaluation: params.evaluation.into_owned(),
            call: params.call,
            function: params.function.into_owned(),
            idempotency_key: params.idempotency_key.into_owned(),
            deadline: Duration::from_millis(params.deadline_ms),
            cancelled: answers.cancelled.clone(),
        };
        let answering = Answering { wire: Arc::clone(self), id, answered: false };
        tokio::spawn(run_call(answering, answers, params.input.to_owned(), call));
        Ok(())
    }
}

fn read_params<'a, T: serde::Deserialize<'a>>(method: &str, params: Option<&'a RawValue>) -> Result<T, Error> {
    let text = params.map_or("{}", RawValue::get);
    serde_json::from_str(text).map_err(|fault| Error::Protocol(format!("params of {method}: {fault}")))
}

fn refusal(error: &ErrorObject<'_>) -> Error {
    match error.data.and_then(|data| serde_json::from_str::<ErrorData>(data.get()).ok()) {
        Some(data) => Error::Refused(Box::new(data)),
        None => Error::Rpc { code: error.code, message: error.message.to_string(), data: error.data.map(|data| data.get().to_owned()) },
    }
}

/// Why a line could not be read. An error without an id is brigd sending this client
/// away before it read anything, or saying that it could not read a line of ours.
fn unread(line: &[u8], fault: &str) -> Error {
    #[derive(serde::Deserialize)]
    struct Unaddressed {
        error: UnaddressedError,
    }
    #[derive(serde::Deserialize)]
    struct UnaddressedError {
        message: String,
        data: Option<ErrorData>,
    }
    use RequestCode::{NotPermitted, Overloaded, QuotaExceeded, ShuttingDown};
    match serde_json::from_slice::<Unaddressed>(line).map(|told| told.error) {
        Ok(UnaddressedError { data: Some(data), .. }) if matches!(data.code, NotPermitted | Overloaded | QuotaExceeded | ShuttingDown) => {
            Error::Refused(Box::new(data))
        }
        Ok(told) => Error::Protocol(format!("brigd could not read a request: {}", told.message)),
        Err(_) => Error::Protocol(fault.to_owned()),
    }
}
