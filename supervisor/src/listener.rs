//! The client socket: where it is bound, and who comes in.
//!
//! Owns binding (never over a live server, never over anything that is no socket),
//! sockets inherited from systemd, and what the kernel says of each peer. Never
//! reads a byte from a client, and never ends because accepting failed.

use brig_protocol::escape::ShowPath as _;
use interprocess::local_socket::{GenericFilePath, ListenerOptions, ToFsName};
use interprocess::os::unix::local_socket::ListenerOptionsExt;
use interprocess::os::unix::uds_local_socket::tokio::Listener as SocketListener;
use std::collections::HashMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::UnixStream;

/// Longest path that fits a socket address, without its NUL.
const PATH_BYTES: usize = 107;
/// Wait after an accept that failed; doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// Longest wait between accepts that fail.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Who the kernel says a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Effective user id.
    pub(crate) uid: u32,
    /// Effective group id.
    pub(crate) gid: u32,
    /// Process id at the time of connecting, for the log: numbers are used again.
    pub(crate) pid: Option<i32>,
}

/// Why there is no socket to listen on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BindFault {
    /// Does not fit an address.
    #[error("the socket path {} has {length} bytes; at most {PATH_BYTES} fit: choose a shorter one with --socket", path.shown())]
    TooLong {
        /// The path.
        path: PathBuf,
        /// Its length.
        length: usize,
    },
    /// Nowhere to put it.
    #[error("the directory {} of the socket {} does not exist: create it, or choose another path with --socket", directory.shown(), path.shown())]
    NoDirectory {
        /// The directory.
        directory: PathBuf,
        /// The path.
        path: PathBuf,
    },
    /// Something that is no socket.
    #[error("{} exists and is not a socket: remove it, or choose another path with --socket", path.shown())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// Another server lives there.
    #[error("another server is listening on {}: stop it, or choose another path with --socket", path.shown())]
    Taken {
        /// The path.
        path: PathBuf,
    },
    /// The kernel says no.
    #[error("cannot {what} the socket {}: {fault}: {remedy}", path.shown())]
    Refused {
        /// What was tried.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// Why not.
        fault: io::Error,
        /// What to do.
        remedy: String,
    },
    /// What systemd handed over can not be used.
    #[error("the socket that the service manager handed over can not be used: {0}")]
    Inherited(io::Error),
}

/// A socket that takes clients.
pub(crate) struct Listener {
    socket: SocketListener,
    place: String,
}

impl Listener {
    /// Binds `path`, with its mode set before anyone can connect.
    ///
    /// # Errors
    /// [`BindFault`] naming the path and what to do.
    pub(crate) fn bind(path: &Path, mode: u32) -> Result<Self, BindFault> {
        check_path(path)?;
        remove_stale(path)?;
        let refused = |fault| refused("bind", path, fault);
        let name = path.to_fs_name::<GenericFilePath>().map_err(refused)?;
        let socket: SocketListener = ListenerOptions::new().name(name).mode(mode).create_tokio_as().map_err(refused)?;
        Ok(Self { socket, place: path.shown().to_string() })
    }

    /// Takes a socket that the service manager listens on. Its path is not ours to
    /// remove.
    ///
    /// # Errors
    /// [`BindFault::Inherited`] when it is none.
    pub(crate) fn adopt(descriptor: OwnedFd) -> Result<Self, BindFault> {
        let listening = rustix::net::sockopt::socket_acceptconn(&descriptor).map_err(|fault| BindFault::Inherited(fault.into()))?;
        if !listening {
            return Err(BindFault::Inherited(io::Error::other("it does not listen (Accept=yes and datagram sockets are not supported)")));
        }
        let socket = SocketListener::try_from(descriptor).map_err(BindFault::Inherited)?;
        Ok(Self { socket, place: "the socket of the service manager".to_owned() })
    }

