//! One connection to brigd: lines out, lines in.
//!
//! Owns the tasks that read and write. Never keeps more of an incoming line than
//! [`ANSWER_LINE_BYTES`].

mod answering;
mod denied;
mod reach;
mod table;
mod ticket;
mod wire;

use crate::embedded::PrivateServer;
use crate::error::Error;
use crate::functions::Handlers;
use brig_protocol::client::{EvaluateParams, FunctionsCallParams, VmCreateParams, method};
use brig_protocol::line::{Line, LineDecoder};
use serde::Serialize;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use table::Table;
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wire::{Unsent, Wire};

pub(crate) use table::{ApprovalListener, Offer};
pub use ticket::Canceller;
pub(crate) use ticket::Ticket;

/// Longest line taken from brigd, in bytes: a value and two console streams at their
/// highest limits, every byte of the consoles escaped to six.
const ANSWER_LINE_BYTES: usize = 256 * 1024 * 1024;
/// What one read takes at most.
const READ_BYTES: usize = 64 * 1024;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while one of these was held left it as it was: every change is one step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn read_lines(wire: Arc<Wire>, most: usize) {
    let mut decoder = LineDecoder::new(most);
    let mut buffer = vec![0; READ_BYTES];
    let reason = loop {
        match read_some(&wire, &mut buffer).await {
            Ok(0) => break Error::ConnectionLost("brigd closed it".to_owned()),
            Ok(length) => decoder.feed(buffer.get(..length).unwrap_or_default()),
            Err(fault) => break Error::ConnectionLost(fault.to_string()),
        }
        if let Err(fault) = take_lines(&wire, &mut decoder, most) {
            break fault;
        }
    };
    wire.lose(&reason);
}

fn take_lines(wire: &Arc<Wire>, decoder: &mut LineDecoder, most: usize) -> Result<(), Error> {
    while let Some(line) = decoder.next_line() {
        match line {
            Line::Text(text) if text.is_empty() => {}
            Line::Text(text) => wire.take_line(&text)?,
            Line::TooLong => return Err(Error::Protocol(format!("a line has more than {most} bytes"))),
        }
    }
    Ok(())
}

async fn read_some(wire: &Wire, buffer: &mut [u8]) -> std::io::Result<usize> {
    loop {
        wire.stream.readable().await?;
        match wire.stream.try_read(buffer) {
            Err(fault) if fault.kind() == std::io::ErrorKind::WouldBlock => {}
            other => return other,
        }
    }
}

async fn write_unsent(wire: Arc<Wire>) {
    loop {
        wire.more.notified().await;
        while !lock(&wire.unsent).is_empty() {
            if write_some(&wire).await.is_err() {
                return wire.read_to_the_end();
            }
        }
    }
}

async fn write_some(wire: &Wire) -> std::io::Result<()> {
    wire.stream.writable().await?;
    let mut unsent = lock(&wire.unsent);
    match wire.stream.try_write(unsent.rest()) {
        Ok(written) => {
            unsent.advance(written);
            Ok(())
        }
        Err(fault) if fault.kind() == std::io::ErrorKind::WouldBlock => Ok(()),
        Err(fault) => Err(fault),
    }
}

/// A connection with its tasks; the last owner's drop ends all of it.
pub(crate) struct Connection {
    wire: Arc<Wire>,
    tasks: [AbortHandle; 2],
    server: Mutex<Option<PrivateServer>>,
}

impl Connection {
    pub(crate) async fn open(path: &Path) -> Result<Self, Error> {
        Self::open_by(path, Instant::now() + reach::QUEUE_TIME).await
    }

    /// The same, not waiting for a place in brigd's queue beyond `deadline`.
    pub(crate) async fn open_by(path: &Path, deadline: Instant) -> Result<Self, Error> {
        Self::open_within(path, deadline, ANSWER_LINE_BYTES).await
    }

    /// The same, taking no line from brigd that is longer than `most` bytes.
    async fn open_within(path: &Path, deadline: Instant, most: usize) -> Result<Self, Error> {
        let unreached = |fault: std::io::Error| Error::Connect {
            path: path.to_owned(),
            reason: denied::reason(path, &fault),
            listening: fault.kind() == std::io::ErrorKind::WouldBlock,
        };
        let stream = reach::connect(path, deadline).await.map_err(unreached)?;
        let wire = Arc::new(Wire {
            stream,
            unsent: Mutex::new(Unsent::default()),
            more: Notify::new(),
            table: Mutex::new(Table::default()),
            over: CancellationToken::new(),
        });
        let tasks = [
            tokio::spawn(read_lines(Arc::clone(&wire), most)).abort_handle(),
            tokio::spawn(write_unsent(Arc::clone(&wire))).abort_handle(),
        ];
        Ok(Self { wire, tasks, server: Mutex::new(None) })
    }

