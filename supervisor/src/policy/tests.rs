//! What the tables of an operator mean.
#![expect(clippy::unwrap_used, reason = "tests")]

use super::selector::NamedAccounts;
use super::*;
use crate::host::permission::{Input, Question, decide};
use brig_protocol::client::Operation;
use serde_json::{Value, json};

fn accounts() -> NamedAccounts {
    let named = |pairs: &[(&str, u32)]| pairs.iter().map(|(name, id)| ((*name).to_owned(), *id)).collect();
    NamedAccounts { users: named(&[("ada", 20_001)]), groups: named(&[("agents", 30_001), ("builders", 30_002), ("finance", 30_003)]) }
}

fn config(text: &str) -> Config {
    toml::from_str(text).unwrap()
}

fn policy(text: &str) -> Policy {
    Policy::compile_with(&config(text), &accounts(), None).unwrap()
}

fn fault_of(text: &str) -> String {
    match toml::from_str::<Config>(text) {
        Err(fault) => fault.to_string(),
        Ok(config) => Policy::compile_with(&config, &accounts(), None).unwrap_err().to_string(),
    }
}

fn facts(uid: u32, gid: u32, groups: &[u32], unit: Option<&str>) -> Facts {
    Facts { uid, gid, groups: groups.to_vec(), unit: unit.map(str::to_owned), unseen: None }
}

#[test]
fn without_principals_the_embedded_default_holds() {
    let policy = policy("[clients]\nuids = [20001]\n");
    let may = |uid: u32| policy.grant(&facts(uid, uid, &[], None)).may_evaluate;
    assert!(may(0) && may(20_001) && may(rustix::process::geteuid().as_raw()));
    assert!(!may(20_002));
    let grant = policy.grant(&facts(20_001, 1, &[], None));
    let question = Question { collection: "orders", function: "list", operation: Operation::Invoke, input: None };
    assert!(decide(&grant.callbacks, &question).is_ok());
    assert!(decide(&grant.functions, &question).is_err());
}

#[test]
fn who_hides_its_groups_and_unit_falls_into_no_wider_section() {
    let unseen = |uid| Facts { unseen: Some("it is gone".to_owned()), ..facts(uid, 1, &[], None) };
    for section in ["group:agents", "unit:agent.service"] {
        let policy = policy(&format!("[principals.\"{section}\"]\n[principals.\"uid:7\"]\n[principals.\"*\"]\ncallbacks = \"allow\"\n"));
        assert!(!policy.grant(&unseen(5)).may_evaluate, "{section}");
        assert_eq!(&*policy.grant(&unseen(7)).section, "uid:7");
        assert!(policy.grant(&facts(5, 1, &[], None)).may_evaluate);
    }
    let policy = policy("[principals.\"*\"]\n");
    assert!(policy.grant(&unseen(5)).may_evaluate, "there is nothing that it could hide");
}

#[test]
fn the_most_specific_section_applies_and_no_other() {
    let policy = policy(
        r#"
        [principals."user:ada"]
        [principals."unit:agent.service"]
        [principals."group:agents"]
        callbacks = "allow"
        [principals."gid:30002"]
        [principals."*"]
        callbacks = "allow"
        "#,
    );
    let section = |uid, gid, groups: &[u32], unit| policy.grant(&facts(uid, gid, groups, unit)).section.to_string();
    assert_eq!(section(20_001, 30_001, &[30_002], Some("agent.service")), "user:ada");
    assert_eq!(section(20_002, 30_001, &[30_002], Some("agent.service")), "unit:agent.service");
    assert_eq!(section(20_002, 30_001, &[30_002], None), "group:agents", "the primary group goes first");
    assert_eq!(section(20_002, 30_002, &[30_001], Some("other.service")), "gid:30002");
    assert_eq!(section(20_002, 1, &[30_001, 30_002], None), "gid:30002", "then the order of the sections' names");
    assert_eq!(section(20_002, 1, &[30_002, 30_001], None), "gid:30002", "whatever the order of the kernel's list");
    assert_eq!(section(0, 0, &[], None), "*", "root is a principal like any other");
    // Nothing of a less specific section shines through.
    let ada = policy.grant(&facts(20_001, 30_001, &[], None));
    let question = Question { collection: "a", function: "b", operation: Operation::Invoke, input: None };
    assert!(ada.may_evaluate && decide(&ada.callbacks, &question).is_err());
}

