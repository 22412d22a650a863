//! The requests of one client that are in flight.
//!
//! Owns ids, the bound on how many there are, and routing: what a line says goes to a
//! method, to a running evaluation, or to a waiting host call. Every request gets one
//! answer; a notification gets none.

mod answers;
mod judged;

use super::Conversation;
use super::link::Link;
use super::outbox::Outbox;
use crate::api::{self, Method};
use crate::evaluation::{Asked, Parties, Request, Stop, StopCause};
use crate::journal::Keep;
use crate::listener::Peer;
use crate::policy::{Facts, Grant, Live};
use crate::pool::Lease;
use crate::service::Service;
use answers::answer;
use brig_protocol::client::{CancelParams, method};
use brig_protocol::codes::RequestCode;
use brig_protocol::limits::REQUEST_LINE_BYTES;
use brig_protocol::line::Line;
use brig_protocol::rpc::{self, ErrorData, Id, Message};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Who has been let in for longer, and asked for nothing, is idle: an end does not wait for it.
const NEWCOMER: Duration = Duration::from_secs(2);

/// The requests of one client.
pub(super) struct Requests {
    service: Arc<Service>,
    peer: Peer,
    facts: Arc<Facts>,
    connection: u64,
    link: Arc<Link>,
    outbox: Arc<Outbox>,
    in_flight: HashMap<Id, Arc<Stop>>,
    let_in: Instant,
    /// Held until the client says what it came for.
    expected: Option<TaskTrackerToken>,
    running: FuturesUnordered<BoxFuture<'static, Id>>,
}

impl Requests {
    /// None yet.
    pub(super) fn new(service: Arc<Service>, (peer, facts): (Peer, Facts), outbox: Arc<Outbox>, expected: TaskTrackerToken) -> Self {
        let link = Arc::new(Link::new(Arc::clone(&outbox)));
        let connection = service.connection_number();
        Self {
            service,
            facts: Arc::new(facts),
            peer,
            connection,
            link,
            outbox,
            in_flight: HashMap::new(),
            let_in: Instant::now(),
            expected: Some(expected),
            running: FuturesUnordered::new(),
        }
    }

    /// Ends the vms that were made by this connection.
    pub(super) fn end_vms(&self) {
        self.service.vms.end_connection(self.connection);
    }

    fn check_id(&self, id: &Id) -> Result<(), ErrorData> {
        if self.in_flight.contains_key(id) {
            let sentence = "a request with this id is in flight on this connection; its answer comes first";
            return Err(ErrorData::new(RequestCode::DuplicateId, sentence));
        }
        let most = self.service.config.clients.requests_in_flight;
        if self.in_flight.len() >= most {
            let mut data =
                ErrorData::new(RequestCode::TooManyInFlight, format!("this connection has {most} requests in flight; nothing ran"));
            data.setting = Some("clients.requests_in_flight".to_owned());
            data.retry_after_ms = Some(50);
            return Err(data);
        }
        Ok(())
    }

    fn at_once(&self, id: &Id, known: api::AtOnce, params: Option<&RawValue>) {
        let grant = self.service.policy.current().grant(&self.facts);
        // Whoever may do nothing is still told who is here, and who the kernel says asks.
        let permitted = if known == api::AtOnce::Initialize { Ok(grant) } else { self.permitted(grant) };
        let text = params.map_or("{}", RawValue::get);
        match permitted.and_then(|grant| api::answer_at_once(&self.service, (self.peer, &grant), id, known, text)) {
            Ok(line) => self.outbox.reply(line),
            Err(data) => self.refuse(Some(id), &data),
        }
    }

    /// What the policy that holds now says about this client, if it may do anything.
    fn grant(&self) -> Result<Arc<Grant>, ErrorData> {
        self.permitted(self.service.policy.current().grant(&self.facts))
    }

