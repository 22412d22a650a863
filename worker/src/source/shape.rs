//! What a program is, and what it takes to run it.
//!
//! Owns the choice between a script as it stands and the body of an async function, and
//! the changes that make the value come out: `return` before the last expression, calls
//! of lone functions, exports. Never parses.

use super::edits::Edits;
use super::exports::{Entry, entry};
use super::read::{Call, Reading, Tree, expression_end, fault, offset};
use super::tail::{self, Tail};
use super::{Form, Global, Mode, PromiseRead, SourceError, SourceErrorKind, lower, module, persist, refuse};
use tsv_ts::ast::{ExpressionKind, Statement, StatementKind};

/// Most names that one program may declare at its top level. The engine's own search for
/// a name is linear, and it allows 65,535.
const DECLARATIONS: usize = 20_000;

/// The call that a program as a function ends with.
pub(super) const CALL: &str = "()";

/// How to run a program.
pub(super) struct Plan {
    pub(super) edits: Edits,
    pub(super) mode: Mode,
    pub(super) globals: Vec<Global>,
    /// The plan without what is changed for a kept vm, if anything is.
    pub(super) as_written: Option<Box<Plan>>,
    pub(super) promise_reads: Vec<PromiseRead>,
}

impl Plan {
    fn of(edits: Edits, mode: Mode) -> Self {
        Self { edits, mode, globals: Vec::new(), as_written: None, promise_reads: Vec::new() }
    }

