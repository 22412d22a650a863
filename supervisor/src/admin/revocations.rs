//! What may not be used until an operator restores it: functions and principals.
//!
//! Owns the list, asking it, and keeping it across a restart where there is a state
//! directory. A revoke holds from the moment it is made, whether or not it could be
//! written down; what could not is written again until it is, and at the end once more.
//! Never ends anything: whoever runs something asks, or is told.

use crate::policy::Facts;
use crate::policy::selector::{Selector, SystemAccounts};
use crate::state::{FileFault, StateFile};
use brig_protocol::admin::{Revocation, RevocationsResult};
use brig_protocol::codes::RequestCode;
use brig_protocol::escape::escaped;
use brig_protocol::names::Pattern;
use brig_protocol::rpc::ErrorData;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;
use tokio::sync::watch;

/// Most entries of each kind: every decision looks at all of them.
const MOST: usize = 256;
/// How long until a list that could not be written is written again; doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Its file in the state directory.
const FILE: &str = "revocations.json";

/// What is revoked.
#[derive(Debug)]
pub(crate) struct Revocations {
    state: RwLock<State>,
    /// How many changes there were, for whoever waits for the next.
    changed: watch::Sender<u64>,
    file: Option<StateFile>,
    /// Held by whoever writes: which change was written last.
    writing: Mutex<()>,
    written: AtomicU64,
    /// Whether somebody tries again already.
    trying: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// How many changes there were.
    changes: u64,
    functions: Vec<(Pattern, Revocation)>,
    principals: Vec<(Selector, Revocation)>,
}

impl Revocations {
    /// Those of the state directory; none where there is no directory.
    ///
    /// # Errors
    /// When the file is there and can not be read.
    pub(crate) fn open(state: Option<&Path>) -> Result<Self, FileFault> {
        let file = state.map(|folder| StateFile::within(folder, FILE));
        let kept: RevocationsResult = file.as_ref().map(StateFile::read).transpose()?.flatten().unwrap_or_default();
        let mut read = State::default();
        // Whatever is in there was read once: what can not be now is a file that is not ours.
        let torn = |target: &str, fault: &str| FileFault::torn(state, FILE, &format!("{:?}: {fault}", escaped(target, 200)));
        for kept in kept.functions {
            let pattern = Pattern::parse(&kept.target).map_err(|fault| torn(&kept.target, &fault.to_string()))?;
            read.functions.push((pattern, kept));
        }
        for kept in kept.principals {
            let selector = Selector::parse(&kept.target, &SystemAccounts).map_err(|fault| torn(&kept.target, &fault))?;
            read.principals.push((selector, kept));
        }
        Ok(Self {
            state: RwLock::new(read),
            changed: watch::Sender::new(0),
            file,
            writing: Mutex::new(()),
            written: AtomicU64::new(0),
            trying: AtomicBool::new(false),
        })
    }

    /// Whether this function may not be called.
    pub(crate) fn names_function(&self, collection: &str, function: &str) -> bool {
        self.read().functions.iter().any(|(pattern, _)| pattern.matches(collection, function))
    }

    /// How many patterns a function is held against.
    pub(crate) fn patterns(&self) -> u64 {
        u64::try_from(self.read().functions.len()).unwrap_or(u64::MAX)
    }

    /// Whether this principal may not do anything.
    pub(crate) fn names_principal(&self, facts: &Facts) -> bool {
        // Of a peer whose groups and unit are not known, nobody can say that it is not meant.
        let hidden = |selector: &Selector| facts.unseen.is_some() && matches!(selector, Selector::Gid(_) | Selector::Unit(_));
        self.read().principals.iter().any(|(selector, _)| selector.matches(facts) || hidden(selector))
    }

