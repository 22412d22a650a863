//! TypeScript that is more than types, as JavaScript.
//!
//! Owns enums and constructor parameter properties: finds them anywhere in the tree
//! (with a list of work, not by recursion) and writes what they become. Takes no types away
//! but `import type X = require("x")`, which the parser's own stripper refuses.

use super::edits::{Edits, blank, line_ends};
use super::read::{fault, offset, range};
use super::walk::{Left, Node};
use super::{SourceError, SourceErrorKind};
use std::ops::Range;
use tsv_ts::ast::{
    ClassBody, ClassMember, ExportDefaultValue, Expression, ExpressionKind, FunctionExpression, ImportKind, LiteralValue, MethodKind, Span,
    Statement, StatementKind, TSEnumDeclaration, TSEnumMember, TSEnumMemberId, TSParameterProperty,
};

/// What to change, and what to hide from the parser that strips types.
#[derive(Default)]
pub(super) struct Lowered {
    pub(super) edits: Edits,
    hidden: Vec<Range<usize>>,
}

impl Lowered {
    pub(super) fn is_empty(&self) -> bool {
        self.hidden.is_empty()
    }

    /// The source with everything that was lowered blanked, byte for byte.
    pub(super) fn blanked(&self, source: &str) -> String {
        let mut ranges = self.hidden.clone();
        ranges.sort_by_key(|hidden| hidden.start);
        let mut out = String::with_capacity(source.len());
        let mut cursor = 0;
        for hidden in ranges.iter().filter(|hidden| !hidden.is_empty()) {
            if hidden.start < cursor {
                continue;
            }
            out.push_str(source.get(cursor..hidden.start).unwrap_or_default());
            out.push_str(&blank(source.get(hidden.clone()).unwrap_or_default()));
            cursor = hidden.end;
        }
        out.push_str(source.get(cursor..).unwrap_or_default());
        out
    }
}

struct Lowering<'s> {
    source: &'s str,
    done: Lowered,
}

