//! Who waits for what on one connection.
//!
//! Owns the requests in flight, the evaluations they became, and the calls that are
//! being answered. Never does I/O.

use crate::error::Error;
use crate::functions::{Handlers, HostCall};
use brig_protocol::client::{ApprovalNote, CALL_PREFIX, OutputNote, Warning};
use brig_protocol::rpc::Id;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

type OutputListener = Arc<dyn Fn(&OutputNote) + Send + Sync>;
type CallListener = Arc<dyn Fn(&HostCall) + Send + Sync>;
/// Is told of a call that waits for a person.
pub(crate) type ApprovalListener = Arc<dyn Fn(&ApprovalNote) + Send + Sync>;
type WarningListener = Arc<dyn Fn(&Warning) + Send + Sync>;

/// What a request offers to its evaluation while that runs.
#[derive(Clone, Default)]
pub(crate) struct Offer {
    pub(crate) handlers: Handlers,
    pub(crate) on_output: Option<OutputListener>,
    pub(crate) on_warning: Option<WarningListener>,
    pub(crate) on_approval: Option<ApprovalListener>,
    pub(crate) on_call: Option<CallListener>,
    pub(crate) ended: CancellationToken,
}

impl Offer {
    /// Whether brigd may ask or tell anything while the evaluation runs.
    fn is_empty(&self) -> bool {
        self.handlers.is_empty() && self.on_output.is_none() && self.on_warning.is_none() && self.on_approval.is_none()
    }
}

pub(super) struct Pending {
    pub(super) answer: oneshot::Sender<Result<Box<RawValue>, Error>>,
    pub(super) offer: Option<Arc<Offer>>,
    /// For a call without a program: its function, and who is told that it waits.
    asks: Option<(String, ApprovalListener)>,
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
pub(super) struct Table {
    pub(super) last_id: i64,
    pub(super) requests: HashMap<i64, Pending>,
    pub(super) evaluations: HashMap<String, i64>,
    pub(super) calls: HashMap<Id, CancellationToken>,
    /// Of the vms that were made here; another connection may evaluate in them.
    pub(super) kept: HashMap<String, Arc<Offer>>,
    /// Whether evaluations of others may ask something here.
    pub(super) makes_vms: bool,
    pub(super) lost: Option<Error>,
}

impl Table {
    /// Makes room for a request's answer; gives its id, and whether its evaluation has to
    /// be announced.
    pub(super) fn add(
        &mut self,
        answer: oneshot::Sender<Result<Box<RawValue>, Error>>,
        offer: Option<Offer>,
    ) -> Result<(i64, bool), Error> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        self.last_id += 1;
        let offer = offer.filter(|offer| !offer.is_empty()).map(Arc::new);
        let announced = offer.is_some() && (self.makes_vms || self.requests.values().any(Pending::is_unnamed));
        self.requests.insert(self.last_id, Pending { answer, offer, asks: None, announced, evaluation: None });
        Ok((self.last_id, announced))
    }

    /// The offer of an evaluation. One that was not announced belongs to the only
    /// request that can have begun it.
    pub(super) fn offer(&mut self, evaluation: &str) -> Option<Arc<Offer>> {
        if let Some(request) = self.evaluations.get(evaluation) {
            return self.requests.get(request).and_then(|pending| pending.offer.clone());
        }
        let request = *self.requests.iter().find(|(_, pending)| pending.is_unnamed())?.0;
        self.name(request, evaluation);
        self.requests.get(&request).and_then(|pending| pending.offer.clone())
    }

    /// What answers a call of an evaluation that is none of this client's: the only vm made
    /// here that has such a function, or one of several that have the same.
    pub(super) fn offer_of_vms(&self, function: &str) -> Option<Arc<Offer>> {
        let mut found = self.kept.values().filter_map(|offer| Some((offer, offer.handlers.find(function)?)));
        let (first, handler) = found.next()?;
        found.all(|(_, other)| Arc::ptr_eq(handler, other)).then(|| Arc::clone(first))
    }

    /// Whoever listens for approvals of calls of this function is told of one.
    pub(super) fn watch(&mut self, request: i64, function: String, listener: ApprovalListener) {
        if let Some(pending) = self.requests.get_mut(&request) {
            pending.asks = Some((function, listener));
        }
    }

    /// Who is to be told that something waits for a person. A call without a program has an
    /// id that nobody was told, so all that call the function hear of it.
    pub(super) fn approval_listeners(&mut self, note: &ApprovalNote) -> Vec<ApprovalListener> {
        if !note.evaluation.starts_with(CALL_PREFIX) {
            return self.offer(&note.evaluation).and_then(|offer| offer.on_approval.clone()).into_iter().collect();
        }
        let asks = self.requests.values().filter_map(|pending| pending.asks.as_ref());
        asks.filter(|(function, _)| *function == note.function).map(|(_, listener)| Arc::clone(listener)).collect()
    }

    pub(super) fn name(&mut self, request: i64, evaluation: &str) {
        if let Some(pending) = self.requests.get_mut(&request) {
            pending.evaluation = Some(evaluation.to_owned());
            self.evaluations.insert(evaluation.to_owned(), request);
        }
    }

    /// Ends what an evaluation offers; says whether it was still running.
    pub(super) fn abandon(&self, request: i64) -> bool {
        let pending = self.requests.get(&request);
        if let Some(offer) = pending.and_then(|pending| pending.offer.as_ref()) {
            offer.ended.cancel();
        }
        pending.is_some()
    }

    pub(super) fn remove(&mut self, request: i64) -> Option<Pending> {
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
