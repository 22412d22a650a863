//! What a schema can cost, found out before it is ever used.
//!
//! Owns a static look at a schema as a graph: subschemas are nodes, applicators and
//! references are edges. Refuses what could run away (references that go in a circle
//! without going into the value, expansions that explode) or leave the schema.
//! Never looks at an instance.
//!
//! The bounds exist because the validator runs to its end once started, and on the
//! stack of its thread.

use serde_json::{Map, Value};
use std::collections::HashMap;

/// Deepest nesting of a schema's text, in levels.
pub(crate) const SCHEMA_LEVELS: u32 = 128;
/// Most subschemas that a value may meet when every reference is written out.
pub(crate) const EXPANSION: u64 = 50_000;
/// Longest run of subschemas that look at the same place of the value.
pub(crate) const CHAIN: u64 = 200;

/// How often `unevaluated…` has what lies beside it checked again (3 was measured):
/// nested ones multiply.
const AGAIN: u64 = 4;
/// Most patterns in one schema: each may take a mebibyte once compiled.
pub(crate) const PATTERNS: usize = 200;

/// What a schema can cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Longest run of subschemas that look at the same place.
    pub(crate) chain: u64,
    /// Longest run of subschemas in all; absent when the schema is recursive.
    pub(crate) longest: Option<u64>,
    /// Subschemas when every reference is written out, recursion once.
    pub(crate) expansion: u64,
    /// Patterns, wherever they stand.
    pub(crate) patterns: usize,
}

/// Keywords whose value is one subschema for the same place.
const SAME_ONE: &[&str] = &["not", "if", "then", "else"];
/// Keywords whose value is a list of subschemas for the same place.
const SAME_LIST: &[&str] = &["allOf", "anyOf", "oneOf"];
/// Keywords whose value is an object of subschemas for the same place.
const SAME_MAP: &[&str] = &["dependentSchemas", "dependencies"];
/// Keywords whose value is one subschema for parts of the value.
const PART_ONE: &[&str] = &[
    "additionalProperties",
    "propertyNames",
    "items",
    "additionalItems",
    "contains",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];
/// Keywords whose value is a list of subschemas for parts of the value.
const PART_LIST: &[&str] = &["items", "prefixItems"];
/// Keywords whose value is an object of subschemas for parts of the value.
const PART_MAP: &[&str] = &["properties", "patternProperties"];
/// Keywords that only hold subschemas for references.
const STORES: &[&str] = &["$defs", "definitions"];
/// Keywords that refer.
pub(crate) const REFERENCES: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];

/// Where references of one schema lead.
pub(crate) struct Targets<'s> {
    root: &'s Value,
    anchors: HashMap<&'s str, &'s Value>,
    resources: usize,
    patterns: usize,
    /// Every subschema that the walk has met.
    all: Vec<&'s Value>,
}

impl<'s> Targets<'s> {
    /// Finds the anchors of a schema.
    pub(crate) fn of(root: &'s Value) -> Self {
        let mut targets = Self { root, anchors: HashMap::new(), resources: 0, patterns: 0, all: Vec::new() };
        targets.collect(root);
        targets
    }

    fn collect(&mut self, schema: &'s Value) {
        let Some(members) = schema.as_object() else { return };
        self.patterns += usize::from(members.contains_key("pattern"));
        self.patterns += members.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
        for keyword in ["$anchor", "$dynamicAnchor", "$id"] {
            let Some(name) = members.get(keyword).and_then(Value::as_str) else { continue };
            match (keyword, name.strip_prefix('#')) {
                ("$id", Some(anchor)) => drop(self.anchors.insert(anchor, schema)),
                ("$id", None) => self.resources += usize::from(!std::ptr::eq(schema, self.root)),
                _ => drop(self.anchors.insert(name, schema)),
            }
        }
        for (_, child) in children(members).chain(stored(members)) {
            self.collect(child);
        }
    }

