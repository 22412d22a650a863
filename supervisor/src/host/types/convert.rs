//! From a JSON Schema to a type.
//!
//! Owns what each keyword means for a type. A type may take more than its schema (a
//! comment says what it can not), and never less of what the schema speaks of; members
//! that a schema neither lists nor allows by name are not in the type. Bounded in depth
//! and in nodes, and says where it stopped.

use super::aliases::{Aliases, Place};
use super::ast::{Member, Object, Type, all, union};
use super::{doc, words};
use crate::host::schema::graph::{REFERENCES, Targets};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

/// Deepest nesting of one type.
const LEVELS: u32 = 20;
/// Most subschemas, members and values that are written out for one schema.
const NODES: usize = 2_000;
/// So many bytes of a name or a comment count as one more.
const NODE_BYTES: usize = 64;
/// Longest run of subschemas, each in the one before or referred to by it: the stack.
pub(crate) const RUN: u32 = 400;
/// Most values of an enumeration that are written out.
const VALUES: usize = 100;
/// Longest literal that is written out, in bytes.
const LITERAL_BYTES: usize = 200;

/// One schema on its way to a type.
pub(super) struct Converter<'s, 'a> {
    pub(super) targets: Targets<'s>,
    pub(super) aliases: &'a mut Aliases,
    pub(super) place: Place<'s>,
    /// References that are being followed without going into the value.
    pub(super) in_place: Vec<*const Value>,
    /// What was found out about the target of a reference.
    pub(super) found: HashMap<*const Value, Found>,
    /// How often the schema refers to each target, once that is asked.
    pub(super) times: Option<HashMap<*const Value, usize>>,
    /// A hash of the whole schema, once that is asked.
    pub(super) whole: Option<u64>,
    levels: u32,
    run: u32,
    nodes: usize,
}

/// What becomes of a reference.
#[derive(Clone, Copy)]
pub(super) enum Found {
    /// It is written out.
    Inline,
    /// It is the alias of this number.
    Alias(usize),
}

impl<'s, 'a> Converter<'s, 'a> {
    /// For one schema; `place` says whose.
    pub(super) fn new(root: &'s Value, place: Place<'s>, aliases: &'a mut Aliases) -> Self {
        let nodes = NODES.min(aliases.nodes);
        Self {
            targets: Targets::of(root),
            aliases,
            place,
            in_place: Vec::new(),
            found: HashMap::new(),
            times: None,
            whole: None,
            levels: 0,
            run: 0,
            nodes,
        }
    }

