//! Who may call what: the one decision.
//!
//! Owns scopes, rules, the decision and its terms. Pure: never async, never I/O,
//! never a clock. A [`Permit`] can only be made here.
//!
//! A decision is the AND of layers: what the operator grants, then what the request
//! narrows. Within a layer the last matching rule wins; no match is the layer's
//! default. Looking at the input (`when`) is part of matching.

use super::schema::Schema;
use brig_protocol::client::{Mode, Operation};
use brig_protocol::escape::escaped;
use brig_protocol::names::Pattern;
use serde_json::Value;
use std::sync::Arc;

mod load;

#[cfg(test)]
#[path = "permission_tests.rs"]
mod tests;

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

/// What a rule says. There is no third answer until someone can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Yes.
    Allow,
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
    layers: Vec<(Origin, Scope)>,
}

impl ScopeSet {
    /// The operator's part when there is no configuration: the user that brigd runs
    /// as may call everything that a client declares, and nobody else anything.
    pub(crate) fn unconfigured(uid: u32, own_uid: u32) -> Self {
        let verdict = if uid == own_uid { Verdict::Allow } else { Verdict::Deny };
        Self { layers: vec![(Origin::Operator, Scope::All(verdict))] }
    }

    /// With one more layer, which can only narrow.
    #[must_use]
    pub(crate) fn and(mut self, origin: Origin, scope: Scope) -> Self {
        self.layers.push((origin, scope));
        self
    }

    /// Whether any rule looks at inputs, so that one must be read before a decision.
    pub(crate) fn looks_at_input(&self) -> bool {
        self.conditions().next().is_some()
    }

    /// The schemas that rules look at inputs with.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = &Arc<Schema>> {
        let rules = self.layers.iter().flat_map(|(_, scope)| match scope {
            Scope::All(_) => &[][..],
            Scope::Rules { rules, .. } => rules.as_slice(),
        });
        rules.filter_map(|rule| rule.when.as_ref())
    }
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
    pub(crate) input: Option<&'a Value>,
}

/// A yes, with its terms. Nothing else makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Permit {
    rule: String,
}

impl Permit {
    /// Which rules said yes, for the audit record: `operator:default, request:rules[1]`.
    pub(crate) fn rule(&self) -> &str {
        &self.rule
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
}

impl Refusal {
    /// What the guest is told: what it needs, and nothing about any other function.
    pub(crate) fn sentence(&self, function: &str) -> String {
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
    let nobody = Refusal { origin: Origin::Operator, rule: "no scope".to_owned(), why: None };
    if scopes.layers.is_empty() {
        return Err(nobody);
    }
    let mut said = Vec::with_capacity(scopes.layers.len());
    for (origin, scope) in &scopes.layers {
        let (verdict, place, why) = ask(scope, question);
        let rule = format!("{}:{place}", origin.as_str());
        match verdict {
            Verdict::Allow => said.push(rule),
            Verdict::Deny => return Err(Refusal { origin: *origin, rule, why: why.map(str::to_owned) }),
        }
    }
    Ok(Permit { rule: said.join(", ") })
}

/// What one layer says, by which place of it.
fn ask<'s>(scope: &'s Scope, question: &Question<'_>) -> (Verdict, String, Option<&'s str>) {
    let (default, rules) = match scope {
        Scope::All(verdict) => return (*verdict, "all".to_owned(), None),
        Scope::Rules { default, rules } => (*default, rules),
    };
    for (index, rule) in rules.iter().enumerate().rev() {
        if rule.is_about(question) && rule.input_matches(question) {
            return (rule.verdict, format!("rules[{index}]"), rule.why.as_deref());
        }
    }
    (default, "default".to_owned(), None)
}

impl Rule {
    fn is_about(&self, question: &Question<'_>) -> bool {
        self.operations.contains(&question.operation)
            && self.patterns.iter().any(|pattern| pattern.matches(question.collection, question.function))
    }

    /// Without an input the question is whether any call could be allowed: then a rule
    /// that looks at inputs matches when it allows, and is passed over when it denies.
    /// An input that can not be judged matches what denies and nothing that allows.
    fn input_matches(&self, question: &Question<'_>) -> bool {
        match (&self.when, question.input) {
            (None, _) => true,
            (Some(when), Some(input)) => when.holds(input).unwrap_or(self.verdict == Verdict::Deny),
            (Some(_), None) => self.verdict == Verdict::Allow,
        }
    }
}

impl Verdict {
    /// The verdict of a mode, unless someone would have to be asked.
    pub(crate) const fn of(mode: Mode) -> Option<Self> {
        match mode {
            Mode::Allow => Some(Self::Allow),
            Mode::Deny => Some(Self::Deny),
            Mode::Ask => None,
        }
    }
}
