//! Host calls that wait for a person.
//!
//! Owns who may decide ([`terms`]), who decided first, how many may wait, and the record
//! of what became of each ([`book`]). A decision is about one function, one input by its
//! hash, one principal and one policy; whoever was let through is decided again before it
//! runs, by [`crate::host::call`]. Never runs a call, and never keeps an input beyond its
//! wait: records name it by its hash.
//!
//! ```text
//! parked ──approve──> approved      the call is decided, validated and charged anew
//!    │ ───deny──────> denied        approval_denied, it did not run
//!    │ ───time──────> expired       approval_expired, it did not run
//!    │ ───its end───> withdrawn     the evaluation ended, or the function was revoked
//!    └── brigd died ─> abandoned    found in the state file at the next start
//! ```

mod book;
mod shown;
mod terms;

use crate::time_of_day::now_ms;
pub(crate) use book::Bounds;
use book::Full;

use crate::audit::event::{ApprovalAsk, By, approval_asked, approval_decided, approval_expired};
use crate::audit::{AuditFault, Call, Event, Payload};
use crate::host::permission::AskTerms;
use crate::policy::Facts;
use crate::state::{FileFault, StateFile};
use book::{Book, Verdict};
use brig_protocol::admin::{ApprovalDetail, ApprovalInfo, ApprovalState};
use brig_protocol::client::Principal;
use brig_protocol::codes::RequestCode;
use brig_protocol::rpc::ErrorData;
use serde_json::value::RawValue;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// One call that needs a person, and all that they are shown.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Of which evaluation.
    pub(crate) evaluation: String,
    /// Which call of it.
    pub(crate) call: u64,
    /// `collection.function`.
    pub(crate) function: String,
    /// For whom.
    pub(crate) principal: Principal,
    /// Exactly what would run.
    pub(crate) input: Arc<RawValue>,
    /// SHA-256 of its text.
    pub(crate) input_sha256: String,
    /// What the record shows of it.
    pub(crate) recorded: Payload,
    /// What the rule asks for.
    pub(crate) terms: Arc<AskTerms>,
    /// The policy that it is part of.
    pub(crate) policy_version: Arc<str>,
}

/// What came of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Somebody said yes.
    Approved,
    /// Somebody said no.
    Denied,
    /// Nobody said anything in time.
    Expired,
}

