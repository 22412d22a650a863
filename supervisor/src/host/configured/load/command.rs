//! From the `[functions.NAME.command]` of a file to a command that can be run.
//!
//! Owns the checks of a program, its arguments, its variables and the credentials that it is
//! given. Never reads a credential, and never runs anything.

use super::Draft;
use crate::host::configured::arguments::{Argument, Arguments, Template};
use crate::host::configured::command::{Command, Passed};
use crate::host::configured::file::{ArgumentEntry, CommandEntry, PassEntry};
use crate::host::configured::ownership::{self, Privacy};
use crate::host::configured::users::Users;
use crate::keeper::enter::Limits;
use brig_protocol::escape::ShowPath as _;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A command; a fault begins with the rest of its place.
pub(super) fn made(draft: &Draft, entry: &CommandEntry, timeout_ms: u64, schema: &Value, users: &Users) -> Result<Command, String> {
    check_program(&entry.program)?;
    let folder = entry.folder.clone().unwrap_or_else(|| PathBuf::from("/"));
    if !folder.is_absolute() {
        return Err(format!(".folder is {}; the path must be absolute", folder.shown()));
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
        return Err(format!(".program is {}; the path must be absolute", program.shown()));
    }
    let about = std::fs::metadata(program).map_err(|fault| format!(".program {}: {fault}", program.shown()))?;
    let executable = std::os::unix::fs::MetadataExt::mode(&about) & 0o111 != 0;
    if !about.is_file() || !executable {
        return Err(format!(".program {} is not a program: no file, or not executable", program.shown()));
    }
    ownership::check(program, &about, Privacy::Readable).map_err(|fault| format!(".program {fault}"))
}

fn check_variable(name: &str) -> Result<(), String> {
    let fits = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if fits { Ok(()) } else { Err("is not the name of a variable: letters, digits and `_`".to_owned()) }
}
