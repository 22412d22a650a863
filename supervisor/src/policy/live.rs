//! The policy that holds now, beside the one that an evaluation began with.
//!
//! Owns noticing that they differ. An evaluation keeps what it began with; what is
//! denied meanwhile is denied at once, and nothing is allowed that was not.

use super::{Facts, Grant, Policy, PolicyStore};
use std::sync::Arc;

/// The policy of one principal, followed while its evaluation runs.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    store: Arc<PolicyStore>,
    facts: Arc<Facts>,
    begun_with: Arc<Policy>,
}

impl Live {
    /// Begins with the policy that holds now.
    pub(crate) fn follow(store: &Arc<PolicyStore>, facts: &Arc<Facts>) -> Self {
        Self { store: Arc::clone(store), facts: Arc::clone(facts), begun_with: store.current() }
    }

    /// What that policy says of this principal.
    pub(crate) fn grant(&self) -> Arc<Grant> {
        self.begun_with.grant(&self.facts)
    }

    /// What another policy, that holds by now, says of this principal.
    pub(crate) fn changed(&self) -> Option<Arc<Grant>> {
        let current = self.store.current();
        (!Arc::ptr_eq(&current, &self.begun_with)).then(|| current.grant(&self.facts))
    }
}
