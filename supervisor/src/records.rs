//! Where what happens is recorded.
//!
//! Owns the choice between the log and the audit's folder. Never drops a record: what can
//! not be written is told, and the call it stands before does not run.

use crate::audit::event::{Labels, StopReason};
use crate::audit::{AuditFault, AuditLog, AuditSink, Event, OpenFault, Written};
use crate::config::Config;
use crate::metrics::Counter;
use brig_protocol::admin::AuditStatus;
use brig_protocol::escape::ShowPath as _;
use std::path::PathBuf;

/// Where records go, and how many could not.
#[derive(Debug)]
pub(crate) struct Records {
    place: Place,
    failures: Counter,
}

/// The log, or a folder.
#[derive(Debug)]
enum Place {
    /// Structured events of the log, under the target `brigd::audit`.
    Log,
    /// A chain of records.
    Chain(AuditLog),
}

impl Records {
    /// Goes on in the audit's folder, or takes the log when there is none.
    ///
    /// # Errors
    /// When the folder can not be used, or somebody changed what is in it.
    pub(crate) fn open(config: &Config) -> Result<Self, OpenFault> {
        let Some(rules) = config.audit_rules() else { return Ok(Self::to_log()) };
        Ok(Self { place: Place::Chain(AuditLog::open(rules)?), failures: Counter::default() })
    }

    /// To the log only.
    pub(crate) fn to_log() -> Self {
        Self { place: Place::Log, failures: Counter::default() }
    }

    /// How many records could not be written.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.get()
    }

    /// How far the records are, for operators.
    pub(crate) fn status(&self) -> AuditStatus {
        match &self.place {
            Place::Log => AuditStatus { place: "log".to_owned(), ..AuditStatus::default() },
            Place::Chain(log) => {
                let (folder, last, on_disk, failed) = log.told();
                AuditStatus {
                    place: folder.shown().to_string(),
                    seq: Some(last.seq),
                    hash: Some(last.hash.to_string()),
                    on_disk: Some(on_disk),
                    failed,
                }
            }
        }
    }

    /// The folder of the records; none when they go to the log.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        match &self.place {
            Place::Log => None,
            Place::Chain(log) => Some(log.told().0),
        }
    }

    /// Records something that goes on whether it can be recorded or not: a fault is told
    /// to the log.
    pub(crate) fn note(&self, event: &Event<'_>) {
        if let Err(fault) = self.write(event) {
            tracing::error!(error = %fault, "what happened could not be recorded");
        }
    }

    /// Records the end of brigd.
    pub(crate) async fn close(&self, reason: StopReason<'_>) {
        match &self.place {
            Place::Log => {}
            Place::Chain(log) => log.close(reason).await,
        }
    }
}

impl AuditSink for Records {
    fn write(&self, event: &Event<'_>) -> Result<Written, AuditFault> {
        let written = match &self.place {
            Place::Chain(log) => log.write(event),
            Place::Log => log(event).map(|()| Written(0)).map_err(AuditFault::from),
        };
        if written.is_err() {
            self.failures.count();
        }
        written
    }

    async fn settled(&self, written: Written) -> Result<(), AuditFault> {
        let settled = match &self.place {
            Place::Chain(log) => log.settled(written).await,
            Place::Log => Ok(()),
        };
        if settled.is_err() {
            self.failures.count();
        }
        settled
    }
}

/// Host calls and decisions are of interest to everybody; that programs ran, to who asks.
fn log(event: &Event<'_>) -> std::io::Result<()> {
    let quiet = matches!(event, Event::EvaluationStarted { .. } | Event::EvaluationEnded { .. });
    let heard = if quiet {
        tracing::enabled!(target: "brigd::audit", tracing::Level::DEBUG)
    } else {
        tracing::enabled!(target: "brigd::audit", tracing::Level::INFO)
    };
    if !heard {
        return Ok(());
    }
    let record = serde_json::to_string(event)?;
    let Labels { evaluation, uid, function, call, code, rule } = event.labels();
    if quiet {
        tracing::debug!(target: "brigd::audit", evaluation, uid, function, call, code, rule, %record, "audit record");
    } else {
        tracing::info!(target: "brigd::audit", evaluation, uid, function, call, code, rule, %record, "audit record");
    }
    Ok(())
}
