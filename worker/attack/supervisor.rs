//! A supervisor for tests: starts a nursery the way brigd does and speaks the control link.
//! Owns: one nursery process. Never: waits without a deadline.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use brig_protocol::control::{Configure, Exited, FRAME_MAX, Kind, Level, Origin, Ready, Report, Request, Spawn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recvmsg, sendmsg, socketpair,
};

/// Long enough for any machine, short enough to see that something hangs.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// What went wrong, in words: this is for people who read a failed test.
pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// A configuration that asks for everything and insists on little.
#[must_use]
pub(crate) fn configuration(origin: Origin, namespaces: bool) -> Configure {
    Configure {
        origin,
        namespaces,
        required: Level::Minimal,
        heap_bytes: 64 << 20,
        stack_bytes: 8 << 20,
        address_space_bytes: 256 << 20,
        cpu_ms: 5000,
        uid_base: 0,
        uid_count: 0,
    }
}

/// A worker that was made.
#[derive(Debug)]
pub(crate) struct Worker {
    /// Kills and waits.
    pub handle: OwnedFd,
    /// Its socket.
    pub socket: OwnedFd,
    /// Its id as the nursery sees it.
    pub pid: u32,
}

/// A running nursery.
#[derive(Debug)]
pub(crate) struct Nursery {
    /// N0.
    pub process: Child,
    link: Option<OwnedFd>,
}

impl Nursery {
    /// Starts `program nursery`, as another user where one is named.
    ///
    /// # Errors
    /// When the program does not start.
    pub(crate) fn start(program: &Path, user: Option<u32>) -> Outcome<Self> {
        Self::start_as(program, &["nursery"], user)
    }

    /// Starts `program arguments`, with the link as its standard input and an empty
    /// environment.
    ///
    /// # Errors
    /// When the program does not start.
    pub(crate) fn start_as(program: &Path, arguments: &[&str], user: Option<u32>) -> Outcome<Self> {
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear().stdin(Stdio::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        Ok(Self { process: command.spawn()?, link: Some(ours) })
    }

    /// Starts one, configures it, and waits until it is ready.
    ///
    /// # Errors
    /// When it says anything else than that.
    pub(crate) fn ready(program: &Path, user: Option<u32>, config: Configure) -> Outcome<(Self, Ready)> {
        let mut nursery = Self::start(program, user)?;
        nursery.send(&Request::Configure(config).encode(), &[])?;
        match nursery.report()? {
            Some((Report::Ready(ready), strays)) if strays.is_empty() => Ok((nursery, ready)),
            other => Err(format!("not ready: {other:?}").into()),
        }
    }

    /// Sends any bytes, with any descriptors.
    ///
    /// # Errors
    /// When the link is closed.
    pub(crate) fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Outcome<()> {
        let link = self.link.as_ref().ok_or("the link is closed")?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut along = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !along.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err("too many descriptors".into());
        }
        sendmsg(link, &[IoSlice::new(bytes)], &mut along, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// The next report with its descriptors; `None` when the nursery is gone.
    ///
    /// # Errors
    /// When the deadline passes, or the frame does not decode.
    pub(crate) fn report(&mut self) -> Outcome<Option<(Report, Vec<OwnedFd>)>> {
        let link = self.link.as_ref().ok_or("the link is closed")?;
        wait_readable(link.as_fd())?;
        let mut bytes = [0; FRAME_MAX + 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut along = RecvAncillaryBuffer::new(&mut space);
        let packet = &mut [IoSliceMut::new(&mut bytes)];
        let length = match recvmsg(link, packet, &mut along, RecvFlags::CMSG_CLOEXEC) {
            Ok(received) => received.bytes,
            Err(rustix::io::Errno::CONNRESET) => 0,
            Err(errno) => return Err(errno.into()),
        };
        if length == 0 {
            return Ok(None);
        }
        let mut descriptors = Vec::new();
        for message in along.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        let report = Report::decode(bytes.get(..length).ok_or("too long")?)?;
        Ok(Some((report, descriptors)))
    }

    /// Asks for a worker and takes what came.
    ///
    /// # Errors
    /// When anything but a worker comes.
    pub(crate) fn spawn(&mut self, slot: u16, generation: u64, cpu_ms: u32) -> Outcome<Worker> {
        let spawn = Spawn { slot, generation, cpu_ms, kind: Kind::Once };
        self.send(&Request::Spawn(spawn).encode(), &[])?;
        match self.report()? {
            Some((Report::Spawned(spawned), descriptors)) => {
                let same = (spawned.slot, spawned.generation) == (slot, generation);
                match <[OwnedFd; 2]>::try_from(descriptors) {
                    Ok([handle, socket]) if same => Ok(Worker { handle, socket, pid: spawned.pid }),
                    other => Err(format!("{spawned:?} with {other:?}").into()),
                }
            }
            other => Err(format!("no worker: {other:?}").into()),
        }
    }

    /// The next report must be an exit.
    ///
    /// # Errors
    /// When it is not.
    pub(crate) fn exited(&mut self) -> Outcome<Exited> {
        match self.report()? {
            Some((Report::Exited(exited), strays)) if strays.is_empty() => Ok(exited),
            other => Err(format!("no exit: {other:?}").into()),
        }
    }

    /// Closes the link and waits for N0's end.
    ///
    /// # Errors
    /// When it does not end.
    pub(crate) fn close(mut self) -> Outcome<std::process::ExitStatus> {
        self.link = None;
        Ok(self.process.wait()?)
    }
}

impl Drop for Nursery {
    fn drop(&mut self) {
        self.link = None;
        // Closing the link ends it; a kill is for one that does not listen.
        if self.process.kill().is_ok() {
            drop(self.process.wait());
        }
    }
}

/// Waits until there is something to read, or the other end is gone.
///
/// # Errors
/// When the deadline passes.
pub(crate) fn wait_readable(fd: BorrowedFd<'_>) -> Outcome<()> {
    let deadline = Timespec::try_from(DEADLINE)?;
    match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&deadline))? {
        0 => Err("nothing came before the deadline".into()),
        _ => Ok(()),
    }
}
