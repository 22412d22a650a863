//! The requests of one admin that are in flight.
//!
//! Owns ids and the bound on how many there are. Every request gets one answer; a
//! notification means nothing here.

use super::Speaker;
use super::methods::{self, Method};
use crate::connection::Conversation;
use crate::connection::outbox::Outbox;
use crate::evaluation::StopCause;
use crate::service::Service;
use brig_protocol::codes::RequestCode;
use brig_protocol::line::Line;
use brig_protocol::rpc::{self, ErrorData, Id, Message};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::sync::Arc;

/// Most requests of one connection in flight.
const IN_FLIGHT: usize = 16;
/// Longest line: no method takes more than a few texts.
const LINE_BYTES: usize = 64 * 1024;

/// The requests of one admin.
pub(super) struct Requests {
    service: Arc<Service>,
    speaker: Speaker,
    outbox: Arc<Outbox>,
    in_flight: HashSet<Id>,
    running: FuturesUnordered<BoxFuture<'static, Id>>,
}

impl Requests {
    /// None yet.
    pub(super) fn new(service: Arc<Service>, speaker: Speaker, outbox: Arc<Outbox>) -> Self {
        Self { service, speaker, outbox, in_flight: HashSet::new(), running: FuturesUnordered::new() }
    }

    fn start(&mut self, id: Id, method: &str, params: Option<&RawValue>) {
        let method = match self.check(&id).and_then(|()| methods::method_named(method, self.speaker.role)) {
            Ok(method) => method,
            Err(data) => return self.refuse(Some(&id), &data),
        };
        self.in_flight.insert(id.clone());
        let text = params.map_or("{}", RawValue::get).to_owned();
        let (service, speaker, outbox) = (Arc::clone(&self.service), self.speaker.clone(), Arc::clone(&self.outbox));
        self.running.push(Box::pin(async move {
            outbox.reply(answer(&service, &speaker, &id, method, &text).await);
            id
        }));
    }

    fn check(&self, id: &Id) -> Result<(), ErrorData> {
        if self.in_flight.contains(id) {
            let sentence = "a request with this id is in flight on this connection; its answer comes first";
            return Err(ErrorData::new(RequestCode::DuplicateId, sentence));
        }
        if self.in_flight.len() >= IN_FLIGHT {
            let mut data = ErrorData::new(RequestCode::TooManyInFlight, format!("this connection has {IN_FLIGHT} requests in flight"));
            data.retry_after_ms = Some(50);
            return Err(data);
        }
        Ok(())
    }

    fn refuse(&self, id: Option<&Id>, data: &ErrorData) {
        self.outbox.reply(rpc::error(id, data));
    }
}

async fn answer(service: &Arc<Service>, speaker: &Speaker, id: &Id, method: Method, text: &str) -> Vec<u8> {
    let answered = methods::answer(service, speaker, method, text).await;
    answered.map_or_else(|data| rpc::error(Some(id), &data), |result| rpc::result(id, &result))
}

impl Conversation for Requests {
    fn take(&mut self, line: Line) {
        let bytes = match line {
            Line::Text(bytes) if bytes.len() <= LINE_BYTES => bytes,
            Line::Text(_) | Line::TooLong => {
                let sentence = format!("a line of the admin socket has at most {LINE_BYTES} bytes; it was skipped");
                return self.refuse(None, &ErrorData::new(RequestCode::LineTooLong, sentence));
            }
        };
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        match rpc::read(&bytes) {
            Err(fault) => self.refuse(fault.id.as_ref(), &ErrorData::new(fault.code, fault.message)),
            Ok(Message::Request { id, method, params }) => self.start(id, &method, params),
            Ok(Message::Response { .. } | Message::Notification { .. }) => {
                tracing::debug!(uid = self.speaker.facts.uid, "a line that means nothing on the admin socket");
            }
        }
    }

    fn refuse_line(&self, id: Option<Id>) {
        let id = id.filter(|id| !self.in_flight.contains(id));
        self.refuse(id.as_ref(), &ErrorData::new(RequestCode::Overloaded, "this user has as many bytes waiting in brigd as it may"));
    }

    async fn answered(&mut self) -> Option<()> {
        let id = self.running.next().await?;
        self.in_flight.remove(&id);
        Some(())
    }

    fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    // Nothing runs for an admin: what is asked for is done.
    fn stop_all(&self, _cause: StopCause) {}

    fn hang_up(&self) {}
}
