//! The harness of the acceptance tests: the real binaries on a temporary directory,
//! spoken to as any client would.
//!
//! Owns starting and stopping brigd, a plain line client, a terminal, and handlers for host calls.
//! Never links the supervisor or the worker, and never sleeps: it waits for an event
//! with a deadline that fails loudly.
#![expect(clippy::panic, clippy::expect_used, clippy::missing_panics_doc, reason = "a test harness fails by panicking")]

mod brigd;
mod client;
mod handlers;
mod terminal;

pub use brigd::{Brigd, BrigdOptions, as_user, binary, built};
pub use client::{Client, DEADLINE, Incoming};
pub use handlers::{Handlers, Reply};
pub use terminal::Terminal;
