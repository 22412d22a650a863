//! What comes from one client.
//!
//! Owns cutting its bytes into lines within the budget. Never keeps a buffer for a
//! client that says nothing.

use super::budget::Held;
use brig_protocol::limits::REQUEST_LINE_BYTES;
use brig_protocol::line::{Line, LineDecoder};
use rustix::event::{PollFd, PollFlags};
use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;

/// Most bytes of one read.
const READ_BYTES: usize = 64 * 1024;

/// The way in from one client.
#[derive(Debug)]
pub(crate) struct Reader {
    half: OwnedReadHalf,
    decoder: LineDecoder,
    held: Held,
}

impl Reader {
    /// A way in by `half`.
    pub(crate) const fn new(half: OwnedReadHalf, held: Held) -> Self {
        Self { half, decoder: LineDecoder::new(REQUEST_LINE_BYTES), held }
    }

    /// Reads once; then ask for lines. 0 is the end. Safe to drop at any await.
    pub(crate) async fn read(&mut self) -> io::Result<usize> {
        poll_fn(|task| self.poll_read(task)).await
    }

    // The buffer lives on the stack of this one poll, not in the connection.
    fn poll_read(&mut self, task: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut bytes = [const { MaybeUninit::<u8>::uninit() }; READ_BYTES];
        let mut buffer = ReadBuf::uninit(&mut bytes);
        ready!(Pin::new(&mut self.half).poll_read(task, &mut buffer))?;
        self.decoder.feed(buffer.filled());
        Poll::Ready(Ok(buffer.filled().len()))
    }

    /// The next whole line.
    pub(crate) fn next_line(&mut self) -> Option<Line> {
        self.decoder.next_line()
    }

    /// What is kept of an unfinished line.
    pub(crate) fn beginning(&self) -> &[u8] {
        self.decoder.beginning()
    }

    /// What is left at the end.
    pub(crate) fn rest(&mut self) -> Option<Line> {
        self.decoder.finish()
    }

    /// Whether what is kept of an unfinished line is within the budget.
    pub(crate) fn within_budget(&mut self) -> bool {
        self.held.resize(self.decoder.buffered())
    }

    /// Whether the client has closed both directions: it will never read an answer.
    pub(crate) fn peer_is_gone(&self) -> bool {
        let stream: &UnixStream = self.half.as_ref();
        let mut look = [PollFd::new(stream, PollFlags::empty())];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        rustix::event::poll(&mut look, Some(&now)).is_ok_and(|_| {
            let [look] = look;
            look.revents().intersects(PollFlags::HUP | PollFlags::ERR)
        })
    }
}
