//! Names of collections and functions, their spellings, and the pattern grammar.
//!
//! Owns what a name may look like, the command spelling (`order-store:list-orders`
//! for `orderStore.listOrders`), and matching. Never decides anything about a match.
//!
//! Names are ASCII, so no Unicode look-alike or case folding can make two names
//! match that are not byte for byte the same.

use crate::limits::NAME_BYTES;

/// What is wrong with a name or a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    /// Empty or too long.
    #[error("a name has 1 to {NAME_BYTES} bytes; this one has {length}")]
    Length {
        /// Its length in bytes.
        length: usize,
    },
    /// A character that names do not have.
    #[error("{character:?} can not be part of a name; letters, digits, `_`, `$` and `-` can")]
    Character {
        /// The first such character.
        character: char,
    },
    /// Begins or ends with something that only joins parts.
    #[error("a name begins with a letter, `_` or `$`, and does not end with `-` or `.`")]
    Edge,
    /// A pattern that can match no function.
    #[error("this pattern can never match a function; write {suggestion:?}")]
    NeverMatches {
        /// The nearest spelling that can.
        suggestion: String,
    },
}

/// Checks the name of a collection.
///
/// # Errors
/// [`NameFault`] naming what is wrong.
pub fn check_collection(name: &str) -> Result<(), NameFault> {
    check_segment(name)
}

/// Checks the name of a function: one or more segments joined by dots.
///
/// # Errors
/// [`NameFault`] naming what is wrong.
pub fn check_function(name: &str) -> Result<(), NameFault> {
    if name.is_empty() || name.len() > NAME_BYTES {
        return Err(NameFault::Length { length: name.len() });
    }
    name.split('.').try_for_each(check_segment)
}

fn check_segment(segment: &str) -> Result<(), NameFault> {
    if segment.is_empty() || segment.len() > NAME_BYTES {
        return Err(NameFault::Length { length: segment.len() });
    }
    if let Some(character) = segment.chars().find(|c| !is_name_character(*c)) {
        return Err(NameFault::Character { character });
    }
    let begins_well = segment.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '$');
    if !begins_well || segment.ends_with('-') {
        return Err(NameFault::Edge);
    }
    Ok(())
}

const fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '$' | '-')
}

/// The command spelling of one name: `listOrders` → `list-orders`, `getHTTPCode` →
/// `get-http-code`, `user_id` → `user-id`.
#[must_use]
pub fn kebab(name: &str) -> String {
    let bytes = name.as_bytes();
    let mut out = String::with_capacity(name.len() + 4);
    for (index, character) in name.char_indices() {
        let previous = index.checked_sub(1).and_then(|i| bytes.get(i));
        let next = bytes.get(index + 1);
        let starts_word = character.is_ascii_uppercase()
            && (previous.is_some_and(|p| p.is_ascii_lowercase() || p.is_ascii_digit())
                || (previous.is_some_and(u8::is_ascii_uppercase) && next.is_some_and(u8::is_ascii_lowercase)));
        if starts_word && !out.ends_with('-') {
            out.push('-');
        }
        match character {
            '_' if out.is_empty() || out.ends_with('-') => {}
            '_' => out.push('-'),
            other => out.push(other.to_ascii_lowercase()),
        }
    }
    out
}

/// The identifier spelling of one name: `list-orders` → `listOrders`. A name that is
/// an identifier already stays as it is.
#[must_use]
pub fn camel(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut raise = false;
    for character in name.chars() {
        if matches!(character, '-' | '.') {
            raise = !out.is_empty();
        } else if raise {
            out.push(character.to_ascii_uppercase());
            raise = false;
        } else {
            out.push(character);
        }
    }
    out
}

