//! From the files of `functions.d` to functions that can be called.
//!
//! Owns every check of a file: whose it is, its keys, its schemas, its examples, its
//! programs. A file that fails one is out with all of its collection, and says why; the
//! others stay. Runs once, on a thread with the stack that compiling schemas takes.

mod command;

use super::credentials::{self, Credential, Source};
use super::file::{self, CollectionFile, FunctionEntry};
use super::ownership::{self, Privacy};
use super::users::Users;
use super::{Brief, Catalogue, Configured, Disabled, Kind, rate};
use crate::host::redact::{Planted, Redactor};
use crate::host::schema::{Schema, payload};
use crate::host::turns::Turns;
use brig_protocol::client::{Effect, ExampleShown};
use brig_protocol::escape::ShowPath as _;
use brig_protocol::limits::{FUNCTION_TIMEOUT_MAX_MS, REGISTERED_FUNCTIONS, SCHEMA_BYTES};
use brig_protocol::names;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Largest file, in bytes.
const FILE_BYTES: usize = 1024 * 1024;
/// Most files.
const FILES: usize = 1_000;
/// Most examples of one function.
const EXAMPLES: usize = 20;
/// Longest description, in bytes.
const DESCRIPTION_BYTES: usize = 16 * 1024;
/// Time for one call where none is set, in milliseconds.
const TIMEOUT_MS: u64 = 30_000;
/// Most calls of one function at one time that can be set.
const CONCURRENCY: usize = 1_024;
/// Why a function that may change something is not used; follows its place.
const UNKEPT: &str = ".effect is \"write\" (the default), and each call of such a function is written down before it runs, \
    which needs a state directory: set server.state_dir, or give --state DIR; where it changes nothing, write effect = \"read\"";
/// Stack for compiling schemas; only what is used is ever touched.
const STACK_BYTES: usize = 256 * 1024 * 1024;

/// A file that was read, before its functions are made.
struct Draft {
    path: PathBuf,
    name: String,
    /// The line of each key.
    lines: BTreeMap<String, usize>,
    file: CollectionFile,
    credentials: BTreeMap<String, Arc<Credential>>,
}

/// What the functions of a file are made with.
struct Host<'a> {
    users: &'a Users,
    redactor: &'a Redactor,
    kept: Kept,
}

/// Whether calls that may change something are written down before they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// There is a state directory, and the journal in it.
    OnDisk,
    /// There is none: only functions that change nothing can be used.
    Nowhere,
}

/// Loads every file of a folder. A folder that is not there holds none.
pub(crate) fn load(folder: &Path, source: &Source, kept: Kept) -> Catalogue {
    std::thread::scope(|scope| {
        let work = || load_here(folder, source, kept, &Users::of_host(source.own));
        let thread = std::thread::Builder::new().name("brig-load".to_owned()).stack_size(STACK_BYTES).spawn_scoped(scope, work);
        let loaded = thread.ok().and_then(|thread| thread.join().ok());
        loaded.unwrap_or_else(|| Catalogue::nothing_of(folder, "could not be loaded: there is no thread for it".to_owned()))
    })
}

fn load_here(folder: &Path, source: &Source, kept: Kept, users: &Users) -> Catalogue {
    let paths = match files_of(folder) {
        Ok(paths) => paths,
        Err(fault) => return Catalogue::nothing_of(folder, fault),
    };
    let mut disabled = Vec::new();
    let mut drafts: Vec<Draft> = Vec::new();
    for path in paths {
        match draft(&path, source, &drafts) {
            Ok(draft) => drafts.push(draft),
            Err(fault) => disabled.push(Disabled { file: path, fault }),
        }
    }
    let planted: Vec<Planted<'_>> = drafts
        .iter()
        .flat_map(|draft| draft.credentials.values())
        .map(|credential| Planted { name: &credential.name, text: credential.expose() })
        .collect();
    let redactor = match Redactor::new(&planted) {
        Ok(redactor) => redactor,
        Err(fault) => return Catalogue::nothing_of(folder, fault.to_string()),
    };
    let host = Host { users, redactor: &redactor, kept };
    let mut functions = Vec::new();
    // Of a file that could not even be read nobody knows what it names.
    let mut unused = disabled.is_empty().then(Vec::new);
    for draft in drafts {
        match functions_of(&draft, &host, REGISTERED_FUNCTIONS.saturating_sub(functions.len())) {
            Ok(all) => functions.extend(all),
            Err(fault) => {
                unused.iter_mut().for_each(|unused| unused.extend(draft.briefs()));
                disabled.push(Disabled { file: draft.path, fault });
            }
        }
    }
    Catalogue::new(functions, disabled, unused, redactor)
}

impl Draft {
    fn briefs(&self) -> impl Iterator<Item = Brief> {
        let brief =
            |(name, entry): (&String, &FunctionEntry)| Brief { collection: self.name.clone(), name: name.clone(), effect: entry.effect };
        self.file.functions.iter().map(brief)
    }

