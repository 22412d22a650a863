//! What in a policy is allowed and yet most likely not meant.
//!
//! Owns the warnings about a policy: of `brigd policy check`, `brigd config check`, a start
//! and a reload. A policy with warnings loads.

mod with_functions;

use super::Facts;
use super::document::{AskTable, PrincipalTable, RuleTable, RulesTable, ScopeTable};
use super::selector::{AccountFiles, Selector, SystemAccounts};
use crate::config::Config;
use crate::host::configured::Brief;
use crate::host::permission::condition::spelt;
use crate::host::schema::phrase::quoted;
use brig_protocol::client::{Mode, Operation};
use brig_protocol::names::Pattern;

/// One warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    /// The setting.
    pub(crate) place: String,
    /// What about it, and what to do.
    pub(crate) sentence: String,
}

/// What is known besides the policy.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known<'a> {
    /// The functions of the operator; nothing where they are not known.
    pub(crate) functions: Option<&'a [Brief]>,
}

/// Everything suspect.
pub(crate) fn warnings(config: &Config, known: Known<'_>) -> Vec<Warning> {
    let mut all = overlaps(config, &AccountFiles::of_system());
    for (name, table) in &config.principals {
        let place = format!("principals.{}", spelt(name));
        for (key, scope) in scopes(table) {
            let place = format!("{place}.{key}");
            match scope {
                ScopeTable::All(mode) => open_to_all(name, &place, *mode, &mut all),
                ScopeTable::Rules(rules) => of_rules(name, &place, rules, &mut all),
            }
            if key == "host_function"
                && let Some(functions) = known.functions
            {
                with_functions::look(&place, scope, functions, &mut all);
            }
        }
    }
    all
}

/// Whether any rule asks a person.
pub(crate) fn asks(config: &Config) -> bool {
    asking(config).next().is_some()
}

/// Each rule that asks: its section, its place, and who is asked.
fn asking<'c>(config: &'c Config) -> impl Iterator<Item = (&'c String, String, &'c AskTable)> {
    let of_scope = |place: String, scope: &'c ScopeTable| -> Vec<(String, &'c RuleTable)> {
        let ScopeTable::Rules(rules) = scope else { return Vec::new() };
        rules.rules.iter().enumerate().map(|(index, rule)| (format!("{place}.rules[{index}].ask"), rule)).collect()
    };
    config.principals.iter().flat_map(move |(name, table)| {
        let place = format!("principals.{}", spelt(name));
        let rules = scopes(table).flat_map(move |(key, scope)| of_scope(format!("{place}.{key}"), scope));
        rules.filter_map(move |(place, rule)| Some((name, place, rule.ask.as_ref()?)))
    })
}

/// Approvers who can not decide, by what `let_in` says of the admin socket.
pub(crate) fn approvers(config: &Config, let_in: impl Fn(&Selector) -> bool) -> Vec<Warning> {
    let mut all = Vec::new();
    for (section, place, ask) in asking(config) {
        let own = Selector::parse(section, &SystemAccounts).ok().filter(|own| matches!(own, Selector::Uid(_)));
        let mut others = false;
        for (number, text) in ask.approvers.iter().enumerate() {
            let place = format!("{place}.approvers[{number}]");
            let Ok(approver) = Selector::parse(text, &SystemAccounts) else { continue };
            others |= own.as_ref() != Some(&approver);
            if approver == Selector::Everybody {
                let sentence = "whoever is let in on the admin socket may decide this; name the people or their group".to_owned();
                all.push(Warning { place, sentence });
            } else if !let_in(&approver) {
                let sentence = format!("{} is not let in by [admin], and so can decide nothing; add it to admin.approvers", quoted(text));
                all.push(Warning { place, sentence });
            }
        }
        if own.is_some() && !others {
            let sentence = "nobody can ever say yes: nobody decides their own calls, and no one else is named".to_owned();
            all.push(Warning { place: format!("{place}.approvers"), sentence });
        }
    }
    all
}

/// Two sections of groups that have a user in common: which one applies is told, for it is
/// decided by nothing but the order of their names.
fn overlaps(config: &Config, files: &AccountFiles) -> Vec<Warning> {
    let mut all = Vec::new();
    let groups: Vec<(&String, u32)> = (config.principals.keys())
        .filter_map(|name| match Selector::parse(name, &SystemAccounts) {
            Ok(Selector::Gid(gid)) => Some((name, gid)),
            _ => None,
        })
        .collect();
    let own = |uid: u32| config.principals.keys().any(|name| Selector::parse(name, &SystemAccounts) == Ok(Selector::Uid(uid)));
    for (index, (first, gid)) in groups.iter().enumerate() {
        let members = files.members(*gid);
        for (second, other) in groups.iter().skip(index + 1) {
            let both = files.members(*other).into_iter().find(|member| members.contains(member) && !own(member.1));
            if let Some((user, uid)) = both {
                let facts = Facts { uid, ..facts_of(&user, files) };
                let applies = if facts.gid == *other { second } else { first };
                let sentence = format!(
                    "user {user} is in {first} and in {second}; sections are never merged, and {applies} applies; a section \"user:{user}\" would decide it"
                );
                all.push(Warning { place: format!("principals.{}", spelt(second)), sentence });
            }
        }
    }
    all
}

