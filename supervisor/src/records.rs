//! Where host calls are recorded.
//!
//! Owns the choice between the log and a file. Never drops a record: what can not be
//! written is told, and the call it stands before does not run.

use crate::host::audit::{AuditFault, AuditSink, LinesSink, LogSink, Record};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The log, or a file.
#[derive(Debug)]
pub(crate) enum Records {
    /// Structured events of the log.
    Log(LogSink),
    /// Lines of JSON.
    File(LinesSink<File>),
}

impl Records {
    /// Appends to `path`, or to the log.
    ///
    /// # Errors
    /// When the file can not be opened.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let Some(path) = path else { return Ok(Self::Log(LogSink)) };
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        Ok(Self::File(LinesSink::new(file)))
    }
}

impl AuditSink for Records {
    fn write(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        match self {
            Self::Log(sink) => sink.write(record),
            Self::File(sink) => sink.write(record),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::host::audit::Event;
    use brig_protocol::codes::CallCode;

    #[test]
    fn records_are_appended_to_a_file_that_only_its_owner_reads() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        for call in 1..=2 {
            let event = Event::Refused { code: CallCode::PermissionDenied, rule: None };
            let record = Record { evaluation: "ev_1", call, function: "orders.list", uid: 1, event };
            Records::open(Some(&path)).unwrap().write(&record).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().filter(|line| line.contains("\"permission_denied\"")).count(), 2);
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        assert!(Records::open(Some(&folder.path().join("no/file"))).is_err());
    }
}
