//! The same key, the same principal, the same request: the same answer.
//!
//! Owns who runs and who joins, and the answers of the window. Never forgets an
//! answer before its window is over: when there is no room, new keys are refused, so
//! that nothing that was promised to run once runs twice.

use brig_protocol::codes::RequestCode;
use brig_protocol::rpc::ErrorData;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long an answer is kept after it was given.
pub(crate) const WINDOW: Duration = Duration::from_secs(600);
/// Most answers and running keys of one principal.
const ENTRIES_EACH: usize = 20_000;
/// Most bytes of answers of one principal.
const BYTES_EACH: usize = 32 * 1024 * 1024;
/// Most bytes of answers in all.
const BYTES: usize = 128 * 1024 * 1024;
/// How soon it is looked for room again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// What an entry costs besides its answer, in bytes.
const ENTRY_BYTES: usize = 512;

/// What a request is, for telling whether another is the same.
pub(crate) type Digest = [u8; 32];

/// An answer that may be given again.
pub(crate) type Kept = Arc<RawValue>;

/// The answers of the window.
#[derive(Debug)]
pub(crate) struct Answers {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<(u32, String), Entry>,
    used: HashMap<u32, (usize, usize)>,
    bytes: usize,
    /// When it was last looked for room.
    looked: Option<Instant>,
}

#[derive(Debug)]
struct Entry {
    digest: Digest,
    answer: watch::Receiver<Option<Kept>>,
    bytes: usize,
    until: Option<Instant>,
}

/// What a key gives.
#[derive(Debug)]
pub(crate) enum Claim {
    /// It is new: run, and give the answer to this.
    Run(Running),
    /// It was used with the same request: the answer is there, or comes.
    Join(watch::Receiver<Option<Kept>>),
}

/// A key whose request runs. Dropped without an answer, the key is free again.
#[derive(Debug)]
pub(crate) struct Running {
    answers: Arc<Answers>,
    key: (u32, String),
    sender: watch::Sender<Option<Kept>>,
}

/// The key was used for something else.
pub(crate) fn conflict() -> ErrorData {
    ErrorData::new(RequestCode::IdempotencyConflict, "params.idempotencyKey was used with a different request; nothing ran")
}

/// The digest of the params of a request, as they were sent.
pub(crate) fn digest(method: &str, text: &str) -> Digest {
    let mut hash = Sha256::new();
    hash.update(method.as_bytes());
    hash.update([0]);
    hash.update(text.as_bytes());
    hash.finalize().into()
}

impl Answers {
    /// None yet.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::default() })
    }

    /// Claims `key` for a request of `uid`.
    ///
    /// # Errors
    /// `idempotency_conflict` for another request; `quota_exceeded` without room.
    pub(crate) fn claim(self: &Arc<Self>, uid: u32, key: &str, digest: Digest, now: Instant) -> Result<Claim, ErrorData> {
        let mut state = self.lock();
        let name = (uid, key.to_owned());
        if let Some(entry) = state.entries.get(&name).filter(|entry| entry.until.is_none_or(|until| now < until)) {
            if entry.digest != digest {
                return Err(conflict());
            }
            return Ok(Claim::Join(entry.answer.clone()));
        }
        state.remove(&name);
        // Housekeeping expires them every second; one more look when there is no room
        // must not be what a client can ask for at will.
        if !state.has_room(uid) && state.looked.is_none_or(|looked| now >= looked + LOOK_AGAIN) {
            state.looked = Some(now);
            state.expire(now);
        }
        if !state.has_room(uid) {
            let mut data = ErrorData::new(RequestCode::QuotaExceeded, "as many idempotency keys are kept as may be; nothing ran");
            data.retry_after_ms = Some(10_000);
            return Err(data);
        }
        let (sender, answer) = watch::channel(None);
        state.insert(name.clone(), Entry { digest, answer, bytes: ENTRY_BYTES, until: None });
        Ok(Claim::Run(Running { answers: Arc::clone(self), key: name, sender }))
    }

    /// Forgets what is over its window.
    pub(crate) fn expire(&self, now: Instant) {
        self.lock().expire(now);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn has_room(&self, uid: u32) -> bool {
        let (entries, bytes) = self.used.get(&uid).copied().unwrap_or_default();
        entries < ENTRIES_EACH && bytes < BYTES_EACH && self.bytes < BYTES
    }

    fn insert(&mut self, name: (u32, String), entry: Entry) {
        let used = self.used.entry(name.0).or_default();
        used.0 += 1;
        used.1 += entry.bytes;
        self.bytes += entry.bytes;
        self.entries.insert(name, entry);
    }

    fn remove(&mut self, name: &(u32, String)) {
        let Some(entry) = self.entries.remove(name) else { return };
        self.bytes = self.bytes.saturating_sub(entry.bytes);
        if let Some(used) = self.used.get_mut(&name.0) {
            used.0 = used.0.saturating_sub(1);
            used.1 = used.1.saturating_sub(entry.bytes);
            if used.0 == 0 {
                self.used.remove(&name.0);
            }
        }
    }

    fn answered(&mut self, name: &(u32, String), bytes: usize, until: Instant) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        entry.until = Some(until);
        entry.bytes += bytes;
        self.bytes += bytes;
        if let Some(used) = self.used.get_mut(&name.0) {
            used.1 += bytes;
        }
    }

    fn expire(&mut self, now: Instant) {
        let over: Vec<(u32, String)> =
            self.entries.iter().filter(|(_, entry)| entry.until.is_some_and(|until| now >= until)).map(|(name, _)| name.clone()).collect();
        for name in &over {
            self.remove(name);
        }
    }
}

