//! TypeScript to JavaScript.
//!
//! Owns taking types away, in place: every byte that stays keeps its offset. What is more
//! than a type is lowered (`lower.rs`) or refused with what to write instead.

use super::edits::{Edits, blank};
use super::read::{Reading, Tree, range};
use super::{Language, SourceError, SourceErrorKind, lower, refuse};
use bumpalo::Bump;
use std::borrow::Cow;
use std::ops::Range;
use tsv_ts::ast::{Statement, StatementKind};
use tsv_ts::{Goal, StripError, UnsupportedConstruct};

/// The program without types, and what must still be changed in it.
pub(super) struct Base<'t> {
    /// As long, in bytes, as the source.
    pub(super) code: Cow<'t, str>,
    /// What enums and parameter properties become.
    pub(super) edits: Edits,
}

/// How a source is put together, for a parser that does not know.
pub(super) struct Layout {
    goal: Goal,
    /// Where the statements end: all of the source, or none of it.
    statements: usize,
    /// An expression that needs parentheses to be one.
    expression: Option<Range<usize>>,
}

impl Layout {
    pub(super) fn of(reading: &Reading<'_, '_>) -> Self {
        let (statements, expression) = match &reading.tree {
            Tree::Statements { object, .. } => (reading.source.len(), object.clone()),
            Tree::Expression { at, .. } => (at.start, Some(at.clone())),
        };
        let statements = expression.as_ref().map_or(statements, |at| at.start);
        Self { goal: reading.goal, statements, expression }
    }
}

/// The JavaScript of a source.
pub(super) fn javascript<'s>(source: &'s str, layout: &Layout, language: Language) -> Result<Base<'s>, SourceError> {
    match stripped(source, layout) {
        Ok(code) if language == Language::Javascript => {
            refuse_types(source, &code)?;
            Ok(Base { code: Cow::Borrowed(source), edits: Edits::default() })
        }
        Ok(code) => {
            let mut edits = Edits::default();
            if source.contains("import") {
                parsed(source, layout, |body| without_type_imports(source, body, &mut edits));
            }
            Ok(Base { code, edits })
        }
        Err(error) if language == Language::Javascript => Err(types_error(start_of(&error))),
        Err(error) => lowered(source, layout, &error),
    }
}

/// Does something with the tree of the statements, which are known to parse.
fn parsed<T>(source: &str, layout: &Layout, then: impl FnOnce(&[Statement<'_>]) -> T) -> Option<T> {
    let arena = Bump::new();
    let head = source.get(..layout.statements)?;
    let program = tsv_ts::__private::parse_with_goal(head, layout.goal, &arena).ok()?;
    Some(then(program.body))
}

fn lowered<'s>(source: &'s str, layout: &Layout, error: &StripError) -> Result<Base<'s>, SourceError> {
    let mut edits = Edits::default();
    let lowered = parsed(source, layout, |body| {
        without_type_imports(source, body, &mut edits);
        lower::lower(source, body)
    });
    let lowered = lowered.unwrap_or_else(|| Err(refusal(error)))?;
    if lowered.is_empty() {
        return Err(refusal(error));
    }
    let remaining = lowered.blanked(source);
    let code = stripped(&remaining, layout).map_err(|error| refusal(&error))?.into_owned();
    edits.extend_from(&lowered.edits);
    Ok(Base { code: Cow::Owned(code), edits })
}

