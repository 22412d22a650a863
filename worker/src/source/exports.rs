//! Exports, in a program that is the body of a function.
//!
//! Owns what becomes of `export`: the word goes, the default export gives the value, and
//! the only exported function is called. Never refuses anything.

use super::edits::{blank, line_ends};
use super::read::{Call, callable, offset};
use super::shape::{Shaping, arguments};
use super::{module, tail};
use std::collections::HashSet;
use tsv_ts::ast::{
    ExportDefaultDeclaration, ExportDefaultValue, ExportKind, ExportNamedDeclaration, ExpressionKind, FunctionDeclaration, Identifier,
    ModuleExportName, Span, Statement, StatementKind, VariableDeclarator,
};

/// The function that a program without any other value is, and how to call it.
pub(super) struct Entry<'a> {
    pub(super) name: Identifier<'a>,
    pub(super) call: Call,
}

impl Shaping<'_> {
    /// Takes `export` away; says whether there is a default export.
    pub(super) fn exports(&mut self, body: &[Statement<'_>]) -> bool {
        let mut has_default = false;
        let names = if self.globals.is_some() { module::all_names(self.source, body) } else { HashSet::new() };
        for statement in body {
            match &statement.kind {
                StatementKind::ExportNamedDeclaration(export) => has_default |= self.named_export(statement, export, &names),
                StatementKind::ExportDefaultDeclaration(export) => has_default |= self.default_export(statement, export),
                _ => {}
            }
        }
        has_default
    }

    /// `names` are those that the program itself has, where others may be there, too.
    fn named_export(&mut self, statement: &Statement<'_>, export: &ExportNamedDeclaration<'_>, names: &HashSet<&str>) -> bool {
        if export.export_kind == ExportKind::Type {
            return false;
        }
        if let Some(declaration) = export.declaration {
            self.blank(statement.span.start, declaration.span.start);
            return false;
        }
        match &self.globals {
            Some(_) => self.names_read(statement.span, export, names),
            None => self.blank(statement.span.start, statement.span.end),
        }
        let default = export.specifiers.iter().find_map(|one| match (&one.local, &one.exported) {
            (ModuleExportName::Identifier(local), ModuleExportName::Identifier(exported))
                if one.export_kind == ExportKind::Value && exported.name(self.source) == "default" =>
            {
                Some(local.name(self.source).to_owned())
            }
            _ => None,
        });
        let Some(name) = default else { return false };
        self.called_if_function(&name);
        true
    }

    /// `export { a, b as c }` is `;       a; b      `: what an earlier program of the vm must
    /// have declared is read, and is an error if it is not there.
    fn names_read(&mut self, span: Span, export: &ExportNamedDeclaration<'_>, names: &HashSet<&str>) {
        let mut start = span.start;
        for one in module::values(export) {
            let ModuleExportName::Identifier(id) = &one.local else { continue };
            if !names.contains(id.name(self.source)) {
                self.blank(start, id.span.start);
                start = id.span.end;
            }
        }
        self.blank(start, span.end);
        self.edits.insert(offset(span.end), ";");
    }

    fn default_export(&mut self, statement: &Statement<'_>, export: &ExportDefaultDeclaration<'_>) -> bool {
        let start = statement.span.start;
        match &export.declaration {
            ExportDefaultValue::Expression(expression) => {
                let variable = self.variable();
                // Parentheses are not in the expression's span: only the words are.
                let end = words_end(self.source, offset(start));
                self.replace(start, end, &format!("{variable}="));
                if let Some(call) = callable(expression) {
                    self.ending = format!("return {variable}{}", arguments(call));
                } else {
                    self.called_if_function(&variable);
                }
            }
            ExportDefaultValue::FunctionDeclaration(function) => {
                let call = Call { with_inputs: !function.params.is_empty() };
                let name = self.default_declaration(start, function.span, function.id.as_ref());
                self.ending = format!("return {name}{}", if function.generator { "" } else { arguments(call) });
            }
            ExportDefaultValue::ClassDeclaration(class) => {
                let name = self.default_declaration(start, class.span, class.id.as_ref());
                self.ending = format!("return {name}");
            }
            ExportDefaultValue::TSDeclareFunction(_) | ExportDefaultValue::TSInterfaceDeclaration(_) => return false,
        }
        true
    }

    /// A declaration keeps its name; without one, it goes into the variable.
    fn default_declaration(&mut self, start: u32, span: Span, id: Option<&Identifier<'_>>) -> String {
        let end = words_end(self.source, offset(start));
        if let Some(id) = id {
            self.blank(start, u32::try_from(end).unwrap_or(u32::MAX));
            return id.name(self.source).to_owned();
        }
        let variable = self.variable();
        self.replace(start, end, &format!("{variable}="));
        self.edits.insert(offset(span.end), ";");
        variable
    }

    fn called_if_function(&mut self, name: &str) {
        self.ending = format!("return typeof {name}===\"function\"?{name}(globalThis.inputs):{name}");
    }

    fn blank(&mut self, start: u32, end: u32) {
        let text = blank(self.source.get(offset(start)..offset(end)).unwrap_or_default());
        // A semicolon: what follows must not continue what came before.
        let text = text.strip_prefix(' ').map(|rest| format!(";{rest}")).unwrap_or(text);
        self.edits.replace(offset(start), offset(end), text);
    }

    /// New words for old ones, on as many lines.
    fn replace(&mut self, start: u32, end: usize, with: &str) {
        let old = self.source.get(offset(start)..end).unwrap_or_default();
        let mut text = format!(";{with}");
        text.extend(line_ends(old));
        self.edits.replace(offset(start), end, text);
    }
}

