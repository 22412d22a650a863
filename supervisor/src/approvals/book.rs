//! Which calls wait, and what became of those that did.
//!
//! Owns the bounds and the one step in which a decision is taken: whoever comes second
//! finds the record of the first. Pure but for the answer it sends: time is an argument.

use super::{Asked, shown, terms};
use crate::host::permission::AskTerms;
use crate::host::schema::payload;
use crate::listener::open_to;
use crate::policy::Facts;
use brig_protocol::admin::{ApprovalDetail, ApprovalInfo, ApprovalState, Decision, Person};
use brig_protocol::codes::RequestCode;
use brig_protocol::escape::escaped;
use brig_protocol::rpc::ErrorData;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::sync::oneshot;

/// How many calls may wait, and how many records are kept.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Bounds {
    /// Calls that wait for a person, in all. The last eighth is for principals that have none.
    pub(crate) waiting: usize,
    /// Calls of one principal that wait for a person.
    pub(crate) waiting_each: usize,
    /// Records of those that do not wait any more; each principal keeps its share of them.
    pub(crate) kept: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { waiting: 64, waiting_each: 16, kept: 256 }
    }
}

/// As many wait as may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full {
    /// The setting that raises it.
    pub(crate) setting: &'static str,
    /// Its value.
    pub(crate) limit: usize,
}

/// What a person says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Let it run.
    Yes,
    /// Do not.
    No,
}

#[derive(Debug)]
struct Entry {
    info: ApprovalInfo,
    expires_ms: u64,
    asked: Asked,
    answer: oneshot::Sender<Verdict>,
}

/// One that does not wait any more.
#[derive(Debug)]
struct Past {
    info: ApprovalInfo,
    /// What the rule asked for; not of those of an earlier run of brigd.
    terms: Option<Arc<AskTerms>>,
}

/// All of them, oldest first.
#[derive(Debug)]
pub(super) struct Book {
    bounds: Bounds,
    waiting: Vec<Entry>,
    past: VecDeque<Past>,
}

impl Book {
    /// With records of before: of those, nobody can decide any more.
    pub(super) fn new(bounds: Bounds, past: Vec<ApprovalInfo>) -> Self {
        let mut book = Self { bounds, waiting: Vec::new(), past: VecDeque::new() };
        for mut info in past {
            if info.state == ApprovalState::Waiting {
                info.state = ApprovalState::Abandoned;
                info.expires_in_ms = None;
            }
            book.remember(Past { info, terms: None });
        }
        book
    }

    /// Whether one more of this user may wait.
    pub(super) fn room(&self, uid: u32) -> Result<(), Full> {
        let own = self.waiting.iter().filter(|entry| entry.info.principal.uid == uid).count();
        let Bounds { waiting, waiting_each, .. } = self.bounds;
        if own >= waiting_each {
            return Err(Full { setting: "approvals.waiting_each", limit: waiting_each });
        }
        if self.waiting.len() >= open_to(own, waiting) {
            return Err(Full { setting: "approvals.waiting", limit: waiting });
        }
        Ok(())
    }

    /// One more waits, for whom there is [`Book::room`].
    pub(super) fn park(&mut self, id: &str, asked: Asked, now_ms: u64) -> oneshot::Receiver<Verdict> {
        let (answer, awaited) = oneshot::channel();
        let expires_ms = now_ms.saturating_add(super::millis(asked.terms.wait));
        self.waiting.push(Entry { info: info(id, &asked, now_ms), expires_ms, asked, answer });
        awaited
    }

