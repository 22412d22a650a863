//! What is no program, and what to send instead.
//!
//! Owns the faults that models make and the sentence that repairs each: shell commands,
//! quoted programs, prose, imports. Never decides by the look of a text that parses as a
//! program; what it looks at there is the tree.

use super::read::{fault, offset, parse};
use super::{Form, SourceError, SourceErrorKind};
use bumpalo::Bump;
use tsv_ts::ast::{
    BinaryOperator, ExportKind, ExportNamedDeclaration, Expression, ExpressionKind, ImportDeclaration, ImportKind, ImportSpecifier,
    LiteralValue, ObjectProperty, Statement, StatementKind, TSModuleReference,
};
use tsv_ts::{Error, ErrorKind};

/// First words of shell commands that models send.
const COMMANDS: [&str; 30] = [
    "$", "apt", "awk", "bash", "bun", "cat", "cd", "cp", "curl", "deno", "docker", "echo", "find", "git", "grep", "ls", "mkdir", "mv",
    "node", "npm", "npx", "pip", "pnpm", "python", "python3", "rm", "sed", "sh", "sudo", "wget",
];
/// Members under which models send a program in an object.
const CODE_MEMBERS: [&str; 6] = ["code", "source", "program", "script", "javascript", "typescript"];

const IMPORT_HINT: &str = "There are no modules and no files here: leave the import out and use the collections, \
                           which are global.";
const SHELL_HINT: &str = "This runs JavaScript, not a shell: send only the program's text.";
const QUOTED_HINT: &str = "Send the program itself, not a quoted string or an object that holds it.";

/// Why a text does not parse, with what to send instead where that is known.
pub(super) fn unparsable(source: &str, error: &Error) -> SourceError {
    let at = error.span().map_or(0, |span| span.start);
    let message = error.message();
    match error.kind() {
        ErrorKind::TooDeep => {
            let message = if message.starts_with("Nesting") {
                "the program is nested more than 256 levels deep"
            } else {
                "the program has a chain of thousands of operators, calls or members"
            };
            return SourceError::at(at, SourceErrorKind::TooComplex, message.into())
                .with_hint("Put large data into `inputs`, or build it with a loop.");
        }
        ErrorKind::TooLarge => {
            return SourceError::at(0, SourceErrorKind::TooComplex, "the program is too large".into());
        }
        _ => {}
    }
    if let Some((kind, hint)) = misplaced(source, at, &message) {
        return SourceError::at(at, kind, found(source, at, message)).with_hint(hint);
    }
    SourceError::at(at, SourceErrorKind::Syntax, found(source, at, message))
}

/// The parser's message, with what it met where it says only what it expected.
fn found(source: &str, at: usize, message: String) -> String {
    if !message.starts_with("Expected ") || message.contains(", found ") {
        return message;
    }
    let rest = source.get(at..).unwrap_or_default();
    let word = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$'))).unwrap_or(rest.len());
    let first = rest.chars().next().map_or(0, char::len_utf8);
    match rest.get(..word.max(first)) {
        Some(token) if !token.is_empty() && token.len() <= 40 => format!("{message}, found '{}'", token.escape_debug()),
        _ => message,
    }
}

/// What a text that does not parse may have been meant as.
fn misplaced(source: &str, at: usize, message: &str) -> Option<(SourceErrorKind, &'static str)> {
    let start = source.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let first_line = start.lines().next().unwrap_or_default();
    let first_word = first_line.split_whitespace().next().unwrap_or_default();
    let has_argument = first_line.split_whitespace().nth(1).is_some();
    if first_word.starts_with("#!") && !first_line.contains("node") && !first_line.contains("js") {
        return Some((SourceErrorKind::NotAProgram, SHELL_HINT));
    }
    if COMMANDS.contains(&first_word) && has_argument {
        return Some((SourceErrorKind::NotAProgram, SHELL_HINT));
    }
    if first_line.trim_end().ends_with(':') && ["def", "class", "for", "if", "async"].contains(&first_word)
        || first_line.starts_with("from ") && first_line.contains(" import ")
    {
        return Some((SourceErrorKind::NotAProgram, "This runs JavaScript, not Python."));
    }
    if message.starts_with("'await'") {
        return Some((SourceErrorKind::Syntax, "Make the function around this `await` async."));
    }
    if !source.trim().contains('\n') && source.contains("\\n") && source.get(at..).is_some_and(|rest| rest.starts_with('\\')) {
        return Some((SourceErrorKind::NotAProgram, "The line breaks are escaped twice: send the program with real line breaks."));
    }
    let rest = source.get(at..).unwrap_or_default();
    if rest.starts_with(['\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}']) {
        return Some((SourceErrorKind::Syntax, "Use straight quotes."));
    }
    if rest.starts_with(['\u{2013}', '\u{2014}', '\u{2212}']) {
        return Some((SourceErrorKind::Syntax, "Use a plain minus, -."));
    }
    let before = source.get(..at).unwrap_or_default();
    if rest.starts_with('>') && before.ends_with('-') {
        return Some((SourceErrorKind::Syntax, "A function is written with =>, as in (x) => x + 1."));
    }
    if rest.starts_with(':') && is_object_after_arrow(before) {
        return Some((SourceErrorKind::Syntax, "Put parentheses around an object that a function gives: x => ({ … })."));
    }
    if before.trim_end().ends_with("yield") {
        return Some((SourceErrorKind::Syntax, "Write function* for a function that yields."));
    }
    if rest.starts_with('<') || (rest.starts_with('/') && before.ends_with('<')) || is_tag(before, rest) {
        return Some((SourceErrorKind::Syntax, "JSX and HTML are not supported; build strings instead."));
    }
    if rest.starts_with('@') {
        return Some((SourceErrorKind::Syntax, "Decorators are not supported: call the function yourself, as in A = decorate(A)."));
    }
    if is_escaped_for_html(before, rest) {
        return Some((SourceErrorKind::Syntax, "The text is escaped for HTML: send < > & and quotes as they are."));
    }
    let words = first_line
        .split_whitespace()
        .take(3)
        .filter(|word| word.chars().all(|c| c.is_alphabetic() || matches!(c, '\'' | ',' | ':' | '.')))
        .count();
    if rest.starts_with(['\u{200b}', '\u{200c}', '\u{200d}', '\u{2060}']) {
        return Some((SourceErrorKind::Syntax, "There is an invisible character here: leave it out."));
    }
    let on_first_line = source.get(..at).is_some_and(|before| !before.trim_start().contains('\n'));
    if words == 3 && on_first_line {
        return Some((SourceErrorKind::NotAProgram, "Send only the program, or put it in a ``` fence."));
    }
    None
}