    /// Waits until this function may not be called.
    pub(crate) async fn function_named(&self, collection: &str, function: &str) {
        let mut changed = self.changed.subscribe();
        while !self.names_function(collection, function) {
            if changed.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// How often the list has changed.
    pub(crate) fn times(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// No call of these functions any more. Doing it again changes the reason.
    ///
    /// # Errors
    /// `invalid_params`: no such pattern can be; `quota_exceeded`.
    pub(crate) fn revoke_function(&self, entry: Revocation) -> Result<Pattern, ErrorData> {
        let pattern = Pattern::parse(&entry.target).map_err(|fault| invalid("pattern", &entry.target, &fault.to_string()))?;
        self.change(|state| put(&mut state.functions, pattern.clone(), entry))?;
        Ok(pattern)
    }

    /// Nothing of these principals any more.
    ///
    /// # Errors
    /// `invalid_params`: there is no such principal; `quota_exceeded`.
    pub(crate) fn revoke_principal(&self, entry: Revocation) -> Result<Selector, ErrorData> {
        let selector = selector("principal", &entry.target)?;
        // By id: a name may be somebody else's, or nobody's, when brigd starts again.
        let entry = Revocation { target: spelling(&selector), ..entry };
        self.change(|state| put(&mut state.principals, selector.clone(), entry))?;
        Ok(selector)
    }

    /// Takes a revoke of functions back.
    ///
    /// # Errors
    /// `invalid_params`: it is not revoked.
    pub(crate) fn restore_function(&self, target: &str) -> Result<(), ErrorData> {
        let same = |entry: &(Pattern, Revocation)| entry.1.target == target;
        self.change(|state| take(&mut state.functions, same, ("pattern", target)))
    }

    /// Takes a revoke of a principal back.
    ///
    /// # Errors
    /// `invalid_params`: it is not revoked.
    pub(crate) fn restore_principal(&self, target: &str) -> Result<(), ErrorData> {
        let selector = selector("principal", target)?;
        self.change(|state| take(&mut state.principals, |entry| entry.0 == selector, ("principal", target)))
    }

    /// All of them.
    pub(crate) fn list(&self) -> RevocationsResult {
        self.read().list()
    }

    /// Whether there is a change that is to be written down still.
    pub(crate) fn is_unwritten(&self) -> bool {
        self.file.is_some() && self.written.load(Ordering::Acquire) < self.read().changes
    }

    /// Writes the list down. Blocks. Whether it outlives a restart now.
    pub(crate) fn save(&self) -> bool {
        let Some(file) = &self.file else { return false };
        // The list is taken within the turn: of two writers the later writes the later one.
        let _turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let (list, changes) = {
            let state = self.read();
            (state.list(), state.changes)
        };
        let written = file.replace(&list);
        if written.is_ok() {
            self.written.store(changes, Ordering::Release);
        }
        if let Err(fault) = &written {
            tracing::error!(%fault, "what is revoked could not be written down; it holds, and is written again until that is done");
        }
        written.is_ok()
    }

    /// Writes the list down. When that fails, somebody goes on trying until it is done or
    /// brigd ends. Whether it outlives a restart by now.
    pub(crate) async fn keep(self: &Arc<Self>) -> bool {
        let saved = self.saved().await;
        if !saved && self.file.is_some() && !self.trying.swap(true, Ordering::AcqRel) {
            tokio::spawn(Arc::clone(self).keep_trying());
        }
        saved
    }

    async fn keep_trying(self: Arc<Self>) {
        let mut pause = FIRST_PAUSE;
        loop {
            tokio::time::sleep(pause).await;
            // Given up before the list is taken: whoever fails after that tries by himself.
            self.trying.store(false, Ordering::Release);
            if self.saved().await {
                tracing::info!("what is revoked is written down now");
                return;
            }
            if self.trying.swap(true, Ordering::AcqRel) {
                return;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Off the async threads: it waits for the disk.
    async fn saved(self: &Arc<Self>) -> bool {
        let own = Arc::clone(self);
        tokio::task::spawn_blocking(move || own.save()).await.unwrap_or(false)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> Result<T, ErrorData>) -> Result<T, ErrorData> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut state)?;
        state.changes += 1;
        // Before anybody else changes it: the count goes up.
        self.changed.send_replace(state.changes);
        drop(state);
        Ok(changed)
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn list(&self) -> RevocationsResult {
        RevocationsResult {
            functions: self.functions.iter().map(|(_, entry)| entry.clone()).collect(),
            principals: self.principals.iter().map(|(_, entry)| entry.clone()).collect(),
        }
    }
}

fn put<T: PartialEq>(entries: &mut Vec<(T, Revocation)>, what: T, entry: Revocation) -> Result<(), ErrorData> {
    if let Some((_, known)) = entries.iter_mut().find(|(known, _)| *known == what) {
        *known = entry;
        return Ok(());
    }
    if entries.len() >= MOST {
        let sentence = format!("{MOST} are revoked already, which is as many as may be; revoke more at once by a wider pattern");
        return Err(ErrorData::new(RequestCode::QuotaExceeded, sentence));
    }
    entries.push((what, entry));
    Ok(())
}

fn selector(member: &str, text: &str) -> Result<Selector, ErrorData> {
    Selector::parse(text, &SystemAccounts).map_err(|fault| invalid(member, text, &fault))
}

/// The spelling that means the same on every system.
fn spelling(selector: &Selector) -> String {
    match selector {
        Selector::Uid(uid) => format!("uid:{uid}"),
        Selector::Gid(gid) => format!("gid:{gid}"),
        Selector::Unit(unit) => format!("unit:{unit}"),
        Selector::Everybody => "*".to_owned(),
    }
}

fn take<T>(
    entries: &mut Vec<(T, Revocation)>,
    meant: impl Fn(&(T, Revocation)) -> bool,
    (member, target): (&str, &str),
) -> Result<(), ErrorData> {
    let before = entries.len();
    entries.retain(|entry| !meant(entry));
    if entries.len() < before {
        return Ok(());
    }
    let known: Vec<&str> = entries.iter().map(|(_, entry)| entry.target.as_str()).collect();
    let mut data = invalid(member, target, "it is not revoked");
    data.hint = Some(match crate::api::params::nearest(target, &known) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("{} are revoked; functions.list tells them", known.len()),
    });
    Err(data)
}

fn invalid(member: &str, target: &str, fault: &str) -> ErrorData {
    ErrorData::new(RequestCode::InvalidParams, format!("params.{member} is {:?}: {}", escaped(target, 200), escaped(fault, 300)))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use brig_protocol::admin::Person;
    use futures_util::FutureExt;

    fn entry(target: &str) -> Revocation {
        Revocation { target: target.to_owned(), by: Person { uid: 0 }, at_ms: 1, reason: None }
    }

    fn facts(uid: u32) -> Facts {
        Facts { uid, gid: uid, ..Facts::default() }
    }

    #[test]
    fn a_revoke_names_what_its_pattern_matches_until_it_is_restored() {
        let revoked = Revocations::open(None).unwrap();
        revoked.revoke_function(entry("store.*")).unwrap();
        assert!(revoked.names_function("store", "refund") && !revoked.names_function("orders", "list"));
        assert!(revoked.restore_function("store.refund").unwrap_err().hint.is_some());
        revoked.restore_function("store.*").unwrap();
        assert!(!revoked.names_function("store", "refund"));
        assert!(!revoked.save());
    }

    #[test]
    fn nothing_that_can_not_be_is_revoked_and_no_more_than_may_be() {
        let revoked = Revocations::open(None).unwrap();
        for wrong in ["", "store", "*", "a b.c", "orders..list"] {
            assert_eq!(revoked.revoke_function(entry(wrong)).unwrap_err().code, RequestCode::InvalidParams, "{wrong:?}");
        }
        assert!(revoked.revoke_principal(entry("user:no-such-user-here")).is_err());
        for number in 0..MOST {
            revoked.revoke_function(entry(&format!("a.f{number}"))).unwrap();
        }
        assert_eq!(revoked.revoke_function(entry("b.c")).unwrap_err().code, RequestCode::QuotaExceeded);
        assert!(revoked.revoke_function(entry("a.f1")).is_ok());
    }

    #[test]
    fn whoever_waits_hears_of_the_revoke_that_names_it_and_of_no_other() {
        let revoked = Revocations::open(None).unwrap();
        let mut named = Box::pin(revoked.function_named("store", "refund"));
        assert!((&mut named).now_or_never().is_none());
        revoked.revoke_function(entry("orders.*")).unwrap();
        assert!((&mut named).now_or_never().is_none());
        revoked.revoke_function(entry("store:refund")).unwrap();
        assert!(named.now_or_never().is_some());
        assert_eq!(*revoked.times().borrow(), 2);
        assert!(revoked.function_named("orders", "list").now_or_never().is_some());
    }

    #[tokio::test]
    async fn what_could_not_be_written_down_is_written_as_soon_as_it_can_be() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("state");
        std::fs::create_dir(&folder).unwrap();
        let revoked = Arc::new(Revocations::open(Some(&folder)).unwrap());
        std::fs::remove_dir(&folder).unwrap();
        revoked.revoke_function(entry("store.*")).unwrap();
        assert!(!revoked.keep().await && revoked.is_unwritten());
        revoked.revoke_function(entry("orders.*")).unwrap();
        assert!(!revoked.keep().await && revoked.is_unwritten());
        std::fs::create_dir(&folder).unwrap();
        let written = async {
            while revoked.is_unwritten() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), written).await.unwrap();
        let again = Revocations::open(Some(&folder)).unwrap();
        assert!(again.names_function("store", "refund") && again.names_function("orders", "list"));
    }

    #[test]
    fn what_is_revoked_outlives_a_restart_and_a_torn_list_stops_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let revoked = Revocations::open(Some(folder.path())).unwrap();
        revoked.revoke_function(entry("store.*")).unwrap();
        revoked.revoke_principal(entry("uid:20001")).unwrap();
        assert!(revoked.save());
        let again = Revocations::open(Some(folder.path())).unwrap();
        assert!(again.names_function("store", "refund") && again.names_principal(&facts(20_001)) && !again.names_principal(&facts(1)));
        std::fs::write(folder.path().join("revocations.json"), "{").unwrap();
        assert!(Revocations::open(Some(folder.path())).is_err());
    }
}
