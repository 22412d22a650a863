//! Where what happens is recorded.
//!
//! Owns the choice between the log and the audit's folder. Never drops a record: what can
//! not be written is told, and the call it stands before does not run.

use crate::audit::event::StopReason;
use crate::audit::{AuditFault, AuditLog, AuditSink, Event, OpenFault, Written};
use crate::config::Config;
use brig_protocol::admin::AuditStatus;
use std::path::PathBuf;

/// The log, or a folder.
#[derive(Debug)]
pub(crate) enum Records {
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
        Ok(match config.audit_rules() {
            Some(rules) => Self::Chain(AuditLog::open(rules)?),
            None => Self::Log,
        })
    }

    /// How far the records are, for operators.
    pub(crate) fn status(&self) -> AuditStatus {
        match self {
            Self::Log => AuditStatus { place: "log".to_owned(), ..AuditStatus::default() },
            Self::Chain(log) => {
                let (folder, last, on_disk, failed) = log.told();
                AuditStatus {
                    place: folder.display().to_string(),
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
        match self {
            Self::Log => None,
            Self::Chain(log) => Some(log.told().0),
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
        match self {
            Self::Log => {}
            Self::Chain(log) => log.close(reason).await,
        }
    }
}

impl AuditSink for Records {
    fn write(&self, event: &Event<'_>) -> Result<Written, AuditFault> {
        match self {
            Self::Chain(log) => log.write(event),
            Self::Log => {
                log(event)?;
                Ok(Written(0))
            }
        }
    }

    async fn settled(&self, written: Written) -> Result<(), AuditFault> {
        match self {
            Self::Chain(log) => log.settled(written).await,
            Self::Log => Ok(()),
        }
    }
}

/// Host calls and decisions are of interest to everybody; that programs ran, to who asks.
fn log(event: &Event<'_>) -> std::io::Result<()> {
    let text = || serde_json::to_string(event);
    match event {
        Event::EvaluationStarted { .. } | Event::EvaluationEnded { .. } => {
            if tracing::enabled!(target: "brigd::audit", tracing::Level::DEBUG) {
                tracing::debug!(target: "brigd::audit", record = %text()?, "audit record");
            }
        }
        _ => {
            if tracing::enabled!(target: "brigd::audit", tracing::Level::INFO) {
                tracing::info!(target: "brigd::audit", record = %text()?, "audit record");
            }
        }
    }
    Ok(())
}