/// `=> { a: x, b`: the braces were meant as an object.
fn is_object_after_arrow(before: &str) -> bool {
    before.rsplit_once('{').is_some_and(|(head, inner)| head.trim_end().ends_with("=>") && !inner.contains([';', '(', '}']))
}

/// The `;` of `&lt;` and the like, or what follows it.
fn is_escaped_for_html(before: &str, rest: &str) -> bool {
    const NAMES: [&str; 7] = ["lt", "gt", "amp", "quot", "apos", "#39", "#x27"];
    let next = rest.trim_start_matches([')', ' ', '=']).strip_prefix('&').and_then(|rest| rest.split_once(';'));
    if next.is_some_and(|(name, _)| NAMES.contains(&name)) {
        return true;
    }
    let tail = before.get(before.rfind('&').unwrap_or(before.len())..).unwrap_or_default();
    let name = tail.trim_start_matches('&').trim_end_matches(';');
    (tail.ends_with(';') || rest.starts_with(';')) && NAMES.contains(&name)
}

/// `<div className`, `<App /`, `<>`: the start of a tag, which the grammar takes for a type
/// in angle brackets.
fn is_tag(before: &str, rest: &str) -> bool {
    let Some((_, tag)) = before.trim_end().rsplit_once('<') else { return false };
    let is_name = tag.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':'));
    let goes_on = rest.starts_with(|c: char| c.is_alphabetic() || matches!(c, '>' | '/' | '{'));
    is_name && goes_on && (!tag.is_empty() || rest.starts_with('>'))
}

