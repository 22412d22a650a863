//! Owns what the program has printed: the limit of each stream, the marker where it was
//! cut, and when it is sent. Output leaves at once unless there is very much of it, so that
//! what was printed before a kill is with the supervisor. It never decides how a value looks.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use brig_protocol::{client::Stream, worker};

use crate::{outbox::Outbox, value::text::head};

/// Prints of one turn that are sent one by one; what follows is sent in blocks.
const SENT_AT_ONCE: u32 = 128;
/// Bytes of one block.
const BLOCK: usize = 4 * 1024;

/// Both console streams.
#[derive(Debug)]
pub(crate) struct Output {
    outbox: Rc<Outbox>,
    limit: Cell<usize>,
    stdout: Cell<Used>,
    stderr: Cell<Used>,
    pending: RefCell<(Option<Stream>, String)>,
    burst: Cell<u32>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Used {
    bytes: usize,
    cut: bool,
}

impl Output {
    /// Streams that leave by this outbox.
    pub(crate) fn new(outbox: Rc<Outbox>) -> Self {
        Self {
            outbox,
            limit: Cell::new(usize::MAX),
            stdout: Cell::default(),
            stderr: Cell::default(),
            pending: RefCell::default(),
            burst: Cell::new(0),
        }
    }

    /// Starts both streams over, each with `bytes` at most.
    pub(crate) fn start(&self, bytes: u64) {
        self.limit.set(usize::try_from(bytes).unwrap_or(usize::MAX));
        self.stdout.take();
        self.stderr.take();
        self.burst.set(0);
        self.pending.take();
    }

    /// Prints text as it is, cut at the limit.
    pub(crate) fn print(&self, stream: Stream, text: &str) {
        let used = match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        };
        let mut state = used.get();
        if state.cut {
            return;
        }
        let marker =
            format!("\n[cut: {}]\n", brig_protocol::limits::named("consoleBytes", u64::try_from(self.limit.get()).unwrap_or(u64::MAX)));
        // Room for the marker is kept free, unless the limit is hardly more than that.
        let marker = if marker.len() < self.limit.get() / 2 { marker.as_str() } else { "" };
        let room = self.limit.get().saturating_sub(state.bytes + marker.len());
        if text.len() <= room {
            state.bytes += text.len();
            used.set(state);
            self.queue(stream, text);
            self.warn_when_near(stream, state.bytes, text.len());
            return;
        }
        state.cut = true;
        used.set(state);
        self.queue(stream, head(text, room));
        self.queue(stream, marker);
        self.send_cut(stream);
    }

    /// Sends what is pending of a stream with the flag that its rest is cut.
    fn send_cut(&self, stream: Stream) {
        self.hand_over();
        self.send_text(stream, "", true);
    }

    fn warn_when_near(&self, stream: Stream, now: usize, added: usize) {
        let line = self.limit.get() / 5 * 4;
        if now > line && now - added <= line && self.limit.get() != usize::MAX {
            let name = if stream == Stream::Stdout { "stdout" } else { "stderr" };
            self.outbox.limit_near("consoleBytes", &format!("{name} holds {now} bytes"), self.limit.get());
        }
    }

    fn queue(&self, stream: Stream, text: &str) {
        let other = self.pending.borrow().0.is_some_and(|held| held != stream);
        if other {
            self.hand_over();
        }
        let waiting = {
            let mut pending = self.pending.borrow_mut();
            pending.0 = Some(stream);
            pending.1.push_str(text);
            pending.1.len()
        };
        self.burst.set(self.burst.get().saturating_add(1));
        if self.burst.get() <= SENT_AT_ONCE || waiting >= BLOCK {
            self.flush();
        }
    }

    /// Turns pending text into a message, in its place among the others.
    pub(crate) fn hand_over(&self) {
        let stream = self.pending.try_borrow().ok().and_then(|pending| pending.0);
        if let Some(stream) = stream {
            self.send_pending(stream);
        }
    }

    fn send_pending(&self, stream: Stream) {
        let Ok(mut pending) = self.pending.try_borrow_mut() else { return };
        if !pending.1.is_empty() {
            self.send_text(stream, &pending.1, false);
        }
        pending.0 = None;
        pending.1.clear();
    }

    fn send_text(&self, stream: Stream, text: &str, truncated: bool) {
        if let Ok(frame) = worker::output_frame(stream, text, truncated) {
            self.outbox.send(&frame);
        }
    }

    /// Sends what is pending now.
    pub(crate) fn flush(&self) {
        self.hand_over();
        self.outbox.flush();
    }

    /// Ends a turn of the job pump: sends, and counts bursts anew.
    pub(crate) fn end_turn(&self) {
        self.hand_over();
        self.burst.set(0);
    }
}
