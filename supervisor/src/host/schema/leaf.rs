//! One subschema without its subschemas.
//!
//! Owns asking the validator about the keywords that look at a value alone, and
//! wording its answer. Such a check is small and cannot recurse, so its full list of
//! errors is safe to take.

use super::explain::{Place, Problem};
use super::phrase::{kind, listed, names, nearest, quoted, scalar};
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{Draft, ValidationError, Validator};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Keywords that look at a value alone.
const ALONE: &[&str] = &[
    "type",
    "enum",
    "const",
    "required",
    "dependentRequired",
    "minProperties",
    "maxProperties",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
];
/// Most subschemas and patterns that one walk compiles.
const COMPILED: usize = 400;
/// How the account of a missing member ends when a near spelling was there.
const INSTEAD: &str = " was given instead";
/// Most problems of one subschema that are told.
const EACH: usize = 12;

/// Compiled parts, kept for one walk.
pub(super) struct Leaves {
    draft: Draft,
    parts: HashMap<*const Map<String, Value>, Option<Validator>>,
    patterns: HashMap<String, Option<Validator>>,
}

impl Leaves {
    pub(super) fn new(draft: Draft) -> Self {
        Self { draft, parts: HashMap::new(), patterns: HashMap::new() }
    }

    /// In the older drafts a reference makes everything beside it void.
    pub(super) fn ignores_siblings_of_references(&self) -> bool {
        matches!(self.draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7)
    }

    /// Whether a name matches a pattern of `patternProperties`.
    pub(super) fn pattern_matches(&mut self, pattern: &str, name: &str) -> bool {
        if !self.patterns.contains_key(pattern) {
            let room = self.patterns.len() < COMPILED;
            let compiled = room.then(|| self.build(&serde_json::json!({"pattern": pattern}))).flatten();
            self.patterns.insert(pattern.to_owned(), compiled);
        }
        let name = Value::String(name.to_owned());
        self.patterns.get(pattern).is_some_and(|compiled| compiled.as_ref().is_some_and(|compiled| compiled.is_valid(&name)))
    }

    fn build(&self, schema: &Value) -> Option<Validator> {
        super::options(self.draft).with_pattern_options(super::bounded_patterns()).build(schema).ok()
    }

    /// Notes what the keywords that look at the value alone find wrong.
    pub(super) fn judge(&mut self, schema: &Map<String, Value>, value: &Value, place: &Place, found: &mut Vec<Problem>) {
        let key = std::ptr::from_ref(schema);
        if !self.parts.contains_key(&key) {
            let room = self.parts.len() < COMPILED;
            let compiled = room.then(|| alone(schema)).flatten().and_then(|part| self.build(&part));
            self.parts.insert(key, compiled);
        }
        let Some(Some(part)) = self.parts.get(&key) else { return };
        let mut problems: Vec<Problem> =
            part.iter_errors(value).take(EACH).flat_map(|error| worded(schema, &error, value, place)).collect();
        // A misspelt member is told once, as the one that is missing.
        let told: Vec<String> = problems
            .iter()
            .filter_map(|problem| problem.what.split_once("; ")?.1.strip_suffix(INSTEAD))
            .map(|name| format!("has {name},"))
            .collect();
        problems.retain(|problem| !told.iter().any(|start| problem.what.starts_with(start)));
        found.extend(problems);
    }
}

/// The keywords of a schema that look at a value alone, and which members it knows.
fn alone(schema: &Map<String, Value>) -> Option<Value> {
    let mut part: Map<String, Value> = schema
        .iter()
        .filter(|(keyword, _)| ALONE.contains(&keyword.as_str()))
        .map(|(keyword, value)| (keyword.clone(), value.clone()))
        .collect();
    if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        part.insert("additionalProperties".to_owned(), Value::Bool(false));
        for keyword in ["properties", "patternProperties"] {
            if let Some(members) = schema.get(keyword).and_then(Value::as_object) {
                let open = members.keys().map(|name| (name.clone(), Value::Object(Map::new()))).collect();
                part.insert(keyword.to_owned(), Value::Object(open));
            }
        }
    }
    // Draft 7's way to say `dependentRequired`.
    if let Some(members) = schema.get("dependencies").and_then(Value::as_object) {
        let lists = members.iter().filter(|(_, names)| names.is_array()).map(|(name, names)| (name.clone(), names.clone())).collect();
        part.insert("dependencies".to_owned(), Value::Object(lists));
    }
    (!part.is_empty()).then_some(Value::Object(part))
}

