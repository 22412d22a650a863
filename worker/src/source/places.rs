//! Where in a program something is that the engine tells of without a place, or with the
//! place of what it looked at before.
//!
//! Owns finding such a place in the tree; only for programs that have failed. Never decides
//! what failed.

use super::edits;
use super::read::{self, Tree, offset, range};
use super::walk::{Left, Node};
use bumpalo::Bump;
use std::ops::Range;
use tsv_ts::ast::{Expression, ExpressionKind, LiteralValue, ObjectPatternProperty, Statement, StatementKind};

/// Whether it is what is sought: a regular expression, as pattern and flags; a member, as
/// the name of what it is taken of and its own.
type Test<'s> = &'s dyn Fn(&str, &str) -> bool;

/// What is sought.
#[derive(Clone, Copy)]
pub(crate) enum Sought<'s> {
    /// The first literal that the function says yes to.
    RegExp(Test<'s>),
    /// `a.b` or `const { b } = a` of names that the function says yes to.
    Taken(Test<'s>),
    /// `import("name")`, or the only `import(…)` of something computed.
    Import(&'s str),
    /// `#name`, outside of its declaration.
    PrivateName(&'s str),
    /// `….name`, which the engine evaluated next behind this place.
    Member(&'s str, (u32, u32)),
    /// What is taken apart next behind this place: an object, or a list.
    Pattern(Kind, (u32, u32)),
}

/// What a pattern takes apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    List,
}

/// Bytes of memory that a tree takes for each token of its text, at most: a program of
/// semicolons alone takes 245 where the parser's lists have just grown.
const TOKEN_BYTES: usize = 320;

/// Bytes of memory that the tree of `text` may take: more than it does wherever there are
/// comments and strings.
pub(crate) fn tree_bytes(text: &str) -> usize {
    let mut was_word = false;
    let tokens = text.chars().filter(|c| {
        let is_space = c.is_whitespace() || *c == '\u{feff}';
        let is_word = c.is_ascii_alphanumeric() || matches!(c, '_' | '$') || !(c.is_ascii() || is_space);
        let begins = if is_word { !was_word } else { !matches!(c, ' ' | '\t') };
        was_word = is_word;
        begins
    });
    tokens.count().saturating_mul(TOKEN_BYTES)
}

/// Line and column in `text` as it was sent, both from 1.
pub(crate) fn find(text: &str, sought: Sought<'_>) -> Option<(u32, u32)> {
    let arena = Bump::new();
    let reading = read::read(text, &arena, super::Form::Auto).ok()?;
    let mut found = Found { source: &reading.source, sought, shift: 0, hits: Vec::new(), functions: Vec::new() };
    let object = match &reading.tree {
        Tree::Statements { body, object } => {
            found.walk(Left::of(body));
            object.clone()
        }
        Tree::Expression { at, .. } => Some(at.clone()),
    };
    let wrapped = object.map(|at| (format!("({}\n)", reading.source.get(at.clone()).unwrap_or_default()), at));
    if let Some((code, at)) = &wrapped {
        let program = read::parse(code, &arena).ok()?;
        // One byte for the parenthesis.
        found.shift = at.start.wrapping_sub(1);
        found.source = code;
        found.walk(Left::of(program.body));
    }
    found.best(text).map(|at| edits::position(text, at))
}

struct Found<'s> {
    source: &'s str,
    sought: Sought<'s>,
    /// What is added to a place in `source` to have one in the text.
    shift: usize,
    /// Where it is, whole.
    hits: Vec<Range<usize>>,
    functions: Vec<Range<usize>>,
}

impl Found<'_> {
    fn walk(&mut self, mut left: Left<'_>) {
        while let Some(node) = left.next() {
            match node {
                Node::Function(span) => self.functions.push(self.shifted(span.start, span.end)),
                Node::Expression(expression) => self.expression(expression),
                Node::Pattern(pattern, end) => self.pattern(pattern, end),
                Node::Statement(statement) => self.statement(statement),
            }
            left.go_below(node);
        }
    }

    fn shifted(&self, start: u32, end: u32) -> Range<usize> {
        let at = range(start, end);
        at.start.wrapping_add(self.shift)..at.end.wrapping_add(self.shift)
    }

    fn hit(&mut self, is_it: bool, expression: &Expression<'_>) {
        if is_it {
            self.hits.push(self.shifted(expression.span.start, expression.span.end));
        }
    }

    /// A loop over a list has a place of its own.
    fn statement(&mut self, statement: &Statement<'_>) {
        if let (StatementKind::ForOfStatement(inner), Sought::Pattern(Kind::List, _)) = (&statement.kind, self.sought) {
            self.hit(true, inner.right);
        }
    }

    fn expression(&mut self, expression: &Expression<'_>) {
        let is_it = match (&expression.kind, self.sought) {
            (ExpressionKind::RegexLiteral(literal), Sought::RegExp(test)) => test(literal.pattern(self.source), literal.flags(self.source)),
            (ExpressionKind::ImportExpression(import), Sought::Import(name)) => {
                self.text_of(import.source).is_none_or(|written| written.trim_start_matches("./") == name)
            }
            (ExpressionKind::PrivateIdentifier(id), Sought::PrivateName(name)) => id.name(expression.span, self.source) == name,
            (ExpressionKind::MemberExpression(member), Sought::Member(name, _)) => {
                let written = if member.computed {
                    self.text_of(member.property)
                } else {
                    self.source.get(offset(member.property.span.start)..offset(member.property.span.end))
                };
                !member.optional && written == Some(name)
            }
            (ExpressionKind::MemberExpression(member), Sought::Taken(test)) => {
                let named = matches!(member.object.kind, ExpressionKind::Identifier(_)) && !member.computed;
                named && test(self.written(member.object), self.written(member.property))
            }
            (ExpressionKind::ObjectPattern(_) | ExpressionKind::ArrayPattern(_), Sought::Pattern(..)) => {
                return self.pattern(expression, expression.span.end);
            }
            (ExpressionKind::SpreadElement(_), Sought::Pattern(kind, _)) => kind == Kind::List,
            (ExpressionKind::YieldExpression(inner), Sought::Pattern(kind, _)) => kind == Kind::List && inner.delegate,
            _ => false,
        };
        self.hit(is_it, expression);
    }

    fn pattern(&mut self, pattern: &Expression<'_>, end: u32) {
        let is_it = match (&pattern.kind, self.sought) {
            (ExpressionKind::ObjectPattern(_), Sought::Pattern(kind, _)) => kind == Kind::Object,
            (ExpressionKind::ObjectPattern(object), Sought::Taken(test)) => {
                let given = self.source.get(offset(pattern.span.end)..offset(end)).unwrap_or_default();
                let owner = given.trim_start().strip_prefix('=').unwrap_or_default().trim();
                object.properties.iter().any(|one| match one {
                    ObjectPatternProperty::Property(property) => !property.computed && test(owner, self.written(property.key)),
                    ObjectPatternProperty::RestElement(_) => false,
                })
            }
            (ExpressionKind::ArrayPattern(_), Sought::Pattern(kind, _)) => kind == Kind::List,
            (ExpressionKind::MemberExpression(_), Sought::Member(..) | Sought::Taken(_)) => return self.expression(pattern),
            _ => false,
        };
        if is_it {
            self.hits.push(self.shifted(pattern.span.start, end));
        }
    }

    fn written(&self, expression: &Expression<'_>) -> &str {
        self.source.get(offset(expression.span.start)..offset(expression.span.end)).unwrap_or_default()
    }

    /// What a literal text or number says, if it has no escapes.
    fn text_of(&self, expression: &Expression<'_>) -> Option<&str> {
        let ExpressionKind::Literal(literal) = &expression.kind else { return None };
        let written = self.source.get(offset(literal.span.start)..offset(literal.span.end))?;
        match literal.value {
            LiteralValue::String(_) => written.get(1..written.len().saturating_sub(1)),
            LiteralValue::Number(_) => Some(written),
            _ => None,
        }
    }

    fn best(mut self, text: &str) -> Option<usize> {
        self.hits.sort_by_key(|hit| hit.start);
        let behind = match self.sought {
            Sought::Member(_, place) | Sought::Pattern(_, place) => edits::offset_of(text, place),
            Sought::Import(_) | Sought::RegExp(_) | Sought::PrivateName(_) | Sought::Taken(_) => {
                return self.hits.first().map(|hit| hit.start);
            }
        };
        let line = text.get(..behind)?.rfind('\n').map_or(0, |end| end + 1);
        let owner = self.owner(behind);
        // A method has no place of its own for the engine, only its line.
        let is_near =
            |of: Option<&Range<usize>>| of == owner || of.is_some_and(|of| of.start >= line && !has_line_end(text, line..of.start));
        let mut near = self.hits.iter().filter(|hit| is_near(self.owner(hit.start)));
        if near.clone().any(|hit| hit.contains(&behind) && self.owner(hit.start) == owner) {
            return None;
        }
        near.find(|hit| hit.start >= behind).map(|hit| hit.start)
    }

    /// The innermost function that a place is in.
    fn owner(&self, at: usize) -> Option<&Range<usize>> {
        self.functions.iter().filter(|function| function.contains(&at)).min_by_key(|function| function.len())
    }
}

fn has_line_end(text: &str, at: Range<usize>) -> bool {
    text.get(at).is_none_or(|between| between.contains('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_evaluated_next_is_found_in_the_same_function() {
        let text = "const o = {\n  a() { return this.x.y },\n  b() { return this.x.y },\n};\no.b().x.y";
        let member = |place| find(text, Sought::Member("y", place));
        assert_eq!((member((2, 1)), member((3, 1)), member((4, 2))), (Some((2, 16)), Some((3, 16)), Some((5, 1))));
        assert_eq!(member((5, 1)), None, "it is there already");
        assert_eq!(find(text, Sought::Member("z", (1, 1))), None);
        let other = "function a(k) {\n  return this[k];\n}\nfunction b() { return q.y }";
        assert_eq!(find(other, Sought::Member("y", (2, 3))), None, "it is in another function");
        assert_eq!(find("f(a?.y); g(a['y'])", Sought::Member("y", (1, 1))), Some((1, 12)), "?. does not fail");
    }

    #[test]
    fn what_is_taken_apart_is_found_where_it_is_written() {
        let text = "Text:\n```ts\nconst n: number = 1;\nconst [a] = f(n), { b } = g(n);\nfor (const { c } of h()) ({ d: [e] } = c);\n```";
        let pattern = |kind, place| find(text, Sought::Pattern(kind, place));
        assert_eq!(pattern(Kind::List, (3, 1)), Some((4, 7)));
        assert_eq!(pattern(Kind::List, (4, 13)), None, "the list is what that call gave");
        assert_eq!(pattern(Kind::Object, (4, 13)), Some((4, 19)));
        assert_eq!(pattern(Kind::Object, (5, 1)), Some((5, 12)));
        assert_eq!(pattern(Kind::List, (5, 26)), Some((5, 32)));
    }

    #[test]
    fn literals_imports_and_private_names_are_found_in_any_form() {
        let first = |text| find(text, Sought::RegExp(&|pattern, _| pattern == "b"));
        assert_eq!(first("/a/.test(x); x => /b/"), Some((1, 19)));
        assert_eq!(first("{ a: /b/g }"), Some((1, 6)));
        assert_eq!(first("const a = 1;\n{ a, b: [/b/] }"), Some((2, 10)));
        assert_eq!(find("import('a'); import('./b')", Sought::Import("b")), Some((1, 14)));
        assert_eq!(find("import(x + 'b')", Sought::Import("b")), Some((1, 1)));
        assert_eq!(find("class A { #p; m() { this.#q } }", Sought::PrivateName("q")), Some((1, 26)));
        assert_eq!(first("no program at all"), None);
    }

    /// Bytes that the tree of a text really takes.
    fn taken(text: &str) -> usize {
        let mut arena = Bump::new();
        assert!(read::read(text, &arena, crate::source::Form::Auto).is_ok(), "{}", text.chars().take(40).collect::<String>());
        arena.iter_allocated_chunks().map(<[_]>::len).sum()
    }

    #[test]
    fn a_tree_takes_no_more_memory_than_is_reckoned() {
        let pieces = [
            "a\u{2028}",
            "a\u{feff};",
            ";",
            "a;",
            "a\n",
            "f(a.b);",
            "x=>x;",
            "[[]];",
            "f=function(){};",
            "({a,b}=c);",
            ";class A{a;b(){}}\n",
            "`${a}`;",
            "if(a)b;",
            "a?b:c;",
            "typeof a\n",
            "await a\n",
            "({a,b});",
            "for(a of b);",
            "switch(a){case 1:}",
            "try{}catch{}",
            "/a/;",
            "1n;",
            "a+b\n",
            "var a\n",
            "{let{a}=b}\n",
            "function f(a,b){}\n",
            "interface I{a:b}\n",
            "x as A\n",
            "f<A>(b);",
            "/**/\n",
            "//\n",
            "const n: { id: number } = { id: 1 + 2 };\n",
        ];
        for piece in pieces {
            for text in [piece.repeat((256 << 10) / piece.len()), piece.repeat((150 << 10) / piece.len())] {
                let (real, reckoned) = (taken(&text), tree_bytes(&text));
                assert!(real <= reckoned, "{piece:?}: {real} bytes, {} a token", real / (reckoned / TOKEN_BYTES));
            }
        }
    }
}
