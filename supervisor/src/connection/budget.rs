//! How many bytes brigd holds for its clients.
//!
//! Owns one account for each user, all within one bound: partial lines, requests
//! that wait, answers that nobody takes. Never waits: what does not fit is refused.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Each holder has this much for nothing, so that small requests pass whatever the
/// others do.
const FREE_BYTES: usize = 64 * 1024;
/// The same for each of the many things that one connection can have waiting.
const FREE_PART_BYTES: usize = 4 * 1024;
/// One user may hold one part of so many of all bytes.
const SHARES: usize = 4;

/// The bytes of all clients.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    all: usize,
    each: HashMap<u32, usize>,
}

/// Bytes held by one holder; given back when dropped.
#[derive(Debug)]
pub(crate) struct Held {
    budget: Arc<Budget>,
    uid: u32,
    free: usize,
    shares: usize,
    charged: usize,
}

impl Budget {
    /// At most `limit` bytes in all.
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: Mutex::default() })
    }

    /// A holder for `uid` that holds nothing yet.
    pub(crate) fn holder(self: &Arc<Self>, uid: u32) -> Held {
        Held { budget: Arc::clone(self), uid, free: FREE_BYTES, shares: SHARES, charged: 0 }
    }

    /// A holder for one of many things of a connection, that holds nothing yet: a request,
    /// a host call. All of these together leave half of what the user may hold to its
    /// connections: without that its answers could not go out.
    pub(crate) fn part(self: &Arc<Self>, uid: u32) -> Held {
        Held { budget: Arc::clone(self), uid, free: FREE_PART_BYTES, shares: 2 * SHARES, charged: 0 }
    }

    /// Bytes that are held.
    pub(crate) fn used(&self) -> usize {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).all
    }

    fn charge(&self, uid: u32, more: usize, shares: usize) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let own = used.each.get(&uid).copied().unwrap_or(0);
        if used.all + more > self.limit || own + more > self.limit / shares {
            return false;
        }
        used.all += more;
        used.each.insert(uid, own + more);
        true
    }

    fn release(&self, uid: u32, less: usize) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.all = used.all.saturating_sub(less);
        match used.each.get_mut(&uid) {
            Some(own) if *own > less => *own -= less,
            _ => {
                used.each.remove(&uid);
            }
        }
    }
}

impl Held {
    /// Now holds `bytes`. `false`: that is more than there is; nothing changed.
    #[must_use]
    pub(crate) fn resize(&mut self, bytes: usize) -> bool {
        let wanted = bytes.saturating_sub(self.free);
        if wanted > self.charged {
            if !self.budget.charge(self.uid, wanted - self.charged, self.shares) {
                return false;
            }
        } else if wanted < self.charged {
            self.budget.release(self.uid, self.charged - wanted);
        }
        self.charged = wanted;
        true
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.charged > 0 {
            self.budget.release(self.uid, self.charged);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    #[test]
    fn one_user_can_not_take_what_others_need() {
        let budget = Budget::new(8 * MIB);
        let mut greedy = budget.holder(1);
        assert!(!greedy.resize(3 * MIB));
        assert!(greedy.resize(2 * MIB));
        let mut again = budget.holder(1);
        assert!(!again.resize(MIB));
        assert!(again.resize(FREE_BYTES));
        let mut other = budget.holder(2);
        assert!(other.resize(2 * MIB));
    }

    #[test]
    fn requests_and_calls_leave_room_for_the_answers_of_their_user() {
        let budget = Budget::new(8 * MIB);
        let mut calls: Vec<Held> = (0..100).map(|_| budget.part(1)).collect();
        let taken = calls.iter_mut().map(|call| call.resize(64 * 1024)).filter(|taken| *taken).count();
        assert!((16..=18).contains(&taken), "{taken}");
        assert!(calls.iter_mut().all(|call| call.resize(FREE_PART_BYTES)));
        assert!(budget.part(1).resize(MIB));
        let _all: Vec<bool> = calls.iter_mut().map(|call| call.resize(64 * 1024)).collect();
        assert!(!budget.part(1).resize(MIB));
        assert!(budget.holder(1).resize(MIB));
    }

    #[test]
    fn what_is_given_back_is_there_again() {
        let budget = Budget::new(8 * MIB);
        let mut first = budget.holder(1);
        assert!(first.resize(2 * MIB));
        assert!(first.resize(0));
        let mut second = budget.holder(1);
        assert!(second.resize(2 * MIB));
        drop(second);
        let used = budget.used.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!((used.all, used.each.len()), (0, 0));
    }
}
