//! The evaluations that run, by id.
//!
//! Owns who may end which: an id of another principal is as unknown as one that never
//! was.

use super::stop::{Stop, StopCause};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The evaluations that run.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    running: Mutex<HashMap<String, (u32, Arc<Stop>)>>,
}

/// One evaluation, listed; not any more when dropped.
#[derive(Debug)]
pub(crate) struct Listed {
    registry: Arc<Registry>,
    id: String,
}

impl Registry {
    /// Lists an evaluation of `uid`.
    pub(crate) fn list(self: &Arc<Self>, id: &str, uid: u32, stop: &Arc<Stop>) -> Listed {
        self.lock().insert(id.to_owned(), (uid, Arc::clone(stop)));
        Listed { registry: Arc::clone(self), id: id.to_owned() }
    }

    /// Cancels an evaluation of `uid`. `false`: there is none with this id.
    pub(crate) fn cancel(&self, uid: u32, id: &str) -> bool {
        let running = self.lock();
        let own = running.get(id).filter(|(owner, _)| *owner == uid);
        if let Some((_, stop)) = own {
            stop.request(StopCause::Cancelled);
        }
        own.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (u32, Arc<Stop>)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.registry.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_principal_can_cancel_an_evaluation_and_only_while_it_runs() {
        let registry = Arc::new(Registry::default());
        let stop = Arc::new(Stop::default());
        let listed = registry.list("ev_1", 1, &stop);
        assert!(!registry.cancel(2, "ev_1"));
        assert_eq!(stop.cause(), None);
        assert!(registry.cancel(1, "ev_1"));
        assert_eq!(stop.cause(), Some(StopCause::Cancelled));
        drop(listed);
        assert!(!registry.cancel(1, "ev_1"));
    }
}
