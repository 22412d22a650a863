//! Owns what to do instead: names that nearly match, things that are not there and why.
//! It reads messages of the engine to find a hint, never to decide how something ended.

mod absent;
mod callee;
mod near;

use super::frames::{Frame, Place};
use near::{GLOBALS, nearest};

/// What a program could have meant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    /// Collections with the names of their functions.
    pub(crate) collections: &'a [(String, Vec<String>)],
}

/// Functions that a hint lists.
const LISTED: usize = 12;

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

    fn collection(&self, name: &str) -> Option<&[String]> {
        self.collections.iter().find(|(known, _)| known == name).map(|(_, functions)| functions.as_slice())
    }

    /// `collection.function` of a function that there is.
    fn is_function(&self, name: &str) -> bool {
        name.split_once('.').is_some_and(|(owner, member)| self.collection(owner).is_some_and(|all| all.iter().any(|one| one == member)))
    }

    /// Whether a call of that member of that collection gives a promise: it is a host function.
    pub(crate) fn gives_promise(&self, collection: &str, name: &str) -> bool {
        self.collection(collection).is_some() && !self.has_not(collection, name)
    }

    /// Whether a member is none of a collection's functions, by no spelling.
    pub(super) fn has_not(&self, collection: &str, name: &str) -> bool {
        self.collection(collection).is_some_and(|all| !all.iter().any(|one| one == name || brig_protocol::names::camel(one) == name))
    }

    pub(super) fn lacks(&self, collection: &str, name: &str) -> String {
        format!(
            "there is no {collection}.{name}, which the program takes; the collection {collection} has: {}",
            self.functions_of(collection)
        )
    }

    fn functions_of(&self, collection: &str) -> String {
        let all = self.collection(collection).unwrap_or_default().iter().take(LISTED);
        all.map(|function| format!("{collection}.{function}")).collect::<Vec<_>>().join(", ")
    }
}

/// What to do instead, if the error is of a known kind.
pub(crate) fn hint(name: &str, message: &str, place: Option<&Place>, known: &Known<'_>) -> Option<String> {
    match name {
        "ReferenceError" => {
            let missing = message.strip_suffix(" is not defined").map(|name| name.trim_matches('\''));
            missing
                .map(|missing| unknown_name(missing, place, known))
                .or_else(|| message.contains("could not load module").then(|| no_modules(known)))
                .or_else(|| of_the_language(message))
        }
        "TypeError" => not_a_function(message, place, known).or_else(|| of_nothing(message, place)).or_else(|| of_the_language(message)),
        "SyntaxError" if message.starts_with("import.meta") => Some(no_modules(known)),
        "SyntaxError" => of_json(message).or_else(|| of_regexp(message)),
        "RangeError" if message.contains("call stack") => {
            Some("the recursion went too deep; use a loop, or a stack of your own in an array".to_owned())
        }
        "RangeError" if message.starts_with("too many arguments") => {
            Some("hand an array this long over in parts, or go through it with reduce or a loop".to_owned())
        }
        "RangeError" if message == "Date value is NaN" => {
            Some("the Date was made of something that is no date; test it with Number.isNaN(date.getTime())".to_owned())
        }
        _ => None,
    }
}

fn no_modules(known: &Known<'_>) -> String {
    format!("there are no modules to import; {}", known.what_there_is())
}

fn unknown_name(missing: &str, place: Option<&Place>, known: &Known<'_>) -> String {
    if let Some(why) = absent::why(missing) {
        return format!("{missing} is not there: {why}; {}", known.what_there_is());
    }
    if let Some((collection, _)) = known.collections.iter().find(|(_, functions)| functions.iter().any(|name| name == missing)) {
        return format!("{missing} is a function of the collection {collection}: write {collection}.{missing}");
    }
    let declared = place.and_then(|place| near::declared(missing, &place.view.text));
    let collections = known.collections.iter().map(|(name, _)| name.as_str());
    match nearest(missing, collections.chain(declared).chain(GLOBALS.iter().copied())) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("nothing called {missing} was declared; {}", known.what_there_is()),
    }
}

