//! What can go wrong between a caller and brigd.
//!
//! Owns the error type of the library, told apart by what the caller may conclude:
//! nothing ran, or nobody can say. A program that ran and failed is not here: that is
//! an [`EvaluateResult`](crate::EvaluateResult) with an error in it.

use brig_protocol::escape::ShowPath as _;
use brig_protocol::rpc::ErrorData;
use std::path::PathBuf;

/// Why there is no result.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request can not be sent as it is; nothing was sent.
    #[error("{0}")]
    Request(String),
    /// No brigd listens there; nothing was sent.
    #[error("no brigd answers on {}: {reason}", path.shown())]
    Connect {
        /// The socket.
        path: PathBuf,
        /// What the operating system said.
        reason: String,
        /// Whether somebody listens there all the same: its queue of connections was full.
        listening: bool,
    },
    /// A private brigd could not be started; nothing was sent.
    #[error("{0}")]
    Start(String),
    /// brigd refused the request; nothing ran.
    #[error("{}: {}", .0.code, .0.message)]
    Refused(Box<ErrorData>),
    /// brigd answered with an error that this version does not know.
    #[error("brigd answered with error {code}: {message}")]
    Rpc {
        /// The JSON-RPC number.
        code: i64,
        /// Its sentence.
        message: String,
        /// Its data, as JSON text.
        data: Option<String>,
    },
    /// The connection ended before the answer came: whether the program ran, and what
    /// it did, is unknown.
    #[error("the connection to brigd was lost: {0}")]
    ConnectionLost(String),
    /// What came is not the protocol; the connection is given up.
    #[error("brigd sent something that is not the protocol: {0}")]
    Protocol(String),
}

impl Error {
    /// Whether it is certain that nothing ran.
    #[must_use]
    pub const fn nothing_ran(&self) -> bool {
        matches!(self, Self::Request(_) | Self::Connect { .. } | Self::Start(_) | Self::Refused(_))
    }

    /// Whether the same request may succeed when sent again.
    #[must_use]
    pub fn retryable(&self) -> bool {
        match self {
            Self::Refused(data) => data.retryable,
            Self::Connect { .. } => true,
            _ => false,
        }
    }
}
