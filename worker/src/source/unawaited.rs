//! Reads of a promise that can only be a slip: `const list = orders.list(); list.length`.
//!
//! Owns finding them in the tree. Finds nothing of which it could be false that it is
//! undefined: the constant is bound once in all of the program and never handed on, and
//! the program does not go near a prototype. Never knows which collections there are.

use super::edits::position;
use super::persist::bound;
use super::read::offset;
use super::walk::{Left, Node};
use crate::value::text::head;
use tsv_ts::ast::{
    CallExpression, ExportDefaultValue, Expression, ExpressionKind, Identifier, LiteralValue, MemberExpression, Statement, StatementKind,
    VariableDeclarationKind, VariableDeclarator,
};

/// Longest program that is looked at, in bytes: it is one more walk over the tree.
const LONGEST: usize = 64 * 1024;
/// Of what is read, at most so much is shown, in bytes.
const READ_BYTES: usize = 80;
/// Most constants that are looked at.
const CONSTANTS: usize = 64;
/// What a promise has, or any object.
const MEMBERS: [&str; 10] = [
    "then",
    "catch",
    "finally",
    "constructor",
    "toString",
    "toLocaleString",
    "valueOf",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
];
/// Words of programs that may give a promise other members, or a name another value.
const WAYS_ROUND: [&str; 8] = ["rototype", "__", "eval(", "Function", "with (", "with(", "Reflect", "definePropert"];

/// What was read of which promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromiseRead {
    /// Whose promise: `collection.function`.
    pub(crate) collection: String,
    pub(crate) function: String,
    pub(crate) name: String,
    /// As it is written.
    read: String,
    offset: usize,
}

impl PromiseRead {
    /// What to say of it, with its place in `text` as it was sent.
    pub(crate) fn told(&self, text: &str) -> String {
        let Self { collection, function, name, read, offset } = self;
        let (line, column) = position(text, *offset);
        let shown = head(read, READ_BYTES);
        let read = if shown.len() < read.len() { format!("{shown}…") } else { shown.to_owned() };
        format!(
            "{name} is the promise of {collection}.{function}(…), so {read} is undefined (line {line}, column {column}): write const {name} = \
             await {collection}.{function}(…)"
        )
    }
}

/// The first such read of each constant in `body`.
pub(super) fn reads(source: &str, body: &[Statement<'_>]) -> Vec<PromiseRead> {
    // Nearly every program is done here: one more walk over the tree costs.
    let constants = if source.len() > LONGEST { Vec::new() } else { constants(source) };
    if constants.is_empty() || WAYS_ROUND.iter().any(|word| source.contains(word)) {
        return Vec::new();
    }
    let mut found = Found { source, constants, members: Vec::new(), called: Vec::new() };
    let mut left = Left::of(body);
    while let Some(node) = left.next() {
        found.node(node);
        left.go_below(node);
    }
    found.reads()
}

/// A constant whose value looks like the promise of a host call.
struct Constant<'s> {
    name: &'s str,
    collection: &'s str,
    function: &'s str,
    /// Whether the tree has it.
    is_there: bool,
    /// How often the name is bound, or something of it assigned to.
    bound: usize,
    /// Whether the name of the collection is bound: then it may be anything.
    is_hidden: bool,
    /// How often the name stands in the program, and how often where it is not handed on.
    uses: usize,
    kept: usize,
}

/// What looks like `const name = collection.function(`, in order.
fn constants(source: &str) -> Vec<Constant<'_>> {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let word = |text: &str| text.find(|c| !is_word(c)).unwrap_or(text.len());
    let all = source.match_indices("const ").take(CONSTANTS).filter_map(|(at, keyword)| {
        let rest = source.get(at + keyword.len()..)?.trim_start();
        let (name, rest) = rest.split_at(word(rest));
        let (_, value) = rest.lines().next()?.split_once('=')?;
        let value = value.trim_start();
        let (collection, rest) = value.split_at(word(value));
        let rest = rest.strip_prefix('.')?;
        let (function, rest) = rest.split_at(word(rest));
        let is_call = rest.starts_with('(') && !name.is_empty() && !collection.is_empty() && !function.is_empty();
        is_call.then_some(Constant { name, collection, function, is_there: false, bound: 0, is_hidden: false, uses: 0, kept: 0 })
    });
    all.collect()
}

/// What one walk finds.
struct Found<'s> {
    source: &'s str,
    constants: Vec<Constant<'s>>,
    /// Of which name, what is written, and where.
    members: Vec<(&'s str, &'s str, usize)>,
    /// Where what is read is called: that fails by itself.
    called: Vec<usize>,
}

impl<'s> Found<'s> {
    fn node(&mut self, node: Node<'s>) {
        match node {
            Node::Statement(statement) => self.statement(statement),
            Node::Expression(expression) => self.expression(expression),
            Node::Pattern(pattern, _) => {
                let mut ids = Vec::new();
                bound(pattern, &mut ids);
                ids.into_iter().for_each(|id| self.binds(id));
                // A member that is assigned to: the promise has it then.
                if let ExpressionKind::MemberExpression(member) = &pattern.kind
                    && let ExpressionKind::Identifier(id) = &member.object.kind
                {
                    self.binds(id);
                }
            }
            Node::Function(_) => {}
        }
    }

