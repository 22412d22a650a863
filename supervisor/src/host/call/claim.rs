//! The states of one host call before it runs.
//!
//! Owns the order: what a worker claimed is permitted, then valid, then agreed to, then charged to its
//! budgets, then recorded; each state can only be made from the one before, and only a
//! recorded call can be begun and delivered. Never talks to a client.

use super::Audience;
use crate::audit::{AuditSink, Call, Event, Payload};
use crate::host::configured::{CallFacts, Prepared};
use crate::host::permission::{self, AskTerms, Input, Permit, Question, Refusal, ScopeSet};
use crate::host::schema::{Cost, Schema, payload};
use crate::host::table::{Function, FunctionTable, Granted};
use crate::policy::counters::{EvaluationCounts, Short, Taken};
use brig_protocol::client::Operation;
use brig_protocol::codes::CallCode;
use brig_protocol::json::{self, Counts};
use brig_protocol::limits;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;

/// What a worker says it wants. Nothing about it is believed.
#[derive(Debug)]
pub(crate) struct Claimed {
    table: Arc<FunctionTable>,
    function: u32,
    input: Box<RawValue>,
    /// Other scopes than those of the table: of a policy that came after it.
    scopes: Option<ScopeSet>,
    facts: CallFacts,
    /// What another policy says by now, if there is another than at the begin.
    changed: Option<Granted>,
}

/// A claim that policy allows.
#[derive(Debug)]
pub(crate) struct Permitted {
    claimed: Claimed,
    permit: Permit,
    tree: Option<Value>,
}

/// A permitted call whose input fits its schema.
#[derive(Debug)]
pub(crate) struct Valid {
    claimed: Claimed,
    permit: Permit,
    /// For the record.
    input: Payload,
    prepared: Option<Prepared>,
}

/// A valid call to which everybody has agreed who has to.
#[derive(Debug)]
pub(crate) struct Agreed {
    valid: Valid,
}

/// A valid call that has what it takes of its budgets. Dropped before it begins, it
/// gives all of it back.
#[derive(Debug)]
pub(super) struct Charged {
    valid: Valid,
    taken: Taken,
}

/// A valid call that is paid for and on record: it may run.
#[derive(Debug)]
pub(super) struct Recorded {
    claimed: Claimed,
    input_sha256: String,
    taken: Taken,
    prepared: Option<Prepared>,
}

/// A call that is given to whoever runs it. Its effect can not be undone.
#[derive(Debug)]
pub(super) struct Begun {
    claimed: Claimed,
    prepared: Option<Prepared>,
}

/// Why a call does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// Which refusal.
    pub(crate) code: CallCode,
    /// For the guest.
    pub(crate) message: String,
    /// Which rule said no, for the record.
    pub(crate) rule: Option<String>,
    /// When it is worth trying again.
    pub(crate) retry_after_ms: Option<u64>,
}

impl Refused {
    pub(super) fn new(code: CallCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), rule: None, retry_after_ms: None }
    }
}

impl Claimed {
    pub(super) fn new(table: Arc<FunctionTable>, function: u32, input: Box<RawValue>, facts: CallFacts) -> Self {
        let changed = table.changed();
        Self { table, function, input, scopes: None, facts, changed }
    }

    /// To be decided within these scopes.
    pub(super) fn within(self, scopes: ScopeSet) -> Self {
        Self { scopes: Some(scopes), ..self }
    }

    /// Whose terms hold: the policy's of the begin, or of one that came while a person thought.
    fn terms<'c>(&'c self, function: &'c Function) -> &'c ScopeSet {
        self.scopes.as_ref().unwrap_or_else(|| self.table.scopes(function))
    }

    pub(super) fn function(&self) -> Result<&Function, Refused> {
        self.table.get(self.function).ok_or_else(|| {
            let message = format!("there is no host function with index {} (this evaluation has {})", self.function, self.table.len());
            Refused::new(CallCode::UnknownFunction, message)
        })
    }

    pub(super) fn input_length(&self) -> usize {
        self.input.get().len()
    }

    /// What judging this claim takes; nothing when its input is out of bounds, which
    /// judging then says.
    pub(super) fn cost(&self) -> Option<Cost> {
        let counts = payload::measure(self.input.get()).ok()?;
        let function = self.function().ok()?;
        let schemas = function.input.iter().chain(self.conditions(function));
        schemas.map(|schema| schema.cost(counts).ok()).try_fold(Cost::NONE, |sum, cost| Some(sum.and(cost?)))
    }

    /// What judging may take when the input is too long to be measured first.
    pub(super) fn worst_cost(&self) -> Cost {
        let function = self.function().ok();
        let schemas = function.into_iter().flat_map(|function| function.input.iter().chain(self.conditions(function)));
        schemas.fold(Cost::LONG, |sum, schema| sum.and(schema.worst_cost()))
    }

    /// Whom a call has to be allowed by: policy as it was at the begin, and as it is now.
    fn scopes<'c>(&'c self, function: &'c Function) -> impl Iterator<Item = &'c ScopeSet> {
        std::iter::once(self.terms(function)).chain(self.changed.iter().map(|granted| granted.scopes(function)))
    }