/// Lowers every enum and parameter property in `body`.
pub(super) fn lower(source: &str, body: &[Statement<'_>]) -> Result<Lowered, SourceError> {
    let mut lowering = Lowering { source, done: Lowered::default() };
    let mut left = Left::of(body);
    while let Some(node) = left.next() {
        let is_done = match node {
            Node::Statement(statement) => lowering.statement(statement)?,
            Node::Expression(Expression { kind: ExpressionKind::ClassExpression(class), .. }) => {
                lowering.class(&class.body, class.super_class.is_some())?;
                false
            }
            _ => false,
        };
        if !is_done {
            left.go_below(node);
        }
    }
    Ok(lowering.done)
}

impl Lowering<'_> {
    /// Whether nothing in it is left to do.
    fn statement(&mut self, statement: &Statement<'_>) -> Result<bool, SourceError> {
        use StatementKind as Kind;
        match &statement.kind {
            Kind::TSEnumDeclaration(declaration) => {
                if !declaration.declare {
                    self.enumeration(statement.span, statement.span, declaration);
                }
                return Ok(true);
            }
            Kind::TSImportEqualsDeclaration(import) if import.import_kind == ImportKind::Type => {
                let at = range(statement.span.start, statement.span.end);
                self.done.edits.replace(at.start, at.end, blank(self.slice(&at)));
                self.done.hidden.push(at);
                return Ok(true);
            }
            // One with values is refused, whatever is in it; another is taken away.
            Kind::TSModuleDeclaration(_) => return Ok(true),
            Kind::ClassDeclaration(class) if class.declare => return Ok(true),
            Kind::ClassDeclaration(class) => self.class(&class.body, class.super_class.is_some())?,
            Kind::ExportNamedDeclaration(export) => {
                if let Some(Statement { kind: Kind::TSEnumDeclaration(declaration), span }) = export.declaration {
                    if !declaration.declare {
                        self.enumeration(*span, statement.span, declaration);
                    }
                    return Ok(true);
                }
            }
            Kind::ExportDefaultDeclaration(export) => {
                if let ExportDefaultValue::ClassDeclaration(class) = &export.declaration {
                    self.class(&class.body, class.super_class.is_some())?;
                }
            }
            _ => {}
        }
        Ok(false)
    }

    fn class(&mut self, body: &ClassBody<'_>, derived: bool) -> Result<(), SourceError> {
        for member in body.body {
            if let ClassMember::MethodDefinition(method) = member
                && method.kind == MethodKind::Constructor
            {
                self.constructor(&method.value, derived)?;
            }
        }
        Ok(())
    }

    /// `constructor(private x) {` is `constructor(x) {this.x=x;`.
    fn constructor(&mut self, function: &FunctionExpression<'_>, derived: bool) -> Result<(), SourceError> {
        let mut assignments = String::new();
        for parameter in function.params {
            let ExpressionKind::TSParameterProperty(property) = &parameter.kind else { continue };
            let Some(name) = self.property_name(property) else { continue };
            assignments.push_str(&format!(";this.{name}={name}"));
            let modifiers = offset(parameter.span.start)..offset(property.parameter.span.start);
            self.done.edits.replace(modifiers.start, modifiers.end, blank(self.slice(&modifiers)));
            self.done.hidden.push(modifiers);
        }
        if assignments.is_empty() {
            return Ok(());
        }
        assignments.push(';');
        let at = self.assignment_place(function, derived)?;
        self.done.edits.insert(at, assignments);
        Ok(())
    }

    fn property_name(&self, property: &TSParameterProperty<'_>) -> Option<String> {
        let target = match &property.parameter.kind {
            ExpressionKind::AssignmentPattern(pattern) => pattern.left,
            _ => property.parameter,
        };
        match &target.kind {
            ExpressionKind::Identifier(name) => Some(name.name(self.source).to_owned()),
            _ => None,
        }
    }

    /// After `super(...)` in a derived class, else at the start, after any directive.
    fn assignment_place(&self, function: &FunctionExpression<'_>, derived: bool) -> Result<usize, SourceError> {
        let start = offset(function.body.span.start) + 1;
        let mut directives = start;
        for statement in function.body.body {
            let StatementKind::ExpressionStatement(inner) = &statement.kind else { continue };
            if inner.is_directive {
                directives = offset(statement.span.end);
            }
            if let ExpressionKind::CallExpression(call) = &inner.expression.kind
                && matches!(call.callee.kind, ExpressionKind::Super(_))
            {
                return Ok(offset(statement.span.end));
            }
        }
        if derived {
            let message = "a parameter property needs `super(...)` as a statement of the constructor";
            return Err(fault(function.span.start, SourceErrorKind::TypeScript, message));
        }
        Ok(directives)
    }

    /// `enum E { A, B = "b" }` is a function that fills an object and returns it.
    fn enumeration(&mut self, span: Span, hidden: Span, declaration: &TSEnumDeclaration<'_>) {
        let name = declaration.id.name(self.source);
        let counter = self.fresh(span);
        let mut code = format!("var {name}=function({name},{counter}){{");
        let aliased = declaration.members.iter().filter_map(|member| member.initializer.as_ref()).any(|e| !is_plain(e));
        let mut cursor = offset(span.start);
        for (index, member) in declaration.members.iter().enumerate() {
            let at = offset(member.span.start);
            code.extend(line_ends(self.slice(&(cursor..at))));
            self.member(&mut code, name, &counter, member, (index == 0, aliased));
            cursor = offset(member.span.end);
        }
        code.extend(line_ends(self.slice(&(cursor..offset(span.end)))));
        code.push_str(&format!("return {name}}}({name}||{{}});"));
        self.done.edits.replace(offset(span.start), offset(span.end), code);
        self.done.hidden.push(range(hidden.start, hidden.end));
    }

    fn member(&self, code: &mut String, name: &str, counter: &str, member: &TSEnumMember<'_>, (first, aliased): (bool, bool)) {
        let key = match &member.id {
            TSEnumMemberId::Identifier(id) => format!("{:?}", id.name(self.source)),
            TSEnumMemberId::String(literal) => self.slice(&range(literal.span.start, literal.span.end)).to_owned(),
        };
        if let (TSEnumMemberId::Identifier(id), true) = (&member.id, aliased) {
            let alias = id.name(self.source);
            // A member that is a reserved word cannot be named on its own anyway.
            if tsv_ts::__private::parse(&format!("var {alias}"), &bumpalo::Bump::new()).is_ok() {
                code.push_str(&format!("var {alias}="));
            }
        }
        let Some(initializer) = &member.initializer else {
            let value = if first { "0".to_owned() } else { format!("{counter}+1") };
            code.push_str(&format!("{counter}={name}[{key}]={value};{name}[{counter}]={key};"));
            return;
        };
        // The span leaves out the parentheses that it begins with: all that follows the `=`.
        let value = offset(initializer.span.start)..offset(member.span.end);
        let between = self.slice(&(offset(member.id.span().end)..value.start));
        let (before, opening) = between.split_once('=').unwrap_or((between, ""));
        code.push_str(&format!("{counter}={name}[{key}]=("));
        code.extend(line_ends(before));
        code.push_str(opening);
        code.push_str(self.slice(&value));
        code.push_str(");");
        if !is_string(initializer) {
            code.push_str(&format!("typeof {counter}===\"number\"&&({name}[{counter}]={key});"));
        }
    }

    /// A name that the enum does not use: more dollars than it has in a row.
    fn fresh(&self, span: Span) -> String {
        longest_dollars(self.slice(&range(span.start, span.end)))
    }

    fn slice(&self, at: &Range<usize>) -> &str {
        self.source.get(at.clone()).unwrap_or_default()
    }
}

/// A name of dollar signs that `text` does not have.
pub(super) fn longest_dollars(text: &str) -> String {
    let longest = text.split(|c| c != '$').map(str::len).max().unwrap_or(0);
    "$".repeat(longest + 2)
}

/// A value that cannot name another member.
fn is_plain(expression: &Expression<'_>) -> bool {
    match &expression.kind {
        ExpressionKind::Literal(_) => true,
        ExpressionKind::UnaryExpression(inner) => matches!(inner.argument.kind, ExpressionKind::Literal(_)),
        _ => false,
    }
}

fn is_string(expression: &Expression<'_>) -> bool {
    matches!(&expression.kind, ExpressionKind::Literal(literal) if matches!(literal.value, LiteralValue::String(_)))
}