fn facts_of(user: &str, files: &AccountFiles) -> Facts {
    let (primary, groups) = files.groups_of(user);
    Facts { gid: primary.unwrap_or(u32::MAX), groups, ..Facts::default() }
}

fn scopes(table: &PrincipalTable) -> impl Iterator<Item = (&'static str, &ScopeTable)> {
    let both = [("callbacks", &table.callbacks), ("host_function", &table.host_function)];
    both.into_iter().filter_map(|(key, scope)| Some((key, scope.as_ref()?)))
}

fn open_to_all(name: &str, place: &str, mode: Mode, all: &mut Vec<Warning>) {
    if name == "*" && mode == Mode::Allow && place.ends_with("host_function") {
        let sentence = "everybody who can reach the socket may call every configured function".to_owned();
        all.push(Warning { place: place.to_owned(), sentence });
    }
}

fn of_rules(name: &str, place: &str, rules: &RulesTable, all: &mut Vec<Warning>) {
    open_to_all(name, place, rules.default, all);
    for (index, rule) in rules.rules.iter().enumerate() {
        let place = format!("{place}.rules[{index}]");
        let mut warn = |key: &str, sentence: String| all.push(Warning { place: format!("{place}{key}"), sentence });
        let later = rules.rules.iter().enumerate().skip(index + 1);
        if let Some((by, _)) = later.into_iter().find(|(_, later)| hides(later, rule)) {
            warn("", format!("this rule never decides: rules[{by}] comes later and matches all that it does; put the general rule first"));
        }
        let everything = rule.patterns.iter().any(|pattern| pattern == "**");
        if name == "*" && rule.mode == Mode::Allow && everything && rule.when.is_none() && place.contains(".host_function.") {
            warn("", "everybody who can reach the socket may call every configured function".to_owned());
        }
        if rule.mode == Mode::Allow
            && let Some(member) = rule.when.as_ref().and_then(unheld)
        {
            warn(
                ".when",
                format!("an input without {member}, or with another type of it, fits as well; add a type and name it in \"required\""),
            );
        }
        if rules.default == rule.mode && index == 0 && rule.when.is_none() && rule.budget.0.is_empty() && rule.why.is_none() {
            warn("", "this rule says what the default says already".to_owned());
        }
    }
}

/// Whether the later of two rules always decides where the earlier would.
fn hides(later: &RuleTable, earlier: &RuleTable) -> bool {
    let same_condition = later.when.is_none() || later.when == earlier.when;
    let operations = earlier.operations.iter().all(|operation: &Operation| later.operations.contains(operation));
    let patterns = earlier.patterns.iter().all(|narrow| later.patterns.iter().any(|wide| covers(wide, narrow)));
    same_condition && operations && patterns
}

/// Whether all that `narrow` matches is matched by `wide`. In doubt it is not.
fn covers(wide: &str, narrow: &str) -> bool {
    if wide == narrow || wide == "**" {
        return true;
    }
    if narrow.contains(':') || wide.contains(':') {
        return false;
    }
    if narrow.contains("**") {
        // Only a prefix with everything behind it is wide enough.
        return wide.strip_suffix("**").is_some_and(|prefix| !prefix.contains('*') && narrow.starts_with(prefix));
    }
    // A star of the narrow one is a character that only a star of the wide one takes.
    let parts = narrow.split_once('.');
    parts.is_some_and(|(collection, function)| Pattern::parse(wide).is_ok_and(|wide| wide.matches(collection, function)))
}

