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
use brig_protocol::json::{self, Bounds};
use brig_protocol::limits::SCHEMA_BYTES;
use brig_protocol::names;
use convert::Converter;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Longest type of one input or output, in bytes.
const TYPE_BYTES: usize = 32 * 1024;
/// Longest text of all declarations, in bytes: what comes after it is named only.
pub(crate) const TEXT_BYTES: usize = 1024 * 1024;
/// Most examples of one function that are shown.
const EXAMPLES: usize = 2;
/// Longest example, in bytes.
const EXAMPLE_BYTES: usize = 400;
/// Longest example that is read, in bytes: of a longer one its beginning is shown as it is.
const EXAMPLE_READ_BYTES: usize = 4 * 1024;
/// Most values of a schema, and deepest nesting.
const SCHEMA: Bounds = Bounds { depth: 120, nodes: 40_000 };
/// How long all declarations of one request may take.
const TIME: Duration = Duration::from_secs(10);

/// Steps of recursion that writing takes at most, as the threads for it count them: a
/// subschema takes several of their size, and its type is printed after.
pub(crate) const STEPS: u64 = 8 * convert::RUN as u64;

/// It took too long. What is written never depends on time: it is all there, or nothing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("writing the declarations takes more than {} s", TIME.as_secs())]
pub(crate) struct TooLong;

/// One function as a model is told of it. Schemas are texts: as trees, those of one request
/// could take gigabytes.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    collection: String,
    name: String,
    description: String,
    input: Option<Box<RawValue>>,
    output: Option<Box<RawValue>>,
    examples: Vec<(String, String, Option<String>)>,
}

impl Described {
    /// From a declaration.
    ///
    /// # Errors
    /// A half sentence that follows the name of the member: it is no schema.
    pub(crate) fn of(collection: &str, name: &str, declared: &FunctionDeclaration<'_>) -> Result<Self, String> {
        let schema = |raw: Option<&RawValue>, member: &str| match raw {
            None => Ok(None),
            Some(raw) if raw.get().len() > SCHEMA_BYTES => {
                Err(format!("{member}: the schema has {} bytes; at most {SCHEMA_BYTES} are taken", raw.get().len()))
            }
            Some(raw) if !raw.get().starts_with(['{', 't', 'f']) => Err(format!("{member}: the schema is neither an object nor a boolean")),
            Some(raw) => match json::count(raw.get().as_bytes(), SCHEMA) {
                Ok(_) => Ok(Some(raw.to_owned())),
                Err(fault) => Err(format!("{member}: the schema is {fault}")),
            },
        };
        let examples = declared.examples.iter().take(EXAMPLES);
        Ok(Self {
            collection: collection.to_owned(),
            name: name.to_owned(),
            description: declared.description.clone().unwrap_or_default(),
            input: schema(declared.input_schema, "inputSchema")?,
            output: schema(declared.output_schema, "outputSchema")?,
            examples: examples.filter_map(|one| Some((one.description.clone(), shown(one.input)?, one.output.and_then(shown)))).collect(),
        })
    }
}