/// The names in `a or b is not a function`.
fn told_callees(message: &str) -> Option<impl Iterator<Item = &str>> {
    let names = message.strip_suffix(" is not a function").or_else(|| message.strip_suffix(" is not a constructor"))?;
    Some(names.split(" or "))
}

fn not_a_function(message: &str, place: Option<&Place>, known: &Known<'_>) -> Option<String> {
    if message.ends_with(GIVEN_NO_FUNCTION) {
        return Some("give it a function, such as (x) => x".to_owned());
    }
    let callees: Vec<&str> = told_callees(message)?.collect();
    let found = callees.iter().find_map(|callee| of_callee(callee, place, known));
    found.or_else(|| super::places::lacking(&place?.view.text, known)).or_else(|| {
        let (owner, member) = callees.first()?.rsplit_once('.')?;
        (callees.len() == 1).then(|| {
            let whose = near::whose(member).map(|whose| format!(", which {whose} have")).unwrap_or_default();
            format!("{owner} has no function {member}{whose}; if {owner} is a promise, such as that of a host call, await it first")
        })
    })
}

/// What is known of something that was called.
fn of_callee(callee: &str, place: Option<&Place>, known: &Known<'_>) -> Option<String> {
    let Some((owner, member)) = callee.rsplit_once('.') else {
        if let Some(collection) = callee.strip_suffix("[…]").filter(|owner| known.collection(owner).is_some()) {
            return Some(format!("the collection {collection} has: {}", known.functions_of(collection)));
        }
        if known.collection(callee).is_some() {
            return Some(format!("{callee} is a collection; call one of its functions: {}", known.functions_of(callee)));
        }
        return absent::why(callee).map(|_| unknown_name(callee, place, known)).or_else(|| taken_from_a_collection(callee, known));
    };
    if known.is_function(callee) {
        return Some(format!("call it without new: await {callee}({{…}})"));
    }
    if let Some(functions) = known.collection(owner) {
        let near = nearest(member, functions.iter().map(String::as_str)).map(|near| format!("did you mean {owner}.{near}? "));
        let collection = if near.is_some() { "The collection" } else { "the collection" };
        return Some(format!("{}{collection} {owner} has: {}", near.unwrap_or_default(), known.functions_of(owner)));
    }
    if ["globalThis", "window", "global", "self"].contains(&owner) {
        return Some(unknown_name(member, place, known));
    }
    if let Some(call) = owner.strip_suffix("(…)").filter(|call| known.is_function(call)) {
        return Some(format!("{call}(…) gives a promise: write (await {call}(…)).{member}"));
    }
    let near = near::member(owner, member).map(|near| format!("did you mean {owner}.{near}?"));
    let lacks = || GLOBALS.contains(&owner).then(|| format!("{owner} has no function {member} here"));
    near.or_else(|| absent::part(owner).map(str::to_owned)).or_else(lacks)
}

/// `const { lst } = orders; lst({})`: a name that is nearly that of a host function.
fn taken_from_a_collection(callee: &str, known: &Known<'_>) -> Option<String> {
    // Of a name of a letter or two, any other is near.
    if callee.chars().count() < 3 {
        return None;
    }
    let near = nearest(callee, known.collections.iter().flat_map(|(_, functions)| functions).map(String::as_str))?;
    let (collection, _) = known.collections.iter().find(|(_, functions)| functions.iter().any(|name| name == near))?;
    Some(format!("did you mean {collection}.{near}? The collection {collection} has: {}", known.functions_of(collection)))
}

/// A property of null or undefined.
fn of_nothing(message: &str, place: Option<&Place>) -> Option<String> {
    let rest = message.strip_prefix("cannot read property '").or_else(|| message.strip_prefix("cannot set property '"))?;
    let (property, of) = rest.split_once("' of ")?;
    place?;
    if property == "Symbol.iterator" {
        return Some(format!(
            "a loop, a spread or a list of names needs an array or the like, and has {of} here; test it first, or use ?? []"
        ));
    }
    let access = if property.chars().all(|c| c.is_ascii_digit()) { format!("[{property}]") } else { format!(".{property}") };
    Some(format!("what stands before {access} is {of} here; test it first, or use ?. if that can be"))
}