    /// The schemas that rules look at its input with.
    fn conditions<'c>(&'c self, function: &'c Function) -> impl Iterator<Item = &'c Arc<Schema>> {
        self.scopes(function).flat_map(ScopeSet::conditions)
    }

    /// Both judgements, one after the other. Takes time: see [`Claimed::cost`].
    pub(super) fn judged(self, audience: &Audience) -> Result<Valid, Refused> {
        self.permitted()?.valid(audience)
    }

    /// Asks policy. Rules that look at the input need it to be readable.
    fn permitted(self) -> Result<Permitted, Refused> {
        let function = self.function()?;
        let mut tree = None;
        if self.scopes(function).any(ScopeSet::looks_at_input) {
            let counts = self.within_bounds(function)?;
            for condition in self.conditions(function) {
                condition.cost(counts).map_err(|fault| invalid_input(function, &fault))?;
            }
            tree = Some(self.readable(function)?);
        }
        let question = Question {
            collection: &function.collection_name,
            function: &function.name,
            operation: Operation::Invoke,
            input: tree.as_ref().map(|tree| Input { tree, text: self.input.get() }),
        };
        let refused = |refusal: Refusal| Refused {
            code: refusal.code(),
            message: refusal.sentence(&function.full_name),
            rule: Some(refusal.rule),
            retry_after_ms: None,
        };
        let permit = permission::decide(self.terms(function), &question).map_err(refused)?;
        // The terms are those of the begin, or of the end of a wait; what is denied by now is denied at once.
        if let Some(changed) = &self.changed {
            permission::decide(changed.scopes(function), &question).map_err(refused)?;
        }
        Ok(Permitted { claimed: self, permit, tree })
    }

    fn within_bounds(&self, function: &Function) -> Result<Counts, Refused> {
        let text = self.input.get();
        let limit = self.table.input_bytes();
        if u64::try_from(text.len()).unwrap_or(u64::MAX) > limit {
            let setting = limits::row("inputBytes").map_or("", |row| row.setting);
            let fault = format!("has {} bytes; the limit inputBytes is {limit} (raised by {setting})", text.len());
            return Err(invalid_input(function, &fault));
        }
        let counts = payload::measure(text).map_err(|fault| invalid_input(function, &fault.0))?;
        if json::is_object(text) { Ok(counts) } else { Err(invalid_input(function, &not_an_object(text))) }
    }

    fn readable(&self, function: &Function) -> Result<Value, Refused> {
        payload::tree(self.input.get()).map_err(|fault| invalid_input(function, &fault.0))
    }
}

impl Permitted {
    fn valid(self, audience: &Audience) -> Result<Valid, Refused> {
        let Self { claimed, permit, tree } = self;
        let function = claimed.function()?;
        let counts = claimed.within_bounds(function)?;
        let mut prepared = None;
        if let Some(schema) = &function.input {
            schema.cost(counts).map_err(|fault| invalid_input(function, &fault))?;
            let tree = match tree {
                Some(tree) => tree,
                None => claimed.readable(function)?,
            };
            if !schema.is_valid(&tree) {
                return Err(invalid_input(function, &schema.explain(&tree, false)));
            }
            if let Some(configured) = function.configured() {
                let made = configured.prepared(&tree, &claimed.facts);
                prepared = Some(made.map_err(|fault| invalid_input(function, &fault))?);
            }
        }
        if permit.ask().is_some() {
            // A person must not be shown another input than the function gets, as of a key
            // that is there twice: only what has one tree is asked about.
            claimed.readable(function)?;
        }
        let input = function.recorded(claimed.input.get(), &|| audience.still());
        let input = input.map_err(|_| Refused::new(CallCode::Cancelled, format!("{}: nobody awaits it any more", function.full_name)))?;
        Ok(Valid { claimed, permit, input, prepared })
    }
}

impl Valid {
    /// Who has to agree, if anybody has.
    pub(super) const fn ask(&self) -> Option<&Arc<AskTerms>> {
        self.permit.ask()
    }

    /// Refuses a call that would find its budgets used up: nobody is asked about it.
    ///
    /// # Errors
    /// `budget_exhausted`, as the charge itself would say.
    pub(super) fn affordable(&self, counts: &EvaluationCounts) -> Result<(), Refused> {
        counts.could_take(self.permit.charges()).or_else(|short| Err(self.short(&short)?))
    }

    fn short(&self, short: &Short) -> Result<Refused, Refused> {
        Ok(Refused {
            code: CallCode::BudgetExhausted,
            message: short.sentence(&self.claimed.function()?.full_name),
            rule: Some(self.permit.rule().to_owned()),
            retry_after_ms: short.retry_after_ms(),
        })
    }

    /// SHA-256 of the input's text.
    pub(super) fn input_sha256(&self) -> String {
        self.input.sha256()
    }