    /// The subschema that a reference names.
    ///
    /// # Errors
    /// A sentence when it leads out of the schema or to nothing.
    pub(crate) fn resolve(&self, reference: &str) -> Result<&'s Value, String> {
        let shown = brig_protocol::escape::escaped(reference, 120);
        let own = self.root.get("$id").and_then(Value::as_str).map(|id| id.trim_end_matches('#')).filter(|id| !id.is_empty());
        let fragment = reference.strip_prefix('#').or_else(|| own.and_then(|id| reference.strip_prefix(id)?.strip_prefix('#')));
        let Some(fragment) = fragment.or_else(|| (Some(reference) == own).then_some("")) else {
            return Err(format!(
                "refers to {shown:?}; only references within the schema (\"#/…\", \"#name\") are followed, never a file or the network"
            ));
        };
        let fragment = percent_decoded(fragment);
        let target = if fragment.is_empty() {
            Some(self.root)
        } else if fragment.starts_with('/') {
            self.root.pointer(&fragment)
        } else {
            self.anchors.get(fragment.as_str()).copied()
        };
        target.ok_or_else(|| format!("refers to {shown:?}, which is not in the schema"))
    }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        let code = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok()).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (byte, code) {
            (b'%', Some(decoded)) => {
                bytes.push(decoded);
                rest = tail.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Subschemas of a schema with whether they look at the same place of the value.
pub(crate) fn children(members: &Map<String, Value>) -> impl Iterator<Item = (bool, &Value)> {
    members.iter().flat_map(|(keyword, value)| {
        let keyword = keyword.as_str();
        let same = SAME_ONE.contains(&keyword) || SAME_LIST.contains(&keyword) || SAME_MAP.contains(&keyword);
        let one = SAME_ONE.contains(&keyword) || PART_ONE.contains(&keyword);
        let list = SAME_LIST.contains(&keyword) || PART_LIST.contains(&keyword);
        let map = SAME_MAP.contains(&keyword) || PART_MAP.contains(&keyword);
        let one = one.then_some(value).filter(|value| value.is_object() || value.is_boolean());
        let list = list.then(|| value.as_array()).flatten().into_iter().flatten();
        let map = map.then(|| value.as_object()).flatten().into_iter().flat_map(Map::values);
        one.into_iter().chain(list).chain(map).map(move |child| (same, child))
    })
}

/// Subschemas that are only there to be referred to.
pub(crate) fn stored(members: &Map<String, Value>) -> impl Iterator<Item = (bool, &Value)> {
    STORES.iter().filter_map(|store| members.get(*store)?.as_object()).flat_map(Map::values).map(|child| (false, child))
}

/// What a walk knows of one subschema: still inside it, or done with this figure.
type Known<T> = HashMap<*const Value, Option<T>>;

/// Longest run and expansion below one subschema, every edge followed.
#[derive(Clone, Copy)]
struct Reach {
    longest: Option<u64>,
    expansion: u64,
}

/// Judges the graph of a schema.
///
/// # Errors
/// A half sentence that follows "the schema" when it could run away, or a reference
/// can not be followed.
pub(crate) fn shape(root: &Value) -> Result<Shape, String> {
    let targets = Targets::of(root);
    if targets.resources > 0 {
        return Err("has \"$id\" inside; references are followed within one schema only: leave the inner \"$id\" out".to_owned());
    }
    let patterns = targets.patterns;
    if patterns > PATTERNS {
        return Err(format!("has {patterns} patterns; at most {PATTERNS} are compiled"));
    }
    let mut walk = Walk { targets, reach: Known::new(), chains: Known::new() };
    let reach = walk.reach(root)?;
    let seen: Vec<&Value> = walk.targets.all.clone();
    let chain = seen.into_iter().chain([root]).try_fold(0, |longest, schema| Ok::<_, String>(walk.chain(schema)?.max(longest)))?;
    if chain > CHAIN {
        return Err(format!("has {chain} subschemas in a row for one place of the value; at most {CHAIN} are checked"));
    }
    Ok(Shape { chain, longest: reach.longest, expansion: reach.expansion, patterns })
}

struct Walk<'s> {
    targets: Targets<'s>,
    reach: Known<Reach>,
    chains: Known<u64>,
}

impl<'s> Walk<'s> {
    /// All edges of a subschema, with whether they stay at the same place.
    fn edges(&self, schema: &'s Value) -> Result<Vec<(bool, &'s Value)>, String> {
        let Some(members) = schema.as_object() else { return Ok(Vec::new()) };
        let mut edges: Vec<(bool, &Value)> = children(members).collect();
        for reference in REFERENCES.iter().filter_map(|keyword| members.get(*keyword)?.as_str()) {
            edges.push((true, self.targets.resolve(reference)?));
        }
        Ok(edges)
    }

    fn reach(&mut self, schema: &'s Value) -> Result<Reach, String> {
        match self.reach.get(&std::ptr::from_ref(schema)) {
            Some(Some(done)) => return Ok(*done),
            // Recursion: the validator remembers what it has checked behind it.
            Some(None) => return Ok(Reach { longest: None, expansion: 1 }),
            None => {}
        }
        self.reach.insert(schema, None);
        self.targets.all.push(schema);
        let mut own = Reach { longest: Some(1), expansion: 1 };
        let again =
            if ["unevaluatedProperties", "unevaluatedItems"].iter().any(|keyword| schema.get(keyword).is_some()) { AGAIN } else { 1 };
        for (same, next) in self.edges(schema)? {
            let below = self.reach(next)?;
            let times = if same { again } else { 1 };
            own.expansion = own.expansion.saturating_add(below.expansion.saturating_mul(times));
            own.longest = own.longest.zip(below.longest).map(|(own, below)| own.max(1 + below));
        }
        if own.expansion > EXPANSION {
            return Err(format!("is over {EXPANSION} subschemas when its references are written out; make it simpler"));
        }
        self.reach.insert(schema, Some(own));
        Ok(own)
    }

    fn chain(&mut self, schema: &'s Value) -> Result<u64, String> {
        match self.chains.get(&std::ptr::from_ref(schema)) {
            Some(Some(done)) => return Ok(*done),
            Some(None) => return Err("refers to itself without going into the value: such a check would never end".to_owned()),
            None => {}
        }
        self.chains.insert(schema, None);
        let mut own = 1;
        for (_, next) in self.edges(schema)?.into_iter().filter(|(same, _)| *same) {
            own = own.max(1 + self.chain(next)?);
        }
        self.chains.insert(schema, Some(own));
        Ok(own)
    }
}

/// Patterns that stand, through references too, below a keyword that can turn a no
/// into a yes. The references of `root` were resolved before.
pub(crate) fn inverted_patterns(root: &Value) -> impl Iterator<Item = &str> {
    let targets = Targets::of(root);
    let mut seen = std::collections::HashSet::new();
    let mut waiting = vec![(root, false)];
    let mut found = Vec::new();
    while let Some((schema, inverted)) = waiting.pop() {
        let Some(members) = schema.as_object().filter(|_| seen.insert((std::ptr::from_ref(schema), inverted))) else { continue };
        if inverted {
            found.extend(members.get("pattern").and_then(Value::as_str));
            found.extend(members.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(Map::keys).map(String::as_str));
        }
        let turning = ["not", "if", "oneOf"].iter().filter_map(|keyword| members.get(*keyword));
        waiting.extend(
            turning.flat_map(|value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice)).map(|child| (child, true)),
        );
        waiting.extend(children(members).map(|(_, child)| (child, inverted)));
        let referred =
            REFERENCES.iter().filter_map(|keyword| members.get(*keyword)?.as_str()).filter_map(|name| targets.resolve(name).ok());
        waiting.extend(referred.map(|target| (target, inverted)));
    }
    found.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_that_only_refers_to_itself_is_refused() {
        for schema in [
            json!({"$ref": "#"}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}),
            json!({"not": {"$ref": "#"}, "properties": {"x": {}}}),
            json!({"properties": {"a": {"$ref": "#/$defs/u"}}, "$defs": {
                "w": {"properties": {"p": {"$ref": "#/$defs/u"}}, "allOf": [{"$ref": "#/$defs/u"}]}, "u": {"allOf": [{"$ref": "#/$defs/w"}]}}}),
            json!({"properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
        ] {
            assert!(shape(&schema).is_err_and(|fault| fault.contains("never end")), "{schema}");
        }
    }

    #[test]
    fn recursion_that_goes_into_the_value_is_welcome() {
        let tree = json!({"$ref": "#/$defs/n", "$defs": {"n": {"properties": {"kids": {"items": {"$ref": "#/$defs/n"}}}}}});
        assert_eq!(shape(&tree).map(|shape| (shape.longest, shape.chain <= 3)), Ok((None, true)));
        assert!(shape(&json!({"properties": {"child": {"$ref": "#"}}})).is_ok());
    }

    #[test]
    fn references_that_multiply_are_refused_before_they_are_followed() {
        for keyword in ["allOf", "anyOf"] {
            let mut defs = Map::new();
            for level in 0..40 {
                let next = json!({"$ref": format!("#/$defs/a{}", level + 1)});
                let mut members = Map::new();
                members.insert(keyword.to_owned(), json!([next, {"properties": {"p": next}}]));
                defs.insert(format!("a{level}"), Value::Object(members));
            }
            defs.insert("a40".to_owned(), json!({"minLength": 5}));
            let schema = json!({"$ref": "#/$defs/a0", "$defs": defs});
            assert!(shape(&schema).is_err_and(|fault| fault.contains("written out")));
        }
    }

    #[test]
    fn nested_unevaluated_members_multiply_and_are_refused() {
        let nested = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({"allOf": [inner], "unevaluatedProperties": false}));
        assert!(shape(&nested(5)).is_ok());
        assert!(shape(&nested(9)).is_err_and(|fault| fault.contains("written out")));
    }

    #[test]
    fn nothing_outside_of_the_schema_is_referred_to() {
        for reference in ["https://example.com/a.json", "file:///etc/passwd", "other.json#/x", "#/$defs/missing", "#nowhere"] {
            assert!(shape(&json!({"$ref": reference})).is_err(), "{reference}");
        }
        assert!(shape(&json!({"$id": "https://example.com/a", "$ref": "https://example.com/a#/$defs/x", "$defs": {"x": {}}})).is_ok());
        assert!(shape(&json!({"properties": {"a": {"$id": "https://example.com/b"}}})).is_err());
    }

    #[test]
    fn anchors_and_escaped_pointers_are_found() {
        assert!(shape(&json!({"$ref": "#leaf", "$defs": {"x": {"$anchor": "leaf"}}})).is_ok());
        assert!(shape(&json!({"$ref": "#/$defs/leaf~1v1", "$defs": {"leaf/v1": {}}})).is_ok());
        assert!(shape(&json!({"$ref": "#/$defs/a%20b", "$defs": {"a b": {}}})).is_ok());
    }
}
