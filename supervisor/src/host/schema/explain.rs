//! What is wrong with a payload, so that its author can mend it.
//!
//! Owns one walk over schema and payload together, within a budget of steps: the
//! validator's own account of all errors takes time and memory exponential in the
//! depth of alternatives, so it is only ever asked about one subschema without its
//! subschemas. Never decides validity: that is [`super::Schema::is_valid`].

use super::alternatives;
use super::graph::Targets;
use super::leaf::Leaves;
use super::phrase::{kind, names, quoted};
use jsonschema::Draft;
use serde_json::{Map, Value};

/// Most problems that are told.
const TOLD: usize = 10;
/// Longest account, in bytes.
const ACCOUNT_BYTES: usize = 4_000;
/// Steps of the walk, in subschemas met by a value.
const BUDGET: u32 = 3_000;
/// Longest path that is told, in bytes.
const PATH_BYTES: usize = 200;
/// Deepest recursion of the walk; each level takes some KiB of stack.
const LEVELS: u32 = 100;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// Where, as `$.items[0].qty`.
    pub(super) path: String,
    /// A half sentence that follows the place.
    pub(super) what: String,
    /// How bad: a wrong kind of value says more against an alternative than a detail.
    pub(super) weight: u32,
}

/// The state of one walk.
pub(super) struct Walk<'s> {
    pub(super) targets: Targets<'s>,
    pub(super) leaves: Leaves,
    budget: u32,
}

/// Where the walk is in the payload.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) path: String,
    /// The value must not be shown.
    pub(super) secret: bool,
    /// How much deeper the walk may go: it is recursive.
    levels: u32,
}

impl Place {
    fn member(&self, name: &str) -> Self {
        let simple = !name.is_empty() && name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$');
        self.below(&if simple { format!(".{name}") } else { format!("[{}]", quoted(name)) })
    }

    fn item(&self, index: usize) -> Self {
        self.below(&format!("[{index}]"))
    }

    fn below(&self, step: &str) -> Self {
        let path = if self.path.len() > PATH_BYTES { self.path.clone() } else { format!("{}{step}", self.path) };
        Self { path, secret: self.secret, levels: self.levels }
    }

    /// The same place, one level further down in the walk.
    fn within(&self, secret: bool) -> Option<Self> {
        let levels = self.levels.checked_sub(1)?;
        Some(Self { path: self.path.clone(), secret: self.secret || secret, levels })
    }
}

/// The account of all problems, one a line.
pub(super) fn problems(schema: &Value, draft: Draft, payload: &Value, hidden: bool) -> String {
    let mut walk = Walk { targets: Targets::of(schema), leaves: Leaves::new(draft), budget: BUDGET };
    let mut found = Vec::new();
    walk.visit(schema, payload, &Place { path: "$".to_owned(), secret: hidden, levels: LEVELS }, &mut found);
    account(found)
}

fn account(mut found: Vec<Problem>) -> String {
    let mut seen = std::collections::HashSet::new();
    found.retain(|problem| seen.insert((problem.path.clone(), problem.what.clone())));
    if found.is_empty() {
        return "does not match its schema".to_owned();
    }
    let mut text = "does not match its schema:".to_owned();
    let mut told = 0usize;
    for problem in found.iter().take(TOLD) {
        let line = format!("\n- {} {}", problem.path, problem.what);
        if text.len() + line.len() > ACCOUNT_BYTES {
            break;
        }
        text.push_str(&line);
        told += 1;
    }
    if let Some(more) = found.len().checked_sub(told).filter(|more| *more > 0) {
        text.push_str(&format!("\n- and {more} more"));
    }
    text
}

impl<'s> Walk<'s> {
    /// Takes one step of the budget; `false` when it is used up.
    pub(super) fn spend(&mut self) -> bool {
        match self.budget.checked_sub(1) {
            Some(rest) => {
                self.budget = rest;
                true
            }
            None => false,
        }
    }

    /// Notes what is wrong with `value` by `schema`, children included.
    pub(super) fn visit(&mut self, schema: &'s Value, value: &Value, place: &Place, found: &mut Vec<Problem>) {
        if found.len() > 4 * TOLD || !self.spend() {
            return;
        }
        let Some(members) = schema.as_object() else {
            if schema == &Value::Bool(false) {
                found.push(Problem { path: place.path.clone(), what: "is not allowed here".to_owned(), weight: 3 });
            }
            return;
        };
        let Some(place) = &place.within(self.is_secret(schema, 6)) else { return };
        if let Some(target) = self.target(members) {
            self.visit(target, value, place, found);
            if self.leaves.ignores_siblings_of_references() {
                return;
            }
        }
        let before = found.len();
        self.leaves.judge(members, value, place, found);
        // A value of the wrong kind has no parts worth looking at.
        if found.len() > before && found.last().is_some_and(|problem| problem.weight >= 10) {
            return;
        }
        self.same_place(members, value, place, found);
        match value {
            Value::Object(own) => self.members(members, own, place, found),
            Value::Array(items) => self.items(members, items, place, found),
            _ => {}
        }
        if found.len() == before {
            self.refused(members, value, place, found);
        }
    }