    /// The input, to be shown to somebody while it waits here.
    pub(super) fn shared_input(&self) -> Arc<RawValue> {
        Arc::from(RawValue::to_owned(&self.claimed.input))
    }

    /// What the record holds of the input.
    pub(super) fn recorded_input(&self) -> Payload {
        self.input.clone()
    }

    /// The input, to be claimed anew.
    pub(super) fn into_input(self) -> Box<RawValue> {
        self.claimed.input
    }

    /// Everybody has agreed who has to: [`super::agree`] says so, and nothing else.
    pub(super) const fn agreed(self) -> Agreed {
        Agreed { valid: self }
    }
}

impl Agreed {
    /// The same claim, to be judged within the same scopes and the policy that holds by now.
    pub(super) fn claimed_again(self) -> Claimed {
        let Claimed { table, function, input, scopes, facts, .. } = self.valid.claimed;
        Claimed { scopes, ..Claimed::new(table, function, input, facts) }
    }

    /// Whether [`Agreed::charged`] waits for a disk.
    pub(super) fn waits(&self, counts: &EvaluationCounts) -> bool {
        counts.waits(self.valid.permit.charges())
    }

    /// Takes what the permit says of budgets, all of it or nothing.
    pub(super) fn charged(self, counts: &Arc<EvaluationCounts>) -> Result<Charged, Refused> {
        match counts.take(self.valid.permit.charges()) {
            Ok(taken) => Ok(Charged { valid: self.valid, taken }),
            Err(short) => Err(self.valid.short(&short)?),
        }
    }
}

impl Charged {
    /// Writes the record that must be there before the function runs.
    pub(super) async fn recorded(self, sink: &impl AuditSink, evaluation: &str, call: u64, uid: u32) -> Result<Recorded, Refused> {
        let Self { valid, taken } = self;
        let function = valid.claimed.function()?;
        let of = Call { evaluation, call, function: &function.full_name, uid };
        let event = Event::CallPermitted { of, rule: valid.permit.rule(), effect: function.effect, input: &valid.input };
        let settled = match sink.write(&event) {
            Ok(written) => sink.settled(written).await,
            Err(fault) => Err(fault),
        };
        settled.map_err(|fault| {
            tracing::error!(evaluation, call, error = %fault, "a host call was refused because it could not be recorded");
            Refused::new(CallCode::AuditUnavailable, format!("{}: the call can not be recorded now, so it did not run", function.full_name))
        })?;
        let input_sha256 = valid.input.sha256();
        Ok(Recorded { claimed: valid.claimed, input_sha256, taken, prepared: valid.prepared })
    }
}

impl Recorded {
    /// The input as the guest's own text.
    pub(super) fn input(&self) -> &RawValue {
        &self.claimed.input
    }

    /// SHA-256 of that text, in hexadecimal.
    pub(super) fn input_sha256(&self) -> &str {
        &self.input_sha256
    }

    /// The function is about to be called: what was taken of budgets stays taken.
    pub(super) fn begun(self) -> Begun {
        self.taken.spent();
        Begun { claimed: self.claimed, prepared: self.prepared }
    }
}

impl Begun {
    /// The input as the guest's own text.
    pub(super) fn input(&self) -> &RawValue {
        &self.claimed.input
    }

    /// What a configured function runs for it; taken once.
    pub(super) const fn prepared(&mut self) -> Option<Prepared> {
        self.prepared.take()
    }
}

/// Checks an output against the schema of its function: a half sentence when it does
/// not fit. Values are not shown: an output that does not fit is not for the guest.
pub(super) fn output_fault(schema: Option<&Schema>, text: &str) -> Option<String> {
    let counts = match payload::measure(text) {
        Ok(counts) => counts,
        Err(fault) => return Some(fault.0),
    };
    let schema = schema?;
    if let Err(fault) = schema.cost(counts) {
        return Some(fault);
    }
    match payload::tree(text) {
        Ok(tree) if schema.is_valid(&tree) => None,
        Ok(tree) => Some(schema.explain(&tree, true)),
        Err(fault) => Some(fault.0),
    }
}

/// What checking an output takes; see [`Claimed::cost`].
pub(super) fn output_cost(schema: Option<&Schema>, text: &str) -> Cost {
    if text.len() > super::judges::INLINE_BYTES {
        return schema.map_or(Cost::LONG, |schema| Cost::LONG.and(schema.worst_cost()));
    }
    let counted = payload::measure(text).ok();
    counted.zip(schema).and_then(|(counts, schema)| schema.cost(counts).ok()).unwrap_or(Cost::NONE)
}

fn invalid_input(function: &Function, fault: &str) -> Refused {
    Refused::new(CallCode::InvalidInput, format!("{}: the input {fault}", function.full_name))
}

fn not_an_object(text: &str) -> String {
    let kind = match text.trim_start().chars().next() {
        Some('[') => "an array",
        Some('"') => "a string",
        Some('t' | 'f') => "a boolean",
        Some('n') => "null",
        _ => "a number",
    };
    format!("must be one object, as in f({{name: value}}); {kind} was given")
}