#[test]
fn whom_no_section_is_about_may_do_nothing() {
    let policy = policy("[principals.\"uid:20001\"]\ncallbacks = \"allow\"\n");
    let grant = policy.grant(&facts(0, 0, &[], None));
    assert!(!grant.may_evaluate && grant.admitted_by == "principals");
    let question = Question { collection: "a", function: "b", operation: Operation::Invoke, input: None };
    assert!(decide(&grant.callbacks, &question).is_err());
}

#[test]
fn ceilings_and_quotas_are_those_of_the_section() {
    let policy = policy(
        "[limits]\ncpu_ms = 5000\n[principals.\"uid:1\".limits]\ncpu_ms = 2000\n[principals.\"uid:1\".quotas]\nrunning = 4\nvms = 0\n[principals.\"*\"]\n",
    );
    let grant = policy.grant(&facts(1, 1, &[], None));
    assert_eq!((grant.ceilings.cpu_ms, grant.quotas.running, grant.quotas.vms), (2_000, Some(4), Some(0)));
    let other = policy.grant(&facts(2, 1, &[], None));
    assert_eq!((other.ceilings.cpu_ms, other.quotas), (5_000, Quotas::default()));
}

#[test]
fn the_version_names_the_tables_and_nothing_else() {
    let one = policy("[principals.\"uid:1\"]\ncallbacks = \"allow\"\n");
    let same = policy("# a comment\n[principals]\n\"uid:1\" = { callbacks = \"allow\" }\n");
    let other = policy("[principals.\"uid:1\"]\ncallbacks = \"deny\"\n");
    assert_eq!(one.version(), same.version());
    assert_ne!(one.version(), other.version());
    assert_eq!(one.version().len(), 12);
}

#[test]
fn a_section_that_does_not_mean_what_it_says_is_refused_with_its_place() {
    for (text, parts) in [
        ("[principals.\"uid:1\"]\ncalbacks = \"allow\"\n", &["calbacks", "callbacks", "line 2"][..]),
        ("[principals.\"uid:1\"]\ncallbacks = \"alow\"\n", &["alow", "\"allow\", \"deny\""]),
        ("[principals.\"uid:1\".quotas]\nruning = 4\n", &["runing", "running"]),
        ("[principals.\"uid:1\".quotas]\nrunning = 0\n", &["principals.\"uid:1\".quotas.running is set to 0", "between 1"]),
        ("[principals.\"uid:1\".limits]\ncpu = 4\n", &["principals.\"uid:1\".limits.cpu", "did you mean limits.cpu_ms"]),
        (
            "[limits]\ncpu_ms = 1000\n[principals.\"uid:1\".limits]\ncpu_ms = 1001\n",
            &["principals.\"uid:1\".limits.cpu_ms", "at most 1000"],
        ),
        ("[principals.\"user:nobody-at-all\"]\n", &["there is no user \"nobody-at-all\""]),
        ("[principals.agents]\n", &["principals.agents", "\"group:NAME\""]),
        ("[principals.\"user:ada\"]\n[principals.\"uid:20001\"]\n", &["same principal", "uid:20001"]),
        ("[principals.\"group:agents\"]\n[principals.\"gid:30001\"]\n", &["same principal"]),
        ("[clients]\nuids = [1]\n[principals.\"*\"]\n", &["clients.uids", "[principals]"]),
    ] {
        let fault = fault_of(text);
        assert!(parts.iter().all(|part| fault.contains(part)), "{text}: {fault}");
    }
}

const RULES: &str = "[principals.\"*\".host_function]\n[[principals.\"*\".host_function.rules]]\n";