impl Running {
    /// Gives the answer to everyone who joined, and lets go of it: it is kept elsewhere.
    pub(crate) fn answer_kept_elsewhere(self, answer: Kept) {
        self.answers.lock().remove(&self.key);
        self.sender.send_replace(Some(answer));
    }

    /// Gives the answer to everyone who joined, and keeps it for the window.
    pub(crate) fn answer(self, answer: Kept, now: Instant) {
        self.answers.lock().answered(&self.key, answer.get().len(), now + WINDOW);
        self.sender.send_replace(Some(answer));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.sender.borrow().is_none() {
            self.answers.lock().remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use super::*;

    fn kept(text: &str) -> Kept {
        Arc::from(RawValue::from_string(text.to_owned()).unwrap())
    }

    fn run(answers: &Arc<Answers>, uid: u32, request: &str, now: Instant) -> Running {
        match answers.claim(uid, "k", digest("evaluate", request), now) {
            Ok(Claim::Run(running)) => running,
            other => panic!("{other:?}"),
        }
    }

    fn join(answers: &Arc<Answers>, uid: u32, request: &str, now: Instant) -> watch::Receiver<Option<Kept>> {
        match answers.claim(uid, "k", digest("evaluate", request), now) {
            Ok(Claim::Join(answer)) => answer,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn one_who_comes_while_it_runs_gets_the_same_answer() {
        let (answers, now) = (Answers::new(), Instant::now());
        let running = run(&answers, 1, "a", now);
        let mut joined = join(&answers, 1, "a", now);
        running.answer(kept("1"), now);
        assert_eq!(joined.wait_for(Option::is_some).await.unwrap().as_ref().unwrap().get(), "1");
        assert!(join(&answers, 1, "a", now).borrow().is_some());
    }

    #[test]
    fn another_request_with_the_same_key_is_a_conflict_and_another_user_is_not() {
        let (answers, now) = (Answers::new(), Instant::now());
        let _running = run(&answers, 1, "a", now);
        let fault = answers.claim(1, "k", digest("evaluate", "b"), now).unwrap_err();
        assert_eq!(fault.code, RequestCode::IdempotencyConflict);
        let _other = run(&answers, 2, "b", now);
    }

    #[tokio::test]
    async fn a_request_that_ran_nothing_frees_its_key_and_wakes_who_joined() {
        let (answers, now) = (Answers::new(), Instant::now());
        let running = run(&answers, 1, "a", now);
        let mut joined = join(&answers, 1, "a", now);
        drop(running);
        assert!(joined.wait_for(Option::is_some).await.is_err());
        run(&answers, 1, "b", now).answer(kept("2"), now);
    }

    #[test]
    fn after_the_window_the_key_is_new_and_nothing_is_left() {
        let (answers, now) = (Answers::new(), Instant::now());
        run(&answers, 1, "a", now).answer(kept("1"), now);
        answers.expire(now + WINDOW);
        let state = answers.lock();
        assert_eq!((state.entries.len(), state.bytes, state.used.len()), (0, 0, 0));
    }

    #[test]
    fn without_room_a_new_key_is_refused_and_an_old_one_kept() {
        let (answers, now) = (Answers::new(), Instant::now());
        run(&answers, 1, "a", now).answer(kept(&format!("\"{}\"", "x".repeat(BYTES_EACH))), now);
        let fault = answers.claim(1, "other", digest("evaluate", "a"), now).unwrap_err();
        assert_eq!(fault.code, RequestCode::QuotaExceeded);
        assert!(join(&answers, 1, "a", now).borrow().is_some());
        assert!(answers.claim(2, "other", digest("evaluate", "a"), now).is_ok());
        assert!(answers.claim(1, "other", digest("evaluate", "a"), now + WINDOW).is_ok());
    }
}
