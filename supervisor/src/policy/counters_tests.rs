//! Budgets are never exceeded, whatever comes at once and whatever the clock does.
#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use proptest::prelude::*;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A clock that goes where a test puts it.
#[derive(Clone, Debug, Default)]
struct Hand(Arc<AtomicU64>);

impl Clock for Hand {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

impl Hand {
    fn at(&self, now: u64) {
        self.0.store(now, Ordering::SeqCst);
    }
}

type Rows = BTreeMap<(u32, Arc<str>, u64), SavedCount>;

/// A store as a database would be one.
#[derive(Clone, Debug, Default)]
struct Shelf {
    rows: Arc<Mutex<Rows>>,
    broken: Arc<AtomicBool>,
    saves: Arc<AtomicU64>,
}

impl CounterStore for Shelf {
    fn load_all(&self, now_ms: u64) -> Result<Vec<SavedCount>, StoreFault> {
        Ok(self.rows.lock().unwrap().values().filter(|row| row.until_ms > now_ms).cloned().collect())
    }

    fn save(&self, changes: &[SavedCount]) -> Result<(), StoreFault> {
        if self.broken.load(Ordering::SeqCst) {
            return Err(StoreFault("the disk is full".to_owned()));
        }
        self.saves.fetch_add(1, Ordering::SeqCst);
        for change in changes {
            self.rows.lock().unwrap().insert((change.uid, Arc::clone(&change.key), change.from_ms), change.clone());
        }
        Ok(())
    }
}

fn charge(key: &str, amount: &str, max: &str, per: Window) -> Charge {
    let limit = format!("{max} per {}", per.as_str());
    Charge { uid: 1, key: key.into(), amount: Amount::parse(amount).unwrap(), max: Amount::parse(max).unwrap(), per, limit: limit.into() }
}

fn counters(clock: &Hand) -> Arc<Counters> {
    Arc::new(Counters::in_memory(Box::new(clock.clone())))
}

fn spend(counters: &Arc<Counters>, charges: &[Charge]) -> Result<(), Short> {
    counters.for_evaluation().take(charges).map(Taken::spent)
}

const START: u64 = 1_800_000_000_000;

#[test]
fn what_could_be_taken_is_what_taking_says_also_within_one_evaluation_and_takes_nothing() {
    let clock = Hand::default();
    clock.at(START);
    let counters = counters(&clock);
    let (own, hourly) = (charge("a", "1", "2", Window::Evaluation), charge("b", "1", "3", Window::Hour));
    let evaluation = counters.for_evaluation();
    let both = [own.clone(), hourly.clone()];
    for _ in 0..2 {
        for _ in 0..5 {
            evaluation.could_take(&both).unwrap();
        }
        evaluation.take(&both).map(Taken::spent).unwrap();
    }
    // Its own count is used up, that of the hour is not; another evaluation has its own.
    let short = evaluation.could_take(&both).unwrap_err();
    assert_eq!(Some(&short), evaluation.take(&both).err().as_ref());
    assert!(matches!(&short, Short::Used { limit, free_in: None, alone: false } if &**limit == "2 per evaluation"), "{short:?}");
    evaluation.could_take(std::slice::from_ref(&hourly)).unwrap();
    counters.for_evaluation().could_take(&both).unwrap();
    // Charges of one call count together, of either kind.
    for twice in [[own.clone(), own], [hourly.clone(), hourly]] {
        let fresh = counters.for_evaluation();
        let could = fresh.could_take(&twice);
        assert_eq!(could.clone().err(), fresh.take(&twice).err(), "{could:?}");
    }
    assert!(counters.for_evaluation().could_take(&[charge("b", "2", "3", Window::Hour)]).is_err());
}

#[test]
fn a_budget_is_used_up_and_says_when_it_is_free_again() {
    let clock = Hand::default();
    clock.at(START);
    let counters = counters(&clock);
    let call = charge("a", "1", "3", Window::Hour);
    for _ in 0..3 {
        spend(&counters, std::slice::from_ref(&call)).unwrap();
    }
    let short = spend(&counters, std::slice::from_ref(&call)).unwrap_err();
    assert_eq!(
        short.sentence("store.refund"),
        "store.refund: the call did not run: the budget of 3 per hour is used up; it is free again in 3660 s"
    );
    assert_eq!(short.retry_after_ms(), Some(3_660_000));
    clock.at(START + 3_659_999);
    assert_eq!(spend(&counters, std::slice::from_ref(&call)).unwrap_err().retry_after_ms(), Some(1));
    clock.at(START + 3_660_000);
    spend(&counters, std::slice::from_ref(&call)).unwrap();
    assert!(spend(&counters, &[Charge { uid: 2, ..call }]).is_ok(), "another user has its own");
}

#[test]
fn all_of_it_is_taken_or_nothing() {
    let clock = Hand::default();
    clock.at(START);
    let counters = counters(&clock);
    let (many, few) = (charge("many", "1", "10", Window::Hour), charge("few", "60", "100", Window::Day));
    let own = charge("own", "1", "5", Window::Evaluation);
    let evaluation = counters.for_evaluation();
    evaluation.take(&[own.clone(), many.clone(), few.clone()]).unwrap().spent();
    for _ in 0..20 {
        assert!(matches!(evaluation.take(&[own.clone(), many.clone(), few.clone()]), Err(Short::Used { .. })));
    }
    assert_eq!(counters.left(&many).left.to_string(), "9");
    assert_eq!(counters.left(&few).left.to_string(), "40");
    for _ in 0..4 {
        evaluation.take(std::slice::from_ref(&own)).unwrap().spent();
    }
    let short = evaluation.take(std::slice::from_ref(&own)).unwrap_err();
    assert_eq!(short.retry_after_ms(), None, "an evaluation's budget does not come back");
    counters.for_evaluation().take(&[own]).unwrap().spent();
}

#[test]
fn what_did_not_run_gives_back_and_what_began_does_not() {
    let clock = Hand::default();
    clock.at(START);
    let counters = counters(&clock);
    let call = [charge("a", "1", "1", Window::Hour), charge("b", "0.1", "0.1", Window::Evaluation)];
    let evaluation = counters.for_evaluation();
    drop(evaluation.take(&call).unwrap());
    evaluation.take(&call).unwrap().spent();
    assert!(evaluation.take(&call).is_err());
}

#[test]
fn a_call_that_is_over_its_budget_alone_is_told_so() {
    let counters = counters(&Hand::default());
    let short = spend(&counters, &[charge("a", "500.01", "500", Window::Day)]).unwrap_err();
    assert!(short.sentence("f").contains("it alone is over") && short.retry_after_ms().is_none());
}

#[test]
fn a_clock_that_goes_back_frees_nothing() {
    let clock = Hand::default();
    clock.at(START);
    let shelf = Shelf::default();
    let counters = Arc::new(Counters::kept_in(Box::new(shelf.clone()), Box::new(clock.clone())).unwrap());
    let call = charge("a", "1", "2", Window::Minute);
    spend(&counters, std::slice::from_ref(&call)).unwrap();
    for back in [START - 1, START - 86_400_000, 0] {
        clock.at(back);
        let again = Arc::new(Counters::kept_in(Box::new(shelf.clone()), Box::new(clock.clone())).unwrap());
        assert_eq!(again.left(&call).left.to_string(), "1", "{back}");
    }
    let again = Arc::new(Counters::kept_in(Box::new(shelf), Box::new(clock)).unwrap());
    spend(&again, std::slice::from_ref(&call)).unwrap();
    assert!(spend(&again, &[call]).is_err());
}

#[test]
fn a_restart_forgets_nothing_that_holds_and_keeps_nothing_that_does_not() {
    let clock = Hand::default();
    clock.at(START);
    let shelf = Shelf::default();
    let start = || Arc::new(Counters::kept_in(Box::new(shelf.clone()), Box::new(clock.clone())).unwrap());
    let call = [charge("a", "0.1", "0.3", Window::Hour), charge("own", "1", "100", Window::Evaluation)];
    for used in 1..=3 {
        spend(&start(), &call).unwrap();
        assert_eq!(shelf.saves.load(Ordering::SeqCst), used, "kept before it is given");
    }
    assert!(spend(&start(), &call).is_err());
    assert_eq!(shelf.rows.lock().unwrap().len(), 1, "what an evaluation counts is not kept");
    clock.at(START + 3_660_000);
    assert_eq!(start().left(&call[0]).left.to_string(), "0.3");
}

#[test]
fn what_can_not_be_kept_is_not_given() {
    let clock = Hand::default();
    clock.at(START);
    let shelf = Shelf::default();
    let counters = Arc::new(Counters::kept_in(Box::new(shelf.clone()), Box::new(clock)).unwrap());
    let call = charge("a", "1", "1", Window::Hour);
    shelf.broken.store(true, Ordering::SeqCst);
    assert_eq!(spend(&counters, std::slice::from_ref(&call)), Err(Short::Unkept));
    shelf.broken.store(false, Ordering::SeqCst);
    spend(&counters, &[call]).unwrap();
}

#[test]
fn a_user_with_many_names_takes_no_memory_without_end_and_no_room_of_others() {
    let clock = Hand::default();
    clock.at(START);
    let counters = counters(&clock);
    let one = |number: usize| charge(&format!("k{number}"), "1", "1", Window::Minute);
    for number in 0..COUNTS_EACH {
        spend(&counters, &[one(number)]).unwrap();
    }
    assert_eq!(spend(&counters, &[one(COUNTS_EACH)]), Err(Short::Crowded));
    spend(&counters, &[Charge { uid: 2, ..one(COUNTS_EACH) }]).unwrap();
    clock.at(START + 61_000);
    spend(&counters, &[one(COUNTS_EACH)]).unwrap();
}

#[test]
fn threads_that_race_for_a_budget_get_it_exactly_once() {
    let clock = Hand::default();
    clock.at(START);
    let counters = counters(&clock);
    let charges = [charge("a", "1", "50", Window::Hour), charge("sum", "0.1", "3.7", Window::Day)];
    let (ready, got) = (Barrier::new(8), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for worker in 0..8u64 {
            let (counters, charges, ready, got) = (&counters, &charges, &ready, &got);
            scope.spawn(move || {
                let evaluation = counters.for_evaluation();
                ready.wait();
                for turn in 0..200u64 {
                    let Ok(taken) = evaluation.take(charges) else { continue };
                    // Some calls do not run after all.
                    if (turn + worker) % 3 == 0 {
                        drop(taken);
                    } else {
                        taken.spent();
                        got.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    assert_eq!(got.load(Ordering::SeqCst), 37, "3.7 in tenths, to the last");
    assert_eq!(counters.left(&charges[1]).left, Amount::ZERO);
}

#[derive(Clone, Debug)]
struct Step {
    after: u64,
    amount: u64,
    runs: bool,
    restart: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0u64..20_000, 1u64..8, any::<bool>(), proptest::bool::weighted(0.1)).prop_map(|(after, amount, runs, restart)| Step {
        after,
        amount,
        runs,
        restart,
    });
    proptest::collection::vec(step, 1..80)
}

proptest! {
    #[test]
    fn no_window_ever_holds_more_than_its_budget_and_no_refusal_is_for_nothing(steps in steps(), max in 4u64..20) {
        let clock = Hand::default();
        let shelf = Shelf::default();
        let start = || Arc::new(Counters::kept_in(Box::new(shelf.clone()), Box::new(clock.clone())).unwrap());
        let (mut now, mut counters) = (START, start());
        let mut ran: Vec<(u64, u64)> = Vec::new();
        for step in steps {
            now += step.after;
            clock.at(now);
            if step.restart {
                counters = start();
            }
            let asked = charge("a", &step.amount.to_string(), &max.to_string(), Window::Minute);
            // What a plain reading says: everything that ran in the last minute.
            let within = |length: u64| ran.iter().filter(|(at, _)| at + length > now).map(|(_, amount)| amount).sum::<u64>();
            match counters.for_evaluation().take(std::slice::from_ref(&asked)) {
                Ok(taken) => {
                    prop_assert!(within(60_000) + step.amount <= max);
                    if step.runs {
                        taken.spent();
                        ran.push((now, step.amount));
                    }
                }
                Err(Short::Used { free_in, .. }) => {
                    prop_assert!(within(61_000) + step.amount > max, "refused though a slot more than a minute had room");
                    if let Some(wait) = free_in {
                        let (later, kept) = (Hand::default(), shelf.rows.lock().unwrap().clone());
                        later.at(now + u64::try_from(wait.as_millis()).unwrap());
                        let copy = Shelf { rows: Arc::new(Mutex::new(kept)), ..Shelf::default() };
                        let then = Arc::new(Counters::kept_in(Box::new(copy), Box::new(later)).unwrap());
                        prop_assert!(spend(&then, &[asked]).is_ok(), "it is free when it was said to be");
                    }
                }
                Err(other) => prop_assert!(false, "{other:?}"),
            }
        }
    }
}
