//! Who runs now, who waits, who is sent away.
//!
//! Owns the queue: first in, first out within a connection, the connections of a
//! principal in turn, and principals in turn, so that one who floods delays nobody but
//! himself. [`Line`] is pure; [`Admission`]
//! draws on top and makes waiting end at a deadline.

use crate::config;
use brig_protocol::codes::RequestCode;
use brig_protocol::rpc::ErrorData;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A place in the queue.
type Place = u64;

/// What asking gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Go on.
    Now,
    /// Wait for this place to be called.
    Wait(Place),
    /// The queue is full: for this principal, or for all.
    Full {
        /// Only this principal's part of it.
        own: bool,
    },
}

/// The queue, without time or waking.
#[derive(Debug)]
pub(crate) struct Line {
    bounds: config::Queue,
    running: usize,
    waiting: usize,
    shares: HashMap<u32, Share>,
    /// Principals with someone waiting, whose turn is next first.
    turn: VecDeque<u32>,
    last: Place,
}

#[derive(Debug, Default)]
struct Share {
    running: usize,
    waiting: usize,
    /// Connections with someone waiting, whose turn is next first.
    turn: VecDeque<Party>,
}

/// Who waits on one connection, first come first.
#[derive(Debug)]
struct Party {
    connection: u64,
    places: VecDeque<Place>,
}

impl Share {
    fn join(&mut self, connection: u64, place: Place) {
        self.waiting += 1;
        match self.turn.iter_mut().find(|party| party.connection == connection) {
            Some(party) => party.places.push_back(place),
            None => self.turn.push_back(Party { connection, places: VecDeque::from([place]) }),
        }
    }

    fn call_next(&mut self) -> Option<Place> {
        let mut party = self.turn.pop_front()?;
        let place = party.places.pop_front()?;
        self.waiting -= 1;
        if !party.places.is_empty() {
            self.turn.push_back(party);
        }
        Some(place)
    }

    fn give_up(&mut self, connection: u64, place: Place) -> bool {
        let Some(party) = self.turn.iter_mut().find(|party| party.connection == connection) else {
            return false;
        };
        let before = party.places.len();
        party.places.retain(|waiting| *waiting != place);
        let found = party.places.len() < before;
        self.turn.retain(|party| !party.places.is_empty());
        self.waiting -= usize::from(found);
        found
    }
}

impl Line {
    /// An empty queue.
    pub(crate) fn new(bounds: config::Queue) -> Self {
        Self { bounds, running: 0, waiting: 0, shares: HashMap::new(), turn: VecDeque::new(), last: 0 }
    }

    /// A principal wants to run one evaluation that came by this connection.
    pub(crate) fn ask(&mut self, uid: u32, connection: u64) -> Asked {
        let share = self.shares.entry(uid).or_default();
        // Whoever waits already has to go first, or the queue of a principal would be none.
        let may_run = share.waiting == 0 && share.running < self.bounds.running_each && self.running < self.bounds.running;
        if may_run {
            share.running += 1;
            self.running += 1;
            return Asked::Now;
        }
        let own = share.waiting >= self.bounds.waiting_each;
        if own || self.waiting >= self.bounds.waiting {
            self.forget_idle(uid);
            return Asked::Full { own };
        }
        self.last += 1;
        if share.waiting == 0 {
            self.turn.push_back(uid);
        }
        share.join(connection, self.last);
        self.waiting += 1;
        Asked::Wait(self.last)
    }

    /// One evaluation of this principal is over.
    pub(crate) fn leave(&mut self, uid: u32) {
        if let Some(share) = self.shares.get_mut(&uid) {
            share.running = share.running.saturating_sub(1);
            self.running = self.running.saturating_sub(1);
        }
        self.forget_idle(uid);
    }

    /// Whoever has this place does not wait any more. `false`: it was called already.
    pub(crate) fn give_up(&mut self, uid: u32, connection: u64, place: Place) -> bool {
        let Some(share) = self.shares.get_mut(&uid) else {
            return false;
        };
        let found = share.give_up(connection, place);
        if found {
            self.waiting -= 1;
            if share.waiting == 0 {
                self.turn.retain(|other| *other != uid);
            }
        }
        self.forget_idle(uid);
        found
    }

    /// The next place that may run now. Ask until there is none.
    pub(crate) fn call_next(&mut self) -> Option<(u32, Place)> {
        if self.running >= self.bounds.running {
            return None;
        }
        for _ in 0..self.turn.len() {
            let uid = self.turn.pop_front()?;
            let Some(share) = self.shares.get_mut(&uid) else { continue };
            if share.running >= self.bounds.running_each {
                self.turn.push_back(uid);
                continue;
            }
            let Some(place) = share.call_next() else { continue };
            share.running += 1;
            self.running += 1;
            self.waiting -= 1;
            if share.waiting > 0 {
                self.turn.push_back(uid);
            }
            return Some((uid, place));
        }
        None
    }

    /// How many run and how many wait.
    pub(crate) const fn counts(&self) -> (usize, usize) {
        (self.running, self.waiting)
    }

