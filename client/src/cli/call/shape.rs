//! What a function's input schema says about flags.
//!
//! Owns the reading of a schema, bounded, and the spelling of flags. A member that no flag
//! can give, because of its name or what it holds, is left to `--json`. Never checks an
//! input: brigd does, against the whole schema.

use brig::protocol::names::kebab;
use serde_json::Value;
use std::collections::HashMap;

/// Most members with flags of their own, at all depths.
pub(super) const FIELDS: usize = 500;
/// Deepest object whose members have flags.
const DEPTH: usize = 6;
/// Most `$ref` that lead from one to the next.
const REFERENCES: usize = 16;
/// Most values that are choices.
const CHOICES: usize = 200;
/// Before the name of a member whose flag would be one of brig's own.
pub(super) const PREFIX: &str = "input";

/// The members of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shape {
    pub(super) fields: Vec<Field>,
    /// How many have no flag: too many, or no name for one.
    pub(super) without_flag: usize,
}

/// One member.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    /// Its name as it is spelt in a command.
    pub(super) command: String,
    pub(super) required: bool,
    pub(super) about: String,
    pub(super) default: Option<Value>,
    pub(super) kind: Kind,
}

/// What a flag takes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    /// One of these scalars.
    Choice(Vec<Value>),
    /// Repeated; of a scalar, or of JSON.
    List(Box<Kind>),
    /// Members by dotted flags.
    Group(Shape),
    /// Anything: written as JSON.
    Json,
}

impl Kind {
    /// Whether `--no-` goes with it: `false`, or no element.
    pub(super) const fn has_no(&self) -> bool {
        matches!(self, Self::Boolean | Self::List(_))
    }

    /// What stands for the value in a help.
    pub(super) fn placeholder(&self) -> String {
        match self {
            Self::Text => "TEXT".to_owned(),
            Self::Integer => "INTEGER".to_owned(),
            Self::Number => "NUMBER".to_owned(),
            Self::Boolean => "true|false".to_owned(),
            Self::Choice(choices) => choices.iter().map(choice_text).collect::<Vec<_>>().join("|"),
            Self::List(kind) => kind.placeholder(),
            Self::Group(_) | Self::Json => "JSON".to_owned(),
        }
    }
}

/// A choice as it is written: a string without quotes.
pub(super) fn choice_text(choice: &Value) -> String {
    choice.as_str().map_or_else(|| choice.to_string(), str::to_owned)
}

/// A member with the names that lead to it.
#[derive(Clone, Debug)]
pub(super) struct Found<'s> {
    pub(super) path: Vec<&'s str>,
    pub(super) field: &'s Field,
}

impl Found<'_> {
    /// `address.city`, for messages.
    pub(super) fn name(&self) -> String {
        self.path.join(".")
    }
}

impl Shape {
    /// Reads the schema of an input.
    pub(super) fn read(schema: &Value) -> Self {
        let mut reader = Reader { root: schema, room: FIELDS };
        match reader.kind(schema, 0) {
            Kind::Group(shape) => shape,
            _ => Self::default(),
        }
    }

    /// The members that a flag (without its dashes) can mean: by their own names, and by
    /// their command spelling.
    pub(super) fn resolve(&self, flag: &str) -> Vec<Found<'_>> {
        let flag = flag.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix('.')).unwrap_or(flag);
        let mut found = vec![];
        self.resolve_into(flag, &mut Vec::new(), &mut found);
        found
    }

    fn resolve_into<'s>(&'s self, flag: &str, path: &mut Vec<&'s str>, found: &mut Vec<Found<'s>>) {
        let (first, rest) = flag.split_once('.').map_or((flag, None), |(first, rest)| (first, Some(rest)));
        for field in self.fields.iter().filter(|field| field.name == first || field.command == first) {
            path.push(&field.name);
            match (rest, &field.kind) {
                (None, _) => found.push(Found { path: path.clone(), field }),
                (Some(rest), Kind::Group(shape)) => shape.resolve_into(rest, path, found),
                _ => {}
            }
            path.pop();
        }
    }

    /// All members, outer before inner.
    pub(super) fn all(&self) -> Vec<Found<'_>> {
        let mut found = vec![];
        self.all_into(&mut Vec::new(), &mut found);
        found
    }

    fn all_into<'s>(&'s self, path: &mut Vec<&'s str>, found: &mut Vec<Found<'s>>) {
        for field in &self.fields {
            path.push(&field.name);
            found.push(Found { path: path.clone(), field });
            if let Kind::Group(shape) = &field.kind {
                shape.all_into(path, found);
            }
            path.pop();
        }
    }

    /// How the flag of a member is written, without its dashes: the command spelling where
    /// that means one member only, else its own name where that does.
    pub(super) fn flag(&self, path: &[&str], reserved: &dyn Fn(&str) -> bool) -> Option<String> {
        let command: Vec<String> = path.iter().map(|name| kebab(name)).collect();
        let spellings = [command.join("."), path.join(".")];
        spellings.into_iter().find_map(|spelling| {
            let first = spelling.split('.').next().unwrap_or_default();
            let flag = if reserved(first) || first == PREFIX { format!("{PREFIX}.{spelling}") } else { spelling };
            let means = self.meanings(&flag);
            matches!(means.as_slice(), [(one, false)] if one.path == path).then_some(flag)
        })
    }

    /// All that a flag can mean, and whether as `--no-`.
    pub(super) fn meanings(&self, flag: &str) -> Vec<(Found<'_>, bool)> {
        let with = self.resolve(flag).into_iter().map(|found| (found, false));
        let without = flag.strip_prefix("no-").map(|flag| self.resolve(flag)).unwrap_or_default();
        let without = without.into_iter().filter(|found| found.field.kind.has_no()).map(|found| (found, true));
        with.chain(without).collect()
    }
}

