//! One host call, from a worker's claim to the answer it gets.
//!
//! Owns the straight way: permission, validation, agreement, budgets, record, delivery with a deadline,
//! judging the output, and the record of what is known of the effect. Everything
//! before delivery ends as `refused`; after it nothing ever does. Input and output
//! stay the raw text that came; trees are only built to judge them.
//!
//! Passes over the bytes of a payload in here: count, tree, hash (input); count,
//! tree, copy into the frame (output). Trees only where a schema asks for one.

mod agree;
mod claim;
mod ending;
mod judges;
mod waiting;

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;

pub(crate) use judges::{Audience, Judges};

use super::callback::{CallAnswer, Callback, Delivery};
use super::configured::{CallFacts, Place, Running};
use super::schema::Cost;
use super::table::{Function, FunctionTable};
use super::wall::Wall;
use crate::admin::Revocations;
use crate::approvals::Approvals;
use crate::audit::{AuditSink, Call, Disclosure, Event, Payload};
use crate::journal::{Effects, Entry, Intent, Level};
use crate::policy::counters::EvaluationCounts;
use crate::policy::{Facts, PolicyStore};
use brig_protocol::client::{CallRecord, CallState, Principal};
use brig_protocol::codes::CallCode;
use brig_protocol::limits;
use brig_protocol::worker::host_result_frame;
use claim::{Begun, Charged, Claimed, Recorded, Refused};
use ending::{End, Stop, UNKNOWN, end, failed, refused, spoilt, timed_out, too_late, undecided, unjudged, unknown};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// What a worker asked for, after the conversation took its id.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The id that the worker gave, in sequence.
    pub(crate) call: u64,
    /// Index in the table of this evaluation.
    pub(crate) function: u32,
    /// Raw JSON.
    pub(crate) input: Box<RawValue>,
}

/// How one call ended.
#[derive(Debug)]
pub(crate) struct CallOutcome {
    /// The frame that answers the worker.
    pub(crate) frame: Vec<u8>,
    /// For the answer of the evaluation.
    pub(crate) record: CallRecord,
}

/// The host calls of one evaluation. Authority is in here: a call brings none.
#[derive(Debug)]
pub(crate) struct HostCalls<C, A> {
    /// Id of the evaluation, `ev_…`.
    pub(crate) evaluation: String,
    /// For whom it runs.
    pub(crate) principal: Principal,
    /// What it may ask for.
    pub(crate) table: Arc<FunctionTable>,
    /// Where its callbacks run.
    pub(crate) client: Arc<C>,
    /// Where its calls are recorded.
    pub(crate) audit: Arc<A>,
    /// Where write calls are kept, before they run and after.
    pub(crate) effects: Effects,
    /// Where long judgements run.
    pub(crate) judges: Arc<Judges>,
    /// When the evaluation ends in any case, but for the time that people take.
    pub(crate) wall: Arc<Wall>,
    /// Who asks, as the kernel says.
    pub(crate) facts: Facts,
    /// Where the policy is that holds by now.
    pub(crate) policy: Arc<PolicyStore>,
    /// The policy that the table was made under.
    pub(crate) policy_version: Arc<str>,
    /// What may not be used any more.
    pub(crate) revocations: Arc<Revocations>,
    /// Where calls wait for a person.
    pub(crate) approvals: Arc<Approvals>,
    /// What it used of budgets.
    pub(crate) counts: Arc<EvaluationCounts>,
    /// Set when the evaluation ends before.
    pub(crate) cancelled: CancellationToken,
}

impl<C: Callback, A: AuditSink> HostCalls<C, A> {
    /// Takes one call all the way. Never fails and never waits longer than the
    /// function's time-out or the evaluation's end, whichever is first. Dropping the
    /// future tells the client that nobody awaits the call.
    pub(crate) async fn run(&self, asked: Asked) -> CallOutcome {
        let begun = Instant::now();
        let input_bytes = length(asked.input.get().len());
        let (call, index) = (asked.call, asked.function);
        let end = match self.table.get(index) {
            None => refused(call, Refused::new(CallCode::UnknownFunction, format!("there is no host function {index} in this evaluation"))),
            Some(function) => self.attempt(asked, function, begun).await.unwrap_or_else(|refusal| refused(call, refusal)),
        };
        self.outcome(call, index, input_bytes, begun, end)
    }