    fn forget_idle(&mut self, uid: u32) {
        if self.shares.get(&uid).is_some_and(|share| share.running == 0 && share.waiting == 0) {
            self.shares.remove(&uid);
        }
    }
}

/// The queue, with its waiting.
#[derive(Debug)]
pub(crate) struct Admission {
    state: Mutex<State>,
    wait: Duration,
}

#[derive(Debug)]
struct State {
    line: Line,
    wakers: HashMap<Place, oneshot::Sender<()>>,
    /// Mean duration of an evaluation lately, for the advice when to try again.
    mean: Duration,
}

/// The right to run one evaluation; given back when dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    admission: Arc<Admission>,
    uid: u32,
    since: Instant,
}

impl Admission {
    /// An empty queue within `bounds`.
    pub(crate) fn new(bounds: config::Queue) -> Arc<Self> {
        let state = State { line: Line::new(bounds), wakers: HashMap::new(), mean: Duration::from_millis(5) };
        Arc::new(Self { state: Mutex::new(state), wait: Duration::from_millis(bounds.wait_ms) })
    }

    /// Waits for the turn of this connection of this principal, for a bounded time.
    ///
    /// # Errors
    /// `overloaded`, with advice when to try again.
    pub(crate) async fn enter(self: &Arc<Self>, uid: u32, connection: u64) -> Result<Ticket, ErrorData> {
        let (place, called) = match self.ask(uid, connection)? {
            None => return Ok(self.ticket(uid)),
            Some(waiting) => waiting,
        };
        let mut seat = Seat { admission: self, uid, connection, place, taken: false };
        match tokio::time::timeout(self.wait, called).await {
            Ok(Ok(())) => {
                seat.taken = true;
                Ok(self.ticket(uid))
            }
            _ => Err(self.overloaded("this evaluation waited as long as it may; all workers are busy")),
        }
    }

    fn ask(&self, uid: u32, connection: u64) -> Result<Option<(Place, oneshot::Receiver<()>)>, ErrorData> {
        let full = {
            let mut state = self.lock();
            match state.line.ask(uid, connection) {
                Asked::Now => return Ok(None),
                Asked::Wait(place) => {
                    let (waker, called) = oneshot::channel();
                    state.wakers.insert(place, waker);
                    return Ok(Some((place, called)));
                }
                Asked::Full { own } => own,
            }
        };
        Err(self.overloaded(if full { "as many evaluations of this user wait as may" } else { "as many evaluations wait as may" }))
    }

    /// How many run and how many wait.
    pub(crate) fn counts(&self) -> (usize, usize) {
        self.lock().line.counts()
    }

    fn overloaded(&self, message: &str) -> ErrorData {
        let state = self.lock();
        let (running, waiting) = state.line.counts();
        let rounds = u32::try_from(1 + waiting / running.max(1)).unwrap_or(u32::MAX);
        let wait = state.mean.saturating_mul(rounds).clamp(Duration::from_millis(50), Duration::from_secs(10));
        drop(state);
        let mut data = ErrorData::new(RequestCode::Overloaded, format!("{message}; nothing ran"));
        data.retry_after_ms = u64::try_from(wait.as_millis()).ok();
        data.setting = Some("queue.waiting_each".to_owned());
        data
    }

    fn ticket(self: &Arc<Self>, uid: u32) -> Ticket {
        Ticket { admission: Arc::clone(self), uid, since: Instant::now() }
    }

