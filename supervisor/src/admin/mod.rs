//! The admin socket: the operator's way in, on a socket of its own.
//!
//! Owns who may speak there ([`people`]), the methods, and what is revoked
//! ([`revocations`]). The lines, their bounds and the connection are those of the client
//! socket. Never runs a program, and never answers whom the file mode let in but the
//! configuration does not name.

mod approving;
mod audit;
mod evaluations;
mod methods;
mod people;
mod policy;
mod requests;
mod revocations;
mod revoking;
mod status;

pub(crate) use people::People;
pub(crate) use revocations::Revocations;

use crate::connection::outbox::Outbox;
use crate::connection::reader::Reader;
use crate::connection::{Conversation as _, talk};
use crate::listener::{Door, Doors, Listener, Peer};
use crate::policy::Facts;
use crate::service::Service;
use brig_protocol::codes::RequestCode;
use brig_protocol::rpc::{self, ErrorData};
use people::Role;
use requests::Requests;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio_util::task::TaskTracker;

/// Most connections, and most of one user.
const CONNECTIONS: usize = 64;
const CONNECTIONS_EACH: usize = 16;

/// Somebody on the admin socket.
#[derive(Clone, Debug)]
struct Speaker {
    facts: Facts,
    role: Role,
}

/// Takes whoever may speak, until brigd ends.
pub(crate) async fn accept(listener: Listener, service: Arc<Service>, tracker: TaskTracker) {
    let doors = Doors::new(CONNECTIONS, CONNECTIONS_EACH);
    loop {
        let (stream, peer) = listener.accept().await;
        let facts = Facts::of(peer, &stream);
        let Some(role) = service.people.role(&facts) else {
            tracing::warn!(uid = peer.uid, pid = peer.pid, "somebody who is no admin was sent away from the admin socket");
            send_away(&stream, &not_an_admin(peer));
            continue;
        };
        match doors.enter(peer.uid) {
            Ok(door) => {
                tracker.spawn(serve(stream, Speaker { facts, role }, Arc::clone(&service), door));
            }
            Err(_) => send_away(&stream, &ErrorData::new(RequestCode::Overloaded, "there are as many admin connections as may be")),
        }
    }
}

async fn serve(stream: UnixStream, speaker: Speaker, service: Arc<Service>, door: Door) {
    let (read, write) = stream.into_split();
    let patience = Duration::from_millis(service.config.clients.slow_reader_ms);
    let uid = speaker.facts.uid;
    let outbox = Arc::new(Outbox::new(write, service.budget.holder(uid), patience));
    let mut reader = Reader::new(read, service.budget.holder(uid));
    let mut requests = Requests::new(Arc::clone(&service), speaker, Arc::clone(&outbox));
    if let Err(broken) = talk(&mut reader, &mut requests, &outbox, &service).await {
        tracing::debug!(uid, ?broken, "an admin connection ended");
    }
    // What was asked is done, whether or not anybody waits to hear it.
    outbox.close();
    while requests.answered().await.is_some() {}
    drop(door);
}

fn not_an_admin(peer: Peer) -> ErrorData {
    let mut data = ErrorData::new(RequestCode::NotPermitted, format!("user {} may not use the admin socket", peer.uid));
    data.setting = Some("admin".to_owned());
    data.hint = Some("admin.uids, admin.groups and admin.approvers say who may, besides root and the user that brigd runs as".to_owned());
    data
}

/// Tells somebody why, without waiting for it.
fn send_away(stream: &UnixStream, data: &ErrorData) {
    if let Err(fault) = stream.try_write(&rpc::error(None, data)) {
        tracing::trace!(%fault, "it did not hear why");
    }
}
