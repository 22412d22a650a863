//! Who may call what: the one decision.
//!
//! Owns scopes, rules, the decision and its terms. Pure: never async, never I/O,
//! never a clock. A [`Permit`] can only be made here.
//!
//! A decision is the AND of layers: what the operator grants, then what the request
//! narrows. Within a layer the last matching rule wins; no match is the layer's
//! default. Looking at the input (`when`) is part of matching. A yes has terms: what it
//! takes of budgets, and whether someone has to agree. Both are carried, not acted on.

use super::schema::Schema;
use crate::policy::amount::Amount;
use crate::policy::document::Window;
use brig_protocol::client::{Mode, Operation};
use brig_protocol::codes::CallCode;
use brig_protocol::escape::escaped;
use brig_protocol::names::Pattern;
use serde_json::Value;
use std::sync::Arc;

pub(crate) mod condition;
mod load;
mod operator;
mod terms;

pub(crate) use operator::{Known, Loader};
pub(crate) use terms::{AskTerms, Budget, Charge, Holder, Kind, Measure};

#[cfg(test)]
#[path = "permission_tests.rs"]
pub(crate) mod tests;

/// What one layer says, ready to be asked.
#[derive(Clone, Debug)]
pub(crate) enum Scope {
    /// The same to every function.
    All(Verdict),
    /// Rules; the last that matches wins.
    Rules {
        /// When none matches.
        default: Verdict,
        /// In the order written.
        rules: Vec<Rule>,
    },
}

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Yes.
    Allow,
    /// Yes, if a person agrees. Only rules of the operator say so.
    Ask,
    /// No.
    Deny,
}

/// One rule.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// What it says.
    verdict: Verdict,
    /// About which operations.
    operations: Vec<Operation>,
    /// About which functions.
    patterns: Vec<Pattern>,
    /// Matches only where the input is valid.
    when: Option<Arc<Schema>>,
    /// What a call takes.
    budgets: Vec<Budget>,
    /// Who has to agree, where the verdict is to ask.
    ask: Option<Arc<AskTerms>>,
    /// Shown in refusals.
    why: Option<String>,
}

/// Where a layer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The operator's policy for the principal.
    Operator,
    /// The `permissions` of the request.
    Request,
}

impl Origin {
    /// For records: who said so.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Request => "request",
        }
    }
}

/// All layers; each must agree. No layer at all allows nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScopeSet {
    holder: Holder,
    layers: Vec<(Origin, Arc<Scope>)>,
    /// What each call takes of the section's calls a minute.
    quota: Option<Charge>,
}

impl ScopeSet {
    /// The operator's part when there is no configuration: the user that brigd runs
    /// as may call everything that a client declares, and nobody else anything.
    pub(crate) fn unconfigured(uid: u32, own_uid: u32) -> Self {
        let verdict = if uid == own_uid { Verdict::Allow } else { Verdict::Deny };
        Self::of(Holder { uid, ..Holder::default() }, Arc::new(Scope::All(verdict)))
    }

    /// What the operator's policy says for this holder.
    pub(crate) fn of(holder: Holder, scope: Arc<Scope>) -> Self {
        Self { holder, layers: vec![(Origin::Operator, scope)], quota: None }
    }

    /// With so many calls in any minute, whatever is called.
    #[must_use]
    pub(crate) fn at_most(mut self, calls_per_minute: Option<u64>) -> Self {
        let (uid, section) = (self.holder.uid, &self.holder.section);
        self.quota = calls_per_minute.map(|most| Charge {
            uid,
            key: serde_json::json!(["calls_per_minute", &**section]).to_string().into(),
            amount: Amount::ONE,
            max: Amount::whole(most).unwrap_or(Amount::ONE),
            per: Window::Minute,
            limit: format!("{most} calls per minute (quotas.calls_per_minute)").into(),
        });
        self
    }

    /// With one more layer, which can only narrow.
    #[must_use]
    pub(crate) fn and(mut self, origin: Origin, scope: Scope) -> Self {
        self.layers.push((origin, Arc::new(scope)));
        self
    }