    /// Refuses a call whose input there is no room for. Its input is let go at once.
    pub(crate) fn turned_away(&self, call: u64, index: u32, input_bytes: usize) -> CallOutcome {
        let name = self.table.get(index).map_or("", |function| function.full_name.as_str());
        let message =
            format!("{name}: this user has as many bytes waiting in brigd as it may (clients.buffer_bytes), so the call did not run");
        self.outcome(call, index, length(input_bytes), Instant::now(), refused(call, Refused::new(CallCode::CallLimit, message)))
    }

    /// Withholds an answer that there is no room for while the worker does not take it.
    pub(crate) fn withheld(&self, outcome: CallOutcome) -> CallOutcome {
        let CallOutcome { mut record, .. } = outcome;
        let message = format!(
            "{}: the program did not take earlier answers, and this user has as many bytes waiting in brigd as it may \
             (clients.buffer_bytes); what is known of the call is in the answer of the evaluation",
            record.function
        );
        let end = end(record.call, record.state, CallCode::OutputTooLarge, message);
        record.code = record.code.or(end.code);
        CallOutcome { frame: end.frame, record }
    }

    fn outcome(&self, call: u64, index: u32, input_bytes: u64, begun: Instant, end: End) -> CallOutcome {
        let record = CallRecord {
            call,
            function: self.table.get(index).map_or_else(|| format!("#{index}"), |function| function.full_name.clone()),
            state: end.state,
            code: end.code,
            duration_ms: begun.elapsed().as_secs_f64() * 1_000.0,
            input_bytes,
            output_bytes: end.output.as_ref().map_or(0, Payload::bytes),
        };
        self.record_end(&record, &end);
        CallOutcome { frame: end.frame, record }
    }

    async fn attempt(&self, asked: Asked, function: &Function, begun: Instant) -> Result<End, Refused> {
        let call = asked.call;
        let mut by = begun.checked_add(function.timeout);
        let judged_under = self.policy.current();
        let claimed = Claimed::new(Arc::clone(&self.table), asked.function, asked.input, self.call_facts(call));
        let valid = tokio::select! {
            biased;
            stop = self.stopped(by, function) => return Err(too_late(function, stop)),
            judged = self.judged(claimed) => judged?,
        };
        let pending = agree::Pending { call, index: asked.function, function };
        let (agreed, was_asked) = self.agreed(valid, pending).await?;
        if was_asked {
            by = Instant::now().checked_add(function.timeout);
        }
        // Before anything is taken of a budget: a place may be long in coming.
        let place = tokio::select! {
            biased;
            stop = self.stopped(by, function) => return Err(too_late(function, stop)),
            place = self.placed(function) => place?,
        };
        let agreed = tokio::select! {
            biased;
            stop = self.stopped(by, function) => return Err(too_late(function, stop)),
            agreed = self.still_agreed(agreed, &judged_under) => agreed?,
        };
        let charged = tokio::select! {
            biased;
            charged = self.charged(agreed) => charged?,
            stop = self.stopped(by, function) => return Err(too_late(function, stop)),
        };
        let recorded = tokio::select! {
            biased;
            recorded = charged.recorded(&*self.audit, &self.evaluation, call, self.principal.uid) => recorded?,
            stop = self.stopped(by, function) => return Err(too_late(function, stop)),
        };
        let mut entry = self.journaled(call, function, &recorded, by).await?;
        let begun = recorded.begun();
        entry.delivered();
        let answer = self.delivered(call, function, begun, place, by).await;
        entry.after(answer.as_ref().map_err(|stop| stop.code())).await;
        Ok(self.ended(call, function, answer, by).await)
    }