#[test]
fn a_rule_that_does_not_mean_what_it_says_is_refused_with_its_place() {
    let allow = "mode = \"allow\"\npatterns = [\"a.b\"]\n";
    let ask = "mode = \"ask\"\npatterns = [\"a.b\"]\n";
    for (rule, parts) in [
        ("mode = \"alow\"\npatterns = [\"a.b\"]\n".to_owned(), &["alow", "`allow`"][..]),
        ("mode = \"allow\"\npatterns = []\n".to_owned(), &["rules[0].patterns is set to 0 patterns"]),
        ("mode = \"allow\"\npatterns = [\"a\"]\n".to_owned(), &["rules[0].patterns[0]", "did you mean \"a.*\"?"]),
        ("mode = \"allow\"\npatterns = [\"а.b\"]\n".to_owned(), &["can not be part of a name"]),
        (format!("{allow}operations = []\n"), &["rules[0].operations"]),
        (format!("{allow}wen = {{}}\n"), &["wen", "when"]),
        (
            format!("{allow}when = {{ properties = {{ x = {{ const = 2026-01-01 }} }} }}\n"),
            &["rules[0].when.properties.x.const", "no dates"],
        ),
        (format!("{allow}budget = {{ calls = 0, per = \"hour\" }}\n"), &["rules[0].budget", "over 0"]),
        (format!("{allow}budget = {{ calls = 3 }}\n"), &["per"]),
        (format!("{allow}budget = {{ calls = 3, per = \"week\" }}\n"), &["week", "`day`"]),
        (format!("{allow}budget = {{ calls = 3, max = 4, per = \"hour\" }}\n"), &["rules[0].budget", "calls = 3, or sum"]),
        (format!("{allow}budget = {{ sum = \"amount\", max = 4, per = \"hour\" }}\n"), &["rules[0].budget.sum", "\"/amount\""]),
        (format!("{allow}budget = {{ sum = \"/amount\", max = -4, per = \"hour\" }}\n"), &["-4 is negative"]),
        (
            format!("{allow}budget = [{{ calls = 3, per = \"hour\" }}, {{ calls = 4, per = \"hour\" }}]\n"),
            &["budget[1]", "counts the same"],
        ),
        ("mode = \"deny\"\npatterns = [\"a.b\"]\nbudget = { calls = 3, per = \"hour\" }\n".to_owned(), &["rules[0].budget"]),
        (ask.to_owned(), &["rules[0].ask is set to nothing", "approvers"]),
        (format!("{ask}ask = {{ approvers = [] }}\n"), &["rules[0].ask.approvers"]),
        (format!("{ask}ask = {{ approvers = [\"group:no-such\"] }}\n"), &["rules[0].ask.approvers[0]", "no group"]),
        (format!("{ask}ask = {{ approvers = [\"group:finance\"], wait_seconds = 0 }}\n"), &["wait_seconds", "between 1"]),
        (format!("{ask}ask = {{ approvers = [\"group:finance\"], show = [\"amount\"] }}\n"), &["ask.show[0]", "JSON Pointer"]),
        (format!("{allow}ask = {{ approvers = [\"group:finance\"] }}\n"), &["rules[0].ask", "mode = \"ask\""]),
        (format!("{ask}operations = [\"list\"]\nask = {{ approvers = [\"group:finance\"] }}\n"), &["rules[0].operations", "invoke"]),
    ] {
        let fault = fault_of(&format!("{RULES}{rule}"));
        assert!(parts.iter().all(|part| fault.contains(part)), "{rule}: {fault}");
    }
    assert!(fault_of("[principals.\"*\".host_function]\ndefault = \"ask\"\nrules = []\n").contains("host_function.default"));
    assert!(fault_of("[principals.\"*\"]\nhost_function = { default = \"deny\" }\n").contains("host_function.rules"));
}

#[test]
fn budgets_of_one_name_have_one_size() {
    let named = |max: u32| format!("mode = \"allow\"\npatterns = [\"a.b\"]\nbudget = {{ calls = {max}, per = \"hour\", name = \"n\" }}\n");
    let second = "[[principals.\"*\".host_function.rules]]\n";
    assert!(fault_of(&format!("{RULES}{}{second}{}", named(3), named(4))).contains("one size"));
    policy(&format!("{RULES}{}{second}{}", named(3), named(3)));
}