    fn permitted(&self, grant: Arc<Grant>) -> Result<Arc<Grant>, ErrorData> {
        if self.service.revocations.names_principal(&self.facts) {
            let sentence = format!("user {} was revoked by an operator; nothing ran", self.peer.uid);
            return Err(ErrorData::new(RequestCode::NotPermitted, sentence));
        }
        if grant.may_evaluate {
            return Ok(grant);
        }
        let unseen = self.facts.unseen.as_deref().map(|why| format!(" (its groups and unit are not known: {why})")).unwrap_or_default();
        let sentence = format!("user {} may not use this brigd{unseen}; nothing ran", self.peer.uid);
        let mut data = ErrorData::new(RequestCode::NotPermitted, sentence);
        data.setting = Some(grant.admitted_by.to_owned());
        Err(data)
    }

    /// Starts what takes its time.
    fn start(&mut self, id: Id, params: Range<usize>, bytes: Vec<u8>, asked: Asked) {
        self.expected = None;
        let live = Live::follow(&self.service.policy, &self.facts);
        let request = self.permitted(live.grant()).and_then(|grant| Ok((grant, self.request(bytes, params, asked)?)));
        let (grant, request) = match request {
            Ok(request) => request,
            Err(data) => return self.refuse(Some(&id), &data),
        };
        let stop = Arc::new(Stop::default());
        self.in_flight.insert(id.clone(), Arc::clone(&stop));
        let (service, peer, connection) = (Arc::clone(&self.service), self.peer, self.connection);
        let (link, outbox, facts) = (Arc::clone(&self.link), Arc::clone(&self.outbox), Arc::clone(&self.facts));
        let work = self.service.work.token();
        self.running.push(Box::pin(async move {
            let keep = Keep::default();
            let parties = Parties {
                request: &id,
                service: &service,
                peer,
                facts: &facts,
                grant: &grant,
                live: &live,
                connection,
                link: &link,
                outbox: &outbox,
                stop: &stop,
                keep: &keep,
            };
            answer(&id, request, parties).await;
            drop(work);
            id
        }));
    }

    fn request(&self, bytes: Vec<u8>, params: Range<usize>, asked: Asked) -> Result<Request, ErrorData> {
        if !self.service.is_serving() {
            return Err(ErrorData::new(RequestCode::ShuttingDown, "brigd is draining and takes no new work; nothing ran"));
        }
        let mut held = self.service.budget.part(self.peer.uid);
        if !held.resize(bytes.len()) {
            return Err(no_room());
        }
        // It was read as UTF-8 a moment ago.
        let line = String::from_utf8(bytes).map_err(|_| ErrorData::new(RequestCode::ParseError, "the line is not UTF-8"))?;
        Ok(Request::new(line, params, asked, held))
    }

    fn notified(&self, name: &str, params: Option<&RawValue>) {
        if name == method::CANCEL {
            if let Err(data) = self.cancel(params) {
                tracing::debug!(uid = self.peer.uid, message = %data.message, "a cancel without effect");
            }
        } else if name == method::VM_DISPOSE {
            let disposed = self.grant().and_then(|_| api::vm::dispose(&self.service, self.peer, params.map_or("{}", RawValue::get)));
            if let Err(data) = disposed {
                tracing::debug!(uid = self.peer.uid, message = %data.message, "a dispose without effect");
            }
        } else {
            let name = brig_protocol::escape::escaped(name, 100);
            tracing::debug!(uid = self.peer.uid, method = %name, "a notification that means nothing here");
        }
    }

    fn cancel_asked(&self, id: &Id, params: Option<&RawValue>) {
        match self.cancel(params) {
            Ok(()) => self.outbox.reply(rpc::result(id, &serde_json::Map::new())),
            Err(data) => self.refuse(Some(id), &data),
        }
    }

    fn cancel(&self, params: Option<&RawValue>) -> Result<(), ErrorData> {
        let params: CancelParams = api::params::parse(params.map_or("{}", RawValue::get))?;
        let found = match (&params.id, &params.evaluation) {
            (Some(id), None) => self.in_flight.get(id).map(|stop| stop.request(StopCause::Cancelled)).is_some(),
            (None, Some(evaluation)) => self.service.running.cancel(self.peer.uid, evaluation),
            _ => return Err(ErrorData::new(RequestCode::InvalidParams, "params must have one of \"id\" and \"evaluation\"")),
        };
        let sentence = "no such evaluation of this user is running; it may be over already";
        if found { Ok(()) } else { Err(ErrorData::new(RequestCode::EvaluationNotFound, sentence)) }
    }

