//! One program, from its start to its end.
//!
//! Owns its three pipes: orders and input go in while output and complaints come out, each
//! within a bound, what is over it being read away. Never blocks a thread of the runtime,
//! and never outlives its future: dropped, the keeper ends all that the program started.

use crate::host::redact::Redactor;
use crate::host::turns::Turn;
use crate::keeper::{BY_SIGNAL, NEVER_RAN};
use crate::spawn::{Keeper, Stdio3, start_keeper};
use brig_protocol::escape::escaped;
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use zeroize::Zeroizing;

/// Most of what a program complains that is looked through for credentials, in bytes.
const COMPLAINT_BYTES: usize = 72 * 1024;
/// Most of it that is logged, in bytes.
const LOGGED_BYTES: usize = 8 * 1024;
/// Most lines of it that are logged.
const LOGGED_LINES: usize = 50;
/// Longest line of it that is logged, in bytes.
const LINE_BYTES: usize = 1024;
/// What is looked through where it is, in bytes.
const INLINE_BYTES: usize = 32 * 1024;
/// White space around an output that does not count, in bytes.
const SLACK_BYTES: usize = 4 * 1024;
/// How long the pipes may stay open when nothing is left that could write: then somebody
/// else holds them.
const LAST_BYTES: Duration = Duration::from_secs(1);

/// How a program ended.
#[derive(Debug)]
pub(super) struct Finished {
    /// Nothing when it was not seen.
    pub(super) status: Option<ExitStatus>,
    /// It never ran: its keeper says so, not the way in which it ended.
    pub(super) not_started: bool,
    /// What it wrote.
    pub(super) output: Vec<u8>,
    /// Whether it wrote more than is kept.
    pub(super) overlong: bool,
    /// What it complained, and whether there was more.
    complaint: (Vec<u8>, bool),
}

/// Which call it is, for the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Label<'a> {
    pub(super) function: &'a str,
    pub(super) evaluation: &'a str,
    pub(super) call: u64,
}

/// Runs a program: `orders`, then `input` on its standard input. The turn is given back
/// when nothing is left of the program, whether anybody waits for it or not.
///
/// # Errors
/// It was not started.
pub(super) async fn run(orders: Zeroizing<Vec<u8>>, input: &[u8], output_bytes: u64, turn: Turn) -> io::Result<Finished> {
    let pipe = || pipe_with(PipeFlags::CLOEXEC);
    let ((their_in, our_in), (our_out, their_out), (our_err, their_err)) = (pipe()?, pipe()?, pipe()?);
    let (reports, report) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let mut keeper = start_keeper(Stdio3 { stdin: their_in, stdout: their_out, stderr: their_err, report }).await?;
    keeper.hold(Box::new(turn));
    let most = usize::try_from(output_bytes).unwrap_or(usize::MAX).saturating_add(SLACK_BYTES);
    let (mut output, mut complaint) = (Bounded::new(most), Bounded::new(COMPLAINT_BYTES));
    let status = {
        let reads = async { tokio::join!(output.fill(our_out), complaint.fill(our_err)) };
        let talk = async { tokio::join!(feed(our_in, orders, input), reads) };
        let mut talk = std::pin::pin!(talk);
        let mut ended = std::pin::pin!(end_of(keeper));
        tokio::select! {
            status = &mut ended => {
                // Nothing is left that could write: what is in the pipes is all there is.
                drop(tokio::time::timeout(LAST_BYTES, &mut talk).await);
                status
            }
            _ = &mut talk => ended.await,
        }
    };
    let mut report = [0_u8; 2];
    let length = rustix::io::read(&reports, &mut report[..]).unwrap_or(0);
    let not_started = length == 1 && report[0] == NEVER_RAN;
    // Where the keeper names a signal that is what ended the program, however the keeper ended.
    let by_signal = (length == 2 && report[0] == BY_SIGNAL).then(|| ExitStatus::from_raw(i32::from(report[1])));
    let status = status.map(|seen| by_signal.unwrap_or(seen));
    Ok(Finished { status, not_started, output: output.kept, overlong: output.cut, complaint: (complaint.kept, complaint.cut) })
}

async fn end_of(keeper: Keeper) -> Option<ExitStatus> {
    keeper.ended().await
}

/// A program need not read all, or any, of what it gets.
async fn feed(pipe: OwnedFd, orders: Zeroizing<Vec<u8>>, input: &[u8]) -> io::Result<()> {
    let mut pipe = pipe::Sender::from_owned_fd(pipe)?;
    pipe.write_all(&orders).await?;
    drop(orders);
    pipe.write_all(input).await
}

/// The first bytes of a pipe; the rest is read away.
struct Bounded {
    kept: Vec<u8>,
    most: usize,
    cut: bool,
}

impl Bounded {
    const fn new(most: usize) -> Self {
        Self { kept: Vec::new(), most, cut: false }
    }

    async fn fill(&mut self, pipe: OwnedFd) -> io::Result<()> {
        let mut pipe = pipe::Receiver::from_owned_fd(pipe)?;
        let mut chunk = vec![0; 64 * 1024];
        loop {
            let length = pipe.read(&mut chunk).await?;
            let Some(bytes) = chunk.get(..length).filter(|bytes| !bytes.is_empty()) else { return Ok(()) };
            let room = self.most.saturating_sub(self.kept.len());
            self.kept.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
            self.cut |= bytes.len() > room;
        }
    }
}

impl Finished {
    /// One that ended so, for tests.
    #[cfg(test)]
    pub(super) fn of(status: Option<ExitStatus>, output: &[u8], overlong: bool) -> Self {
        Self { status, not_started: false, output: output.to_vec(), overlong, complaint: (Vec::new(), false) }
    }

    /// Whether looking through it takes long.
    pub(super) fn is_long(&self) -> bool {
        self.output.len() + self.complaint.0.len() > INLINE_BYTES
    }

    /// Puts what the program complained into the log, without credentials and escaped.
    pub(super) fn log(&self, label: Label<'_>, redactor: &Redactor) {
        let (bytes, cut) = &self.complaint;
        if bytes.is_empty() {
            return;
        }
        let Label { function, evaluation, call } = label;
        if self.not_started {
            tracing::error!(function, evaluation, call, "the program of a function could not be started");
        }
        let text = String::from_utf8_lossy(bytes);
        let text = redactor.clean(&text);
        let mut logged = 0;
        for line in text.lines().take(LOGGED_LINES) {
            if logged + line.len() > LOGGED_BYTES {
                break;
            }
            logged += line.len() + 1;
            let line = escaped(line, LINE_BYTES);
            tracing::info!(function, evaluation, call, %line, "the program of a function says");
        }
        if *cut || logged < text.len() {
            tracing::info!(function, evaluation, call, "the program of a function said more than is logged");
        }
    }
}