    fn of(&mut self, name: &str) -> impl Iterator<Item = &mut Constant<'s>> {
        self.constants.iter_mut().filter(move |one| one.name == name)
    }

    fn binds(&mut self, id: &Identifier<'_>) {
        let name = id.name(self.source);
        for one in &mut self.constants {
            one.bound += usize::from(one.name == name);
            one.is_hidden |= one.collection == name;
        }
    }

    fn statement(&mut self, statement: &'s Statement<'s>) {
        let id = match &statement.kind {
            StatementKind::VariableDeclaration(declaration) => {
                let is_const = declaration.kind == VariableDeclarationKind::Const;
                declaration.declarations.iter().filter(|_| is_const).for_each(|one| self.constant(one));
                None
            }
            StatementKind::FunctionDeclaration(function) => function.id.as_ref(),
            StatementKind::ClassDeclaration(class) => class.id.as_ref(),
            StatementKind::TSEnumDeclaration(inner) => Some(&inner.id),
            StatementKind::ExportDefaultDeclaration(export) => match &export.declaration {
                ExportDefaultValue::FunctionDeclaration(function) => function.id.as_ref(),
                ExportDefaultValue::ClassDeclaration(class) => class.id.as_ref(),
                _ => None,
            },
            _ => None,
        };
        id.into_iter().for_each(|id| self.binds(id));
    }

    fn constant(&mut self, declared: &'s VariableDeclarator<'s>) {
        let (ExpressionKind::Identifier(id), Some(init)) = (&declared.id.kind, declared.init) else { return };
        let ExpressionKind::CallExpression(CallExpression { callee, optional: false, .. }) = &init.kind else { return };
        let ExpressionKind::MemberExpression(MemberExpression { object, property, computed: false, optional: false }) = &callee.kind else {
            return;
        };
        if let (ExpressionKind::Identifier(object), ExpressionKind::Identifier(property)) = (&object.kind, &property.kind) {
            let (object, property) = (object.name(self.source), property.name(self.source));
            self.of(id.name(self.source)).for_each(|one| one.is_there |= (one.collection, one.function) == (object, property));
        }
    }

    fn expression(&mut self, expression: &'s Expression<'s>) {
        match &expression.kind {
            ExpressionKind::Identifier(id) => self.of(id.name(self.source)).for_each(|one| one.uses += 1),
            ExpressionKind::FunctionExpression(function) => function.id.iter().for_each(|id| self.binds(id)),
            ExpressionKind::ClassExpression(class) => class.id.iter().for_each(|id| self.binds(id)),
            ExpressionKind::AwaitExpression(inner) => self.keeps(inner.argument),
            ExpressionKind::CallExpression(call) => self.called.push(offset(call.callee.span.start)),
            ExpressionKind::MemberExpression(member) => self.member(expression, member),
            _ => {}
        }
    }

    /// A name that stands here is not handed on.
    fn keeps(&mut self, expression: &Expression<'_>) {
        if let ExpressionKind::Identifier(id) = &expression.kind {
            self.of(id.name(self.source)).for_each(|one| one.kept += 1);
        }
    }

    fn member(&mut self, expression: &'s Expression<'s>, member: &'s MemberExpression<'s>) {
        self.keeps(member.object);
        // The walk meets the property as well: it is no use of a name.
        if !member.computed {
            self.keeps(member.property);
        }
        let ExpressionKind::Identifier(id) = &member.object.kind else { return };
        let name = id.name(self.source);
        let written = |one: &Expression<'_>| self.source.get(offset(one.span.start)..offset(one.span.end)).unwrap_or_default();
        let property = match &member.property.kind {
            ExpressionKind::Identifier(property) if !member.computed => property.name(self.source),
            ExpressionKind::Literal(literal) if matches!(literal.value, LiteralValue::Number(_)) => written(member.property),
            _ => return,
        };
        if self.constants.iter().any(|one| one.name == name) && !MEMBERS.contains(&property) {
            self.members.push((name, written(expression), offset(expression.span.start)));
        }
    }

    fn reads(&self) -> Vec<PromiseRead> {
        let sure = self.constants.iter().filter(|one| one.is_there && one.bound == 1 && !one.is_hidden && one.kept >= one.uses);
        let slips = sure.filter_map(|one| {
            let of = self.members.iter().filter(|(name, _, at)| *name == one.name && !self.called.contains(at));
            let (_, read, at) = of.min_by_key(|(.., at)| *at)?;
            Some(PromiseRead {
                collection: one.collection.to_owned(),
                function: one.function.to_owned(),
                name: one.name.to_owned(),
                read: (*read).to_owned(),
                offset: *at,
            })
        });
        slips.collect()
    }
}