    pub(super) fn decide(
        &mut self,
        id: &str,
        who: &Facts,
        verdict: Verdict,
        input_sha256: Option<&str>,
        (comment, record): (Option<String>, impl FnOnce(&ApprovalInfo) -> Result<(), ErrorData>),
        now_ms: u64,
    ) -> Result<ApprovalInfo, ErrorData> {
        let Some(place) = self.waiting.iter().position(|entry| entry.info.approval == id) else {
            return Err(self.too_late(id, who));
        };
        if let Some(entry) = self.waiting.get(place) {
            if let Some(refusal) = terms::refusal(&entry.asked.terms, entry.info.principal.uid, who) {
                return Err(ErrorData::new(RequestCode::NotPermitted, format!("{refusal}; nothing was decided")));
            }
            if input_sha256.is_some_and(|hash| hash != entry.info.input_sha256) {
                let sentence = "params.inputSha256 is not that of the input that waits; show it again; nothing was decided";
                return Err(ErrorData::new(RequestCode::ApprovalChanged, sentence));
            }
            // Before the call can go on, and while nobody else can decide.
            record(&entry.info)?;
        }
        let mut entry = self.waiting.remove(place);
        entry.info.decision = Some(Decision { by: Person { uid: who.uid }, at_ms: now_ms, comment });
        let state = if verdict == Verdict::Yes { ApprovalState::Approved } else { ApprovalState::Denied };
        let (info, answer) = self.close(entry, state, now_ms);
        // Nobody may hear it any more: the decision is on record, and the call did not run.
        answer.send(verdict).ok();
        Ok(info)
    }

    /// A call waits no longer, whatever anybody would have said. Nothing: it did not wait.
    pub(super) fn finish(&mut self, id: &str, state: ApprovalState, now_ms: u64) -> Option<ApprovalInfo> {
        let place = self.waiting.iter().position(|entry| entry.info.approval == id);
        let entry = place.map(|place| self.waiting.remove(place));
        entry.map(|entry| self.close(entry, state, now_ms).0)
    }

    pub(super) fn list(&self, past: bool, who: Option<&Facts>, now_ms: u64) -> Vec<ApprovalInfo> {
        let seen = |entry: &&Entry| who.is_none_or(|who| entry.is_for(who));
        let waiting = self.waiting.iter().filter(seen).map(|entry| entry.as_of(now_ms));
        let over = self.past.iter().filter(|one| past && who.is_none_or(|who| one.is_for(who))).map(|one| one.info.clone());
        over.chain(waiting).collect()
    }

    pub(super) fn show(&self, id: &str, who: &Facts, only_own: bool, now_ms: u64) -> Result<ApprovalDetail, ErrorData> {
        if let Some(entry) = self.waiting.iter().find(|entry| entry.info.approval == id && (!only_own || entry.is_for(who))) {
            return entry.detail(who, now_ms);
        }
        let past = self.past.iter().find(|one| one.info.approval == id && (!only_own || one.is_for(who)));
        let info = past.map(|one| one.info.clone()).ok_or_else(|| not_found(id))?;
        let refused = Some(told(&info));
        Ok(ApprovalDetail { approval: info, input: None, redacted: false, approvers: Vec::new(), refused })
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn close(&mut self, entry: Entry, state: ApprovalState, now_ms: u64) -> (ApprovalInfo, oneshot::Sender<Verdict>) {
        let Entry { mut info, asked, answer, .. } = entry;
        info.state = state;
        info.age_ms = now_ms.saturating_sub(info.asked_at_ms);
        info.expires_in_ms = None;
        self.remember(Past { info: info.clone(), terms: Some(asked.terms) });
        (info, answer)
    }

    fn remember(&mut self, past: Past) {
        self.past.push_back(past);
        while self.past.len() > self.bounds.kept {
            // The oldest of whoever has most: what one principal asks pushes out its own.
            let oldest = self.oldest_of_the_busiest();
            self.past.remove(oldest);
        }
    }

    fn oldest_of_the_busiest(&self) -> usize {
        let mut counts: HashMap<u32, usize> = HashMap::new();
        for Past { info, .. } in &self.past {
            *counts.entry(info.principal.uid).or_default() += 1;
        }
        let most = counts.values().max().copied().unwrap_or(0);
        self.past.iter().position(|one| counts.get(&one.info.principal.uid) == Some(&most)).unwrap_or(0)
    }

    fn too_late(&self, id: &str, who: &Facts) -> ErrorData {
        match self.past.iter().find(|one| one.info.approval == id) {
            Some(Past { info, .. }) => {
                let mut data = ErrorData::new(RequestCode::ApprovalDecided, format!("{}; nothing was changed", told(info)));
                let own = info.decision.as_ref().is_some_and(|decision| decision.by.uid == who.uid);
                data.hint = own.then(|| "that was you".to_owned());
                data
            }
            None => not_found(id),
        }
    }
}

impl Past {
    /// Whether it is about somebody: who decided it, and whoever else the rule named, hear
    /// what became of it.
    fn is_for(&self, who: &Facts) -> bool {
        let named = |terms: &Arc<AskTerms>| terms::refusal(terms, self.info.principal.uid, who).is_none();
        decided_by(&self.info, who) || self.terms.as_ref().is_some_and(named)
    }
}

impl Entry {
    fn is_for(&self, who: &Facts) -> bool {
        terms::refusal(&self.asked.terms, self.info.principal.uid, who).is_none()
    }

