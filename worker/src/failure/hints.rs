//! Owns what to do instead: names that nearly match, things that are not there and why.
//! It reads messages of the engine to find a hint, never to decide how something ended.

use super::frames::Place;

/// What a program could have meant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    /// Collections with the names of their functions.
    pub(crate) collections: &'a [(String, Vec<String>)],
}

/// Functions that a hint lists.
const LISTED: usize = 12;

/// Names that programs reach for and that are not there on purpose.
const ABSENT: [(&str, &str); 22] = [
    ("fetch", "there is no network"),
    ("XMLHttpRequest", "there is no network"),
    ("WebSocket", "there is no network"),
    ("axios", "there is no network and there are no packages"),
    ("require", "there are no packages to require"),
    ("import", "there are no modules to import"),
    ("module", "a program is no CommonJS module"),
    ("exports", "a program is no CommonJS module"),
    ("process", "there is no process, environment or argument list"),
    ("Deno", "this is not Deno"),
    ("Bun", "this is not Bun"),
    ("Buffer", "this is not Node.js; use Uint8Array, TextEncoder, atob and btoa"),
    ("fs", "there are no files"),
    ("os", "there is no operating system to ask"),
    ("std", "there is no std module"),
    ("path", "there are no files and no packages"),
    ("__dirname", "there are no files"),
    ("__filename", "there are no files"),
    ("window", "this is no browser; use globalThis"),
    ("document", "this is no browser"),
    ("localStorage", "this is no browser; nothing is kept"),
    ("SharedArrayBuffer", "there is no shared memory"),
];

/// Globals of the language that a misspelt name may have meant.
const GLOBALS: [&str; 26] = [
    "console",
    "inputs",
    "JSON",
    "Math",
    "Object",
    "Array",
    "Promise",
    "Number",
    "String",
    "Boolean",
    "Date",
    "RegExp",
    "Map",
    "Set",
    "Symbol",
    "BigInt",
    "Error",
    "TypeError",
    "RangeError",
    "setTimeout",
    "setInterval",
    "clearTimeout",
    "structuredClone",
    "parseInt",
    "parseFloat",
    "undefined",
];

impl Known<'_> {
    /// A sentence that names the host functions.
    pub(crate) fn what_there_is(&self) -> String {
        let all: Vec<String> = self.functions().collect();
        if all.is_empty() {
            return "this evaluation has no host functions".to_owned();
        }
        let more = all.len().saturating_sub(LISTED);
        let listed: Vec<String> = all.into_iter().take(LISTED).collect();
        let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("a program reaches the world only through its host functions: {}{tail}", listed.join(", "))
    }

    fn functions(&self) -> impl Iterator<Item = String> + '_ {
        self.collections.iter().flat_map(|(name, functions)| functions.iter().map(move |function| format!("{name}.{function}")))
    }
}

/// What to do instead, if the error is of a known kind.
pub(crate) fn hint(name: &str, message: &str, place: Option<&Place>, known: &Known<'_>) -> Option<String> {
    match name {
        "ReferenceError" => {
            let missing = message.strip_suffix(" is not defined").map(|name| name.trim_matches('\''));
            missing.map(|missing| unknown_name(missing, known)).or_else(|| module_hint(message, known))
        }
        "TypeError" => not_a_function(message, known).or_else(|| of_nothing(message, place)),
        "RangeError" if message.contains("call stack") => {
            Some("the recursion went too deep; use a loop, or a stack of your own in an array".to_owned())
        }
        _ => module_hint(message, known),
    }
}

fn module_hint(message: &str, known: &Known<'_>) -> Option<String> {
    let is_import = message.contains("could not load module") || message.contains("import");
    is_import.then(|| format!("there are no modules to import; {}", known.what_there_is()))
}

fn unknown_name(missing: &str, known: &Known<'_>) -> String {
    if let Some((_, why)) = ABSENT.iter().find(|(name, _)| *name == missing) {
        return format!("{missing} is not there: {why}; {}", known.what_there_is());
    }
    if let Some((collection, _)) = known.collections.iter().find(|(_, functions)| functions.iter().any(|name| name == missing)) {
        return format!("{missing} is a function of the collection {collection}: write {collection}.{missing}");
    }
    let collections = known.collections.iter().map(|(name, _)| name.as_str());
    match nearest(missing, collections.chain(GLOBALS)) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("nothing called {missing} was declared; {}", known.what_there_is()),
    }
}

