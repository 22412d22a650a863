//! Reading a message into a syntax tree.
//!
//! Owns the attempts: as statements, as one expression, with what models leave around a
//! program taken away. Never changes what a text means.

use super::{Form, SourceError, SourceErrorKind, cleaned, refuse, unwrap};
use bumpalo::Bump;
use std::borrow::Cow;
use std::ops::Range;
use tsv_ts::ast::{Expression, ExpressionKind, ObjectProperty, Program, Statement, StatementKind};
use tsv_ts::{Error, ErrorKind, Goal};

/// Most HTML-like comments that are read; each one costs an attempt.
const HTML_COMMENTS: usize = 16;
/// Most lines that are tried as the start of an object at the end.
const OBJECT_STARTS: usize = 16;

/// A text and its tree.
pub(super) struct Reading<'t, 'a> {
    /// The program, with as many bytes as the text that was sent.
    pub(super) source: Cow<'t, str>,
    pub(super) tree: Tree<'a>,
    pub(super) goal: Goal,
}

/// What a text is.
pub(super) enum Tree<'a> {
    /// A list of statements; positions are those of the source. The grammar takes an
    /// object at the end for a block: it is none of the statements, and lies here.
    Statements { body: &'a [Statement<'a>], object: Option<Range<usize>> },
    /// One expression that would be something else as a statement, at these bytes.
    Expression {
        at: Range<usize>,
        call: Option<Call>,
        /// An object that holds the text of a program.
        holds_program: bool,
    },
}

/// How a lone function is called: with the inputs when it takes any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) with_inputs: bool,
}

/// Whether every fence in `text` is part of a string, a template or a comment.
pub(super) fn fences_are_text(text: &str) -> bool {
    let arena = Bump::new();
    let Ok(program) = parse(text, &arena) else { return false };
    let comments: Vec<Range<usize>> = program.comments.iter().map(|comment| range(comment.span.start, comment.span.end)).collect();
    unwrap::fences_are_text(text, &comments)
}

/// Reads the program in `text`.
pub(super) fn read<'t, 'a>(text: &'t str, arena: &'a Bump, form: Form) -> Result<Reading<'t, 'a>, SourceError> {
    let source = cleaned(text)?;
    let failed = match attempt(&source, arena, form) {
        Ok((tree, goal)) => return Ok(Reading { source, tree, goal }),
        Err(error) => error,
    };
    for repaired in [html_comments(&source, &failed, arena), unwrap::without_open_thinking(&source)] {
        let Some(repaired) = repaired else { continue };
        if let Ok((tree, goal)) = attempt(&repaired, arena, form) {
            return Ok(Reading { source: Cow::Owned(repaired), tree, goal });
        }
    }
    Err(refuse::unparsable(&source, &failed))
}

fn attempt<'a>(source: &str, arena: &'a Bump, form: Form) -> Result<(Tree<'a>, Goal), Error> {
    let with_objects = matches!(form, Form::Auto | Form::Expression);
    let parsed = if form == Form::Module { tsv_ts::__private::parse_with_goal(source, Goal::Module, arena) } else { parse(source, arena) };
    match parsed {
        Ok(program) => {
            let tree = if with_objects { last_block(source, program.body, arena) } else { None };
            let tree = tree.unwrap_or(Tree::Statements { body: program.body, object: None });
            Ok((tree, program.goal))
        }
        Err(error) if with_objects => match expression(source, arena) {
            Some(tree) => Ok((tree, Goal::Module)),
            None => last_object(source, &error, arena).ok_or(error),
        },
        Err(error) => Err(error),
    }
}

/// As a module, or else as a script: only that has `with`, octal numbers and the like.
pub(super) fn parse<'a>(source: &str, arena: &'a Bump) -> Result<Program<'a>, Error> {
    let module = match tsv_ts::__private::parse_with_goal(source, Goal::Module, arena) {
        Err(error) if error.kind() == ErrorKind::Syntax => error,
        other => return other,
    };
    let script = match tsv_ts::__private::parse_with_goal(source, Goal::Script, arena) {
        Err(error) => error,
        other => return other,
    };
    // In a script `await` is a name, so its error says less.
    let awaits = module.message().starts_with("'await'");
    let further = module.position() >= script.position();
    Err(if awaits || further || script.is_goal_gated() { module } else { script })
}

/// The last statement, when it is a block that is an object: `{ a: 1 }` is a block to the
/// grammar, and so is `{ total, count }`.
fn last_block<'a>(source: &str, body: &'a [Statement<'a>], arena: &'a Bump) -> Option<Tree<'a>> {
    let last = body.iter().rposition(|one| !matches!(one.kind, StatementKind::EmptyStatement(_)))?;
    let (before, statement) = (body.get(..last)?, body.get(last)?);
    if !matches!(statement.kind, StatementKind::BlockStatement(_)) {
        return None;
    }
    let at = range(statement.span.start, statement.span.end);
    let (count, holds_program) = object(source.get(at.clone())?, arena)?;
    if before.is_empty() {
        return Some(Tree::Expression { at, call: None, holds_program });
    }
    (count > 0).then_some(Tree::Statements { body: before, object: Some(at) })
}

