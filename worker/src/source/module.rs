//! What the language refuses in a module and takes in the body of a function, which is what
//! a module is run as here.
//!
//! Owns exports of what is not declared, two exports of one name, and functions that are
//! declared twice. Never changes anything: what the engine finds in a body is left to it.

use super::persist::{bound, declared};
use super::read::fault;
use super::tail;
use super::{SourceError, SourceErrorKind};
use std::collections::{HashMap, HashSet};
use tsv_ts::ast::{
    ExportDefaultValue, ExportKind, ExportNamedDeclaration, ExportSpecifier, ForInOfLeft, ForInit, Identifier, ImportSpecifier,
    LiteralValue, ModuleExportName, Statement, StatementKind, TSModuleName, VariableDeclaration, VariableDeclarationKind,
};

/// Whether only a module has such a statement.
pub(super) fn exports(statement: &Statement<'_>) -> bool {
    matches!(
        statement.kind,
        StatementKind::ExportNamedDeclaration(_) | StatementKind::ExportDefaultDeclaration(_) | StatementKind::ExportAllDeclaration(_)
    )
}

/// Refuses what no module may say. In a kept vm (`kept_vm`), what is exported may be of an
/// earlier program: only when it runs can be told whether it is there.
pub(super) fn check(source: &str, body: &[Statement<'_>], kept_vm: bool) -> Result<(), SourceError> {
    once_declared(source, body)?;
    let mut exported = Exported { source, names: HashMap::new() };
    body.iter().try_for_each(|statement| exported.statement(statement))?;
    let names = if kept_vm { None } else { Some(all_names(source, body)) };
    body.iter().try_for_each(|statement| is_there(source, statement, names.as_ref()))
}

/// The names of one module's exports.
struct Exported<'s> {
    source: &'s str,
    /// Whether each is an enum: those may be written in parts.
    names: HashMap<String, bool>,
}

impl Exported<'_> {
    fn statement(&mut self, statement: &Statement<'_>) -> Result<(), SourceError> {
        match &statement.kind {
            StatementKind::ExportNamedDeclaration(export) if export.export_kind == ExportKind::Value => self.named(export),
            StatementKind::ExportDefaultDeclaration(export) => match export.declaration {
                ExportDefaultValue::TSDeclareFunction(_) | ExportDefaultValue::TSInterfaceDeclaration(_) => Ok(()),
                _ => self.add("default", statement.span.start, false),
            },
            _ => Ok(()),
        }
    }

    fn named(&mut self, export: &ExportNamedDeclaration<'_>) -> Result<(), SourceError> {
        for one in values(export) {
            let name = name(self.source, &one.exported);
            self.add(name, one.exported.span().start, false)?;
        }
        let Some(declaration) = export.declaration else { return Ok(()) };
        let is_enum = matches!(declaration.kind, StatementKind::TSEnumDeclaration(_));
        let mut ids = Vec::new();
        declared(declaration, &mut ids);
        // A pattern may bind a name twice: that is the engine's to say.
        let mut own = HashSet::new();
        let first = ids.into_iter().filter(|id| own.insert(id.name(self.source)));
        let names: Vec<_> = first.map(|id| (id.name(self.source), id.span.start)).collect();
        names.into_iter().try_for_each(|(name, at)| self.add(name, at, is_enum))
    }

    fn add(&mut self, name: &str, at: u32, is_enum: bool) -> Result<(), SourceError> {
        match self.names.insert(name.to_owned(), is_enum) {
            Some(was_enum) if !(was_enum && is_enum) => {
                Err(fault(at, SourceErrorKind::Syntax, &format!("duplicate export of '{name}'"))
                    .with_hint("A module exports each name once."))
            }
            _ => Ok(()),
        }
    }
}

/// The parts of `export { … }` that are values.
pub(super) fn values<'a>(export: &ExportNamedDeclaration<'a>) -> impl Iterator<Item = &'a ExportSpecifier<'a>> {
    let is_value = export.export_kind == ExportKind::Value;
    export.specifiers.iter().filter(move |one| is_value && one.export_kind == ExportKind::Value)
}

fn name<'s>(source: &'s str, written: &'s ModuleExportName<'_>) -> &'s str {
    match written {
        ModuleExportName::Identifier(id) => id.name(source),
        ModuleExportName::Literal(literal) => match &literal.value {
            LiteralValue::String(text) => text.resolve(literal.span, source),
            _ => "",
        },
    }
}

/// Refuses `export { a }` where no `a` is. Without `names`, any may be.
fn is_there(source: &str, statement: &Statement<'_>, names: Option<&HashSet<&str>>) -> Result<(), SourceError> {
    let StatementKind::ExportNamedDeclaration(export) = &statement.kind else { return Ok(()) };
    if export.source.is_some() {
        return Ok(());
    }
    for one in values(export) {
        let at = one.local.span().start;
        let name = name(source, &one.local);
        if matches!(one.local, ModuleExportName::Literal(_)) {
            let message = format!("'{name}' is a string, and only what is declared can be exported");
            return Err(fault(at, SourceErrorKind::Syntax, &message).with_hint("Write export { name as \"a string\" }."));
        }
        if names.is_some_and(|names| !names.contains(name)) {
            let message = format!("export '{name}' is not defined in the program");
            return Err(fault(at, SourceErrorKind::Syntax, &message).with_hint("Declare it at the top level, or leave it out."));
        }
    }
    Ok(())
}

