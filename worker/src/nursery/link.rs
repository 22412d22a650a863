//! The nursery's end of the control link: one packet in, one packet out.
//! Owns: descriptor 3 of a nursery. Never: goes on after a packet that it does not know.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use brig_protocol::control::{FRAME_MAX, Report, Request};
use nix::poll::{PollFd, PollFlags, PollTimeout};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recvmsg, sendmsg};

use super::End;

/// The link to the supervisor.
#[derive(Debug)]
pub(super) struct Link(OwnedFd);

/// Room for more descriptors than any honest peer would send, so that they arrive, are
/// closed, and end the link.
const STRAY_DESCRIPTORS: usize = 4;

impl Link {
    /// The link over this socket.
    #[must_use]
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self(socket)
    }

    /// The socket itself, for waiting.
    #[must_use]
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Whether the other end was closed.
    #[must_use]
    pub(super) fn hung_up(&self) -> bool {
        hung_up(self.0.as_fd())
    }

    /// Waits for the next request; `None` when the supervisor closed the link.
    ///
    /// # Errors
    /// [`End::Protocol`] for anything but one whole frame without descriptors.
    pub(super) fn receive(&self) -> Result<Option<Request>, End> {
        let mut bytes = [0u8; FRAME_MAX + 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STRAY_DESCRIPTORS))];
        let mut strays = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let packet = &mut [IoSliceMut::new(&mut bytes)];
            match recvmsg(&self.0, packet, &mut strays, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                Err(Errno::CONNRESET) => return Ok(None),
                Err(_) => return Err(End::Protocol),
                Ok(received) => break received,
            }
        };
        let cut = received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
        if cut || strays.drain().next().is_some() {
            return Err(End::Protocol);
        }
        match bytes.get(..received.bytes) {
            Some([]) => Ok(None),
            Some(packet) => Request::decode(packet).map(Some).map_err(|_| End::Protocol),
            None => Err(End::Protocol),
        }
    }

    /// Sends one report, with the descriptors that go with it.
    ///
    /// # Errors
    /// [`End::ParentGone`] when nobody is there to read it.
    pub(super) fn send(&self, report: &Report, descriptors: &[BorrowedFd<'_>]) -> Result<(), End> {
        let bytes = report.encode();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut along = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !along.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(End::Protocol);
        }
        let packet = &[IoSlice::new(&bytes)];
        loop {
            match sendmsg(&self.0, packet, &mut along, SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                Ok(sent) if sent == bytes.len() => return Ok(()),
                Ok(_) | Err(_) => return Err(End::ParentGone),
            }
        }
    }
}

/// Whether nobody holds the other end of a pipe or socket any more.
pub(super) fn hung_up(fd: BorrowedFd<'_>) -> bool {
    let mut entry = [PollFd::new(fd, PollFlags::empty())];
    match nix::poll::poll(&mut entry, PollTimeout::ZERO) {
        Ok(0) => false,
        Ok(_) => entry.iter().any(|entry| entry.revents().is_some_and(|seen| seen.intersects(PollFlags::POLLHUP | PollFlags::POLLERR))),
        Err(_) => true,
    }
}
