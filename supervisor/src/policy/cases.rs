//! Cases of a policy: who calls what, and what is to be decided.
//!
//! Owns the file of cases and running it with the very decision and counts that a real
//! call goes through, on a clock of its own. Never runs a function.

use super::clock::Clock;
use super::counters::{Counters, EvaluationCounts, Short};
use super::explain::{self, Name, Read};
use super::selector::{Accounts as _, NamedAccounts};
use super::tool::{ToolFault, full_name, functions, loaded};
use super::{Facts, Policy};
use crate::host::configured::Catalogue;
use crate::host::permission::{Kind, Question, condition, decide};
use crate::survey::Whose;
use brig_protocol::client::Operation;
use brig_protocol::escape::ShowPath as _;
use brig_protocol::escape::escaped;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Longest file of cases, in bytes.
const FILE_BYTES: u64 = 4 * 1024 * 1024;
/// Most repetitions of one step.
const TIMES: u32 = 10_000;
/// When all cases begin, in milliseconds since the epoch.
const START_MS: u64 = 1_800_000_000_000;

/// A file of cases.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cases {
    /// The configuration, relative to this file.
    policy: PathBuf,
    /// Ids of users that need not be on this system.
    #[serde(default)]
    users: BTreeMap<String, u32>,
    /// Ids of groups that need not be on this system.
    #[serde(default)]
    groups: BTreeMap<String, u32>,
    /// Who calls, by a name for this file.
    #[serde(default)]
    principals: BTreeMap<String, Who>,
    /// The cases.
    cases: Vec<Case>,
}

/// What the kernel would say of a principal.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Who {
    uid: Id,
    gid: Option<Id>,
    #[serde(default)]
    groups: Vec<Id>,
    unit: Option<String>,
}

/// An id, or the name of one.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Id {
    Number(u32),
    Name(String),
}

/// One case: a call, or several in a row that share what budgets count.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(flatten)]
    call: Call,
    #[serde(default)]
    steps: Vec<Step>,
}

/// A call and what is expected of it.
#[derive(Clone, Debug, Default, Deserialize)]
struct Call {
    principal: Option<String>,
    function: Option<String>,
    input: Option<toml::Value>,
    callback: Option<bool>,
    operation: Option<Operation>,
    expect: Option<Expected>,
    rule: Option<String>,
    section: Option<String>,
}

/// One of several calls; what it leaves out is as in its case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    #[serde(flatten)]
    call: Call,
    /// Time since the step before, as in `90s`, `61m`, `2h`, `1d`.
    after: Option<String>,
    /// So often.
    #[serde(default = "once")]
    times: u32,
    /// In an evaluation of its own from here on.
    #[serde(default)]
    new_evaluation: bool,
}

const fn once() -> u32 {
    1
}

/// What may be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Expected {
    Allow,
    Deny,
    Ask,
    /// A budget is used up.
    Budget,
    /// The input can not be counted.
    Invalid,
}

impl Expected {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Budget => "budget",
            Self::Invalid => "invalid",
        }
    }
}

impl Cases {
    /// The names of ids in it.
    pub(super) fn accounts(&self) -> NamedAccounts {
        NamedAccounts { users: self.users.clone(), groups: self.groups.clone() }
    }

    fn facts(&self, name: &str) -> Result<Facts, String> {
        let accounts = self.accounts();
        let who = self.principals.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.principals.keys().map(String::as_str).collect();
            format!("there is no [principals.{}]; there are {}", escaped(name, 100), known.join(", "))
        })?;
        let group = |id: &Id| match id {
            Id::Number(id) => Ok(*id),
            Id::Name(name) => accounts.gid(name).ok_or_else(|| format!("there is no group {name:?}; add it to [groups]")),
        };
        let uid = match &who.uid {
            Id::Number(id) => *id,
            Id::Name(name) => accounts.uid(name).ok_or_else(|| format!("there is no user {name:?}; add it to [users]"))?,
        };
        let gid = who.gid.as_ref().map(group).transpose()?.unwrap_or(u32::MAX);
        let groups = who.groups.iter().map(group).collect::<Result<_, _>>()?;
        Ok(Facts { uid, gid, groups, unit: who.unit.clone(), unseen: None })
    }
}