/// Which functions a rule is about.
///
/// `collection.function`; `*` stands for any run of characters within a segment,
/// `**` for any run across segments. `order-store:list-orders` is the command
/// spelling and is compared with the command spelling of the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    command: bool,
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// [`NameFault`] when it has characters that no name has, or can match nothing.
    pub fn parse(text: &str) -> Result<Self, NameFault> {
        if text.is_empty() || text.len() > 2 * NAME_BYTES + 1 {
            return Err(NameFault::Length { length: text.len() });
        }
        let command = text.contains(':');
        let separator = if command { ':' } else { '.' };
        let wrong = |c: &char| !is_name_character(*c) && *c != '*' && *c != '.' && *c != separator;
        if let Some(character) = text.chars().find(wrong) {
            return Err(NameFault::Character { character });
        }
        if !command && let Some(length) = overlong(text) {
            return Err(NameFault::Length { length });
        }
        if !text.contains("**") && !text.contains(separator) {
            return Err(NameFault::NeverMatches { suggestion: suggestion(text) });
        }
        let has_empty_segment = text.split(['.', ':']).any(str::is_empty);
        // A command's words may begin and end as they like: `_1_` is spelt `1-`.
        let has_bad_edge = !command && text.split('.').any(|segment| trimmed(segment) != segment);
        let shouts = command && text.contains(|c: char| c.is_ascii_uppercase() || c == '_');
        if has_empty_segment || has_bad_edge || text.matches(':').count() > 1 || shouts {
            return Err(NameFault::NeverMatches { suggestion: tidied(text, command) });
        }
        Ok(Self { text: text.to_owned(), command })
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the function `collection.function` is meant.
    #[must_use]
    pub fn matches(&self, collection: &str, function: &str) -> bool {
        if self.command {
            let name = format!("{}:{}", kebab(collection), kebab(function));
            glob(self.text.as_bytes(), name.as_bytes())
        } else {
            glob(self.text.as_bytes(), format!("{collection}.{function}").as_bytes())
        }
    }
}

/// The length of what no name is long enough for, if `text` asks for that.
fn overlong(text: &str) -> Option<usize> {
    let letters = |part: &str| part.bytes().filter(|byte| *byte != b'*').count();
    let function = if text.contains("**") { None } else { text.split_once('.').map(|(_, function)| function) };
    text.split('.').chain(function).map(letters).find(|length| *length > NAME_BYTES)
}

/// `segment` without what no name begins or ends with.
fn trimmed(segment: &str) -> &str {
    segment.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-').trim_end_matches('-')
}

fn suggestion(text: &str) -> String {
    match trimmed(text) {
        "" | "*" => "**".to_owned(),
        segment if overlong(segment).is_some() => "**".to_owned(),
        segment => format!("{segment}.*"),
    }
}

fn tidied(text: &str, command: bool) -> String {
    let spelt = |part: &str| if command { kebab(part) } else { trimmed(part).to_owned() };
    let parts: Vec<String> = text.split(['.', ':']).map(spelt).filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        [] => "**".to_owned(),
        [one] => suggestion(one),
        [first, rest @ ..] => format!("{first}{}{}", if command { ":" } else { "." }, rest.join(".")),
    }
}

/// Glob matching in time proportional to pattern × name, without recursion.
fn glob(pattern: &[u8], name: &[u8]) -> bool {
    // reached[i]: the first i bytes of the name are matched by the pattern so far.
    let mut reached = vec![false; name.len() + 1];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    let mut rest = pattern;
    while let Some((byte, tail)) = rest.split_first() {
        let across = *byte == b'*' && tail.first() == Some(&b'*');
        rest = if across { tail.get(1..).unwrap_or_default() } else { tail };
        reached = step(*byte, across, &reached, name);
    }
    reached.last().copied().unwrap_or(false)
}

