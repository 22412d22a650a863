//! Where the log goes.
//!
//! Owns the one subscriber: the journal when systemd listens, stderr otherwise. A line
//! for stderr passes through [`crate::host::redact`] as a whole; what goes to the journal
//! was looked at where it came from.

use crate::host::redact;
use std::io::Write;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Starts the log at `level`: a level, or directives as `brigd=debug`.
pub(crate) fn start(level: &str) {
    let filter = EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"));
    let journal = std::env::var_os("JOURNAL_STREAM").and_then(|_| tracing_journald::layer().ok());
    let started = match journal {
        Some(journal) => tracing_subscriber::registry().with(filter).with(journal).try_init(),
        None => {
            let stderr = tracing_subscriber::fmt::layer().with_writer(|| Clean).with_ansi(false).with_target(false);
            tracing_subscriber::registry().with(filter).with(stderr).try_init()
        }
    };
    if let Err(fault) = started {
        eprintln!("brigd: the log could not be started: {fault}");
    }
}

/// Standard error, without credentials: each event is one write.
struct Clean;

impl Write for Clean {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        std::io::stderr().write_all(redact::clean_log(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}
