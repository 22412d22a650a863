//! Payloads: from raw JSON text to a tree that can be judged.
//!
//! Owns the bounds of a payload (depth, values, surrogates, repeated keys) and
//! building its tree. Never changes a payload: what is passed on is the raw text,
//! so whole numbers beyond 2^53 lose nothing here.

use brig_protocol::escape::escaped;
use brig_protocol::json::{self, Bounds, Counts};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

/// Levels that are read with the parser's own recursion before a fresh parser takes
/// the rest; below the parser's own limit of 128.
const LEVELS_AT_ONCE: u32 = 100;

/// Why a payload can not be taken, as a half sentence that follows "the input".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct PayloadFault(pub(crate) String);

/// Counts a payload: one pass over its bytes, nothing is built.
///
/// # Errors
/// [`PayloadFault`] when it is nested too deeply, holds too many values, or holds a
/// lone surrogate.
pub(crate) fn measure(text: &str) -> Result<Counts, PayloadFault> {
    let counts = json::count(text.as_bytes(), Bounds::PAYLOAD).map_err(|fault| PayloadFault(format!("is {fault}")))?;
    if counts.lone_surrogate {
        return Err(PayloadFault(
            "holds half of a UTF-16 surrogate pair (a \\ud800–\\udfff escape without its partner), which is no text; \
             call toWellFormed() on the string"
                .to_owned(),
        ));
    }
    Ok(counts)
}

/// Builds the tree of a payload that was measured.
///
/// # Errors
/// [`PayloadFault`] when it is not JSON, an object has a key twice (two readers could
/// then see two different payloads), or a number is out of range.
pub(crate) fn tree(text: &str) -> Result<Value, PayloadFault> {
    let mut parser = serde_json::Deserializer::from_str(text);
    let value = Tree { levels: LEVELS_AT_ONCE }.deserialize(&mut parser).map_err(|fault| unreadable(&fault))?;
    parser.end().map_err(|fault| unreadable(&fault))?;
    Ok(value)
}

fn unreadable(fault: &serde_json::Error) -> PayloadFault {
    PayloadFault(format!("can not be read: {}", escaped(&fault.to_string(), 200)))
}

#[derive(Clone, Copy)]
struct Tree {
    levels: u32,
}

impl Tree {
    fn deeper(self) -> Option<Self> {
        self.levels.checked_sub(1).filter(|levels| *levels > 0).map(|levels| Self { levels })
    }
}

impl<'de> DeserializeSeed<'de> for Tree {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// A part that lies too deep for this parser: a fresh one reads it.
fn afresh<E: de::Error>(raw: &RawValue) -> Result<Value, E> {
    tree(raw.get()).map_err(E::custom)
}

impl<'de> Visitor<'de> for Tree {
    type Value = Value;
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        match self.deeper() {
            Some(deeper) => {
                while let Some(item) = seq.next_element_seed(deeper)? {
                    items.push(item);
                }
            }
            None => {
                while let Some(raw) = seq.next_element::<&RawValue>()? {
                    items.push(afresh(raw)?);
                }
            }
        }
        Ok(Value::Array(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        let deeper = self.deeper();
        while let Some(key) = map.next_key::<String>()? {
            let value = match deeper {
                Some(deeper) => map.next_value_seed(deeper)?,
                None => afresh(map.next_value::<&RawValue>()?)?,
            };
            if members.contains_key(&key) {
                return Err(de::Error::custom(format_args!("key {:?} comes twice in one object", escaped(&key, 60))));
            }
            members.insert(key, value);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_payload_at_the_nesting_limit_is_read_and_one_level_more_is_not() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let nested = |levels: usize| format!("{}1{}", open.repeat(levels), close.repeat(levels));
            assert!(measure(&nested(512)).is_ok());
            let mut value = &tree(&nested(512)).unwrap();
            let mut levels = 0;
            while let Some(inner) = value.get(0).or_else(|| value.get("a")) {
                value = inner;
                levels += 1;
            }
            assert_eq!((levels, value), (512, &Value::from(1)));
            assert!(measure(&nested(513)).unwrap_err().0.contains("512 levels"));
        }
    }

    #[test]
    fn a_key_that_comes_twice_is_refused_at_any_depth() {
        assert!(tree(r#"{"a":1,"a":2}"#).unwrap_err().0.contains("\"a\" comes twice"));
        let deep = format!("{}{{\"a\":1,\"\\u0061\":2}}{}", "[".repeat(150), "]".repeat(150));
        assert!(tree(&deep).unwrap_err().0.contains("comes twice"));
    }

    #[test]
    fn whole_numbers_beyond_two_to_the_53_are_judged_as_they_are() {
        assert_eq!(tree("9007199254740993").unwrap().as_i64(), Some(9_007_199_254_740_993));
        assert_eq!(tree("18446744073709551615").unwrap().as_u64(), Some(u64::MAX));
        assert!(tree("1e999").unwrap_err().0.contains("out of range"));
    }

    #[test]
    fn a_lone_surrogate_is_refused_in_one_clear_sentence() {
        assert!(measure(r#"{"a":"\ud800"}"#).unwrap_err().0.contains("surrogate"));
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
            ".{0,6}".prop_map(Value::from)
        ];
        leaf.prop_recursive(5, 40, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::btree_map(".{0,4}", inner, 0..5).prop_map(|members| members.into_iter().collect::<Value>())
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_is_read_as_the_ordinary_parser_reads_it(value in json()) {
            let text = value.to_string();
            prop_assert_eq!(tree(&text).unwrap(), value);
        }

        #[test]
        fn a_text_is_read_exactly_when_the_ordinary_parser_reads_it(text in "[\\[\\]{}:,\"a0-9.e-]{0,24}") {
            let ordinary = serde_json::from_str::<Value>(&text);
            match tree(&text) {
                Ok(value) => prop_assert_eq!(Some(value), ordinary.ok()),
                Err(fault) => prop_assert!(ordinary.is_err() || fault.0.contains("comes twice")),
            }
        }
    }
}