/// Refuses what parses and yet is no program to run here.
pub(super) fn what_is_no_program(source: &str, body: &[Statement<'_>], form: Form) -> Result<(), SourceError> {
    if source.starts_with("#!") {
        let line = source.lines().next().unwrap_or_default();
        if ["bash", "/sh", "python", "zsh"].iter().any(|name| line.contains(name)) {
            return Err(fault(0, SourceErrorKind::NotAProgram, "this is a script for another interpreter").with_hint(SHELL_HINT));
        }
    }
    let [Statement { kind: StatementKind::ExpressionStatement(only), span }] = body else { return Ok(()) };
    if form != Form::Auto {
        return Ok(());
    }
    if is_command(source, only.expression) {
        return Err(fault(span.start, SourceErrorKind::NotAProgram, "this is a shell command, not a program").with_hint(SHELL_HINT));
    }
    if is_quoted(source, only.expression) {
        return Err(quoted(offset(span.start)));
    }
    Ok(())
}

/// A fence with a program in another language.
pub(super) fn other_language(at: usize) -> SourceError {
    let message = "this is a program in another language".to_owned();
    SourceError::at(at, SourceErrorKind::NotAProgram, message).with_hint("Send JavaScript or TypeScript.")
}

/// A program within a string or an object.
pub(super) fn quoted(at: usize) -> SourceError {
    let message = "this is a quoted text that holds a program, not a program";
    SourceError::at(at, SourceErrorKind::NotAProgram, message.to_owned()).with_hint(QUOTED_HINT)
}

/// Refuses what asks for modules.
pub(super) fn imports(source: &str, body: &[Statement<'_>]) -> Result<(), SourceError> {
    body.iter().try_for_each(|statement| import(source, statement))
}

fn import(source: &str, statement: &Statement<'_>) -> Result<(), SourceError> {
    let message = match &statement.kind {
        StatementKind::ImportDeclaration(import) => {
            let types = import.import_kind == ImportKind::Type || imports_types_only(import);
            (!types).then_some("modules cannot be imported")
        }
        StatementKind::ExportAllDeclaration(export) if export.export_kind == ExportKind::Value => {
            Some("modules cannot be imported, nor exported from")
        }
        StatementKind::ExportNamedDeclaration(export) if export.source.is_some() => {
            (!exports_types_only(export)).then_some("modules cannot be imported, nor exported from")
        }
        StatementKind::TSImportEqualsDeclaration(import) => {
            let module = matches!(import.module_reference, TSModuleReference::ExternalModuleReference(_));
            (module && import.import_kind == ImportKind::Value).then_some("modules cannot be imported")
        }
        StatementKind::VariableDeclaration(declaration) => declaration
            .declarations
            .iter()
            .any(|one| one.init.is_some_and(|init| is_require(source, init)))
            .then_some("`require` is not available"),
        StatementKind::ExpressionStatement(inner) => is_require(source, inner.expression).then_some("`require` is not available"),
        _ => None,
    };
    match message {
        Some(message) => Err(fault(statement.span.start, SourceErrorKind::Import, message).with_hint(IMPORT_HINT)),
        None => Ok(()),
    }
}

/// `import { type A } from "a"`.
pub(super) fn imports_types_only(import: &ImportDeclaration<'_>) -> bool {
    !import.specifiers.is_empty()
        && import.specifiers.iter().all(|one| matches!(one, ImportSpecifier::Named(named) if named.import_kind == ImportKind::Type))
}

/// `export type { A } from "a"`, `export { type A } from "a"`.
fn exports_types_only(export: &ExportNamedDeclaration<'_>) -> bool {
    let is_type = |kind| kind == ExportKind::Type;
    is_type(export.export_kind) || (!export.specifiers.is_empty() && export.specifiers.iter().all(|one| is_type(one.export_kind)))
}

/// `require("x")`, or a member of it.
fn is_require(source: &str, expression: &Expression<'_>) -> bool {
    let mut expression = expression;
    loop {
        match &expression.kind {
            ExpressionKind::MemberExpression(member) => expression = member.object,
            ExpressionKind::CallExpression(call) => match &call.callee.kind {
                ExpressionKind::Identifier(id) => {
                    let module = call.arguments.first().map(|argument| &argument.kind);
                    return id.name(source) == "require" && matches!(module, Some(ExpressionKind::Literal(_)));
                }
                _ => expression = call.callee,
            },
            _ => return false,
        }
    }
}

/// `ls -la` is a subtraction to the grammar.
fn is_command(source: &str, expression: &Expression<'_>) -> bool {
    let mut expression = expression;
    while let ExpressionKind::BinaryExpression(binary) = &expression.kind {
        if binary.operator != BinaryOperator::Minus && binary.operator != BinaryOperator::Slash {
            return false;
        }
        if let ExpressionKind::Identifier(id) = &binary.left.kind {
            let glued = source.get(offset(id.span.end)..).is_some_and(|rest| {
                let rest = rest.trim_start_matches(' ');
                rest.starts_with('-') && !rest.starts_with("- ")
            });
            return COMMANDS.contains(&id.name(source)) && glued;
        }
        expression = binary.left;
    }
    false
}

/// A string in double quotes, or an object's only member, whose text is a program.
fn is_quoted(source: &str, expression: &Expression<'_>) -> bool {
    let text = match &expression.kind {
        ExpressionKind::Literal(literal) => match &literal.value {
            LiteralValue::String(text) if literal.string_quote(source) == b'"' => text.resolve(literal.span, source),
            _ => return false,
        },
        _ => return false,
    };
    is_program(text)
}

/// An object that holds a program in its only string member of a telling name.
pub(super) fn object_holds_program(source: &str, object: &Expression<'_>) -> bool {
    let ExpressionKind::ObjectExpression(object) = &object.kind else { return false };
    object.properties.iter().any(|property| {
        let ObjectProperty::Property(property) = property else { return false };
        let ExpressionKind::Literal(key) = &property.key.kind else { return false };
        let (LiteralValue::String(key_text), ExpressionKind::Literal(value)) = (&key.value, &property.value.kind) else {
            return false;
        };
        let LiteralValue::String(text) = &value.value else { return false };
        CODE_MEMBERS.contains(&key_text.resolve(key.span, source)) && is_program(text.resolve(value.span, source))
    })
}

/// Whether a text parses as more than words: something that would be done.
fn is_program(text: &str) -> bool {
    let arena = Bump::new();
    let Ok(program) = parse(text, &arena) else { return false };
    program.body.iter().any(|statement| match &statement.kind {
        StatementKind::ExpressionStatement(inner) => matches!(
            inner.expression.kind,
            ExpressionKind::CallExpression(_)
                | ExpressionKind::AwaitExpression(_)
                | ExpressionKind::AssignmentExpression(_)
                | ExpressionKind::ArrowFunctionExpression(_)
                | ExpressionKind::FunctionExpression(_)
        ),
        StatementKind::LabeledStatement(_) | StatementKind::EmptyStatement(_) | StatementKind::BlockStatement(_) => false,
        _ => true,
    })
}
