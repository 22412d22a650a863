//! The control link: one packet in, one packet out, descriptors where they belong.
//!
//! Owns our end of the `SOCK_SEQPACKET` pair. Never goes on after a packet that is not
//! exactly a frame with the descriptors that this frame carries: what came along is closed.

use super::WorkerEnds;
use brig_protocol::control::{FRAME_MAX, FrameError, Report, Request, SPAWNED_DESCRIPTORS};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags, SocketFlags, SocketType, recvmsg, send,
    socketpair,
};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use tokio::io::unix::AsyncFd;

/// Room for more descriptors than any frame carries, so that too many arrive, are
/// counted and closed.
const DESCRIPTORS_SEEN: usize = 8;

/// Why a control link is of no more use. Its nursery is to be killed, or is dead.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum LinkFault {
    /// The other end was closed.
    #[error("closed")]
    Closed,
    /// Not a frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A frame with another number of descriptors than it carries, or with some cut off.
    #[error("{got} descriptors with a frame that carries {want}")]
    Descriptors {
        /// How many came.
        got: usize,
        /// How many belong there.
        want: usize,
    },
    /// More bytes than any frame has, or descriptors beyond counting.
    #[error("a packet that was cut")]
    Truncated,
    /// The nursery does not read what it is asked.
    #[error("full: the nursery does not read")]
    Full,
    /// The kernel failed us.
    #[error("socket: {0}")]
    Io(Errno),
}

/// One packet, with its descriptors.
#[derive(Debug)]
pub(crate) struct Packet {
    /// The frame.
    pub report: Report,
    /// With [`Report::Spawned`], and only then.
    pub ends: Option<WorkerEnds>,
}

impl Packet {
    /// What it is, for messages.
    pub(crate) fn name(&self) -> &'static str {
        match self.report {
            Report::Ready(_) => "`ready`",
            Report::Failed { .. } => "`failed`",
            Report::Spawned(_) => "`spawned`",
            Report::SpawnFailed { .. } => "`spawn failed`",
            Report::Exited(_) => "`exited`",
        }
    }
}

/// Our end.
#[derive(Debug)]
pub(crate) struct Link(AsyncFd<OwnedFd>);

impl Link {
    /// A new pair: our end, and the end that becomes the nursery's standard input.
    ///
    /// # Errors
    /// [`LinkFault::Io`].
    pub(crate) fn pair() -> Result<(Self, OwnedFd), LinkFault> {
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).map_err(LinkFault::Io)?;
        // The flag belongs to the open file: the nursery's end goes on blocking.
        rustix::io::ioctl_fionbio(&ours, true).map_err(LinkFault::Io)?;
        let watched = crate::spawn::watch(ours).map_err(|fault| LinkFault::Io(errno_of(&fault)))?;
        Ok((Self(watched), theirs))
    }

    /// Sends one frame, now or never: what is asked at one time fits the socket many times
    /// over, unless the nursery has stopped reading.
    ///
    /// # Errors
    /// [`LinkFault::Full`], [`LinkFault::Closed`], [`LinkFault::Io`].
    pub(crate) fn send(&self, request: &Request) -> Result<(), LinkFault> {
        let frame = request.encode();
        loop {
            match send(self.0.as_fd(), &frame, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(LinkFault::Full),
                Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => return Err(LinkFault::Closed),
                Err(errno) => return Err(LinkFault::Io(errno)),
            }
        }
    }

    /// Ends the conversation for both sides; the other end hears it even while somebody
    /// here still holds the link.
    pub(crate) fn close(&self) {
        // Already closed is what was wanted.
        rustix::net::shutdown(self.0.as_fd(), rustix::net::Shutdown::Both).unwrap_or(());
    }

    /// The next packet. Cancel-safe.
    ///
    /// # Errors
    /// Any [`LinkFault`] but `Full`.
    pub(crate) async fn receive(&self) -> Result<Packet, LinkFault> {
        loop {
            let mut ready = self.0.readable().await.map_err(|fault| LinkFault::Io(errno_of(&fault)))?;
            match ready.try_io(|link| receive_from(link.get_ref())) {
                Ok(Ok(received)) => return received.judge(),
                Ok(Err(fault)) => match errno_of(&fault) {
                    Errno::INTR => {}
                    Errno::CONNRESET => return Err(LinkFault::Closed),
                    errno => return Err(LinkFault::Io(errno)),
                },
                Err(_would_block) => {}
            }
        }
    }
}

struct Received {
    bytes: [u8; FRAME_MAX + 1],
    length: usize,
    cut: bool,
    descriptors: Vec<OwnedFd>,
}

fn receive_from(socket: &OwnedFd) -> io::Result<Received> {
    let mut bytes = [0; FRAME_MAX + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_SEEN))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = message {
            descriptors.extend(some);
        }
    }
    let cut = received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
    Ok(Received { bytes, length: received.bytes, cut, descriptors })
}

