//! Reading the scopes of an operator's policy, strictly.
//!
//! Owns every complaint about a scope of a `[principals]` section, each with its place
//! and what to write instead. A scope that loads means what it says. Never decides.

use super::condition;
use super::load::{RULES, WHY_BYTES, pattern};
use super::terms::{AskTerms, Budget, Measure, is_pointer};
use super::{Kind, Rule, Scope, Verdict};
use crate::config::{ConfigFault, all_well, fault};
use crate::host::schema::phrase::quoted;
use crate::policy::amount::Amount;
use crate::policy::document::{AskTable, BudgetTable, RuleTable, ScopeTable, Window};
use crate::policy::selector::{Accounts, Selector};
use brig_protocol::client::{Mode, Operation};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Most budgets of one rule, most approvers, and most places that one is shown.
const TERMS: usize = 16;
/// Longest wait for a decision, in seconds.
const WAIT_SECONDS: u64 = 86_400;
/// Longest name of a budget, in bytes.
const NAME_BYTES: usize = 64;

/// The functions that patterns of `host_function` can be about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// Each configured function: its collection and its name.
    pub(crate) functions: Vec<(String, String)>,
}

/// What reading a policy needs to know.
#[derive(Clone, Copy)]
pub(crate) struct Loader<'a> {
    /// Users and groups by name.
    pub(crate) accounts: &'a dyn Accounts,
    /// Configured functions; nothing here: not known, and patterns are not compared.
    pub(crate) known: Option<&'a Known>,
}

impl Loader<'_> {
    /// Reads one scope of the section at `section`. Takes much stack, see
    /// [`crate::policy::Policy::compile_with`].
    ///
    /// # Errors
    /// What is wrong, where, and what would be right.
    pub(crate) fn scope(&self, section: &str, kind: Kind, table: &ScopeTable, others: bool) -> Result<Scope, ConfigFault> {
        let place = format!("{section}.{}", kind.key());
        let rules = match table {
            ScopeTable::All(mode) => {
                let all = Verdict::of(*mode).map(Scope::All);
                return all.ok_or_else(|| fault(&place, "\"ask\"", "only a rule can ask; write \"allow\", \"deny\" or rules"));
            }
            ScopeTable::Rules(rules) => rules,
        };
        let default = Verdict::of(rules.default)
            .ok_or_else(|| fault(&format!("{place}.default"), "\"ask\"", "only a rule can ask; write \"allow\" or \"deny\""))?;
        if rules.rules.is_empty() || rules.rules.len() > RULES {
            let given = format!("{} rules", rules.rules.len());
            return Err(fault(&format!("{place}.rules"), given, &format!("write 1 to {RULES}, or \"allow\" or \"deny\" for the whole")));
        }
        // A pattern of `host_function` is about configured functions. Where the principal
        // may also declare its own, a name that is not configured is no mistake for sure.
        let known = self.known.filter(|_| kind == Kind::Functions && !others);
        let load = |(index, rule)| self.rule(&format!("{place}.rules[{index}]"), index, rule, known);
        let rules: Vec<Rule> = all_well(rules.rules.iter().enumerate().map(load))?;
        one_budget_a_name(&place, &rules)?;
        Ok(Scope::Rules { default, rules })
    }

    fn rule(&self, place: &str, index: usize, rule: &RuleTable, known: Option<&Known>) -> Result<Rule, ConfigFault> {
        let wrong = |key: &str, given: &str, right: &str| Err(fault(&format!("{place}.{key}"), given, right));
        if rule.operations.is_empty() {
            return wrong("operations", "an empty list", "name \"invoke\" or \"list\", or leave it out for both");
        }
        if rule.patterns.is_empty() || rule.patterns.len() > RULES {
            let given = format!("{} patterns", rule.patterns.len());
            return wrong("patterns", &given, &format!("write 1 to {RULES}; \"**\" is every function"));
        }
        if rule.why.as_ref().is_some_and(|why| why.len() > WHY_BYTES || why.trim().is_empty()) {
            return wrong("why", "no sentence", &format!("write 1 to {WHY_BYTES} bytes that help whoever is refused"));
        }
        let invokes = rule.operations.contains(&Operation::Invoke);
        if !rule.budget.0.is_empty() && (rule.mode == Mode::Deny || !invokes) {
            return wrong("budget", "a budget", "only a rule that allows calls has one; set mode and operations, or take it out");
        }
        if rule.mode == Mode::Ask && !invokes {
            return wrong("operations", "[\"list\"]", "what is asked about is a call; add \"invoke\"");
        }
        let patterns = rule.patterns.iter().enumerate().map(|(number, text)| {
            let place = format!("{place}.patterns[{number}]");
            check(text, known).map_err(|wrong| fault(&place, quoted(text), &wrong))
        });
        let patterns = all_well(patterns)?;
        let (when, text) = rule.when.as_ref().map(|when| condition::compiled(&format!("{place}.when"), when)).transpose()?.unzip();
        let budgets = budgets(place, &rule.budget.0, &digest(text.as_deref()))?;
        let verdict = match rule.mode {
            Mode::Allow => Verdict::Allow,
            Mode::Deny => Verdict::Deny,
            Mode::Ask => Verdict::Ask,
        };
        let ask = self.ask(place, index, rule)?.map(Arc::new);
        Ok(Rule { verdict, operations: rule.operations.clone(), patterns, when, budgets, ask, why: rule.why.clone() })
    }

    fn ask(&self, place: &str, index: usize, rule: &RuleTable) -> Result<Option<AskTerms>, ConfigFault> {
        let place = format!("{place}.ask");
        let table = match (&rule.ask, rule.mode) {
            (None, Mode::Allow | Mode::Deny) => return Ok(None),
            (Some(_), Mode::Allow | Mode::Deny) => return Err(fault(&place, "a table", "only a rule with mode = \"ask\" has one")),
            (None, Mode::Ask) => {
                return Err(fault(&place, "nothing", "say who decides, as in ask = { approvers = [\"group:finance\"] }"));
            }
            (Some(table), Mode::Ask) => table,
        };
        check_ask(&place, table)?;
        let approver = |(number, text): (usize, &String)| {
            Selector::parse(text, self.accounts).map_err(|wrong| fault(&format!("{place}.approvers[{number}]"), quoted(text), &wrong))
        };
        Ok(Some(AskTerms {
            approvers: all_well(table.approvers.iter().enumerate().map(approver))?,
            approver_names: table.approvers.clone(),
            wait: Duration::from_secs(table.wait_seconds),
            show: table.show.clone(),
            why: rule.why.clone(),
            rule: format!("operator:rules[{index}]"),
        }))
    }
}

