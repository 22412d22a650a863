//! The audit: what happened, in a form that can be checked afterwards.
//!
//! Owns the kinds of records ([`event`]), their form ([`record`]), the segments they are
//! appended to ([`chain`], [`log`]), starting again after a crash ([`recover`]), removing
//! old segments ([`keep`]), and reading them offline ([`verify`], [`tools`]). Never holds
//! an input, an output, a program or a message in clear unless the operator says so for a
//! function, and never drops a record in silence.

mod chain;
pub(crate) mod event;
mod head;
mod keep;
mod log;
pub(crate) mod payload;
pub(crate) mod record;
mod recover;
mod segment;
pub(crate) mod tools;
pub(crate) mod verify;

#[cfg(test)]
mod tests;

pub(crate) use event::{Call, Event, Who};
pub(crate) use log::{AuditLog, Durability, Rules};
pub(crate) use payload::{Disclosure, Payload};
pub(crate) use recover::OpenFault;

use std::io;

/// A record could not be written: the call it stands before does not run.
#[derive(Debug, thiserror::Error)]
#[error("the audit record could not be written: {0}")]
pub(crate) struct AuditFault(#[from] io::Error);

/// A record that was written: its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written(pub(crate) u64);

/// Where records go.
pub(crate) trait AuditSink: Send + Sync {
    /// Writes one record, whole and in order, before it returns.
    ///
    /// # Errors
    /// [`AuditFault`] when it is not certain that the record was taken.
    fn write(&self, event: &Event<'_>) -> Result<Written, AuditFault>;

    /// Resolves when a record is as safe as the operator wants records to be before the
    /// call runs that they stand before.
    ///
    /// # Errors
    /// [`AuditFault`] when it will never be.
    fn settled(&self, written: Written) -> impl Future<Output = Result<(), AuditFault>> + Send;
}
