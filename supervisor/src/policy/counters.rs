//! What was used of budgets.
//!
//! Owns the counts, the windows, and taking all charges of a call at once or none. Never
//! decides which charges a call has: [`crate::host::permission`] does.
//!
//! Windows slide: within any hour, not only those of the clock, no more than an hour's
//! budget is taken. Time is cut into slots of a sixtieth of the window; what was taken
//! in a slot is free again when all of the slot is a window old. So an amount is held
//! for a window, and up to a sixtieth more; never less.
//!
//! The clock of the system may step. While brigd runs it is not looked at again: time
//! goes on from the start by a clock that never steps. Over a restart, a clock that went
//! back finds counts of its future, and goes on from there: they are free no sooner.

use super::amount::Amount;
use super::clock::{Clock, SteadyClock};
use super::document::Window;
use crate::host::permission::Charge;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Into how many slots a window is cut.
const SLOTS: u64 = 60;
/// Most counts of one user that are held.
const COUNTS_EACH: usize = 4_096;

/// What one slot of one count holds, for whoever keeps it over a restart. With `used`
/// zero there is nothing to keep any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedCount {
    /// Whose.
    pub(crate) uid: u32,
    /// Which count ([`Charge::key`]).
    pub(crate) key: Arc<str>,
    /// When the slot begins, in milliseconds since the epoch.
    pub(crate) from_ms: u64,
    /// What was taken in it.
    pub(crate) used: Amount,
    /// When it is free again: then it may be forgotten.
    pub(crate) until_ms: u64,
}

/// A count could not be kept, or read.
#[derive(Debug, thiserror::Error)]
#[error("what budgets used could not be kept: {0}")]
pub(crate) struct StoreFault(pub(crate) String);

/// Keeps counts over a restart. Counts of one evaluation are not kept.
pub(crate) trait CounterStore: Send + Sync {
    /// All that is kept and not over at `now_ms`.
    ///
    /// # Errors
    /// [`StoreFault`]: then no budget could be trusted.
    fn load_all(&self, now_ms: u64) -> Result<Vec<SavedCount>, StoreFault>;

    /// Keeps these, by uid, key and `from_ms`, all in one transaction that is durable
    /// when this returns.
    ///
    /// # Errors
    /// [`StoreFault`]: none of it is certain, and the call does not run.
    fn save(&self, changes: &[SavedCount]) -> Result<(), StoreFault>;
}

/// Why a call gets nothing of a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Short {
    /// It is used up.
    Used {
        /// Which, for people.
        limit: Arc<str>,
        /// When so much is free again; nothing: not within this evaluation, or never.
        free_in: Option<Duration>,
        /// The call alone is over it.
        alone: bool,
    },
    /// There are too many counts.
    Crowded,
    /// It could not be kept.
    Unkept,
}

/// What is left of one budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    /// So much may still be taken.
    pub(crate) left: Amount,
    /// When what the call takes is there, if it is not now.
    pub(crate) free_in: Option<Duration>,
}

/// What was taken, slot by slot.
#[derive(Clone, Debug, Default)]
struct Count {
    /// By the beginning of the slot: what, and until when.
    slots: BTreeMap<u64, (Amount, u64)>,
}

impl Count {
    /// Now, for this count: never before what it holds.
    fn now(&self, now: u64) -> u64 {
        self.slots.last_key_value().map_or(now, |(from, _)| now.max(*from))
    }

    fn used(&self, now: u64) -> Amount {
        self.slots.values().filter(|(_, until)| *until > now).fold(Amount::ZERO, |sum, (used, _)| sum.plus(*used))
    }

    /// When `amount` more is within `max`.
    fn free_at(&self, now: u64, amount: Amount, max: Amount) -> Option<u64> {
        let mut used = self.used(now);
        let fits = |used: Amount| used.plus(amount) <= max;
        if fits(used) {
            return Some(now);
        }
        let mut ends: Vec<(u64, Amount)> =
            self.slots.values().map(|(used, until)| (*until, *used)).filter(|(until, _)| *until > now).collect();
        ends.sort_unstable();
        ends.into_iter().find_map(|(until, freed)| {
            used = used.minus(freed);
            fits(used).then_some(until)
        })
    }
}

/// The counts of one evaluation, which end with it, and the way to all others.
#[derive(Debug)]
pub(crate) struct EvaluationCounts {
    own: Mutex<HashMap<Arc<str>, Amount>>,
    counters: Arc<Counters>,
}

/// Counts of each user, by their key.
type All = HashMap<u32, HashMap<Arc<str>, Count>>;
/// A charge that was taken, and in which slot; none for an evaluation's.
type Part = (Charge, Option<u64>);

