//! What of an input a person is shown.
//!
//! Owns leaving out what the rule does not show. Pure. Nothing is ever put in the place of
//! what is left out but `null` for a member of an array, so that the others keep their
//! places; whether anything was left out is told beside it.

use serde_json::{Map, Value};

/// The part of `input` that `pointers` (RFC 6901) name, and whether there is more.
pub(super) fn part(input: &Value, pointers: &[String]) -> (Value, bool) {
    let paths: Vec<Vec<String>> = pointers.iter().map(|pointer| pointer.split('/').skip(1).map(unescaped).collect()).collect();
    let paths: Vec<&[String]> = paths.iter().map(Vec::as_slice).collect();
    let mut more = false;
    let shown = within(input, &paths, &mut more);
    (shown.unwrap_or_else(|| Value::Object(Map::new())), more)
}

fn unescaped(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

fn within(value: &Value, paths: &[&[String]], more: &mut bool) -> Option<Value> {
    if paths.iter().any(|path| path.is_empty()) {
        return Some(value.clone());
    }
    let below = |name: &str| -> Vec<&[String]> {
        paths.iter().filter(|path| path.first().is_some_and(|first| first == name)).filter_map(|path| path.get(1..)).collect()
    };
    let mut step = |name: &str, member: &Value| {
        let rest = below(name);
        let shown = if rest.is_empty() { None } else { within(member, &rest, more) };
        *more |= shown.is_none();
        shown
    };
    match value {
        Value::Object(members) => {
            let shown: Map<String, Value> = members.iter().filter_map(|(name, member)| Some((name.clone(), step(name, member)?))).collect();
            (!shown.is_empty()).then_some(Value::Object(shown))
        }
        Value::Array(members) => {
            let shown: Vec<Option<Value>> = members.iter().enumerate().map(|(index, member)| step(&index.to_string(), member)).collect();
            shown.iter().any(Option::is_some).then(|| Value::Array(shown.into_iter().map(Option::unwrap_or_default).collect()))
        }
        // Something was to be shown inside of what has no inside.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(input: &Value, pointers: &[&str]) -> (Value, bool) {
        part(input, &pointers.iter().map(|&pointer| pointer.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn only_what_is_named_is_shown_with_its_place() {
        let input = json!({"orderId": "o", "amount": 5, "card": {"number": "4111", "last": "1"}, "items": [{"a": 1}, {"a": 2, "b": 3}]});
        assert_eq!(shown(&input, &["/orderId", "/amount"]), (json!({"orderId": "o", "amount": 5}), true));
        assert_eq!(shown(&input, &["/card/last", "/items/1/b"]), (json!({"card": {"last": "1"}, "items": [null, {"b": 3}]}), true));
        assert_eq!(shown(&input, &["/card", "/card/last", "/orderId", "/amount", "/items"]), (input.clone(), false));
    }

    #[test]
    fn what_is_not_there_or_has_no_inside_is_not_shown_and_the_rest_is_said_to_be_more() {
        assert_eq!(shown(&json!({"a": "secret"}), &["/b", "/a/inside", "/a/0"]), (json!({}), true));
        assert_eq!(shown(&json!({}), &["/b"]), (json!({}), false));
        assert_eq!(shown(&json!({"a/b": {"~": 1}}), &["/a~1b/~0"]), (json!({"a/b": {"~": 1}}), false));
    }
}
