//! Who a client is, as the kernel says.
//!
//! Owns what is read about a peer when it connects. Never takes a client's word.

use super::peer;
use crate::listener::Peer;
use std::os::fd::AsFd;

/// What is known of one peer. It holds for the life of its connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Effective user id.
    pub(crate) uid: u32,
    /// Effective group id.
    pub(crate) gid: u32,
    /// Supplementary groups.
    pub(crate) groups: Vec<u32>,
    /// The systemd unit it runs in.
    pub(crate) unit: Option<String>,
    /// Why groups and unit are not known, when they are not.
    pub(crate) unseen: Option<String>,
}

impl Facts {
    /// What the kernel says of the peer at the other end of `socket`.
    pub(crate) fn of(peer: Peer, socket: &impl AsFd) -> Self {
        let (uid, gid) = (peer.uid, peer.gid);
        match peer::look(socket, peer) {
            Ok(seen) => Self { uid, gid, groups: seen.groups, unit: seen.unit, unseen: None },
            Err(fault) => {
                tracing::debug!(uid, pid = peer.pid, %fault, "groups and unit of a client are not known");
                Self { uid, gid, unseen: Some(fault.to_string()), ..Self::default() }
            }
        }
    }
}