/// All counts.
pub(crate) struct Counters {
    counts: Mutex<All>,
    store: Option<Box<dyn CounterStore>>,
    clock: Box<dyn Clock>,
}

impl std::fmt::Debug for Counters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counters").finish_non_exhaustive()
    }
}

impl Default for Counters {
    fn default() -> Self {
        Self::in_memory(Box::new(SteadyClock::default()))
    }
}

impl Counters {
    /// Counts that end with the process.
    pub(crate) fn in_memory(clock: Box<dyn Clock>) -> Self {
        Self { counts: Mutex::default(), store: None, clock }
    }

    /// Counts that a store keeps, beginning with what it kept.
    ///
    /// # Errors
    /// [`StoreFault`] when it can not be read.
    pub(crate) fn kept_in(store: Box<dyn CounterStore>, clock: Box<dyn Clock>) -> Result<Self, StoreFault> {
        let mut counts = All::new();
        for saved in store.load_all(clock.now_ms())? {
            let count = counts.entry(saved.uid).or_default().entry(saved.key).or_default();
            count.slots.insert(saved.from_ms, (saved.used, saved.until_ms));
        }
        Ok(Self { counts: Mutex::new(counts), store: Some(store), clock })
    }

    /// For an evaluation that begins.
    pub(crate) fn for_evaluation(self: &Arc<Self>) -> Arc<EvaluationCounts> {
        Arc::new(EvaluationCounts { own: Mutex::default(), counters: Arc::clone(self) })
    }

    /// What is left of the budget that a charge is about, outside of any evaluation.
    pub(crate) fn left(&self, charge: &Charge) -> Left {
        let now = self.clock.now_ms();
        let counts = self.lock();
        let count = counts.get(&charge.uid).and_then(|own| own.get(&charge.key)).cloned().unwrap_or_default();
        drop(counts);
        let now = count.now(now);
        let free_in = count.free_at(now, charge.amount, charge.max).map(|at| Duration::from_millis(at - now));
        Left { left: charge.max.minus(count.used(now)), free_in }
    }

