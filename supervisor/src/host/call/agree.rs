//! Asking a person, where the rule says so.
//!
//! Owns the way from a valid call to one to which everybody has agreed who has to. What a
//! person agreed to is one function, one input by its hash, for one principal, by one rule
//! of one policy: after the wait the call is decided and validated anew under the policy
//! that holds by then, and if that asks something else, it asks again.

use super::claim::{Agreed, Claimed, Refused, Valid};
use super::{Callback, HostCalls, too_late};
use crate::approvals::{self, Answer, NotParked};
use crate::audit::{AuditSink, Payload};
use crate::evaluation::fresh_id;
use crate::host::permission::AskTerms;
use crate::host::table::Function;
use crate::policy::{Grant, Policy};
use brig_protocol::client::ApprovalNote;
use brig_protocol::codes::CallCode;
use serde_json::value::RawValue;
use std::sync::Arc;

/// What a person agreed to.
struct Agreement {
    terms: Arc<AskTerms>,
    policy_version: Arc<str>,
    input_sha256: String,
}

/// A call that waits to be agreed to.
pub(super) struct Pending<'a> {
    pub(super) call: u64,
    pub(super) index: u32,
    pub(super) function: &'a Function,
}

impl Agreement {
    fn covers(&self, terms: &AskTerms, policy_version: &str, input_sha256: &str) -> bool {
        *self.terms == *terms && *self.policy_version == *policy_version && self.input_sha256 == input_sha256
    }
}

impl<C: Callback, A: AuditSink> HostCalls<C, A> {
    /// Waits for whoever has to agree; for most calls nobody has to. Whether somebody
    /// was asked comes with it: that time is not the function's.
    pub(super) async fn agreed(&self, mut valid: Valid, pending: Pending<'_>) -> Result<(Agreed, bool), Refused> {
        let mut agreement: Option<Agreement> = None;
        let mut version = Arc::clone(&self.policy_version);
        loop {
            let input_sha256 = valid.input_sha256();
            let Some(terms) = valid.ask().map(Arc::clone) else { return Ok((valid.agreed(), agreement.is_some())) };
            let grant = self.policy.current().grant(&self.facts);
            if grant.version == version {
                let covered = agreement.as_ref().is_some_and(|said| said.covers(&terms, &version, &input_sha256));
                if covered {
                    return Ok((valid.agreed(), true));
                }
                // Nobody's time is taken for what could not run after a yes.
                valid.affordable(&self.counts)?;
                let shown = (valid.shared_input(), valid.recorded_input());
                agreement = Some(self.ask(&pending, terms, &input_sha256, shown, &grant).await?);
            }
            // Time has passed, or the policy is another: all of it again.
            let grant = self.policy.current().grant(&self.facts);
            version = Arc::clone(&grant.version);
            valid = self.judged(self.anew(valid, &pending, &grant)).await?;
        }
    }

    /// The same call after a wait for its place: what another policy denies by now, or an
    /// operator revoked, does not run. Its terms stay those that were agreed to.
    pub(super) async fn still_agreed(&self, agreed: Agreed, judged_under: &Arc<Policy>) -> Result<Agreed, Refused> {
        if Arc::ptr_eq(judged_under, &self.policy.current()) {
            return Ok(agreed);
        }
        self.judged(agreed.claimed_again()).await.map(Valid::agreed)
    }

    fn anew(&self, valid: Valid, pending: &Pending<'_>, grant: &Grant) -> Claimed {
        let function = pending.function;
        let operator = if function.configured().is_some() { &grant.functions } else { &grant.callbacks };
        let scopes = self.table.scopes(function).under(operator);
        Claimed::new(Arc::clone(&self.table), pending.index, valid.into_input(), self.call_facts(pending.call)).within(scopes)
    }

    async fn ask(
        &self,
        pending: &Pending<'_>,
        terms: Arc<AskTerms>,
        input_sha256: &str,
        (input, recorded): (Arc<RawValue>, Payload),
        grant: &Grant,
    ) -> Result<Agreement, Refused> {
        let function = pending.function;
        let refused = |code, message: String| Refused { rule: Some(terms.rule.clone()), ..Refused::new(code, message) };
        let id =
            fresh_id("ap_").map_err(|fault| refused(CallCode::ApprovalExpired, format!("nobody could be asked: {}", fault.message)))?;
        let asked = approvals::Asked {
            evaluation: self.evaluation.clone(),
            call: pending.call,
            function: function.full_name.clone(),
            principal: self.principal.clone(),
            input,
            input_sha256: input_sha256.to_owned(),
            recorded,
            terms: Arc::clone(&terms),
            policy_version: Arc::clone(&grant.version),
        };
        let parked = self.approvals.park(id, asked).map_err(|fault| {
            let (code, sentence) = not_parked(function, &fault);
            refused(code, sentence)
        })?;
        // Before anybody is told: who hears of the wait finds the clock standing.
        let still = self.wall.park();
        self.client.parked(&ApprovalNote {
            evaluation: self.evaluation.clone(),
            call: pending.call,
            function: function.full_name.clone(),
            approval: parked.id().to_owned(),
            expires_in_ms: u64::try_from(terms.wait.as_millis()).unwrap_or(u64::MAX),
        });
        let answer = self.answer(function, parked).await;
        drop(still);
        let answer = answer?;
        let why = terms.why.as_deref().map(|why| format!(" ({})", brig_protocol::escape::escaped(why, 300))).unwrap_or_default();
        match answer {
            Answer::Approved => Ok(Agreement { terms, policy_version: Arc::clone(&grant.version), input_sha256: input_sha256.to_owned() }),
            Answer::Denied => {
                Err(refused(CallCode::ApprovalDenied, format!("{}: a person said no{why}; it did not run", function.full_name)))
            }
            Answer::Expired => Err(refused(
                CallCode::ApprovalExpired,
                format!("{}: nobody decided within {} s{why}; it did not run", function.full_name, terms.wait.as_secs()),
            )),
        }
    }

    /// What was said. The function's own time-out does not run while a person thinks; all
    /// else that ends a call ends the wait.
    async fn answer(&self, function: &Function, parked: approvals::Parked) -> Result<Answer, Refused> {
        tokio::select! {
            biased;
            stop = self.stopped(None, function) => Err(too_late(function, stop)),
            answer = parked.answered() => Ok(answer),
        }
    }
}

fn not_parked(function: &Function, fault: &NotParked) -> (CallCode, String) {
    let name = &function.full_name;
    match fault {
        NotParked::Full(full) => {
            let (limit, setting) = (full.limit, full.setting);
            let sentence = format!(
                "{name}: a person has to agree, and {limit} calls wait for that already, which is as many as may ({setting}); it did not run"
            );
            (CallCode::CallLimit, sentence)
        }
        NotParked::Unrecorded(fault) => {
            tracing::error!(%fault, "nobody was asked about a host call because that could not be recorded");
            (CallCode::AuditUnavailable, format!("{name}: a person has to agree, and that can not be recorded now; it did not run"))
        }
    }
}