/// Faults of the language whose message alone says too little.
fn of_the_language(message: &str) -> Option<String> {
    const COPY: &str = "it is frozen, as inputs and what is in it are: change a copy, such as [...list], {...object} or \
                        structuredClone(inputs)";
    let hint = match message {
        "value is not iterable" | "value is not async iterable" => {
            "arrays, texts, Maps, Sets and generators can be spread, taken apart or looped over; await a promise first \
             (host functions give promises), write Object.entries(…) for an object, and give Promise.all one array"
        }
        "object is not extensible" => COPY,
        "cannot convert BigInt to number" => "a BigInt and a number do not mix: convert one of them with Number(…) or BigInt(…)",
        "BigInt are forbidden in JSON.stringify" => {
            "convert it first, as in JSON.stringify(value, (key, v) => typeof v === 'bigint' ? String(v) : v)"
        }
        "circular reference" => "JSON can not say what contains itself; leave the member out that leads back",
        "must be called with new" => "write new before it, as in new Map()",
        "class constructors must be invoked with 'new'" => "write new before the name of the class",
        "invalid 'in' operand" => "in asks an object; ask a text or a list with .includes(…)",
        "cannot convert symbol to string" => "write String(symbol), or symbol.description",
        "Cannot convert undefined or null to object" => {
            "what is taken apart, or given to a function of Object, is undefined or null here; test it first, or use ?? {}"
        }
        EMPTY_REDUCE => "give reduce a start value as its second argument",
        NO_TEXT => "collections are such objects; use JSON.stringify, or one of its members",
        "regexp must have the 'g' flag" => "write the g flag behind the pattern, as in /…/g",
        _ if message.ends_with(" is read-only") => {
            "it is a const, which let would make a variable, or it is frozen, as inputs and what is in it are: change a copy, such as \
             [...list], {...object} or structuredClone(inputs)"
        }
        _ if message.ends_with(" is not initialized") => "it is used before its declaration has run: move the declaration up",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// What `JSON.parse` says of something that is no text.
fn of_json(message: &str) -> Option<String> {
    (message == "unexpected token: 'object'" || message == "unexpected token: 'undefined'")
        .then(|| "JSON.parse takes a text; what host functions give and inputs hold are values already".to_owned())
}

/// The word that regular expressions are told with, in front of what the engine says.
const NO_REGEXP: &str = "invalid regular expression: ";

/// What the engine says of a regular expression says not that it is one.
pub(super) fn no_regexp(message: &str) -> String {
    if message.starts_with("invalid regular expression") { message.to_owned() } else { format!("{NO_REGEXP}{message}") }
}

/// A text that is no regular expression, handed to the function of that name.
pub(super) fn made_regexp(name: &str, message: &str, first: Option<&Frame>) -> Option<String> {
    (name == "SyntaxError" && first.and_then(Frame::native_name) == Some("RegExp")).then(|| no_regexp(message))
}

fn of_regexp(message: &str) -> Option<String> {
    if message == "invalid regular expression flags" {
        return Some("the flags are d, g, i, m, s, u, v and y, each at most once, and not u with v".to_owned());
    }
    (message.starts_with(NO_REGEXP) && !message.contains("group name")).then(|| {
        "write a backslash before ( ) [ ] { } * + ? . ^ $ | / that is meant as itself; a text that is to be found as it is goes through \
         RegExp.escape(text)"
            .to_owned()
    })
}

/// What is wrong with a text that the parser passes and the engine does not compile.
pub(super) fn of_syntax(message: &str, place: &Place) -> Option<String> {
    let (characters, at) = place.window()?;
    match message {
        "invalid redefinition of lexical identifier" => {
            let name = word_before(&characters, at)?;
            return Some(format!("{name} is declared already: take another name, or assign to it without const or let"));
        }
        "continue must be inside loop" => {
            return Some("in a function given to forEach or map, return goes on with the next one".to_owned());
        }
        "break must be inside loop or switch" => {
            return Some("a function given to forEach or map can not stop it: use for…of, some or find".to_owned());
        }
        "missing initializer for variable" => return Some("a const needs a value: write = …, or use let".to_owned()),
        _ => {}
    }
    if characters.get(at) == Some(&'@') {
        return Some("decorators are not supported: call the function yourself, as in A = decorate(A)".to_owned());
    }
    let before: String = characters.get(..at)?.iter().collect();
    before.trim_end().ends_with("accessor").then(|| "the keyword accessor is not supported: write a plain field, or get and set".to_owned())
}

/// The name that ends at a place.
fn word_before(text: &[char], at: usize) -> Option<String> {
    let before = text.get(..at)?;
    let end = before.iter().rposition(|c| !c.is_whitespace())? + 1;
    let is_word = |c: &char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let start = before.get(..end)?.iter().rposition(|c| !is_word(c)).map_or(0, |at| at + 1);
    (start < end).then(|| before.get(start..end).unwrap_or_default().iter().collect())
}

/// What a bare complaint of the engine means.
pub(super) fn engine_limit(name: &str, message: &str) -> Option<String> {
    match (name, message) {
        ("InternalError", "string too long") => Some("string too long: over the engine's limit on the length of one string".to_owned()),
        ("TypeError", "toPrimitive") => Some(NO_TEXT.to_owned()),
        ("TypeError", "empty array") => Some(EMPTY_REDUCE.to_owned()),
        _ => None,
    }
}

const NO_TEXT: &str = "the object has no text or number form";
const EMPTY_REDUCE: &str = "reduce of an empty array without a start value";
const GIVEN_NO_FUNCTION: &str = " was given something that is not a function";

/// The engine says "not a function" without a name: the text at the place has it. `first`
/// is the innermost frame.
pub(super) fn named_callee(message: &str, first: Option<&Frame>, place: Option<&Place>, known: &Known<'_>) -> Option<String> {
    if message != "not a function" && message != "not a constructor" {
        return None;
    }
    if let Some(native) = first.and_then(Frame::native_name) {
        if message == "not a constructor" && ["Symbol", "BigInt"].contains(&native) {
            return Some(format!("{native} is {message}; call it without new"));
        }
        return (message == "not a function").then(|| format!("{native}{GIVEN_NO_FUNCTION}"));
    }
    let (characters, at) = place?.window()?;
    if is_async_loop(&characters, at) {
        return Some("value is not async iterable".to_owned());
    }
    let is_innocent = |name: &String| message == "not a function" && (near::is_function(name) || known.is_function(name));
    let names: Vec<String> = callee::callees(&characters, at).into_iter().filter(|name| !is_innocent(name)).collect();
    (!names.is_empty()).then(|| format!("{} is {message}", names.join(" or ")))
}

/// `for await` asks for a method that what follows `of` does not have.
fn is_async_loop(text: &[char], at: usize) -> bool {
    let rest: String = text.iter().skip(at).take(20).collect();
    rest.strip_prefix("for").is_some_and(|rest| rest.trim_start().starts_with("await"))
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
        assert_eq!(unknown_name("ordres", None, &known), "did you mean orders?");
        assert_eq!(unknown_name("refund", None, &known), "refund is a function of the collection orders: write orders.refund");
        assert!(unknown_name("fetch", None, &known).contains("orders.list, orders.refund"));
    }

    #[test]
    fn what_an_error_of_the_program_says_of_imports_is_no_hint() {
        let known = Known { collections: &[] };
        assert_eq!(hint("Error", "an important thing", None, &known), None);
        assert_eq!(hint("SyntaxError", "import it", None, &known), None);
    }
}