    /// Where clients connect, for the log.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// The next client. Waits out every failure: one that lasts (no descriptors left)
    /// ends when a client leaves.
    pub(crate) async fn accept(&self) -> (UnixStream, Peer) {
        let mut pause = FIRST_PAUSE;
        loop {
            let fault = match self.socket.inner().accept().await {
                Ok((stream, _)) => match peer_of(&stream) {
                    Ok(peer) => return (stream, peer),
                    Err(fault) => fault,
                },
                Err(fault) => fault,
            };
            if matches!(fault.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) {
                continue;
            }
            tracing::warn!(%fault, pause_ms = pause.as_millis(), "cannot accept a client");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

fn peer_of(stream: &UnixStream) -> io::Result<Peer> {
    let credentials = stream.peer_cred()?;
    Ok(Peer { uid: credentials.uid(), gid: credentials.gid(), pid: credentials.pid() })
}

fn check_path(path: &Path) -> Result<(), BindFault> {
    let length = path.as_os_str().len();
    if length > PATH_BYTES {
        return Err(BindFault::TooLong { path: path.to_owned(), length });
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    match fs::metadata(directory) {
        Ok(facts) if facts.is_dir() => Ok(()),
        Err(fault) if fault.kind() == ErrorKind::PermissionDenied => Err(refused("reach", path, fault)),
        _ => Err(BindFault::NoDirectory { directory: directory.to_owned(), path: path.to_owned() }),
    }
}

/// Removes a socket file on which nobody listens. A live one is left alone.
fn remove_stale(path: &Path) -> Result<(), BindFault> {
    match fs::symlink_metadata(path) {
        Err(fault) if fault.kind() == ErrorKind::NotFound => return Ok(()),
        Err(fault) => return Err(refused("look at", path, fault)),
        Ok(facts) if !facts.file_type().is_socket() => return Err(BindFault::NotASocket { path: path.to_owned() }),
        Ok(_) => {}
    }
    match BlockingStream::connect(path) {
        Err(fault) if fault.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|fault| refused("remove the stale file of", path, fault))
        }
        Err(fault) if fault.kind() == ErrorKind::NotFound => Ok(()),
        // It answers, or it is there and does not let us in: alive in both cases.
        _ => Err(BindFault::Taken { path: path.to_owned() }),
    }
}

fn refused(what: &'static str, path: &Path, fault: io::Error) -> BindFault {
    let uid = rustix::process::geteuid().as_raw();
    let remedy = match fault.kind() {
        ErrorKind::PermissionDenied => format!("user {uid} may not write to its directory; change its owner or choose another path"),
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only; choose another path".to_owned(),
        ErrorKind::AddrInUse => "another server came first; stop it or choose another path".to_owned(),
        _ => "choose another path with --socket".to_owned(),
    };
    BindFault::Refused { what, path: path.to_owned(), fault, remedy }
}

/// How many connections there are, in all and of each uid.
#[derive(Debug)]
pub(crate) struct Doors {
    most: usize,
    most_each: usize,
    open: Mutex<HashMap<u32, usize>>,
}

/// How many of so many places are open to whoever has `own` of them already: the last eighth
/// is for those who have none, so that a few who take all they may lock nobody out.
pub(crate) const fn open_to(own: usize, places: usize) -> usize {
    if own == 0 { places } else { places - places / 8 }
}

/// One connection, counted; not any more when dropped.
#[derive(Debug)]
pub(crate) struct Door {
    doors: Arc<Doors>,
    uid: u32,
}

impl Doors {
    /// Room for `most` connections, `most_each` of them of one uid.
    pub(crate) fn new(most: usize, most_each: usize) -> Arc<Self> {
        Arc::new(Self { most, most_each, open: Mutex::new(HashMap::new()) })
    }

    /// How many are open.
    pub(crate) fn count(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }

    /// One more connection of `uid`, or the setting that it would go beyond.
    ///
    /// # Errors
    /// The name of the setting.
    pub(crate) fn enter(self: &Arc<Self>, uid: u32) -> Result<Door, &'static str> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = open.values().sum();
        let own = open.get(&uid).copied().unwrap_or(0);
        if own >= self.most_each {
            return Err("clients.connections_each");
        }
        if all >= open_to(own, self.most) {
            return Err("clients.connections");
        }
        open.insert(uid, own + 1);
        Ok(Door { doors: Arc::clone(self), uid })
    }

    /// How many connections of each uid there are.
    pub(crate) fn open(&self) -> Vec<(u32, usize)> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|(uid, count)| (*uid, *count)).collect()
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let mut open = self.doors.open.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get_mut(&self.uid) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                open.remove(&self.uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[tokio::test]
    async fn a_bound_socket_has_its_mode_and_a_peer_is_who_the_kernel_says() {
        let folder = folder();
        let path = folder.path().join("s");
        let listener = Listener::bind(&path, 0o600).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let client = UnixStream::connect(&path).await.unwrap();
        let (_, peer) = listener.accept().await;
        assert_eq!(peer.uid, rustix::process::geteuid().as_raw());
        assert_eq!(peer.pid, Some(rustix::process::getpid().as_raw_nonzero().get()));
        drop(client);
        drop(listener);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_live_socket_is_never_taken_over() {
        let folder = folder();
        let path = folder.path().join("s");
        let first = Listener::bind(&path, 0o600).unwrap();
        assert!(matches!(Listener::bind(&path, 0o600), Err(BindFault::Taken { .. })));
        assert!(UnixStream::connect(&path).await.is_ok());
        drop(first);
    }

    #[tokio::test]
    async fn a_stale_socket_file_is_replaced() {
        let folder = folder();
        let path = folder.path().join("s");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        assert!(Listener::bind(&path, 0o600).is_ok());
    }

    #[tokio::test]
    async fn what_is_in_the_way_is_named() {
        let folder = folder();
        let file = folder.path().join("file");
        fs::write(&file, "precious").unwrap();
        assert!(matches!(Listener::bind(&file, 0o600), Err(BindFault::NotASocket { .. })));
        assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
        assert!(matches!(Listener::bind(&folder.path().join("no/s"), 0o600), Err(BindFault::NoDirectory { .. })));
        let long = folder.path().join("x".repeat(200));
        assert!(matches!(Listener::bind(&long, 0o600), Err(BindFault::TooLong { .. })));
    }

    #[tokio::test]
    async fn an_inherited_descriptor_that_does_not_listen_is_refused() {
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(matches!(Listener::adopt(one.into()), Err(BindFault::Inherited(_))));
    }

    #[tokio::test]
    async fn an_inherited_socket_keeps_its_path() {
        let folder = folder();
        let path = folder.path().join("s");
        let theirs = std::os::unix::net::UnixListener::bind(&path).unwrap();
        drop(Listener::adopt(theirs.into()).unwrap());
        assert!(path.exists());
    }

    #[test]
    fn a_few_who_take_all_they_may_lock_nobody_else_out() {
        let doors = Doors::new(64, 16);
        let greedy: Vec<Door> = (0..4).flat_map(|uid| (0..20).map(move |_| uid)).filter_map(|uid| doors.enter(uid).ok()).collect();
        assert_eq!(greedy.len(), 56);
        let others: Vec<Door> = (4..12).map(|uid| doors.enter(uid).unwrap()).collect();
        assert_eq!(doors.enter(4).unwrap_err(), "clients.connections");
        assert_eq!(doors.enter(12).unwrap_err(), "clients.connections");
        drop((greedy, others));
        assert_eq!(doors.count(), 0);
    }

    #[test]
    fn doors_close_at_either_bound_and_open_again() {
        let doors = Doors::new(3, 2);
        let first = doors.enter(1).unwrap();
        let _second = doors.enter(1).unwrap();
        assert_eq!(doors.enter(1).unwrap_err(), "clients.connections_each");
        let _third = doors.enter(2).unwrap();
        assert_eq!(doors.enter(2).unwrap_err(), "clients.connections");
        drop(first);
        assert!(doors.enter(2).is_ok());
    }
}