/// One error of the validator in words that say what would be right.
fn worded(schema: &Map<String, Value>, error: &ValidationError<'_>, value: &Value, place: &Place) -> Vec<Problem> {
    let given = || if place.secret { "a hidden value".to_owned() } else { scalar(value) };
    let one = |what: String, weight: u32| vec![Problem { path: place.path.clone(), what, weight }];
    match error.kind() {
        Kind::Type { kind: wanted } => one(format!("must be {}; {} was given", types(wanted), of_kind(value, place)), 10),
        Kind::Enum { .. } => one(choices(schema, value, place), 6),
        Kind::Constant { expected_value } => one(format!("must be {}; {} was given", scalar(expected_value), given()), 6),
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let near = value.as_object().and_then(|own| nearest(name, own.keys().map(String::as_str).filter(|own| !declares(schema, own))));
            let hint = near.map(|near| format!("; {}{INSTEAD}", quoted(near))).unwrap_or_default();
            one(format!("must have {}{}{hint}", quoted(name), described(schema, name)), 4)
        }
        Kind::AdditionalProperties { unexpected } => unexpected.iter().take(EACH).flat_map(|name| one(stranger(schema, name), 2)).collect(),
        other => one(detail(other, value, &given), 1),
    }
}

fn declares(schema: &Map<String, Value>, name: &str) -> bool {
    schema.get("properties").and_then(|properties| properties.get(name)).is_some()
}

/// The type of a declared member, so that the next attempt has it right.
fn described(schema: &Map<String, Value>, name: &str) -> String {
    let declared = schema.get("properties").and_then(|properties| properties.get(name)).and_then(|member| member.get("type"));
    declared.and_then(Value::as_str).map(|kind| format!(" ({kind})")).unwrap_or_default()
}

fn stranger(schema: &Map<String, Value>, name: &str) -> String {
    let known = || schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys).map(String::as_str);
    let hint = match nearest(name, known()) {
        Some(near) => format!("; did you mean {}?", quoted(near)),
        None if known().next().is_some() => format!("; allowed are {}", names(known())),
        None => String::new(),
    };
    format!("has {}, which is not allowed{hint}", quoted(name))
}

fn choices(schema: &Map<String, Value>, value: &Value, place: &Place) -> String {
    let options = schema.get("enum").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let allowed = listed(options.iter().map(scalar));
    if place.secret {
        return format!("must be one of {allowed}");
    }
    let near = value.as_str().and_then(|word| nearest(word, options.iter().filter_map(Value::as_str)));
    let hint = near.map(|near| format!("; did you mean {}?", quoted(near))).unwrap_or_default();
    format!("must be one of {allowed}; {} was given{hint}", scalar(value))
}

fn types(wanted: &TypeKind) -> String {
    let article = |name: &str| match name {
        "null" => "null".to_owned(),
        "array" | "integer" | "object" => format!("an {name}"),
        other => format!("a {other}"),
    };
    match wanted {
        TypeKind::Single(one) => article(one.as_str()),
        TypeKind::Multiple(several) => several.iter().map(|one| article(one.as_str())).collect::<Vec<_>>().join(" or "),
    }
}

fn of_kind(value: &Value, place: &Place) -> String {
    match value {
        _ if place.secret => kind(value).to_owned(),
        Value::String(_) | Value::Number(_) | Value::Bool(_) => format!("{} ({})", kind(value), scalar(value)),
        other => scalar(other),
    }
}

/// Rules about size, range and form.
fn detail(rule: &Kind, value: &Value, given: &dyn Fn() -> String) -> String {
    let count = match value {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 0,
    };
    match rule {
        Kind::Minimum { limit } => format!("must be at least {limit}; {} was given", given()),
        Kind::Maximum { limit } => format!("must be at most {limit}; {} was given", given()),
        Kind::ExclusiveMinimum { limit } => format!("must be greater than {limit}; {} was given", given()),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}; {} was given", given()),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}; {} was given", given()),
        Kind::MinLength { limit } => format!("must have at least {limit} characters; it has {count}"),
        Kind::MaxLength { limit } => format!("must have at most {limit} characters; it has {count}"),
        Kind::MinItems { limit } => format!("must have at least {limit} items; it has {count}"),
        Kind::MaxItems { limit } => format!("must have at most {limit} items; it has {count}"),
        Kind::MinProperties { limit } => format!("must have at least {limit} members; it has {count}"),
        Kind::MaxProperties { limit } => format!("must have at most {limit} members; it has {count}"),
        Kind::UniqueItems => "must not have the same item twice".to_owned(),
        Kind::Pattern { pattern } => format!("must match the pattern {}; {} was given", quoted(pattern), given()),
        Kind::Format { format } => format!("must be a valid {}; {} was given", super::phrase::quoted(format).trim_matches('"'), given()),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            "takes its pattern too many steps to match; send a shorter text".to_owned()
        }
        other => format!("breaks the rule \"{}\"", other.keyword()),
    }
}
