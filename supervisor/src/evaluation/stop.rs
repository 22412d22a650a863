//! The one way to end an evaluation early.
//!
//! Owns the cause: the first one stands. Never waits and never ends anything itself;
//! the evaluation's own loop hears the bell.

use std::sync::OnceLock;
use tokio::sync::Notify;

/// Why an evaluation is to end before it does by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopCause {
    /// The client asked for it.
    Cancelled,
    /// The client went away.
    ClientGone,
    /// brigd is stopping and the drain limit has passed.
    ShuttingDown,
    /// Its vm was disposed of.
    VmDisposed,
    /// Its vm may not live longer.
    VmLifetime,
    /// The connection that made its vm went away.
    VmAbandoned,
    /// An operator ended it.
    Killed,
    /// An operator revoked its principal.
    PrincipalRevoked,
}

impl StopCause {
    /// Whether it is an operator's doing.
    pub(crate) const fn is_revoke(self) -> bool {
        matches!(self, Self::Killed | Self::PrincipalRevoked)
    }

    /// What the caller reads.
    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Self::Cancelled => "the client cancelled the evaluation",
            Self::ClientGone => "the client went away",
            Self::ShuttingDown => "brigd is shutting down and the drain limit has passed",
            Self::VmDisposed => "its vm was disposed of",
            Self::VmLifetime => "its vm reached the limit of its lifetime (vms.lifetime_ms)",
            Self::VmAbandoned => "the connection that made its vm went away",
            Self::Killed => "an operator ended the evaluation",
            Self::PrincipalRevoked => "an operator revoked this principal",
        }
    }
}

/// Shared by those who may end an evaluation and the one task that runs it.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    cause: OnceLock<StopCause>,
    bell: Notify,
}

impl Stop {
    /// Asks for the end. Only the first cause counts.
    pub(crate) fn request(&self, cause: StopCause) {
        if self.cause.set(cause).is_ok() {
            self.bell.notify_one();
        }
    }

    /// The cause, if the end was asked for.
    pub(crate) fn cause(&self) -> Option<StopCause> {
        self.cause.get().copied()
    }

    /// Waits until the end is asked for. For the one task that runs the evaluation.
    pub(crate) async fn requested(&self) -> StopCause {
        loop {
            if let Some(cause) = self.cause() {
                return cause;
            }
            self.bell.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_cause_stands() {
        let stop = Stop::default();
        assert_eq!(stop.cause(), None);
        stop.request(StopCause::ClientGone);
        stop.request(StopCause::Cancelled);
        assert_eq!(stop.requested().await, StopCause::ClientGone);
        assert_eq!(stop.requested().await, StopCause::ClientGone);
    }
}