/// A member that a condition speaks about and that need not be there or be what it is
/// compared as.
fn unheld(when: &toml::Value) -> Option<String> {
    let required: Vec<&str> =
        when.get("required").and_then(toml::Value::as_array).into_iter().flatten().filter_map(toml::Value::as_str).collect();
    let properties = when.get("properties")?.as_table()?;
    properties.iter().find_map(|(name, schema)| {
        let typed = ["type", "const", "enum"].iter().any(|key| schema.get(key).is_some());
        (!typed || !required.contains(&name.as_str())).then(|| format!("{name:?}"))
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;
    use proptest::prelude::*;

    fn told(rules: &str) -> Vec<String> {
        let text = format!("[principals.\"*\".host_function]\nrules = [{rules}]\n");
        let config: Config = toml::from_str(&text).unwrap();
        warnings(&config, Known::default()).into_iter().map(|warning| format!("{}: {}", warning.place, warning.sentence)).collect()
    }

    #[test]
    fn a_rule_that_never_decides_is_told_with_the_one_that_hides_it() {
        let hidden =
            told("{ mode = \"deny\", patterns = [\"store.refund\"], why = \"w\" }, { mode = \"allow\", patterns = [\"store.*\"] }");
        assert!(hidden.iter().any(|said| said.contains("rules[0]") && said.contains("rules[1] comes later")), "{hidden:?}");
        let fine = told("{ mode = \"allow\", patterns = [\"store.*\"] }, { mode = \"deny\", patterns = [\"store.refund\"] }");
        assert_eq!(fine, Vec::<String>::new());
        let conditional = "{ mode = \"ask\", patterns = [\"store.*\"], when = { required = [\"a\"] }, ask = { approvers = [\"uid:1\"] } }";
        assert_eq!(told(&format!("{{ mode = \"allow\", patterns = [\"store.*\"] }}, {conditional}")), Vec::<String>::new());
    }

    #[test]
    fn a_condition_that_lets_through_what_it_does_not_name_is_told() {
        let rule = |when: &str| told(&format!("{{ mode = \"allow\", patterns = [\"a.b\"], when = {when} }}"));
        assert!(rule("{ properties = { amount = { maximum = 100 } } }").iter().any(|said| said.contains("\"amount\"")));
        assert!(!rule("{ properties = { amount = { type = \"number\" } } }").is_empty());
        assert!(rule("{ properties = { amount = { type = \"number\", maximum = 100 } }, required = [\"amount\"] }").is_empty());
    }

    #[test]
    fn everything_for_everybody_is_told() {
        assert!(told("{ mode = \"allow\", patterns = [\"**\"] }").iter().any(|said| said.contains("everybody")));
        let config: Config = toml::from_str("[principals.\"*\"]\nhost_function = \"allow\"\n").unwrap();
        assert_eq!(warnings(&config, Known::default()).len(), 1);
    }

    #[test]
    fn two_sections_of_groups_with_a_user_in_common_are_told_with_the_one_that_applies() {
        let files = AccountFiles {
            passwd: "ada:x:20001:30002::/:\nbob:x:20002:30009::/:\neve:x:20003:30001::/:\n".to_owned(),
            group: "agents:x:30001:ada,bob\nfinance:x:30002:bob\nothers:x:30003:\n".to_owned(),
        };
        let told = |sections: &[&str]| -> Vec<String> {
            let text: String = sections.iter().map(|section| format!("[principals.{section:?}]\ncallbacks = \"deny\"\n")).collect();
            let all = overlaps(&toml::from_str(&text).unwrap(), &files);
            all.into_iter().map(|warning| format!("{}: {}", warning.place, warning.sentence)).collect()
        };
        // Ada by the list of one and her primary group, which decides; Bob by both lists, then by their order.
        let both = told(&["gid:30001", "gid:30002"]);
        assert!(both.len() == 1 && both[0].contains("principals.\"gid:30002\": user ada is in gid:30001 and in gid:30002"), "{both:?}");
        assert!(both[0].contains("gid:30002 applies") && both[0].contains("\"user:ada\" would decide it"), "{both:?}");
        let by_order = told(&["gid:30001", "gid:30002", "uid:20001"]);
        assert!(by_order.len() == 1 && by_order[0].contains("user bob") && by_order[0].contains("gid:30001 applies"), "{by_order:?}");
        for apart in [&["gid:30001", "gid:30003"][..], &["gid:30001", "gid:30002", "uid:20001", "uid:20002"], &["gid:30001"]] {
            assert_eq!(told(apart), Vec::<String>::new(), "{apart:?}");
        }
    }

    fn pattern() -> impl Strategy<Value = String> {
        proptest::string::string_regex("(\\*\\*|[ab*]{1,2})(\\.(\\*\\*|[ab*]{1,2})){0,2}")
            .unwrap()
            .prop_filter("reads", |text| Pattern::parse(text).is_ok())
    }

    proptest! {
        #[test]
        fn a_pattern_that_covers_another_matches_all_that_it_does(wide in pattern(), narrow in pattern(), c in "[ab]{1,2}", f in "[ab]{1,2}(\\.[ab]{1,2})?") {
            if covers(&wide, &narrow) && Pattern::parse(&narrow).unwrap().matches(&c, &f) {
                prop_assert!(Pattern::parse(&wide).unwrap().matches(&c, &f), "{wide} {narrow} {c}.{f}");
            }
        }
    }
}
