//! What a program is, and what it takes to run it.
//!
//! Owns the choice between a script as it stands and the body of an async function, and
//! the changes that make the value come out: `return` before the last expression, calls
//! of lone functions, exports. Never parses.

use super::edits::{Edits, blank};
use super::read::{Call, Reading, Tree, callable, expression_end, fault, offset};
use super::tail::{self, Tail};
use super::{Form, Mode, SourceError, SourceErrorKind, lower, persist, refuse};
use tsv_ts::ast::{
    ExportDefaultDeclaration, ExportDefaultValue, ExportKind, ExportNamedDeclaration, ExpressionKind, FunctionDeclaration,
    Identifier, ModuleExportName, Statement, StatementKind,
};

/// Most names that one program may declare at its top level. The engine's own search for
/// a name is linear, and it allows 65,535.
const DECLARATIONS: usize = 20_000;

/// How to run a program.
pub(super) struct Plan {
    pub(super) edits: Edits,
    pub(super) mode: Mode,
    pub(super) globals: Vec<String>,
}

/// What the statements of a program have in common.
#[derive(Default)]
struct Facts {
    /// Where the first `return` is that belongs to no function.
    returns: Option<u32>,
    /// Where the first `export` is.
    exports: Option<u32>,
    /// Names declared, not counting patterns.
    declared: usize,
}

/// The function that a program without any other value is.
enum Entry<'a> {
    Named(Identifier<'a>, Call),
}

/// Plans a program.
pub(super) fn plan(reading: &Reading<'_, '_>, form: Form, kept_vm: bool) -> Result<Plan, SourceError> {
    let source = &*reading.source;
    let (body, object) = match &reading.tree {
        Tree::Statements { body, object } => (*body, object.clone()),
        Tree::Expression { at, holds_program: true, .. } if form == Form::Auto => {
            return Err(refuse::quoted(source, at.start));
        }
        Tree::Expression { at, call, .. } => return Ok(lone_expression(source, at, *call)),
    };
    refuse::imports(source, body)?;
    if object.is_none() {
        refuse::what_is_no_program(source, body, form)?;
    }
    let facts = facts(body);
    if facts.declared > DECLARATIONS {
        let message = format!("the program declares more than {DECLARATIONS} names at its top level");
        return Err(SourceError::at(source, 0, SourceErrorKind::TooComplex, message)
            .with_hint("Put large data into `inputs`, an array or an object."));
    }
    check_form(source, body, form, &facts)?;
    let value = object.map_or_else(|| tail::find(body), Tail::Object);
    if kept_vm {
        return Ok(kept(source, body, form, &facts, value));
    }
    let as_it_stands = facts.returns.is_none() && facts.exports.is_none() && facts.declared == 0;
    if as_it_stands && matches!(form, Form::Auto | Form::Expression) && !matches!(value, Tail::Function(..) | Tail::Object(_)) {
        return Ok(Plan { edits: hashbang(source), mode: Mode::Script, globals: Vec::new() });
    }
    Ok(Shaping::new(source).body(body, form, value))
}

