//! What would be decided, said so that a person can follow it.
//!
//! Owns putting a decision and its terms into words and figures. Never takes of a budget,
//! and never says anything but what holds for the one principal that is asked about.

use super::Grant;
use super::counters::Counters;
use crate::host::permission::{Charge, Input, Kind, Permit, Question, Refusal, ScopeSet, decide};
use crate::host::schema::payload;
use brig_protocol::client::{BudgetLeft, Decision, Operation, PolicyExplainResult};
use brig_protocol::names;
use serde_json::Value;

/// A function by its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name<'a> {
    /// The collection.
    pub(crate) collection: &'a str,
    /// The function in it.
    pub(crate) function: &'a str,
}

impl<'a> Name<'a> {
    /// Reads `collection.function`.
    ///
    /// # Errors
    /// What a name is.
    pub(crate) fn parse(text: &'a str) -> Result<Self, String> {
        let shown = brig_protocol::escape::escaped(text, 150);
        let right = || format!("{shown:?} is no name of a function; write it as in \"orders.list\"");
        let (collection, function) = text.split_once('.').ok_or_else(right)?;
        names::check_collection(collection)
            .and_then(|()| names::check_function(function))
            .map_err(|fault| format!("{}: {fault}", right()))?;
        Ok(Self { collection, function })
    }
}

/// An input that was read as a call's would be.
#[derive(Clone, Debug)]
pub(crate) struct Read<'a> {
    text: &'a str,
    tree: Value,
}

impl<'a> Read<'a> {
    /// Reads it, and holds every condition to what judging it may take.
    ///
    /// # Errors
    /// A half sentence after "the input".
    pub(crate) fn new(text: &'a str, scopes: &ScopeSet) -> Result<Self, String> {
        let counts = payload::measure(text).map_err(|fault| fault.0)?;
        if !brig_protocol::json::is_object(text) {
            return Err("must be one object".to_owned());
        }
        for condition in scopes.conditions() {
            condition.cost(counts)?;
        }
        Ok(Self { text, tree: payload::tree(text).map_err(|fault| fault.0)? })
    }

    /// As the decision wants it.
    pub(crate) const fn input(&self) -> Input<'_> {
        Input { tree: &self.tree, text: self.text }
    }
}

/// The scopes of one kind.
pub(crate) const fn scopes(grant: &Grant, kind: Kind) -> &ScopeSet {
    match kind {
        Kind::Callbacks => &grant.callbacks,
        Kind::Functions => &grant.functions,
    }
}

/// What would be decided about this call, or about any if there is no input.
pub(crate) fn explained(grant: &Grant, kind: Kind, name: Name<'_>, input: Option<&Read<'_>>, counters: &Counters) -> PolicyExplainResult {
    let question =
        Question { collection: name.collection, function: name.function, operation: Operation::Invoke, input: input.map(Read::input) };
    let decided = decide(scopes(grant, kind), &question);
    let said = |decision, rule: &str| PolicyExplainResult {
        decision,
        rule: rule.to_owned(),
        section: grant.section.to_string(),
        policy: grant.version.to_string(),
        why: None,
        budgets: Vec::new(),
        ask_wait_ms: None,
    };
    match &decided {
        Err(refusal) => PolicyExplainResult { why: why(refusal), ..said(Decision::Deny, &refusal.rule) },
        Ok(permit) => {
            let budgets = permit.charges().iter().map(|charge| left(counters, charge)).collect();
            match permit.ask() {
                None => PolicyExplainResult { budgets, ..said(Decision::Allow, permit.rule()) },
                Some(terms) => PolicyExplainResult {
                    why: terms.why.clone(),
                    budgets,
                    ask_wait_ms: Some(u64::try_from(terms.wait.as_millis()).unwrap_or(u64::MAX)),
                    ..said(Decision::Ask, permit.rule())
                },
            }
        }
    }
}

fn why(refusal: &Refusal) -> Option<String> {
    refusal.uncounted.as_ref().map(|fault| format!("the input {fault}")).or_else(|| refusal.why.clone())
}

fn left(counters: &Counters, charge: &Charge) -> BudgetLeft {
    let left = counters.left(charge);
    let wait = left.free_in.filter(|wait| !wait.is_zero());
    BudgetLeft {
        limit: charge.limit.to_string(),
        left: left.left.to_string(),
        retry_after_ms: wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
    }
}

/// In one word, which way a decision went.
pub(crate) fn word(decided: &Result<Permit, Refusal>) -> &'static str {
    match decided {
        Ok(permit) if permit.ask().is_some() => "ask",
        Ok(_) => "allow",
        Err(refusal) if refusal.uncounted.is_some() => "invalid",
        Err(_) => "deny",
    }
}
