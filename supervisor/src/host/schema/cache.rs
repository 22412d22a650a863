//! Compiled schemas, kept by their text.
//!
//! Owns compiling off the async threads and remembering the outcome. Never holds
//! more than its bounds; never compiles on a thread whose stack a schema could
//! exhaust.

use super::{Schema, SchemaFault};
use crate::host::turns::{Turn, Turns};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most schemas that are kept.
const KEPT: usize = 4_096;
/// Most bytes that the schemas that are kept take, by their own estimate.
const KEPT_BYTES: usize = 64 * 1024 * 1024;
/// Most threads that compile at once.
const COMPILING: usize = 2;
/// Longest time for all schemas of one request. A single one is bounded by its shape.
const COMPILE_TIME: Duration = Duration::from_secs(10);
/// Stack for compiling. Only what is used is ever touched.
const STACK_BYTES: usize = 256 * 1024 * 1024;

type Outcome = Result<Arc<Schema>, SchemaFault>;

/// A bounded store of compiled schemas, shared by the whole process.
#[derive(Debug)]
pub(crate) struct SchemaCache {
    store: Mutex<Store>,
    compiling: Turns,
}

impl Default for SchemaCache {
    fn default() -> Self {
        Self { store: Mutex::default(), compiling: Turns::new(COMPILING) }
    }
}

#[derive(Debug, Default)]
struct Store {
    kept: HashMap<Box<str>, Kept>,
    bytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct Kept {
    schema: Arc<Schema>,
    used: u64,
}

impl SchemaCache {
    /// The compiled schema of each text, in their order. What is not known is
    /// compiled for this user on a thread of its own, all texts one after the other, for
    /// as long as somebody awaits them.
    pub(crate) async fn compiled(&self, uid: u32, texts: Vec<&str>) -> Vec<Outcome> {
        let mut found: Vec<Option<Outcome>> = self.known(&texts);
        if found.iter().all(Option::is_some) {
            return found.into_iter().flatten().collect();
        }
        let turn = self.compiling.take(uid).await;
        // Whoever had the turn before may have wanted the same.
        found = self.known(&texts);
        let missing: Vec<String> =
            texts.iter().zip(&found).filter(|(_, known)| known.is_none()).map(|(text, _)| (*text).to_owned()).collect();
        let mut fresh = compile_apart(turn, missing).await.into_iter();
        for (text, slot) in texts.iter().zip(&mut found).filter(|(_, slot)| slot.is_none()) {
            let outcome = fresh.next().unwrap_or_else(could_not_compile);
            if let Ok(schema) = &outcome {
                self.keep(text, schema);
            }
            *slot = Some(outcome);
        }
        found.into_iter().flatten().collect()
    }

    fn known(&self, texts: &[&str]) -> Vec<Option<Outcome>> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        store.clock += 1;
        let clock = store.clock;
        let mut look = |text: &&str| {
            let kept = store.kept.get_mut(*text)?;
            kept.used = clock;
            Some(Ok(Arc::clone(&kept.schema)))
        };
        texts.iter().map(&mut look).collect()
    }

    fn keep(&self, text: &str, schema: &Arc<Schema>) {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let weight = schema.weight();
        while !store.kept.is_empty() && (store.kept.len() >= KEPT || store.bytes + weight > KEPT_BYTES) {
            store.forget_half();
        }
        let used = store.clock;
        if store.kept.insert(text.into(), Kept { schema: Arc::clone(schema), used }).is_none() {
            store.bytes += weight;
        }
    }

    #[cfg(test)]
    pub(crate) fn held(&self) -> (usize, usize) {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        (store.kept.len(), store.bytes)
    }
}

impl Store {
    /// Drops the half that was not used for longest, so that making room is rare.
    fn forget_half(&mut self) {
        let mut times: Vec<u64> = self.kept.values().map(|kept| kept.used).collect();
        times.sort_unstable();
        let middle = times.get(times.len() / 2).copied().unwrap_or_default();
        self.kept.retain(|_, kept| kept.used > middle);
        self.bytes = self.kept.values().map(|kept| kept.schema.weight()).sum();
    }
}

fn could_not_compile() -> Outcome {
    Err(SchemaFault("could not be compiled".to_owned()))
}

/// Compiles on a thread with a stack that no schema within its bounds exhausts. The turn
/// goes along: it is over when the thread is, not when nobody waits any more.
async fn compile_apart(turn: Option<Turn>, texts: Vec<String>) -> Vec<Outcome> {
    if texts.is_empty() {
        return Vec::new();
    }
    let (answer, answered) = tokio::sync::oneshot::channel();
    let work = move || {
        let by = Instant::now() + COMPILE_TIME;
        let outcomes = texts.iter().take_while(|_| !answer.is_closed()).map(|text| compiled_by(by, text)).collect();
        drop(turn);
        drop(answer.send(outcomes));
    };
    match std::thread::Builder::new().name("brig-schema".to_owned()).stack_size(STACK_BYTES).spawn(work) {
        // A thread that panicked drops its end: then every text "could not be compiled".
        Ok(_detached) => answered.await.unwrap_or_default(),
        Err(_) => Vec::new(),
    }
}

fn compiled_by(by: Instant, text: &str) -> Outcome {
    if Instant::now() < by {
        return Schema::compile(text).map(Arc::new);
    }
    let seconds = COMPILE_TIME.as_secs();
    Err(SchemaFault(format!("was not compiled: the schemas of one request may take {seconds} s in all; declare fewer at once")))
}
