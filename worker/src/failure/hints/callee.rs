//! Owns what was called and is no function. The engine says neither: the text around the
//! place does. A call has no place of its own for the engine, so that place may lie within
//! the arguments of the one that failed; then every call it may be is named, for a wrong
//! name would be worse than none.

/// Names that are told for one fault.
const MOST: usize = 3;
/// Characters of a name that are told.
const NAME_CHARS: usize = 80;
/// Links of a chain, such as `a.b(…).c`, that are told.
const LINKS: usize = 8;
/// Words that a call never begins with.
const KEYWORDS: &[&str] = &[
    "async", "await", "case", "catch", "delete", "do", "else", "export", "for", "function", "if", "in", "new", "of", "return", "switch",
    "throw", "typeof", "void", "while", "with", "yield",
];

/// The calls that may have failed at a place, the innermost first.
pub(super) fn callees(text: &[char], at: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut cursor = at.min(text.len());
    if let Some((start, end)) = word_at(text, cursor) {
        cursor = start;
        if is_called(text, start, end) {
            found.extend(expression_before(text, end));
        } else if let Some(open) = call_of_member(text, end) {
            found.extend(expression_before(text, open));
        }
    } else if get(text, cursor) == Some('(') {
        found.extend(expression_before(text, cursor));
    }
    while found.len() < MOST {
        let Some(open) = enclosing(text, cursor) else { break };
        if !is_declaration(text, open) {
            found.extend(expression_before(text, open).filter(|name| !found.contains(name)));
        }
        cursor = open;
    }
    found
}

fn get(text: &[char], at: usize) -> Option<char> {
    text.get(at).copied()
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$' | '#')
}

/// Whether a character is part of a dotted name: letters, dots, and the `?` of `?.`.
fn is_part(text: &[char], at: usize) -> bool {
    match get(text, at) {
        Some('.') => true,
        Some('?') => get(text, at + 1) == Some('.') && !get(text, at + 2).is_some_and(|next| next.is_ascii_digit()),
        Some(character) => is_word(character),
        None => false,
    }
}

/// Where the word begins that ends before `end`.
fn word_start(text: &[char], end: usize) -> usize {
    let mut start = end;
    while start > 0 && is_part(text, start - 1) {
        start -= 1;
    }
    start
}

fn skip_space(text: &[char], mut at: usize) -> usize {
    while get(text, at).is_some_and(char::is_whitespace) {
        at += 1;
    }
    at
}

fn skip_space_back(text: &[char], mut end: usize) -> usize {
    while end > 0 && get(text, end - 1).is_some_and(char::is_whitespace) {
        end -= 1;
    }
    end
}

fn text_of(text: &[char], start: usize, end: usize) -> String {
    text.get(start..end).unwrap_or_default().iter().collect()
}

/// The dotted name at a place, or the next one after keywords such as `await` and `new`.
fn word_at(text: &[char], at: usize) -> Option<(usize, usize)> {
    let mut at = at;
    for _ in 0..LINKS {
        at = skip_space(text, at);
        let mut end = at;
        while is_part(text, end) {
            end += 1;
        }
        let start = word_start(text, at);
        if start == end {
            return None;
        }
        if !KEYWORDS.contains(&text_of(text, start, end).as_str()) {
            return Some((start, end));
        }
        at = end;
    }
    None
}

/// Whether something is called there, or made with `new`.
fn is_called(text: &[char], start: usize, end: usize) -> bool {
    let next = get(text, skip_space(text, end));
    let before = skip_space_back(text, start);
    matches!(next, Some('(' | '`')) || text_of(text, word_start(text, before), before) == "new"
}

/// The bracket of the call in `["name"](`, `[i].name(` and the like behind a name, or
/// behind the brackets that it is in.
fn call_of_member(text: &[char], end: usize) -> Option<usize> {
    let mut at = end;
    for _ in 0..LINKS {
        at = skip_space(text, at);
        match get(text, at)? {
            '[' => at = closing(text, at)? + 1,
            ']' => at += 1,
            '(' => return (at > end).then_some(at),
            _ if is_part(text, at) => at += 1 + text.get(at + 1..)?.iter().take_while(|c| is_word(**c)).count(),
            _ => return None,
        }
    }
    None
}

