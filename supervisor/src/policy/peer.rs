//! What the kernel tells of the process at the other end of a connection.
//!
//! Owns reading a peer's supplementary groups and its systemd unit, and that they are of
//! the process that connected: its pidfd must name the same live process before and after
//! they are read, so that a number that was used again can not lend them. Never takes a
//! client's word, and never says "none" for what could not be read.

use crate::listener::Peer;
use nix::sys::socket::{getsockopt, sockopt};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// What could be read of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Supplementary groups.
    pub(crate) groups: Vec<u32>,
    /// The unit of the system's service manager, where there is one.
    pub(crate) unit: Option<String>,
}

/// Why nothing could be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unseen {
    /// It ended, or hides in another namespace.
    #[error("the process that connected is gone")]
    Gone,
    /// It is another user by now.
    #[error("the process that connected is of another user by now")]
    Changed,
    /// No pidfd, or no /proc.
    #[error("{0}")]
    Unreadable(#[from] io::Error),
}

/// Reads what there is about the process at the other end of `socket`.
///
/// # Errors
/// [`Unseen`]: then nothing is known, which is not the same as that there is nothing.
pub(crate) fn look(socket: &impl AsFd, peer: Peer) -> Result<Seen, Unseen> {
    let pidfd = pidfd_of(socket, peer)?;
    let pid = pid_of(&pidfd)?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).map_err(gone)?;
    let cgroup = fs::read_to_string(format!("/proc/{pid}/cgroup")).map_err(gone)?;
    // Only now it is sure that both were of that process.
    if pid_of(&pidfd)? != pid {
        return Err(Unseen::Gone);
    }
    if effective_uid(&status) != Some(peer.uid) {
        return Err(Unseen::Changed);
    }
    Ok(Seen { groups: groups(&status), unit: unit(&cgroup) })
}

/// The process that connected: from the socket where the kernel has that (Linux 6.5),
/// else by its number, whose user is compared with the socket's afterwards.
fn pidfd_of(socket: &impl AsFd, peer: Peer) -> Result<OwnedFd, Unseen> {
    match getsockopt(socket, sockopt::PeerPidfd) {
        Ok(pidfd) => return Ok(pidfd),
        Err(nix::Error::ENOPROTOOPT) => {}
        Err(nix::Error::ESRCH | nix::Error::ENODATA | nix::Error::EINVAL) => return Err(Unseen::Gone),
        Err(fault) => return Err(Unseen::Unreadable(fault.into())),
    }
    let pid = peer.pid.and_then(rustix::process::Pid::from_raw).ok_or(Unseen::Gone)?;
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).map_err(|fault| gone(fault.into()))
}

/// The number of a live process.
fn pid_of(pidfd: &OwnedFd) -> Result<i32, Unseen> {
    let told = fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()))?;
    // -1: it was reaped; 0: it is not in our pid namespace.
    field(&told, "Pid:").and_then(|pid| pid.parse().ok()).filter(|pid: &i32| *pid > 0).ok_or(Unseen::Gone)
}

fn gone(fault: io::Error) -> Unseen {
    let code = fault.raw_os_error();
    let ended = fault.kind() == io::ErrorKind::NotFound || code == Some(nix::libc::ESRCH);
    if ended { Unseen::Gone } else { Unseen::Unreadable(fault) }
}

fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

fn effective_uid(status: &str) -> Option<u32> {
    field(status, "Uid:")?.split_whitespace().nth(1)?.parse().ok()
}

fn groups(status: &str) -> Vec<u32> {
    field(status, "Groups:").unwrap_or_default().split_whitespace().filter_map(|group| group.parse().ok()).collect()
}

/// The unit of the system's service manager that a `/proc/<pid>/cgroup` is in. Which line
/// is the manager's depends on the host: `0::`, or where the controllers are on cgroup v1
/// `name=systemd`, or both, in either order; the line that it does not use says the root.
/// Two lines that name different units say nothing.
fn unit(cgroup: &str) -> Option<String> {
    let path_of = |line: &str| line.strip_prefix("0::").or_else(|| Some(line.split_once(":name=systemd:")?.1)).and_then(unit_of);
    let mut named = cgroup.lines().filter_map(path_of);
    let first = named.next()?;
    named.all(|other| other == first).then_some(first)
}

