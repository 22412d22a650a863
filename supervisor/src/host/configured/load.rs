//! From the files of `functions.d` to functions that can be called.
//!
//! Owns every check of a file: whose it is, its keys, its schemas, its examples, its
//! programs. A file that fails one is out with all of its collection, and says why; the
//! others stay. Runs once, on a thread with the stack that compiling schemas takes.

use super::arguments::{Argument, Arguments, Template};
use super::command::{Command, Passed};
use super::credentials::{self, Credential, Source};
use super::file::{self, ArgumentEntry, CollectionFile, CommandEntry, FunctionEntry, PassEntry};
use super::ownership::{self, Privacy};
use super::users::Users;
use super::{Catalogue, Configured, Disabled, Kind, rate};
use crate::host::redact::{Planted, Redactor};
use crate::host::schema::{Schema, payload};
use crate::host::turns::Turns;
use crate::keeper::enter::Limits;
use brig_protocol::client::{Effect, ExampleShown};
use brig_protocol::limits::{FUNCTION_TIMEOUT_MAX_MS, REGISTERED_FUNCTIONS, SCHEMA_BYTES};
use brig_protocol::names;
use serde_json::Value;
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
        let work = || load_here(folder, source, kept, &Users::of_host());
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
    for draft in drafts {
        match functions_of(&draft, &host, REGISTERED_FUNCTIONS.saturating_sub(functions.len())) {
            Ok(all) => functions.extend(all),
            Err(fault) => disabled.push(Disabled { file: draft.path, fault }),
        }
    }
    Catalogue::new(functions, disabled, redactor)
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
        return Err(format!("is the collection {:?}, as is {}; rename one", name, other.path.display()));
    }
    if file.functions.is_empty() {
        return Err("has no functions: write [functions.NAME]".to_owned());
    }
    let wanted = file.credentials.iter().map(|(name, entry)| (name, entry.file.as_deref()));
    let credentials = credentials::read_all(source, wanted)?;
    Ok(Draft { path: path.to_owned(), name, file, credentials })
}

