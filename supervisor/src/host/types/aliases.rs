//! Names for subschemas that are referred to.
//!
//! Owns when a reference becomes a name (it comes twice, or goes in a circle) and what
//! the name is. The same subschema of one collection has one name, however many
//! functions refer to it.

use super::ast::Type;
use super::convert::{Converter, Found};
use super::doc;
use crate::host::schema::graph::{self, REFERENCES};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Names of types that every program has: an alias of that name would be an error.
const TAKEN: &[&str] = &["HostError"];

/// Whose schema it is.
#[derive(Clone, Copy)]
pub(super) struct Place<'s> {
    /// The schema as a whole.
    pub(super) root: &'s Value,
    /// The collection, as a part of a name.
    pub(super) collection: &'s str,
    /// The function, as a part of a name.
    pub(super) function: &'s str,
    /// What takes every value there.
    pub(super) anything: &'static str,
}

/// One alias.
#[derive(Debug)]
pub(super) struct Alias {
    pub(super) name: String,
    pub(super) doc: Vec<String>,
    /// Absent while it is being made.
    pub(super) body: Option<Type>,
}

/// Most subschemas, members and values that are written out for all functions together:
/// more than any text has room for.
const NODES: usize = 200_000;

/// What a name counts as: its line is written also where there is no room for its type.
const ALIAS_NODES: usize = 8;

/// All aliases of one text, in the order in which they came up.
#[derive(Debug)]
pub(super) struct Aliases {
    pub(super) all: Vec<Alias>,
    /// How much more may be written out.
    pub(super) nodes: usize,
    /// How much was asked for, written out or not.
    pub(super) asked: usize,
    known: HashMap<([u8; 32], u64, String, &'static str), usize>,
    names: HashSet<String>,
}

impl Default for Aliases {
    fn default() -> Self {
        Self { all: Vec::new(), nodes: NODES, asked: 0, known: HashMap::new(), names: HashSet::new() }
    }
}

impl Aliases {
    fn free_name(&mut self, wish: &str) -> String {
        let mut name = wish.to_owned();
        let mut number = 1;
        while TAKEN.contains(&name.as_str()) || self.names.contains(&name) {
            number += 1;
            name = format!("{wish}{number}");
        }
        self.names.insert(name.clone());
        name
    }
}

impl<'s> Converter<'s, '_> {
    /// The type behind a reference: written out, or a name.
    pub(super) fn reference(&mut self, reference: &str, target: &'s Value) -> Type {
        let at = std::ptr::from_ref(target);
        if self.in_place.contains(&at) {
            return Type::Noted(Box::new(Type::Word(self.anything())), "refers to itself".to_owned());
        }
        self.in_place.push(at);
        let kind = match self.found.get(&at).copied() {
            Some(Found::Inline) => self.convert(target),
            Some(Found::Alias(index)) => self.named(index),
            None if self.is_named(reference, target) => self.alias(reference, target),
            None => {
                self.found.insert(at, Found::Inline);
                self.convert(target)
            }
        };
        self.in_place.pop();
        kind
    }

    fn named(&self, index: usize) -> Type {
        Type::Named(self.aliases.all.get(index).map(|alias| alias.name.clone()).unwrap_or_default())
    }

    fn alias(&mut self, reference: &str, target: &'s Value) -> Type {
        let place = self.place;
        let text = target.to_string();
        let context = self.context(&text);
        let key = (Sha256::digest(&text).into(), context, place.collection.to_owned(), place.anything);
        if let Some(index) = self.aliases.known.get(&key).copied() {
            self.found.insert(std::ptr::from_ref(target), Found::Alias(index));
            return self.named(index);
        }
        if !self.may_write(ALIAS_NODES) {
            return self.too_large();
        }
        let name = self.aliases.free_name(&wish(reference, target, place));
        let index = self.aliases.all.len();
        self.aliases.known.insert(key, index);
        self.found.insert(std::ptr::from_ref(target), Found::Alias(index));
        self.aliases.all.push(Alias { name: name.clone(), doc: doc::of(target), body: None });
        let body = self.convert(target);
        if let Some(alias) = self.aliases.all.get_mut(index) {
            alias.body = Some(body);
        }
        Type::Named(name)
    }

    /// A name is for what comes twice, and for what may go in a circle.
    fn is_named(&mut self, reference: &str, target: &Value) -> bool {
        let is_stored = ["#/$defs/", "#/definitions/"].iter().any(|store| reference.starts_with(store));
        let is_leaf = target.as_object().is_none_or(|members| graph::children(members).next().is_none() && !refers(members));
        let is_short = target.get("enum").and_then(Value::as_array).is_none_or(|values| values.len() <= 4);
        if is_leaf && is_short {
            return false;
        }
        !is_stored || self.times(std::ptr::from_ref(target)) > 1
    }

    /// How often the schema refers to a subschema. One walk counts all of them.
    fn times(&mut self, target: *const Value) -> usize {
        let counted = self.times.take().unwrap_or_else(|| self.counted());
        let times = counted.get(&target).copied().unwrap_or(0);
        self.times = Some(counted);
        times
    }

    fn counted(&self) -> HashMap<*const Value, usize> {
        let mut waiting = vec![self.place.root];
        let mut counted = HashMap::new();
        while let Some(value) = waiting.pop() {
            match value {
                Value::Array(items) => waiting.extend(items),
                Value::Object(members) => {
                    let named = REFERENCES.iter().filter_map(|keyword| members.get(*keyword)?.as_str());
                    for target in named.filter_map(|name| self.targets.resolve(name).ok()) {
                        *counted.entry(std::ptr::from_ref(target)).or_default() += 1;
                    }
                    waiting.extend(members.values());
                }
                _ => {}
            }
        }
        counted
    }

    /// What the meaning of a subschema depends on besides its own text.
    fn context(&mut self, text: &str) -> u64 {
        if !REFERENCES.iter().any(|keyword| text.contains(&format!("\"{keyword}\""))) {
            return 0;
        }
        let root = self.place.root;
        *self.whole.get_or_insert_with(|| {
            let mut hash = DefaultHasher::new();
            root.to_string().hash(&mut hash);
            hash.finish()
        })
    }
}

fn refers(members: &serde_json::Map<String, Value>) -> bool {
    REFERENCES.iter().any(|keyword| members.contains_key(*keyword))
}

/// The name that a subschema should have.
fn wish(reference: &str, target: &Value, place: Place<'_>) -> String {
    let own = reference.rsplit(['/', '#']).next().unwrap_or_default();
    let of_title = || target.get("title").and_then(Value::as_str).unwrap_or_default();
    let own = if own.is_empty() { pascal(of_title()) } else { pascal(own) };
    let own = if own.is_empty() {
        format!("{}{}", pascal(place.function), if place.anything == "unknown" { "Input" } else { "Output" })
    } else {
        own
    };
    let collection = pascal(place.collection);
    if own.starts_with(&collection) && own.len() > collection.len() { own } else { format!("{collection}{own}") }
}

/// `order-item` and `order_item` as `OrderItem`.
fn pascal(text: &str) -> String {
    let mut out = String::new();
    for word in text.split(|c: char| !c.is_ascii_alphanumeric()).take(8) {
        let mut characters = word.chars().take(40);
        out.extend(characters.next().map(|first| first.to_ascii_uppercase()));
        out.extend(characters);
    }
    out
}