    /// The same with another word of the operator's: a policy that holds by now.
    pub(crate) fn under(&self, operator: &Self) -> Self {
        let narrowed = self.layers.iter().filter(|(origin, _)| *origin != Origin::Operator).cloned();
        Self {
            holder: operator.holder.clone(),
            layers: operator.layers.iter().cloned().chain(narrowed).collect(),
            quota: operator.quota.clone(),
        }
    }

    /// Whether any rule looks at inputs, so that one must be read before a decision.
    pub(crate) fn looks_at_input(&self) -> bool {
        let adds_up = |rule: &Rule| rule.budgets.iter().any(|budget| budget.measure != Measure::Calls);
        self.conditions().next().is_some() || self.rules().any(adds_up)
    }

    /// The schemas that rules look at inputs with.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = &Arc<Schema>> {
        self.rules().filter_map(|rule| rule.when.as_ref())
    }

    fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.layers.iter().flat_map(|(_, scope)| scope.rules())
    }
}

impl Scope {
    /// Whether any rule needs a person.
    pub(crate) fn asks(&self) -> bool {
        self.rules().iter().any(|rule| rule.verdict == Verdict::Ask)
    }

    /// Whether what it counts has to outlive brigd: a restart would give a budget of an hour
    /// or a day back.
    pub(crate) fn counts_long(&self) -> bool {
        let long = |budget: &Budget| matches!(budget.per, Window::Hour | Window::Day);
        self.rules().iter().flat_map(|rule| &rule.budgets).any(long)
    }

    /// Its rules, in the order written.
    pub(crate) fn rules(&self) -> &[Rule] {
        match self {
            Self::All(_) => &[],
            Self::Rules { rules, .. } => rules,
        }
    }
}

/// The input of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a> {
    /// To be looked at.
    pub(crate) tree: &'a Value,
    /// The text that it is the tree of: numbers are counted as they are written.
    pub(crate) text: &'a str,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    /// Name of the collection.
    pub(crate) collection: &'a str,
    /// Name of the function.
    pub(crate) function: &'a str,
    /// What is done with it.
    pub(crate) operation: Operation,
    /// The input of an invocation. Absent: a rule with `when` could match.
    pub(crate) input: Option<Input<'a>>,
}

/// A yes, with its terms. Nothing else makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Permit {
    rule: String,
    charges: Vec<Charge>,
    ask: Option<Arc<AskTerms>>,
}

impl Permit {
    /// Which rules said yes, for the audit record: `operator:default, request:rules[1]`.
    pub(crate) fn rule(&self) -> &str {
        &self.rule
    }

    /// What the call takes of budgets: all of it, or it does not run.
    pub(crate) fn charges(&self) -> &[Charge] {
        &self.charges
    }

    /// Who has to agree first.
    pub(crate) const fn ask(&self) -> Option<&Arc<AskTerms>> {
        self.ask.as_ref()
    }
}

/// A no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Whose no it is.
    pub(crate) origin: Origin,
    /// Which rule, for the audit record and never for the guest.
    pub(crate) rule: String,
    /// The rule's own sentence for whoever is refused.
    pub(crate) why: Option<String>,
    /// A half sentence after "the input", when a budget could not count it.
    pub(crate) uncounted: Option<String>,
}

impl Refusal {
    /// Which refusal it is.
    pub(crate) const fn code(&self) -> CallCode {
        if self.uncounted.is_some() { CallCode::InvalidInput } else { CallCode::PermissionDenied }
    }

    /// What the guest is told: what it needs, and nothing about any other function.
    pub(crate) fn sentence(&self, function: &str) -> String {
        if let Some(fault) = &self.uncounted {
            return format!("{function}: the input {fault}");
        }
        let whose = match self.origin {
            Origin::Operator => "the operator's policy does not allow this call",
            Origin::Request => "the permissions of this evaluation do not allow this call",
        };
        let why = self.why.as_deref().map(|why| format!(": {}", escaped(why, 300))).unwrap_or_default();
        format!("permission denied for {function}: {whose}{why}")
    }
}