    fn leave(&self, uid: u32, took: Option<Duration>) {
        let mut state = self.lock();
        state.line.leave(uid);
        if let Some(took) = took {
            state.mean = (state.mean * 7 + took) / 8;
        }
        wake_next(&mut state);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake_next(state: &mut State) {
    while let Some((uid, place)) = state.line.call_next() {
        // Nobody listening: that seat is being given up right now, and gives back the
        // right that it was called to.
        if let Some(Err(())) = state.wakers.remove(&place).map(|waker| waker.send(())) {
            tracing::trace!(uid, place, "called a place that is being given up");
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.admission.leave(self.uid, Some(self.since.elapsed()));
    }
}

/// Someone who waits; leaves the queue when dropped.
struct Seat<'a> {
    admission: &'a Admission,
    uid: u32,
    connection: u64,
    place: Place,
    taken: bool,
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        if self.taken {
            return;
        }
        let mut state = self.admission.lock();
        let waited = state.line.give_up(self.uid, self.connection, self.place);
        state.wakers.remove(&self.place);
        // Called in the very moment of giving up: the right goes on to the next.
        if !waited {
            state.line.leave(self.uid);
        }
        wake_next(&mut state);
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use super::*;
    use futures_util::FutureExt;
    use proptest::prelude::*;

    fn bounds(running: usize, running_each: usize, waiting_each: usize) -> config::Queue {
        config::Queue { running, running_each, waiting: 100, waiting_each, wait_ms: 10_000 }
    }

    #[test]
    fn one_who_floods_does_not_delay_another() {
        let mut line = Line::new(bounds(1, 1, 100));
        assert_eq!(line.ask(1, 1), Asked::Now);
        for _ in 0..50 {
            assert!(matches!(line.ask(1, 1), Asked::Wait(_)));
        }
        let Asked::Wait(theirs) = line.ask(2, 2) else { panic!("must wait") };
        line.leave(1);
        assert_eq!(line.call_next().map(|(uid, _)| uid), Some(1));
        line.leave(1);
        assert_eq!(line.call_next(), Some((2, theirs)));
    }

    #[test]
    fn one_connection_that_floods_does_not_delay_another_of_the_same_user() {
        let mut line = Line::new(bounds(1, 1, 100));
        assert_eq!(line.ask(1, 1), Asked::Now);
        for _ in 0..50 {
            assert!(matches!(line.ask(1, 1), Asked::Wait(_)));
        }
        let Asked::Wait(other) = line.ask(1, 2) else { panic!("must wait") };
        line.leave(1);
        assert!(line.call_next().is_some_and(|(_, place)| place != other));
        line.leave(1);
        assert_eq!(line.call_next(), Some((1, other)));
    }

    #[test]
    fn a_full_queue_sends_away_and_says_whose() {
        let mut line = Line::new(bounds(1, 1, 1));
        assert_eq!(line.ask(1, 1), Asked::Now);
        assert!(matches!(line.ask(1, 1), Asked::Wait(_)));
        assert_eq!(line.ask(1, 1), Asked::Full { own: true });
        assert!(matches!(line.ask(2, 2), Asked::Wait(_)));
    }

    #[test]
    fn nothing_is_remembered_of_those_who_left() {
        let mut line = Line::new(bounds(2, 2, 4));
        for uid in 0..1000 {
            assert_eq!(line.ask(uid, u64::from(uid)), Asked::Now);
            line.leave(uid);
        }
        assert!(line.shares.is_empty() && line.turn.is_empty());
    }

    #[tokio::test]
    async fn the_next_enters_when_a_ticket_is_dropped() {
        let admission = Admission::new(bounds(1, 1, 4));
        let first = admission.enter(1, 1).await.unwrap();
        let mut second = Box::pin(admission.enter(1, 1));
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        let ticket = second.await.unwrap();
        assert_eq!(admission.counts(), (1, 0));
        drop(ticket);
        assert_eq!(admission.counts(), (0, 0));
    }

    #[tokio::test]
    async fn one_who_gives_up_after_being_called_hands_the_turn_on() {
        let admission = Admission::new(bounds(1, 1, 4));
        let first = admission.enter(1, 1).await.unwrap();
        let mut second = Box::pin(admission.enter(1, 1));
        let mut third = Box::pin(admission.enter(1, 1));
        assert!((&mut second).now_or_never().is_none() && (&mut third).now_or_never().is_none());
        drop(first);
        drop(second);
        drop(third.await.unwrap());
        assert_eq!(admission.counts(), (0, 0));
    }

    #[tokio::test]
    async fn waiting_ends_at_its_deadline_with_advice() {
        let admission = Admission::new(config::Queue { wait_ms: 1, ..bounds(1, 1, 4) });
        let ticket = admission.enter(1, 1).await.unwrap();
        let refusal = admission.enter(1, 1).await.unwrap_err();
        assert_eq!(refusal.code, RequestCode::Overloaded);
        assert!(refusal.retry_after_ms.is_some() && refusal.retryable);
        drop(ticket);
        assert_eq!(admission.counts(), (0, 0));
    }

    proptest! {
        #[test]
        fn never_more_run_than_may_and_everyone_is_called_once(steps in proptest::collection::vec((0u32..4, 0u8..3), 0..200)) {
            let mut line = Line::new(bounds(3, 2, 5));
            let mut running: Vec<u32> = Vec::new();
            let mut waiting: Vec<(u32, Place)> = Vec::new();
            for (uid, step) in steps {
                match step {
                    0 => match line.ask(uid, u64::from(uid)) {
                        Asked::Now => running.push(uid),
                        Asked::Wait(place) => waiting.push((uid, place)),
                        Asked::Full { .. } => {}
                    },
                    1 => if let Some(index) = running.iter().position(|other| *other == uid) {
                        running.remove(index);
                        line.leave(uid);
                    },
                    _ => if let Some(index) = waiting.iter().position(|(other, _)| *other == uid) {
                        let (uid, place) = waiting.remove(index);
                        prop_assert!(line.give_up(uid, u64::from(uid), place));
                    },
                }
                while let Some(called) = line.call_next() {
                    let index = waiting.iter().position(|other| *other == called);
                    prop_assert!(index.is_some());
                    waiting.remove(index.unwrap_or(0));
                    running.push(called.0);
                }
                prop_assert!(running.len() <= 3);
                prop_assert!((0..4).all(|uid| running.iter().filter(|other| **other == uid).count() <= 2));
                prop_assert_eq!(line.counts(), (running.len(), waiting.len()));
                let idle = (0..4).any(|uid| running.iter().filter(|other| **other == uid).count() < 2
                    && waiting.iter().any(|(other, _)| *other == uid));
                prop_assert!(!(idle && running.len() < 3));
            }
        }
    }
}
