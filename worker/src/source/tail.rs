//! Which statement gives a program its value.
//!
//! Owns the completion value, as the language defines it: that of the last statement that
//! has one. Never changes text. Works through a list, not by recursion.

use super::read::{Call, callable};
use tsv_ts::ast::{Statement, StatementKind};

/// Where the value of a list of statements comes from.
#[derive(Debug)]
pub(super) enum Tail<'a> {
    /// Nothing that gives a value.
    Nothing,
    /// The expression of this statement; only declarations without effect follow.
    Last(&'a Statement<'a>),
    /// This statement is a function that nobody could call: it is called.
    Function(&'a Statement<'a>, Call),
    /// An object literal that the grammar takes for a block, at these bytes.
    Object(std::ops::Range<usize>),
    /// Whichever of these expression statements runs last.
    OneOf(Vec<&'a Statement<'a>>),
}

/// Finds what gives `body` its value.
pub(super) fn find<'a>(body: &'a [Statement<'a>]) -> Tail<'a> {
    let mut effects_follow = false;
    for statement in body.iter().rev() {
        match &statement.kind {
            StatementKind::ExpressionStatement(inner) => {
                if inner.is_directive && body.len() > 1 {
                    return Tail::Nothing;
                }
                return match callable(inner.expression) {
                    _ if effects_follow => Tail::OneOf(vec![statement]),
                    Some(call) => Tail::Function(statement, call),
                    None => Tail::Last(statement),
                };
            }
            StatementKind::BlockStatement(_) => {
                let within = expressions(statement);
                if !within.is_empty() {
                    return Tail::OneOf(within);
                }
                effects_follow = true;
            }
            kind if is_compound(kind) => return Tail::OneOf(expressions(statement)),
            kind if jumps(kind) => return Tail::Nothing,
            kind if is_inert(kind) => {}
            _ => effects_follow = true,
        }
    }
    Tail::Nothing
}

/// Statements whose value is that of a statement within them.
fn is_compound(kind: &StatementKind<'_>) -> bool {
    matches!(
        kind,
        StatementKind::IfStatement(_)
            | StatementKind::ForStatement(_)
            | StatementKind::ForInStatement(_)
            | StatementKind::ForOfStatement(_)
            | StatementKind::WhileStatement(_)
            | StatementKind::DoWhileStatement(_)
            | StatementKind::WithStatement(_)
            | StatementKind::SwitchStatement(_)
            | StatementKind::TryStatement(_)
            | StatementKind::LabeledStatement(_)
    )
}

fn jumps(kind: &StatementKind<'_>) -> bool {
    matches!(
        kind,
        StatementKind::ReturnStatement(_)
            | StatementKind::ThrowStatement(_)
            | StatementKind::BreakStatement(_)
            | StatementKind::ContinueStatement(_)
    )
}

/// Statements that do nothing when they are reached.
pub(super) fn is_inert(kind: &StatementKind<'_>) -> bool {
    matches!(
        kind,
        StatementKind::EmptyStatement(_)
            | StatementKind::FunctionDeclaration(_)
            | StatementKind::TSDeclareFunction(_)
            | StatementKind::TSInterfaceDeclaration(_)
            | StatementKind::TSTypeAliasDeclaration(_)
            | StatementKind::ImportDeclaration(_)
    )
}

/// Every expression statement within `statement` whose value could be its value: not
/// those of functions, nor of `finally`.
fn expressions<'a>(statement: &'a Statement<'a>) -> Vec<&'a Statement<'a>> {
    let mut found = Vec::new();
    let mut work = vec![statement];
    while let Some(statement) = work.pop() {
        if matches!(statement.kind, StatementKind::ExpressionStatement(_)) {
            found.push(statement);
            continue;
        }
        // `finally` has no say in the value.
        children(statement, false, &mut work);
    }
    found
}

/// Adds the statements directly within `statement` to `work`.
pub(super) fn children<'a>(statement: &'a Statement<'a>, with_finally: bool, work: &mut Vec<&'a Statement<'a>>) {
    match &statement.kind {
        StatementKind::BlockStatement(inner) => work.extend(inner.body),
        StatementKind::IfStatement(inner) => {
            work.push(inner.consequent);
            work.extend(inner.alternate);
        }
        StatementKind::ForStatement(inner) => work.push(inner.body),
        StatementKind::ForInStatement(inner) => work.push(inner.body),
        StatementKind::ForOfStatement(inner) => work.push(inner.body),
        StatementKind::WhileStatement(inner) => work.push(inner.body),
        StatementKind::DoWhileStatement(inner) => work.push(inner.body),
        StatementKind::WithStatement(inner) => work.push(inner.body),
        StatementKind::LabeledStatement(inner) => work.push(inner.body),
        StatementKind::SwitchStatement(inner) => {
            for case in inner.cases {
                work.extend(case.consequent);
            }
        }
        StatementKind::TryStatement(inner) => {
            work.extend(inner.block.body);
            if let Some(handler) = inner.handler {
                work.extend(handler.body.body);
            }
            if let (Some(finalizer), true) = (&inner.finalizer, with_finally) {
                work.extend(finalizer.body);
            }
        }
        _ => {}
    }
}
