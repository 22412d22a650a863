//! Records of host calls, written before the function runs and after.
//!
//! Owns the shape of a record and the sinks. Never holds an output or a message in clear,
//! nor an input unless the operator wants it (`audit` of a configured function): inputs
//! are named by their hash.

use brig_protocol::client::{CallState, Effect};
use brig_protocol::codes::CallCode;
use serde::Serialize;
use serde_json::value::RawValue;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// What happened at one moment of one host call.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "event")]
pub(crate) enum Event<'a> {
    /// It may run, and is about to.
    #[serde(rename = "call_permitted")]
    Permitted {
        /// Which rules said yes.
        rule: &'a str,
        /// SHA-256 of the input's text, in hexadecimal.
        input_sha256: &'a str,
        /// Length of the input's text, in bytes.
        input_bytes: u64,
        /// What the function says it does.
        effect: Effect,
        /// The input, or its shape, where the operator wants it on record.
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<&'a RawValue>,
    },
    /// It did not run.
    #[serde(rename = "call_refused")]
    Refused {
        /// Why.
        code: CallCode,
        /// Which rule said no, when one did.
        rule: Option<&'a str>,
    },
    /// It is over.
    #[serde(rename = "call_ended")]
    Ended {
        /// What is known of its effect.
        state: CallState,
        /// Why not completed.
        code: Option<CallCode>,
        /// Length of the output's text, in bytes.
        output_bytes: u64,
        /// From request to answer, in milliseconds.
        duration_ms: f64,
    },
}

/// One record.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Record<'a> {
    /// Which evaluation.
    pub(crate) evaluation: &'a str,
    /// Which call of it.
    pub(crate) call: u64,
    /// `collection.function`.
    pub(crate) function: &'a str,
    /// For whom.
    pub(crate) uid: u32,
    /// What happened.
    #[serde(flatten)]
    pub(crate) event: Event<'a>,
}

/// A record could not be written: the call it stands before does not run.
#[derive(Debug, thiserror::Error)]
#[error("the audit record could not be written: {0}")]
pub(crate) struct AuditFault(#[from] std::io::Error);

/// Where records go.
pub(crate) trait AuditSink: Send + Sync {
    /// Writes one record, whole and in order, before it returns.
    ///
    /// # Errors
    /// [`AuditFault`] when it is not certain that the record was taken.
    fn write(&self, record: &Record<'_>) -> Result<(), AuditFault>;
}

/// Records as structured events of the log, under the target `brigd::audit`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogSink;

impl AuditSink for LogSink {
    fn write(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        if tracing::enabled!(target: "brigd::audit", tracing::Level::INFO) {
            let text = serde_json::to_string(record).map_err(std::io::Error::from)?;
            tracing::info!(target: "brigd::audit", evaluation = record.evaluation, call = record.call, record = %text, "host call");
        }
        Ok(())
    }
}

/// Records as lines of JSON, each with its time.
#[derive(Debug)]
pub(crate) struct LinesSink<W: Write + Send> {
    out: Mutex<Lines<W>>,
}

#[derive(Debug)]
struct Lines<W> {
    out: W,
    /// A write failed half way: what follows could not be told from its rest.
    broken: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    time_ms: u64,
    #[serde(flatten)]
    record: &'a Record<'a>,
}

impl<W: Write + Send> LinesSink<W> {
    /// A sink that appends to `out`, one write a record.
    pub(crate) const fn new(out: W) -> Self {
        Self { out: Mutex::new(Lines { out, broken: false }) }
    }
}

impl<W: Write + Send> AuditSink for LinesSink<W> {
    fn write(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let mut line = serde_json::to_vec(&Line { time_ms, record }).map_err(std::io::Error::from)?;
        line.push(b'\n');
        let mut lines = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.broken {
            // End the torn line first, so that every later record stands on its own.
            lines.out.write_all(b"\n")?;
            lines.broken = false;
        }
        lines.broken = true;
        lines.out.write_all(&line)?;
        lines.out.flush()?;
        lines.broken = false;
        Ok(())
    }
}
