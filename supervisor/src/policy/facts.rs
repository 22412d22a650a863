//! Who a client is, as the kernel says.
//!
//! Owns what is read about a peer when it connects. Never takes a client's word.

use crate::listener::Peer;

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
}

impl Facts {
    /// What the kernel says of this peer.
    pub(crate) const fn of(peer: Peer) -> Self {
        Self { uid: peer.uid, gid: peer.gid, groups: Vec::new(), unit: None }
    }
}
