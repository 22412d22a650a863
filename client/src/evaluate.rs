//! One evaluation: what is asked, and the future that gives its result.
//!
//! Owns the builder and the encoding of a request. Never reads the program.

use crate::connection::{Canceller, Offer, Ticket};
use crate::error::Error;
use crate::functions::{HostCall, HostFunctions};
use brig_protocol::client::{
    ApprovalNote, Capture, EvaluateParams, EvaluateResult, Form, Language, OutputNote, OutputOptions, Permissions, Warning,
};
use brig_protocol::json;
use brig_protocol::limits::{self, RequestedLimits};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// A program, with what it is given and what it may do.
#[derive(Clone, Default)]
pub struct Evaluate {
    source: String,
    form: Form,
    language: Language,
    inputs: Option<Box<RawValue>>,
    functions: HostFunctions,
    collections: Option<Vec<String>>,
    permissions: Option<Box<RawValue>>,
    limits: RequestedLimits,
    timeout: Option<Duration>,
    capture: Capture,
    vm: Option<String>,
    time_zone: Option<String>,
    idempotency_key: Option<String>,
    pub(crate) detach: bool,
    check: bool,
    trace: Option<String>,
    offer: Offer,
    fault: Option<String>,
}

impl std::fmt::Debug for Evaluate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Evaluate").field("source", &self.source).field("functions", &self.functions).finish_non_exhaustive()
    }
}

impl Evaluate {
    /// An evaluation of `source`: JavaScript or TypeScript, at most 1 MiB.
    #[must_use]
    pub fn new(source: impl Into<String>) -> Self {
        Self { source: source.into(), ..Self::default() }
    }

    /// The frozen global `inputs`: anything whose JSON form is an object.
    #[must_use]
    pub fn inputs(mut self, inputs: impl Serialize) -> Self {
        match to_raw_value(&inputs) {
            Ok(raw) if json::is_object(raw.get()) => self.inputs = Some(raw),
            Ok(_) => self.fault = Some("inputs must be a JSON object".to_owned()),
            Err(fault) => self.fault = Some(format!("inputs have no JSON form: {fault}")),
        }
        self
    }

    /// What the program may call, answered by this process.
    #[must_use]
    pub fn host_functions(mut self, functions: impl Into<HostFunctions>) -> Self {
        self.functions = functions.into();
        self
    }

    /// Of the collections that are configured in brigd, only these.
    #[must_use]
    pub fn collections<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.collections = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Narrows what policy grants: [`Permissions`], or JSON of its shape.
    #[must_use]
    pub fn permissions(mut self, permissions: impl Serialize) -> Self {
        match to_raw_value(&permissions) {
            Ok(raw) => self.permissions = Some(raw),
            Err(fault) => self.fault = Some(format!("permissions have no JSON form: {fault}")),
        }
        self
    }