fn functions_of(draft: &Draft, host: &Host<'_>, room: usize) -> Result<Vec<Arc<Configured>>, String> {
    let mut commands: BTreeMap<String, &String> = BTreeMap::new();
    let mut functions = Vec::new();
    for (name, entry) in &draft.file.functions {
        let place = format!("functions.{name}");
        names::check_function(name).map_err(|fault| format!("{place}: not a name: {fault}"))?;
        if let Some(other) = commands.insert(names::kebab(name), name) {
            return Err(format!("{place} and functions.{other} are the same as commands; rename one"));
        }
        let function = function(draft, name, entry, host).map_err(|fault| format!("{place}{fault}"))?;
        functions.push(Arc::new(function));
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
    let command = made(draft, command, timeout, &described, host.users).map_err(|fault| format!(".command{fault}"))?;
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

/// A command; a fault begins with the rest of its place.
fn made(draft: &Draft, entry: &CommandEntry, timeout_ms: u64, schema: &Value, users: &Users) -> Result<Command, String> {
    check_program(&entry.program)?;
    let folder = entry.folder.clone().unwrap_or_else(|| PathBuf::from("/"));
    if !folder.is_absolute() {
        return Err(format!(".folder is {}; the path must be absolute", folder.display()));
    }
    let umask = entry.umask.as_deref().unwrap_or("0077");
    let umask = u32::from_str_radix(umask, 8).ok().filter(|mask| *mask <= 0o777).ok_or(".umask must be octal, as \"0077\"")?;
    if entry.failure_codes.contains(&0) {
        return Err(".failure_codes has 0, by which a program says that all went well".to_owned());
    }
    let mut environment = Vec::new();
    for (name, text) in &entry.env {
        check_variable(name).map_err(|fault| format!(".env.{name} {fault}"))?;
        environment.push((name.clone(), Template::parse(text, schema).map_err(|fault| format!(".env.{name} {fault}"))?));
    }
    let credentials = passed(draft, entry)?;
    let ids = users.ids(entry.user.as_ref(), entry.group.as_ref(), entry.groups.as_deref()).map_err(|fault| format!(" {fault}"))?;
    let dedicated = ids.as_ref().is_some_and(|ids| ids.uid != 0);
    let limits = Limits {
        cpu_seconds: Some(entry.limits.cpu_seconds.unwrap_or(timeout_ms.div_ceil(1_000) + 1)),
        memory_bytes: entry.limits.memory_bytes,
        open_files: Some(entry.limits.open_files.unwrap_or(256)),
        file_bytes: Some(entry.limits.file_bytes.unwrap_or(64 * 1024 * 1024)),
        processes: entry.limits.processes.or(dedicated.then_some(256)),
    };
    Ok(Command {
        program: entry.program.clone(),
        arguments: arguments(&entry.args, schema)?,
        environment,
        credentials,
        user: ids,
        folder,
        umask,
        limits,
        input: entry.input,
        output: entry.output,
        failure_codes: entry.failure_codes.clone(),
    })
}

fn arguments(entries: &[ArgumentEntry], schema: &Value) -> Result<Arguments, String> {
    let parse = |text: &String, place: String| Template::parse_argument(text, schema).map_err(|fault| format!("{place} {fault}"));
    let mut all = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        all.push(match entry {
            ArgumentEntry::One(text) => Argument::One(parse(text, format!(".args[{index}]"))?),
            ArgumentEntry::Group(texts) if texts.is_empty() => return Err(format!(".args[{index}] is empty")),
            ArgumentEntry::Group(texts) => {
                let each = texts.iter().enumerate().map(|(place, text)| parse(text, format!(".args[{index}][{place}]")));
                Argument::Group(each.collect::<Result<_, _>>()?)
            }
        });
    }
    Ok(Arguments(all))
}

fn passed(draft: &Draft, entry: &CommandEntry) -> Result<Vec<Passed>, String> {
    let mut passed = Vec::new();
    for (name, PassEntry { variable, file_variable }) in &entry.credentials {
        let place = format!(".credentials.{name}");
        let Some(credential) = draft.credentials.get(name) else {
            return Err(format!("{place}: the file has no [credentials.{name}]"));
        };
        let (variable, as_file) = match (variable, file_variable) {
            (Some(variable), None) => (variable, false),
            (None, Some(variable)) => (variable, true),
            _ => return Err(format!("{place} needs one of `variable` and `file_variable`")),
        };
        check_variable(variable).map_err(|fault| format!("{place} {fault}"))?;
        if entry.env.contains_key(variable) {
            return Err(format!("{place}: the variable {variable} is in `env` as well"));
        }
        let fits = std::str::from_utf8(credential.expose()).is_ok_and(|text| !text.contains('\0'));
        if !as_file && !fits {
            return Err(format!("{place}: it is no text, which a variable needs; pass it as a file (`file_variable`)"));
        }
        passed.push(Passed { credential: Arc::clone(credential), variable: variable.clone(), as_file });
    }
    Ok(passed)
}

/// A program that others could replace is theirs, not the operator's.
fn check_program(program: &Path) -> Result<(), String> {
    if !program.is_absolute() {
        return Err(format!(".program is {}; the path must be absolute", program.display()));
    }
    let about = std::fs::metadata(program).map_err(|fault| format!(".program {}: {fault}", program.display()))?;
    let executable = std::os::unix::fs::MetadataExt::mode(&about) & 0o111 != 0;
    if !about.is_file() || !executable {
        return Err(format!(".program {} is not a program: no file, or not executable", program.display()));
    }
    ownership::check(program, &about, Privacy::Readable).map_err(|fault| format!(".program {fault}"))
}

fn check_variable(name: &str) -> Result<(), String> {
    let fits = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if fits { Ok(()) } else { Err("is not the name of a variable: letters, digits and `_`".to_owned()) }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
