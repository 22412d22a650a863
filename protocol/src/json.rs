//! Counting a JSON text before anything is built from it.
//!
//! Owns one linear pass over hostile text: depth, nodes, lone surrogates. Never
//! builds a value and never recurses. It does not check grammar beyond what the
//! counts need; `serde_json` does that afterwards.

/// What a text may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Deepest nesting, in levels of arrays and objects.
    pub depth: u32,
    /// Most values and keys.
    pub nodes: u64,
}

impl Bounds {
    /// For one line or frame: a payload at the nesting limit inside its envelope.
    pub const ENVELOPE: Self =
        Self { depth: crate::limits::NESTING_LEVELS + crate::limits::ENVELOPE_LEVELS, nodes: crate::limits::JSON_NODES };
    /// For one payload.
    pub const PAYLOAD: Self = Self { depth: crate::limits::NESTING_LEVELS, nodes: crate::limits::JSON_NODES };
}

/// What a text holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Deepest nesting seen.
    pub depth: u32,
    /// Values and keys seen (an upper bound on what a tree of it would hold).
    pub nodes: u64,
    /// A `\uD800`–`\uDFFF` escape without its partner: no UTF-8 form.
    pub lone_surrogate: bool,
}

/// A text over its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoundFault {
    /// Nested too deeply.
    #[error("nested deeper than {limit} levels at byte {offset}")]
    TooDeep {
        /// Where the level was exceeded.
        offset: usize,
        /// The bound.
        limit: u32,
    },
    /// Too many values.
    #[error("more than {limit} values at byte {offset}")]
    TooManyNodes {
        /// Where the count was exceeded.
        offset: usize,
        /// The bound.
        limit: u64,
    },
}

/// Counts `text` and refuses it at the first bound that it exceeds.
///
/// # Errors
/// [`BoundFault`] with the place. A text that is not JSON is counted as far as its
/// quotes and brackets go.
pub fn count(text: &[u8], bounds: Bounds) -> Result<Counts, BoundFault> {
    let mut counts = Counts { nodes: 1, ..Counts::default() };
    let mut depth = 0u32;
    let mut offset = 0usize;
    while let Some(byte) = text.get(offset) {
        match byte {
            b'"' => {
                let rest = text.get(offset + 1..).unwrap_or_default();
                offset += 1 + string_length(rest, &mut counts.lone_surrogate);
                continue;
            }
            b'[' | b'{' => {
                depth += 1;
                counts.nodes += 1;
                counts.depth = counts.depth.max(depth);
                if depth > bounds.depth {
                    return Err(BoundFault::TooDeep { offset, limit: bounds.depth });
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' | b':' => counts.nodes += 1,
            _ => {}
        }
        if counts.nodes > bounds.nodes {
            return Err(BoundFault::TooManyNodes { offset, limit: bounds.nodes });
        }
        offset += 1;
    }
    Ok(counts)
}

/// Length of a string's rest, closing quote included, and whether it holds a lone
/// surrogate escape.
fn string_length(rest: &[u8], lone: &mut bool) -> usize {
    let mut offset = 0usize;
    let mut high_open = false;
    while let Some(byte) = rest.get(offset) {
        match byte {
            b'"' => {
                *lone |= high_open;
                return offset + 1;
            }
            b'\\' => {
                let unit = escape_unit(rest.get(offset + 1..).unwrap_or_default());
                match unit {
                    Some(0xD800..=0xDBFF) => {
                        *lone |= high_open;
                        high_open = true;
                    }
                    Some(0xDC00..=0xDFFF) => {
                        *lone |= !high_open;
                        high_open = false;
                    }
                    _ => {
                        *lone |= high_open;
                        high_open = false;
                    }
                }
                offset += if unit.is_some() { 6 } else { 2 };
            }
            _ => {
                *lone |= high_open;
                high_open = false;
                let plain = rest.get(offset..).unwrap_or_default();
                offset += memchr::memchr2(b'"', b'\\', plain).unwrap_or(plain.len());
            }
        }
    }
    rest.len()
}

/// The code unit of `uXXXX` right behind a backslash.
fn escape_unit(rest: &[u8]) -> Option<u32> {
    let (first, digits) = rest.split_first()?;
    if *first != b'u' {
        return None;
    }
    let digits = std::str::from_utf8(digits.get(..4)?).ok()?;
    u32::from_str_radix(digits, 16).ok()
}

/// Whether a text is a JSON object, by its first byte.
#[must_use]
pub fn is_object(text: &str) -> bool {
    text.trim_start_matches([' ', '\t', '\r', '\n']).starts_with('{')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WIDE: Bounds = Bounds { depth: 1000, nodes: 1_000_000 };

    fn counted(text: &str) -> Counts {
        count(text.as_bytes(), WIDE).unwrap_or_default()
    }

    #[test]
    fn brackets_in_strings_do_not_count() {
        assert_eq!(counted(r#"["[[[[\"{"]"#).depth, 1);
    }

    #[test]
    fn the_level_after_the_last_allowed_is_refused_with_its_place() {
        let bounds = Bounds { depth: 3, nodes: 100 };
        assert!(count(b"[[[1]]]", bounds).is_ok());
        assert_eq!(count(b"[[[[1]]]]", bounds), Err(BoundFault::TooDeep { offset: 3, limit: 3 }));
    }

    #[test]
    fn too_many_values_are_refused() {
        let bounds = Bounds { depth: 3, nodes: 4 };
        assert!(count(b"[1,2]", bounds).is_ok());
        assert!(matches!(count(b"[1,2,3,4,5]", bounds), Err(BoundFault::TooManyNodes { .. })));
    }

    #[test]
    fn a_lone_surrogate_is_seen_and_a_pair_is_not_one() {
        assert!(counted(r#""\ud800""#).lone_surrogate);
        assert!(counted(r#""\udc00""#).lone_surrogate);
        assert!(counted(r#""\ud800x""#).lone_surrogate);
        assert!(counted(r#""\ud800\ud800\udc00""#).lone_surrogate);
        assert!(!counted(r#""\ud83d\ude00 \\ud800""#).lone_surrogate);
    }

    proptest! {
        #[test]
        fn any_bytes_are_counted_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            std::hint::black_box(count(&bytes, Bounds { depth: 5, nodes: 20 })).ok();
        }

        #[test]
        fn lone_surrogates_are_exactly_what_serde_refuses(units in proptest::collection::vec(prop_oneof![Just(0xD800u32), Just(0xDC00), Just(0x41), Just(0xDFFF)], 0..6)) {
            let text: String = std::iter::once("\"".to_owned())
                .chain(units.iter().map(|unit| format!("\\u{unit:04x}")))
                .chain(std::iter::once("\"".to_owned()))
                .collect();
            let refused = serde_json::from_str::<String>(&text).is_err();
            prop_assert_eq!(counted(&text).lone_surrogate, refused);
        }
    }
}