    /// What takes every value here: what a program gives is checked, what it gets is
    /// not known.
    pub(super) const fn anything(&self) -> &'static str {
        self.place.anything
    }

    fn anything_because(&self, why: String) -> Type {
        Type::Noted(Box::new(Type::Word(self.anything())), why)
    }

    /// Whether so much more may be written out: then it is counted.
    pub(super) fn may_write(&mut self, nodes: usize) -> bool {
        self.aliases.asked += nodes;
        let left = self.nodes.checked_sub(nodes);
        self.nodes = left.unwrap_or(0);
        self.aliases.nodes = self.aliases.nodes.saturating_sub(nodes);
        left.is_some()
    }

    pub(super) fn too_large(&self) -> Type {
        self.anything_because("the schema is too large to be written out".to_owned())
    }

    /// The type of a schema.
    pub(super) fn convert(&mut self, schema: &'s Value) -> Type {
        if self.run >= RUN || !self.may_write(1) {
            return self.too_large();
        }
        self.run += 1;
        let kind = match schema {
            Value::Bool(false) => Type::Word("never"),
            Value::Object(members) if members.get("not") == Some(&Value::Bool(true)) => Type::Word("never"),
            Value::Object(members) => self.members(members),
            _ => Type::Word(self.anything()),
        };
        self.run -= 1;
        kind
    }

    /// The type of a part of the value.
    fn part(&mut self, schema: &'s Value) -> Type {
        if self.levels >= LEVELS {
            return self.anything_because(format!("nested deeper than {LEVELS} levels"));
        }
        self.levels += 1;
        let in_place = std::mem::take(&mut self.in_place);
        let part = self.convert(schema);
        self.in_place = in_place;
        self.levels -= 1;
        part
    }

    fn members(&mut self, members: &'s Map<String, Value>) -> Type {
        let mut parts = Vec::new();
        for reference in REFERENCES.iter().filter_map(|keyword| members.get(*keyword)?.as_str()) {
            parts.push(match self.targets.resolve(reference) {
                Ok(target) => self.reference(reference, target),
                Err(_) => self.anything_because(format!("reference {} is not followed", words::on_one_line(reference, 100))),
            });
        }
        parts.push(self.own(members));
        for schema in list(members, "allOf") {
            parts.push(self.convert(schema));
        }
        for keyword in ["anyOf", "oneOf"] {
            if members.get(keyword).is_some_and(Value::is_array) {
                let alternatives: Vec<Type> = list(members, keyword).map(|schema| self.convert(schema)).collect();
                parts.push(union(alternatives));
            }
        }
        parts.extend(self.sometimes(members));
        all(parts, self.anything())
    }

    /// What the keywords say that stand in the schema itself.
    fn own(&mut self, members: &'s Map<String, Value>) -> Type {
        let kinds: Vec<&str> = match members.get("type") {
            Some(Value::String(kind)) => vec![kind.as_str()],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => self::inferred(members),
        };
        if let Some(value) = members.get("const") {
            return self.literals(std::slice::from_ref(value), &[]);
        }
        if let Some(Value::Array(values)) = members.get("enum") {
            return self.literals(values, &kinds);
        }
        if kinds.is_empty() {
            return Type::Word(self.anything());
        }
        let types: Vec<Type> = kinds.into_iter().map(|kind| self.kind(kind, members)).collect();
        union(types)
    }

    fn kind(&mut self, kind: &str, members: &'s Map<String, Value>) -> Type {
        match kind {
            "string" => Type::Word("string"),
            "number" | "integer" => Type::Word("number"),
            "boolean" => Type::Word("boolean"),
            "null" => Type::Word("null"),
            "array" => self.array(members),
            "object" => Type::Object(self.object(members)),
            _ => Type::Word(self.anything()),
        }
    }

    /// Values of an enumeration; those of other kinds than `kinds` can not be.
    fn literals(&mut self, values: &[Value], kinds: &[&str]) -> Type {
        if !self.may_write(values.len()) {
            return self.too_large();
        }
        let fits = |value: &&Value| kinds.is_empty() || kinds.iter().any(|kind| is_kind(value, kind));
        let fitting: Vec<&Value> = values.iter().filter(fits).collect();
        let too_long = fitting.iter().any(|value| words::is_longer(value, LITERAL_BYTES));
        if fitting.len() <= VALUES && !too_long {
            return union(fitting.into_iter().map(literal));
        }
        let shown: Vec<String> = fitting.iter().take(5).map(|value| words::value(value)).collect();
        let words = union(fitting.iter().map(|value| widened(value, self.anything())));
        Type::Noted(Box::new(words), format!("one of {} values: {}, …", fitting.len(), shown.join(", ")))
    }

    fn array(&mut self, members: &'s Map<String, Value>) -> Type {
        let first = ["prefixItems", "items"].iter().find_map(|keyword| members.get(*keyword)?.as_array());
        let Some(first) = first else {
            let item = members.get("items").map_or(Type::Word(self.anything()), |items| self.part(items));
            return Type::List(Box::new(item));
        };
        let rest = if members.contains_key("prefixItems") { members.get("items") } else { members.get("additionalItems") };
        let count = |keyword: &str| members.get(keyword).and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok());
        let (least, most) = (count("minItems").unwrap_or(0), count("maxItems").unwrap_or(usize::MAX));
        let items = first.iter().take(most).enumerate().map(|(index, item)| (self.part(item), index >= least)).collect();
        let rest = match rest {
            _ if most <= first.len() => None,
            None => Some(Type::Word(self.anything())),
            Some(rest) => Some(self.part(rest)).filter(|rest| !rest.is_never()),
        };
        Type::Tuple { items, rest: rest.map(Box::new) }
    }

    fn object(&mut self, members: &'s Map<String, Value>) -> Object {
        let mut object = Object::default();
        let required: HashSet<&str> = list(members, "required").filter_map(Value::as_str).collect();
        for (name, schema) in map(members, "properties") {
            if !self.may_write(name.len() / NODE_BYTES) {
                return self.cut(object);
            }
            object.members.push(self.member(name, schema, required.contains(name.as_str())));
        }
        let mut there: HashSet<&str> = map(members, "properties").map(|(name, _)| name.as_str()).collect();
        for name in list(members, "required").filter_map(Value::as_str) {
            if there.insert(name) {
                if !self.may_write(1 + name.len() / NODE_BYTES) {
                    return self.cut(object);
                }
                let value = Type::Word(self.anything());
                object.members.push(Member { name: name.to_owned(), value, required: true, readonly: false, doc: Vec::new() });
            }
        }
        self.others(members, &mut object);
        object
    }

    /// An object whose other members are not written out.
    fn cut(&self, mut object: Object) -> Object {
        object.others = Some(Box::new(Type::Word(self.anything())));
        object.keys_note = Some("and more: the schema is too large to be written out".to_owned());
        object
    }

    fn member(&mut self, name: &str, schema: &'s Value, required: bool) -> Member {
        let readonly = schema.get("readOnly") == Some(&Value::Bool(true));
        let mut lines = doc::of(schema);
        if lines.is_empty()
            && let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|reference| self.targets.resolve(reference).ok())
        {
            lines = doc::of(target);
        }
        if !self.may_write(lines.iter().map(String::len).sum::<usize>() / NODE_BYTES) {
            lines.clear();
        }
        Member { name: name.to_owned(), value: self.part(schema), required, readonly, doc: lines }
    }

    /// What members that are not listed may be.
    fn others(&mut self, members: &'s Map<String, Value>, object: &mut Object) {
        let extra = members.get("additionalProperties").or_else(|| members.get("unevaluatedProperties"));
        let mut kinds: Vec<Type> = Vec::new();
        let mut patterns = Vec::new();
        for (pattern, schema) in map(members, "patternProperties") {
            if !self.may_write(2) {
                break;
            }
            kinds.push(self.part(schema));
            patterns.push(words::on_one_line(pattern, 100));
        }
        match extra {
            Some(schema) => kinds.push(self.part(schema)),
            // An object of which nothing at all is said.
            None if object.members.is_empty() && kinds.is_empty() => kinds.push(Type::Word(self.anything())),
            None => {}
        }
        let kind = union(kinds);
        if !kind.is_never() || object.members.is_empty() {
            object.others = Some(Box::new(kind));
        }
        if !patterns.is_empty() {
            object.keys_note = Some(format!("names that match {}", patterns.join(" or ")));
        }
        if let Some(keys) = members.get("propertyNames").filter(|_| object.members.is_empty() && object.keys_note.is_none()) {
            let keys = self.part(keys);
            let named = |one: &Type| matches!(one, Type::Literal(_, "string"));
            if named(&keys) || matches!(&keys, Type::Union(all) if all.iter().all(named)) {
                object.keys = Some(Box::new(keys));
            }
        }
    }

    /// Members that are there under a condition: they may be.
    fn sometimes(&mut self, members: &'s Map<String, Value>) -> Option<Type> {
        let branches = ["then", "else"].iter().filter_map(|keyword| members.get(*keyword));
        let dependent = ["dependentSchemas", "dependencies"].iter().flat_map(|keyword| map(members, keyword).map(|(_, schema)| schema));
        let mut object = Object::default();
        let mut there: HashSet<&str> = map(members, "properties").map(|(name, _)| name.as_str()).collect();
        for schema in branches.chain(dependent) {
            let Some(branch) = schema.as_object() else { continue };
            for (name, schema) in map(branch, "properties") {
                if there.insert(name) && self.may_write(name.len() / NODE_BYTES) {
                    object.members.push(self.member(name, schema, false));
                }
            }
        }
        (!object.members.is_empty()).then_some(Type::Object(object))
    }
}

