//! Counting a JSON text, against serde_json.

use crate::drive::{behaviour, fuzz};
use brig_protocol::json::{self, BoundFault, Bounds, Counts};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

const WIDE: Bounds = Bounds { depth: u32::MAX, nodes: u64::MAX };

/// What a tree would hold if names that come twice were kept.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Tree {
    nodes: u64,
    depth: u32,
    empties: u64,
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Counting;
        impl<'de> Visitor<'de> for Counting {
            type Value = Tree;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("JSON")
            }
            fn visit_bool<E>(self, _: bool) -> Result<Tree, E> {
                Ok(Tree { nodes: 1, ..Tree::default() })
            }
            fn visit_i64<E>(self, _: i64) -> Result<Tree, E> {
                Ok(Tree { nodes: 1, ..Tree::default() })
            }
            fn visit_u64<E>(self, _: u64) -> Result<Tree, E> {
                Ok(Tree { nodes: 1, ..Tree::default() })
            }
            fn visit_f64<E>(self, _: f64) -> Result<Tree, E> {
                Ok(Tree { nodes: 1, ..Tree::default() })
            }
            fn visit_str<E>(self, _: &str) -> Result<Tree, E> {
                Ok(Tree { nodes: 1, ..Tree::default() })
            }
            fn visit_unit<E>(self) -> Result<Tree, E> {
                Ok(Tree { nodes: 1, ..Tree::default() })
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree, A::Error> {
                let mut all = Tree { nodes: 1, depth: 1, empties: 1 };
                while let Some(item) = seq.next_element::<Tree>()? {
                    all.add(item, 0);
                }
                Ok(all.closed())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
                let mut all = Tree { nodes: 1, depth: 1, empties: 1 };
                while let Some((_, item)) = map.next_entry::<String, Tree>()? {
                    all.add(item, 1);
                }
                Ok(all.closed())
            }
        }
        deserializer.deserialize_any(Counting)
    }
}

impl Tree {
    fn add(&mut self, item: Self, keys: u64) {
        self.nodes += item.nodes + keys;
        self.depth = self.depth.max(item.depth + 1);
        self.empties += item.empties;
    }

    /// Counted as empty until something was in it.
    const fn closed(mut self) -> Self {
        if self.nodes > 1 {
            self.empties -= 1;
        }
        self
    }
}

/// Deepest nesting of a valid text, its strings taken out first.
fn naive_depth(text: &str) -> u32 {
    let (mut depth, mut deepest, mut within, mut escaped) = (0u32, 0, false, false);
    for character in text.chars() {
        match character {
            _ if escaped => escaped = false,
            '\\' if within => escaped = true,
            '"' => within = !within,
            '[' | '{' if !within => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            ']' | '}' if !within => depth -= 1,
            _ => {}
        }
    }
    deepest
}

#[test]
fn what_is_counted_is_what_a_tree_of_it_would_hold() {
    let mut seeds = crate::seeds::lines();
    seeds.extend(
        [
            r#"{"":[[],{},{"a":{}},[""],"\ud83d\ude00"],"":"\ud800","é":1e5}"#,
            r#"[[[[{"a":[null,true,-1.5e-7,"x\\\"[y"]}]]]]"#,
            "\"\\uDC00\"",
            "7",
        ]
        .iter()
        .map(|text| text.as_bytes().to_vec()),
    );
    let words = ["null", "true", "[]", "{}", "\"\"", "[[]]", "{\"a\":1}", ",", ":", "[", "]", "{", "}", "\"", "\\ud800\\udc00"];
    fuzz(&crate::target("json-count", &words, 80), seeds, |input| {
        let counts = json::count(input, WIDE).unwrap();
        within_bounds(input, counts);
        let Ok(text) = std::str::from_utf8(input) else { return behaviour("not UTF-8") };
        let valid = serde_json::from_str::<&RawValue>(text).is_ok();
        if valid {
            assert_eq!(counts.depth, naive_depth(text));
        }
        let tree = serde_json::from_str::<Tree>(text);
        match &tree {
            Ok(tree) => {
                assert_eq!((counts.depth, counts.nodes), (tree.depth, tree.nodes + tree.empties));
                assert!(!counts.lone_surrogate, "a text without one");
            }
            Err(fault) if valid => {
                let told = fault.to_string();
                let other = told.contains("recursion limit") || told.contains("out of range");
                assert!(other || counts.lone_surrogate, "{told}");
            }
            Err(_) => {}
        }
        let told = tree.as_ref().err().map(ToString::to_string).unwrap_or_default();
        let deep = "d".repeat(usize::try_from(counts.depth.min(40)).unwrap());
        behaviour(&format!("{valid} {} {deep} {told}", counts.lone_surrogate))
    });
}

/// A bound refuses exactly the texts that hold more, and its fault lies in the text.
fn within_bounds(text: &[u8], counts: Counts) {
    for bounds in [Bounds { depth: 3, nodes: u64::MAX }, Bounds { depth: u32::MAX, nodes: 20 }, Bounds { depth: 4, nodes: 9 }] {
        let fits = counts.depth <= bounds.depth && counts.nodes <= bounds.nodes;
        match json::count(text, bounds) {
            Ok(again) => assert!(fits && again == counts, "{bounds:?}"),
            Err(BoundFault::TooDeep { offset, .. } | BoundFault::TooManyNodes { offset, .. }) => {
                assert!(!fits && offset < text.len(), "{bounds:?}");
            }
        }
    }
}