    /// Lowers the ceilings of this principal.
    #[must_use]
    pub const fn limits(mut self, limits: RequestedLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Wall-clock limit; 30 s when nobody says.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How the text is to be read; found out by itself when nobody says.
    #[must_use]
    pub const fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// In which language it is; found out by itself when nobody says.
    #[must_use]
    pub const fn language(mut self, language: Language) -> Self {
        self.language = language;
        self
    }

    /// Which console streams the result carries; both when nobody says.
    #[must_use]
    pub const fn capture(mut self, capture: Capture) -> Self {
        self.capture = capture;
        self
    }

    /// Is told of console output as it comes. Runs on the connection's task: it must
    /// not block.
    #[must_use]
    pub fn on_output(mut self, listener: impl Fn(&OutputNote) + Send + Sync + 'static) -> Self {
        self.offer.on_output = Some(Arc::new(listener));
        self
    }

    /// Is told of warnings as they come. Runs on the connection's task: it must not
    /// block.
    #[must_use]
    pub fn on_warning(mut self, listener: impl Fn(&Warning) + Send + Sync + 'static) -> Self {
        self.offer.on_warning = Some(Arc::new(listener));
        self
    }

    /// Is told of each call that this process is asked to answer, before its handler
    /// runs. Must not block.
    #[must_use]
    pub fn on_call(mut self, listener: impl Fn(&HostCall) + Send + Sync + 'static) -> Self {
        self.offer.on_call = Some(Arc::new(listener));
        self
    }

    /// Is told of each host call that waits for a person. Runs on the connection's task:
    /// it must not block.
    #[must_use]
    pub fn on_approval(mut self, listener: impl Fn(&ApprovalNote) + Send + Sync + 'static) -> Self {
        self.offer.on_approval = Some(Arc::new(listener));
        self
    }

    /// Runs it in the realm of a kept worker, by its id. It may be that of another client of
    /// this user, which goes on answering for the functions that it declared.
    #[must_use]
    pub fn vm(mut self, id: impl Into<String>) -> Self {
        self.vm = Some(id.into());
        self
    }

    /// IANA time zone of the program; UTC when nobody says.
    #[must_use]
    pub fn time_zone(mut self, zone: impl Into<String>) -> Self {
        self.time_zone = Some(zone.into());
        self
    }

    /// Same key and same request: the same answer, nothing run twice. 1 to 256 bytes.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// Type-checks first, and does not run what fails.
    #[must_use]
    pub const fn check_types(mut self) -> Self {
        self.check = true;
        self
    }

    /// W3C `traceparent`.
    #[must_use]
    pub fn trace(mut self, traceparent: impl Into<String>) -> Self {
        self.trace = Some(traceparent.into());
        self
    }

    /// What the request says.
    pub(crate) fn params(&self) -> Result<EvaluateParams<'_>, Error> {
        if let Some(fault) = &self.fault {
            return Err(Error::Request(fault.clone()));
        }
        if self.source.len() > limits::SOURCE_BYTES {
            let message = format!("the program has {} bytes; it may have {}", self.source.len(), limits::SOURCE_BYTES);
            return Err(Error::Request(message));
        }
        let permissions = match &self.permissions {
            Some(raw) => {
                Some(serde_json::from_str::<Permissions<'_>>(raw.get()).map_err(|fault| Error::Request(format!("permissions: {fault}")))?)
            }
            None => None,
        };
        let stream = self.offer.on_output.is_some() || self.offer.on_warning.is_some();
        Ok(EvaluateParams {
            source: Cow::Borrowed(&self.source),
            form: self.form,
            language: self.language,
            inputs: self.inputs.as_deref(),
            host_functions: if self.functions.is_empty() { None } else { Some(self.functions.declarations()?) },
            collections: self.collections.clone(),
            permissions,
            limits: (self.limits != RequestedLimits::default()).then_some(self.limits),
            timeout_ms: self.timeout.map(crate::millis),
            output: (stream || self.capture != Capture::default()).then_some(OutputOptions { capture: self.capture, stream }),
            vm: self.vm.clone(),
            time_zone: self.time_zone.clone(),
            idempotency_key: self.idempotency_key.clone(),
            detach: self.detach,
            // The connection decides: it knows what else is running.
            announce: false,
            check: self.check,
            trace: self.trace.clone(),
        })
    }

    /// Whether it calls functions of this process, or tells it anything while it runs.
    pub(crate) fn needs_this_client(&self) -> bool {
        let listens = self.offer.on_output.is_some() || self.offer.on_warning.is_some() || self.offer.on_approval.is_some();
        listens || !self.functions.is_empty()
    }

    /// What this process offers while it runs, besides the functions of its vm.
    pub(crate) fn offer(&self) -> Offer {
        let handlers = self.functions.handlers();
        Offer { handlers, in_vm: self.vm.is_some(), ended: tokio_util::sync::CancellationToken::new(), ..self.offer.clone() }
    }
}

/// An evaluation that was sent. Await it for its result; drop it to cancel it.
#[must_use = "an evaluation that is dropped is cancelled"]
pub struct Evaluation {
    inner: Result<Ticket, Option<Error>>,
}

impl std::fmt::Debug for Evaluation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Evaluation").field("sent", &self.inner.is_ok()).finish()
    }
}

impl Evaluation {
    pub(crate) fn new(sent: Result<Ticket, Error>) -> Self {
        Self { inner: sent.map_err(Some) }
    }

    /// A handle that ends this evaluation from elsewhere, for a result that says what
    /// was done until then.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        self.inner.as_ref().map_or_else(|_| Canceller::none(), Ticket::canceller)
    }
}

impl Future for Evaluation {
    type Output = Result<EvaluateResult, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.inner {
            Ok(ticket) => Pin::new(ticket).poll(context).map(|answer| read_result(&answer?)),
            Err(fault) => Poll::Ready(Err(fault.take().unwrap_or_else(|| Error::Request("the evaluation was awaited twice".to_owned())))),
        }
    }
}

fn read_result(raw: &RawValue) -> Result<EvaluateResult, Error> {
    serde_json::from_str(raw.get()).map_err(|fault| Error::Protocol(format!("the result of evaluate: {fault}")))
}