/// Reads a file of cases.
///
/// # Errors
/// What is wrong with it, and where.
pub(super) fn read(path: &Path) -> Result<Cases, ToolFault> {
    let fault = |what: &dyn std::fmt::Display| ToolFault::Asked(format!("{}: {what}", path.shown()));
    let length = std::fs::metadata(path).map_err(|wrong| fault(&wrong))?.len();
    if length > FILE_BYTES {
        return Err(fault(&format!("it has {length} bytes; at most {FILE_BYTES} are read")));
    }
    let text = std::fs::read_to_string(path).map_err(|wrong| fault(&wrong))?;
    toml::from_str(&text).map_err(|wrong| fault(&format!("not a file of cases\n{wrong}")))
}

/// Runs all cases of a file: what to print, and whether all were as expected.
///
/// # Errors
/// The file, or its policy, can not be used.
pub(super) fn run(path: &Path) -> Result<(String, bool), ToolFault> {
    let cases = read(path)?;
    let policy = path.parent().unwrap_or(Path::new("")).join(&cases.policy);
    let file = policy;
    let (_, config, policy) = loaded(&file, &cases.accounts())?;
    let catalogue = functions(&config, &file, &Whose::default());
    let at = Judge { cases: &cases, policy: &policy, catalogue: catalogue.as_ref() };
    let mut text = String::new();
    let mut wrong = 0usize;
    for case in &cases.cases {
        let failed = run_case(at, case).map_err(|fault| ToolFault::Asked(format!("{}: case {:?}: {fault}", path.shown(), case.name)))?;
        for difference in &failed {
            writeln!(text, "not as expected: {}\n{difference}", escaped(&case.name, 200)).ok();
        }
        wrong += usize::from(!failed.is_empty());
    }
    let all = cases.cases.len();
    match wrong {
        0 => writeln!(text, "{all} {} as expected", if all == 1 { "case" } else { "cases" }).ok(),
        wrong => writeln!(text, "{wrong} of {all} cases are not as expected").ok(),
    };
    Ok((text, wrong == 0))
}

/// A clock that cases put forward.
#[derive(Clone, Debug)]
struct Hand(Arc<AtomicU64>);

impl Clock for Hand {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What cases are held against.
#[derive(Clone, Copy)]
struct Judge<'a> {
    cases: &'a Cases,
    policy: &'a Policy,
    /// Where there is a `functions.d` beside the policy.
    catalogue: Option<&'a Catalogue>,
}

fn run_case(at: Judge<'_>, case: &Case) -> Result<Vec<String>, String> {
    let hand = Hand(Arc::new(AtomicU64::new(START_MS)));
    let counters = Arc::new(Counters::in_memory(Box::new(hand.clone())));
    let alone = [Step { call: Call::default(), after: None, times: 1, new_evaluation: false }];
    let steps = if case.steps.is_empty() { &alone[..] } else { &case.steps };
    let mut counts = counters.for_evaluation();
    let mut differences = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        if !(1..=TIMES).contains(&step.times) {
            return Err(format!("steps[{number}].times is {}; it must be between 1 and {TIMES}", step.times));
        }
        let waited = step.after.as_deref().map(duration_ms).transpose().map_err(|fault| format!("steps[{number}].after: {fault}"))?;
        hand.0.fetch_add(waited.unwrap_or(0), Ordering::Relaxed);
        if step.new_evaluation {
            counts = counters.for_evaluation();
        }
        let call = step.call.or(&case.call);
        for time in 1..=step.times {
            let decided = call.decided(at, &counts)?;
            if let Some(difference) = call.difference(&decided)? {
                let place = if case.steps.is_empty() { String::new() } else { format!("  in steps[{number}], time {time}\n") };
                differences.push(format!("{place}{difference}"));
                break;
            }
        }
    }
    Ok(differences)
}

/// What was decided about a call.
struct Decided {
    word: &'static str,
    rule: String,
    section: String,
    why: Option<String>,
}

