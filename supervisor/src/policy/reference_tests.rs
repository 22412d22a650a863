//! Policy against a reference that is as plain as the words of the guide, and against
//! every way to spell a name so that it is another.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::clock::Clock;
use super::counters::{Counters, Taken};
use super::explain::Read;
use super::*;
use crate::host::permission::{Question, decide};
use brig_protocol::client::Operation;
use brig_protocol::names;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

#[path = "narrowing_tests.rs"]
mod narrowing;

const FUNCTIONS: &[(&str, &str)] = &[("orders", "list"), ("orders", "refund"), ("store", "admin.list"), ("orderStore", "listOrders")];
const MINUTE: u64 = 60_000;

/// One rule, as data that both sides read.
#[derive(Clone, Debug)]
struct Rule {
    mode: &'static str,
    patterns: Vec<&'static str>,
    operations: Vec<&'static str>,
    /// Matches up to this amount.
    when: Option<i64>,
    /// Calls in any minute or in an evaluation.
    calls: Option<(u64, &'static str)>,
    /// Sum of the amounts, in tenths.
    sum: Option<(u64, &'static str)>,
}

#[derive(Clone, Debug)]
struct Layer {
    default: &'static str,
    rules: Vec<Rule>,
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let pattern = prop_oneof![
        Just("**"),
        Just("*.*"),
        Just("orders.*"),
        Just("store.**"),
        Just("*.list"),
        Just("orders.refund"),
        Just("order-store:list-orders"),
        Just("order*:*")
    ];
    let operations = prop_oneof![Just(vec!["invoke"]), Just(vec!["list"]), Just(vec!["invoke", "list"])];
    let per = || prop_oneof![Just("evaluation"), Just("minute")];
    let rule = (
        prop_oneof![Just("allow"), Just("deny"), Just("ask")],
        proptest::collection::vec(pattern, 1..3),
        operations,
        proptest::option::of(0i64..10),
        proptest::option::weighted(0.4, (1u64..4, per())),
        proptest::option::weighted(0.4, (1u64..30, per())),
    );
    let rule = rule.prop_map(|(mode, patterns, operations, when, calls, sum)| {
        let invokes = operations.contains(&"invoke");
        let mode = if mode == "ask" && !invokes { "deny" } else { mode };
        let counted = invokes && mode != "deny";
        Rule { mode, patterns, operations, when, calls: calls.filter(|_| counted), sum: sum.filter(|_| counted) }
    });
    proptest::collection::vec(rule, 1..5)
}

fn layer() -> impl Strategy<Value = Layer> {
    (prop_oneof![Just("allow"), Just("deny")], rules()).prop_map(|(default, rules)| Layer { default, rules })
}

/// The layer as an operator writes it.
fn policy(layer: &Layer) -> Policy {
    let rules: Vec<Value> = layer.rules.iter().map(written).collect();
    let table = json!({"principals": {"*": {"host_function": {"default": layer.default, "rules": rules}}}});
    let config: Config = serde_json::from_value(table).unwrap();
    Policy::compile(&config).unwrap()
}

fn written(rule: &Rule) -> Value {
    let mut table = json!({"mode": rule.mode, "patterns": rule.patterns, "operations": rule.operations});
    if let Some(maximum) = rule.when {
        table["when"] = json!({"properties": {"n": {"maximum": maximum}}});
    }
    let calls = rule.calls.map(|(calls, per)| json!({"calls": calls, "per": per}));
    let sum = rule.sum.map(|(max, per)| json!({"sum": "/price", "max": format!("{}.{}", max / 10, max % 10), "per": per}));
    table["budget"] = calls.into_iter().chain(sum).collect();
    if rule.mode == "ask" {
        table["ask"] = json!({"approvers": ["uid:0"]});
    }
    table
}

/// Star by star, letter by letter.
fn glob(pattern: &[char], name: &[char]) -> bool {
    match (pattern, name) {
        ([], rest) => rest.is_empty(),
        (['*', '*', rest @ ..], _) => (0..=name.len()).any(|taken| glob(rest, &name[taken..])),
        (['*', rest @ ..], _) => (0..=name.len())
            .take_while(|taken| !name[..*taken].iter().any(|c| matches!(c, '.' | ':')))
            .any(|taken| glob(rest, &name[taken..])),
        ([letter, rest @ ..], [first, others @ ..]) => letter == first && glob(rest, others),
        _ => false,
    }
}

fn named(pattern: &str, (collection, function): (&str, &str)) -> bool {
    let name = match pattern.contains(':') {
        true => format!("{}:{}", names::kebab(collection), names::kebab(function)),
        false => format!("{collection}.{function}"),
    };
    glob(&pattern.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>())
}

/// What ran, for the reference: when, in which evaluation, which function, by which rule, how much.
#[derive(Default)]
struct History(Vec<(u64, usize, usize, usize, u64)>);

/// One call.
#[derive(Clone, Debug)]
struct Call {
    which: usize,
    lists: bool,
    n: i64,
    tenths: u64,
    /// Before it: nothing, a new evaluation, or a time in which every minute is over.
    before: u8,
}

impl History {
    /// allow, ask, deny or budget; and by which rule.
    fn decide(&self, layer: &Layer, call: &Call, now: u64, evaluation: usize) -> (&'static str, Option<usize>) {
        let mut answer = (layer.default, None);
        for (index, rule) in layer.rules.iter().enumerate() {
            let operation = if call.lists { "list" } else { "invoke" };
            let about = rule.operations.contains(&operation) && rule.patterns.iter().any(|pattern| named(pattern, FUNCTIONS[call.which]));
            if about && rule.when.is_none_or(|maximum| call.n <= maximum) {
                answer = (rule.mode, Some(index));
            }
        }
        let (word, Some(index)) = answer else { return answer };
        if word == "deny" {
            return answer;
        }
        if call.lists {
            // Nobody is asked whether a function may be seen, and nothing is counted.
            return ("allow", Some(index));
        }
        // Rules with the same condition count the same calls of a function together.
        let rule = &layer.rules[index];
        let counted = |per: &str, has: fn(&Rule) -> Option<(u64, &'static str)>| {
            let together =
                |other: usize| layer.rules[other].when == rule.when && has(&layer.rules[other]).is_some_and(|(_, own)| own == per);
            let of_it = self.0.iter().filter(move |(_, _, which, by, _)| *which == call.which && together(*by));
            let held = of_it.filter(|(at, own, ..)| if per == "minute" { at + MINUTE > now } else { *own == evaluation });
            held.map(|(.., tenths)| *tenths).collect::<Vec<u64>>()
        };
        let calls_left = rule.calls.is_none_or(|(max, per)| (counted(per, |rule| rule.calls).len() as u64) < max);
        let sum_left = rule.sum.is_none_or(|(max, per)| counted(per, |rule| rule.sum).iter().sum::<u64>() + call.tenths <= max);
        if calls_left && sum_left { answer } else { ("budget", Some(index)) }
    }
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let call = (0usize..4, proptest::bool::weighted(0.2), 0i64..10, 0u64..12, 0u8..6).prop_map(|(which, lists, n, tenths, before)| Call {
        which,
        lists,
        n,
        tenths,
        before,
    });
    proptest::collection::vec(call, 1..25)
}

#[derive(Clone, Debug)]
struct Hand(Arc<AtomicU64>);

impl Clock for Hand {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_call_runs_exactly_when_the_reference_says_so_budgets_and_approvals_included(layer in layer(), calls in calls()) {
        let hand = Hand(Arc::new(AtomicU64::new(1_800_000_000_000)));
        let counters = Arc::new(Counters::in_memory(Box::new(hand.clone())));
        let scopes = policy(&layer).grant(&Facts { uid: 7, ..Facts::default() }).functions.clone();
        let (mut counts, mut evaluation, mut history) = (counters.for_evaluation(), 0, History::default());
        for call in calls {
            if call.before == 1 {
                (counts, evaluation) = (counters.for_evaluation(), evaluation + 1);
            } else if call.before == 2 {
                hand.0.fetch_add(2 * MINUTE, Ordering::SeqCst);
            }
            let now = hand.now_ms();
            let expected = history.decide(&layer, &call, now, evaluation);
            let text = format!("{{\"n\":{},\"price\":{}.{}}}", call.n, call.tenths / 10, call.tenths % 10);
            let read = Read::new(&text, &scopes).unwrap();
            let (collection, function) = FUNCTIONS[call.which];
            let operation = if call.lists { Operation::List } else { Operation::Invoke };
            let question = Question { collection, function, operation, input: Some(read.input()) };
            let decided = match decide(&scopes, &question) {
                Err(refusal) => ("deny", refusal.rule),
                Ok(permit) => match counts.take(permit.charges()).map(Taken::spent) {
                    Ok(()) => (if permit.ask().is_some() { "ask" } else { "allow" }, permit.rule().to_owned()),
                    Err(_) => ("budget", permit.rule().to_owned()),
                },
            };
            let place = expected.1.map_or("operator:default".to_owned(), |index| format!("operator:rules[{index}]"));
            prop_assert_eq!((expected.0, place), decided, "{:?}", call);
            if let (("allow" | "ask", Some(index)), false) = (expected, call.lists) {
                history.0.push((now, evaluation, call.which, index, call.tenths));
            }
        }
    }

    #[test]
    fn another_spelling_of_a_name_is_no_name_or_another_function(which in 0usize..4, at in 0usize..20, trick in 0usize..10) {
        let (collection, function) = FUNCTIONS[which];
        let name = format!("{collection}.{function}");
        let at = at % name.len();
        let letter = name[at..=at].to_owned();
        let with = |put: String| format!("{}{put}{}", &name[..at], &name[at + 1..]);
        let upper = if letter.to_uppercase() == letter { letter.to_lowercase() } else { letter.to_uppercase() };
        let spelt = match trick {
            0 => with(upper),
            // The same letter, wide.
            1 => with(char::from_u32(0xFEE0 + u32::from(letter.as_bytes()[0])).unwrap().to_string()),
            2 => with(format!("%{:02x}", letter.as_bytes()[0])),
            3 => with(format!("{letter}\u{200d}")),
            4 => with(format!("{letter}\u{0301}")),
            5 => format!("./{name}"),
            6 => format!("{collection}.x/../{function}"),
            7 => format!("{name}."),
            8 => format!("{collection}..{function}"),
            _ => format!("{name}\0"),
        };
        prop_assume!(spelt != name);
        let allowing = |pattern: &str| {
            let table = json!({"principals": {"*": {"host_function": {"rules": [{"mode": "allow", "patterns": [pattern]}]}}}});
            Policy::compile(&serde_json::from_value(table).unwrap())
        };
        let allows = |policy: &Policy, collection: &str, function: &str| {
            let scopes = policy.grant(&Facts::default()).functions.clone();
            decide(&scopes, &Question { collection, function, operation: Operation::Invoke, input: None }).is_ok()
        };
        // As what is called: where it is a name at all, it is not the one that the rule is about.
        let parts = spelt.split_once('.');
        if let Some((first, rest)) = parts
            && names::check_collection(first).is_ok()
            && names::check_function(rest).is_ok()
        {
            prop_assert!(!allows(&allowing(&name).unwrap(), first, rest), "{spelt}");
        }
        // As what a rule says: it does not load, or is not about the function.
        if let Ok(policy) = allowing(&spelt) {
            prop_assert!(!allows(&policy, collection, function), "{spelt}");
        }
        // The command spelling is the one alias there is, and says the same.
        let command = format!("{}:{}", names::kebab(collection), names::kebab(function));
        prop_assert!(allows(&allowing(&command).unwrap(), collection, function));
    }
}
