//! Who waits for what on one connection.
//!
//! Owns the requests in flight, the evaluations they became, and the calls that are
//! being answered. Never does I/O.

use super::answering::Answers;
use crate::error::Error;
use crate::functions::{Handlers, HostCall};
use brig_protocol::client::{ApprovalNote, CALL_PREFIX, HostCallParams, OutputNote, VmCreateResult, Warning};
use brig_protocol::rpc::Id;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

type OutputListener = Arc<dyn Fn(&OutputNote) + Send + Sync>;
pub(super) type CallListener = Arc<dyn Fn(&HostCall) + Send + Sync>;
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
    /// Whether it runs in a vm, which may have functions of this client.
    pub(crate) in_vm: bool,
    pub(crate) ended: CancellationToken,
}

impl Offer {
    /// Whether brigd may ask or tell anything while the evaluation runs.
    fn is_empty(&self) -> bool {
        self.handlers.is_empty() && !self.in_vm && self.on_output.is_none() && self.on_warning.is_none() && self.on_approval.is_none()
    }
}

pub(super) struct Pending {
    pub(super) answer: oneshot::Sender<Result<Box<RawValue>, Error>>,
    pub(super) offer: Option<Arc<Offer>>,
    /// For a call without a program: its function, and who is told that it waits.
    asks: Option<(String, ApprovalListener)>,
    /// Who answers for the functions of the vm that it makes.
    makes: Option<Handlers>,
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
    pub(super) kept: HashMap<String, Handlers>,
    /// Whether evaluations of others may ask something here.
    makes_vms: bool,
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
        self.requests.insert(self.last_id, Pending { answer, offer, asks: None, makes: None, announced, evaluation: None });
        Ok((self.last_id, announced))
    }

    /// The offer of an evaluation. One that was not announced belongs to the only
    /// request that can have begun it.
    pub(super) fn offer(&mut self, evaluation: &str) -> Option<Arc<Offer>> {
        if self.evaluations.contains_key(evaluation) {
            return self.known(evaluation);
        }
        let request = *self.requests.iter().find(|(_, pending)| pending.is_unnamed())?.0;
        self.name(request, evaluation);
        self.requests.get(&request).and_then(|pending| pending.offer.clone())
    }

    /// The offer of an evaluation that is certainly one of this client's.
    fn known(&self, evaluation: &str) -> Option<Arc<Offer>> {
        self.evaluations.get(evaluation).and_then(|request| self.requests.get(request)).and_then(|pending| pending.offer.clone())
    }

    /// Who answers a call: a function of a vm is that of the vm, whoever evaluates in it.
    pub(super) fn answers(&mut self, params: &HostCallParams<'_>) -> Option<Answers> {
        let Some(vm) = &params.vm else {
            let offer = self.offer(&params.evaluation)?;
            let handler = offer.handlers.find(&params.function).cloned();
            return Some(Answers { handler, on_call: offer.on_call.clone(), cancelled: offer.ended.child_token() });
        };
        let handler = self.kept.get(vm.as_ref())?.find(&params.function).cloned();
        let (on_call, cancelled) = match self.known(&params.evaluation) {
            Some(offer) => (offer.on_call.clone(), offer.ended.child_token()),
            None => (None, CancellationToken::new()),
        };
        Some(Answers { handler, on_call, cancelled })
    }

    /// This request makes a vm, for whose functions these answer from the moment there is one.
    pub(super) fn expect_vm(&mut self, request: i64, handlers: Handlers) {
        self.makes_vms = true;
        if let Some(pending) = self.requests.get_mut(&request) {
            pending.makes = Some(handlers);
        }
    }

    /// A request was answered; gives the id of the vm that it made.
    pub(super) fn made(&mut self, pending: &mut Pending, answer: &RawValue) -> Option<String> {
        let handlers = pending.makes.take()?;
        let made: VmCreateResult = serde_json::from_str(answer.get()).ok()?;
        self.kept.insert(made.vm.clone(), handlers);
        Some(made.vm)
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