    /// What makes a function of a program of `length` bytes. One that is a function already
    /// is still called: [`CALL`] is at its end.
    pub(super) fn uncalled(self, length: usize) -> Edits {
        if self.mode == Mode::Body {
            return self.edits;
        }
        let mut edits = Edits::default();
        edits.insert(0, "(async function(){");
        edits.extend_from(&self.edits);
        edits.insert(length, "\n})");
        edits
    }
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

/// Plans a program.
pub(super) fn plan(reading: &Reading<'_, '_>, form: Form, kept_vm: bool) -> Result<Plan, SourceError> {
    let source = &*reading.source;
    let (body, object) = match &reading.tree {
        Tree::Statements { body, object } => (*body, object.clone()),
        Tree::Expression { at, holds_program: true, .. } if form == Form::Auto => {
            return Err(refuse::quoted(at.start));
        }
        Tree::Expression { at, call, .. } => return Ok(lone_expression(source, at, *call)),
    };
    refuse::imports(source, body)?;
    let is_module = body.iter().any(module::exports) || form == Form::Module;
    if is_module {
        module::check(source, body, kept_vm)?;
    }
    if object.is_none() {
        refuse::what_is_no_program(source, body, form)?;
    }
    let facts = facts(body);
    if facts.declared > DECLARATIONS {
        let message = format!("the program declares more than {DECLARATIONS} names at its top level");
        return Err(
            SourceError::at(0, SourceErrorKind::TooComplex, message).with_hint("Put large data into `inputs`, an array or an object.")
        );
    }
    check_form(body, form, &facts)?;
    let value = object.map_or_else(|| tail::find(body), Tail::Object);
    if kept_vm {
        return Ok(kept(source, body, form, &facts, &value));
    }
    let as_it_stands = facts.returns.is_none() && facts.exports.is_none() && facts.declared == 0;
    if as_it_stands && matches!(form, Form::Auto | Form::Expression) && !matches!(value, Tail::Function(..) | Tail::Object(_)) {
        return Ok(Plan::of(hashbang(source), Mode::Script));
    }
    Ok(Shaping::new(source).body(body, form, &value))
}

/// A kept vm: a script whose declarations become global, unless it needs a function.
fn kept(source: &str, body: &[Statement<'_>], form: Form, facts: &Facts, value: &Tail<'_>) -> Plan {
    let globals = persist::globals(source, body);
    let as_written = persist::changes(body).then(|| Box::new(Shaping::new(source).body(body, form, value)));
    if facts.returns.is_some() || facts.exports.is_some() || matches!(form, Form::Body | Form::Module) {
        let mut shaping = Shaping::new(source);
        shaping.globals = Some(globals.iter().map(|global| global.name.clone()).collect());
        persist::hoist(source, body, &mut shaping.edits);
        let plan = shaping.body(body, form, value);
        return Plan { globals, as_written, ..plan };
    }
    let mut edits = hashbang(source);
    persist::redeclarable(source, body, &mut edits);
    match value {
        Tail::Function(statement, call) => {
            edits.insert(offset(statement.span.start), "(");
            edits.insert(expression_end(source, statement), format!("){}", arguments(*call)));
        }
        Tail::Object(at) => {
            // Without the semicolon it could be the arguments of a call.
            edits.insert(at.start, ";(");
            edits.insert(at.end, ")");
        }
        Tail::Nothing | Tail::Last(_) | Tail::OneOf(_) => {}
    }
    Plan { globals, as_written, ..Plan::of(edits, Mode::Script) }
}

/// A form that was asked for must be the form that it is.
fn check_form(body: &[Statement<'_>], form: Form, facts: &Facts) -> Result<(), SourceError> {
    let refuse = |at: u32, message: &str| Err(fault(at, SourceErrorKind::Syntax, message));
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
            StatementKind::FunctionDeclaration(_) | StatementKind::ClassDeclaration(_) | StatementKind::TSEnumDeclaration(_) => {
                facts.declared += 1
            }
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
        return Plan::of(shaping.edits, Mode::Script);
    };
    shaping.edits.insert(0, "(async function(){");
    shaping.edits.insert(at.start, "return (");
    shaping.edits.insert(at.end, format!("){}", arguments(call)));
    shaping.edits.insert(source.len(), format!("\n}}){CALL}"));
    Plan::of(shaping.edits, Mode::Body)
}

/// Where the directives end that `body` begins with, if it does.
fn directives_end(body: &[Statement<'_>]) -> Option<usize> {
    let is_directive = |one: &&Statement<'_>| matches!(&one.kind, StatementKind::ExpressionStatement(inner) if inner.is_directive);
    body.iter().take_while(is_directive).last().map(|last| offset(last.span.end))
}

pub(super) fn arguments(call: Call) -> &'static str {
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
pub(super) struct Shaping<'s> {
    pub(super) source: &'s str,
    pub(super) edits: Edits,
    /// The variable that holds the value until the end, once one is needed.
    variable: Option<String>,
    /// What runs after the last statement.
    pub(super) ending: String,
    /// Names that outlive the body (only in a kept vm).
    pub(super) globals: Option<Vec<String>>,
}

impl<'s> Shaping<'s> {
    fn new(source: &'s str) -> Self {
        Self { source, edits: hashbang(source), variable: None, ending: String::new(), globals: None }
    }

    fn body(mut self, body: &[Statement<'_>], form: Form, value: &Tail<'_>) -> Plan {
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
        let mut first = Edits::default();
        if self.globals.is_some() {
            let functions = persist::hoisted_functions(self.source, body);
            match directives_end(body) {
                // Nothing may stand before a directive; this before all else at its end.
                Some(end) => first.insert(end, format!(";{functions}")),
                None => head.push_str(&functions),
            }
        }
        let mut edits = Edits::default();
        edits.insert(0, head);
        edits.extend_from(&first);
        edits.extend_from(&self.edits);
        edits.insert(self.source.len(), format!("\n{}}}){CALL}", self.ending));
        Plan::of(edits, Mode::Body)
    }

    pub(super) fn variable(&mut self) -> String {
        let source = self.source;
        self.variable.get_or_insert_with(|| lower::longest_dollars(source)).clone()
    }

    /// Makes the value come out.
    fn value(&mut self, body: &[Statement<'_>], value: &Tail<'_>) {
        match value {
            Tail::Last(statement) => self.edits.insert(offset(statement.span.start), "return "),
            Tail::Function(statement, call) => {
                self.edits.insert(offset(statement.span.start), "return (");
                self.edits.insert(expression_end(self.source, statement), format!("){}", arguments(*call)));
            }
            Tail::Object(at) => {
                self.edits.insert(at.start, "return (");
                self.edits.insert(at.end, ")");
            }
            Tail::OneOf(statements) => self.assign(statements),
            Tail::Nothing => {
                if let (Some(Entry { name, call }), None) = (entry(self.source, body), &self.globals) {
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
}
