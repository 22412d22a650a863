//! The evaluations that run, by id.
//!
//! Owns who may end which: an id of another principal is as unknown as one that never
//! was.

use super::stop::{Stop, StopCause};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The evaluations that run.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    running: Mutex<HashMap<String, Running>>,
}

#[derive(Debug)]
struct Running {
    uid: u32,
    stop: Arc<Stop>,
    /// Dropped at the end: whoever waits hears so.
    over: watch::Sender<()>,
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
        self.lock().insert(id.to_owned(), Running { uid, stop: Arc::clone(stop), over: watch::Sender::new(()) });
        Listed { registry: Arc::clone(self), id: id.to_owned() }
    }

    /// Cancels an evaluation of `uid`. `false`: there is none with this id.
    pub(crate) fn cancel(&self, uid: u32, id: &str) -> bool {
        let running = self.lock();
        let own = running.get(id).filter(|running| running.uid == uid);
        if let Some(own) = own {
            own.stop.request(StopCause::Cancelled);
        }
        own.is_some()
    }

    /// A way to hear of the end of an evaluation, which is the end of the channel.
    /// Nothing: there is none with this id that runs.
    pub(crate) fn over(&self, id: &str) -> Option<watch::Receiver<()>> {
        self.lock().get(id).map(|running| running.over.subscribe())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Running>> {
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