/// `import { type A } from "a"` is left as an import without names.
fn without_type_imports(source: &str, body: &[Statement<'_>], edits: &mut Edits) {
    for statement in body {
        let StatementKind::ImportDeclaration(import) = &statement.kind else { continue };
        if refuse::imports_types_only(import) {
            let at = range(statement.span.start, statement.span.end);
            edits.replace(at.start, at.end, blank(source.get(at.clone()).unwrap_or_default()));
        }
    }
}

/// `source` with its types blanked, byte for byte.
fn stripped<'s>(source: &'s str, layout: &Layout) -> Result<Cow<'s, str>, StripError> {
    let head = source.get(..layout.statements).unwrap_or_default();
    let mut code = tsv_ts::strip_with_goal(head, layout.goal)?.code;
    if code != head {
        code = same_bytes(head, code);
    }
    if let Some(at) = &layout.expression {
        let wrapped = format!("({}\n)", source.get(at.clone()).unwrap_or_default());
        let inner = tsv_ts::strip_with_goal(&wrapped, Goal::Module)?.code;
        let inner = same_bytes(&wrapped, inner);
        code.push_str(inner.strip_prefix('(').and_then(|code| code.strip_suffix("\n)")).unwrap_or_default());
        code.push_str(source.get(at.end..).unwrap_or_default());
    }
    Ok(if code == source { Cow::Borrowed(source) } else { Cow::Owned(code) })
}

/// `code` with as many bytes as `source`: the parser blanks a character by its UTF-16
/// units, which are fewer than its bytes.
fn same_bytes(source: &str, code: String) -> String {
    if code.len() == source.len() {
        return code;
    }
    let mut out = String::with_capacity(source.len());
    let mut rest = code.as_str();
    for c in source.chars() {
        if rest.starts_with(c) {
            out.push(c);
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
            continue;
        }
        // What stands for it is ASCII: a space, or one of `;`, `(`, `)`.
        let units = rest.get(..c.len_utf16()).unwrap_or_default();
        out.push_str(units);
        out.extend(std::iter::repeat_n(' ', c.len_utf8() - units.len().min(c.len_utf8())));
        rest = rest.get(units.len()..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// In JavaScript a `<` may be an operator where TypeScript has type arguments; every
/// other difference is a type.
fn refuse_types(source: &str, code: &str) -> Result<(), SourceError> {
    let difference = source.bytes().zip(code.bytes()).position(|(before, after)| before != after);
    match difference {
        Some(at) if source.as_bytes().get(at) != Some(&b'<') => Err(types_error(at)),
        _ => Ok(()),
    }
}

fn types_error(at: usize) -> SourceError {
    SourceError::at(at, SourceErrorKind::Syntax, "TypeScript syntax in a program sent as JavaScript".into())
        .with_hint("Send it with `language` \"typescript\" or \"auto\", or leave the types out.")
}

fn start_of(error: &StripError) -> usize {
    error.error().span().map_or(0, |span| span.start)
}

fn refusal(error: &StripError) -> SourceError {
    let at = start_of(error);
    let StripError::Unsupported { construct, .. } = error else {
        return SourceError::at(at, SourceErrorKind::Syntax, error.message());
    };
    let (message, hint) = match construct {
        UnsupportedConstruct::Enum => (
            "this enum cannot be compiled here",
            "Declare the enum at the top level, or use an object: `const Status = { Open: \"open\" } as const`.",
        ),
        UnsupportedConstruct::ValueNamespace => {
            ("namespaces that hold values are not supported", "Use an object, or plain functions and constants at the top level.")
        }
        UnsupportedConstruct::ParameterProperty => {
            ("this parameter property cannot be compiled here", "Declare the field and assign it in the constructor: `this.name = name`.")
        }
        UnsupportedConstruct::ImportEquals | UnsupportedConstruct::ExportEquals => (
            "`import =` and `export =` are not supported",
            "There are no modules to import; give the value with `return` or `export default`.",
        ),
        UnsupportedConstruct::TypeAssertion => {
            ("angle-bracket type assertions are not supported", "Write `value as Type` instead of `<Type>value`.")
        }
        UnsupportedConstruct::AssertionGrouping => (
            "without its type assertion this expression would mean something else",
            "Put parentheses around the asserted expression: `(a + b as number) / c`.",
        ),
        _ => ("this TypeScript syntax is not supported", "Leave the types out."),
    };
    SourceError::at(at, SourceErrorKind::TypeScript, message.into()).with_hint(hint)
}