fn list<'s>(members: &'s Map<String, Value>, keyword: &str) -> impl Iterator<Item = &'s Value> + use<'s> {
    members.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

fn map<'s>(members: &'s Map<String, Value>, keyword: &str) -> impl Iterator<Item = (&'s String, &'s Value)> + use<'s> {
    members.get(keyword).and_then(Value::as_object).into_iter().flatten()
}

/// The kind that the other keywords speak of, when none is said. A value of another
/// kind is valid too, and meant by nobody.
fn inferred(members: &Map<String, Value>) -> Vec<&'static str> {
    let any = |keywords: &[&str]| keywords.iter().any(|keyword| members.contains_key(*keyword));
    if any(&["properties", "required", "additionalProperties", "patternProperties", "propertyNames"]) {
        vec!["object"]
    } else if any(&["items", "prefixItems"]) {
        vec!["array"]
    } else {
        Vec::new()
    }
}

fn is_kind(value: &Value, kind: &str) -> bool {
    match (kind, value) {
        ("string", Value::String(_)) | ("boolean", Value::Bool(_)) | ("null", Value::Null) | ("array", Value::Array(_)) => true,
        ("object", Value::Object(_)) | ("number", Value::Number(_)) => true,
        ("integer", Value::Number(number)) => number.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => false,
    }
}

fn literal(value: &Value) -> Type {
    match value {
        Value::Null => Type::Word("null"),
        Value::Bool(_) => Type::Literal(value.to_string(), "boolean"),
        Value::Number(_) => Type::Literal(value.to_string(), "number"),
        Value::String(text) => Type::Literal(words::quoted(text), "string"),
        Value::Array(items) => Type::Tuple { items: items.iter().map(|item| (literal(item), false)).collect(), rest: None },
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| Member {
                name: name.clone(),
                value: literal(value),
                required: true,
                readonly: false,
                doc: Vec::new(),
            };
            let others = members.is_empty().then(|| Box::new(Type::Word("never")));
            Type::Object(Object { members: members.iter().map(member).collect(), others, ..Object::default() })
        }
    }
}

fn widened(value: &Value, anything: &'static str) -> Type {
    match value {
        Value::Null => Type::Word("null"),
        Value::Bool(_) => Type::Word("boolean"),
        Value::Number(_) => Type::Word("number"),
        Value::String(_) => Type::Word("string"),
        _ => Type::Word(anything),
    }
}
