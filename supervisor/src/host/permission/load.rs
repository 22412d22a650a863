//! Reading the scope of a request, strictly.
//!
//! Owns every complaint about a scope: an empty list, a pattern that can match
//! nothing declared, a mode that needs someone to ask. A scope that loads means what
//! it says. Never decides.

use super::{Rule, Scope, Verdict};
use crate::host::schema::Schema;
use crate::host::schema::phrase::{names, nearest, quoted};
use brig_protocol::client;
use brig_protocol::codes::RequestCode;
use brig_protocol::names::{NameFault, Pattern, kebab};
use brig_protocol::rpc::ErrorData;
use std::collections::HashMap;
use std::sync::Arc;

/// Most rules in one scope, and most patterns in one rule.
pub(super) const RULES: usize = 1024;
/// Longest `why`, in bytes.
pub(super) const WHY_BYTES: usize = 500;

impl Scope {
    /// Reads a scope of a request. `declared` are the functions that its patterns can
    /// be about; `conditions` has the compiled schema of each `when`, by its text.
    ///
    /// # Errors
    /// `invalid_permissions` with the place and what to write instead; `unsupported`
    /// for `ask`.
    pub(crate) fn load(
        scope: &client::Scope<'_>,
        declared: &[(&str, &str)],
        conditions: &HashMap<&str, Arc<Schema>>,
    ) -> Result<Self, ErrorData> {
        let rules = match scope {
            client::Scope::All(mode) => {
                return Verdict::of(*mode).map(Scope::All).ok_or_else(|| nobody_to_ask("permissions.hostFunction"));
            }
            client::Scope::Rules(rules) => rules,
        };
        let default = Verdict::of(rules.default).ok_or_else(|| nobody_to_ask("permissions.hostFunction.default"))?;
        if rules.rules.is_empty() {
            return Err(invalid("permissions.hostFunction.rules is empty; leave the rules out and write \"allow\" or \"deny\""));
        }
        if rules.rules.len() > RULES {
            return Err(invalid(format!("permissions.hostFunction.rules has {} rules; at most {RULES} are taken", rules.rules.len())));
        }
        let load = |(index, rule)| load_rule(index, rule, declared, conditions);
        Ok(Scope::Rules { default, rules: rules.rules.iter().enumerate().map(load).collect::<Result<_, _>>()? })
    }
}

fn load_rule(
    index: usize,
    rule: &client::Rule<'_>,
    declared: &[(&str, &str)],
    conditions: &HashMap<&str, Arc<Schema>>,
) -> Result<Rule, ErrorData> {
    let place = format!("permissions.hostFunction.rules[{index}]");
    let verdict = Verdict::of(rule.mode).ok_or_else(|| nobody_to_ask(&format!("{place}.mode")))?;
    if rule.operations.is_empty() {
        return Err(invalid(format!("{place}.operations is empty; name \"invoke\" or \"list\", or leave it out for both")));
    }
    if rule.patterns.is_empty() || rule.patterns.len() > RULES {
        return Err(invalid(format!(
            "{place}.patterns has {} patterns; write 1 to {RULES}, \"**\" is every function",
            rule.patterns.len()
        )));
    }
    if rule.why.as_ref().is_some_and(|why| why.len() > WHY_BYTES) {
        return Err(invalid(format!("{place}.why is over {WHY_BYTES} bytes")));
    }
    let read = |(number, text): (usize, &String)| {
        complete(text, declared).map_err(|fault| invalid(format!("{place}.patterns[{number}]: {fault}")))
    };
    let patterns = rule.patterns.iter().enumerate().map(read).collect::<Result<_, _>>()?;
    let when = match rule.when {
        None => None,
        Some(raw) => Some(Arc::clone(conditions.get(raw.get()).ok_or_else(|| invalid(format!("{place}.when could not be compiled")))?)),
    };
    Ok(Rule { verdict, operations: rule.operations.clone(), patterns, when, budgets: Vec::new(), ask: None, why: rule.why.clone() })
}

fn complete(text: &str, declared: &[(&str, &str)]) -> Result<Pattern, String> {
    pattern(text, Some(declared), "declared").map_err(|wrong| format!("{} {wrong}", quoted(text)))
}

/// Reads one pattern and finds something known that it matches; `word` is what a known
/// function is: declared, or configured. Without any known the pattern is only read.
///
/// # Errors
/// A half sentence after the pattern.
pub(super) fn pattern(text: &str, known: Option<&[(&str, &str)]>, word: &str) -> Result<Pattern, String> {
    let functions = known.unwrap_or_default();
    let read = Pattern::parse(text).map_err(|fault| match fault {
        NameFault::NeverMatches { .. } => {
            format!("can never match a function; did you mean {}?", instead(text, functions, &fault))
        }
        other => format!("is no pattern: {other}"),
    })?;
    let names_something = text.contains(|character: char| character.is_ascii_alphanumeric());
    if known.is_none() || !names_something || functions.iter().any(|(collection, function)| read.matches(collection, function)) {
        return Ok(read);
    }
    let spellings = spellings(text, functions);
    Err(match nearest(text, spellings.iter().map(String::as_str)) {
        Some(near) => format!("matches no {word} function; did you mean {}?", quoted(near)),
        None if functions.is_empty() => format!("matches nothing: no function is {word}"),
        None => {
            let all: Vec<String> = functions.iter().map(|(collection, function)| format!("{collection}.{function}")).collect();
            format!("matches no {word} function; {word} are {}", names(all.iter().map(String::as_str)))
        }
    })
}

/// What a pattern that can never match was most likely meant to be.
fn instead(text: &str, declared: &[(&str, &str)], fault: &NameFault) -> String {
    let known = spellings(text, declared);
    // A function named without its collection.
    let by_function =
        declared.iter().find(|(_, function)| *function == text).map(|(collection, function)| format!("{collection}.{function}"));
    let near = by_function.or_else(|| nearest(text, known.iter().map(String::as_str)).map(str::to_owned));
    match (near, fault) {
        (Some(near), _) => quoted(&near),
        (None, NameFault::NeverMatches { suggestion }) => quoted(suggestion),
        (None, _) => quoted("**"),
    }
}

/// Everything near which a pattern may have been meant, in the spelling it used.
fn spellings(text: &str, declared: &[(&str, &str)]) -> Vec<String> {
    let command = text.contains(':');
    let spell = |collection: &str, function: &str| match command {
        true => format!("{}:{}", kebab(collection), if function == "*" { "*".to_owned() } else { kebab(function) }),
        false => format!("{collection}.{function}"),
    };
    let mut all: Vec<String> = Vec::new();
    for (collection, function) in declared {
        all.push(spell(collection, function));
        let whole = spell(collection, "*");
        if all.last() != Some(&whole) && !all.contains(&whole) {
            all.push(whole);
        }
    }
    all
}

fn invalid(message: impl Into<String>) -> ErrorData {
    ErrorData::new(RequestCode::InvalidPermissions, message)
}

/// `ask` never quietly becomes yes or no.
fn nobody_to_ask(place: &str) -> ErrorData {
    let mut error = ErrorData::new(
        RequestCode::Unsupported,
        format!("{place} is \"ask\", but nobody can be asked: approvals are the operator's to set up; write \"allow\" or \"deny\""),
    );
    error.hint = Some("nothing ran".to_owned());
    error
}
