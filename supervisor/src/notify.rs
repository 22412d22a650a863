//! What the service manager is told, and what it hands over.
//!
//! Owns readiness, status, stopping and inherited sockets. Outside systemd every
//! call is a no-op.

use sd_notify::NotifyState;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// brigd takes requests.
pub(crate) fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The configuration is being read again; [`ready`] says that this is over.
pub(crate) fn reloading() {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let micros = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1_000;
    tell(&[NotifyState::Reloading, NotifyState::MonotonicUsec(micros)]);
}

/// A probe passed.
pub(crate) fn alive() {
    tell(&[NotifyState::Watchdog]);
}

/// What is shown of brigd.
pub(crate) fn status(status: &str) {
    tell(&[NotifyState::Status(status)]);
}

/// brigd takes no new work.
pub(crate) fn stopping(status: &str) {
    tell(&[NotifyState::Stopping, NotifyState::Status(status)]);
}

/// Whether the last attempt failed: the status alone is told once a second.
static FAILING: AtomicBool = AtomicBool::new(false);

fn tell(states: &[NotifyState<'_>]) {
    let told = sd_notify::notify(states);
    if let Some(fault) = first_fault(told.map_err(|fault| fault.to_string()), &FAILING) {
        tracing::warn!(fault, "the service manager could not be told; until it can be again this is not repeated");
    }
}

/// The fault, if the attempt before was not one already.
fn first_fault(told: Result<(), String>, failing: &AtomicBool) -> Option<String> {
    let before = failing.swap(told.is_err(), Ordering::Relaxed);
    told.err().filter(|_| !before)
}

/// The sockets that the service manager opened for this process.
#[derive(Debug, Default)]
pub(crate) struct Inherited {
    /// For clients.
    pub(crate) client: Option<OwnedFd>,
    /// For operators.
    pub(crate) admin: Option<OwnedFd>,
}

/// Takes the sockets of the service manager by their names (`FileDescriptorName=`).
///
/// # Errors
/// When there are some but they can not be taken, or their names say nothing.
pub(crate) fn inherited_sockets() -> io::Result<Inherited> {
    let named: Vec<_> = sd_notify::listen_fds_with_names()?.map(|(_, name)| name).collect();
    let mut inherited = Inherited::default();
    // The same descriptors in the same order; it checks that each is a Unix socket.
    let mut sockets = listenfd::ListenFd::from_env();
    for (index, name) in named.iter().enumerate() {
        let socket = sockets.take_unix_listener(index)?.ok_or_else(|| io::Error::other(format!("number {index} is not there")))?;
        if place_of(name, named.len(), &mut inherited)?.replace(socket.into()).is_some() {
            return Err(io::Error::other(format!("there are two for {name}")));
        }
    }
    Ok(inherited)
}

/// Which socket a name means. A lone one without a name that means anything (systemd gives
/// it that of its unit) is for clients.
fn place_of<'a>(name: &str, count: usize, inherited: &'a mut Inherited) -> io::Result<&'a mut Option<OwnedFd>> {
    match name {
        "client" => Ok(&mut inherited.client),
        "admin" => Ok(&mut inherited.admin),
        _ if count == 1 => Ok(&mut inherited.client),
        other => {
            let name = brig_protocol::escape::escaped(other, 100);
            Err(io::Error::other(format!("one is called {name}; FileDescriptorName= must be client or admin")))
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_service_manager_that_can_not_be_told_is_warned_of_once_until_it_can() {
        let failing = AtomicBool::new(false);
        let said = [Err("no"), Err("no"), Ok(()), Err("again"), Err("again")]
            .map(|told| first_fault(told.map_err(str::to_owned), &failing).unwrap_or_default());
        assert_eq!(said, ["no", "", "", "again", ""]);
    }

    fn taken(names: &[&str]) -> io::Result<(bool, bool)> {
        let mut inherited = Inherited::default();
        for name in names {
            let socket = std::os::unix::net::UnixStream::pair()?.0;
            *place_of(name, names.len(), &mut inherited)? = Some(socket.into());
        }
        Ok((inherited.client.is_some(), inherited.admin.is_some()))
    }

    #[test]
    fn sockets_are_taken_by_name_and_a_lone_one_is_for_clients() {
        assert_eq!(taken(&["admin", "client"]).unwrap(), (true, true));
        assert_eq!(taken(&["brigd.socket"]).unwrap(), (true, false));
        assert_eq!(taken(&["unknown"]).unwrap(), (true, false));
        assert_eq!(taken(&["admin"]).unwrap(), (false, true));
    }

    #[test]
    fn a_name_that_says_nothing_is_refused_with_those_that_do() {
        let fault = taken(&["client", "metrics"]).unwrap_err().to_string();
        assert!(fault.contains("metrics") && fault.contains("client or admin"), "{fault}");
    }
}
