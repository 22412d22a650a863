//! What waits to be sent to one client.
//!
//! Owns the order of lines and the bound on their bytes. A line goes out at once when
//! the socket takes it; only the rest is kept. A client that takes nothing until the
//! deadline is disconnected: it never makes brigd hold more, or anyone wait.

use super::budget::Held;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Above this many bytes waiting, answers and host calls wait where they are made, and
/// notes that only repeat what the answer says are dropped. Above this many bytes of
/// replies to lines of the client, nothing more is read from it. Its own answers to our
/// host calls are read all the same: a client that writes one before it reads the next
/// call would wait for us as we for it.
const HIGH_WATER_BYTES: usize = 1024 * 1024;

/// Why nothing can be sent any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The client has hung up.
    HungUp,
    /// It took nothing until the deadline.
    SlowReader,
    /// It lets more wait than its user may have waiting.
    OverBudget,
}

/// The way out to one client.
#[derive(Debug)]
pub(crate) struct Outbox {
    half: OwnedWriteHalf,
    patience: Duration,
    state: Mutex<State>,
    /// Something waits, or nothing can be sent any more.
    waiting: Notify,
    /// There is room again, or nothing can be sent any more.
    room: Notify,
}

#[derive(Debug)]
struct State {
    queue: VecDeque<Waiting>,
    /// Bytes of the first line that are out already.
    sent: usize,
    bytes: usize,
    /// Bytes of the lines that are replies.
    replies: usize,
    held: Held,
    /// When the client last took something, or was first made to wait.
    progress: Instant,
    broken: Option<Broken>,
}

/// One line in the queue.
#[derive(Debug)]
struct Waiting {
    line: Vec<u8>,
    /// It is the immediate reply to a line of the client.
    reply: bool,
}

impl Outbox {
    /// A way out by `half`; the client may take nothing for `patience`.
    pub(crate) fn new(half: OwnedWriteHalf, held: Held, patience: Duration) -> Self {
        let state = State { queue: VecDeque::new(), sent: 0, bytes: 0, replies: 0, held, progress: Instant::now(), broken: None };
        Self { half, patience, state: Mutex::new(state), waiting: Notify::new(), room: Notify::new() }
    }

    /// Sends one line, or queues what the socket does not take now. After a fault it
    /// does nothing: the connection is ending.
    pub(crate) fn send(&self, line: Vec<u8>) {
        self.enqueue(Waiting { line, reply: false });
    }

    /// Sends the immediate reply to a line of the client.
    pub(crate) fn reply(&self, line: Vec<u8>) {
        self.enqueue(Waiting { line, reply: true });
    }

    fn enqueue(&self, next: Waiting) {
        let mut state = self.lock();
        if state.broken.is_some() || next.line.is_empty() {
            return;
        }
        if state.queue.is_empty() {
            state.progress = Instant::now();
        }
        state.bytes += next.line.len();
        state.replies += if next.reply { next.line.len() } else { 0 };
        state.queue.push_back(next);
        if state.queue.len() == 1 {
            self.write_some(&mut state);
        }
        let waiting = state.bytes;
        if waiting > 0 && !state.held.resize(waiting) {
            self.break_off(&mut state, Broken::OverBudget);
        }
        if !state.queue.is_empty() {
            self.waiting.notify_one();
        }
    }

    /// Sends one line once there is room for it: it is not made before, for nobody counts
    /// the bytes of those that wait. Ends when the connection does.
    pub(crate) async fn send_when_room(&self, line: impl FnOnce() -> Vec<u8>) {
        self.room().await;
        self.send(line());
    }

    /// Waits until the client is not behind any more, or nothing can be sent.
    pub(crate) async fn room(&self) {
        loop {
            // Made before the look, so that no word of room gets lost in between.
            let room = self.room.notified();
            if !self.congested() {
                return;
            }
            room.await;
        }
    }

    /// Waits until few enough replies wait for the client to be read again.
    pub(crate) async fn room_for_replies(&self) {
        loop {
            let room = self.room.notified();
            if self.takes_replies() {
                return;
            }
            room.await;
        }
    }

    /// Whether few enough replies wait for the client to be read.
    pub(crate) fn takes_replies(&self) -> bool {
        self.lock().replies < HIGH_WATER_BYTES
    }

    /// Sends one line that may be lost: not when the client is behind.
    pub(crate) fn send_if_room(&self, line: Vec<u8>) {
        if !self.congested() {
            self.send(line);
        }
    }

    /// Whether the client is behind.
    pub(crate) fn congested(&self) -> bool {
        self.lock().bytes >= HIGH_WATER_BYTES
    }

    /// Whether everything is out, or nothing can go out any more.
    pub(crate) fn is_empty(&self) -> bool {
        let state = self.lock();
        state.queue.is_empty() || state.broken.is_some()
    }

    /// Writes what waits, as the client takes it. Returns when nothing can be sent any
    /// more, and only then. Safe to drop at any await.
    pub(crate) async fn drive(&self) -> Broken {
        loop {
            let Some(patient_until) = self.patient_until() else {
                if let Some(broken) = self.lock().broken {
                    return broken;
                }
                self.waiting.notified().await;
                continue;
            };
            match tokio::time::timeout_at(patient_until, self.half.writable()).await {
                Err(_) => self.break_off(&mut self.lock(), Broken::SlowReader),
                Ok(Err(_)) => self.break_off(&mut self.lock(), Broken::HungUp),
                Ok(Ok(())) => self.write_some(&mut self.lock()),
            }
        }
    }

