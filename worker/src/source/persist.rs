//! Declarations that outlive an evaluation, in a kept vm.
//!
//! Owns making `let`, `const`, `class` and functions of the top level global and
//! declarable again, as in any REPL. They lose what they had only within one program:
//! `const` can be assigned to, and nothing is in its temporal dead zone.

use super::Global;
use super::edits::Edits;
use super::read::offset;
use tsv_ts::ast::{
    ClassDeclaration, ExportDefaultValue, Expression, ExpressionKind, Identifier, ObjectPatternProperty, Statement, StatementKind,
    VariableDeclaration, VariableDeclarationKind,
};

/// What `body` declares at its top level, in order, once each.
pub(super) fn globals(source: &str, body: &[Statement<'_>]) -> Vec<Global> {
    let mut names = Vec::new();
    body.iter().for_each(|statement| declared(statement, &mut names));
    let mut seen = std::collections::HashSet::new();
    let names = names.into_iter().map(|id| (id.name(source), offset(id.span.start)));
    names.filter(|(name, _)| seen.insert(*name)).map(|(name, offset)| Global { name: name.to_owned(), offset }).collect()
}

/// The names that a statement declares where it stands.
pub(super) fn declared<'a>(statement: &'a Statement<'a>, names: &mut Vec<&'a Identifier<'a>>) {
    match &statement.kind {
        StatementKind::VariableDeclaration(inner) if is_kept(inner) => {
            inner.declarations.iter().for_each(|one| bound(one.id, names));
        }
        StatementKind::FunctionDeclaration(function) => names.extend(&function.id),
        StatementKind::ClassDeclaration(class) if !class.declare => names.extend(&class.id),
        StatementKind::TSEnumDeclaration(inner) if !inner.declare => names.push(&inner.id),
        StatementKind::ExportNamedDeclaration(export) => {
            if let Some(declaration) = export.declaration {
                declared(declaration, names);
            }
        }
        StatementKind::ExportDefaultDeclaration(export) => match &export.declaration {
            ExportDefaultValue::FunctionDeclaration(function) => names.extend(&function.id),
            ExportDefaultValue::ClassDeclaration(class) => names.extend(&class.id),
            _ => {}
        },
        _ => {}
    }
}

/// Whether anything is changed so that it can be declared again.
pub(super) fn changes(body: &[Statement<'_>]) -> bool {
    body.iter().any(|statement| match &declaration(statement).kind {
        StatementKind::VariableDeclaration(inner) => is_kept(inner),
        StatementKind::ClassDeclaration(class) => !class.declare,
        StatementKind::ExportDefaultDeclaration(export) => matches!(export.declaration, ExportDefaultValue::ClassDeclaration(_)),
        _ => false,
    })
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
pub(super) fn bound<'a>(pattern: &'a Expression<'a>, names: &mut Vec<&'a Identifier<'a>>) {
    let mut work = vec![pattern];
    while let Some(pattern) = work.pop() {
        match &pattern.kind {
            ExpressionKind::Identifier(id) => names.push(id),
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
            StatementKind::ExportDefaultDeclaration(export) => {
                if let ExportDefaultValue::ClassDeclaration(class) = &export.declaration {
                    assigned_class(source, class, "", edits);
                }
            }
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
        StatementKind::ExportDefaultDeclaration(export) => match &export.declaration {
            ExportDefaultValue::FunctionDeclaration(function) => function.id.as_ref(),
            _ => None,
        },
        _ => None,
    });
    names.map(|id| format!("globalThis.{0}={0};", id.name(source))).collect()
}
