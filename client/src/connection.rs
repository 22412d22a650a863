//! One connection to brigd: lines out, lines in, who waits for what.
//!
//! Owns the socket, the table of requests in flight and the calls that handlers are
//! answering. Never looks into a value, and never keeps more of an incoming line than
//! [`ANSWER_LINE_BYTES`].

use crate::embedded::PrivateServer;
use crate::error::Error;
use crate::functions::{FunctionError, Handlers, HostCall};
use brig_protocol::client::{
    CancelParams, EvaluateParams, HostCallParams, HostCancelParams, OutputNote, StartedNote, Warning, WarningNote, method,
};
use brig_protocol::codes::{CallCode, RPC_METHOD_NOT_FOUND, RequestCode};
use brig_protocol::json::{self, Bounds};
use brig_protocol::limits;
use brig_protocol::line::{Line, LineDecoder};
use brig_protocol::rpc::{self, ErrorData, ErrorObject, Id, Message};
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

/// Longest line taken from brigd, in bytes: a value and two console streams at their
/// highest limits, every byte of the consoles escaped to six.
pub(crate) const ANSWER_LINE_BYTES: usize = 256 * 1024 * 1024;
/// What an answer may hold: a value at its limits, and the calls and warnings around it.
const ANSWER_BOUNDS: Bounds = Bounds { depth: Bounds::ENVELOPE.depth + 8, nodes: 2 * limits::JSON_NODES };
/// What one read takes at most.
const READ_BYTES: usize = 64 * 1024;

type OutputListener = Arc<dyn Fn(&OutputNote) + Send + Sync>;
type WarningListener = Arc<dyn Fn(&Warning) + Send + Sync>;

/// What a request offers to its evaluation while that runs.
#[derive(Clone, Default)]
pub(crate) struct Offer {
    pub(crate) handlers: Handlers,
    pub(crate) on_output: Option<OutputListener>,
    pub(crate) on_warning: Option<WarningListener>,
    pub(crate) ended: CancellationToken,
}

impl Offer {
    /// Whether brigd may ask or tell anything while the evaluation runs.
    fn is_empty(&self) -> bool {
        self.handlers.is_empty() && self.on_output.is_none() && self.on_warning.is_none()
    }
}

struct Pending {
    answer: oneshot::Sender<Result<Box<RawValue>, Error>>,
    offer: Option<Arc<Offer>>,
    /// Whether brigd was asked to tell the id of the evaluation first.
    announced: bool,
    evaluation: Option<String>,
}

impl Pending {
    /// Whether an evaluation that nobody knows may be this one. There is at most one at
    /// a time: while there is, further evaluations have themselves announced.
    fn is_unnamed(&self) -> bool {
        self.offer.is_some() && !self.announced && self.evaluation.is_none()
    }
}

#[derive(Default)]
struct Table {
    last_id: i64,
    requests: HashMap<i64, Pending>,
    evaluations: HashMap<String, i64>,
    calls: HashMap<Id, CancellationToken>,
    lost: Option<Error>,
}

impl Table {
    /// Makes room for a request's answer; gives its id, and whether its evaluation has to
    /// be announced.
    fn add(&mut self, answer: oneshot::Sender<Result<Box<RawValue>, Error>>, offer: Option<Offer>) -> Result<(i64, bool), Error> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        self.last_id += 1;
        let offer = offer.filter(|offer| !offer.is_empty()).map(Arc::new);
        let announced = offer.is_some() && self.requests.values().any(Pending::is_unnamed);
        self.requests.insert(self.last_id, Pending { answer, offer, announced, evaluation: None });
        Ok((self.last_id, announced))
    }

    /// The offer of an evaluation. One that was not announced belongs to the only
    /// request that can have begun it.
    fn offer(&mut self, evaluation: &str) -> Option<Arc<Offer>> {
        if let Some(request) = self.evaluations.get(evaluation) {
            return self.requests.get(request).and_then(|pending| pending.offer.clone());
        }
        let request = *self.requests.iter().find(|(_, pending)| pending.is_unnamed())?.0;
        self.name(request, evaluation);
        self.requests.get(&request).and_then(|pending| pending.offer.clone())
    }

    fn name(&mut self, request: i64, evaluation: &str) {
        if let Some(pending) = self.requests.get_mut(&request) {
            pending.evaluation = Some(evaluation.to_owned());
            self.evaluations.insert(evaluation.to_owned(), request);
        }
    }

    /// Ends what an evaluation offers; says whether it was still running.
    fn abandon(&self, request: i64) -> bool {
        let pending = self.requests.get(&request);
        if let Some(offer) = pending.and_then(|pending| pending.offer.as_ref()) {
            offer.ended.cancel();
        }
        pending.is_some()
    }

    fn remove(&mut self, request: i64) -> Option<Pending> {
        let pending = self.requests.remove(&request)?;
        if let Some(evaluation) = &pending.evaluation {
            self.evaluations.remove(evaluation);
        }
        if let Some(offer) = &pending.offer {
            offer.ended.cancel();
        }
        Some(pending)
    }
}