/// Every name that a module's top level has, values and types.
pub(super) fn all_names<'s>(source: &'s str, body: &'s [Statement<'s>]) -> HashSet<&'s str> {
    let mut ids = Vec::new();
    for statement in body {
        declared(statement, &mut ids);
        types(statement, &mut ids);
    }
    ids.extend(variables(body));
    ids.into_iter().map(|id| id.name(source)).collect()
}

/// The names of a statement that stand for types, or are only said to be there.
fn types<'a>(statement: &'a Statement<'a>, names: &mut Vec<&'a Identifier<'a>>) {
    match &statement.kind {
        StatementKind::TSInterfaceDeclaration(inner) => names.push(&inner.id),
        StatementKind::TSTypeAliasDeclaration(inner) => names.push(&inner.id),
        StatementKind::TSImportEqualsDeclaration(inner) => names.push(&inner.id),
        StatementKind::TSDeclareFunction(inner) => names.push(&inner.id),
        StatementKind::TSModuleDeclaration(inner) => {
            if let TSModuleName::Identifier(id) = &inner.id {
                names.push(id);
            }
        }
        StatementKind::ClassDeclaration(inner) => names.extend(&inner.id),
        StatementKind::TSEnumDeclaration(inner) => names.push(&inner.id),
        StatementKind::VariableDeclaration(inner) => inner.declarations.iter().for_each(|one| bound(one.id, names)),
        StatementKind::ImportDeclaration(import) => names.extend(import.specifiers.iter().map(|one| match one {
            ImportSpecifier::Default(inner) => &inner.local,
            ImportSpecifier::Named(inner) => &inner.local,
            ImportSpecifier::Namespace(inner) => &inner.local,
        })),
        StatementKind::ExportNamedDeclaration(export) => {
            if let Some(declaration) = export.declaration {
                types(declaration, names);
            }
        }
        StatementKind::ExportDefaultDeclaration(export) => match &export.declaration {
            ExportDefaultValue::TSDeclareFunction(inner) => names.push(&inner.id),
            ExportDefaultValue::TSInterfaceDeclaration(inner) => names.push(&inner.id),
            _ => {}
        },
        _ => {}
    }
}

/// What `var` declares, however deep in blocks.
fn variables<'a>(body: &'a [Statement<'a>]) -> Vec<&'a Identifier<'a>> {
    let mut names = Vec::new();
    let mut add = |declaration: &'a VariableDeclaration<'a>| {
        if declaration.kind == VariableDeclarationKind::Var && !declaration.declare {
            declaration.declarations.iter().for_each(|one| bound(one.id, &mut names));
        }
    };
    let mut work: Vec<&Statement<'_>> = body.iter().collect();
    while let Some(statement) = work.pop() {
        match &statement.kind {
            StatementKind::VariableDeclaration(inner) => add(inner),
            StatementKind::ExportNamedDeclaration(export) => work.extend(export.declaration),
            StatementKind::ForStatement(inner) => {
                if let Some(ForInit::VariableDeclaration(declaration)) = &inner.init {
                    add(declaration);
                }
            }
            StatementKind::ForInStatement(inner) => {
                if let ForInOfLeft::VariableDeclaration(declaration) = &inner.left {
                    add(declaration);
                }
            }
            StatementKind::ForOfStatement(inner) => {
                if let ForInOfLeft::VariableDeclaration(declaration) = &inner.left {
                    add(declaration);
                }
            }
            _ => {}
        }
        tail::children(statement, true, &mut work);
    }
    names
}

/// Refuses a function whose name another function or a `var` has: outside of modules, the
/// last one is it.
fn once_declared(source: &str, body: &[Statement<'_>]) -> Result<(), SourceError> {
    let mut all: Vec<_> = variables(body).into_iter().map(|id| (id, false)).collect();
    all.extend(body.iter().filter_map(function).map(|id| (id, true)));
    all.sort_by_key(|(id, _)| id.span.start);
    let mut seen = HashMap::new();
    for (id, is_function) in all {
        let name = id.name(source);
        let other = seen.insert(name, is_function);
        if other.is_some_and(|was_function| was_function || is_function) {
            let message = format!("'{name}' has already been declared: in a module, a function's name is declared once");
            return Err(fault(id.span.start, SourceErrorKind::Syntax, &message));
        }
    }
    Ok(())
}

fn function<'a>(statement: &'a Statement<'a>) -> Option<&'a Identifier<'a>> {
    match &statement.kind {
        StatementKind::FunctionDeclaration(function) => function.id.as_ref(),
        StatementKind::ExportNamedDeclaration(export) => export.declaration.and_then(function),
        StatementKind::ExportDefaultDeclaration(export) => match &export.declaration {
            ExportDefaultValue::FunctionDeclaration(function) => function.id.as_ref(),
            _ => None,
        },
        _ => None,
    }
}
