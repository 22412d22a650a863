//! The right to one answer, and the means to give it up.
//!
//! Owns what happens when a caller stops waiting. Never leaves an evaluation running
//! that nobody waits for.

use super::answering::check_line;
use super::wire::Wire;
use super::{Connection, lock};
use crate::error::Error;
use brig_protocol::client::{CancelParams, method};
use brig_protocol::rpc::{self, Id};
use serde::Serialize;
use serde_json::value::RawValue;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// The right to one answer. Dropped before it came, the request is forgotten, and an
/// evaluation is cancelled.
pub(crate) struct Ticket {
    pub(super) connection: Arc<Connection>,
    pub(super) request: i64,
    pub(super) answer: oneshot::Receiver<Result<Box<RawValue>, Error>>,
    pub(super) sent: bool,
    pub(super) cancels: bool,
    pub(super) done: bool,
}

impl Ticket {
    /// Sends the request; one that brigd would not take is dropped instead.
    pub(super) fn send(mut self, method: &str, params: &impl Serialize) -> Result<Self, Error> {
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