/// The first part of a path that is no slice. What follows is inside of that unit, and may
/// be named by whoever owns it: a user's own manager can call a service as it likes.
fn unit_of(path: &str) -> Option<String> {
    let mut parts = path.strip_prefix('/')?.split('/');
    let part = parts.find(|part| !part.ends_with(".slice"))?;
    // The manager writes `_` before a name that would clash with a file of the kernel's.
    let name = part.strip_prefix('_').unwrap_or(part);
    let is_unit =
        [".service", ".scope", ".socket", ".mount", ".swap"].iter().any(|ending| name.len() > ending.len() && name.ends_with(ending));
    is_unit.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use std::os::unix::net::UnixStream;

    fn own_peer() -> Peer {
        Peer { uid: rustix::process::geteuid().as_raw(), gid: 0, pid: Some(rustix::process::getpid().as_raw_nonzero().get()) }
    }

    #[test]
    fn a_peer_has_the_groups_that_it_has() {
        let (one, _other) = UnixStream::pair().unwrap();
        let seen = look(&one, own_peer()).unwrap();
        let own: Vec<u32> = nix::unistd::getgroups().unwrap().iter().map(|group| group.as_raw()).collect();
        assert_eq!(seen.groups, own);
    }

    #[test]
    fn a_peer_that_is_another_user_by_now_lends_nothing() {
        let (one, _other) = UnixStream::pair().unwrap();
        let peer = Peer { uid: own_peer().uid + 1, ..own_peer() };
        assert!(matches!(look(&one, peer), Err(Unseen::Changed)));
    }

    #[test]
    fn a_peer_that_has_ended_is_unknown_and_not_one_without_groups() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let program = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])";
        let child = std::process::Command::new("python3").arg("-c").arg(program).arg(&path).status().unwrap();
        assert!(child.success());
        let (stream, _) = listener.accept().unwrap();
        let peer = Peer { pid: Some(i32::MAX - 1), ..own_peer() };
        assert!(matches!(look(&stream, peer), Err(Unseen::Gone)));
    }

    #[test]
    fn the_unit_is_the_system_managers_and_never_one_that_a_user_named() {
        for (cgroup, expected) in [
            ("0::/system.slice/agent.service\n", Some("agent.service")),
            ("0::/system.slice/system-agent.slice/agent@7.service/inner/deep.service\n", Some("agent@7.service")),
            ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/agent.service\n", Some("user@1000.service")),
            ("0::/user.slice/user-1000.slice/session-3.scope\n", Some("session-3.scope")),
            ("12:pids:/x\n1:name=systemd:/system.slice/agent.service\n", Some("agent.service")),
            // Hybrid: both lines, in either order; only one of them the manager's.
            ("1:name=systemd:/system.slice/agent.service\n0::/system.slice/agent.service\n", Some("agent.service")),
            ("0::/system.slice/agent.service\n1:name=systemd:/system.slice/agent.service\n", Some("agent.service")),
            ("0::/\n9:pids:/system.slice/agent.service\n1:name=systemd:/system.slice/agent.service\n", Some("agent.service")),
            ("1:name=systemd:/system.slice/agent.service\n0::/\n", Some("agent.service")),
            ("1:name=systemd:/\n0::/system.slice/agent.service\n", Some("agent.service")),
            ("0::/system.slice/agent.service\n1:name=systemd:/\n", Some("agent.service")),
            ("1:name=systemd:/system.slice/one.service\n0::/system.slice/two.service\n", None),
            ("0::/system.slice/two.service\n1:name=systemd:/system.slice/one.service\n", None),
            ("0::/system.slice/_cgroup.service\n", Some("cgroup.service")),
            ("0::/\n", None),
            ("0::/.service\n", None),
            ("0::/system.slice\n", None),
            ("0::/../../system.slice/agent.service\n", None),
            ("0::/docker/0123abc\n", None),
            ("1:name=other:/system.slice/agent.service\n", None),
            ("", None),
        ] {
            assert_eq!(unit(cgroup).as_deref(), expected, "{cgroup}");
        }
    }
}