    /// What an answer means, or that there is none.
    async fn ended(&self, call: u64, function: &Function, answer: Result<CallAnswer, Stop>, by: Option<Instant>) -> End {
        let name = &function.full_name;
        match answer {
            Ok(CallAnswer::Output(output)) => {
                // Its judgement may wait for others; the evaluation's end does not.
                tokio::select! {
                    biased;
                    end = self.answered(call, function, output) => end,
                    stop = self.stopped(by, function) => unjudged(call, function, stop),
                }
            }
            Ok(CallAnswer::Failed { message, data }) => failed(call, &message, data.as_deref()),
            Ok(CallAnswer::Spoilt { code, fault, bytes }) => {
                spoilt(call, code, format!("{name}: the output {fault}. The function ran."), Some(Payload::unread(bytes)))
            }
            Ok(CallAnswer::Crashed(fault)) => undecided(call, function, CallCode::FunctionCrashed, &format!("{name}: {fault}")),
            Ok(CallAnswer::Gone) => unknown(call, CallCode::ClientGone, format!("{name}: the client that runs it went away; {UNKNOWN}")),
            Err(Stop::Cancelled) => {
                undecided(call, function, CallCode::Cancelled, &format!("{name}: the evaluation ended before the call did"))
            }
            Err(Stop::Revoked) => {
                undecided(call, function, CallCode::Revoked, &format!("{name}: an operator revoked this function while it ran"))
            }
            Err(Stop::TimedOut) => undecided(call, function, CallCode::FunctionTimedOut, &timed_out(function)),
        }
    }

    fn call_facts(&self, call: u64) -> CallFacts {
        CallFacts { idempotency_key: self.idempotency_key(call), uid: self.principal.uid }
    }

    fn idempotency_key(&self, call: u64) -> String {
        format!("{}:{call}", self.evaluation)
    }

    /// Judges a claim, here or on a thread of its own.
    async fn judged(&self, claimed: Claimed) -> Result<claim::Valid, Refused> {
        let function = claimed.function()?;
        if self.revocations.names_function(&function.collection_name, &function.name) {
            return Err(too_late(function, Stop::Revoked));
        }
        let cost = if claimed.input_length() > judges::INLINE_BYTES { Some(claimed.worst_cost()) } else { claimed.cost() };
        let judged = self.judges.run_while(self.principal.uid, cost.unwrap_or(Cost::NONE), move |audience| claimed.judged(audience)).await;
        judged.unwrap_or_else(|| Err(Refused::new(CallCode::InvalidInput, "the input could not be checked, so the call did not run")))
    }

    /// Takes what the call costs of its budgets, on another thread where a disk is waited
    /// for. Dropped meanwhile, the other thread gives it back when it has it.
    async fn charged(&self, agreed: claim::Agreed) -> Result<Charged, Refused> {
        let counts = Arc::clone(&self.counts);
        if !agreed.waits(&counts) {
            return agreed.charged(&counts);
        }
        let taken = tokio::task::spawn_blocking(move || agreed.charged(&counts)).await;
        let failed = |_| Err(Refused::new(CallCode::BudgetExhausted, "the budget of the call could not be asked, so it did not run"));
        taken.unwrap_or_else(failed)
    }

    /// Puts a call that changes something in the journal, before it does.
    async fn journaled(&self, call: u64, function: &Function, recorded: &Recorded, by: Option<Instant>) -> Result<Entry, Refused> {
        let intent = Intent {
            call,
            function: &function.full_name,
            effect: function.effect,
            idempotency_key: &self.idempotency_key(call),
            input_sha256: recorded.input_sha256(),
            input_bytes: length(recorded.input().get().len()),
            // A callback's effect is its client's to keep: the record outlives brigd, and
            // costs no wait for the disk. What brigd itself runs is on disk first.
            level: if function.configured().is_some() { Level::Power } else { Level::Crash },
        };
        let written = tokio::select! {
            biased;
            written = self.effects.before(intent) => written,
            stop = self.stopped(by, function) => return Err(too_late(function, stop)),
        };
        written.map_err(|fault| {
            tracing::error!(evaluation = self.evaluation, call, %fault, "a write call was refused because it could not be kept");
            let name = &function.full_name;
            Refused::new(CallCode::JournalUnavailable, format!("{name}: the call can not be kept in the journal now, so it did not run"))
        })
    }

