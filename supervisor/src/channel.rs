//! The supervisor's end of one worker's socket.
//!
//! Owns reading whole frames and writing queued ones, in bounded memory, each with a
//! deadline. Never looks into a body (`brig_protocol` does), never receives a descriptor
//! (it reads without a control buffer, so the kernel discards what is sent along), never
//! waits for a worker that does not read.

use brig_protocol::frame::{BODY_BYTES, Body, FrameDecoder, FrameFault, PREFIX_BYTES};
use nix::{libc, setsockopt_impl};
use rustix::io::Errno;
use rustix::net::SendFlags;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout_at};

/// What a channel holds at most, and how long it waits at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelBounds {
    /// Bytes that may be queued behind a frame that the worker has not taken yet. The
    /// frame at the front does not count: one frame can always be queued.
    pub queue_bytes: usize,
    /// From the first byte of a frame to its last.
    pub frame_deadline: Duration,
}

impl Default for ChannelBounds {
    fn default() -> Self {
        Self { queue_bytes: 64 * 1024 * 1024, frame_deadline: Duration::from_secs(10) }
    }
}

/// Why a channel is of no more use. Its worker is to be killed, or is dead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChannelFault {
    /// The worker closed its end: it exited or was killed.
    #[error("the worker closed its socket")]
    Closed,
    /// The worker sent what is not a frame.
    #[error(transparent)]
    Frame(#[from] FrameFault),
    /// The worker began a frame and did not finish it.
    #[error("a frame was not finished within {} ms", .0.as_millis())]
    Stalled(Duration),
    /// The worker does not read what it is sent.
    #[error("more than {0} bytes wait for a worker that does not read")]
    QueueFull(usize),
    /// The kernel failed us.
    #[error("socket: {0}")]
    Io(Errno),
}

/// One worker's socket. Dropping it is hanging up.
#[derive(Debug)]
pub(crate) struct Channel {
    stream: UnixStream,
    decoder: FrameDecoder,
    queue: VecDeque<Vec<u8>>,
    /// How much of the frame at the front is written.
    written: usize,
    queued_bytes: usize,
    /// The worker reads no more. What it said before can still be read.
    deaf: bool,
    frame_begun: Option<Instant>,
    bounds: ChannelBounds,
}

/// Linux 6.16: whether a socket accepts descriptors at all.
#[derive(Clone, Copy, Debug)]
struct PassRights;

/// The same number on every architecture that brig knows.
const SO_PASSRIGHTS: i32 = 83;

setsockopt_impl!(PassRights, libc::SOL_SOCKET, SO_PASSRIGHTS, bool, nix::sys::socket::sockopt::SetBool);

/// Refuses descriptors at the socket, where the kernel can: who sends one gets an error.
/// Where it can not, they are discarded by reading without a control buffer.
pub(crate) fn refuse_rights(socket: &OwnedFd) -> bool {
    nix::sys::socket::setsockopt(socket, PassRights, &false).is_ok()
}

impl AsFd for Channel {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

enum Read {
    Some,
    Blocked,
    End,
}

impl Channel {
    /// Takes a connected stream socket. Must be called within the runtime.
    ///
    /// # Errors
    /// When it can not be registered with the runtime.
    pub(crate) fn new(socket: OwnedFd, bounds: ChannelBounds) -> io::Result<Self> {
        let socket = std::os::unix::net::UnixStream::from(socket);
        socket.set_nonblocking(true)?;
        Ok(Self {
            stream: UnixStream::from_std(socket)?,
            decoder: FrameDecoder::new(BODY_BYTES),
            queue: VecDeque::new(),
            written: 0,
            queued_bytes: 0,
            deaf: false,
            frame_begun: None,
            bounds,
        })
    }

    /// Sends a frame: at once as far as the socket takes it, the rest as
    /// [`Self::receive`] is awaited. A frame for a worker that has closed its end is
    /// dropped; `receive` tells.
    ///
    /// # Errors
    /// [`ChannelFault::QueueFull`]; [`ChannelFault::Io`].
    pub(crate) fn queue(&mut self, frame: Vec<u8>) -> Result<(), ChannelFault> {
        if self.deaf || frame.len() <= PREFIX_BYTES {
            return Ok(());
        }
        if !self.queue.is_empty() {
            self.flush()?;
            if !self.queue.is_empty() && self.queued_bytes.saturating_add(frame.len()) > self.bounds.queue_bytes {
                return Err(ChannelFault::QueueFull(self.bounds.queue_bytes));
            }
        }
        if !self.queue.is_empty() {
            self.queued_bytes += frame.len();
        }
        self.queue.push_back(frame);
        if self.queue.len() == 1 { self.flush() } else { Ok(()) }
    }

    /// The worker's next whole frame; writes what is queued meanwhile. Cancel-safe.
    ///
    /// # Errors
    /// Any [`ChannelFault`]; [`ChannelFault::Closed`] after the last whole frame.
    pub(crate) async fn receive(&mut self) -> Result<Body, ChannelFault> {
        loop {
            if let Some(body) = self.next_body()? {
                return Ok(body);
            }
            match self.read_now()? {
                // A worker that always has one more byte does not keep this thread.
                Read::Some => tokio::task::consume_budget().await,
                Read::End => return Err(ChannelFault::Closed),
                Read::Blocked => self.wait().await?,
            }
        }
    }

