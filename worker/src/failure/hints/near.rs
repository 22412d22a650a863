//! Owns which known name a misspelt one may have meant.

use brig_protocol::spelling::distance;

/// Globals that a misspelt name may have meant.
pub(super) const GLOBALS: &[&str] = &[
    "AbortController",
    "AbortSignal",
    "AggregateError",
    "Array",
    "ArrayBuffer",
    "BigInt",
    "Boolean",
    "DataView",
    "Date",
    "Error",
    "EventTarget",
    "Float64Array",
    "Function",
    "HostError",
    "Int32Array",
    "Intl",
    "Iterator",
    "JSON",
    "Map",
    "Math",
    "Number",
    "Object",
    "Promise",
    "Proxy",
    "RangeError",
    "Reflect",
    "RegExp",
    "Set",
    "String",
    "Symbol",
    "SyntaxError",
    "TextDecoder",
    "TextEncoder",
    "TypeError",
    "URL",
    "URLSearchParams",
    "Uint8Array",
    "WeakMap",
    "WeakRef",
    "WeakSet",
    "atob",
    "btoa",
    "clearInterval",
    "clearTimeout",
    "console",
    "crypto",
    "decodeURIComponent",
    "encodeURIComponent",
    "globalThis",
    "inputs",
    "isFinite",
    "isNaN",
    "parseFloat",
    "parseInt",
    "performance",
    "queueMicrotask",
    "setImmediate",
    "setInterval",
    "setTimeout",
    "structuredClone",
    "undefined",
];

/// Methods that only values of one kind have, for who calls them on another.
const KINDS: &[(&str, &str)] = &[
    (
        "arrays",
        "map filter reduce forEach find findIndex findLast some every flatMap flat join push pop shift unshift sort reverse splice toSorted",
    ),
    (
        "texts",
        "split toUpperCase toLowerCase trim replace replaceAll startsWith endsWith padStart padEnd match matchAll repeat substring charAt localeCompare",
    ),
    ("numbers", "toFixed toPrecision toExponential"),
    ("dates", "toISOString getTime getFullYear getMonth getDate getDay getHours toLocaleDateString toLocaleTimeString"),
];

/// What kind of values has a method, if only one has.
pub(super) fn whose(member: &str) -> Option<&'static str> {
    KINDS.iter().find(|(_, members)| members.split(' ').any(|one| one == member)).map(|(kind, _)| *kind)
}

/// Globals that are no functions.
const OBJECTS: &[&str] = &["Intl", "JSON", "Math", "Reflect", "console", "crypto", "globalThis", "inputs", "performance", "undefined"];

/// Functions of the language's objects, by owner; the last row is methods of values.
const FUNCTIONS: &[(&str, &str)] = &[
    ("Array", "from fromAsync isArray of"),
    ("Date", "UTC now parse"),
    ("JSON", "parse stringify"),
    ("Math", "abs atan atan2 cbrt ceil cos exp floor hypot log log10 log2 max min pow random round sign sin sqrt tan trunc"),
    ("Number", "isFinite isInteger isNaN isSafeInteger parseFloat parseInt"),
    (
        "Object",
        "assign create defineProperty entries freeze fromEntries getOwnPropertyNames getPrototypeOf groupBy hasOwn is isFrozen keys values",
    ),
    ("Promise", "all allSettled any race reject resolve try withResolvers"),
    ("Reflect", "apply construct get has ownKeys set"),
    ("String", "fromCharCode fromCodePoint raw"),
    ("console", "assert count debug dir error group groupEnd info log table time timeEnd trace warn"),
    ("crypto", "getRandomValues randomUUID"),
    ("performance", "mark measure now"),
    (
        "",
        "add append apply at bind call catch charAt charCodeAt clear codePointAt concat delete endsWith entries every exec fill filter \
         finally find findIndex findLast findLastIndex flat flatMap forEach get getDate getDay getFullYear getHours getMinutes getMonth \
         getTime has hasOwnProperty includes indexOf join keys lastIndexOf localeCompare map match matchAll normalize padEnd padStart pop \
         push reduce reduceRight repeat replace replaceAll reverse set shift slice some sort splice split startsWith substring test then \
         toFixed toISOString toLocaleDateString toLocaleString toLowerCase toReversed toSorted toSpliced toString toUpperCase trim trimEnd \
         trimStart unshift values with",
    ),
];

/// Whether this is, unless a program changed it, a function of the language.
pub(super) fn is_function(name: &str) -> bool {
    match name.rsplit_once('.') {
        None => GLOBALS.contains(&name) && !OBJECTS.contains(&name),
        Some((owner, member)) => !owner.is_empty() && members(owner).any(|known| known == member),
    }
}

/// The functions of a global object of the language.
fn members(owner: &str) -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().filter(move |(name, _)| *name == owner).flat_map(|(_, members)| members.split_whitespace())
}

/// The function of `owner` that `member` may have meant: one of the language's object of
/// that name, else a method that arrays, texts, promises and the like have.
pub(super) fn member(owner: &str, member: &str) -> Option<&'static str> {
    let owned = nearest(member, members(owner));
    owned.or_else(|| nearest(member, members(""))).filter(|near| *near != member)
}

/// Words of a text that are looked at for declared names.
const WORDS: usize = 20_000;

/// The declared name of a program that `word` may have meant. Short words are too near to
/// everything.
pub(super) fn declared<'a>(word: &str, text: &'a str) -> Option<&'a str> {
    if word.chars().count() < 4 {
        return None;
    }
    let mut words = text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$'))).filter(|part| !part.is_empty()).take(WORDS);
    let mut names = Vec::new();
    while let Some(part) = words.next() {
        if matches!(part, "const" | "let" | "var" | "function" | "class") {
            names.extend(words.next());
        }
    }
    nearest(word, names.into_iter()).filter(|near| *near != word)
}

/// The candidate that differs least, if it differs little.
pub(super) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = (word.chars().count() / 3).clamp(1, 3);
    candidates
        .filter_map(|candidate| {
            let apart = distance(&letters(word), &letters(candidate));
            (apart <= most).then_some((apart, candidate))
        })
        .min_by_key(|(apart, _)| *apart)
        .map(|(_, candidate)| candidate)
}

/// Longest word that is compared.
const WORD_CHARS: usize = 64;

fn letters(word: &str) -> Vec<char> {
    word.to_lowercase().chars().take(WORD_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_edits() {
        let apart = |from: &str, to: &str| distance(&letters(from), &letters(to));
        assert_eq!(apart("list", "lst"), 1);
        assert_eq!(apart("list", "list"), 0);
        assert_eq!(apart("abc", "xyz"), 3);
        assert_eq!(apart("fliter", "filter"), 1);
        assert_eq!(apart("", "ab"), 2);
    }

    #[test]
    fn a_member_is_looked_for_with_its_owner_first() {
        assert_eq!(member("Math", "summ"), None);
        assert_eq!(member("Object", "entires"), Some("entries"));
        assert_eq!(member("rows", "fliter"), Some("filter"));
        assert_eq!(member("rows", "filter"), None);
    }

    #[test]
    fn a_declared_name_is_found_in_the_text() {
        assert_eq!(declared("resutl", "const result = 1; resutl"), Some("result"));
        assert_eq!(declared("x", "const y = 1"), None);
        assert_eq!(declared("total", "const other = 1"), None);
    }

    #[test]
    fn functions_of_the_language_are_known() {
        for (name, known) in
            [("Set", true), ("Object.keys", true), ("Math.summ", false), ("JSON", false), ("rows.map", false), (".map", false)]
        {
            assert_eq!(is_function(name), known, "{name}");
        }
    }
}