    fn as_of(&self, now_ms: u64) -> ApprovalInfo {
        let mut info = self.info.clone();
        info.age_ms = now_ms.saturating_sub(info.asked_at_ms);
        info.expires_in_ms = Some(self.expires_ms.saturating_sub(now_ms));
        info
    }

    fn detail(&self, who: &Facts, now_ms: u64) -> Result<ApprovalDetail, ErrorData> {
        let (input, redacted) = match &self.asked.terms.show {
            None => (RawValue::to_owned(&self.asked.input), false),
            Some(pointers) => {
                let unreadable = |fault: String| ErrorData::new(RequestCode::InternalError, format!("the input can not be shown: {fault}"));
                let tree = payload::tree(self.asked.input.get()).map_err(|fault| unreadable(fault.to_string()))?;
                let (part, more) = shown::part(&tree, pointers);
                (to_raw_value(&part).map_err(|fault| unreadable(fault.to_string()))?, more)
            }
        };
        Ok(ApprovalDetail {
            approval: self.as_of(now_ms),
            input: Some(input),
            redacted,
            approvers: self.asked.terms.approver_names.clone(),
            refused: terms::refusal(&self.asked.terms, self.info.principal.uid, who),
        })
    }
}

fn info(id: &str, asked: &Asked, now_ms: u64) -> ApprovalInfo {
    ApprovalInfo {
        approval: id.to_owned(),
        state: ApprovalState::Waiting,
        function: asked.function.clone(),
        evaluation: asked.evaluation.clone(),
        call: asked.call,
        principal: asked.principal.clone(),
        rule: asked.terms.rule.clone(),
        why: asked.terms.why.clone(),
        policy_version: asked.policy_version.to_string(),
        input_sha256: asked.input_sha256.clone(),
        input_bytes: u64::try_from(asked.input.get().len()).unwrap_or(u64::MAX),
        asked_at_ms: now_ms,
        age_ms: 0,
        expires_in_ms: None,
        decision: None,
    }
}

fn decided_by(info: &ApprovalInfo, who: &Facts) -> bool {
    info.decision.as_ref().is_some_and(|decision| decision.by.uid == who.uid)
}

/// What became of it, as a sentence.
fn told(info: &ApprovalInfo) -> String {
    let by = info.decision.as_ref().map_or_else(String::new, |decision| format!("user {} ", decision.by.uid));
    match info.state {
        ApprovalState::Approved => format!("{by}approved it already"),
        ApprovalState::Denied => format!("{by}denied it already"),
        ApprovalState::Expired => "it expired: nobody decided in time".to_owned(),
        ApprovalState::Withdrawn => "it is not awaited any more: its evaluation ended, or what it needs was revoked or changed".to_owned(),
        ApprovalState::Abandoned => "it was abandoned: brigd ended before anybody decided, and the call did not run".to_owned(),
        ApprovalState::Waiting => "it waits".to_owned(),
    }
}

fn not_found(id: &str) -> ErrorData {
    ErrorData::new(RequestCode::ApprovalNotFound, format!("there is no approval {:?}; nothing was decided", escaped(id, 100)))
}