#[test]
fn a_pattern_that_is_about_nothing_configured_is_refused_with_the_nearest() {
    let known = Known { functions: vec![("store".to_owned(), "refund".to_owned())] };
    let load = |pattern: &str, more: &str| {
        let text =
            format!("[principals.\"*\"]\n{more}[[principals.\"*\".host_function.rules]]\nmode = \"allow\"\npatterns = [\"{pattern}\"]\n");
        Policy::compile_with(&config(&text), &accounts(), Some(&known)).map(drop).map_err(|fault| fault.to_string())
    };
    let fault = load("store.refnd", "").unwrap_err();
    assert!(fault.contains("matches no configured function; did you mean \"store.refund\"?"), "{fault}");
    for fine in ["store.refund", "store.*", "store:refund", "**", "*.refund"] {
        assert_eq!(load(fine, ""), Ok(()), "{fine}");
    }
    assert_eq!(load("orders.list", "callbacks = \"allow\"\n"), Ok(()));
    assert!(load("orders.list", "callbacks = \"deny\"\n").is_err());
}

/// Asks for a call by user 7.
fn asked(policy: &Policy, function: &str, input: &Value) -> Result<crate::host::permission::Permit, crate::host::permission::Refusal> {
    let text = input.to_string();
    let question =
        Question { collection: "store", function, operation: Operation::Invoke, input: Some(Input { tree: input, text: &text }) };
    decide(&policy.grant(&facts(7, 7, &[], None)).functions, &question)
}

#[test]
fn a_yes_carries_what_it_takes_and_whom_it_needs() {
    let policy = policy(
        r#"
        [[principals."*".host_function.rules]]
        mode = "allow"
        patterns = ["store.refund"]
        budget = [{ calls = 3, per = "hour" }, { sum = "/amount", max = 500.5, per = "day", name = "money" }]
        [[principals."*".host_function.rules]]
        mode = "ask"
        patterns = ["store.refund"]
        when = { properties = { amount = { type = "number", minimum = 100 } }, required = ["amount"] }
        ask = { approvers = ["group:finance"], show = ["/amount"] }
        why = "Refunds over 100 need a person."
        "#,
    );
    let small = asked(&policy, "refund", &json!({"amount": 0.1})).unwrap();
    let said: Vec<String> = small.charges().iter().map(|charge| format!("{} of {}", charge.amount, charge.limit)).collect();
    assert_eq!(said, ["1 of 3 calls per hour", "0.1 of 500.5 of /amount per day (shared: money)"]);
    assert!(small.ask().is_none() && small.rule() == "operator:rules[0]");
    let large = asked(&policy, "refund", &json!({"amount": 100})).unwrap();
    let terms = large.ask().unwrap();
    assert!(terms.approvers.iter().any(|approver| approver.matches(&facts(1, 30_003, &[], None))));
    assert!(!terms.approvers.iter().any(|approver| approver.matches(&facts(7, 7, &[], None))));
    assert_eq!((terms.rule.as_str(), terms.wait.as_secs()), ("operator:rules[1]", 600));
    assert!(large.charges().is_empty());
    for (input, part) in [(json!({"amount": "1"}), "needs a number at /amount"), (json!({"amount": -1}), "is negative")] {
        let refusal = asked(&policy, "refund", &input).unwrap_err();
        assert_eq!(refusal.code(), brig_protocol::codes::CallCode::InvalidInput);
        assert!(refusal.sentence("store.refund").contains(part), "{refusal:?}");
    }
}

#[test]
fn what_is_counted_together_is_what_the_operator_sees_as_one() {
    let policy = policy(
        r#"
        [[principals."*".host_function.rules]]
        mode = "allow"
        patterns = ["store.*", "store:refund"]
        budget = [{ calls = 3, per = "hour" }, { calls = 9, per = "hour", name = "all" }]
        "#,
    );
    let keys =
        |function: &str| asked(&policy, function, &json!({})).unwrap().charges().iter().map(|c| c.key.to_string()).collect::<Vec<_>>();
    let (refund, credit) = (keys("refund"), keys("credit"));
    assert_ne!(refund.first(), credit.first(), "each function has its own count");
    assert_eq!(refund.last(), credit.last(), "a name is counted whatever is called");
}
