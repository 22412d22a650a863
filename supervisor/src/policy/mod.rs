//! Who may do what: the operator's policy, compiled.
//!
//! Owns the snapshot that holds now ([`PolicyStore`]), and what of it applies to one
//! principal ([`Grant`]). A snapshot never changes; a reload puts another in its place.
//! Never decides about one call: [`crate::host::permission`] does, with what a grant says.

mod facts;
pub(crate) mod peer;

pub(crate) use facts::Facts;

use crate::admission::Part;
use crate::config::{Config, ConfigFault, Queue};
use crate::host::permission::ScopeSet;
use crate::vm::Quota;
use brig_protocol::limits::Limits;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

/// What policy says about one principal.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    /// Whether it may use brigd at all.
    pub(crate) may_evaluate: bool,
    /// Its ceilings.
    pub(crate) ceilings: Limits,
    /// How much of the queue it may have.
    pub(crate) queue: Part,
    /// How many vms it may have, where that is fewer than everybody may.
    pub(crate) vms: Option<Quota>,
    /// Which functions it may call.
    pub(crate) scopes: ScopeSet,
}

/// All of the policy, as it was loaded.
#[derive(Debug)]
pub(crate) struct Policy {
    own_uid: u32,
    uids: BTreeSet<u32>,
    ceilings: Limits,
    queue: Queue,
}

impl Policy {
    /// The policy of a configuration.
    ///
    /// # Errors
    /// When the configured ceilings are not valid.
    pub(crate) fn compile(config: &Config) -> Result<Self, ConfigFault> {
        Ok(Self {
            own_uid: rustix::process::geteuid().as_raw(),
            uids: config.clients.uids.clone(),
            ceilings: config.ceilings()?,
            queue: config.queue,
        })
    }

    /// What it says about this principal. Without configuration only the user that brigd
    /// runs as, and root, may evaluate; they may call whatever they declare.
    pub(crate) fn grant(&self, facts: &Facts) -> Grant {
        let may_evaluate = facts.uid == 0 || facts.uid == self.own_uid || self.uids.contains(&facts.uid);
        Grant {
            may_evaluate,
            ceilings: self.ceilings,
            queue: Part::new(self.queue, None, None, ""),
            vms: None,
            scopes: ScopeSet::unconfigured(facts.uid, facts.uid),
        }
    }
}

/// The policy that holds now.
#[derive(Debug)]
pub(crate) struct PolicyStore {
    current: RwLock<Arc<Policy>>,
}

impl PolicyStore {
    /// Begins with this one.
    pub(crate) fn new(policy: Policy) -> Self {
        Self { current: RwLock::new(Arc::new(policy)) }
    }

    /// Puts another in its place.
    pub(crate) fn replace(&self, policy: Policy) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }

    /// The one that holds now.
    pub(crate) fn current(&self) -> Arc<Policy> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}
