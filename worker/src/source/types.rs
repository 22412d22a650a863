//! TypeScript to JavaScript.
//!
//! Owns taking types away, in place: every byte that stays keeps its offset. What is more
//! than a type is lowered (`lower.rs`) or refused with what to write instead.

use super::edits::Edits;
use super::read::{Reading, Tree};
use super::{Language, SourceError, SourceErrorKind, lower};
use std::borrow::Cow;
use tsv_ts::{Goal, StripError, UnsupportedConstruct};

/// The program without types, and what must still be changed in it.
pub(super) struct Base<'t> {
    /// As long, in bytes, as the source.
    pub(super) code: Cow<'t, str>,
    /// What enums and parameter properties become.
    pub(super) edits: Edits,
}

/// The JavaScript of a reading.
pub(super) fn javascript<'r>(reading: &'r Reading<'_, '_>, language: Language) -> Result<Base<'r>, SourceError> {
    let source = &*reading.source;
    match stripped(reading, source) {
        Ok(code) if language == Language::Javascript => {
            refuse_types(source, &code)?;
            Ok(Base { code: Cow::Borrowed(source), edits: Edits::default() })
        }
        Ok(code) => Ok(Base { code, edits: Edits::default() }),
        Err(error) if language == Language::Javascript => Err(types_error(source, start_of(&error))),
        Err(error) => lowered(reading, &error),
    }
}

fn lowered<'r>(reading: &'r Reading<'_, '_>, error: &StripError) -> Result<Base<'r>, SourceError> {
    let source = &*reading.source;
    let Tree::Statements(body) = &reading.tree else { return Err(refusal(source, error)) };
    let lowered = lower::lower(source, body)?;
    if lowered.is_empty() {
        return Err(refusal(source, error));
    }
    let remaining = lowered.blanked(source);
    let code = stripped(reading, &remaining).map_err(|error| refusal(source, &error))?;
    Ok(Base { code: Cow::Owned(code.into_owned()), edits: lowered.edits })
}

/// `source` with its types blanked, byte for byte.
fn stripped<'s>(reading: &Reading<'_, '_>, source: &'s str) -> Result<Cow<'s, str>, StripError> {
    let code = match &reading.tree {
        Tree::Statements(_) => tsv_ts::strip_with_goal(source, reading.goal)?.code,
        Tree::Expression { at, .. } => {
            let wrapped = format!("({}\n)", source.get(at.clone()).unwrap_or_default());
            let code = tsv_ts::strip_with_goal(&wrapped, Goal::Module)?.code;
            let inner = code.strip_prefix('(').and_then(|code| code.strip_suffix("\n)")).unwrap_or_default();
            let mut whole = source.get(..at.start).unwrap_or_default().to_owned();
            whole.push_str(inner);
            whole.push_str(source.get(at.end..).unwrap_or_default());
            whole
        }
    };
    Ok(if code == source { Cow::Borrowed(source) } else { Cow::Owned(same_bytes(source, code)) })
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
        Some(at) if source.as_bytes().get(at) != Some(&b'<') => Err(types_error(source, at)),
        _ => Ok(()),
    }
}

fn types_error(source: &str, at: usize) -> SourceError {
    SourceError::at(source, at, SourceErrorKind::Syntax, "TypeScript syntax in a program sent as JavaScript".into())
        .with_hint("Send it with `language` \"typescript\" or \"auto\", or leave the types out.")
}

fn start_of(error: &StripError) -> usize {
    error.error().span().map_or(0, |span| span.start)
}

fn refusal(source: &str, error: &StripError) -> SourceError {
    let at = start_of(error);
    let StripError::Unsupported { construct, .. } = error else {
        return SourceError::at(source, at, SourceErrorKind::Syntax, error.message());
    };
    let (message, hint) = match construct {
        UnsupportedConstruct::Enum => (
            "this enum cannot be compiled here",
            "Declare the enum at the top level, or use an object: `const Status = { Open: \"open\" } as const`.",
        ),
        UnsupportedConstruct::ValueNamespace => (
            "namespaces that hold values are not supported",
            "Use an object, or plain functions and constants at the top level.",
        ),
        UnsupportedConstruct::ParameterProperty => (
            "this parameter property cannot be compiled here",
            "Declare the field and assign it in the constructor: `this.name = name`.",
        ),
        UnsupportedConstruct::ImportEquals | UnsupportedConstruct::ExportEquals => (
            "`import =` and `export =` are not supported",
            "There are no modules to import; give the value with `return` or `export default`.",
        ),
        UnsupportedConstruct::TypeAssertion => (
            "angle-bracket type assertions are not supported",
            "Write `value as Type` instead of `<Type>value`.",
        ),
        UnsupportedConstruct::AssertionGrouping => (
            "without its type assertion this expression would mean something else",
            "Put parentheses around the asserted expression: `(a + b as number) / c`.",
        ),
        _ => ("this TypeScript syntax is not supported", "Leave the types out."),
    };
    SourceError::at(source, at, SourceErrorKind::TypeScript, message.into()).with_hint(hint)
}