/// The square bracket that closes the one at `open`.
fn closing(text: &[char], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut quote = None;
    for (at, character) in text.iter().enumerate().skip(open) {
        match (quote, *character) {
            (Some(open), close) if open == close => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"' | '`') => quote = Some(*character),
            (None, '[') => depth += 1,
            (None, ']') if depth == 1 => return Some(at),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

/// `.name` for `["name"]`, which is the same member; anything else in brackets is cut short.
fn member_in(text: &[char], open: usize, close: usize) -> String {
    let inner = text_of(text, open + 1, close);
    let name = ['\'', '"', '`'].iter().find_map(|quote| inner.trim().strip_prefix(*quote)?.strip_suffix(*quote));
    match name {
        Some(name) if !name.is_empty() && name.chars().all(is_word) => format!(".{name}"),
        _ => "[…]".to_owned(),
    }
}

/// `function f(`, or the head of a method, an `if` or the like.
fn is_declaration(text: &[char], open: usize) -> bool {
    let end = skip_space_back(text, open);
    let start = word_start(text, end);
    let before = skip_space_back(text, start);
    KEYWORDS.contains(&text_of(text, start, end).as_str()) || text_of(text, word_start(text, before), before) == "function"
}

/// What is called by the bracket at `end`: a dotted name, with what it hangs on cut short.
fn expression_before(text: &[char], end: usize) -> Option<String> {
    let mut shown = String::new();
    let mut end = end;
    for _ in 0..LINKS {
        if shown.is_empty() || shown.starts_with(['.', '?']) {
            end = skip_space_back(text, end);
        }
        let last = get(text, end.checked_sub(1)?);
        let (start, part) = match last {
            Some(')') => (opening(text, end - 1, '(', ')')?, "(…)".to_owned()),
            Some(']') => {
                let open = opening(text, end - 1, '[', ']')?;
                (open, member_in(text, open, end - 1))
            }
            Some(quote @ ('\'' | '"' | '`')) if shown.starts_with('.') => (quote_start(text, end - 1, quote)?, format!("{quote}…{quote}")),
            Some(_) if is_part(text, end - 1) => {
                let start = word_start(text, end);
                (start, text_of(text, start, end))
            }
            _ => break,
        };
        shown = format!("{part}{shown}");
        end = start;
        let hangs = shown.starts_with(['.', '?'])
            || (shown.starts_with(['(', '[']) && end > 0 && (is_part(text, end - 1) || matches!(get(text, end - 1), Some(')' | ']'))));
        if !hangs {
            break;
        }
    }
    let shown = shown.replace("?.", ".");
    let shown = shown.trim_start_matches("...").trim_end_matches('.');
    let first_word: String = shown.chars().take_while(|c| is_word(*c)).collect();
    let told = !shown.is_empty() && shown != "(…)" && !shown.starts_with(|c: char| c.is_ascii_digit());
    (told && !KEYWORDS.contains(&first_word.as_str()) && shown.chars().count() <= NAME_CHARS).then(|| shown.to_owned())
}

/// The bracket that the one at `close` closes.
fn opening(text: &[char], close: usize, open: char, closes: char) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = close + 1;
    while at > 0 {
        at -= 1;
        match get(text, at) {
            Some(c) if c == closes => depth += 1,
            Some(c) if c == open => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            Some(quote @ ('\'' | '"' | '`')) => at = quote_start(text, at, quote).unwrap_or(at),
            _ => {}
        }
    }
    None
}

/// The other end of the text that the quote at `at` closes, on the same line.
fn quote_start(text: &[char], at: usize, quote: char) -> Option<usize> {
    let before = text.get(..at)?.iter().rev().take_while(|c| **c != '\n').position(|c| *c == quote)?;
    at.checked_sub(before + 1)
}

/// The bracket of the call within whose arguments `at` lies, in the same expression.
fn enclosing(text: &[char], at: usize) -> Option<usize> {
    let mut at = at;
    let mut depth = 0usize;
    while at > 0 {
        at -= 1;
        match (get(text, at)?, depth) {
            (')' | ']' | '}', _) => depth += 1,
            ('(', 0) => return Some(at),
            ('{', 0) if !begins_object(text, at) => return None,
            ('{' | '[', 0) => {}
            ('(' | '[' | '{', _) => depth -= 1,
            (';', 0) => return None,
            // Beyond an arrow is another function.
            ('>', 0) if at > 0 && get(text, at - 1) == Some('=') => return None,
            (quote @ ('\'' | '"' | '`'), _) => at = quote_start(text, at, quote)?,
            _ => {}
        }
    }
    None
}

/// Whether a brace begins an object and not a block.
fn begins_object(text: &[char], at: usize) -> bool {
    let before = skip_space_back(text, at);
    before > 0 && matches!(get(text, before - 1), Some('(' | ',' | '[' | ':' | '=' | '?' | '&' | '|'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The place is where `~` stands.
    fn at(marked: &str) -> Vec<String> {
        let place = marked.chars().position(|c| c == '~').unwrap_or(0);
        let text: Vec<char> = marked.chars().filter(|c| *c != '~').collect();
        callees(&text, place)
    }

    #[test]
    fn the_callee_is_read_from_the_text_at_the_place() {
        for marked in ["~r = await orders.lst({})", "r = ~await orders.lst({})", "r = await orders~.lst({})", "r = await orders.lst~({})"] {
            let expected: &[&str] = if marked.starts_with('~') { &[] } else { &["orders.lst"] };
            assert_eq!(at(marked), expected, "{marked}");
        }
        assert_eq!(at("new ~o.Foo"), ["o.Foo"]);
        assert_eq!(at("~new Foo()"), ["Foo"]);
        assert_eq!(at("o?.f~oo(1)"), ["o.foo"]);
        assert_eq!(at("tag~`x`"), ["tag"]);
        assert_eq!(at("await~ orders[\"lisst\"]({})"), ["orders.lisst"]);
        assert_eq!(at("~rows[i][0]({})"), ["rows[…][…]"]);
        assert_eq!(at("~rows[0].go()"), ["rows[…].go"]);
        assert_eq!(at("~orders[\"odd-name\"]()"), ["orders[…]"]);
    }

    #[test]
    fn a_call_on_something_longer_is_told_with_it_cut_short() {
        assert_eq!(at("orders.list({ a: 1 })~.map(x => x)"), ["orders.list(…).map"]);
        assert_eq!(at("(await orders.list())~.fliter(x)"), ["(…).fliter"]);
        assert_eq!(at("'abc'~.toUppercase()"), ["'…'.toUppercase"]);
        assert_eq!(at("a[0]\n  ~.b()"), ["a[…].b"]);
        assert_eq!(at("o['foo']~(1)"), ["o.foo"]);
        assert_eq!(at("o[k]~(1)"), ["o[…]"]);
        assert_eq!(at("f(1)~(2)"), ["f(…)"]);
    }

    #[test]
    fn every_call_that_may_have_failed_is_told_from_the_inside_out() {
        assert_eq!(at("o.foo(~p.bar(1))"), ["p.bar", "o.foo"]);
        assert_eq!(at("o.foo(a ~+ 1)"), ["o.foo"]);
        assert_eq!(at("o.foo(x.y.~z)"), ["o.foo"]);
        assert_eq!(at("o.foo({ at: [new ~Date()] })"), ["Date", "o.foo"]);
        assert_eq!(at("o.foo(\n  new ~Map([[1, 2]]),\n)"), ["Map", "o.foo"]);
    }

    #[test]
    fn what_lies_beyond_a_function_a_block_or_a_statement_is_not_told() {
        assert_eq!(at("list.map(x => x~.foo())"), ["x.foo"]);
        assert_eq!(at("list.map((x) => { x~.foo() })"), ["x.foo"]);
        assert_eq!(at("f(1); ~g()"), ["g"]);
        assert_eq!(at("if (~g()) {}"), ["g"]);
        assert_eq!(at("function f(a = ~g()) {}"), ["g"]);
        assert_eq!(at("for ~await (const x of 5) {}"), Vec::<String>::new());
    }

    #[test]
    fn any_text_and_place_is_read() {
        for text in ["", "(", ")", "'", ")))(((", "`${", "a.", "?.", "{{{", "\u{1F600}(", "](", "\"\n("] {
            for place in 0..=text.chars().count() + 1 {
                let characters: Vec<char> = text.chars().collect();
                std::hint::black_box(callees(&characters, place));
            }
        }
    }
}
