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

/// How much of the queue one principal may have, at most what `[queue]` gives to each.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Evaluations that run at the same time.
    pub(crate) running: usize,
    /// Evaluations that wait.
    pub(crate) waiting: usize,
    /// The principal's section of the policy, where that says so.
    pub(crate) section: Option<Arc<str>>,
}

impl Part {
    /// What the policy gives: nothing is what everybody has.
    pub(crate) fn new(bounds: config::Queue, running: Option<usize>, waiting: Option<usize>, section: &str) -> Self {
        let limited = running.is_some() || waiting.is_some();
        Self {
            running: running.unwrap_or(bounds.running_each).min(bounds.running_each),
            waiting: waiting.unwrap_or(bounds.waiting_each).min(bounds.waiting_each),
            section: limited.then(|| section.into()),
        }
    }
}

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
    /// Most that may run, as policy said when it was last asked.
    most_running: usize,
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
    pub(crate) fn ask(&mut self, uid: u32, connection: u64, part: &Part) -> Asked {
        let share = self.shares.entry(uid).or_default();
        share.most_running = part.running;
        // Whoever waits already has to go first, or the queue of a principal would be none.
        let may_run = share.waiting == 0 && share.running < part.running && self.running < self.bounds.running;
        if may_run {
            share.running += 1;
            self.running += 1;
            return Asked::Now;
        }
        let own = share.waiting >= part.waiting;
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
            if share.running >= share.most_running {
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

    /// The same of each principal of whom there is any.
    pub(crate) fn shares(&self) -> impl Iterator<Item = (u32, usize, usize)> {
        self.shares.iter().map(|(uid, share)| (*uid, share.running, share.waiting))
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
    pub(crate) async fn enter(self: &Arc<Self>, uid: u32, connection: u64, part: &Part) -> Result<Ticket, ErrorData> {
        let (place, called) = match self.ask(uid, connection, part)? {
            None => return Ok(self.ticket(uid)),
            Some(waiting) => waiting,
        };
        let mut seat = Seat { admission: self, uid, connection, place, taken: false };
        match tokio::time::timeout(self.wait, called).await {
            Ok(Ok(())) => {
                seat.taken = true;
                Ok(self.ticket(uid))
            }
            _ => Err(self.overloaded("this evaluation waited as long as it may; all workers are busy", "queue.wait_ms")),
        }
    }

    fn ask(&self, uid: u32, connection: u64, part: &Part) -> Result<Option<(Place, oneshot::Receiver<()>)>, ErrorData> {
        let full = {
            let mut state = self.lock();
            match state.line.ask(uid, connection, part) {
                Asked::Now => return Ok(None),
                Asked::Wait(place) => {
                    let (waker, called) = oneshot::channel();
                    state.wakers.insert(place, waker);
                    return Ok(Some((place, called)));
                }
                Asked::Full { own } => own,
            }
        };
        match (full, &part.section) {
            (true, Some(section)) => Err(self.over_quota(section, part)),
            (true, None) => Err(self.overloaded("as many evaluations of this user wait as may", "queue.waiting_each")),
            (false, _) => Err(self.overloaded("as many evaluations wait as may", "queue.waiting")),
        }
    }

    fn over_quota(&self, section: &str, part: &Part) -> ErrorData {
        let setting = format!("principals.{section:?}.quotas.queued");
        let Part { running, waiting, .. } = part;
        let message = format!("this user may have {running} evaluations running and {waiting} waiting, and has");
        ErrorData { code: RequestCode::QuotaExceeded, ..self.overloaded(&message, &setting) }
    }

    /// How many run and how many wait.
    pub(crate) fn counts(&self) -> (usize, usize) {
        self.lock().line.counts()
    }

    /// The same of each principal of whom there is any.
    pub(crate) fn shares(&self) -> Vec<(u32, usize, usize)> {
        self.lock().line.shares().collect()
    }

    fn overloaded(&self, message: &str, setting: &str) -> ErrorData {
        let state = self.lock();
        let (running, waiting) = state.line.counts();
        let rounds = u32::try_from(1 + waiting / running.max(1)).unwrap_or(u32::MAX);
        let wait = state.mean.saturating_mul(rounds).clamp(Duration::from_millis(50), Duration::from_secs(10));
        drop(state);
        let mut data = ErrorData::new(RequestCode::Overloaded, format!("{message}; nothing ran"));
        data.retry_after_ms = u64::try_from(wait.as_millis()).ok();
        data.setting = Some(setting.to_owned());
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
#[path = "admission_tests.rs"]
mod tests;