    fn refuse(&self, id: Option<&Id>, data: &ErrorData) {
        self.service.metrics.refused.count(data.code);
        self.outbox.reply(rpc::error(id, data));
    }
}

impl Conversation for Requests {
    async fn answered(&mut self) -> Option<()> {
        let id = self.running.next().await?;
        self.in_flight.remove(&id);
        Some(())
    }

    fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    fn stop_all(&self, cause: StopCause) {
        for stop in self.in_flight.values() {
            stop.request(cause);
        }
    }

    fn draining(&mut self) {
        if self.let_in.elapsed() > NEWCOMER {
            self.expected = None;
        }
    }

    fn hang_up(&self) {
        self.link.hang_up();
    }

    fn refuse_line(&self, id: Option<Id>) {
        // The answer of one that is in flight is another.
        let id = id.filter(|id| !self.in_flight.contains_key(id));
        self.refuse(id.as_ref(), &no_room());
    }

    fn take(&mut self, line: Line) {
        let bytes = match line {
            Line::TooLong => {
                self.service.metrics.bad_lines.count();
                return self.refuse(None, &too_long());
            }
            Line::Text(bytes) => bytes,
        };
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        match rpc::read(&bytes) {
            Err(fault) => {
                self.service.metrics.bad_lines.count();
                self.refuse(fault.id.as_ref(), &ErrorData::new(fault.code, fault.message));
            }
            Ok(Message::Response { id, outcome }) => {
                if !self.link.answered(&id, outcome) {
                    self.service.metrics.stray_answers.count();
                }
            }
            Ok(Message::Notification { method, params }) => self.notified(&method, params),
            Ok(Message::Request { id, method, params }) => {
                if let Err(data) = self.check_id(&id) {
                    return self.refuse(Some(&id), &data);
                }
                match api::method_named(&method) {
                    Err(data) => self.refuse(Some(&id), &data),
                    Ok(Method::Cancel) => self.cancel_asked(&id, params),
                    Ok(Method::AtOnce(known)) => self.at_once(&id, known, params),
                    Ok(Method::Judged(asked)) => self.judge(id, asked, params),
                    Ok(Method::Evaluate) => self.start(id, range_of(&bytes, params), bytes, Asked::Evaluate),
                    Ok(Method::Check) => self.start(id, range_of(&bytes, params), bytes, Asked::Check),
                    Ok(Method::FunctionsCall) => self.start(id, range_of(&bytes, params), bytes, Asked::FunctionsCall),
                    Ok(Method::EvaluationsGet) => self.start(id, range_of(&bytes, params), bytes, Asked::EvaluationsGet),
                    Ok(Method::EvaluationsWait) => self.start(id, range_of(&bytes, params), bytes, Asked::EvaluationsWait),
                    Ok(Method::FunctionsWait) => self.wait_for_changes(id, params),
                    Ok(Method::VmCreate) => self.start(id, range_of(&bytes, params), bytes, Asked::VmCreate),
                }
            }
        }
    }
}

/// A worker of one evaluation is done.
pub(super) fn retire(lease: Option<Lease>) {
    if let Some(lease) = lease {
        lease.retire();
    }
}

/// Where the params stand in their line.
fn range_of(line: &[u8], params: Option<&RawValue>) -> Range<usize> {
    params.map_or(0..0, |params| {
        let start = params.get().as_ptr().addr().saturating_sub(line.as_ptr().addr());
        start..start + params.get().len()
    })
}

fn too_long() -> ErrorData {
    let mut data = ErrorData::new(RequestCode::LineTooLong, format!("the line is longer than {REQUEST_LINE_BYTES} bytes; it was skipped"));
    data.limit = Some("requestLineBytes".to_owned());
    data
}

fn no_room() -> ErrorData {
    let mut data = ErrorData::new(RequestCode::Overloaded, "this user has as many bytes waiting in brigd as it may; nothing ran");
    data.setting = Some("clients.buffer_bytes".to_owned());
    data.retry_after_ms = Some(500);
    data
}