    /// From now on a frame with a longer body is a fault as soon as it is announced.
    pub(crate) fn limit_frames(&mut self, bytes: usize) {
        self.decoder.set_limit(bytes.min(BODY_BYTES));
    }

    /// Bytes that wait for the worker to take them.
    pub(crate) fn backlog(&self) -> usize {
        self.queue.iter().map(Vec::len).sum::<usize>().saturating_sub(self.written)
    }

    /// Whether bytes have been read that were not returned as a frame yet.
    pub(crate) fn has_unread(&self) -> bool {
        self.decoder.mid_frame()
    }

    fn next_body(&mut self) -> Result<Option<Body>, ChannelFault> {
        let body = self.decoder.take_body()?;
        if body.is_some() {
            self.frame_begun = None;
        }
        if body.is_none() && self.decoder.mid_frame() {
            let begun = *self.frame_begun.get_or_insert_with(Instant::now);
            if begun.elapsed() >= self.bounds.frame_deadline {
                return Err(ChannelFault::Stalled(self.bounds.frame_deadline));
            }
        }
        Ok(body)
    }

    /// One read, whatever the runtime believes about readiness; through the runtime when
    /// it believes that there is something, so that it learns when there is not.
    fn read_now(&mut self) -> Result<Read, ChannelFault> {
        let Self { stream, decoder, .. } = self;
        let mut tried = false;
        let outcome = stream.try_io(Interest::READABLE, || {
            tried = true;
            read_into(decoder, stream)
        });
        judge_read(if tried { outcome } else { read_into(decoder, stream) })
    }

    /// Until there is something to read, or to write what is queued.
    async fn wait(&mut self) -> Result<(), ChannelFault> {
        self.flush()?;
        loop {
            let interest = if self.queue.is_empty() { Interest::READABLE } else { Interest::READABLE | Interest::WRITABLE };
            let ready = match self.frame_begun.filter(|_| self.decoder.mid_frame()) {
                Some(begun) => timeout_at(begun + self.bounds.frame_deadline, self.stream.ready(interest))
                    .await
                    .map_err(|_| ChannelFault::Stalled(self.bounds.frame_deadline))?,
                None => self.stream.ready(interest).await,
            }
            .map_err(|fault| fault_of(&fault))?;
            if ready.is_writable() && !self.queue.is_empty() {
                self.flush_when_ready()?;
            }
            if ready.is_readable() || ready.is_read_closed() {
                return Ok(());
            }
        }
    }

    fn flush_when_ready(&mut self) -> Result<(), ChannelFault> {
        let Self { stream, queue, written, queued_bytes, .. } = self;
        let outcome = stream.try_io(Interest::WRITABLE, || write_from(stream, queue, written, queued_bytes));
        self.judge_write(outcome)
    }

    fn flush(&mut self) -> Result<(), ChannelFault> {
        if self.queue.is_empty() {
            return Ok(());
        }
        let outcome = write_from(&self.stream, &mut self.queue, &mut self.written, &mut self.queued_bytes);
        self.judge_write(outcome)
    }

    fn judge_write(&mut self, outcome: io::Result<()>) -> Result<(), ChannelFault> {
        match outcome {
            Ok(()) => Ok(()),
            Err(fault) if fault.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(fault) if is_hang_up(&fault) => {
                self.deaf = true;
                self.queue.clear();
                (self.written, self.queued_bytes) = (0, 0);
                Ok(())
            }
            Err(fault) => Err(fault_of(&fault)),
        }
    }
}

fn read_into(decoder: &mut FrameDecoder, stream: &UnixStream) -> io::Result<usize> {
    loop {
        match decoder.fill(|buffer| rustix::io::read(stream.as_fd(), rustix::buffer::spare_capacity(buffer))) {
            Err(Errno::INTR) => {}
            outcome => return Ok(outcome?),
        }
    }
}

fn judge_read(outcome: io::Result<usize>) -> Result<Read, ChannelFault> {
    match outcome {
        Ok(0) => Ok(Read::End),
        Ok(_) => Ok(Read::Some),
        Err(fault) if fault.kind() == io::ErrorKind::WouldBlock => Ok(Read::Blocked),
        Err(fault) if is_hang_up(&fault) => Ok(Read::End),
        Err(fault) => Err(fault_of(&fault)),
    }
}

/// Writes until everything is written or the socket is full.
fn write_from(stream: &UnixStream, queue: &mut VecDeque<Vec<u8>>, written: &mut usize, queued: &mut usize) -> io::Result<()> {
    while let Some(frame) = queue.front() {
        let rest = frame.get(*written..).unwrap_or_default();
        match rustix::net::send(stream.as_fd(), rest, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(sent) if sent < rest.len() => *written += sent,
            Ok(_) => {
                queue.pop_front();
                *written = 0;
                *queued -= queue.front().map_or(0, Vec::len).min(*queued);
            }
            Err(Errno::INTR) => {}
            Err(fault) => return Err(fault.into()),
        }
    }
    Ok(())
}

fn is_hang_up(fault: &io::Error) -> bool {
    matches!(fault.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::NotConnected)
}

fn fault_of(fault: &io::Error) -> ChannelFault {
    ChannelFault::Io(Errno::from_io_error(fault).unwrap_or(Errno::IO))
}

#[cfg(test)]
mod tests;
