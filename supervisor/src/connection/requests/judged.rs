//! Questions among the requests of a client that need no worker, but may take time: what has
//! to be looked through, and what is waited for.
//!
//! Owns that each is one in flight like any other, and that its answer is counted while it
//! waits for the client to read. Never judges: [`crate::api::judged`] does, off the
//! runtime's threads.

use super::{Requests, no_room};
use crate::api::functions::wait;
use crate::api::judged::{self, Judged};
use crate::connection::budget::Held;
use crate::evaluation::Stop;
use crate::policy::Grant;
use crate::service::Service;
use brig_protocol::rpc::{self, ErrorData, Id};
use serde_json::value::RawValue;
use std::sync::Arc;

/// One that was taken: its text is counted, and it is in flight.
struct Question {
    text: String,
    held: Held,
    grant: Arc<Grant>,
    stop: Arc<Stop>,
}

impl Requests {
    fn question(&mut self, id: &Id, params: Option<&RawValue>) -> Result<Question, ErrorData> {
        let grant = self.grant()?;
        let text = params.map_or("{}", RawValue::get).to_owned();
        let mut held = self.service.budget.part(self.peer.uid);
        if !held.resize(text.len()) {
            return Err(no_room());
        }
        let stop = Arc::new(Stop::default());
        self.in_flight.insert(id.clone(), Arc::clone(&stop));
        Ok(Question { text, held, grant, stop })
    }

    /// Starts finding the answer.
    pub(super) fn judge(&mut self, id: Id, asked: Judged, params: Option<&RawValue>) {
        let Question { text, mut held, grant, .. } = match self.question(&id, params) {
            Ok(question) => question,
            Err(data) => return self.refuse(Some(&id), &data),
        };
        let (service, outbox, uid) = (Arc::clone(&self.service), Arc::clone(&self.outbox), self.peer.uid);
        self.running.push(Box::pin(async move {
            // Who does not read its answers gets no more made.
            outbox.room().await;
            let judged = judged::answer(&service, asked, (grant, uid), &id, text).await;
            // The text is gone by now: its room is the answer's.
            let judged = judged.and_then(|line| if held.resize(line.len()) { Ok(line) } else { Err(no_room()) });
            let line = judged.unwrap_or_else(|data| refusal(&service, &id, &data));
            outbox.send_when_room(|| line).await;
            drop(held);
            id
        }));
    }

    /// Waits until what may be called has changed.
    pub(super) fn wait_for_changes(&mut self, id: Id, params: Option<&RawValue>) {
        let Question { text, held, stop, .. } = match self.question(&id, params) {
            Ok(question) => question,
            Err(data) => return self.refuse(Some(&id), &data),
        };
        let (service, outbox) = (Arc::clone(&self.service), Arc::clone(&self.outbox));
        self.running.push(Box::pin(async move {
            let line = match wait::wait(&service, &text, &stop).await {
                Ok(changed) => rpc::result(&id, &changed),
                Err(data) => refusal(&service, &id, &data),
            };
            outbox.send_when_room(|| line).await;
            drop(held);
            id
        }));
    }
}

fn refusal(service: &Service, id: &Id, data: &ErrorData) -> Vec<u8> {
    service.metrics.refused.count(data.code);
    rpc::error(Some(id), data)
}
