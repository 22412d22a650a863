//! Functions that are configured in brigd, called without a program.
//!
//! Owns one call and its end. Never repeats a call: whether it had its effect is in the
//! answer, or nobody knows.

use crate::client::Client;
use crate::connection::{ApprovalListener, Canceller, Ticket};
use crate::error::Error;
use brig_protocol::client::{
    ApprovalNote, FunctionsCallParams, FunctionsCallResult, FunctionsDescribeParams, FunctionsDescribeResult, method,
};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// One call of a configured function, to be made with [`Client::call`].
#[derive(Clone, Default)]
pub struct Call {
    function: String,
    input: Option<Box<RawValue>>,
    timeout: Option<Duration>,
    idempotency_key: Option<String>,
    on_approval: Option<ApprovalListener>,
    fault: Option<String>,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("function", &self.function).field("input", &self.input).finish_non_exhaustive()
    }
}

impl Call {
    /// Of `collection.function`, or its command spelling `collection:function`.
    #[must_use]
    pub fn new(function: impl Into<String>) -> Self {
        Self { function: function.into(), ..Self::default() }
    }

    /// The input, a JSON object; `{}` when nobody says.
    #[must_use]
    pub fn input(mut self, input: impl Serialize) -> Self {
        match to_raw_value(&input) {
            Ok(input) => self.input = Some(input),
            Err(fault) => self.fault = Some(format!("input: {fault}")),
        }
        self
    }

    /// Ends the call after so long, if the function's own time is not over before.
    #[must_use]
    pub const fn timeout(mut self, time: Duration) -> Self {
        self.timeout = Some(time);
        self
    }

    /// Same key and same request: the same answer, nothing run twice. 1 to 256 bytes.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// Is told when the call waits for a person: also when another call of the same function
    /// on this connection does. The function has to be named as `collection.function`. Runs
    /// on the connection's task: it must not block.
    #[must_use]
    pub fn on_approval(mut self, listener: impl Fn(&ApprovalNote) + Send + Sync + 'static) -> Self {
        self.on_approval = Some(Arc::new(listener));
        self
    }

    fn params(&self) -> Result<FunctionsCallParams<'_>, Error> {
        if let Some(fault) = &self.fault {
            return Err(Error::Request(fault.clone()));
        }
        Ok(FunctionsCallParams {
            function: self.function.clone(),
            input: self.input.as_deref(),
            timeout_ms: self.timeout.map(crate::millis),
            idempotency_key: self.idempotency_key.clone(),
        })
    }
}

/// A call that was sent. Await it for its answer; drop it to cancel it.
#[must_use = "a call that is dropped is cancelled"]
pub struct Calling {
    inner: Result<Ticket, Option<Error>>,
}

impl std::fmt::Debug for Calling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Calling").field("sent", &self.inner.is_ok()).finish()
    }
}

impl Calling {
    /// A handle that ends this call from elsewhere, for an answer that says whether it
    /// had its effect.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        self.inner.as_ref().map_or_else(|_| Canceller::none(), Ticket::canceller)
    }
}

impl Future for Calling {
    type Output = Result<FunctionsCallResult, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.inner {
            Ok(ticket) => Pin::new(ticket).poll(context).map(|answer| {
                serde_json::from_str(answer?.get()).map_err(|fault| Error::Protocol(format!("the result of functions.call: {fault}")))
            }),
            Err(fault) => Poll::Ready(Err(fault.take().unwrap_or_else(|| Error::Request("the call was awaited twice".to_owned())))),
        }
    }
}

impl Client {
    /// All that brigd tells of one configured function.
    ///
    /// # Errors
    /// [`Error`] when the connection or the request fails; [`Error::Refused`] when there
    /// is no such function for this principal.
    pub async fn describe_function(&self, function: &str) -> Result<FunctionsDescribeResult, Error> {
        self.request(method::FUNCTIONS_DESCRIBE, &FunctionsDescribeParams { function: function.to_owned() }).await
    }

    /// Calls a configured function. A call that was refused or failed is an answer; an
    /// [`Error`] means that there is none, and says whether anything ran.
    pub fn call(&self, call: &Call) -> Calling {
        let sent = call.params().and_then(|params| self.connection().call(method::FUNCTIONS_CALL, &params, call.on_approval.clone()));
        Calling { inner: sent.map_err(Some) }
    }
}
