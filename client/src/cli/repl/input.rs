//! Where an input ends.
//!
//! Owns telling a program that goes on in the next line from one that is whole: by its
//! brackets, strings, templates, comments and last operator. Never decides whether it
//! parses; the worker does.

/// A dot command and what follows it.
pub(super) fn command(text: &str) -> Option<(&str, &str)> {
    let rest = text.trim().strip_prefix('.')?;
    // `.5` is a number, and `..` nothing of ours.
    if !rest.starts_with(|first: char| first.is_ascii_alphabetic()) || rest.contains('\n') {
        return None;
    }
    let (name, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    Some((name, rest.trim()))
}

/// Whether the text can not be all of it.
pub(super) fn goes_on(text: &str) -> bool {
    let mut scan = Scan { rest: text, open: Vec::new(), last: String::new() };
    scan.read_all().is_none() || !scan.open.is_empty() || scan.ends_in_operator()
}

/// Words after which a `/` begins a regular expression.
const BEFORE_EXPRESSION: &[&str] =
    &["return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "do", "else", "await", "yield"];
/// Operators that need something behind them.
const OPERATORS: &[&str] = &["=>", "=", "&&", "||", "??", "+", "-", "*", "%", "&", "|", "^", "?", ":", ",", "<", "."];

struct Scan<'a> {
    rest: &'a str,
    open: Vec<char>,
    /// The last word or run of operator characters.
    last: String,
}

impl Scan<'_> {
    /// `None`: the text ends within a template or a comment.
    fn read_all(&mut self) -> Option<()> {
        while let Some(first) = self.rest.chars().next() {
            match first {
                _ if self.rest.starts_with("//") => self.skip_to("\n"),
                _ if self.rest.starts_with("/*") => {
                    let end = self.rest.get(2..)?.find("*/")?;
                    self.advance(end + 4);
                }
                '\'' | '"' => self.string(first)?,
                '`' => self.template()?,
                '/' if self.expects_expression() => self.regular_expression(),
                '(' | '[' | '{' => {
                    self.open.push(first);
                    self.seen(first);
                }
                '}' if self.open.last() == Some(&'`') => {
                    self.open.pop();
                    self.template_rest()?;
                }
                ')' | ']' | '}' => {
                    // One that closes nothing is a syntax error, and no reason to wait.
                    self.open.pop();
                    self.seen(first);
                }
                _ => self.seen(first),
            }
        }
        Some(())
    }

    fn seen(&mut self, character: char) {
        self.advance(character.len_utf8());
        if character.is_whitespace() {
            if character != '\n' {
                self.last.push(' ');
            }
            return;
        }
        let joins = |last: char| (is_word(last) && is_word(character)) || (is_operator(last) && is_operator(character));
        if !self.last.chars().next_back().is_some_and(joins) {
            self.last.clear();
        }
        self.last.push(character);
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    fn skip_to(&mut self, end: &str) {
        let length = self.rest.find(end).unwrap_or(self.rest.len());
        self.advance(length);
    }

    /// A string ends with its quote or, unless a backslash is before it, with its line.
    fn string(&mut self, quote: char) -> Option<()> {
        self.advance(1);
        self.last = "''".to_owned();
        loop {
            let next = self.rest.chars().next();
            match next {
                Some('\\') => {
                    self.advance(1);
                    let escaped = self.rest.chars().next()?;
                    self.advance(escaped.len_utf8());
                    // A line end that is escaped, with nothing behind it.
                    if escaped == '\n' && self.rest.is_empty() {
                        return None;
                    }
                }
                None | Some('\n') => return Some(()),
                Some(other) => {
                    self.advance(other.len_utf8());
                    if other == quote {
                        return Some(());
                    }
                }
            }
        }
    }

    fn template(&mut self) -> Option<()> {
        self.advance(1);
        self.template_rest()
    }

    /// From within a template to its end, or to the expression in it.
    fn template_rest(&mut self) -> Option<()> {
        if self.rest.starts_with('}') {
            self.advance(1);
        }
        self.last = "''".to_owned();
        loop {
            let next = self.rest.chars().next()?;
            if self.rest.starts_with("${") {
                self.advance(2);
                self.open.push('`');
                self.last.clear();
                return Some(());
            }
            self.advance(next.len_utf8());
            match next {
                '`' => return Some(()),
                '\\' => {
                    let escaped = self.rest.chars().next()?;
                    self.advance(escaped.len_utf8());
                }
                _ => {}
            }
        }
    }

    /// A regular expression, to its end or that of its line.
    fn regular_expression(&mut self) {
        self.advance(1);
        self.last = "''".to_owned();
        let mut class = false;
        while let Some(next) = self.rest.chars().next().filter(|next| *next != '\n') {
            self.advance(next.len_utf8());
            match next {
                '\\' => self.advance(self.rest.chars().next().map_or(0, char::len_utf8)),
                '[' => class = true,
                ']' => class = false,
                '/' if !class => return,
                _ => {}
            }
        }
    }

    fn expects_expression(&self) -> bool {
        let last = self.last.trim_end();
        let word = last.chars().next_back().is_some_and(is_word);
        if word { BEFORE_EXPRESSION.contains(&last) } else { !last.ends_with([')', ']', '}', '\'']) && !ends_in_step(last) }
    }

    fn ends_in_operator(&self) -> bool {
        let last = self.last.trim_end();
        !ends_in_step(last) && OPERATORS.iter().any(|operator| last.ends_with(operator))
    }
}

fn ends_in_step(text: &str) -> bool {
    text.ends_with("++") || text.ends_with("--")
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}

fn is_operator(character: char) -> bool {
    "+-*/%=&|^!<>?:,.~".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_open_goes_on() {
        for open in [
            "f(",
            "[1,",
            "if (x) {",
            "`a",
            "`a ${1 + (",
            "`a ${ {b: `c`} } ",
            "/* x",
            "const a =",
            "x =>",
            "a &&",
            "list\n  .map(f).",
            "a ? b :",
            "'a\\\n",
            "({ a: '}' ",
            "// x\nf(",
            "x +",
        ] {
            assert!(goes_on(open), "{open}");
        }
    }

    #[test]
    fn what_is_closed_or_can_not_be_closed_any_more_does_not() {
        for whole in [
            "1+2",
            "f()",
            "'it''s'",
            "'(",
            "\"{\"",
            "`${'`'}`",
            "`a\nb`",
            "/[/(]/.test(x)",
            "a / b",
            "i++",
            "i--",
            "// (",
            "/* ( */ 1",
            ")",
            "x = /\\(/",
            "return /{/",
            "[1].length / 2",
            "'a\\'('",
            "`\\``",
            "({ a: 1 })",
            "a => a",
            "!x",
        ] {
            assert!(!goes_on(whole), "{whole}");
        }
    }

    #[test]
    fn a_dot_and_a_word_is_a_command() {
        assert_eq!(command(".inputs a=b c\n"), Some(("inputs", "a=b c")));
        assert_eq!(command(".exit"), Some(("exit", "")));
        for other in [".5", "x.exit", "..", ".map(\n)"] {
            assert_eq!(command(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_or_hang(text in "[\\PC\\n`${}()'\"/\\\\*+=]{0,60}") {
            std::hint::black_box((goes_on(&text), command(&text)));
        }
    }
}