/// Where what people are asked, and what they say, is put on record.
pub(crate) type Recorder = Box<dyn Fn(&Event<'_>) -> Result<(), AuditFault> + Send + Sync>;

/// Why a call can not wait.
#[derive(Debug)]
pub(crate) enum NotParked {
    /// As many wait as may.
    Full(Full),
    /// That it waits can not be recorded.
    Unrecorded(AuditFault),
}

/// All of them.
pub(crate) struct Approvals {
    record: Recorder,
    book: Mutex<Book>,
    file: Option<StateFile>,
    asked: AtomicU64,
    changed: Notify,
    writing: Mutex<()>,
}

/// A call that waits; withdrawn when dropped before there is an answer.
#[derive(Debug)]
pub(crate) struct Parked {
    approvals: Arc<Approvals>,
    id: String,
    until: Instant,
    answer: oneshot::Receiver<Verdict>,
}

impl Approvals {
    /// Those of the state directory: what waited when brigd died is abandoned.
    ///
    /// # Errors
    /// When the file is there and can not be read.
    pub(crate) fn open(bounds: Bounds, state: Option<&Path>, record: Recorder) -> Result<Arc<Self>, FileFault> {
        let file = state.map(|folder| StateFile::within(folder, "approvals.json"));
        let past: Vec<ApprovalInfo> = file.as_ref().map(StateFile::read).transpose()?.flatten().unwrap_or_default();
        let left = past.iter().filter(|info| info.state == ApprovalState::Waiting);
        left.for_each(|info| note(&record, &approval_expired(call_of(info), &info.approval)));
        let book = Mutex::new(Book::new(bounds, past));
        let approvals = Arc::new(Self { record, book, file, asked: AtomicU64::new(0), changed: Notify::new(), writing: Mutex::new(()) });
        approvals.changed.notify_one();
        Ok(approvals)
    }

    /// A call begins to wait. Not recorded, not asked.
    ///
    /// # Errors
    /// [`NotParked`].
    pub(crate) fn park(self: &Arc<Self>, id: String, asked: Asked) -> Result<Parked, NotParked> {
        let until = Instant::now() + asked.terms.wait;
        let mut book = self.lock();
        book.room(asked.principal.uid).map_err(NotParked::Full)?;
        // Before anybody can see it, so that no decision is on record before its question.
        (self.record)(&asked.event(&id)).map_err(NotParked::Unrecorded)?;
        let answer = book.park(&id, asked, now_ms());
        drop(book);
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
        Ok(Parked { approvals: Arc::clone(self), id, until, answer })
    }

    /// Somebody decides. Exactly one of those who race is taken. Not recorded, not done.
    ///
    /// # Errors
    /// There is no such approval, somebody was first, the hash is another, they may not, or
    /// it can not be recorded.
    pub(crate) fn approve(&self, id: &str, who: &Facts, input_sha256: &str, comment: Option<String>) -> Result<ApprovalInfo, ErrorData> {
        let record = |info: &ApprovalInfo| {
            let event = approval_decided(call_of(info), id, true, By::Uid(who.uid), comment.as_deref());
            (self.record)(&event).map_err(|fault| {
                tracing::error!(approval = id, %fault, "an approval was not taken because it could not be recorded");
                ErrorData::new(RequestCode::JournalUnavailable, "the decision can not be recorded in the audit now; nothing was decided")
            })
        };
        self.decided(self.lock().decide(id, who, Verdict::Yes, Some(input_sha256), (comment.clone(), record), now_ms()))
    }

    /// The same, to say no, which is done in any case: nothing runs then.
    ///
    /// # Errors
    /// There is no such approval, somebody was first, or they may not.
    pub(crate) fn deny(&self, id: &str, who: &Facts, comment: Option<String>) -> Result<ApprovalInfo, ErrorData> {
        let record = |info: &ApprovalInfo| {
            note(&self.record, &approval_decided(call_of(info), id, false, By::Uid(who.uid), comment.as_deref()));
            Ok(())
        };
        self.decided(self.lock().decide(id, who, Verdict::No, None, (comment.clone(), record), now_ms()))
    }

    fn decided(&self, outcome: Result<ApprovalInfo, ErrorData>) -> Result<ApprovalInfo, ErrorData> {
        self.changed.notify_one();
        outcome
    }

    /// Those that wait, oldest first, then with `past` those that do not any more; for
    /// `who`, only what they may decide.
    pub(crate) fn list(&self, past: bool, who: Option<&Facts>) -> Vec<ApprovalInfo> {
        self.lock().list(past, who, now_ms())
    }

    /// One in full; for `only`, if they may decide it.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn show(&self, id: &str, who: &Facts, only_own: bool) -> Result<ApprovalDetail, ErrorData> {
        self.lock().show(id, who, only_own, now_ms())
    }

    /// How many have waited since the start, those that wait now included.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().waiting()
    }

    /// Writes down what there is whenever it has changed. For one task; ends never.
    pub(crate) async fn keep(self: Arc<Self>) {
        loop {
            self.changed.notified().await;
            let this = Arc::clone(&self);
            if let Err(fault) = tokio::task::spawn_blocking(move || this.save()).await {
                tracing::error!(%fault, "approvals could not be written down");
            }
        }
    }

    /// Writes down what there is. Blocks.
    pub(crate) fn save(&self) {
        let Some(file) = &self.file else { return };
        let _turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let records = self.lock().list(true, None, now_ms());
        if let Err(fault) = file.replace(&records) {
            tracing::error!(%fault, "approvals could not be written down; the audit record has them");
        }
    }

    fn finish(&self, id: &str, state: ApprovalState) -> bool {
        let finished = self.lock().finish(id, state, now_ms());
        if let Some(info) = &finished {
            note(&self.record, &approval_expired(call_of(info), id));
            self.changed.notify_one();
        }
        finished.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Parked {
    /// Its id.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Waits for an answer.
    pub(crate) async fn answered(mut self) -> Answer {
        let answer = tokio::select! {
            biased;
            answer = &mut self.answer => answer,
            () = tokio::time::sleep_until(self.until) => {
                if self.approvals.finish(&self.id, ApprovalState::Expired) {
                    return Answer::Expired;
                }
                // Somebody decided in this very moment.
                (&mut self.answer).await
            }
        };
        match answer {
            Ok(Verdict::Yes) => Answer::Approved,
            Ok(Verdict::No) => Answer::Denied,
            Err(_) => Answer::Expired,
        }
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        self.approvals.finish(&self.id, ApprovalState::Withdrawn);
    }
}

impl Asked {
    fn event<'a>(&'a self, id: &'a str) -> Event<'a> {
        let of = Call { evaluation: &self.evaluation, call: self.call, function: &self.function, uid: self.principal.uid };
        let ask = ApprovalAsk {
            approval: id,
            input: &self.recorded,
            policy: &self.policy_version,
            rule: &self.terms.rule,
            approvers: &self.terms.approver_names,
            wait_seconds: self.terms.wait.as_secs(),
        };
        approval_asked(of, ask)
    }
}

impl fmt::Debug for Approvals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Approvals").field("book", &self.book).finish_non_exhaustive()
    }
}

fn call_of(info: &ApprovalInfo) -> Call<'_> {
    Call { evaluation: &info.evaluation, call: info.call, function: &info.function, uid: info.principal.uid }
}

/// Records what happens whether it can be recorded or not: nothing runs for it.
fn note(record: &Recorder, event: &Event<'_>) {
    if let Err(fault) = record(event) {
        tracing::error!(error = %fault, "what became of an approval could not be recorded");
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