/// Where `export default` at `start` ends.
fn words_end(source: &str, start: usize) -> usize {
    let rest = source.get(start..).unwrap_or_default();
    rest.find("default").map_or(start, |at| start + at + "default".len())
}

/// The function to call when nothing else gives a value: the only one of a program that
/// does nothing else; or the only one that is exported, or `main`, if the program never
/// names it again.
pub(super) fn entry<'a>(source: &str, body: &'a [Statement<'a>]) -> Option<Entry<'a>> {
    let mut functions = Vec::new();
    let mut others = false;
    for statement in body {
        let (kind, exported) = match &statement.kind {
            StatementKind::ExportNamedDeclaration(export) => match export.declaration {
                Some(declaration) => (&declaration.kind, true),
                None => continue,
            },
            kind => (kind, false),
        };
        match defined(kind) {
            Some(function) => functions.push((function, exported)),
            None => others |= !tail::is_inert(kind) && !is_directive(kind),
        }
    }
    if functions.len() == 1 && !others {
        return functions.pop().map(|(function, _)| function);
    }
    let exports = functions.iter().filter(|(_, exported)| *exported).count();
    let found = functions.into_iter().find(|(function, exported)| {
        let name = function.name.name(source);
        let chosen = if exports > 0 { *exported && exports == 1 } else { name == "main" };
        chosen && source.matches(name).nth(1).is_none()
    });
    found.map(|(function, _)| function)
}

/// A function declaration, or a variable that is one.
fn defined<'a>(kind: &'a StatementKind<'a>) -> Option<Entry<'a>> {
    match kind {
        StatementKind::FunctionDeclaration(function) => named(function),
        StatementKind::VariableDeclaration(declaration) => match declaration.declarations {
            [VariableDeclarator { id, init: Some(init), .. }] => match &id.kind {
                ExpressionKind::Identifier(name) => callable(init).map(|call| Entry { name: name.clone(), call }),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

fn is_directive(kind: &StatementKind<'_>) -> bool {
    matches!(kind, StatementKind::ExpressionStatement(inner) if inner.is_directive)
}

fn named<'a>(function: &FunctionDeclaration<'a>) -> Option<Entry<'a>> {
    if function.generator {
        return None;
    }
    let call = Call { with_inputs: !function.params.is_empty() };
    function.id.clone().map(|name| Entry { name, call })
}
