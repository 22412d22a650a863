//! Narrowing never widens: not by a condition, a budget, who has to agree, another section,
//! a ceiling, nor by a policy that came later.

use super::*;
use crate::host::permission::tests::load_for;
use crate::host::permission::{Origin, Permit, Refusal, Scope, ScopeSet};
use brig_protocol::limits::{LIMITS, Limits, RequestedLimits};

/// Sections of one policy: name, scope, and calls in any minute.
fn sections(all: &[(&str, &Layer, Option<u64>)]) -> Policy {
    let section = |(name, layer, calls): &(&str, &Layer, Option<u64>)| {
        let rules: Vec<Value> = layer.rules.iter().map(written).collect();
        let mut table = json!({"host_function": {"default": layer.default, "rules": rules}});
        if let Some(calls) = calls {
            table["quotas"] = json!({"calls_per_minute": calls});
        }
        ((*name).to_owned(), table)
    };
    let table: serde_json::Map<String, Value> = all.iter().map(section).collect();
    Policy::compile(&serde_json::from_value(json!({"principals": table})).unwrap()).unwrap()
}

fn scopes(policy: &Policy) -> ScopeSet {
    policy.grant(&Facts { uid: 7, ..Facts::default() }).functions.clone()
}

/// The layer as a request writes it: it has nobody to ask and no budgets.
fn requested(layer: &Layer) -> Scope {
    let rule = |rule: &Rule| {
        let mode = if rule.mode == "ask" { "deny" } else { rule.mode };
        let mut table = json!({"mode": mode, "patterns": rule.patterns, "operations": rule.operations});
        if let Some(maximum) = rule.when {
            table["when"] = json!({"properties": {"n": {"maximum": maximum}}});
        }
        table
    };
    let rules: Vec<Value> = layer.rules.iter().map(rule).collect();
    load_for(&json!({"default": layer.default, "rules": rules}), FUNCTIONS).unwrap()
}

/// What is wrong with a yes beside that of the scopes that it narrows.
fn widened(narrow: &Result<Permit, Refusal>, wide: &Result<Permit, Refusal>) -> Option<&'static str> {
    let Ok(narrow) = narrow else { return None };
    let Ok(wide) = wide else { return Some("it allows what is denied") };
    if narrow.ask() != wide.ask() {
        return Some("somebody else is asked, or nobody");
    }
    let takes_less = wide.charges().iter().any(|charge| !narrow.charges().contains(charge));
    takes_less.then_some("it takes less of a budget")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn narrowing_never_widens_what_is_allowed_asked_and_counted(
        (own, everybody, later, request) in (layer(), layer(), layer(), layer()),
        quota in proptest::option::of(1u64..6),
        calls in calls(),
    ) {
        let hand = Hand(Arc::new(AtomicU64::new(1_800_000_000_000)));
        let counters = Arc::new(Counters::in_memory(Box::new(hand.clone())));
        let mut counts = counters.for_evaluation();
        let wide = scopes(&sections(&[("uid:7", &own, quota), ("*", &everybody, None)]));
        let alone = scopes(&sections(&[("uid:7", &own, quota)]));
        let asked = ScopeSet::default().and(Origin::Request, requested(&request));
        let narrow = wide.clone().and(Origin::Request, requested(&request));
        let after = scopes(&sections(&[("uid:7", &later, quota)]));
        let under = narrow.under(&after);
        for call in calls {
            if call.before == 1 {
                counts = counters.for_evaluation();
            } else if call.before == 2 {
                hand.0.fetch_add(2 * MINUTE, Ordering::SeqCst);
            }
            let text = format!("{{\"n\":{},\"price\":{}.{}}}", call.n, call.tenths / 10, call.tenths % 10);
            let read = Read::new(&text, &narrow).unwrap();
            let (collection, function) = FUNCTIONS[call.which];
            let operation = if call.lists { Operation::List } else { Operation::Invoke };
            let question = Question { collection, function, operation, input: Some(read.input()) };
            let decided = |scopes: &ScopeSet| decide(scopes, &question);
            // The section that applies is alone: another one neither gives nor takes.
            prop_assert_eq!(decided(&wide), decided(&alone));
            prop_assert_eq!(widened(&decided(&narrow), &decided(&wide)), None, "{:?}", call);
            // A policy that came later is narrowed by the same request.
            prop_assert_eq!(widened(&decided(&under), &decided(&after)), None, "{:?}", call);
            prop_assert!(decided(&asked).is_ok() || (decided(&narrow).is_err() && decided(&under).is_err()), "{:?}", call);
            if let (Ok(narrow), Ok(wide)) = (decided(&narrow), decided(&wide)) {
                // Given back at once: the question is only whether there is so much.
                let would_run = counts.take(wide.charges()).is_ok();
                if let Ok(taken) = counts.take(narrow.charges()) {
                    prop_assert!(would_run, "{:?}", call);
                    taken.spent();
                }
            }
        }
    }

    #[test]
    fn a_ceiling_of_a_section_and_a_limit_of_a_request_only_lower(
        row in 0..LIMITS.len(), (base, own, asked) in (any::<u64>(), any::<u64>(), any::<u64>()), close in any::<bool>(),
    ) {
        let row_of = LIMITS[row];
        let least = row_of.minimum;
        // Near each other, or anywhere in the range.
        let within = |number: u64| least + number % if close { 3 } else { row_of.maximum - least + 1 };
        let (base, own, asked) = (within(base), within(own), within(asked));
        let key = row_of.setting.strip_prefix("limits.").unwrap();
        let config = json!({"limits": {key: base}, "principals": {"uid:7": {"limits": {key: own}}, "*": {}}});
        let config: Config = serde_json::from_value(config).unwrap();
        let compiled = Policy::compile(&config);
        prop_assert_eq!(compiled.is_ok(), own <= base);
        let Ok(policy) = compiled else { return Ok(()) };
        let ceilings = |uid| policy.grant(&Facts { uid, ..Facts::default() }).ceilings;
        prop_assert_eq!((ceilings(7).values()[row], ceilings(8).values()[row]), (own, base));
        let request: RequestedLimits = serde_json::from_value(json!({row_of.name: asked})).unwrap();
        let limits: Limits = ceilings(7).narrowed(&request).unwrap().limits;
        prop_assert_eq!(limits.values()[row], asked.min(own));
        for (place, (limit, ceiling)) in limits.values().into_iter().zip(ceilings(7).values()).enumerate() {
            prop_assert!(place == row || limit == ceiling);
        }
    }
}
