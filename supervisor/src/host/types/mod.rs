//! TypeScript declarations of host functions, and the text of the one tool.
//!
//! Owns the way from JSON Schemas (drafts 7 and 2020-12) and descriptions to text that
//! the TypeScript compiler takes, whatever they hold: [`convert`] gives types, [`print`]
//! lays them out, [`words`] is the only place that writes what a client chose. Pure: the
//! same functions give the same text. Never decides who may see a function.

mod aliases;
mod ast;
mod convert;
mod doc;
mod print;
pub(crate) mod tool;
mod words;

#[cfg(test)]
mod tests;

use crate::host::configured::Configured;
use aliases::{Alias, Aliases, Place};
use ast::Type;
use brig_protocol::client::FunctionDeclaration;
use brig_protocol::limits::SCHEMA_BYTES;
use brig_protocol::names;
use convert::Converter;
use serde_json::Value;

/// Longest type of one input or output, in bytes.
const TYPE_BYTES: usize = 32 * 1024;
/// Longest text of all declarations, in bytes: what comes after it is named only.
pub(crate) const TEXT_BYTES: usize = 1024 * 1024;
/// Most examples of one function that are shown.
const EXAMPLES: usize = 2;
/// Longest example, in bytes.
const EXAMPLE_BYTES: usize = 400;

/// One function as a model is told of it.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    collection: String,
    name: String,
    description: String,
    input: Option<Value>,
    output: Option<Value>,
    examples: Vec<(String, Value, Option<Value>)>,
}

impl Described {
    /// From a declaration.
    ///
    /// # Errors
    /// A half sentence that follows the name of the member: it is no schema.
    pub(crate) fn of(collection: &str, name: &str, declared: &FunctionDeclaration<'_>) -> Result<Self, String> {
        let schema = |raw: Option<&serde_json::value::RawValue>, member: &str| match raw {
            None => Ok(None),
            Some(raw) if raw.get().len() > SCHEMA_BYTES => {
                Err(format!("{member}: the schema has {} bytes; at most {SCHEMA_BYTES} are taken", raw.get().len()))
            }
            Some(raw) => match serde_json::from_str::<Value>(raw.get()) {
                Ok(schema @ (Value::Object(_) | Value::Bool(_))) => Ok(Some(schema)),
                Ok(_) => Err(format!("{member}: the schema is neither an object nor a boolean")),
                Err(_) => Err(format!("{member}: the schema is nested too deeply")),
            },
        };
        // An example that can not be read is one that is not shown.
        let value = |raw: &serde_json::value::RawValue| serde_json::from_str::<Value>(raw.get()).ok();
        let examples = declared.examples.iter().take(EXAMPLES);
        Ok(Self {
            collection: collection.to_owned(),
            name: name.to_owned(),
            description: declared.description.clone().unwrap_or_default(),
            input: schema(declared.input_schema, "inputSchema")?,
            output: schema(declared.output_schema, "outputSchema")?,
            examples: examples.filter_map(|one| Some((one.description.clone(), value(one.input)?, one.output.and_then(value)))).collect(),
        })
    }
}

impl Described {
    /// From what the operator configured, which was checked when it was loaded.
    pub(crate) fn configured(function: &Configured) -> Self {
        let value = |raw: &serde_json::value::RawValue| serde_json::from_str::<Value>(raw.get()).ok();
        let examples = function.examples.iter().take(EXAMPLES);
        Self {
            collection: function.collection.clone(),
            name: function.name.clone(),
            description: function.description.clone(),
            input: value(&function.input_text),
            output: function.output_text.as_deref().and_then(value),
            examples: examples
                .filter_map(|one| Some((one.description.clone(), value(&one.input)?, one.output.as_deref().and_then(value))))
                .collect(),
        }
    }

    /// Its collection.
    pub(crate) fn collection(&self) -> &str {
        &self.collection
    }

