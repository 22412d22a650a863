//! What is wrong when none of several alternatives fits.
//!
//! Owns choosing the alternative that was most likely meant. Looks at each only
//! once and goes deep only into the chosen one, so the cost stays linear.

use super::explain::{Place, Problem, Walk};
use super::phrase::{kind, listed, quoted};
use serde_json::Value;

/// Most alternatives that are looked at.
const LOOKED_AT: usize = 40;
/// Most alternatives that are told one by one.
const TOLD: usize = 4;

/// Notes why none (or, for `oneOf`, more than one) of the alternatives fits.
pub(super) fn visit<'s>(walk: &mut Walk<'s>, keyword: &str, branches: &'s [Value], value: &Value, place: &Place, found: &mut Vec<Problem>) {
    let mut judged: Vec<(usize, &'s Value, Vec<Problem>)> = Vec::new();
    for (index, branch) in branches.iter().take(LOOKED_AT).enumerate() {
        if !walk.spend() {
            return;
        }
        judged.push((index, branch, shallow(walk, branch, value, place)));
    }
    let deep = choose(walk, &judged, value, place);
    match deep {
        Verdict::Fits(fitting) if keyword == "oneOf" && fitting.len() > 1 => {
            let numbers = listed(fitting.iter().map(|index| (index + 1).to_string()));
            let what = format!("fits more than one of {} alternatives (numbers {numbers}); it must fit exactly one", branches.len());
            found.push(Problem { path: place.path.clone(), what, weight: 3 });
        }
        Verdict::Fits(_) => {}
        Verdict::Closest(problems) => found.extend(problems),
        Verdict::Open => found.push(Problem { path: place.path.clone(), what: enumerated(&judged, value, place), weight: 3 }),
    }
}

enum Verdict {
    /// These alternatives have nothing wrong with them.
    Fits(Vec<usize>),
    /// One was clearly meant; this is wrong with it.
    Closest(Vec<Problem>),
    /// Any may have been meant.
    Open,
}

/// What is wrong with the value itself and its immediate members, references resolved.
fn shallow<'s>(walk: &mut Walk<'s>, branch: &'s Value, value: &Value, place: &Place) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut schema = branch;
    for _ in 0..8 {
        let Some(members) = schema.as_object() else {
            if schema == &Value::Bool(false) {
                found.push(Problem { path: place.path.clone(), what: "is not allowed here".to_owned(), weight: 10 });
            }
            return found;
        };
        walk.leaves.judge(members, value, place, &mut found);
        // Members that tell alternatives apart: {"type": {"const": "circle"}}.
        for (name, child) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let (Some(child), Some(own)) = (child.as_object(), value.get(name)) else { continue };
            if child.contains_key("const") || child.contains_key("enum") {
                let mut about = Vec::new();
                walk.leaves.judge(child, own, place, &mut about);
                found.extend(about.into_iter().map(|problem| Problem { weight: 6, ..problem }));
            }
        }
        match members.get("$ref").and_then(Value::as_str).and_then(|reference| walk.targets.resolve(reference).ok()) {
            Some(target) => schema = target,
            None => break,
        }
    }
    found
}

/// Goes deep into those that fit best at first sight.
fn choose<'s>(walk: &mut Walk<'s>, judged: &[(usize, &'s Value, Vec<Problem>)], value: &Value, place: &Place) -> Verdict {
    let score = |problems: &[Problem]| problems.iter().map(|problem| problem.weight).sum::<u32>();
    let best = judged.iter().map(|(_, _, problems)| score(problems)).min().unwrap_or_default();
    let near: Vec<&(usize, &Value, Vec<Problem>)> = judged.iter().filter(|(_, _, problems)| score(problems) == best).collect();
    let mut fitting = Vec::new();
    let mut closest: Option<Vec<Problem>> = None;
    let mut ties = 0usize;
    for (index, branch, _) in near.iter().take(TOLD) {
        let mut problems = Vec::new();
        walk.visit(branch, value, place, &mut problems);
        if problems.is_empty() {
            fitting.push(*index);
            continue;
        }
        match &closest {
            Some(other) if score(other) < score(&problems) => {}
            Some(other) if score(other) == score(&problems) => ties += 1,
            _ => {
                ties = 0;
                closest = Some(problems);
            }
        }
    }
    match closest {
        _ if !fitting.is_empty() => Verdict::Fits(fitting),
        Some(problems) if ties == 0 && (best < 10 || judged.len() == 1) => Verdict::Closest(problems),
        _ => Verdict::Open,
    }
}

/// Each alternative with the first thing that is wrong with it.
fn enumerated(judged: &[(usize, &Value, Vec<Problem>)], value: &Value, place: &Place) -> String {
    let kinds: Vec<&str> = judged.iter().filter_map(|(_, branch, _)| branch.get("type")?.as_str()).collect();
    let scalars = kinds.len() == judged.len() && judged.iter().all(|(_, _, problems)| problems.iter().any(|problem| problem.weight >= 10));
    if scalars {
        let shown = if place.secret { "a hidden value".to_owned() } else { format!("{} ({})", kind(value), super::phrase::scalar(value)) };
        return format!("must be one of these types: {}; {shown} was given", listed(kinds.iter().map(|kind| quoted(kind))));
    }
    let reasons = judged.iter().take(TOLD).map(|(index, branch, problems)| {
        let title = branch.get("title").and_then(Value::as_str).map(|title| format!(" {}", quoted(title))).unwrap_or_default();
        let reason = if problems.is_empty() {
            "does not fit in its parts".to_owned()
        } else {
            problems.iter().take(3).map(|problem| problem.what.as_str()).collect::<Vec<_>>().join(", ")
        };
        format!("({}){title} {reason}", index + 1)
    });
    let reasons = reasons.collect::<Vec<_>>().join("; ");
    let more = judged.len().saturating_sub(TOLD);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("fits none of {} alternatives: {reasons}{more}", judged.len())
}
