//! One call, as its handler sees it, and what a handler says where it fails.
//!
//! Owns what of both crosses. Never runs a handler.

use super::*;

/// One call of a host function, as its handler sees it.
#[derive(Clone, Debug)]
pub struct HostCall {
    pub(crate) evaluation: String,
    pub(crate) call: u64,
    pub(crate) function: String,
    pub(crate) idempotency_key: String,
    pub(crate) deadline: Duration,
    pub(crate) cancelled: CancellationToken,
}

impl HostCall {
    /// The evaluation that calls, `ev_…`.
    #[must_use]
    pub fn evaluation(&self) -> &str {
        &self.evaluation
    }

    /// Number of the call within its evaluation, from 1.
    #[must_use]
    pub const fn call(&self) -> u64 {
        self.call
    }

    /// `collection.function`, as declared.
    #[must_use]
    pub fn function(&self) -> &str {
        &self.function
    }

    /// The same for every delivery of this call: pass it on to a service that can
    /// recognise a repetition.
    #[must_use]
    pub fn idempotency_key(&self) -> &str {
        &self.idempotency_key
    }

    /// How long brigd awaits the answer, counted from the moment the call was sent.
    #[must_use]
    pub const fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Ends when the call is over early: by its deadline, by the program, or because
    /// the evaluation ended. The handler's future is dropped then; work that it handed
    /// to other tasks or threads can watch this token.
    #[must_use]
    pub const fn cancelled(&self) -> &CancellationToken {
        &self.cancelled
    }
}

/// How a host function says no. Name, message, code and data reach the program as a
/// `HostError`; nothing else does.
///
/// There is deliberately no conversion from any error: what a host's error says (a
/// path, a connection string) is not for the guest unless the handler decides so.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct FunctionError {
    pub(crate) name: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) message: String,
    pub(crate) data: Option<Box<RawValue>>,
}

impl FunctionError {
    /// An error with a code of the function's own, such as `rate_limited`, and a
    /// sentence.
    #[must_use]
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { name: None, code: Some(code.into()), message: message.into(), data: None }
    }

    /// An error with nothing but a sentence.
    #[must_use]
    pub fn message(message: impl Into<String>) -> Self {
        Self { name: None, code: None, message: message.into(), data: None }
    }

    /// Names its class, such as `RateLimitError`.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds data. What has no JSON form is left out.
    #[must_use]
    pub fn with_data(mut self, data: impl Serialize) -> Self {
        self.data = to_raw_value(&data).ok();
        self
    }

    pub(crate) fn to_wire(&self) -> Option<CallFailure<'_>> {
        let empty = self.name.is_none() && self.code.is_none() && self.data.is_none();
        (!empty).then(|| CallFailure { name: self.name.clone(), code: self.code.clone(), data: self.data.as_deref() })
    }
}

pub(super) fn encoded(value: &impl Serialize) -> Result<Box<RawValue>, FunctionError> {
    to_raw_value(value).map_err(|fault| FunctionError::message(format!("the answer has no JSON form: {fault}")))
}