impl Call {
    fn or(&self, base: &Self) -> Self {
        let Self { principal, function, input, callback, operation, expect, rule, section } = self.clone();
        Self {
            principal: principal.or_else(|| base.principal.clone()),
            function: function.or_else(|| base.function.clone()),
            input: input.or_else(|| base.input.clone()),
            callback: callback.or(base.callback),
            operation: operation.or(base.operation),
            rule: rule.or_else(|| if expect.is_some() { None } else { base.rule.clone() }),
            expect: expect.or(base.expect),
            section: section.or_else(|| base.section.clone()),
        }
    }

    fn decided(&self, at: Judge<'_>, counts: &Arc<EvaluationCounts>) -> Result<Decided, String> {
        let principal = self.principal.as_deref().ok_or("\"principal\" is missing: a name of [principals]")?;
        let function = self.function.as_deref().ok_or("\"function\" is missing, as in \"orders.list\"")?;
        let grant = at.policy.grant(&at.cases.facts(principal)?);
        let kind = if self.callback == Some(true) { Kind::Callbacks } else { Kind::Functions };
        let function = &full_name(at.catalogue.filter(|_| kind == Kind::Functions), function);
        let scopes = explain::scopes(&grant, kind);
        let name = Name::parse(function)?;
        let text = match &self.input {
            None => "{}".to_owned(),
            // Text is JSON as it is written: for numbers that TOML can not hold exactly.
            Some(toml::Value::String(text)) => text.clone(),
            Some(table) => condition::json("input", table).map_err(|fault| fault.to_string())?.to_string(),
        };
        let input = Read::new(&text, scopes).map_err(|fault| format!("the input {fault}"))?;
        let operation = self.operation.unwrap_or(Operation::Invoke);
        let question = Question { collection: name.collection, function: name.function, operation, input: Some(input.input()) };
        let decided = decide(scopes, &question);
        let word = explain::word(&decided);
        let section = grant.section.to_string();
        let permit = match decided {
            Err(refusal) => {
                let why = Some(refusal.sentence(function));
                return Ok(Decided { word, rule: refusal.rule, section, why });
            }
            Ok(permit) => permit,
        };
        let rule = permit.rule().to_owned();
        match counts.take(permit.charges()) {
            Ok(taken) => {
                taken.spent();
                Ok(Decided { word, rule, section, why: permit.ask().and_then(|terms| terms.why.clone()) })
            }
            Err(short @ (Short::Used { .. } | Short::Crowded | Short::Unkept)) => {
                Ok(Decided { word: "budget", rule, section, why: Some(short.sentence(function)) })
            }
        }
    }

    /// What is not as expected.
    fn difference(&self, decided: &Decided) -> Result<Option<String>, String> {
        let expected = self.expect.ok_or("\"expect\" is missing: allow, deny, ask, budget or invalid")?;
        let mut text = String::new();
        let mut compare = |what: &str, expected: &str, given: &str| {
            writeln!(text, "  {what}\n    - expected {expected}\n    + decided  {given}").ok();
        };
        if expected.as_str() != decided.word {
            compare("decision", expected.as_str(), decided.word);
        }
        let rule = decided.rule.strip_prefix("operator:").unwrap_or(&decided.rule);
        if let Some(expected) = self.rule.as_deref().filter(|expected| *expected != rule) {
            compare("rule", expected, rule);
        }
        if let Some(expected) = self.section.as_deref().filter(|expected| *expected != decided.section) {
            compare("section", expected, &decided.section);
        }
        if text.is_empty() {
            return Ok(None);
        }
        if let Some(why) = &decided.why {
            writeln!(text, "  {}", escaped(why, 500)).ok();
        }
        Ok(Some(text.trim_end().to_owned()))
    }
}

fn duration_ms(text: &str) -> Result<u64, String> {
    let right = || format!("{:?} is no time; write it as in \"90s\", \"61m\", \"2h\" or \"1d\"", escaped(text, 50));
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(right)?;
    let unit = match unit {
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(right()),
    };
    let number: u64 = number.parse().map_err(|_| right())?;
    number.checked_mul(unit).filter(|time| *time <= 86_400_000 * 366).ok_or_else(right)
}