    /// Delivers a call that may run, and awaits the answer for as long as it has.
    async fn delivered(
        &self,
        call: u64,
        function: &Function,
        mut begun: Begun,
        place: Option<Place>,
        by: Option<Instant>,
    ) -> Result<CallAnswer, Stop> {
        let idempotency_key = self.idempotency_key(call);
        let prepared = begun.prepared();
        let delivery = Delivery {
            evaluation: &self.evaluation,
            call,
            function: &function.full_name,
            input: begun.input(),
            deadline: self.time_left(by),
            idempotency_key: &idempotency_key,
            vm: None,
        };
        if let Some(((configured, place), prepared)) = function.configured().zip(place).zip(prepared) {
            return tokio::select! {
                biased;
                answer = configured.run(Running {
                    place,
                    prepared,
                    delivery: &delivery,
                    output_bytes: self.table.output_bytes(),
                    judges: &self.judges,
                    uid: self.principal.uid,
                }) => Ok(answer),
                stop = self.stopped(by, function) => Err(stop),
            };
        }
        let mut awaited = Awaited { client: &*self.client, evaluation: &self.evaluation, call, reason: Some(CallCode::Cancelled) };
        tokio::select! {
            biased;
            answer = self.client.host_call(delivery) => {
                awaited.reason = None;
                Ok(answer)
            }
            stop = self.stopped(by, function) => {
                awaited.reason = Some(stop.code());
                Err(stop)
            }
        }
    }

    /// Judges an output before the guest sees any of it. The function ran: whatever
    /// is wrong with its output, its effect is there.
    async fn answered(&self, call: u64, function: &Function, output: Box<RawValue>) -> End {
        let bytes = output.get().len();
        let limit = self.table.output_bytes();
        if length(bytes) > limit {
            let setting = limits::row("outputBytes").map_or("", |row| row.setting);
            let message = format!(
                "{}: the output has {bytes} bytes; the limit outputBytes is {limit} (raised by {setting}). The function ran.",
                function.full_name
            );
            return spoilt(call, CallCode::OutputTooLarge, message, Some(Payload::unread(bytes)));
        }
        let cost = claim::output_cost(function.output.as_deref(), output.get());
        let schema = function.output.clone();
        let judge = move || {
            let fault = claim::output_fault(schema.as_deref(), output.get());
            (fault, Payload::of(output.get(), Disclosure::Hash, None), output)
        };
        let (fault, shown) = match self.judges.run(self.principal.uid, cost, judge).await {
            Some((None, shown, output)) => match host_result_frame(call, output.get()) {
                Ok(frame) => return End { state: CallState::Completed, code: None, rule: None, output: Some(shown), frame },
                Err(fault) => (format!("can not be passed on: {fault}"), shown),
            },
            Some((Some(fault), shown, _)) => (fault, shown),
            None => ("could not be checked".to_owned(), Payload::unread(bytes)),
        };
        spoilt(call, CallCode::InvalidOutput, format!("{}: the output {fault}\nThe function ran.", function.full_name), Some(shown))
    }

    /// Puts the end on record. The effect, if any, is there already: a failure to
    /// record it is told to the log and changes nothing.
    fn record_end(&self, record: &CallRecord, end: &End) {
        let Self { evaluation, principal, .. } = self;
        let of = Call { evaluation, call: record.call, function: &record.function, uid: principal.uid };
        let event = match (record.state, record.code) {
            (CallState::Refused, code) => {
                Event::CallRefused { of, code: code.unwrap_or(CallCode::PermissionDenied), rule: end.rule.as_deref() }
            }
            (state, code) => Event::CallEnded { of, state, code, output: end.output.as_ref(), duration_ms: record.duration_ms },
        };
        if let Err(fault) = self.audit.write(&event) {
            tracing::error!(evaluation, call = record.call, error = %fault, "the end of a host call could not be recorded");
        }
    }
}

/// Tells the client, when dropped, that its answer is not awaited.
struct Awaited<'a, C: Callback> {
    client: &'a C,
    evaluation: &'a str,
    call: u64,
    reason: Option<CallCode>,
}

impl<C: Callback> Drop for Awaited<'_, C> {
    fn drop(&mut self) {
        if let Some(reason) = self.reason {
            self.client.host_cancel(self.evaluation, self.call, reason);
        }
    }
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
