//! Everything below a node of the syntax tree, without recursion: the one who walks keeps
//! a list of what is left.
//!
//! Owns which parts of a node are statements and expressions. Never knows what is sought.

use tsv_ts::ast::{
    ArrowFunctionBody, ClassBody, ClassMember, Decorator, ExportDefaultValue, Expression, ExpressionKind, ForInOfLeft, ForInit,
    ObjectPatternProperty, ObjectProperty, Property, Span, Statement, StatementKind, TSModuleDeclarationBody, VariableDeclaration,
};

/// A node of the tree.
#[derive(Clone, Copy)]
pub(super) enum Node<'a> {
    Statement(&'a Statement<'a>),
    Expression(&'a Expression<'a>),
    /// What a declaration, parameter or assignment binds or takes apart, and where what it
    /// is given ends.
    Pattern(&'a Expression<'a>, u32),
    /// A function, a method or a static block: what follows it belongs to it.
    Function(Span),
}

/// What is left to look at.
#[derive(Default)]
pub(super) struct Left<'a> {
    nodes: Vec<Node<'a>>,
}

impl<'a> Left<'a> {
    pub(super) fn of(body: &'a [Statement<'a>]) -> Self {
        let mut left = Self::default();
        left.statements(body);
        left
    }

    /// The next node, in no particular order.
    pub(super) fn next(&mut self) -> Option<Node<'a>> {
        self.nodes.pop()
    }

    /// Puts what is below a node on the list.
    pub(super) fn go_below(&mut self, node: Node<'a>) {
        match node {
            Node::Statement(statement) => self.below_statement(statement),
            Node::Expression(expression) | Node::Pattern(expression, _) => self.below_expression(expression),
            Node::Function(_) => {}
        }
    }

    fn statements(&mut self, body: &'a [Statement<'a>]) {
        self.nodes.extend(body.iter().map(Node::Statement));
    }

    fn expressions(&mut self, list: impl IntoIterator<Item = &'a Expression<'a>>) {
        self.nodes.extend(list.into_iter().map(Node::Expression));
    }

    fn patterns(&mut self, list: impl IntoIterator<Item = &'a Expression<'a>>) {
        self.nodes.extend(list.into_iter().map(|pattern| Node::Pattern(pattern, pattern.span.end)));
    }

    fn declaration(&mut self, declaration: &'a VariableDeclaration<'a>) {
        self.nodes.extend(declaration.declarations.iter().map(|one| Node::Pattern(one.id, one.span.end)));
        self.expressions(declaration.declarations.iter().filter_map(|one| one.init));
    }

    fn function(&mut self, span: Span, parameters: &'a [Expression<'a>], body: &'a [Statement<'a>]) {
        self.nodes.push(Node::Function(span));
        self.patterns(parameters);
        self.statements(body);
    }

    fn below_statement(&mut self, statement: &'a Statement<'a>) {
        use StatementKind as Kind;
        match &statement.kind {
            Kind::ExpressionStatement(inner) => self.expressions([inner.expression]),
            Kind::VariableDeclaration(declaration) => self.declaration(declaration),
            Kind::ReturnStatement(inner) => self.expressions(inner.argument),
            Kind::ThrowStatement(inner) => self.expressions([inner.argument]),
            Kind::FunctionDeclaration(function) => self.function(function.span, function.params, function.body.body),
            Kind::ClassDeclaration(class) => self.class(class.decorators, class.super_class, &class.body),
            Kind::TSEnumDeclaration(declaration) => {
                self.expressions(declaration.members.iter().filter_map(|member| member.initializer.as_ref()));
            }
            Kind::TSModuleDeclaration(module) => self.namespace(module.body.as_ref()),
            Kind::ExportNamedDeclaration(export) => self.nodes.extend(export.declaration.map(Node::Statement)),
            Kind::ExportDefaultDeclaration(export) => match &export.declaration {
                ExportDefaultValue::Expression(expression) => self.expressions([expression]),
                ExportDefaultValue::FunctionDeclaration(function) => self.function(function.span, function.params, function.body.body),
                ExportDefaultValue::ClassDeclaration(class) => self.class(class.decorators, class.super_class, &class.body),
                _ => {}
            },
            Kind::TSExportAssignment(export) => self.expressions([&export.expression]),
            _ => self.below_control(statement),
        }
    }

    fn namespace(&mut self, mut body: Option<&'a TSModuleDeclarationBody<'a>>) {
        while let Some(inner) = body {
            match inner {
                TSModuleDeclarationBody::TSModuleBlock(block) => return self.statements(block.body),
                TSModuleDeclarationBody::TSModuleDeclaration(module) => body = module.body.as_ref(),
            }
        }
    }

    fn below_control(&mut self, statement: &'a Statement<'a>) {
        use StatementKind as Kind;
        match &statement.kind {
            Kind::BlockStatement(block) => self.statements(block.body),
            Kind::IfStatement(inner) => {
                self.expressions([inner.test]);
                self.nodes.push(Node::Statement(inner.consequent));
                self.nodes.extend(inner.alternate.map(Node::Statement));
            }
            Kind::ForStatement(inner) => {
                match inner.init {
                    Some(ForInit::VariableDeclaration(declaration)) => self.declaration(declaration),
                    Some(ForInit::Expression(expression)) => self.expressions([expression]),
                    None => {}
                }
                self.expressions(inner.test.into_iter().chain(inner.update));
                self.nodes.push(Node::Statement(inner.body));
            }
            Kind::ForInStatement(inner) => self.loop_over(inner.left, inner.right, inner.body),
            Kind::ForOfStatement(inner) => self.loop_over(inner.left, inner.right, inner.body),
            Kind::WhileStatement(inner) => self.head_and_body(inner.test, inner.body),
            Kind::DoWhileStatement(inner) => self.head_and_body(inner.test, inner.body),
            Kind::WithStatement(inner) => self.head_and_body(inner.object, inner.body),
            Kind::LabeledStatement(inner) => self.nodes.push(Node::Statement(inner.body)),
            Kind::SwitchStatement(inner) => {
                self.expressions([inner.discriminant]);
                for case in inner.cases {
                    self.expressions(case.test);
                    self.statements(case.consequent);
                }
            }
            Kind::TryStatement(inner) => {
                self.statements(inner.block.body);
                if let Some(handler) = inner.handler {
                    self.patterns(handler.param.as_ref());
                    self.statements(handler.body.body);
                }
                self.statements(inner.finalizer.as_ref().map_or(&[], |block| block.body));
            }
            _ => {}
        }
    }

    fn loop_over(&mut self, left: &'a ForInOfLeft<'a>, right: &'a Expression<'a>, body: &'a Statement<'a>) {
        match left {
            ForInOfLeft::VariableDeclaration(declaration) => {
                self.nodes.extend(declaration.declarations.iter().map(|one| Node::Pattern(one.id, right.span.end)));
            }
            ForInOfLeft::Pattern(pattern) => self.nodes.push(Node::Pattern(pattern, right.span.end)),
        }
        self.head_and_body(right, body);
    }

    fn head_and_body(&mut self, head: &'a Expression<'a>, body: &'a Statement<'a>) {
        self.expressions([head]);
        self.nodes.push(Node::Statement(body));
    }

    fn below_expression(&mut self, expression: &'a Expression<'a>) {
        use ExpressionKind as Kind;
        match &expression.kind {
            Kind::ClassExpression(class) => self.class(class.decorators, class.super_class, &class.body),
            Kind::FunctionExpression(function) => self.function(expression.span, function.params, function.body.body),
            Kind::ArrowFunctionExpression(arrow) => match &arrow.body {
                ArrowFunctionBody::Expression(body) => {
                    self.function(expression.span, arrow.params, &[]);
                    self.expressions([*body]);
                }
                ArrowFunctionBody::BlockStatement(block) => self.function(expression.span, arrow.params, block.body),
            },
            Kind::CallExpression(call) => {
                self.expressions([call.callee]);
                self.expressions(call.arguments.iter().copied());
            }
            Kind::NewExpression(new) => {
                self.expressions([new.callee]);
                self.expressions(new.arguments.iter().copied());
            }
            Kind::MemberExpression(member) => self.expressions([member.object, member.property]),
            Kind::AssignmentExpression(inner) => {
                self.nodes.push(Node::Pattern(inner.left, expression.span.end));
                self.expressions([inner.right]);
            }
            Kind::BinaryExpression(inner) => self.expressions([inner.left, inner.right]),
            Kind::ConditionalExpression(inner) => self.expressions([inner.test, inner.consequent, inner.alternate]),
            Kind::SequenceExpression(inner) => self.expressions(inner.expressions.iter().copied()),
            Kind::ArrayExpression(inner) => self.expressions(inner.elements.iter().copied().flatten()),
            Kind::ObjectExpression(inner) => inner.properties.iter().for_each(|property| match property {
                ObjectProperty::Property(property) => self.property(property),
                ObjectProperty::SpreadElement(spread) => self.expressions([spread.argument]),
            }),
            Kind::TemplateLiteral(inner) => self.expressions(inner.expressions.iter().copied()),
            Kind::TaggedTemplateExpression(inner) => {
                self.expressions([inner.tag]);
                self.expressions(inner.quasi.expressions.iter().copied());
            }
            Kind::ImportExpression(inner) => self.expressions([inner.source].into_iter().chain(inner.options)),
            _ => self.below_operand(expression),
        }
    }

    /// What has one part, and patterns.
    fn below_operand(&mut self, expression: &'a Expression<'a>) {
        use ExpressionKind as Kind;
        match &expression.kind {
            Kind::AwaitExpression(inner) => self.expressions([inner.argument]),
            Kind::YieldExpression(inner) => self.expressions(inner.argument),
            Kind::UnaryExpression(inner) => self.expressions([inner.argument]),
            Kind::UpdateExpression(inner) => self.expressions([inner.argument]),
            Kind::SpreadElement(inner) => self.expressions([inner.argument]),
            Kind::TSAsExpression(inner) => self.expressions([inner.expression]),
            Kind::TSSatisfiesExpression(inner) => self.expressions([inner.expression]),
            Kind::TSTypeAssertion(inner) => self.expressions([inner.expression]),
            Kind::TSInstantiationExpression(inner) => self.expressions([inner.expression]),
            Kind::TSNonNullExpression(inner) => self.expressions([inner.expression]),
            Kind::CommentBoundPair(inner) => self.expressions([inner.inner]),
            Kind::TSParameterProperty(inner) => self.patterns([inner.parameter]),
            Kind::AssignmentPattern(inner) => {
                self.patterns([inner.left]);
                self.expressions([inner.right]);
            }
            Kind::RestElement(inner) => self.patterns([inner.argument]),
            Kind::ArrayPattern(inner) => self.patterns(inner.elements.iter().flatten()),
            Kind::ObjectPattern(inner) => inner.properties.iter().for_each(|property| match property {
                ObjectPatternProperty::Property(property) => {
                    self.expressions(property.computed.then_some(property.key));
                    self.patterns([property.value]);
                }
                ObjectPatternProperty::RestElement(rest) => self.patterns([rest.argument]),
            }),
            _ => {}
        }
    }

    fn property(&mut self, property: &'a Property<'a>) {
        self.expressions(property.computed.then_some(property.key));
        self.expressions([property.value]);
    }

    fn class(&mut self, decorators: Option<&'a [Decorator<'a>]>, parent: Option<&'a Expression<'a>>, body: &'a ClassBody<'a>) {
        self.expressions(parent);
        self.decorators(decorators);
        for member in body.body {
            match member {
                ClassMember::MethodDefinition(method) => {
                    self.decorators(method.decorators);
                    self.expressions(method.computed.then_some(&method.key));
                    self.function(method.span, method.value.params, method.value.body.body);
                }
                ClassMember::PropertyDefinition(property) => {
                    self.decorators(property.decorators);
                    self.expressions(property.computed.then_some(&property.key));
                    self.nodes.push(Node::Function(property.span));
                    self.expressions(property.value.as_ref());
                }
                ClassMember::StaticBlock(block) => self.function(block.span, &[], block.body),
                ClassMember::IndexSignature(_) => {}
            }
        }
    }

    fn decorators(&mut self, list: Option<&'a [Decorator<'a>]>) {
        self.expressions(list.unwrap_or_default().iter().map(|decorator| &decorator.expression));
    }
}