impl Described {
    /// From what the operator configured, which was checked when it was loaded.
    pub(crate) fn configured(function: &Configured) -> Self {
        let examples = function.examples.iter().take(EXAMPLES);
        Self {
            collection: function.collection.clone(),
            name: function.name.clone(),
            description: function.description.clone(),
            input: Some(function.input_text.clone()),
            output: function.output_text.clone(),
            examples: examples
                .filter_map(|one| Some((one.description.clone(), shown(&one.input)?, one.output.as_deref().and_then(shown))))
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

/// An example's value on as little room as it needs. One that can not be read is not shown.
fn shown(raw: &RawValue) -> Option<String> {
    let text = raw.get();
    if text.len() <= EXAMPLE_READ_BYTES {
        return serde_json::from_str::<Value>(text).ok().map(|value| value.to_string());
    }
    let end = (0..=EXAMPLE_READ_BYTES).rev().find(|end| text.is_char_boundary(*end))?;
    text.get(..end).map(str::to_owned)
}

/// Declarations of `functions`, which stand together by collection, and of `inputs`.
///
/// # Errors
/// [`TooLong`].
pub(crate) fn declarations(functions: &[Described]) -> Result<String, TooLong> {
    written(functions, &mut Aliases::default(), Instant::now() + TIME)
}

fn written(functions: &[Described], aliases: &mut Aliases, by: Instant) -> Result<String, TooLong> {
    let spellings = Spellings::of(functions.iter().map(Described::collection));
    let mut blocks = String::new();
    let mut told = 0;
    for group in functions.chunk_by(|one, other| one.collection == other.collection) {
        blocks.push_str(&collection(group, &spellings, aliases, TEXT_BYTES.saturating_sub(blocks.len() + told), by)?);
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
    Ok(out)
}

/// How often each name comes in camel case.
struct Spellings(HashMap<String, HashSet<String>>);

impl Spellings {
    fn of<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        let mut all: HashMap<String, HashSet<String>> = HashMap::new();
        for name in names {
            all.entry(names::camel(name)).or_default().insert(name.to_owned());
        }
        Self(all)
    }

    /// Whether only one name is spelt so.
    fn is_free(&self, camel: &str) -> bool {
        self.0.get(camel).is_none_or(|names| names.len() <= 1)
    }
}

fn alias_text(alias: &Alias) -> String {
    let body = alias.body.as_ref().map_or_else(|| "any".to_owned(), |body| bounded(print::text(body, 0), "any"));
    format!("{}type {} = {body};\n", print::comment(&alias.doc, 0), alias.name)
}

/// A type that is short enough, or the word that stands for it and says so.
fn bounded(text: String, anything: &str) -> String {
    if text.len() <= TYPE_BYTES { text } else { format!("{anything} /* over {TYPE_BYTES} bytes: see functions.describe */") }
}

fn collection(group: &[Described], all: &Spellings, aliases: &mut Aliases, room: usize, by: Instant) -> Result<String, TooLong> {
    let Some(first) = group.first() else { return Ok(String::new()) };
    let name = spelling(&first.collection, all);
    if let Some(why) = words::unreachable(&name) {
        return Ok(format!(
            "// Collection {}: {why}; it is globalThis[{}] where it is defined.\n",
            words::quoted(&name),
            words::quoted(&name)
        ));
    }
    let spellings = Spellings::of(group.iter().map(Described::name));
    let mut out = format!("declare const {name}: {{\n");
    for function in group {
        if Instant::now() >= by {
            return Err(TooLong);
        }
        // Nothing is made that there is no room for.
        let text = (out.len() < room).then(|| members(function, &spellings, &name, aliases)).filter(|text| out.len() + text.len() <= room);
        if let Some(text) = text {
            out.push_str(&text);
        } else {
            let name = words::member_name(&function.name);
            out.push_str(&format!("  {name}(input?: any): Promise<any>; // no room: see functions.describe\n"));
        }
    }
    out.push_str("};\n");
    Ok(out)
}

/// How a program writes a collection: its name, or the alias that is one.
fn spelling(collection: &str, all: &Spellings) -> String {
    let camel = names::camel(collection);
    if words::is_identifier(collection) || !all.is_free(&camel) { collection.to_owned() } else { camel }
}

/// The members of one function: its name, and before it the alias when it has one.
fn members(function: &Described, group: &Spellings, collection: &str, aliases: &mut Aliases) -> String {
    let input = kind(function, function.input.as_deref(), "unknown", aliases);
    let output = kind(function, function.output.as_deref(), "any", aliases);
    let optional = function.input.is_none() || may_be_empty(&input);
    let parameters = if function.input.is_none() {
        "input?: { [name: string]: unknown }".to_owned()
    } else {
        format!("input{}: {}", if optional { "?" } else { "" }, bounded(print::text(&input, 1), "any"))
    };
    let signature = format!("({parameters}): Promise<{}>;\n", bounded(print::text(&output, 1), "any"));
    let camel = names::camel(&function.name);
    let is_alias = camel != function.name && group.is_free(&camel);
    let shown = if is_alias { &camel } else { &function.name };
    let mut out = print::comment(&comment(function, collection, shown), 1);
    out.push_str(&format!("  {}{signature}", words::member_name(shown)));
    if is_alias {
        out.push_str(&format!("  {}{signature}", words::member_name(&function.name)));
    }
    out
}

fn kind(function: &Described, schema: Option<&RawValue>, anything: &'static str, aliases: &mut Aliases) -> Type {
    let Some(schema) = schema else { return Type::Word(anything) };
    // Only what is no schema at all can not be read: it was counted.
    let Ok(schema) = serde_json::from_str::<Value>(schema.get()) else { return Type::Word(anything) };
    let schema = &schema;
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
