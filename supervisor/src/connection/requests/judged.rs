//! `policy.explain` among the requests of a client.
//!
//! Owns that it is one in flight like any other: conditions may take time. Never decides.

use super::{Requests, no_room};
use crate::api;
use crate::evaluation::Stop;
use brig_protocol::rpc::{self, Id};
use serde_json::value::RawValue;
use std::sync::Arc;

impl Requests {
    /// Starts saying what would be decided.
    pub(super) fn explain(&mut self, id: Id, params: Option<&RawValue>) {
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
            let line = match api::explain::explain(&service, grant, uid, text).await {
                Ok(said) => rpc::result(&id, &said),
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
