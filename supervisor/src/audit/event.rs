//! What is recorded: every kind of event, and how each is made.
//!
//! Owns the members of a record besides its number, time and hashes. Never holds an
//! input, an output or a program in clear unless its function says so: see
//! [`super::payload`]. Words of people are cut to size.

mod made;

pub(crate) use made::*;

use super::payload::Payload;
use super::record::{Hash, Mark};
use brig_protocol::client::{CallState, Effect, Outcome, Usage};
use brig_protocol::codes::{CallCode, EvaluationCode};
use serde::Serialize;
use std::borrow::Cow;

/// One host call.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Call<'a> {
    /// Of which evaluation.
    pub(crate) evaluation: &'a str,
    /// Its number in the evaluation.
    pub(crate) call: u64,
    /// `collection.function`.
    pub(crate) function: &'a str,
    /// For whom.
    pub(crate) uid: u32,
}

/// What a record says of a host call or an evaluation, for whoever looks for it in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Labels<'a> {
    /// Of which evaluation.
    pub(crate) evaluation: Option<&'a str>,
    /// For whom.
    pub(crate) uid: Option<u32>,
    /// `collection.function`.
    pub(crate) function: Option<&'a str>,
    /// Its number in the evaluation.
    pub(crate) call: Option<u64>,
    /// Why not well.
    pub(crate) code: Option<&'static str>,
    /// Which rules said so.
    pub(crate) rule: Option<&'a str>,
}

impl<'a> Labels<'a> {
    const fn of(call: Call<'a>, code: Option<&'static str>, rule: Option<&'a str>) -> Self {
        let Call { evaluation, call, function, uid } = call;
        Self { evaluation: Some(evaluation), uid: Some(uid), function: Some(function), call: Some(call), code, rule }
    }
}

impl Event<'_> {
    /// What is looked for in the log.
    pub(crate) fn labels(&self) -> Labels<'_> {
        match self {
            Event::EvaluationStarted { evaluation, who, .. } => {
                Labels { evaluation: Some(evaluation), uid: Some(who.uid), ..Labels::default() }
            }
            Event::EvaluationEnded { evaluation, uid, code, .. } => {
                Labels { evaluation: Some(evaluation), uid: Some(*uid), code: code.map(EvaluationCode::as_str), ..Labels::default() }
            }
            Event::CallPermitted { of, rule, .. } => Labels::of(*of, None, Some(rule)),
            Event::CallRefused { of, code, rule } => Labels::of(*of, Some(code.as_str()), *rule),
            Event::CallEnded { of, code, .. } => Labels::of(*of, code.map(CallCode::as_str), None),
            Event::ApprovalAsked { of, rule, .. } => Labels::of(*of, None, Some(rule)),
            Event::ApprovalDecided { of, .. } | Event::ApprovalExpired { of, .. } => Labels::of(*of, None, None),
            _ => Labels::default(),
        }
    }
}

/// Who asked for an evaluation.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Who<'a> {
    /// User.
    pub(crate) uid: u32,
    /// Group.
    pub(crate) gid: u32,
    /// The section of the policy that holds for it, when there is a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) principal: Option<&'a str>,
}

/// A person who acted on the admin socket, or a signal.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum By<'a> {
    /// A user of the admin socket.
    Uid(u32),
    /// A signal.
    Signal(&'a str),
}

/// Why brigd stops.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StopReason<'a> {
    /// A signal, or the end of what it was started for.
    Signal(&'a str),
}

