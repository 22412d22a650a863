//! Questions among the requests of a client that need no worker, but may take time: what has
//! to be looked through, and what is waited for.
//!
//! Owns that each is one in flight like any other, and that its answer is counted while it
//! waits for the client to read. Never judges: [`crate::api::judged`] does, off the
//! runtime's threads.

use super::{Requests, no_room};
use crate::api::functions::wait;
use crate::api::judged::{self, Judged};
use crate::evaluation::Stop;
use brig_protocol::rpc::{self, Id};
use serde_json::value::RawValue;
use std::sync::Arc;

impl Requests {
    /// Starts finding the answer.
    pub(super) fn judge(&mut self, id: Id, asked: Judged, params: Option<&RawValue>) {
        let text = params.map_or("{}", RawValue::get).to_owned();
        let mut held = self.service.budget.part(self.peer.uid);
        let grant = match self.grant() {
            Ok(_) if !held.resize(text.len()) => return self.refuse(Some(&id), &no_room()),
            Ok(grant) => grant,
            Err(data) => return self.refuse(Some(&id), &data),
        };
        self.in_flight.insert(id.clone(), Arc::new(Stop::default()));
        let (service, outbox, uid) = (Arc::clone(&self.service), Arc::clone(&self.outbox), self.peer.uid);
        self.running.push(Box::pin(async move {
            // Who does not read its answers gets no more made.
            outbox.room().await;
            let judged = judged::answer(&service, asked, (grant, uid), &id, text).await;
            // The text is gone by now: its room is the answer's.
            let judged = judged.and_then(|line| if held.resize(line.len()) { Ok(line) } else { Err(no_room()) });
            let line = judged.unwrap_or_else(|data| {
                service.metrics.refused.count(data.code);
                rpc::error(Some(&id), &data)
            });
            outbox.send_when_room(|| line).await;
            drop(held);
            id
        }));
    }

    /// Waits until what may be called has changed.
    pub(super) fn wait_for_changes(&mut self, id: Id, params: Option<&RawValue>) {
        if let Err(data) = self.grant() {
            return self.refuse(Some(&id), &data);
        }
        let text = params.map_or("{}", RawValue::get).to_owned();
        let mut held = self.service.budget.part(self.peer.uid);
        if !held.resize(text.len()) {
            return self.refuse(Some(&id), &no_room());
        }
        let stop = Arc::new(Stop::default());
        self.in_flight.insert(id.clone(), Arc::clone(&stop));
        let (service, outbox) = (Arc::clone(&self.service), Arc::clone(&self.outbox));
        self.running.push(Box::pin(async move {
            let line = match wait::wait(&service, &text, &stop).await {
                Ok(changed) => rpc::result(&id, &changed),
                Err(data) => {
                    service.metrics.refused.count(data.code);
                    rpc::error(Some(&id), &data)
                }
            };
            outbox.send_when_room(|| line).await;
            drop(held);
            id
        }));
    }
}