    /// Waits until everything is out, or nothing can go out any more. Whoever waits
    /// bounds it.
    pub(crate) async fn drained(&self) {
        while !self.is_empty() {
            match self.half.writable().await {
                Ok(()) => self.write_some(&mut self.lock()),
                Err(_) => self.break_off(&mut self.lock(), Broken::HungUp),
            }
        }
    }

    /// Nothing is sent any more.
    pub(crate) fn close(&self) {
        self.break_off(&mut self.lock(), Broken::HungUp);
    }

    /// Nothing is sent any more: what waits is more than may.
    pub(crate) fn close_over_budget(&self) {
        self.break_off(&mut self.lock(), Broken::OverBudget);
    }

    /// Until when the client may take nothing; nothing when nothing waits.
    fn patient_until(&self) -> Option<Instant> {
        let state = self.lock();
        (!state.queue.is_empty()).then(|| state.progress + self.patience)
    }

    fn write_some(&self, state: &mut State) {
        while let Some(Waiting { line, reply }) = state.queue.front() {
            match self.half.try_write(line.get(state.sent..).unwrap_or_default()) {
                Ok(written) => {
                    state.sent += written;
                    state.bytes = state.bytes.saturating_sub(written);
                    state.progress = Instant::now();
                    if state.sent >= line.len() {
                        state.replies = state.replies.saturating_sub(if *reply { line.len() } else { 0 });
                        state.queue.pop_front();
                        state.sent = 0;
                    }
                }
                Err(fault) if fault.kind() == ErrorKind::WouldBlock => break,
                Err(fault) if fault.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.break_off(state, Broken::HungUp),
            }
        }
        let waiting = state.bytes;
        // Less than before always fits.
        if state.held.resize(waiting) && waiting.min(state.replies) < HIGH_WATER_BYTES {
            self.room.notify_waiters();
        }
    }

    fn break_off(&self, state: &mut State, broken: Broken) {
        state.broken.get_or_insert(broken);
        state.queue.clear();
        state.bytes = 0;
        state.replies = 0;
        state.sent = 0;
        self.waiting.notify_one();
        self.room.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::super::budget::Budget;
    use super::*;
    use futures_util::FutureExt;
    use tokio::io::AsyncReadExt;
    use tokio::net::UnixStream;

    fn pair(patience: Duration) -> (Outbox, UnixStream, tokio::net::unix::OwnedReadHalf) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (read, write) = ours.into_split();
        (Outbox::new(write, Budget::new(64 * 1024 * 1024).holder(1), patience), theirs, read)
    }

    #[tokio::test]
    async fn a_line_goes_out_at_once_when_the_socket_takes_it() {
        let (outbox, mut client, _read) = pair(Duration::from_secs(10));
        outbox.send(b"one\n".to_vec());
        assert!(outbox.is_empty());
        let mut buffer = [0; 4];
        client.read_exact(&mut buffer).await.unwrap();
        assert_eq!(&buffer, b"one\n");
    }

    #[tokio::test]
    async fn lines_keep_their_order_when_the_socket_is_full() {
        let (outbox, mut client, _read) = pair(Duration::from_secs(10));
        let big = vec![b'x'; 3 * 1024 * 1024];
        outbox.send(big.clone());
        outbox.send(b"end\n".to_vec());
        assert!(outbox.congested());
        let mut seen = Vec::new();
        let reader = async {
            let mut buffer = vec![0; 65536];
            while seen.len() < big.len() + 4 {
                let read = client.read(&mut buffer).await.unwrap();
                seen.extend_from_slice(buffer.get(..read).unwrap());
            }
        };
        tokio::select! { () = reader => {}, _ = outbox.drive() => {} }
        assert!(seen.ends_with(b"xend\n"));
        assert!(outbox.is_empty());
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_given_up() {
        let (outbox, _client, _read) = pair(Duration::from_millis(5));
        outbox.send(vec![b'x'; 3 * 1024 * 1024]);
        assert_eq!(outbox.drive().await, Broken::SlowReader);
        outbox.send_when_room(|| b"more\n".to_vec()).await;
        assert!(outbox.is_empty());
    }

    #[tokio::test]
    async fn an_answer_waits_for_room_and_a_note_is_dropped() {
        let (outbox, _client, _read) = pair(Duration::from_secs(10));
        outbox.send(vec![b'x'; 3 * 1024 * 1024]);
        let waiting = outbox.lock().bytes;
        outbox.send_if_room(b"note\n".to_vec());
        assert!(outbox.send_when_room(|| b"answer\n".to_vec()).now_or_never().is_none());
        assert_eq!(outbox.lock().bytes, waiting);
    }

    #[tokio::test]
    async fn more_than_the_budget_ends_the_connection() {
        let (outbox, _client, _read) = pair(Duration::from_secs(10));
        outbox.send(vec![b'x'; 40 * 1024 * 1024]);
        assert_eq!(outbox.drive().await, Broken::OverBudget);
    }

    #[tokio::test]
    async fn a_client_that_hung_up_is_noticed() {
        let (outbox, client, _read) = pair(Duration::from_secs(10));
        drop(client);
        outbox.send(b"x\n".to_vec());
        assert_eq!(outbox.drive().await, Broken::HungUp);
    }
}