    fn keep(&self, all: &All, parts: &[Part]) -> Result<(), StoreFault> {
        let changes = changes(all, parts);
        match &self.store {
            Some(store) if !changes.is_empty() => store.save(&changes),
            _ => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EvaluationCounts {
    /// Whether taking these waits for a disk.
    pub(crate) fn waits(&self, charges: &[Charge]) -> bool {
        self.counters.store.is_some() && charges.iter().any(|charge| charge.per != Window::Evaluation)
    }

    /// Whether all of it could be taken now; takes nothing, and waits for no disk.
    ///
    /// # Errors
    /// [`Short`]: what taking would say.
    pub(crate) fn could_take(&self, charges: &[Charge]) -> Result<(), Short> {
        if charges.is_empty() {
            return Ok(());
        }
        let now = self.counters.clock.now_ms();
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut tried: All = All::new();
        {
            let all = self.counters.lock();
            for charge in charges {
                if let Some(counts) = all.get(&charge.uid) {
                    tried.entry(charge.uid).or_insert_with(|| counts.clone());
                }
            }
        }
        charges.iter().try_for_each(|charge| take_one(&mut own, &mut tried, charge, now).map(drop))
    }

    /// Takes all of it or none. What is taken goes back when the guard is dropped before
    /// [`Taken::spent`]. May wait for a disk: see [`EvaluationCounts::waits`].
    ///
    /// # Errors
    /// [`Short`]: nothing was taken.
    pub(crate) fn take(self: &Arc<Self>, charges: &[Charge]) -> Result<Taken, Short> {
        let mut taken = Taken { counts: Arc::clone(self), parts: Vec::new(), spent: false };
        if charges.is_empty() {
            return Ok(taken);
        }
        let now = self.counters.clock.now_ms();
        // Always in this order, and both until all is taken: nobody sees a part of it.
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = self.counters.lock();
        for charge in charges {
            match take_one(&mut own, &mut all, charge, now) {
                Ok(from) => taken.parts.push((charge.clone(), from)),
                Err(short) => {
                    taken.undo(&mut own, &mut all);
                    return Err(short);
                }
            }
        }
        if let Err(fault) = self.counters.keep(&all, &taken.parts) {
            tracing::error!(%fault, "a host call was refused because what it takes of a budget could not be kept");
            taken.undo(&mut own, &mut all);
            return Err(Short::Unkept);
        }
        drop((own, all));
        Ok(taken)
    }
}

/// Takes one charge. Comes back with the slot it is in; nothing for an evaluation's.
fn take_one(own: &mut HashMap<Arc<str>, Amount>, all: &mut All, charge: &Charge, now: u64) -> Result<Option<u64>, Short> {
    let alone = charge.amount > charge.max;
    let used = |free_in| Short::Used { limit: Arc::clone(&charge.limit), free_in, alone };
    let Some(window) = charge.per.millis() else {
        let before = own.get(&charge.key).copied().unwrap_or_default();
        let after = before.plus(charge.amount);
        if after > charge.max {
            return Err(used(None));
        }
        own.insert(Arc::clone(&charge.key), after);
        return Ok(None);
    };
    let counts = all.entry(charge.uid).or_default();
    if !counts.contains_key(&charge.key) && counts.len() >= COUNTS_EACH {
        counts.retain(|_, count| count.used(count.now(now)) > Amount::ZERO);
        if counts.len() >= COUNTS_EACH {
            return Err(Short::Crowded);
        }
    }
    let count = counts.entry(Arc::clone(&charge.key)).or_default();
    let now = count.now(now);
    match count.free_at(now, charge.amount, charge.max) {
        Some(at) if at <= now => {}
        later => return Err(used(later.map(|at| Duration::from_millis(at - now)))),
    }
    count.slots.retain(|_, (_, until)| *until > now);
    let slot = window / SLOTS;
    let from = now - now % slot;
    let (held, until) = count.slots.entry(from).or_insert((Amount::ZERO, from + slot + window));
    *held = held.plus(charge.amount);
    *until = (*until).max(from + slot + window);
    Ok(Some(from))
}

fn changes(all: &All, parts: &[Part]) -> Vec<SavedCount> {
    let mut changes: Vec<SavedCount> = Vec::new();
    for (charge, from) in parts {
        let Some(from_ms) = *from else { continue };
        let slot = all.get(&charge.uid).and_then(|own| own.get(&charge.key)).and_then(|count| count.slots.get(&from_ms));
        let (used, until_ms) = slot.copied().unwrap_or((Amount::ZERO, from_ms));
        let key = Arc::clone(&charge.key);
        changes.retain(|other| (other.uid, &other.key, other.from_ms) != (charge.uid, &key, from_ms));
        changes.push(SavedCount { uid: charge.uid, key, from_ms, used, until_ms });
    }
    changes
}

/// What one call took. Dropped unspent, all of it goes back.
#[derive(Debug)]
pub(crate) struct Taken {
    counts: Arc<EvaluationCounts>,
    parts: Vec<Part>,
    spent: bool,
}

impl Taken {
    /// The call begins: whatever becomes of it, nothing goes back.
    pub(crate) fn spent(mut self) {
        self.spent = true;
    }

    fn undo(&mut self, own: &mut HashMap<Arc<str>, Amount>, all: &mut All) {
        for (charge, from) in &self.parts {
            let slot = from.and_then(|from| all.get_mut(&charge.uid)?.get_mut(&charge.key)?.slots.get_mut(&from));
            match (slot, from) {
                (Some((used, _)), _) => *used = used.minus(charge.amount),
                (None, None) => {
                    if let Some(used) = own.get_mut(&charge.key) {
                        *used = used.minus(charge.amount);
                    }
                }
                // Its time was over, and it is forgotten.
                (None, Some(_)) => {}
            }
        }
        self.spent = true;
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if self.spent || self.parts.is_empty() {
            return;
        }
        let counts = Arc::clone(&self.counts);
        let mut own = counts.own.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = counts.counters.lock();
        self.undo(&mut own, &mut all);
        if let Err(fault) = counts.counters.keep(&all, &self.parts) {
            // It stays taken over a restart: the careful way.
            tracing::warn!(%fault, "what a call gave back of a budget could not be kept");
        }
    }
}

impl Short {
    /// For the guest: which limit, when it is free, nothing about anybody else.
    pub(crate) fn sentence(&self, function: &str) -> String {
        match self {
            Self::Used { limit, alone: true, .. } => {
                format!("{function}: the call did not run: it alone is over its budget of {limit}")
            }
            Self::Used { limit, free_in: Some(wait), .. } => {
                let seconds = wait.as_millis().div_ceil(1_000);
                format!("{function}: the call did not run: the budget of {limit} is used up; it is free again in {seconds} s")
            }
            Self::Used { limit, free_in: None, .. } => format!("{function}: the call did not run: the budget of {limit} is used up"),
            Self::Crowded => format!("{function}: the call did not run: budgets of {COUNTS_EACH} functions are in use; use fewer names"),
            Self::Unkept => format!("{function}: the call did not run: what it takes of a budget can not be kept now"),
        }
    }

    /// When it is worth trying again.
    pub(crate) fn retry_after_ms(&self) -> Option<u64> {
        match self {
            Self::Used { free_in, .. } => free_in.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            Self::Crowded | Self::Unkept => None,
        }
    }
}

#[cfg(test)]
#[path = "counters_tests.rs"]
mod tests;