fn step(byte: u8, across: bool, reached: &[bool], name: &[u8]) -> Vec<bool> {
    let mut next = Vec::with_capacity(reached.len());
    let mut running = false;
    for (index, here) in reached.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|i| name.get(i));
        if byte == b'*' {
            let extends = running && before.is_some_and(|c| across || !matches!(c, b'.' | b':'));
            running = *here || extends;
            next.push(running);
        } else {
            let previous = index.checked_sub(1).and_then(|i| reached.get(i)).copied().unwrap_or(false);
            next.push(previous && before == Some(&byte));
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, collection: &str, function: &str) -> bool {
        Pattern::parse(pattern).is_ok_and(|p| p.matches(collection, function))
    }

    #[test]
    fn spellings_round_trip() {
        for (name, command) in [("listOrders", "list-orders"), ("orderStore", "order-store"), ("getHTTPCode", "get-http-code"), ("a", "a")]
        {
            assert_eq!(kebab(name), command);
        }
        assert_eq!(camel("list-orders"), "listOrders");
        assert_eq!(camel("listOrders"), "listOrders");
        assert_eq!(kebab("issue_write"), "issue-write");
    }

    #[test]
    fn a_star_stays_within_its_segment_and_two_do_not() {
        assert!(matches("orders.*", "orders", "list"));
        assert!(!matches("orders.*", "orders", "admin.list"));
        assert!(matches("orders.**", "orders", "admin.list"));
        assert!(matches("**", "orders", "list"));
        assert!(matches("*.list*", "orders", "listAll"));
        assert!(!matches("*.list", "orders", "listAll"));
    }

    #[test]
    fn the_command_spelling_means_the_same_function() {
        assert!(matches("order-store:list-orders", "orderStore", "listOrders"));
        assert!(matches("order-store:*", "orderStore", "listOrders"));
        assert!(!matches("order-store:list", "orderStore", "listOrders"));
    }

    #[test]
    fn case_and_look_alikes_never_match() {
        assert!(!matches("orders.list", "Orders", "list"));
        assert!(Pattern::parse("оrders.list").is_err());
        assert!(check_collection("оrders").is_err());
    }

    #[test]
    fn a_pattern_that_can_match_nothing_is_refused_with_one_that_can() {
        assert_eq!(Pattern::parse("*"), Err(NameFault::NeverMatches { suggestion: "**".to_owned() }));
        assert_eq!(Pattern::parse("orders"), Err(NameFault::NeverMatches { suggestion: "orders.*".to_owned() }));
        assert_eq!(Pattern::parse("orders..list"), Err(NameFault::NeverMatches { suggestion: "orders.list".to_owned() }));
        assert_eq!(
            Pattern::parse("orderStore:listOrders"),
            Err(NameFault::NeverMatches { suggestion: "order-store:list-orders".to_owned() })
        );
    }

    #[test]
    fn a_pattern_with_an_edge_or_a_length_that_no_name_has_is_refused() {
        for (pattern, suggestion) in [("orders.list-", "orders.list"), ("1orders.*", "orders.*"), ("orders.-*", "orders.*"), ("1", "**")] {
            assert_eq!(Pattern::parse(pattern), Err(NameFault::NeverMatches { suggestion: suggestion.to_owned() }), "{pattern}");
        }
        assert!(Pattern::parse("orders.*-x").is_ok());
        assert!(matches("1-:*", "_1_", "list"));
        for long in [format!("a.{}", "x".repeat(65)), "x".repeat(65), format!("a.{}.{}", "x".repeat(32), "y".repeat(32))] {
            assert_eq!(Pattern::parse(&long), Err(NameFault::Length { length: 65 }));
        }
        assert!(Pattern::parse(&format!("a.{}", "x".repeat(64))).is_ok());
    }

    #[test]
    fn names_that_could_confuse_are_refused() {
        for bad in ["", "a b", "1a", "a-", "a\u{202e}", "a/b", "../x"] {
            assert!(check_collection(bad).is_err(), "{bad:?}");
        }
        assert!(check_function("admin.list").is_ok());
        assert!(check_function("admin..list").is_err());
    }

    proptest! {
        #[test]
        fn a_name_matches_itself_and_the_pattern_for_everything(collection in "[a-z][a-zA-Z0-9]{0,8}", function in "[a-z][a-zA-Z0-9]{0,8}") {
            let itself = format!("{collection}.{function}");
            prop_assert!(matches(&itself, &collection, &function));
            prop_assert!(matches("**", &collection, &function));
            let command = format!("{}:{}", kebab(&collection), kebab(&function));
            prop_assert!(matches(&command, &collection, &function));
        }

        #[test]
        fn a_pattern_without_stars_matches_one_name_only(a in "[a-c]{1,3}", b in "[a-c]{1,3}", c in "[a-c]{1,3}") {
            let pattern = format!("{c}.{a}");
            prop_assert_eq!(matches(&pattern, &c, &b), a == b);
        }

        #[test]
        fn no_pattern_panics(text in "[a-z.:*A-Z_-]{0,20}") {
            if let Ok(pattern) = Pattern::parse(&text) {
                std::hint::black_box(pattern.matches("orders", "list"));
            }
        }
    }
}
