//! Declarations that outlive an evaluation, in a kept vm.
//!
//! Owns making `let`, `const`, `class` and functions of the top level global and
//! declarable again, as in any REPL. They lose what they had only within one program:
//! `const` can be assigned to, and nothing is in its temporal dead zone.

use super::edits::Edits;
use super::read::offset;
use tsv_ts::ast::{
    ClassDeclaration, Expression, ExpressionKind, ObjectPatternProperty, Statement, StatementKind, VariableDeclaration,
    VariableDeclarationKind,
};

/// Names that `body` declares at its top level, in order, once each.
pub(super) fn names(source: &str, body: &[Statement<'_>]) -> Vec<String> {
    let mut names = Vec::new();
    for statement in body {
        match &declaration(statement).kind {
            StatementKind::VariableDeclaration(inner) if is_kept(inner) => {
                for one in inner.declarations {
                    bound(source, one.id, &mut names);
                }
            }
            StatementKind::FunctionDeclaration(function) => {
                names.extend(function.id.as_ref().map(|id| id.name(source).to_owned()));
            }
            StatementKind::ClassDeclaration(class) if !class.declare => {
                names.extend(class.id.as_ref().map(|id| id.name(source).to_owned()));
            }
            StatementKind::TSEnumDeclaration(inner) if !inner.declare => names.push(inner.id.name(source).to_owned()),
            _ => {}
        }
    }
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

fn declaration<'a>(statement: &'a Statement<'a>) -> &'a Statement<'a> {
    match &statement.kind {
        StatementKind::ExportNamedDeclaration(export) => export.declaration.unwrap_or(statement),
        _ => statement,
    }
}

fn is_kept(declaration: &VariableDeclaration<'_>) -> bool {
    use VariableDeclarationKind as Kind;
    !declaration.declare && matches!(declaration.kind, Kind::Const | Kind::Let | Kind::Var)
}

/// Every name that a binding pattern binds.
fn bound(source: &str, pattern: &Expression<'_>, names: &mut Vec<String>) {
    let mut work = vec![pattern];
    while let Some(pattern) = work.pop() {
        match &pattern.kind {
            ExpressionKind::Identifier(id) => names.push(id.name(source).to_owned()),
            ExpressionKind::AssignmentPattern(inner) => work.push(inner.left),
            ExpressionKind::RestElement(inner) => work.push(inner.argument),
            ExpressionKind::ArrayPattern(inner) => work.extend(inner.elements.iter().rev().flatten()),
            ExpressionKind::ObjectPattern(inner) => {
                work.extend(inner.properties.iter().rev().map(|property| match property {
                    ObjectPatternProperty::Property(property) => property.value,
                    ObjectPatternProperty::RestElement(rest) => rest.argument,
                }));
            }
            _ => {}
        }
    }
}

/// In a script: `var` for `let` and `const`, `var A=class A` for `class A`.
pub(super) fn redeclarable(source: &str, body: &[Statement<'_>], edits: &mut Edits) {
    for statement in body {
        match &statement.kind {
            StatementKind::VariableDeclaration(inner) if is_kept(inner) => {
                let start = offset(inner.span.start);
                match inner.kind {
                    VariableDeclarationKind::Const => edits.replace(start, start + 5, "var  "),
                    VariableDeclarationKind::Let => edits.replace(start, start + 3, "var"),
                    _ => continue,
                }
                without_old_value(source, inner, edits);
            }
            StatementKind::ClassDeclaration(class) => assigned_class(source, class, "var ", edits),
            _ => {}
        }
    }
}

/// `let x` must not keep the value that an earlier program gave `x`.
fn without_old_value(source: &str, declaration: &VariableDeclaration<'_>, edits: &mut Edits) {
    for one in declaration.declarations.iter().filter(|one| one.init.is_none()) {
        if let ExpressionKind::Identifier(id) = &one.id.kind {
            let end = offset(id.span.start) + written_length(source, id.span.start, id.name(source));
            edits.insert(end, "=void 0");
        }
    }
}

/// Bytes that a name takes where it is written: more than it has if it is escaped.
fn written_length(source: &str, start: u32, name: &str) -> usize {
    let rest = source.get(offset(start)..).unwrap_or_default();
    if rest.starts_with(name) {
        return name.len();
    }
    rest.find(|c: char| c.is_whitespace() || matches!(c, ':' | ',' | ';' | '=' | '!')).unwrap_or(rest.len())
}

fn assigned_class(source: &str, class: &ClassDeclaration<'_>, keyword: &str, edits: &mut Edits) {
    let Some(id) = class.id.as_ref().filter(|_| !class.declare) else { return };
    edits.insert(offset(class.span.start), format!("{keyword}{}=", id.name(source)));
    edits.insert(offset(class.span.end), ";");
}

/// In a function body: assignments to globals for declarations.
pub(super) fn hoist(source: &str, body: &[Statement<'_>], edits: &mut Edits) {
    for statement in body {
        match &declaration(statement).kind {
            StatementKind::VariableDeclaration(inner) if is_kept(inner) => assignments(source, inner, edits),
            StatementKind::ClassDeclaration(class) => assigned_class(source, class, "", edits),
            _ => {}
        }
    }
}

/// `const { a } = x, b = y` is `;   ({ a } = x, b = y);`.
fn assignments(source: &str, declaration: &VariableDeclaration<'_>, edits: &mut Edits) {
    let start = offset(declaration.span.start);
    let keyword = declaration.kind.as_str();
    if declaration.kind == VariableDeclarationKind::Var && declaration.declarations.iter().all(|one| one.init.is_none()) {
        edits.replace(
            start,
            offset(declaration.span.end),
            super::edits::blank(source.get(start..offset(declaration.span.end)).unwrap_or_default()),
        );
        return;
    }
    let opening = format!(";{}(", " ".repeat(keyword.len().saturating_sub(2)));
    edits.replace(start, start + keyword.len(), opening);
    without_old_value(source, declaration, edits);
    let end = offset(declaration.span.end);
    let end = if source.as_bytes().get(end.wrapping_sub(1)) == Some(&b';') { end - 1 } else { end };
    edits.insert(end, ");");
}

/// Functions are there before the first statement, so they become global there.
pub(super) fn hoisted_functions(source: &str, body: &[Statement<'_>]) -> String {
    let names = body.iter().filter_map(|statement| match &declaration(statement).kind {
        StatementKind::FunctionDeclaration(function) => function.id.as_ref(),
        _ => None,
    });
    names.map(|id| format!("globalThis.{0}={0};", id.name(source))).collect()
}