    /// A fault that begins with its place, with the line of that, or of the innermost table
    /// that it is in.
    fn placed(&self, fault: &str) -> String {
        let place = fault.split([' ', ':']).next().unwrap_or_default();
        let ends = place.char_indices().rev().filter(|(_, character)| matches!(character, '.' | '[')).map(|(at, _)| at);
        let line = std::iter::once(place.len()).chain(ends).find_map(|end| self.lines.get(place.get(..end)?));
        line.map_or_else(|| fault.to_owned(), |line| format!("line {line}: {fault}"))
    }
}

/// The files in the order of their names; nobody else may add one.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let unreadable = |fault: std::io::Error| format!("can not be read: {fault}");
    let about = match std::fs::metadata(folder) {
        Ok(about) => about,
        Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(fault) => return Err(unreadable(fault)),
    };
    ownership::check(folder, &about, Privacy::Readable)?;
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
        if !hidden && path.extension().is_some_and(|extension| extension == "toml") {
            paths.push(path);
        }
    }
    if paths.len() > FILES {
        return Err(format!("has {} files; at most {FILES} are read", paths.len()));
    }
    paths.sort();
    Ok(paths)
}

fn draft(path: &Path, source: &Source, before: &[Draft]) -> Result<Draft, String> {
    let text = ownership::read(path, FILE_BYTES, Privacy::Readable)?;
    let text = String::from_utf8(text).map_err(|_| "is not UTF-8".to_owned())?;
    let file = file::parse(&text)?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name = file.name.clone().unwrap_or(stem);
    names::check_collection(&name)
        .map_err(|fault| format!("name: {:?} can not be a name: {fault}", brig_protocol::escape::escaped(&name, 100)))?;
    let command = names::kebab(&name);
    if let Some(other) = before.iter().find(|other| names::kebab(&other.name) == command) {
        return Err(format!("is the collection {:?}, as is {}; rename one", name, other.path.shown()));
    }
    if file.functions.is_empty() {
        return Err("has no functions: write [functions.NAME]".to_owned());
    }
    let lines = crate::config::layers::lines_of(&text);
    let mut draft = Draft { path: path.to_owned(), name, lines, file, credentials: BTreeMap::new() };
    let wanted = draft.file.credentials.iter().map(|(name, entry)| (name, entry.file.as_deref()));
    draft.credentials = credentials::read_all(source, wanted).map_err(|faults| joined(&draft, faults))?;
    Ok(draft)
}

/// Everything that is wrong with a file, in one line.
fn joined(draft: &Draft, faults: Vec<String>) -> String {
    faults.iter().map(|fault| draft.placed(fault)).collect::<Vec<_>>().join("; ")
}

fn functions_of(draft: &Draft, host: &Host<'_>, room: usize) -> Result<Vec<Arc<Configured>>, String> {
    let mut commands: BTreeMap<String, &String> = BTreeMap::new();
    let (mut functions, mut faults) = (Vec::new(), Vec::new());
    for (name, entry) in &draft.file.functions {
        let place = format!("functions.{}", crate::host::permission::condition::spelt(name));
        if let Err(fault) = names::check_function(name) {
            faults.push(format!("{place}: not a name: {fault}"));
        }
        if let Some(other) = commands.insert(names::kebab(name), name) {
            faults.push(format!("{place} and functions.{other} are the same as commands; rename one"));
        }
        match function(draft, name, entry, host) {
            Ok(function) => functions.push(Arc::new(function)),
            Err(fault) => faults.push(format!("{place}{fault}")),
        }
    }
    if !faults.is_empty() {
        return Err(joined(draft, faults));
    }
    if functions.len() > room {
        return Err(format!("has {} functions; at most {REGISTERED_FUNCTIONS} can be configured in all", functions.len()));
    }
    let used = |name: &String| {
        draft.file.functions.values().any(|entry| entry.command.as_ref().is_some_and(|command| command.credentials.contains_key(name)))
    };
    match draft.file.credentials.keys().find(|name| !used(name)) {
        Some(unused) => Err(format!("credentials.{unused} is given to no function")),
        None => Ok(functions),
    }
}

