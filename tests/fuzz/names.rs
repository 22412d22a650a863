//! Names and patterns, against a matcher that is too simple to be wrong.

use crate::drive::{behaviour, fuzz};
use brig_protocol::limits::NAME_BYTES;
use brig_protocol::names::{NameFault, Pattern, camel, check_collection, check_function, kebab};

/// Glob matching by trying everything.
fn naive(pattern: &[u8], name: &[u8]) -> bool {
    match pattern {
        [] => name.is_empty(),
        [b'*', b'*', rest @ ..] => (0..=name.len()).any(|taken| naive(rest, &name[taken..])),
        [b'*', rest @ ..] => {
            let longest = name.iter().position(|byte| matches!(byte, b'.' | b':')).unwrap_or(name.len());
            (0..=longest).any(|taken| naive(rest, &name[taken..]))
        }
        [byte, rest @ ..] => name.split_first().is_some_and(|(first, tail)| first == byte && naive(rest, tail)),
    }
}

/// Whether some function has a name that `pattern` means, by trying what stars can stand
/// for. Nothing for a command, which means names that are spelt otherwise, and when there is
/// too much to try.
fn can_match(pattern: &str) -> Option<bool> {
    let pieces: Vec<&str> = pattern.split('*').collect();
    let stars = pieces.len() - 1;
    if stars > 4 || pattern.contains(':') || pattern.len() > NAME_BYTES {
        return None;
    }
    let fillings = ["", "a", ".a", "a.", "a.a"];
    let tries = fillings.len().pow(u32::try_from(stars).unwrap());
    Some((0..tries).any(|number| {
        let mut number = number;
        let mut name = String::new();
        for (index, piece) in pieces.iter().enumerate() {
            name.push_str(piece);
            if index < stars {
                name.push_str(fillings[number % fillings.len()]);
                number /= fillings.len();
            }
        }
        name.split_once('.').is_some_and(|(collection, function)| {
            check_collection(collection).is_ok() && check_function(function).is_ok() && naive(pattern.as_bytes(), name.as_bytes())
        })
    }))
}

/// Two names follow a pattern, each after a space.
fn parts(input: &str) -> (&str, &str, &str) {
    let (pattern, names) = input.split_once(' ').unwrap_or((input, "orders list"));
    let (collection, function) = names.split_once(' ').unwrap_or((names, "list"));
    (pattern, collection, function)
}

fn check_names(collection: &str, function: &str) {
    for name in [collection, function] {
        if check_function(name).is_ok() {
            assert!(name.is_ascii() && name.len() <= NAME_BYTES);
            let command = kebab(name);
            assert_eq!(kebab(&command), command, "{name:?}");
            assert!(!camel(name).contains(['-', '.']), "{name:?}");
        } else {
            std::hint::black_box((kebab(name), camel(name)));
        }
        assert!(check_collection(name).is_err() || check_function(name).is_ok(), "{name:?}");
    }
}

#[test]
fn a_pattern_is_refused_with_one_that_can_match_or_matches_as_a_naive_matcher_says() {
    let seeds = [
        "orders.* orders list",
        "** a b.c",
        "order-store:list-* orderStore listAll",
        "*.list* a list",
        "a.**.c a b.d.c",
        "a*b*.x aabb x",
        "* a b",
        "orders",
        "orders..list",
        "orderStore:listOrders",
        "$a._b $a _b",
        "a-b.c a-b c",
        "a:b:c",
        "**:x y x",
        "a.b- a b",
        "1a.b a b",
    ];
    let words = ["*", "**", ".", ":", "-", "_", "$", "a", "A", "1", " ", "orders", "getHTTPCode", "a.b", "о"];
    fuzz(&crate::target("names", &words, 70), seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect(), |input| {
        let Ok(text) = std::str::from_utf8(input) else { return behaviour("not UTF-8") };
        let (text, collection, function) = parts(text);
        check_names(collection, function);
        let pattern = match Pattern::parse(text) {
            Ok(pattern) => pattern,
            Err(NameFault::NeverMatches { suggestion }) => {
                // Stars and letters take turns in a pattern of the greatest length: nothing can be added.
                let fits = suggestion.len() <= 2 * NAME_BYTES + 1;
                assert!(!fits || Pattern::parse(&suggestion).is_ok(), "{suggestion:?} instead of {text:?}");
                return behaviour(&format!("never {}", suggestion.contains(':')));
            }
            Err(fault) => return behaviour(&fault.to_string()[..10]),
        };
        assert_eq!(pattern.as_str(), text);
        assert_ne!(can_match(text), Some(false), "{text:?} was accepted and can never match");
        let mut told = format!("{} {}", text.contains(':'), text.matches('*').count().min(9));
        if check_collection(collection).is_ok() && check_function(function).is_ok() && text.matches('*').count() <= 6 {
            let name =
                if text.contains(':') { format!("{}:{}", kebab(collection), kebab(function)) } else { format!("{collection}.{function}") };
            let expected = naive(text.as_bytes(), name.as_bytes());
            assert_eq!(pattern.matches(collection, function), expected, "{text:?} on {name:?}");
            told.push_str(if expected { " matches" } else { " does not" });
        }
        behaviour(&told.replace(|c: char| c.is_ascii_digit(), "*"))
    });
}