fn check_ask(place: &str, table: &AskTable) -> Result<(), ConfigFault> {
    if table.approvers.is_empty() || table.approvers.len() > TERMS {
        let given = format!("{} names", table.approvers.len());
        return Err(fault(&format!("{place}.approvers"), given, &format!("write 1 to {TERMS}, as in \"group:finance\"")));
    }
    if !(1..=WAIT_SECONDS).contains(&table.wait_seconds) {
        return Err(fault(&format!("{place}.wait_seconds"), table.wait_seconds, &format!("it must be between 1 and {WAIT_SECONDS}")));
    }
    let show = table.show.as_deref().unwrap_or_default();
    if show.len() > TERMS {
        return Err(fault(&format!("{place}.show"), format!("{} places", show.len()), &format!("at most {TERMS} are taken")));
    }
    match show.iter().enumerate().find(|(_, pointer)| !is_pointer(pointer)) {
        Some((number, pointer)) => Err(not_a_pointer(&format!("{place}.show[{number}]"), pointer)),
        None => Ok(()),
    }
}

fn not_a_pointer(place: &str, given: &str) -> ConfigFault {
    fault(place, quoted(given), "write a JSON Pointer to a member of the input, as in \"/amount\"")
}

fn check(text: &str, known: Option<&Known>) -> Result<brig_protocol::names::Pattern, String> {
    let Some(known) = known else { return pattern(text, None, "configured") };
    let names: Vec<(&str, &str)> = known.functions.iter().map(|(collection, name)| (collection.as_str(), name.as_str())).collect();
    pattern(text, Some(&names), "configured")
}

fn budgets(place: &str, tables: &[BudgetTable], condition: &Arc<str>) -> Result<Vec<Budget>, ConfigFault> {
    if tables.len() > TERMS {
        return Err(fault(&format!("{place}.budget"), format!("{} budgets", tables.len()), &format!("at most {TERMS} are taken")));
    }
    let mut all: Vec<Budget> = Vec::new();
    for (number, table) in tables.iter().enumerate() {
        let place = if tables.len() == 1 { format!("{place}.budget") } else { format!("{place}.budget[{number}]") };
        let budget = budget(&place, table, condition)?;
        if all.iter().any(|other| other.measure == budget.measure && other.per == budget.per && other.name == budget.name) {
            return Err(fault(&place, budget.limit(), "another budget of this rule counts the same; keep the smaller"));
        }
        all.push(budget);
    }
    Ok(all)
}

fn budget(place: &str, table: &BudgetTable, condition: &Arc<str>) -> Result<Budget, ConfigFault> {
    let wrong = |key: &str, given: &str, right: &str| Err(fault(&format!("{place}{key}"), given, right));
    let (measure, max) = match (table.calls, &table.sum, table.max) {
        (Some(calls), None, None) => (Measure::Calls, Amount::whole(calls)),
        (None, Some(pointer), Some(max)) if is_pointer(pointer) => (Measure::Sum(pointer.clone()), Some(max)),
        (None, Some(pointer), Some(_)) => return Err(not_a_pointer(&format!("{place}.sum"), pointer)),
        _ => return wrong("", "neither of its forms", "write calls = 3, or sum = \"/amount\" with max = 500"),
    };
    let max = max.filter(|max| *max > Amount::ZERO);
    let Some(max) = max else {
        return wrong("", "no amount", "the most must be over 0 and at most 10^18; to allow nothing write mode = \"deny\"");
    };
    if table.name.as_ref().is_some_and(|name| name.is_empty() || name.len() > NAME_BYTES || !name.bytes().all(|b| b.is_ascii_graphic())) {
        return wrong(".name", "no name", &format!("write 1 to {NAME_BYTES} printable ASCII characters without spaces"));
    }
    Ok(Budget { measure, max, per: table.per, name: table.name.clone(), condition: Arc::clone(condition) })
}

/// Two budgets of one name are one: they can not have two sizes.
fn one_budget_a_name(place: &str, rules: &[Rule]) -> Result<(), ConfigFault> {
    let mut sizes: HashMap<(&str, &Measure, Window), Amount> = HashMap::new();
    for (index, rule) in rules.iter().enumerate() {
        for budget in &rule.budgets {
            let Some(name) = budget.name.as_deref() else { continue };
            let first = *sizes.entry((name, &budget.measure, budget.per)).or_insert(budget.max);
            if first != budget.max {
                let right =
                    format!("the budget {name:?} of another rule has {first}; budgets of one name are one budget, so they have one size");
                return Err(fault(&format!("{place}.rules[{index}].budget"), budget.limit(), &right));
            }
        }
    }
    Ok(())
}

/// Names a condition in the key of a count.
fn digest(condition: Option<&str>) -> Arc<str> {
    let Some(text) = condition else { return Arc::default() };
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<String>().into()
}