    /// Ends with the connection.
    pub(crate) fn over(&self) -> &CancellationToken {
        &self.wire.over
    }

    /// Ties the life of a private brigd to this connection.
    pub(crate) fn own(&self, server: PrivateServer) {
        *lock(&self.server) = Some(server);
    }

    pub(crate) fn release_server(&self) -> Option<PrivateServer> {
        lock(&self.server).take()
    }

    pub(crate) fn hang_up(&self) {
        self.wire.lose(&Error::ConnectionLost("this client closed it".to_owned()));
        self.tasks.iter().for_each(AbortHandle::abort);
    }

    /// Sends a request, and gives a ticket for its answer.
    pub(crate) fn request(self: &Arc<Self>, method: &str, params: &impl Serialize) -> Result<Ticket, Error> {
        let (ticket, _) = self.ticket(None)?;
        ticket.send(method, params)
    }

    /// Sends a request that is cancelled when its ticket is dropped.
    /// Who listens hears of approvals that it waits for.
    pub(crate) fn call(
        self: &Arc<Self>,
        method: &str,
        params: &FunctionsCallParams<'_>,
        listener: Option<ApprovalListener>,
    ) -> Result<Ticket, Error> {
        let (mut ticket, _) = self.ticket(None)?;
        ticket.cancels = true;
        if let Some(listener) = listener {
            lock(&self.wire.table).watch(ticket.request, params.function.clone(), listener);
        }
        ticket.send(method, params)
    }

    /// Sends an evaluation, and gives a ticket for its answer.
    pub(crate) fn evaluate(self: &Arc<Self>, mut params: EvaluateParams<'_>, offer: Offer) -> Result<Ticket, Error> {
        let (mut ticket, announced) = self.ticket(Some(offer))?;
        params.announce = announced;
        ticket.cancels = true;
        ticket.send(method::EVALUATE, &params)
    }

    fn ticket(self: &Arc<Self>, offer: Option<Offer>) -> Result<(Ticket, bool), Error> {
        let (sender, answer) = oneshot::channel();
        let (request, announced) = lock(&self.wire.table).add(sender, offer)?;
        Ok((Ticket { connection: Arc::clone(self), request, answer, sent: false, cancels: false, done: false }, announced))
    }

    /// Makes a vm, for whose functions `handlers` answer, whoever evaluates in it. A ticket
    /// that is dropped ends it.
    pub(crate) fn create_vm(self: &Arc<Self>, params: &VmCreateParams<'_>, handlers: Handlers) -> Result<Ticket, Error> {
        let (mut ticket, _) = self.ticket(None)?;
        ticket.cancels = true;
        lock(&self.wire.table).expect_vm(ticket.request, handlers);
        ticket.send(method::VM_CREATE, params)
    }

    /// The vm is no more.
    pub(crate) fn let_go(&self, vm: &str) {
        lock(&self.wire.table).kept.remove(vm);
    }

    /// Has a vm ended that nobody has any more.
    pub(crate) fn dispose(&self, vm: &str) {
        self.wire.dispose(vm);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.hang_up();
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[tokio::test]
    async fn a_line_of_brigd_is_taken_up_to_its_bound_and_one_byte_more_ends_the_connection() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = tokio::net::UnixListener::bind(&path).unwrap();
        let connection = Arc::new(Connection::open_within(&path, Instant::now(), 1000).await.unwrap());
        let (mut brigd, _) = listener.accept().await.unwrap();
        let first = connection.request("initialize", &serde_json::json!({})).unwrap();
        let head = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"";
        let fits = format!("{head}{}\"}}\n", "x".repeat(1000 - head.len() - 2));
        brigd.write_all(fits.as_bytes()).await.unwrap();
        assert_eq!(first.await.unwrap().get().len(), 1000 - head.len());
        let second = connection.request("initialize", &serde_json::json!({})).unwrap();
        // Its end is not waited for.
        brigd.write_all("x".repeat(1001).as_bytes()).await.unwrap();
        let fault = second.await.unwrap_err();
        assert!(matches!(&fault, Error::Protocol(why) if why.contains("more than 1000 bytes")), "{fault}");
        let mut rest = Vec::new();
        brigd.read_to_end(&mut rest).await.unwrap();
    }
}
