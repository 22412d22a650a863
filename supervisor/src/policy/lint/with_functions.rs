//! What in a scope of configured functions is suspect, where it is known which there are.
//!
//! Owns comparing rules with the functions of the operator. Never decides about a call.

use super::super::document::{RuleTable, ScopeTable};
use super::Warning;
use crate::host::configured::Brief;
use crate::host::schema::phrase::{names, nearest, quoted};
use brig_protocol::client::{Effect, Mode, Operation};
use brig_protocol::names::Pattern;

/// Looks at one scope.
pub(super) fn look(place: &str, scope: &ScopeTable, functions: &[Brief], all: &mut Vec<Warning>) {
    let (default, rules) = match scope {
        ScopeTable::All(mode) => (*mode, &[][..]),
        ScopeTable::Rules(rules) => (rules.default, rules.rules.as_slice()),
    };
    let decided: Vec<Vec<usize>> = functions.iter().map(|function| deciding(rules, function)).collect();
    for (index, rule) in rules.iter().enumerate() {
        let place = format!("{place}.rules[{index}]");
        strangers(&place, rule, functions, all);
        let meant = functions.iter().any(|function| matches(rule, function));
        let decides = decided.iter().any(|by| by.contains(&index)) || !rule.operations.contains(&Operation::Invoke);
        if meant && !decides && !hidden_by_one(rules, index) {
            let sentence = "this rule never decides: for every function that there is, later rules match all that it does".to_owned();
            all.push(Warning { place: place.clone(), sentence });
        }
        let free = rule.mode == Mode::Allow && rule.budget.0.is_empty();
        let by_it = |(function, by): &(&Brief, &Vec<usize>)| free && function.effect == Effect::Write && by.contains(&index);
        unbounded(&place, functions.iter().zip(&decided).filter(by_it).map(|(function, _)| function), all);
    }
    if default == Mode::Allow {
        // Where no rule decides for every input.
        let open = |(function, by): &(&Brief, &Vec<usize>)| {
            function.effect == Effect::Write && !by.iter().any(|index| rules.get(*index).is_some_and(|rule| rule.when.is_none()))
        };
        unbounded(place, functions.iter().zip(&decided).filter(open).map(|(function, _)| function), all);
    }
}

/// The rules that decide about a call of this function for some input.
fn deciding(rules: &[RuleTable], function: &Brief) -> Vec<usize> {
    let mut all: Vec<usize> = Vec::new();
    for (index, rule) in rules.iter().enumerate().rev() {
        if matches(rule, function) && rule.operations.contains(&Operation::Invoke) {
            all.push(index);
            if rule.when.is_none() {
                break;
            }
        }
    }
    all
}

fn matches(rule: &RuleTable, function: &Brief) -> bool {
    let patterns = rule.patterns.iter().filter_map(|text| Pattern::parse(text).ok());
    patterns.into_iter().any(|pattern| pattern.matches(&function.collection, &function.name))
}

/// What is told already, without knowing the functions.
fn hidden_by_one(rules: &[RuleTable], index: usize) -> bool {
    rules.get(index).is_some_and(|rule| rules.iter().skip(index + 1).any(|later| super::hides(later, rule)))
}

/// Patterns that mean nothing that there is.
fn strangers(place: &str, rule: &RuleTable, functions: &[Brief], all: &mut Vec<Warning>) {
    for (number, text) in rule.patterns.iter().enumerate() {
        let names_something = text.contains(|character: char| character.is_ascii_alphanumeric());
        let Ok(pattern) = Pattern::parse(text) else { continue };
        if !names_something || functions.iter().any(|function| pattern.matches(&function.collection, &function.name)) {
            continue;
        }
        let known: Vec<String> = functions.iter().map(|function| format!("{}.{}", function.collection, function.name)).collect();
        let advice = match nearest(text, known.iter().map(String::as_str)) {
            Some(near) => format!("; did you mean {}?", quoted(near)),
            None if known.is_empty() => ": no function is configured".to_owned(),
            None => format!("; configured are {}", names(known.iter().map(String::as_str))),
        };
        all.push(Warning {
            place: format!("{place}.patterns[{number}]"),
            sentence: format!("{} matches no configured function{advice}", quoted(text)),
        });
    }
}

fn unbounded<'f>(place: &str, functions: impl Iterator<Item = &'f Brief>, all: &mut Vec<Warning>) {
    let named: Vec<String> = functions.map(|function| format!("{}.{}", function.collection, function.name)).collect();
    if !named.is_empty() {
        let sentence = format!(
            "{} may change something and is allowed without a budget and without asking anybody; add a budget, or mode = \"ask\"; \
             effect = \"read\" in its file if it changes nothing",
            names(named.iter().map(String::as_str))
        );
        all.push(Warning { place: place.to_owned(), sentence });
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::super::{Known, warnings};
    use super::*;
    use crate::config::Config;

    fn told(scope: &str) -> Vec<String> {
        let config: Config = toml::from_str(&format!("[principals.\"uid:7\".host_function]\n{scope}\n")).unwrap();
        let brief = |name: &str, effect| Brief { collection: "store".to_owned(), name: name.to_owned(), effect };
        let functions = [brief("refund", Effect::Write), brief("list", Effect::Read)];
        let all = warnings(&config, Known { functions: Some(&functions) });
        all.into_iter().map(|warning| format!("{}: {}", warning.place, warning.sentence)).collect()
    }

    #[test]
    fn a_write_function_that_anybody_may_call_without_end_is_told_and_one_with_a_budget_or_a_person_is_not() {
        let free = told("rules = [{ mode = \"allow\", patterns = [\"store.*\"] }]");
        assert!(free.len() == 1 && free.iter().all(|said| said.contains("store.refund") && !said.contains("store.list")), "{free:?}");
        assert!(
            told("default = \"allow\"\nrules = [{ mode = \"allow\", patterns = [\"store.list\"] }]")
                .iter()
                .any(|said| said.contains("store.refund"))
        );
        for held in [
            "rules = [{ mode = \"allow\", patterns = [\"store.*\"], budget = { calls = 1, per = \"hour\" } }]",
            "rules = [{ mode = \"allow\", patterns = [\"store.*\"] }, { mode = \"ask\", patterns = [\"store.refund\"], ask = { approvers = [\"uid:1\"] } }]",
            "rules = [{ mode = \"allow\", patterns = [\"store.list\"] }]",
        ] {
            assert_eq!(told(held), Vec::<String>::new(), "{held}");
        }
    }

    #[test]
    fn a_pattern_of_nothing_that_there_is_is_told_with_the_nearest() {
        let said = told("rules = [{ mode = \"allow\", patterns = [\"store.lst\"] }]");
        assert!(said.iter().any(|said| said.contains("patterns[0]") && said.contains("did you mean \"store.list\"?")), "{said:?}");
    }

    #[test]
    fn a_rule_that_several_later_ones_hide_together_is_told() {
        let said = told(
            "rules = [{ mode = \"deny\", patterns = [\"store.*\"], why = \"w\" }, { mode = \"allow\", patterns = [\"store.list\"] }, \
             { mode = \"allow\", patterns = [\"store.refund\"], budget = { calls = 1, per = \"hour\" } }]",
        );
        assert!(said.len() == 1 && said.iter().all(|said| said.contains("rules[0]") && said.contains("later rules")), "{said:?}");
    }
}