    fn target(&self, members: &Map<String, Value>) -> Option<&'s Value> {
        let reference = super::graph::REFERENCES.iter().find_map(|keyword| members.get(*keyword)?.as_str())?;
        self.targets.resolve(reference).ok()
    }

    /// Whether a subschema, or one for the same place below it, marks its value as secret.
    pub(super) fn is_secret(&self, schema: &Value, levels: u32) -> bool {
        let Some(members) = schema.as_object().filter(|_| levels > 0) else { return false };
        let marked =
            members.get("writeOnly") == Some(&Value::Bool(true)) || members.get("format").and_then(Value::as_str) == Some("password");
        marked
            || super::graph::children(members).any(|(same, child)| same && self.is_secret(child, levels - 1))
            || self.target(members).is_some_and(|target| self.is_secret(target, levels - 1))
    }

    fn same_place(&mut self, members: &'s Map<String, Value>, value: &Value, place: &Place, found: &mut Vec<Problem>) {
        for branch in members.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.visit(branch, value, place, found);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(branches) = members.get(keyword).and_then(Value::as_array) {
                alternatives::visit(self, keyword, branches, value, place, found);
            }
        }
        if let Some(condition) = members.get("if") {
            let branch = if self.holds(condition, value, place) { "then" } else { "else" };
            if let Some(branch) = members.get(branch) {
                self.visit(branch, value, place, found);
            }
        }
        for keyword in ["dependentSchemas", "dependencies"] {
            let branches = members.get(keyword).and_then(Value::as_object).into_iter().flatten();
            for (name, branch) in branches.filter(|(_, branch)| !branch.is_array()) {
                if value.get(name).is_some() {
                    self.visit(branch, value, place, found);
                }
            }
        }
    }

    /// Whether nothing is found wrong.
    pub(super) fn holds(&mut self, schema: &'s Value, value: &Value, place: &Place) -> bool {
        let mut found = Vec::new();
        self.visit(schema, value, place, &mut found);
        found.is_empty()
    }

    fn members(&mut self, schema: &'s Map<String, Value>, own: &Map<String, Value>, place: &Place, found: &mut Vec<Problem>) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        for (name, value) in own {
            let there = place.member(name);
            let mut known = false;
            if let Some(child) = properties.and_then(|properties| properties.get(name)) {
                known = true;
                self.visit(child, value, &there, found);
            }
            for (pattern, child) in patterns.into_iter().flatten() {
                if self.leaves.pattern_matches(pattern, name) {
                    known = true;
                    self.visit(child, value, &there, found);
                }
            }
            if let Some(rest) = schema.get("additionalProperties").filter(|rest| !known && rest.is_object()) {
                self.visit(rest, value, &there, found);
            }
            if let Some(rule) = schema.get("propertyNames").filter(|rule| rule.is_object() || rule.is_boolean()) {
                let mut about = Vec::new();
                self.visit(rule, &Value::String(name.clone()), &there, &mut about);
                found.extend(about.into_iter().map(|problem| Problem { what: format!("has a name that {}", problem.what), ..problem }));
            }
        }
    }

    fn items(&mut self, schema: &'s Map<String, Value>, items: &[Value], place: &Place, found: &mut Vec<Problem>) {
        let listed = schema.get("prefixItems").or_else(|| schema.get("items")).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let rest = schema
            .get("items")
            .filter(|rest| !rest.is_array())
            .or_else(|| schema.get("additionalItems").filter(|_| schema.get("items").is_some_and(Value::is_array)));
        for (index, item) in items.iter().enumerate() {
            match listed.get(index).or(rest) {
                Some(Value::Bool(false)) => {
                    let what =
                        format!("is one item too many: at most {} {} taken", listed.len(), if listed.len() == 1 { "is" } else { "are" });
                    found.push(Problem { path: place.item(index).path, what, weight: 2 });
                    break;
                }
                Some(child) => self.visit(child, item, &place.item(index), found),
                None => break,
            }
        }
        let wanted = schema.get("contains").filter(|_| schema.get("minContains") != Some(&Value::from(0)));
        if wanted.is_some_and(|wanted| !items.iter().take(200).any(|item| self.holds(wanted, item, place))) {
            found.push(Problem { path: place.path.clone(), what: "has no item of the kind that it must contain".to_owned(), weight: 2 });
        }
    }

    /// Keywords that say what must not be; told only when nothing else was found.
    fn refused(&mut self, schema: &'s Map<String, Value>, value: &Value, place: &Place, found: &mut Vec<Problem>) {
        if schema.get("not").is_some_and(|not| self.holds(not, value, place)) {
            let what = format!("is {} of a kind that is not allowed here", kind(value));
            found.push(Problem { path: place.path.clone(), what, weight: 3 });
        }
        if let (Some(Value::Bool(false)), Value::Object(own)) = (schema.get("unevaluatedProperties"), value) {
            let mut allowed = std::collections::BTreeSet::new();
            if self.declared(schema, 8, &mut allowed) {
                let unexpected = own.keys().map(String::as_str).filter(|name| !allowed.contains(name));
                let unexpected: Vec<&str> = unexpected.collect();
                if !unexpected.is_empty() {
                    let what = format!("has members that are not allowed: {}", names(unexpected.into_iter()));
                    found.push(Problem { path: place.path.clone(), what, weight: 2 });
                }
            }
        }
    }

    /// Names of members that a schema and those for the same place declare; `false`
    /// when they can not all be told.
    fn declared(&self, schema: &'s Map<String, Value>, levels: u32, allowed: &mut std::collections::BTreeSet<&'s str>) -> bool {
        if levels == 0 || schema.contains_key("patternProperties") || schema.contains_key("additionalProperties") {
            return false;
        }
        allowed.extend(schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys).map(String::as_str));
        let below = super::graph::children(schema).filter(|(same, _)| *same).map(|(_, child)| child).chain(self.target(schema));
        below.filter_map(Value::as_object).all(|child| self.declared(child, levels - 1, allowed))
    }
}