/// What a revoke names.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Revoked<'a> {
    /// A function, or a pattern of them.
    Function(&'a str),
    /// A principal.
    Principal(&'a str),
    /// An evaluation.
    Evaluation(&'a str),
}

/// Everything that is recorded.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event<'a> {
    /// brigd takes clients.
    Started {
        /// Of brigd.
        version: &'a str,
        /// How workers are confined.
        level: &'a str,
        /// By which layers.
        layers: &'a [String],
        /// Version of the policy.
        policy: &'a str,
    },
    /// An operator asks brigd to take nothing new and to end.
    DrainAsked {
        /// By whom.
        by: By<'a>,
    },
    /// brigd stops.
    Stopped {
        /// Why.
        reason: StopReason<'a>,
    },
    /// A program is with its worker.
    EvaluationStarted {
        /// Which.
        evaluation: &'a str,
        /// For whom.
        #[serde(flatten)]
        who: Who<'a>,
        /// Version of the policy that holds for it.
        policy: &'a str,
        /// The program's text.
        source: &'a Payload,
        /// The program's inputs.
        #[serde(skip_serializing_if = "Option::is_none")]
        inputs: Option<&'a Payload>,
        /// The vm it runs in.
        #[serde(skip_serializing_if = "Option::is_none")]
        vm: Option<&'a str>,
        /// It is only parsed.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        parse_only: bool,
    },
    /// A program has its one outcome.
    EvaluationEnded {
        /// Which.
        evaluation: &'a str,
        /// For whom.
        uid: u32,
        /// How.
        outcome: Outcome,
        /// Why not well. Never the message: a guest wrote that.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<EvaluationCode>,
        /// What it took.
        usage: &'a Usage,
    },
    /// A call may run, and is about to.
    CallPermitted {
        /// Which.
        #[serde(flatten)]
        of: Call<'a>,
        /// Which rules said yes.
        rule: &'a str,
        /// What the function says it does.
        effect: Effect,
        /// What it gets.
        input: &'a Payload,
    },
    /// A call did not run.
    CallRefused {
        /// Which.
        #[serde(flatten)]
        of: Call<'a>,
        /// Why.
        code: CallCode,
        /// Which rule said no, when one did.
        #[serde(skip_serializing_if = "Option::is_none")]
        rule: Option<&'a str>,
    },
    /// A call that ran, or may have, is over.
    CallEnded {
        /// Which.
        #[serde(flatten)]
        of: Call<'a>,
        /// What is known of its effect.
        state: CallState,
        /// Why not completed.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<CallCode>,
        /// What it gave, when it gave something.
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<&'a Payload>,
        /// From request to answer, in milliseconds.
        duration_ms: f64,
    },
    /// A call waits for a person.
    ApprovalAsked {
        /// Which call.
        #[serde(flatten)]
        of: Call<'a>,
        /// Which approval.
        approval: &'a str,
        /// What would run.
        input: &'a Payload,
        /// Of the policy that asks.
        policy: &'a str,
        /// The rule that asks.
        rule: &'a str,
        /// Who may decide.
        approvers: &'a [String],
        /// How long it waits, in seconds.
        wait_seconds: u64,
    },
    /// A person decided.
    ApprovalDecided {
        /// Which call.
        #[serde(flatten)]
        of: Call<'a>,
        /// Which approval.
        approval: &'a str,
        /// Yes or no.
        approved: bool,
        /// Who.
        by: By<'a>,
        /// In the person's words.
        #[serde(skip_serializing_if = "Option::is_none")]
        comment: Option<Cow<'a, str>>,
    },
    /// Nobody decided in time, or nobody asks any more.
    ApprovalExpired {
        /// Which call.
        #[serde(flatten)]
        of: Call<'a>,
        /// Which approval.
        approval: &'a str,
    },
    /// Something may not be used from now on.
    Revoked {
        /// What.
        what: Revoked<'a>,
        /// By whom.
        by: By<'a>,
        /// In the person's words.
        #[serde(skip_serializing_if = "Option::is_none")]
        comment: Option<Cow<'a, str>>,
    },
    /// What was revoked may be used again.
    Restored {
        /// What.
        what: Revoked<'a>,
        /// By whom.
        by: By<'a>,
        /// In the person's words.
        #[serde(skip_serializing_if = "Option::is_none")]
        comment: Option<Cow<'a, str>>,
    },
    /// Another policy holds.
    PolicyReloaded {
        /// Version before.
        old: &'a str,
        /// Version now.
        new: &'a str,
        /// By whom.
        by: By<'a>,
    },
    /// A policy was to be loaded and is not valid: the old one holds.
    PolicyRefused {
        /// Version that holds.
        holds: &'a str,
        /// What is wrong with the new one.
        why: Cow<'a, str>,
        /// By whom.
        by: By<'a>,
    },
    /// The first record of a segment.
    SegmentOpened {
        /// Its number.
        segment: u64,
        /// Of the form of records.
        format: u32,
    },
    /// The last record of a segment.
    SegmentSealed {
        /// Its number.
        segment: u64,
        /// How many records it has, this one counted.
        records: u64,
        /// `size` or `age`.
        reason: &'a str,
    },
    /// Old segments are removed, as the operator set.
    SegmentsRemoved {
        /// The last of them.
        through: u64,
        /// The last record in them.
        last: Mark,
        /// `audit.keep_bytes` or `audit.keep_days`.
        setting: &'a str,
    },
    /// brigd was killed while it wrote a record; what was there of it is cut off.
    TailRepaired {
        /// Of which segment.
        segment: u64,
        /// How much.
        torn_bytes: u64,
        /// Hash of that.
        torn_sha256: Hash,
    },
    /// The machine went down before the last records were on disk.
    TailLost {
        /// The last record that was written.
        written: Mark,
        /// The last of which the disk said that it has it.
        durable: Mark,
    },
    /// Records could not be written for a while; the calls they stand before did not run.
    RecordsRefused {
        /// How many.
        count: u64,
        /// When the first, in milliseconds since 1970.
        first_ms: u64,
        /// When the last.
        last_ms: u64,
    },
}