impl Received {
    fn judge(self) -> Result<Packet, LinkFault> {
        let Self { bytes, length, cut, descriptors } = self;
        if length == 0 {
            return Err(LinkFault::Closed);
        }
        if cut {
            return Err(LinkFault::Truncated);
        }
        let report = Report::decode(bytes.get(..length).unwrap_or_default())?;
        let got = descriptors.len();
        let want = if matches!(report, Report::Spawned(_)) { SPAWNED_DESCRIPTORS } else { 0 };
        if got != want {
            return Err(LinkFault::Descriptors { got, want });
        }
        let ends = <[OwnedFd; SPAWNED_DESCRIPTORS]>::try_from(descriptors).ok().map(|[pidfd, socket]| WorkerEnds { pidfd, socket });
        Ok(Packet { report, ends })
    }
}

fn errno_of(fault: &io::Error) -> Errno {
    Errno::from_io_error(fault).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use brig_protocol::control::{Kind, Spawn, Spawned};
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, sendmsg};
    use std::io::IoSlice;
    use std::os::fd::BorrowedFd;

    fn say(end: &OwnedFd, bytes: &[u8], along: usize) {
        let carried: Vec<OwnedFd> = (0..along).map(|_| end.try_clone().unwrap()).collect();
        let borrowed: Vec<BorrowedFd<'_>> = carried.iter().map(AsFd::as_fd).collect();
        let mut space = vec![MaybeUninit::uninit(); 4096];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if along > 0 {
            assert!(control.push(SendAncillaryMessage::ScmRights(&borrowed)));
        }
        sendmsg(end, &[IoSlice::new(bytes)], &mut control, SendFlags::empty()).unwrap();
    }

    fn spawned() -> Vec<u8> {
        Report::Spawned(Spawned { slot: 1, generation: 2, pid: 3 }).encode()
    }

    fn open_descriptors() -> usize {
        std::fs::read_dir("/proc/self/fd").unwrap().count()
    }

    #[tokio::test]
    async fn a_spawned_frame_brings_exactly_two_descriptors() {
        let (link, theirs) = Link::pair().unwrap();
        say(&theirs, &spawned(), 2);
        let packet = link.receive().await.unwrap();
        assert!(packet.ends.is_some());
        for along in [0, 1, 3, 8] {
            let (link, theirs) = Link::pair().unwrap();
            say(&theirs, &spawned(), along);
            assert!(matches!(link.receive().await, Err(LinkFault::Descriptors { want: 2, got }) if got == along));
        }
    }

    #[tokio::test]
    async fn descriptors_with_any_other_frame_or_beyond_counting_end_the_link() {
        let (link, theirs) = Link::pair().unwrap();
        say(&theirs, &Report::SpawnFailed { slot: 1, generation: 1, errno: 11 }.encode(), 1);
        assert!(matches!(link.receive().await, Err(LinkFault::Descriptors { want: 0, got: 1 })));
        for along in [12, 200, 253] {
            let (link, theirs) = Link::pair().unwrap();
            say(&theirs, &spawned(), along);
            assert!(matches!(link.receive().await, Err(LinkFault::Truncated)), "{along}");
        }
    }

    #[tokio::test]
    async fn descriptors_that_do_not_belong_are_closed() {
        let (link, theirs) = Link::pair().unwrap();
        let before = open_descriptors();
        for _ in 0..50 {
            say(&theirs, &spawned(), 5);
            drop(link.receive().await);
        }
        // Other tests of this process open some of their own meanwhile.
        assert!(open_descriptors() < before + 100);
    }

    #[tokio::test]
    async fn a_packet_that_is_not_a_frame_ends_the_link() {
        for bytes in [&b"x"[..], &[200, 1], &[67, 1, 0], &[0; FRAME_MAX], &Request::Spawn(SPAWN).encode()] {
            let (link, theirs) = Link::pair().unwrap();
            say(&theirs, bytes, 0);
            assert!(matches!(link.receive().await, Err(LinkFault::Frame(_))), "{bytes:?}");
        }
        let (link, theirs) = Link::pair().unwrap();
        say(&theirs, &[67; FRAME_MAX + 2], 0);
        assert!(matches!(link.receive().await, Err(LinkFault::Truncated)));
    }

    const SPAWN: Spawn = Spawn { slot: 1, generation: 1, cpu_ms: 0, kind: Kind::Once };

    #[tokio::test]
    async fn a_nursery_that_does_not_read_is_told_apart_and_never_waited_for() {
        let (link, theirs) = Link::pair().unwrap();
        let mut sent = 0;
        let fault = loop {
            if let Err(fault) = link.send(&Request::Spawn(SPAWN)) {
                break fault;
            }
            sent += 1;
        };
        assert!(matches!(fault, LinkFault::Full) && sent > 32);
        drop(theirs);
        assert!(matches!(link.send(&Request::Spawn(SPAWN)), Err(LinkFault::Closed)));
        assert!(matches!(link.receive().await, Err(LinkFault::Closed)));
    }
}