/// Decides. Every layer must say yes; the first that says no is the refusal.
///
/// # Errors
/// [`Refusal`] with whose no it is.
pub(crate) fn decide(scopes: &ScopeSet, question: &Question<'_>) -> Result<Permit, Refusal> {
    if scopes.layers.is_empty() {
        return Err(Refusal { origin: Origin::Operator, rule: "no scope".to_owned(), why: None, uncounted: None });
    }
    let mut said = Vec::with_capacity(scopes.layers.len());
    let mut permit = Permit { rule: String::new(), charges: Vec::new(), ask: None };
    for (origin, scope) in &scopes.layers {
        let found = scope.found(question);
        let rule = format!("{}:{}", origin.as_str(), found.place());
        let refusal =
            |why: Option<&str>, uncounted| Refusal { origin: *origin, rule: rule.clone(), why: why.map(str::to_owned), uncounted };
        if found.verdict == Verdict::Deny {
            return Err(refusal(found.rule.and_then(|rule| rule.why.as_deref()), None));
        }
        if let Some(matched) = found.rule
            && question.operation == Operation::Invoke
        {
            for budget in &matched.budgets {
                let charge = budget.charge(&scopes.holder, question).map_err(|fault| refusal(None, Some(fault)))?;
                permit.charges.extend(charge);
            }
            permit.ask = permit.ask.or_else(|| matched.ask.clone());
        }
        said.push(rule);
    }
    if question.operation == Operation::Invoke {
        permit.charges.extend(scopes.quota.clone());
    }
    Ok(Permit { rule: said.join(", "), ..permit })
}

/// What one layer says, and which rule of it.
struct Found<'s> {
    verdict: Verdict,
    rule: Option<&'s Rule>,
    index: Option<usize>,
}

impl Found<'_> {
    fn place(&self) -> String {
        match (self.index, self.rule) {
            (Some(index), Some(_)) => format!("rules[{index}]"),
            (Some(_), None) => "default".to_owned(),
            (None, _) => "all".to_owned(),
        }
    }
}

impl Scope {
    fn found(&self, question: &Question<'_>) -> Found<'_> {
        let (default, rules) = match self {
            Self::All(verdict) => return Found { verdict: *verdict, rule: None, index: None },
            Self::Rules { default, rules } => (*default, rules),
        };
        for (index, rule) in rules.iter().enumerate().rev().filter(|(_, rule)| rule.is_about(question)) {
            match rule.input_matches(question) {
                Some(false) => {}
                Some(true) => return Found { verdict: rule.verdict, rule: Some(rule), index: Some(index) },
                // Passed over, an earlier rule could say yes where this one asks or limits.
                None => return Found { verdict: Verdict::Deny, rule: Some(rule), index: Some(index) },
            }
        }
        Found { verdict: default, rule: None, index: Some(rules.len()) }
    }
}

impl Rule {
    fn is_about(&self, question: &Question<'_>) -> bool {
        self.operations.contains(&question.operation)
            && self.patterns.iter().any(|pattern| pattern.matches(question.collection, question.function))
    }

    /// Without an input the question is whether any call could be allowed: then a rule
    /// that looks at inputs matches when it allows, and is passed over when it denies.
    /// Nothing: the input can not be judged.
    fn input_matches(&self, question: &Question<'_>) -> Option<bool> {
        match (&self.when, question.input) {
            (None, _) => Some(true),
            (Some(when), Some(input)) => when.holds(input.tree),
            (Some(_), None) => Some(self.verdict != Verdict::Deny),
        }
    }
}

impl Verdict {
    /// The verdict of a mode of a request, which has nobody to ask.
    pub(crate) const fn of(mode: Mode) -> Option<Self> {
        match mode {
            Mode::Allow => Some(Self::Allow),
            Mode::Deny => Some(Self::Deny),
            Mode::Ask => None,
        }
    }
}
