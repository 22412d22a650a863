//! What the service manager is told, and what it hands over.
//!
//! Owns readiness, status, stopping and inherited sockets. Outside systemd every
//! call is a no-op.

use sd_notify::NotifyState;
use std::io;
use std::os::fd::OwnedFd;

/// brigd takes requests.
pub(crate) fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// brigd takes no new work.
pub(crate) fn stopping(status: &str) {
    tell(&[NotifyState::Stopping, NotifyState::Status(status)]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(fault) = sd_notify::notify(states) {
        tracing::warn!(%fault, "the service manager could not be told");
    }
}

/// The sockets that the service manager opened for this process.
///
/// # Errors
/// When there are some but they can not be taken.
pub(crate) fn inherited_sockets() -> io::Result<Vec<OwnedFd>> {
    let numbers: Vec<_> = sd_notify::listen_fds()?.collect();
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    // A number is not a descriptor that safe code may own; asking the kernel for a
    // copy of one's own descriptor gives one that is.
    let this = rustix::process::pidfd_open(rustix::process::getpid(), rustix::process::PidfdFlags::empty())?;
    numbers.into_iter().map(|number| Ok(rustix::process::pidfd_getfd(&this, number, rustix::process::PidfdGetfdFlags::empty())?)).collect()
}
