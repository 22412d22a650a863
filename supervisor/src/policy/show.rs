//! A policy in words, for the terminal of an operator.
//!
//! Owns the layout. Never decides, and never shows what is not in the policy.

use super::document::{BudgetTable, PrincipalTable, RuleTable, ScopeTable};
use brig_protocol::client::{Decision, Mode, Operation, PolicyExplainResult};
use brig_protocol::escape::escaped;
use std::fmt::Write as _;

/// One section, as it holds.
pub(super) fn section(name: &str, table: &PrincipalTable, text: &mut String) {
    line(text, 0, escaped(name, 200).as_ref());
    let none = ScopeTable::All(Mode::Deny);
    scope("callbacks", table.callbacks.as_ref().unwrap_or(&none), text);
    scope("host_function", table.host_function.as_ref().unwrap_or(&none), text);
    for (name, value) in &table.limits {
        line(text, 1, &format!("limits.{name} = {value}"));
    }
    let quotas = table.quotas;
    for (name, value) in [
        ("running", quotas.running.map(|value| value.to_string())),
        ("queued", quotas.queued.map(|value| value.to_string())),
        ("vms", quotas.vms.map(|value| value.to_string())),
        ("calls_per_minute", quotas.calls_per_minute.map(|value| value.to_string())),
    ] {
        if let Some(value) = value {
            line(text, 1, &format!("quotas.{name} = {value}"));
        }
    }
}

fn scope(key: &str, scope: &ScopeTable, text: &mut String) {
    match scope {
        ScopeTable::All(mode) => line(text, 1, &format!("{key}: {} everything", word(*mode))),
        ScopeTable::Rules(rules) => {
            line(text, 1, &format!("{key}: the last rule that matches, else {}", word(rules.default)));
            for (index, one) in rules.rules.iter().enumerate() {
                line(text, 2, &format!("rules[{index}] {}", rule(one)));
            }
        }
    }
}

fn rule(rule: &RuleTable) -> String {
    let mut said = format!("{} {}", word(rule.mode), escaped(&rule.patterns.join(" "), 300));
    if let [Operation::List] = rule.operations.as_slice() {
        said.push_str(", to list");
    } else if let [Operation::Invoke] = rule.operations.as_slice() {
        said.push_str(", to call");
    }
    if let Some(when) = &rule.when {
        let when = serde_json::to_string(when).unwrap_or_default();
        write!(said, ", when the input fits {}", escaped(&when, 400)).ok();
    }
    for budget in &rule.budget.0 {
        write!(said, ", at most {}", limit(budget)).ok();
    }
    if let Some(ask) = &rule.ask {
        write!(said, ", asking {} for up to {} s", escaped(&ask.approvers.join(" or "), 300), ask.wait_seconds).ok();
    }
    if let Some(why) = &rule.why {
        write!(said, " — {}", escaped(why, 500)).ok();
    }
    said
}

fn limit(budget: &BudgetTable) -> String {
    let shared = budget.name.as_deref().map(|name| format!(" (shared: {})", escaped(name, 64))).unwrap_or_default();
    let per = budget.per.as_str();
    match (budget.calls, &budget.sum, budget.max) {
        (Some(1), ..) => format!("1 call per {per}{shared}"),
        (Some(calls), ..) => format!("{calls} calls per {per}{shared}"),
        (None, Some(pointer), Some(max)) => format!("{max} of {} per {per}{shared}", escaped(pointer, 200)),
        _ => "nothing".to_owned(),
    }
}

const fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::Allow => "allow",
        Mode::Deny => "deny",
        Mode::Ask => "ask",
    }
}

/// A decision.
pub(super) fn explained(function: &str, said: &PolicyExplainResult) -> String {
    let decision = match said.decision {
        Decision::Allow => "allowed",
        Decision::Ask => "asked about",
        Decision::Deny => "denied",
    };
    let by = match (said.section.as_str(), said.decision) {
        ("", Decision::Deny) => ": no section of [principals] is about this principal".to_owned(),
        ("", _) => format!(" by {}, without any section of [principals]", said.rule),
        (section, _) => format!(" by {} of {section}", said.rule),
    };
    let mut text = format!("{} is {decision}{by} (policy {})\n", escaped(function, 150), said.policy);
    if let Some(why) = &said.why {
        line(&mut text, 1, &format!("why: {}", escaped(why, 500)));
    }
    if let Some(wait) = said.ask_wait_ms {
        line(&mut text, 1, &format!("a person is asked, for up to {} s", wait / 1_000));
    }
    for budget in &said.budgets {
        line(&mut text, 1, &format!("budget: {}", escaped(&budget.limit, 300)));
    }
    text
}

fn line(text: &mut String, level: usize, said: &str) {
    text.push_str(&"  ".repeat(level));
    text.push_str(said);
    text.push('\n');
}
