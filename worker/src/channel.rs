//! Owns the worker's one descriptor: whole frames in, whole frames out, with `read`,
//! `write` and `ppoll` only. It never looks into a frame, and a supervisor that is gone
//! ends the process: there is nobody to answer.

use std::{
    cell::RefCell,
    os::fd::{AsFd, OwnedFd},
    time::Duration,
};

use brig_protocol::frame::{self, FrameDecoder};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, ppoll},
    sys::time::TimeSpec,
};

/// Bytes that wait before they are written without being asked for.
const FLUSH_FROM: usize = 64 * 1024;

/// The supervisor hung up, or said something that is no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HungUp;

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// Bytes came in; a frame may be whole now.
    Came,
    /// Nothing came in the time given.
    TimedOut,
}

/// Frames over one socket.
#[derive(Debug)]
pub(crate) struct Channel {
    /// `None` while a realm is rehearsed: nothing is read, and what is sent is dropped.
    socket: Option<OwnedFd>,
    out: RefCell<Vec<u8>>,
    decoder: RefCell<FrameDecoder>,
}

impl Channel {
    /// Takes a connected, blocking stream socket.
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self::over(Some(socket))
    }

    /// A channel to nobody, for a rehearsal.
    pub(crate) fn to_nobody() -> Self {
        Self::over(None)
    }

    fn over(socket: Option<OwnedFd>) -> Self {
        Self { socket, out: RefCell::new(Vec::new()), decoder: RefCell::new(FrameDecoder::new(frame::BODY_BYTES)) }
    }

    /// Queues one frame; it leaves with the next flush, or now when much is waiting.
    ///
    /// # Errors
    /// [`HungUp`] when the supervisor is gone.
    pub(crate) fn send(&self, frame: &[u8]) -> Result<(), HungUp> {
        let waiting = {
            let mut out = self.out.borrow_mut();
            out.extend_from_slice(frame);
            out.len()
        };
        if waiting >= FLUSH_FROM { self.flush() } else { Ok(()) }
    }

    /// Writes all that is queued.
    ///
    /// # Errors
    /// [`HungUp`] when the supervisor is gone.
    pub(crate) fn flush(&self) -> Result<(), HungUp> {
        // Called from the allocator's last words too, possibly in the middle of `send`.
        let Ok(mut out) = self.out.try_borrow_mut() else { return Ok(()) };
        let Some(socket) = &self.socket else {
            out.clear();
            return Ok(());
        };
        let mut rest = out.as_slice();
        while !rest.is_empty() {
            match nix::unistd::write(socket, rest) {
                Ok(0) => return Err(HungUp),
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => {
                    self.poll(PollFlags::POLLOUT, None)?;
                }
                Err(_) => return Err(HungUp),
            }
        }
        out.clear();
        Ok(())
    }

    /// Waits for bytes, at most `patience` (`None`: for ever), and takes them.
    ///
    /// # Errors
    /// [`HungUp`] when the supervisor is gone.
    pub(crate) fn wait(&self, patience: Option<Duration>) -> Result<Waited, HungUp> {
        self.flush()?;
        if patience.is_some() && self.poll(PollFlags::POLLIN, patience)? == Waited::TimedOut {
            return Ok(Waited::TimedOut);
        }
        let socket = self.socket.as_ref().ok_or(HungUp)?;
        loop {
            // Read in place: a buffer on the stack would be pages that no other code touches.
            let read = self.decoder.borrow_mut().fill(|buffer| rustix::io::read(socket, rustix::buffer::spare_capacity(buffer)));
            match read {
                Ok(0) => return Err(HungUp),
                Ok(_) => return Ok(Waited::Came),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => {
                    self.poll(PollFlags::POLLIN, None)?;
                }
                Err(_) => return Err(HungUp),
            }
        }
    }

    fn poll(&self, events: PollFlags, patience: Option<Duration>) -> Result<Waited, HungUp> {
        let socket = self.socket.as_ref().ok_or(HungUp)?;
        let mut fds = [PollFd::new(socket.as_fd(), events)];
        match ppoll(&mut fds, patience.map(TimeSpec::from), None) {
            Ok(0) => Ok(Waited::TimedOut),
            Ok(_) | Err(Errno::EINTR) => Ok(Waited::Came),
            Err(_) => Err(HungUp),
        }
    }

    /// Runs `take` over the next whole frame that has come in; `None`: there is none.
    /// `take` must not read from this channel; it may send.
    ///
    /// # Errors
    /// [`HungUp`] when the stream holds what is no frame.
    pub(crate) fn next_frame<R>(&self, take: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, HungUp> {
        let mut decoder = self.decoder.borrow_mut();
        match decoder.next_frame() {
            Ok(Some(body)) => Ok(Some(take(body))),
            Ok(None) => Ok(None),
            Err(_) => Err(HungUp),
        }
    }
}
