//! One client: its lines, its requests, its answers.
//!
//! Owns the task of a connection. Everything that runs for a client runs inside this
//! one task, so that a round trip wakes as few threads as can be. Never holds more
//! than its share of the budget, never lets a slow client delay another, and ends
//! every evaluation of a client that went away.

pub(crate) mod budget;
mod kept;
pub(crate) mod link;
pub(crate) mod outbox;
pub(crate) mod reader;
mod requests;

use crate::evaluation::StopCause;
use crate::listener::{Door, Peer};
use crate::policy::Facts;
use crate::service::{Phase, Service};
use brig_protocol::line::Line;
use brig_protocol::rpc::{Id, id_of_beginning};
use outbox::{Broken, Outbox};
use reader::Reader;
use requests::Requests;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// How long answers may take to go out when brigd ends.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How often a client that sends no more is looked at: it may still read, or be gone.
const GONE_CHECK: Duration = Duration::from_millis(20);

/// What is done with the lines of one peer.
pub(crate) trait Conversation: Send {
    /// Takes one line.
    fn take(&mut self, line: Line);
    /// A line came that there is no room for; the id of its request, as far as that came.
    fn refuse_line(&self, id: Option<Id>);
    /// Drives all requests until one is answered. Nothing: none is in flight.
    fn answered(&mut self) -> impl Future<Output = Option<()>> + Send;
    /// Whether none is in flight.
    fn is_idle(&self) -> bool;
    /// Ends what runs for the peer.
    fn stop_all(&self, cause: StopCause);
    /// Nothing new is taken from now on.
    fn draining(&mut self) {}
    /// The peer will answer nothing any more.
    fn hang_up(&self);
}

/// What happened to a connection.
enum Event {
    /// A request is answered.
    Answered,
    /// Bytes came, or the client's end.
    Read(std::io::Result<usize>),
    /// Nothing can be sent any more.
    Broken(Broken),
    /// The client has caught up and is read again.
    Room,
    /// brigd is on its way to the end.
    Phase(Phase),
}

/// Serves one client until it goes, or brigd does. From the call on, not from the first time
/// that the task has its turn, an end waits for what the client came for.
pub(crate) fn serve(stream: UnixStream, peer: Peer, service: Arc<Service>, door: Door) -> impl Future<Output = ()> + Send {
    let expected = service.expected.token();
    serve_expected(stream, peer, service, door, expected)
}

async fn serve_expected(stream: UnixStream, peer: Peer, service: Arc<Service>, door: Door, expected: TaskTrackerToken) {
    service.metrics.connections.count();
    let facts = Facts::of(peer, &stream);
    let (read, write) = stream.into_split();
    let patience = Duration::from_millis(service.config.clients.slow_reader_ms);
    let outbox = Arc::new(Outbox::new(write, service.budget.holder(peer.uid), patience));
    let mut reader = Reader::new(read, service.budget.holder(peer.uid));
    let mut requests = Requests::new(Arc::clone(&service), (peer, facts), Arc::clone(&outbox), expected);
    let ended = talk(&mut reader, &mut requests, &outbox, &service).await;
    if let Err(broken @ (Broken::SlowReader | Broken::OverBudget)) = ended {
        service.metrics.slow_readers.count();
        tracing::info!(uid = peer.uid, pid = peer.pid, ?broken, "a client that does not read, or sends too much, was disconnected");
    }
    drop(reader);
    // Workers are killed and host calls recorded before the connection is forgotten.
    requests.stop_all(StopCause::ClientGone);
    requests.end_vms();
    requests.hang_up();
    outbox.close();
    while requests.answered().await.is_some() {}
    drop(door);
}

/// Takes the lines of a peer until it goes, or brigd does.
///
/// # Errors
/// Why nothing can be sent to it any more.
pub(crate) async fn talk(reader: &mut Reader, requests: &mut impl Conversation, outbox: &Outbox, service: &Service) -> Result<(), Broken> {
    let mut phases = service.phase();
    let mut phase = *phases.borrow_and_update();
    loop {
        if phase == Phase::Ending && requests.is_idle() {
            return last_words(outbox).await;
        }
        let may_read = outbox.takes_replies();
        let event = tokio::select! {
            biased;
            Some(()) = requests.answered(), if !requests.is_idle() => Event::Answered,
            broken = outbox.drive() => Event::Broken(broken),
            read = reader.read(), if may_read => Event::Read(read),
            () = outbox.room_for_replies(), if !may_read => Event::Room,
            Ok(()) = phases.changed() => Event::Phase(*phases.borrow_and_update()),
        };
        match event {
            Event::Answered | Event::Room => {}
            Event::Broken(broken) => return Err(broken),
            Event::Read(Ok(0) | Err(_)) => {
                take_lines(reader, requests, true)?;
                return half_closed(reader, requests, outbox).await;
            }
            Event::Read(Ok(_)) => take_lines(reader, requests, false)?,
            Event::Phase(next) => {
                phase = next;
                requests.draining();
                if phase == Phase::Ending {
                    requests.stop_all(StopCause::ShuttingDown);
                }
            }
        }
    }
}

fn take_lines(reader: &mut Reader, requests: &mut impl Conversation, last: bool) -> Result<(), Broken> {
    while let Some(line) = reader.next_line() {
        requests.take(line);
    }
    if last && let Some(line) = reader.rest() {
        requests.take(line);
    }
    if reader.within_budget() {
        return Ok(());
    }
    requests.refuse_line(id_of_beginning(reader.beginning()));
    Err(Broken::OverBudget)
}

/// The client sends no more. It may have closed only its half, and still wait for
/// answers: as `printf .. | socat - UNIX:..` does.
async fn half_closed(reader: &Reader, requests: &mut impl Conversation, outbox: &Outbox) -> Result<(), Broken> {
    requests.hang_up();
    while !requests.is_idle() {
        if reader.peer_is_gone() {
            return Err(Broken::HungUp);
        }
        tokio::select! {
            biased;
            Some(()) = requests.answered() => {}
            broken = outbox.drive() => return Err(broken),
            () = tokio::time::sleep(GONE_CHECK) => {}
        }
    }
    last_words(outbox).await
}

/// Sends what waits, for a bounded time.
async fn last_words(outbox: &Outbox) -> Result<(), Broken> {
    tokio::time::timeout(LAST_WORDS, outbox.drained()).await.map_err(|_| Broken::SlowReader)
}

#[cfg(test)]
mod tests;