/// Statements, and after them an object that is no block: `const a = 1; { a: 1, b: 2 }`.
fn last_object<'a>(source: &str, failed: &Error, arena: &'a Bump) -> Option<(Tree<'a>, Goal)> {
    let end = source.trim_end();
    let end = end.strip_suffix(';').unwrap_or(end).trim_end().len();
    let mut limit = failed.span()?.start;
    for _ in 0..OBJECT_STARTS {
        let from = line_start(source, limit);
        let line = source.get(from..)?;
        let start = from + (line.len() - line.trim_start_matches([' ', '\t']).len());
        if source.get(start..)?.starts_with('{') {
            let head = source.get(..start)?;
            if let (Some((1.., _)), Ok(program)) = (object(source.get(start..end)?, arena), parse(head, arena)) {
                let tree = Tree::Statements { body: program.body, object: Some(start..end) };
                return Some((tree, program.goal));
            }
        }
        limit = from.checked_sub(1)?;
    }
    None
}

/// How many members the object has that this text is, and whether it holds a program.
fn object(text: &str, arena: &Bump) -> Option<(usize, bool)> {
    let wrapped = format!("({text}\n)");
    let program = parse(&wrapped, arena).ok()?;
    let expression = only_expression(program.body)?;
    let ExpressionKind::ObjectExpression(object) = &expression.kind else { return None };
    is_object(expression).then(|| (object.properties.len(), refuse::object_holds_program(&wrapped, expression)))
}

/// The whole text read as an expression that no statement can begin with.
fn expression<'a>(source: &str, arena: &'a Bump) -> Option<Tree<'a>> {
    let code = source.trim_end();
    let code = code.strip_suffix(';').unwrap_or(code);
    let start = code.len() - code.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}').len();
    let first = code.get(start..)?;
    if !["{", "function", "async", "class"].iter().any(|word| first.starts_with(word)) {
        return None;
    }
    let wrapped = format!("({code}\n)");
    let program = parse(&wrapped, arena).ok()?;
    let expression = only_expression(program.body)?;
    // One byte for the parenthesis. Parentheses of the text itself are not in the span.
    let found = range(expression.span.start, expression.span.end);
    let at = found.start.checked_sub(1)?..found.end.checked_sub(1)?;
    let holds_program = refuse::object_holds_program(&wrapped, expression);
    let is_other = !matches!(expression.kind, ExpressionKind::ObjectExpression(_));
    (is_other || is_object(expression)).then(|| Tree::Expression { at, call: callable(expression), holds_program })
}

fn only_expression<'a>(body: &'a [Statement<'a>]) -> Option<&'a Expression<'a>> {
    match body {
        [Statement { kind: StatementKind::ExpressionStatement(statement), .. }] => Some(statement.expression.unwrap_comment_bound_pairs()),
        _ => None,
    }
}

/// An object literal: the parser lets `{ a = 1 }` and bodiless methods pass as one.
fn is_object(expression: &Expression<'_>) -> bool {
    let ExpressionKind::ObjectExpression(object) = &expression.kind else { return false };
    object.properties.iter().all(|property| match property {
        ObjectProperty::SpreadElement(_) => true,
        ObjectProperty::Property(property) => {
            let named = matches!(property.value.kind, ExpressionKind::Identifier(_));
            !property.shorthand || named
        }
    })
}

/// How to call an expression that is a function and nothing else.
pub(super) fn callable(expression: &Expression<'_>) -> Option<Call> {
    match &expression.unwrap_comment_bound_pairs().kind {
        ExpressionKind::ArrowFunctionExpression(arrow) => Some(Call { with_inputs: !arrow.params.is_empty() }),
        ExpressionKind::FunctionExpression(function) if !function.generator => Some(Call { with_inputs: !function.params.is_empty() }),
        _ => None,
    }
}

/// The text with its HTML-like comments, which only scripts have, as ordinary ones.
fn html_comments(source: &str, failed: &Error, arena: &Bump) -> Option<String> {
    if !source.contains("<!--") && !source.contains("-->") {
        return None;
    }
    let mut text = source.to_owned();
    let mut at = failed.span()?.start;
    for _ in 0..HTML_COMMENTS {
        let from = line_start(&text, at);
        let line = text.get(from..)?.lines().next()?;
        let (place, with) = match (line.find("<!--"), line.trim_start().starts_with("-->")) {
            (Some(place), _) => (from + place, "//--"),
            (None, true) => (from + line.find("-->")?, "//>"),
            (None, false) => return None,
        };
        text.replace_range(place..place + with.len(), with);
        match parse(&text, arena) {
            Ok(_) => return Some(text),
            Err(error) if error.kind() == ErrorKind::Syntax => at = error.span()?.start,
            Err(_) => return None,
        }
    }
    None
}

fn line_start(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1)
}

pub(super) fn range(start: u32, end: u32) -> Range<usize> {
    offset(start)..offset(end)
}

/// The parser's offsets are 32 bits wide; a text longer than that is refused by it.
pub(super) fn offset(at: u32) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

/// A fault at a place in the tree.
pub(super) fn fault(at: u32, kind: SourceErrorKind, message: &str) -> SourceError {
    SourceError::at(offset(at), kind, message.to_owned())
}

/// Where a statement's expression ends: before its semicolon, if it has one.
pub(super) fn expression_end(source: &str, statement: &Statement<'_>) -> usize {
    let end = offset(statement.span.end);
    match source.as_bytes().get(end.wrapping_sub(1)) {
        Some(b';') => end - 1,
        _ => end,
    }
}