/// Whether a member's name can be a flag.
fn can_be_a_flag(name: &str) -> bool {
    let command = kebab(name);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '-');
    name.chars().all(plain) && !command.is_empty() && !command.starts_with('-')
}

struct Reader<'s> {
    root: &'s Value,
    room: usize,
}

impl<'s> Reader<'s> {
    /// What stands where a `$ref` does.
    fn resolved(&self, mut schema: &'s Value) -> Option<&'s Value> {
        for _ in 0..REFERENCES {
            match schema.get("$ref").and_then(Value::as_str) {
                None => return Some(schema),
                Some(reference) => schema = self.root.pointer(reference.strip_prefix('#')?)?,
            }
        }
        None
    }

    fn kind(&mut self, schema: &'s Value, depth: usize) -> Kind {
        let Some(schema) = self.resolved(schema) else { return Kind::Json };
        if let Some(choices) = choices(schema) {
            return Kind::Choice(choices);
        }
        match one_type(schema) {
            Some("string") => Kind::Text,
            Some("integer") => Kind::Integer,
            Some("number") => Kind::Number,
            Some("boolean") => Kind::Boolean,
            Some("array") => self.list(schema, depth),
            Some("object") => self.group(schema, depth),
            None if schema.get("type").is_none() => match only_branch(schema) {
                Some(branch) if depth < DEPTH => self.kind(branch, depth + 1),
                None if schema.get("properties").is_some() => self.group(schema, depth),
                _ => Kind::Json,
            },
            _ => Kind::Json,
        }
    }

    fn list(&mut self, schema: &'s Value, depth: usize) -> Kind {
        if schema.get("prefixItems").is_some() || schema.get("items").is_some_and(Value::is_array) {
            return Kind::Json;
        }
        let item = match schema.get("items") {
            Some(items) if depth < DEPTH => {
                // Members of elements have no flags: they take no room from those that do.
                let room = self.room;
                let kind = self.kind(items, DEPTH);
                self.room = room;
                kind
            }
            _ => Kind::Json,
        };
        match item {
            Kind::List(_) | Kind::Group(_) => Kind::List(Box::new(Kind::Json)),
            scalar => Kind::List(Box::new(scalar)),
        }
    }

    fn group(&mut self, schema: &'s Value, depth: usize) -> Kind {
        let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|all| !all.is_empty()) else {
            return Kind::Json;
        };
        if depth >= DEPTH {
            return Kind::Json;
        }
        let required: HashMap<&str, usize> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).zip(0..).collect();
        let mut ordered: Vec<(&String, &Value)> = properties.iter().collect();
        ordered.sort_by_key(|(name, _)| required.get(name.as_str()).copied().unwrap_or(usize::MAX));
        let mut shape = Shape::default();
        for (name, schema) in ordered {
            if self.room == 0 || !can_be_a_flag(name) {
                shape.without_flag += 1;
                continue;
            }
            self.room -= 1;
            let kind = self.kind(schema, depth + 1);
            let required = required.contains_key(name.as_str());
            shape.fields.push(Field {
                name: name.clone(),
                command: kebab(name),
                required,
                about: self.about(schema),
                default: schema.get("default").cloned(),
                kind,
            });
        }
        Kind::Group(shape)
    }

    fn about(&self, schema: &'s Value) -> String {
        let said = |schema: &Value| schema.get("description").and_then(Value::as_str).map(str::to_owned);
        said(schema).or_else(|| self.resolved(schema).and_then(said)).unwrap_or_default()
    }
}

/// The scalars that alone are right, if the schema says so.
fn choices(schema: &Value) -> Option<Vec<Value>> {
    let scalar = |value: &Value| !(value.is_array() || value.is_object());
    let all = match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(all)), _) => all.clone(),
        (None, Some(one)) => vec![one.clone()],
        _ => return None,
    };
    (!all.is_empty() && all.len() <= CHOICES && all.iter().all(scalar)).then_some(all)
}

/// The one type besides null.
fn one_type(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(one) => Some(one),
        Value::Array(all) => match all.iter().filter_map(Value::as_str).filter(|one| *one != "null").collect::<Vec<_>>().as_slice() {
            [one] => Some(one),
            _ => None,
        },
        _ => None,
    }
}

/// The one of `anyOf`, `oneOf` or `allOf` that is not null.
fn only_branch(schema: &Value) -> Option<&Value> {
    let branches = ["anyOf", "oneOf", "allOf"].into_iter().find_map(|word| schema.get(word)?.as_array())?;
    let is_null = |branch: &&Value| branch.get("type").and_then(Value::as_str) == Some("null");
    match branches.iter().filter(|branch| !is_null(branch)).collect::<Vec<_>>().as_slice() {
        [one] => Some(one),
        _ => None,
    }
}

#[cfg(test)]
#[path = "shape_tests.rs"]
mod tests;
