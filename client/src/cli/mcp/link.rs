//! The connection of `brig mcp` to its brigd, made again when it is lost.
//!
//! Owns the client, the catalogue that was read through it, and who is told when that
//! changes. Never repeats a request: whether a program ran is its asker's to judge.

use super::catalogue::{Catalogue, Sources};
use crate::cli::{Fault, render, terminal};
use brig::{Client, Error, StartOptions};
use rmcp::{Peer, RoleServer};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// First pause before another attempt to connect; each next one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How long brigd is asked to wait for a change at a time.
const WAIT: Duration = Duration::from_secs(600);
/// Pause where it does not wait, or what there is could not be read.
const PAUSE: Duration = Duration::from_secs(5);
/// Most sessions that are told of a change.
const PEERS: usize = 256;

/// What there is now.
#[derive(Clone)]
pub(super) struct Now {
    pub(super) client: Client,
    pub(super) catalogue: Arc<Catalogue>,
}

/// The connection.
pub(super) struct Link {
    options: StartOptions,
    sources: Sources,
    now: watch::Sender<Now>,
    peers: Mutex<Vec<Peer<RoleServer>>>,
}

impl Link {
    /// Connects, and reads the catalogue.
    pub(super) async fn open(options: StartOptions, sources: Sources) -> Result<Self, Fault> {
        let now = connect(&options, &sources).await?;
        Ok(Self { options, sources, now: watch::Sender::new(now), peers: Mutex::default() })
    }

    /// The client and the catalogue. When the connection was lost, one attempt is made
    /// to have it back before the request is given to it.
    pub(super) async fn now(&self) -> Result<Now, Error> {
        let now = self.now.borrow().clone();
        if !now.client.is_closed() {
            return Ok(now);
        }
        self.renew(&now).await
    }

    /// The same, with a catalogue that was read just now.
    pub(super) async fn newest(&self) -> Result<Now, Error> {
        let now = self.now().await?;
        self.refresh(&now).await?;
        Ok(self.now.borrow().clone())
    }

    /// Reads the catalogue again, and tells when it is another.
    async fn refresh(&self, now: &Now) -> Result<(), Error> {
        let catalogue = Arc::new(self.sources.read(&now.client).await?);
        let changed = self.now.send_if_modified(|held| {
            // One that was read later, or over a newer connection, stands.
            let changed = Arc::ptr_eq(&held.catalogue, &now.catalogue) && *held.catalogue != *catalogue;
            if changed {
                held.catalogue = catalogue;
            }
            changed
        });
        if changed {
            self.tell().await;
        }
        Ok(())
    }

    /// Tells every session that the tools are others.
    async fn tell(&self) {
        let peers = self.peers().clone();
        for peer in peers {
            // One that is gone does not need to know.
            peer.notify_tool_list_changed().await.ok();
        }
    }

    /// Where functions come from.
    pub(super) const fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Told when the tools change.
    pub(super) fn changes(&self) -> watch::Receiver<Now> {
        self.now.subscribe()
    }

    /// This session is to be told of changes.
    pub(super) fn remember(&self, peer: Peer<RoleServer>) {
        let mut peers = self.peers();
        peers.retain(|peer| !peer.is_transport_closed());
        if peers.len() < PEERS {
            peers.push(peer);
        }
    }

    /// Connects again whenever the connection is lost, and notices what changes meanwhile.
    pub(super) async fn watch(self: Arc<Self>) {
        let mut version = None;
        loop {
            let now = self.now.borrow().clone();
            tokio::select! {
                () = now.client.closed() => {}
                changed = self.changed(&now, version.as_deref()) => {
                    version = changed.or(version);
                    continue;
                }
            }
            terminal::complain("the connection to brigd was lost; connecting again");
            let mut pause = FIRST_PAUSE;
            while let Err(fault) = self.renew(&now).await {
                terminal::complain(&render::client_error(&fault));
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            terminal::complain("connected to brigd again");
        }
    }

    /// Waits until what there is to call has changed since `version`, and reads it. Gives its
    /// version, unless that did not go; a connection that is lost is its caller's to see.
    async fn changed(&self, now: &Now, version: Option<&str>) -> Option<String> {
        let changed = async {
            let next = now.client.wait_functions(version, Some(WAIT)).await?;
            self.refresh(now).await?;
            Ok::<_, Error>(next)
        };
        match changed.await {
            Ok(next) => Some(next),
            Err(_) => {
                tokio::time::sleep(PAUSE).await;
                None
            }
        }
    }

    /// Puts a new connection in the place of `lost`, unless somebody else has.
    async fn renew(&self, lost: &Now) -> Result<Now, Error> {
        let made = connect(&self.options, &self.sources).await?;
        let mut changed = false;
        self.now.send_if_modified(|now| {
            let still_lost = now.client.is_closed();
            if still_lost {
                changed = *made.catalogue != *lost.catalogue;
                *now = made.clone();
            }
            still_lost
        });
        if changed {
            self.tell().await;
        }
        Ok(self.now.borrow().clone())
    }

    /// Ends the connection, and a private brigd in good order.
    pub(super) async fn close(&self) {
        let now = self.now.borrow().clone();
        now.client.close().await;
    }

    fn peers(&self) -> MutexGuard<'_, Vec<Peer<RoleServer>>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn connect(options: &StartOptions, sources: &Sources) -> Result<Now, Error> {
    let client = Client::connect_or_start(options.clone()).await?;
    let catalogue = Arc::new(sources.read(&client).await?);
    Ok(Now { client, catalogue })
}
