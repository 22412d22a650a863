//! What a yes comes with: what it costs of a budget, and who has to agree.
//!
//! Owns budgets of rules, the charges that they make of a call, and the terms of an
//! approval. Never counts: [`crate::policy::counters`] does. Never asks anybody.

use super::Question;
use crate::policy::amount::{Amount, AmountFault};
use crate::policy::document::Window;
use crate::policy::selector::Selector;
use brig_protocol::escape::escaped;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Whose scope it is: budgets are counted for each holder by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The section of the policy.
    pub(crate) section: Arc<str>,
    /// The user.
    pub(crate) uid: u32,
    /// Which of the section's scopes.
    pub(crate) kind: Kind,
}

/// Which functions a scope is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Those that a client declares.
    #[default]
    Callbacks,
    /// Those that the operator configured.
    Functions,
}

impl Kind {
    /// The key of the section.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Callbacks => "callbacks",
            Self::Functions => "host_function",
        }
    }
}

/// What is counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Measure {
    /// Each call is one.
    Calls,
    /// The number at this place of the input.
    Sum(String),
}

/// One budget of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    /// What is counted.
    pub(crate) measure: Measure,
    /// At most so much.
    pub(crate) max: Amount,
    /// Within this.
    pub(crate) per: Window,
    /// Shared by all budgets of this name; else each function has its own count.
    pub(crate) name: Option<String>,
    /// Hash of the rule's condition: what rules with different ones allow is counted apart.
    pub(crate) condition: Arc<str>,
}

/// What one call takes of one budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Charge {
    /// Whose budget it is.
    pub(crate) uid: u32,
    /// Which count: a JSON array of texts, the same across restarts and reloads.
    pub(crate) key: Arc<str>,
    /// So much.
    pub(crate) amount: Amount,
    /// Of at most so much.
    pub(crate) max: Amount,
    /// Within this.
    pub(crate) per: Window,
    /// For people: `3 calls per hour`, `500 of /amount per day`.
    pub(crate) limit: Arc<str>,
}

/// Who has to agree before a call runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AskTerms {
    /// Any one of them.
    pub(crate) approvers: Vec<Selector>,
    /// The same, as the operator wrote them.
    pub(crate) approver_names: Vec<String>,
    /// How long it waits for a decision.
    pub(crate) wait: Duration,
    /// JSON Pointers to what of the input is shown; nothing here: all of it.
    pub(crate) show: Option<Vec<String>>,
    /// The rule's own sentence.
    pub(crate) why: Option<String>,
    /// Which rule asks, `operator:rules[1]`.
    pub(crate) rule: String,
}

impl Budget {
    /// For people.
    pub(crate) fn limit(&self) -> String {
        let shared = self.name.as_deref().map(|name| format!(" (shared: {name})")).unwrap_or_default();
        let per = self.per.as_str();
        match &self.measure {
            Measure::Calls if self.max == Amount::ONE => format!("1 call per {per}{shared}"),
            Measure::Calls => format!("{} calls per {per}{shared}", self.max),
            Measure::Sum(pointer) => format!("{} of {pointer} per {per}{shared}", self.max),
        }
    }

    /// What this call takes of it. Without an input only calls are counted.
    ///
    /// # Errors
    /// A half sentence after "the input": it can not be counted.
    pub(super) fn charge(&self, holder: &Holder, question: &Question<'_>) -> Result<Option<Charge>, String> {
        let amount = match (&self.measure, question.input) {
            (Measure::Calls, _) => Amount::ONE,
            (Measure::Sum(_), None) => return Ok(None),
            (Measure::Sum(pointer), Some(input)) => number_at(input.text, pointer)?,
        };
        let Holder { section, uid, kind } = holder;
        let counted = match &self.name {
            Some(name) => format!("name:{name}"),
            None => format!("function:{}.{}", question.collection, question.function),
        };
        let measure = match &self.measure {
            Measure::Calls => "calls".to_owned(),
            Measure::Sum(pointer) => format!("sum:{pointer}"),
        };
        let condition = if self.name.is_some() { "" } else { &*self.condition };
        let key = serde_json::json!([kind.key(), &**section, counted, measure, self.per.as_str(), condition]).to_string();
        Ok(Some(Charge { uid: *uid, key: key.into(), amount, max: self.max, per: self.per, limit: self.limit().into() }))
    }
}

/// The number at a place of a JSON text, as it is written there: a float in between
/// would already have rounded it.
fn number_at(text: &str, pointer: &str) -> Result<Amount, String> {
    let shown = escaped(pointer, 100);
    let nothing = || format!("needs a number at {shown}, which a budget counts; there is none");
    let mut here: &str = text;
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        here = step(here.trim_start(), &token).ok_or_else(nothing)?.get();
    }
    Amount::parse(here.trim()).map_err(|fault| match fault {
        AmountFault::NotANumber => format!("needs a number at {shown}, which a budget counts; what is there is none"),
        other => format!("can not be counted: the number at {shown} {other}"),
    })
}

fn step<'t>(text: &'t str, token: &str) -> Option<&'t RawValue> {
    if text.starts_with('{') {
        return serde_json::from_str::<BTreeMap<String, &RawValue>>(text).ok()?.remove(token);
    }
    let index: usize = token.parse().ok().filter(|index: &usize| index.to_string() == token)?;
    serde_json::from_str::<Vec<&RawValue>>(text).ok()?.get(index).copied()
}

/// Whether a text is a JSON Pointer to a member.
pub(super) fn is_pointer(text: &str) -> bool {
    let escapes_are_whole = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    text.len() <= 500 && text.starts_with('/') && escapes_are_whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_taken_from_the_text_and_not_from_a_float() {
        let text = r#"{"a": {"b/c": [1, {"~": 0.1000000000001}]}, "x": 1e2, "big": 9007199254740993 }"#;
        let at = |pointer: &str| number_at(text, pointer).map(|amount| amount.to_string()).unwrap_or_else(|fault| fault);
        assert!(at("/a/b~1c/1/~0").contains("more than 12 decimal places"));
        assert_eq!(at("/a/b~1c/0"), "1");
        assert_eq!(at("/x"), "100");
        assert_eq!(at("/big"), "9007199254740993");
    }

    #[test]
    fn what_is_no_number_is_told_with_its_place() {
        let text = r#"{"a": "5", "b": -1, "c": null, "d": [1], "e": 1e-20}"#;
        for (pointer, part) in [
            ("/a", "what is there is none"),
            ("/b", "is negative"),
            ("/c", "what is there is none"),
            ("/d", "what is there is none"),
            ("/d/01", "there is none"),
            ("/d/1", "there is none"),
            ("/d/-", "there is none"),
            ("/e", "more than 12 decimal places"),
            ("/none", "there is none"),
            ("/b/deeper", "there is none"),
        ] {
            let fault = number_at(text, pointer).err().unwrap_or_default();
            assert!(fault.contains(part) && fault.contains(pointer), "{pointer}: {fault}");
        }
    }

    #[test]
    fn a_pointer_begins_with_a_slash_and_its_escapes_are_whole() {
        for (text, valid) in [("/a", true), ("/a~1b/0", true), ("", false), ("a", false), ("/~", false), ("/~2", false), ("/", true)] {
            assert_eq!(is_pointer(text), valid, "{text:?}");
        }
    }
}