/// One function; a fault begins with the rest of its place.
fn function(draft: &Draft, name: &str, entry: &FunctionEntry, host: &Host<'_>) -> Result<Configured, String> {
    let longest = entry.examples.iter().map(|example| example.description.len()).chain([entry.description.len()]).max();
    if longest > Some(DESCRIPTION_BYTES) {
        return Err(format!(": a description has more than {DESCRIPTION_BYTES} bytes"));
    }
    if entry.effect == Effect::Write && host.kept == Kept::Nowhere {
        return Err(UNKEPT.to_owned());
    }
    let timeout = entry.timeout_ms.unwrap_or(TIMEOUT_MS);
    if !(1..=FUNCTION_TIMEOUT_MAX_MS).contains(&timeout) {
        return Err(format!(".timeout_ms is {timeout}; it must be between 1 and {FUNCTION_TIMEOUT_MAX_MS}"));
    }
    if !(1..=CONCURRENCY).contains(&entry.concurrency) {
        return Err(format!(".concurrency is {}; it must be between 1 and {CONCURRENCY}", entry.concurrency));
    }
    if let Some(rate) = entry.calls_per_minute.filter(|rate| !(1..=rate::MOST).contains(rate)) {
        return Err(format!(".calls_per_minute is {rate}; it must be between 1 and {}", rate::MOST));
    }
    let folder = draft.path.parent().unwrap_or(Path::new("/"));
    let any_object = || r#"{"type":"object"}"#.to_owned();
    let input = schema_text(folder, entry.input_schema.as_ref(), entry.input_schema_file.as_deref(), "input_schema")?;
    let (input_text, input) = compiled(input.unwrap_or_else(any_object), "input_schema")?;
    let output = schema_text(folder, entry.output_schema.as_ref(), entry.output_schema_file.as_deref(), "output_schema")?;
    let output = output.map(|text| compiled(text, "output_schema")).transpose()?;
    let (output_text, output) = output.map_or((None, None), |(text, schema)| (Some(text), Some(schema)));
    let examples = examples(entry, &input, output.as_deref())?;
    let Some(command) = &entry.command else {
        return Err(": what it runs is not said; write [functions.NAME.command]".to_owned());
    };
    let described = payload::tree(input_text.get()).map_err(|fault| format!(".input_schema {fault}"))?;
    let command = command::made(draft, command, timeout, &described, host.users).map_err(|fault| format!(".command{fault}"))?;
    Ok(Configured {
        collection: draft.name.clone(),
        name: name.to_owned(),
        full_name: format!("{}.{name}", draft.name),
        description: entry.description.clone(),
        input_text,
        output_text,
        examples,
        input,
        output,
        timeout: Duration::from_millis(timeout),
        effect: entry.effect,
        retry: entry.retry,
        audit: entry.audit,
        turns: Turns::exactly(entry.concurrency),
        rate: entry.calls_per_minute.map(|most| Mutex::new(rate::Rate::per_minute(most))),
        redactor: host.redactor.clone(),
        kind: Kind::Command(command),
    })
}

/// The JSON text of a schema, from wherever it stands.
fn schema_text(folder: &Path, here: Option<&toml::Value>, beside: Option<&Path>, member: &str) -> Result<Option<String>, String> {
    match (here, beside) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(format!(" has {member} and {member}_file; give one")),
        (Some(toml::Value::String(text)), None) => Ok(Some(text.clone())),
        (Some(table @ toml::Value::Table(_)), None) => {
            file::as_json(table).map(|value| Some(value.to_string())).map_err(|fault| format!(".{member} {fault}"))
        }
        (Some(other), None) => Err(format!(".{member} is {}; it must be a table, or JSON in quotes", other.type_str())),
        (None, Some(path)) => {
            let text =
                ownership::read(&folder.join(path), SCHEMA_BYTES, Privacy::Readable).map_err(|fault| format!(".{member}_file {fault}"))?;
            String::from_utf8(text).map(Some).map_err(|_| format!(".{member}_file is not UTF-8"))
        }
    }
}

fn compiled(text: String, member: &str) -> Result<(Box<RawValue>, Arc<Schema>), String> {
    let schema = Schema::compile(&text).map_err(|fault| format!(".{member}: the schema {fault}"))?;
    if let Some(misspelt) = schema.lint().first() {
        return Err(format!(".{member}: {misspelt}"));
    }
    let raw = RawValue::from_string(text).map_err(|fault| format!(".{member} is not JSON: {fault}"))?;
    Ok((raw, Arc::new(schema)))
}

/// The examples: a model copies them, so each must be a call that passes.
fn examples(entry: &FunctionEntry, input: &Schema, output: Option<&Schema>) -> Result<Vec<ExampleShown>, String> {
    if entry.examples.len() > EXAMPLES {
        return Err(format!(".examples has {} examples; at most {EXAMPLES} are taken", entry.examples.len()));
    }
    let mut shown = Vec::new();
    for (index, example) in entry.examples.iter().enumerate() {
        let place = |member: &str| format!(".examples[{index}].{member}");
        let given = example_value(&example.input, Some(input)).map_err(|fault| format!("{} {fault}", place("input")))?;
        if !given.get().starts_with('{') {
            return Err(format!("{} must be a table: it is the one argument of the function", place("input")));
        }
        let gives = example.output.as_ref().map(|value| example_value(value, output)).transpose();
        let gives = gives.map_err(|fault| format!("{} {fault}", place("output")))?;
        shown.push(ExampleShown { description: example.description.clone(), input: given, output: gives });
    }
    Ok(shown)
}

fn example_value(value: &toml::Value, schema: Option<&Schema>) -> Result<Box<RawValue>, String> {
    let value = file::as_json(value)?;
    let raw = serde_json::value::to_raw_value(&value).map_err(|fault| format!("has no JSON form: {fault}"))?;
    let counts = payload::measure(raw.get()).map_err(|fault| fault.0)?;
    if let Some(schema) = schema {
        schema.cost(counts)?;
        if !schema.is_valid(&value) {
            return Err(schema.explain(&value, false));
        }
    }
    Ok(raw)
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