    /// Its name within the collection.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// Declarations of `functions`, which stand together by collection, and of `inputs`.
pub(crate) fn declarations(functions: &[Described]) -> String {
    let mut aliases = Aliases::default();
    let mut blocks = String::new();
    let mut told = 0;
    for group in functions.chunk_by(|one, other| one.collection == other.collection) {
        blocks.push_str(&collection(group, functions, &mut aliases, TEXT_BYTES.saturating_sub(blocks.len() + told)));
        told = aliases.all.iter().map(|alias| alias.name.len()).sum();
    }
    let mut out = String::new();
    for alias in &aliases.all {
        let text = alias_text(alias);
        let room = TEXT_BYTES.saturating_sub(out.len() + blocks.len());
        out.push_str(&if text.len() <= room { text } else { format!("type {} = any; /* no room */\n", alias.name) });
    }
    out.push_str(&blocks);
    out.push_str("/** What the caller passed along with the program. */\ndeclare const inputs: { readonly [name: string]: any };\n");
    out
}

fn alias_text(alias: &Alias) -> String {
    let body = alias.body.as_ref().map_or_else(|| "any".to_owned(), |body| bounded(print::text(body, 0), "any"));
    format!("{}type {} = {body};\n", print::comment(&alias.doc, 0), alias.name)
}

/// A type that is short enough, or the word that stands for it and says so.
fn bounded(text: String, anything: &str) -> String {
    if text.len() <= TYPE_BYTES { text } else { format!("{anything} /* over {TYPE_BYTES} bytes: see functions.describe */") }
}

fn collection(group: &[Described], all: &[Described], aliases: &mut Aliases, room: usize) -> String {
    let Some(first) = group.first() else { return String::new() };
    let name = spelling(&first.collection, all);
    if let Some(why) = words::unreachable(&name) {
        return format!("// Collection {}: {why}; it is globalThis[{}] where it is defined.\n", words::quoted(&name), words::quoted(&name));
    }
    let mut out = format!("declare const {name}: {{\n");
    for function in group {
        let text = members(function, group, &name, aliases);
        if out.len() + text.len() <= room {
            out.push_str(&text);
        } else {
            let name = words::member_name(&function.name);
            out.push_str(&format!("  {name}(input?: any): Promise<any>; // no room: see functions.describe\n"));
        }
    }
    out.push_str("};\n");
    out
}

/// How a program writes a collection: its name, or the alias that is one.
fn spelling(collection: &str, all: &[Described]) -> String {
    let camel = names::camel(collection);
    let clashes = all.iter().any(|other| other.collection != collection && names::camel(&other.collection) == camel);
    if words::is_identifier(collection) || clashes { collection.to_owned() } else { camel }
}

/// The members of one function: its name, and before it the alias when it has one.
fn members(function: &Described, group: &[Described], collection: &str, aliases: &mut Aliases) -> String {
    let input = kind(function, function.input.as_ref(), "unknown", aliases);
    let output = kind(function, function.output.as_ref(), "any", aliases);
    let optional = function.input.is_none() || may_be_empty(&input);
    let parameters = if function.input.is_none() {
        "input?: { [name: string]: unknown }".to_owned()
    } else {
        format!("input{}: {}", if optional { "?" } else { "" }, bounded(print::text(&input, 1), "any"))
    };
    let signature = format!("({parameters}): Promise<{}>;\n", bounded(print::text(&output, 1), "any"));
    let camel = names::camel(&function.name);
    let is_alias = camel != function.name && group.iter().filter(|other| names::camel(&other.name) == camel).count() == 1;
    let shown = if is_alias { &camel } else { &function.name };
    let mut out = print::comment(&comment(function, collection, shown), 1);
    out.push_str(&format!("  {}{signature}", words::member_name(shown)));
    if is_alias {
        out.push_str(&format!("  {}{signature}", words::member_name(&function.name)));
    }
    out
}

fn kind(function: &Described, schema: Option<&Value>, anything: &'static str, aliases: &mut Aliases) -> Type {
    let Some(schema) = schema else { return Type::Word(anything) };
    let place = Place { root: schema, collection: &function.collection, function: &function.name, anything };
    Converter::new(schema, place, aliases).convert(schema)
}

/// Whether `{}` is a value of it, so that the argument can be left out.
fn may_be_empty(kind: &Type) -> bool {
    match kind {
        Type::Object(object) => object.members.iter().all(|member| !member.required),
        Type::All(parts) => parts.iter().all(may_be_empty),
        Type::Union(parts) => parts.iter().any(may_be_empty),
        Type::Noted(kind, _) => may_be_empty(kind),
        _ => kind.is_anything(),
    }
}

fn comment(function: &Described, collection: &str, shown: &str) -> Vec<String> {
    let mut lines = words::lines(&function.description);
    for (description, input, output) in &function.examples {
        let call =
            if words::is_identifier(shown) { format!("{collection}.{shown}") } else { format!("{collection}[{}]", words::quoted(shown)) };
        let output = output.as_ref().map(|output| format!(" -> {output}")).unwrap_or_default();
        let said = if description.is_empty() { String::new() } else { format!("{description}: ") };
        lines.push(format!("@example {}", words::on_one_line(&format!("{said}await {call}({input}){output}"), EXAMPLE_BYTES)));
    }
    lines
}