/// A kept vm: a script whose declarations become global, unless it needs a function.
fn kept(source: &str, body: &[Statement<'_>], form: Form, facts: &Facts, value: Tail<'_>) -> Plan {
    let globals = persist::names(source, body);
    if facts.returns.is_some() || facts.exports.is_some() || matches!(form, Form::Body | Form::Module) {
        let mut shaping = Shaping::new(source);
        shaping.globals = Some(globals.clone());
        persist::hoist(source, body, &mut shaping.edits);
        let plan = shaping.body(body, form, value);
        return Plan { globals, ..plan };
    }
    let mut edits = hashbang(source);
    persist::redeclarable(source, body, &mut edits);
    match value {
        Tail::Function(statement, call) => {
            edits.insert(offset(statement.span.start), "(");
            edits.insert(expression_end(source, statement), format!("){}", arguments(call)));
        }
        Tail::Object(at) => {
            // Without the semicolon it could be the arguments of a call.
            edits.insert(at.start, ";(");
            edits.insert(at.end, ")");
        }
        Tail::Nothing | Tail::Last(_) | Tail::OneOf(_) => {}
    }
    Plan { edits, mode: Mode::Script, globals }
}

/// A form that was asked for must be the form that it is.
fn check_form(source: &str, body: &[Statement<'_>], form: Form, facts: &Facts) -> Result<(), SourceError> {
    let refuse = |at: u32, message: &str| Err(fault(source, at, SourceErrorKind::Syntax, message));
    match form {
        Form::Auto => Ok(()),
        Form::Expression => {
            let mut real = body.iter().filter(|one| !matches!(one.kind, StatementKind::EmptyStatement(_)));
            match (real.next(), real.next()) {
                (Some(Statement { kind: StatementKind::ExpressionStatement(_), .. }), None) => Ok(()),
                (Some(Statement { kind: StatementKind::ExpressionStatement(_), .. }), Some(second)) => {
                    refuse(second.span.start, "only one expression was expected, and here is a second statement")
                }
                (Some(first), _) => refuse(first.span.start, "an expression was expected, and here is a statement"),
                (None, _) => refuse(0, "an expression was expected, and there is none"),
            }
        }
        Form::Body => facts.exports.map_or(Ok(()), |at| refuse(at, "a function body cannot export")),
        Form::Module => facts.returns.map_or(Ok(()), |at| refuse(at, "a module cannot return; export a default value")),
    }
}

fn facts(body: &[Statement<'_>]) -> Facts {
    let mut facts = Facts::default();
    let mut work: Vec<&Statement<'_>> = body.iter().rev().collect();
    while let Some(statement) = work.pop() {
        match &statement.kind {
            StatementKind::ReturnStatement(_) => {
                facts.returns = facts.returns.or(Some(statement.span.start));
            }
            StatementKind::ExportNamedDeclaration(export) => {
                facts.exports = facts.exports.or(Some(statement.span.start));
                work.extend(export.declaration);
            }
            StatementKind::ExportDefaultDeclaration(_) | StatementKind::ExportAllDeclaration(_) => {
                facts.exports = facts.exports.or(Some(statement.span.start));
            }
            StatementKind::VariableDeclaration(declaration) => facts.declared += declaration.declarations.len(),
            StatementKind::FunctionDeclaration(_)
            | StatementKind::ClassDeclaration(_)
            | StatementKind::TSEnumDeclaration(_) => facts.declared += 1,
            _ => tail::children(statement, true, &mut work),
        }
    }
    facts
}

/// `{ a: 1 }` in parentheses; `function () { … }` in parentheses, and called.
fn lone_expression(source: &str, at: &std::ops::Range<usize>, call: Option<Call>) -> Plan {
    let mut shaping = Shaping::new(source);
    let Some(call) = call else {
        shaping.edits.insert(at.start, "(");
        shaping.edits.insert(at.end, ")");
        return Plan { edits: shaping.edits, mode: Mode::Script, globals: Vec::new() };
    };
    shaping.edits.insert(0, "(async function(){");
    shaping.edits.insert(at.start, "return (");
    shaping.edits.insert(at.end, format!("){}", arguments(call)));
    shaping.edits.insert(source.len(), "\n})()");
    Plan { edits: shaping.edits, mode: Mode::Body, globals: Vec::new() }
}

fn arguments(call: Call) -> &'static str {
    if call.with_inputs { "(globalThis.inputs)" } else { "()" }
}

/// A hashbang line as a comment: it is one only at the very start.
fn hashbang(source: &str) -> Edits {
    let mut edits = Edits::default();
    if source.starts_with("#!") {
        edits.replace(0, 2, "//");
    }
    edits
}

/// The making of an async function body.
struct Shaping<'s> {
    source: &'s str,
    edits: Edits,
    /// The variable that holds the value until the end, once one is needed.
    variable: Option<String>,
    /// What runs after the last statement.
    ending: String,
    /// Names that outlive the body (only in a kept vm).
    globals: Option<Vec<String>>,
}

impl<'s> Shaping<'s> {
    fn new(source: &'s str) -> Self {
        Self { source, edits: hashbang(source), variable: None, ending: String::new(), globals: None }
    }

    fn body(mut self, body: &[Statement<'_>], form: Form, value: Tail<'_>) -> Plan {
        let has_default = self.exports(body);
        match form {
            _ if has_default => {}
            Form::Body | Form::Module => {}
            Form::Auto | Form::Expression => self.value(body, value),
        }
        let mut head = String::new();
        if let Some(globals) = self.globals.as_ref().filter(|globals| !globals.is_empty()) {
            head.push_str(&format!("var {};", globals.join(",")));
        }
        head.push_str(&format!("(async function({}){{", self.variable.as_deref().unwrap_or_default()));
        if form == Form::Module {
            head.push_str("'use strict';");
        }
        if self.globals.is_some() {
            head.push_str(&persist::hoisted_functions(self.source, body));
        }
        let mut edits = Edits::default();
        edits.insert(0, head);
        edits.extend_from(&self.edits);
        edits.insert(self.source.len(), format!("\n{}}})()", self.ending));
        Plan { edits, mode: Mode::Body, globals: Vec::new() }
    }

    fn variable(&mut self) -> String {
        let source = self.source;
        self.variable.get_or_insert_with(|| lower::longest_dollars(source)).clone()
    }

    /// Makes the value come out.
    fn value(&mut self, body: &[Statement<'_>], value: Tail<'_>) {
        match value {
            Tail::Last(statement) => self.edits.insert(offset(statement.span.start), "return "),
            Tail::Function(statement, call) => {
                self.edits.insert(offset(statement.span.start), "return (");
                self.edits.insert(expression_end(self.source, statement), format!("){}", arguments(call)));
            }
            Tail::Object(at) => {
                self.edits.insert(at.start, "return (");
                self.edits.insert(at.end, ")");
            }
            Tail::OneOf(statements) => self.assign(&statements),
            Tail::Nothing => {
                if let (Some(Entry::Named(name, call)), None) = (entry(body), &self.globals) {
                    self.ending = format!("return {}{}", name.name(self.source), arguments(call));
                }
            }
        }
    }

    fn assign(&mut self, statements: &[&Statement<'_>]) {
        if statements.is_empty() {
            return;
        }
        let variable = self.variable();
        for statement in statements {
            let StatementKind::ExpressionStatement(inner) = &statement.kind else { continue };
            let start = offset(statement.span.start);
            if matches!(inner.expression.kind, ExpressionKind::SequenceExpression(_)) {
                self.edits.insert(start, format!("{variable}=("));
                self.edits.insert(expression_end(self.source, statement), ")");
            } else {
                self.edits.insert(start, format!("{variable}="));
            }
        }
        self.ending = format!("return {variable}");
    }

    /// Takes `export` away; says whether there is a default export.
    fn exports(&mut self, body: &[Statement<'_>]) -> bool {
        let mut has_default = false;
        for statement in body {
            match &statement.kind {
                StatementKind::ExportNamedDeclaration(export) => has_default |= self.named_export(statement, export),
                StatementKind::ExportDefaultDeclaration(export) => has_default |= self.default_export(statement, export),
                _ => {}
            }
        }
        has_default
    }

    fn named_export(&mut self, statement: &Statement<'_>, export: &ExportNamedDeclaration<'_>) -> bool {
        if export.export_kind == ExportKind::Type {
            return false;
        }
        if let Some(declaration) = export.declaration {
            self.blank(statement.span.start, declaration.span.start);
            return false;
        }
        self.blank(statement.span.start, statement.span.end);
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
    fn default_declaration(&mut self, start: u32, span: tsv_ts::ast::Span, id: Option<&Identifier<'_>>) -> String {
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
        text.extend(super::edits::line_ends(old));
        self.edits.replace(offset(start), end, text);
    }
}

/// Where `export default` at `start` ends.
fn words_end(source: &str, start: usize) -> usize {
    let rest = source.get(start..).unwrap_or_default();
    rest.find("default").map_or(start, |at| start + at + "default".len())
}

/// The only function of a program that does nothing else, or the only one it exports.
fn entry<'a>(body: &'a [Statement<'a>]) -> Option<Entry<'a>> {
    let mut alone = None;
    let mut exported = None;
    let mut functions = 0;
    let mut others = false;
    for statement in body {
        match &statement.kind {
            StatementKind::FunctionDeclaration(function) => {
                functions += 1;
                alone = named(function);
            }
            StatementKind::ExportNamedDeclaration(export) => match export.declaration.map(|inner| &inner.kind) {
                Some(StatementKind::FunctionDeclaration(function)) => {
                    functions += 1;
                    alone = named(function);
                    if exported.replace(named(function)).is_some() {
                        return None;
                    }
                }
                Some(kind) if !tail::is_inert(kind) => others = true,
                _ => {}
            },
            kind if tail::is_inert(kind) || is_directive(kind) => {}
            _ => others = true,
        }
    }
    match exported {
        Some(function) => function,
        None if functions == 1 && !others => alone,
        None => None,
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
    function.id.clone().map(|id| Entry::Named(id, call))
}