fn not_a_function(message: &str, known: &Known<'_>) -> Option<String> {
    let callee = message.strip_suffix(" is not a function")?;
    let (owner, member) = callee.rsplit_once('.')?;
    if let Some((_, functions)) = known.collections.iter().find(|(name, _)| name == owner) {
        let near = nearest(member, functions.iter().map(String::as_str));
        let all: Vec<String> = functions.iter().take(LISTED).map(|function| format!("{owner}.{function}")).collect();
        return Some(match near {
            Some(near) => format!("did you mean {owner}.{near}? The collection {owner} has: {}", all.join(", ")),
            None => format!("the collection {owner} has: {}", all.join(", ")),
        });
    }
    Some(format!("{owner} has no function {member}; if {owner} is the promise of a host call, await it first"))
}

/// A property of null or undefined.
fn of_nothing(message: &str, place: Option<&Place>) -> Option<String> {
    let rest = message.strip_prefix("cannot read property '").or_else(|| message.strip_prefix("cannot set property '"))?;
    let (property, of) = rest.split_once("' of ")?;
    place?;
    Some(format!("what stands before .{property} is {of} here; test it first, or use ?. if that can be"))
}

/// What a bare complaint of the engine about its own bounds means.
pub(super) fn engine_limit(name: &str, message: &str) -> Option<String> {
    (name == "InternalError" && message == "string too long")
        .then(|| "string too long: over the engine's limit on the length of one string".to_owned())
}

/// The engine says "not a function" without a name: the text at the place has it.
pub(super) fn named_callee(message: &str, place: Option<&Place>) -> Option<String> {
    if message != "not a function" {
        return None;
    }
    let (line, column) = place?.line_text()?;
    let characters: Vec<char> = line.chars().collect();
    let callee = callee_at(&characters, column)?;
    Some(format!("{callee} is not a function"))
}

fn is_part(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$' | '.' | '?' | '#')
}

/// The dotted name of the call at or around a column.
fn callee_at(line: &[char], column: usize) -> Option<String> {
    let column = column.min(line.len());
    // The engine points into the name, or at the bracket after it.
    let mut end = column;
    while line.get(end).copied().is_some_and(is_part) {
        end += 1;
    }
    let mut start = end;
    while start > 0 && line.get(start - 1).copied().is_some_and(is_part) {
        start -= 1;
    }
    let name: String = line.get(start..end)?.iter().collect();
    let name = name.trim_matches(|c| c == '.' || c == '?').replace("?.", ".");
    (!name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit())).then_some(name)
}

/// The candidate that differs least, if it differs little.
fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = (word.chars().count() / 3).clamp(1, 3);
    candidates
        .filter_map(|candidate| {
            let apart = distance(&word.to_lowercase(), &candidate.to_lowercase());
            (apart <= most).then_some((apart, candidate))
        })
        .min_by_key(|(apart, _)| *apart)
        .map(|(_, candidate)| candidate)
}

/// Longest word that is compared.
const WORD_CHARS: usize = 64;

/// Edits that lead from one word to the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().take(WORD_CHARS).collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, here) in from.chars().take(WORD_CHARS).enumerate() {
        let mut diagonal = index;
        let mut left = index + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, there) in row.iter_mut().skip(1).zip(&to) {
            let changed = diagonal + usize::from(here != *there);
            diagonal = *cell;
            left = changed.min(diagonal + 1).min(left + 1);
            *cell = left;
        }
    }
    row.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collections() -> Vec<(String, Vec<String>)> {
        vec![("orders".to_owned(), vec!["list".to_owned(), "refund".to_owned()])]
    }

    #[test]
    fn a_misspelt_name_gets_the_nearest_one() {
        let all = collections();
        let known = Known { collections: &all };
        assert_eq!(unknown_name("ordres", &known), "did you mean orders?");
        assert_eq!(unknown_name("refund", &known), "refund is a function of the collection orders: write orders.refund");
        assert!(unknown_name("fetch", &known).contains("orders.list, orders.refund"));
    }

    #[test]
    fn the_callee_is_read_from_the_text_at_the_place() {
        let line: Vec<char> = "const r = await orders.lst({});".chars().collect();
        for column in [16, 22, 23, 26] {
            assert_eq!(callee_at(&line, column).as_deref(), Some("orders.lst"), "{column}");
        }
    }

    #[test]
    fn distances_count_edits() {
        assert_eq!(distance("list", "lst"), 1);
        assert_eq!(distance("list", "list"), 0);
        assert_eq!(distance("abc", "xyz"), 3);
    }
}