/// What the socket did not take yet. Bounded by what waits for an answer: each request
/// and each call puts at most one line here.
#[derive(Default)]
struct Unsent {
    bytes: Vec<u8>,
    written: usize,
}

impl Unsent {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.written..).unwrap_or_default()
    }

    fn advance(&mut self, written: usize) {
        self.written += written;
        if self.written >= self.bytes.len() {
            *self = Self::default();
        }
    }
}

/// The part of a connection that its tasks share.
pub(crate) struct Wire {
    stream: UnixStream,
    unsent: Mutex<Unsent>,
    more: Notify,
    table: Mutex<Table>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while one of these was held left it as it was: every change is one step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wire {
    /// Sends a line: at once when the socket takes it, by the writer task otherwise.
    fn send(&self, line: &[u8]) {
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
    fn read_to_the_end(&self) {
        rustix::net::shutdown(&self.stream, rustix::net::Shutdown::Read).ok();
    }

    /// Ends everything that waits, with the same reason. The first reason stands.
    fn lose(&self, reason: &Error) {
        let (waiting, calls) = {
            let mut table = lock(&self.table);
            let reason = table.lost.get_or_insert_with(|| reason.clone()).clone();
            table.evaluations.clear();
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

    fn take_line(self: &Arc<Self>, line: &[u8]) -> Result<(), Error> {
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
        let Some(pending) = lock(&self.table).remove(*request) else { return };
        let outcome = outcome.map(RawValue::to_owned).map_err(|error| refusal(&error));
        pending.answer.send(outcome).ok();
    }

    fn refuse(&self, id: &Id, asked: &str) {
        let message = format!("a client answers {} only, not {:?}", method::HOST_CALL, brig_protocol::escape::escaped(asked, 100));
        let data = ErrorData::new(RequestCode::MethodNotFound, message);
        debug_assert_eq!(data.code.rpc_number(), RPC_METHOD_NOT_FOUND);
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
            // A newer brigd may tell more.
            _ => {}
        }
        Ok(())
    }

    fn host_call(self: &Arc<Self>, id: Id, params: Option<&RawValue>) -> Result<(), Error> {
        let params: HostCallParams<'_> = read_params(method::HOST_CALL, params)?;
        let mut table = lock(&self.table);
        let Some(offer) = table.offer(&params.evaluation) else {
            drop(table);
            let failure = FunctionError::new(CallCode::Cancelled.as_str(), "this client runs no such evaluation");
            self.send(&answer_line(&id, Err(failure)));
            return Ok(());
        };
        let cancelled = offer.ended.child_token();
        table.calls.insert(id.clone(), cancelled.clone());
        drop(table);
        let call = HostCall {
            evaluation: params.evaluation.into_owned(),
            call: params.call,
            function: params.function.into_owned(),
            idempotency_key: params.idempotency_key.into_owned(),
            deadline: Duration::from_millis(params.deadline_ms),
            cancelled,
        };
        let answering = Answering { wire: Arc::clone(self), id, answered: false };
        tokio::spawn(run_call(answering, offer, params.input.to_owned(), call));
        Ok(())
    }
}

async fn run_call(mut answering: Answering, offer: Arc<Offer>, input: Box<RawValue>, call: HostCall) {
    let cancelled = call.cancelled.clone();
    let work = async {
        let unknown = FunctionError::new(CallCode::UnknownFunction.as_str(), format!("{} is not offered here", call.function));
        match offer.handlers.start(input, call) {
            Some(running) => running.await,
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
struct Answering {
    wire: Arc<Wire>,
    id: Id,
    answered: bool,
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
fn answer_line(id: &Id, outcome: Result<Box<RawValue>, FunctionError>) -> Vec<u8> {
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
    rpc::failure(id, &message, Some(&brig_protocol::client::CallFailure { name: failure.name, code: failure.code, data: None }))
}

/// Whether brigd would take this line.
fn check_line(line: &[u8]) -> Result<(), String> {
    if line.len() > limits::REQUEST_LINE_BYTES {
        return Err(format!("it has {} bytes with its envelope; one line has at most {}", line.len(), limits::REQUEST_LINE_BYTES));
    }
    json::count(line, Bounds::ENVELOPE).map(drop).map_err(|fault| format!("it is {fault}"))
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

async fn read_lines(wire: Arc<Wire>) {
    let mut decoder = LineDecoder::new(ANSWER_LINE_BYTES);
    let mut buffer = vec![0; READ_BYTES];
    let reason = loop {
        match read_some(&wire, &mut buffer).await {
            Ok(0) => break Error::ConnectionLost("brigd closed it".to_owned()),
            Ok(length) => decoder.feed(buffer.get(..length).unwrap_or_default()),
            Err(fault) => break Error::ConnectionLost(fault.to_string()),
        }
        if let Err(fault) = take_lines(&wire, &mut decoder) {
            break fault;
        }
    };
    wire.lose(&reason);
}

fn take_lines(wire: &Arc<Wire>, decoder: &mut LineDecoder) -> Result<(), Error> {
    while let Some(line) = decoder.next_line() {
        match line {
            Line::Text(text) if text.is_empty() => {}
            Line::Text(text) => wire.take_line(&text)?,
            Line::TooLong => return Err(Error::Protocol(format!("a line has more than {ANSWER_LINE_BYTES} bytes"))),
        }
    }
    Ok(())
}

async fn read_some(wire: &Wire, buffer: &mut [u8]) -> std::io::Result<usize> {
    loop {
        wire.stream.readable().await?;
        match wire.stream.try_read(buffer) {
            Err(fault) if fault.kind() == std::io::ErrorKind::WouldBlock => {}
            other => return other,
        }
    }
}

async fn write_unsent(wire: Arc<Wire>) {
    loop {
        wire.more.notified().await;
        while !lock(&wire.unsent).is_empty() {
            if write_some(&wire).await.is_err() {
                return wire.read_to_the_end();
            }
        }
    }
}

async fn write_some(wire: &Wire) -> std::io::Result<()> {
    wire.stream.writable().await?;
    let mut unsent = lock(&wire.unsent);
    match wire.stream.try_write(unsent.rest()) {
        Ok(written) => {
            unsent.advance(written);
            Ok(())
        }
        Err(fault) if fault.kind() == std::io::ErrorKind::WouldBlock => Ok(()),
        Err(fault) => Err(fault),
    }
}

/// A connection with its tasks; the last owner's drop ends all of it.
pub(crate) struct Connection {
    wire: Arc<Wire>,
    tasks: [AbortHandle; 2],
    server: Mutex<Option<PrivateServer>>,
}

impl Connection {
    pub(crate) async fn open(path: &Path) -> Result<Self, Error> {
        let stream =
            UnixStream::connect(path).await.map_err(|fault| Error::Connect { path: path.to_owned(), reason: fault.to_string() })?;
        let wire =
            Arc::new(Wire { stream, unsent: Mutex::new(Unsent::default()), more: Notify::new(), table: Mutex::new(Table::default()) });
        let tasks =
            [tokio::spawn(read_lines(Arc::clone(&wire))).abort_handle(), tokio::spawn(write_unsent(Arc::clone(&wire))).abort_handle()];
        Ok(Self { wire, tasks, server: Mutex::new(None) })
    }

    /// Ties the life of a private brigd to this connection.
    pub(crate) fn own(&self, server: PrivateServer) {
        *lock(&self.server) = Some(server);
    }

    pub(crate) fn release_server(&self) -> Option<PrivateServer> {
        lock(&self.server).take()
    }

    pub(crate) fn hang_up(&self) {
        self.wire.lose(&Error::ConnectionLost("this client closed it".to_owned()));
        self.tasks.iter().for_each(AbortHandle::abort);
    }

    /// Sends a request, and gives a ticket for its answer.
    pub(crate) fn request(self: &Arc<Self>, method: &str, params: &impl Serialize) -> Result<Ticket, Error> {
        let (ticket, _) = self.ticket(None)?;
        ticket.send(method, params)
    }

    /// Sends an evaluation, and gives a ticket for its answer.
    pub(crate) fn evaluate(self: &Arc<Self>, mut params: EvaluateParams<'_>, offer: Offer) -> Result<Ticket, Error> {
        let (mut ticket, announced) = self.ticket(Some(offer))?;
        params.announce = announced;
        ticket.cancels = true;
        ticket.send(method::EVALUATE, &params)
    }

    fn ticket(self: &Arc<Self>, offer: Option<Offer>) -> Result<(Ticket, bool), Error> {
        let (sender, answer) = oneshot::channel();
        let (request, announced) = lock(&self.wire.table).add(sender, offer)?;
        Ok((Ticket { connection: Arc::clone(self), request, answer, sent: false, cancels: false, done: false }, announced))
    }

    /// Sends a request whose answer nobody needs.
    pub(crate) fn tell(&self, method: &str, params: &impl Serialize) {
        let request = {
            let mut table = lock(&self.wire.table);
            table.last_id += 1;
            table.last_id
        };
        self.wire.send(&rpc::request(&Id::Number(request), method, params));
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.hang_up();
    }
}

/// The right to one answer. Dropped before it came, the request is forgotten, and an
/// evaluation is cancelled.
pub(crate) struct Ticket {
    connection: Arc<Connection>,
    request: i64,
    answer: oneshot::Receiver<Result<Box<RawValue>, Error>>,
    sent: bool,
    cancels: bool,
    done: bool,
}

impl Ticket {
    /// Sends the request; one that brigd would not take is dropped instead.
    fn send(mut self, method: &str, params: &impl Serialize) -> Result<Self, Error> {
        let line = rpc::request(&Id::Number(self.request), method, params);
        check_line(&line).map_err(|why| Error::Request(format!("the request can not be sent: {why}")))?;
        self.sent = true;
        self.connection.wire.send(&line);
        Ok(self)
    }

    pub(crate) fn canceller(&self) -> Canceller {
        Canceller { wire: Arc::downgrade(&self.connection.wire), request: self.request }
    }
}

impl Future for Ticket {
    type Output = Result<Box<RawValue>, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = Pin::new(&mut self.answer).poll(context);
        answer.map(|answer| {
            self.done = true;
            answer.unwrap_or_else(|_| Err(Error::ConnectionLost("the runtime of this client ended".to_owned())))
        })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let mut table = lock(&self.connection.wire.table);
        if !(self.sent && self.cancels) {
            drop(table.remove(self.request));
            return;
        }
        // It stays known until brigd has answered: a call of its that is on its way must
        // not be taken for that of another evaluation.
        let running = table.abandon(self.request);
        drop(table);
        if running {
            self.connection.wire.send(&cancel_line(self.request));
        }
    }
}

fn cancel_line(request: i64) -> Vec<u8> {
    rpc::notification(method::CANCEL, &CancelParams { id: Some(Id::Number(request)), evaluation: None })
}

/// Ends one evaluation from elsewhere. Its future then gives the result so far, with
/// outcome `cancelled`.
#[derive(Clone)]
pub struct Canceller {
    wire: Weak<Wire>,
    request: i64,
}

impl std::fmt::Debug for Canceller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Canceller").field("request", &self.request).finish_non_exhaustive()
    }
}

impl Canceller {
    pub(crate) const fn none() -> Self {
        Self { wire: Weak::new(), request: 0 }
    }

    /// Asks brigd to end the evaluation. Does nothing when it has ended.
    pub fn cancel(&self) {
        let Some(wire) = self.wire.upgrade() else { return };
        let running = lock(&wire.table).requests.contains_key(&self.request);
        if running {
            wire.send(&cancel_line(self.request));
        }
    }
}
