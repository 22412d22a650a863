//! A value as a person expects it at a prompt: much like Node prints it.
//!
//! Owns the looks. What is deep or long is left out and said to be; numbers keep their
//! spelling. Everything that a guest chose is escaped.

use brig::protocol::escape::escaped;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Deeper objects and arrays are only named.
const LEVELS: usize = 4;
/// Most items of an array, and members of an object.
const ITEMS: usize = 100;
/// Longest string within a value, in bytes; one that is the value itself is shown whole.
const TEXT_BYTES: usize = 10_000;
/// Widest array or object that stays on one line.
const WIDTH: usize = 72;

/// Members of an object, in their order.
struct Members<'a> {
    kept: Vec<(String, &'a RawValue)>,
    more: usize,
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Members { kept: Vec::new(), more: 0 };
                while members.kept.len() < ITEMS {
                    let Some(member) = map.next_entry::<String, &'de RawValue>()? else { return Ok(members) };
                    members.kept.push(member);
                }
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                    members.more += 1;
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// The value, without a line end.
pub(super) fn inspect(value: &RawValue) -> String {
    if value.get().trim_start().starts_with('"') { string(value.get(), usize::MAX) } else { shown(value.get(), 0) }
}

fn shown(text: &str, level: usize) -> String {
    let text = text.trim();
    match text.chars().next() {
        Some('"') => string(text, TEXT_BYTES),
        Some('[') => array(text, level),
        Some('{') => object(text, level),
        // A number, true, false or null.
        _ => escaped(text, TEXT_BYTES),
    }
}

fn string(text: &str, most: usize) -> String {
    let Ok(value) = serde_json::from_str::<String>(text) else { return escaped(text, TEXT_BYTES) };
    // The quote that needs no backslash.
    let quote = ['\'', '"', '`'].into_iter().find(|quote| !value.contains(*quote)).unwrap_or('\'');
    let mut out = String::new();
    for character in value.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\\' => out.push_str("\\\\"),
            _ if character == quote => out.extend(['\\', character]),
            _ => out.push_str(&escaped(character.encode_utf8(&mut [0; 4]), usize::MAX)),
        }
        if out.len() > most {
            return format!("{quote}{out}{quote}... {} more bytes", value.len().saturating_sub(most));
        }
    }
    format!("{quote}{out}{quote}")
}

fn array(text: &str, level: usize) -> String {
    let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(text) else { return escaped(text, TEXT_BYTES) };
    if items.is_empty() {
        return "[]".to_owned();
    }
    if level >= LEVELS {
        return "[Array]".to_owned();
    }
    let mut parts: Vec<String> = items.iter().take(ITEMS).map(|item| shown(item.get(), level + 1)).collect();
    parts.extend(more(items.len().saturating_sub(ITEMS)));
    joined('[', &parts, ']', level)
}

fn object(text: &str, level: usize) -> String {
    let Ok(members) = serde_json::from_str::<Members<'_>>(text) else { return escaped(text, TEXT_BYTES) };
    if members.kept.is_empty() {
        return "{}".to_owned();
    }
    if level >= LEVELS {
        return "[Object]".to_owned();
    }
    let mut parts: Vec<String> =
        members.kept.iter().map(|(name, value)| format!("{}: {}", key(name), shown(value.get(), level + 1))).collect();
    parts.extend(more(members.more));
    joined('{', &parts, '}', level)
}

fn more(count: usize) -> Option<String> {
    (count > 0).then(|| format!("... {count} more item{}", if count == 1 { "" } else { "s" }))
}

fn joined(open: char, parts: &[String], close: char, level: usize) -> String {
    let width: usize = parts.iter().map(|part| part.chars().count() + 2).sum();
    if width + 2 * level <= WIDTH && !parts.iter().any(|part| part.contains('\n')) {
        return format!("{open} {} {close}", parts.join(", "));
    }
    let indent = "  ".repeat(level + 1);
    format!("{open}\n{indent}{}\n{}{close}", parts.join(&format!(",\n{indent}")), "  ".repeat(level))
}

fn key(name: &str) -> String {
    let first = name.chars().next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_' || first == '$');
    if first && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_' || character == '$') {
        return name.to_owned();
    }
    serde_json::to_string(name).map_or_else(|_| String::new(), |text| string(&text, TEXT_BYTES))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn looks(text: &str) -> String {
        inspect(&RawValue::from_string(text.to_owned()).unwrap())
    }

    #[test]
    fn values_look_as_a_person_expects() {
        assert_eq!(looks("{\"a\":1,\"b-c\":[true,null,\"it's\"],\"d\":{}}"), "{ a: 1, 'b-c': [ true, null, \"it's\" ], d: {} }");
        assert_eq!(looks("\"a\\nb\\u001b[2J\""), "'a\\nb\\u{1b}[2J'");
        assert_eq!(looks("12345678901234567890.0"), "12345678901234567890.0");
        assert_eq!(looks("[]"), "[]");
    }

    #[test]
    fn what_is_wide_has_lines_and_what_is_deep_or_long_is_named() {
        let wide = format!("{{\"first\":\"{}\",\"second\":[1,2]}}", "x".repeat(70));
        assert_eq!(looks(&wide), format!("{{\n  first: '{}',\n  second: [ 1, 2 ]\n}}", "x".repeat(70)));
        assert_eq!(looks("[[[[[[1]]]]]]"), "[ [ [ [ [Array] ] ] ] ]");
        let long = format!("[{}]", vec!["1"; 130].join(","));
        assert!(looks(&long).ends_with("... 30 more items\n]"), "{}", looks(&long));
    }
}
