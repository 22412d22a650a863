//! What a function says of itself, as the help of a command.
//!
//! Owns the layout, and that a description, however long and whatever is in it, is
//! harmless on a terminal. Never talks to brigd.

use super::shape::{Found, Kind, Shape};
use super::words::Reserved;
use super::{flags, names};
use crate::cli::exit::Exit;
use crate::cli::members::Members;
use brig::protocol::escape::escaped;
use brig::protocol::names::kebab;
use brig::{Effect, FunctionListed, FunctionsDescribeResult, Retry};

/// Longest description that is shown, in bytes.
const DESCRIPTION_BYTES: usize = 4000;
/// Longest text on a flag, in bytes.
const FLAG_BYTES: usize = 300;
/// Longest example that is shown, in bytes.
const EXAMPLE_BYTES: usize = 2000;
/// Most examples.
const EXAMPLES: usize = 5;
/// Most flags that are listed.
const FLAGS: usize = 200;
/// Where the texts on flags begin.
const COLUMN: usize = 30;

/// The help of one function. `command` is how it was called, such as `brig call orders list`.
pub(super) fn function(command: &str, about: &FunctionsDescribeResult, shape: &Shape, reserved: &Reserved) -> String {
    let mut text = block(&about.description, DESCRIPTION_BYTES);
    text.push_str(&format!("\nUsage: {command} [FLAGS] [OPTIONS]\n"));
    text.push_str(&flag_list(shape, reserved));
    text.push_str(&options());
    text.push_str(&examples(command, about, shape, reserved));
    let effect = match about.effect {
        Effect::Read => "read",
        Effect::Write => "write",
    };
    let retry = match about.retry {
        Retry::Safe => "safe to call again",
        Retry::Keyed => "safe to call again with the same --idempotency-key",
        Retry::Never => "not to be called again when its effect is unknown",
    };
    text.push_str(&format!("\n{}: effect {effect}; {retry}; at most {} ms\n", escaped(&about.function, 200), about.timeout_ms));
    text.push_str(&format!("\n{}\n", Exit::call_help()));
    text
}

fn flag_list(shape: &Shape, reserved: &Reserved) -> String {
    let all = shape.all();
    let mut text = String::new();
    if !all.is_empty() {
        text.push_str("\nFlags:\n");
    }
    let spelt = all.iter().map(|found| (found, shape.flag(&found.path, &|name| reserved.has(name))));
    let mut without = shape.without_flag;
    let mut shown = 0;
    for (found, flag) in spelt {
        match flag {
            Some(flag) if shown < FLAGS => {
                text.push_str(&line(&flag, found));
                shown += 1;
            }
            _ => without += 1,
        }
    }
    if without > 0 {
        text.push_str(&format!("  {without} more members are not listed; --json gives any\n"));
    }
    text
}

fn line(flag: &str, found: &Found<'_>) -> String {
    let field = found.field;
    let placeholder = escaped(&field.kind.placeholder(), FLAG_BYTES);
    let left = match field.kind {
        Kind::Boolean => format!("--{flag}, --no-{flag}"),
        _ => format!("--{flag} {placeholder}"),
    };
    let mut right: Vec<String> = Vec::new();
    if !field.about.is_empty() {
        right.push(one_line(&field.about));
    }
    if field.required {
        right.push("[required]".to_owned());
    }
    if let Some(default) = &field.default {
        right.push(format!("[default: {}]", escaped(&default.to_string(), 100)));
    }
    match field.kind {
        Kind::List(_) => right.push(format!("[can be repeated; --no-{flag} for none]")),
        Kind::Group(_) => right.push("[or its members, below]".to_owned()),
        _ => {}
    }
    row(&escaped(&left, FLAG_BYTES), &right.join(" "))
}

fn row(left: &str, right: &str) -> String {
    let width = COLUMN - 2;
    if left.chars().count() < width { format!("  {left:<width$}{right}\n") } else { format!("  {left}\n{:COLUMN$}{right}\n", "") }
        .lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

fn options() -> String {
    let mut text = "\nOptions:\n".to_owned();
    for (left, right) in [
        ("--json JSON|-", "the input, or what flags do not say of it; - reads standard input"),
        ("--json-file FILE", "the same from a file"),
        ("--raw", "print a string without its quotes"),
        ("--timeout TIME", "give up after so long, such as 500ms or 5s"),
        ("--idempotency-key KEY", "same key and input: the same answer, nothing run twice"),
        ("--socket PATH", "use the brigd on this socket"),
        ("--help", "print this"),
    ] {
        text.push_str(&row(left, right));
    }
    text
}

fn examples(command: &str, about: &FunctionsDescribeResult, shape: &Shape, reserved: &Reserved) -> String {
    let mut text = String::new();
    for example in about.examples.iter().take(EXAMPLES) {
        let Ok(input) = serde_json::from_str::<Members>(example.input.get()) else { continue };
        let arguments = flags::arguments(shape, &input, &|name| reserved.has(name));
        let words: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
        let title = if example.description.is_empty() { String::new() } else { format!("  {}\n", one_line(&example.description)) };
        text.push_str(&format!("{title}    {}\n", escaped(&format!("{command} {}", words.join(" ")), EXAMPLE_BYTES)));
    }
    if text.is_empty() { text } else { format!("\nExamples:\n{text}") }
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,:/@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// The functions of one collection.
pub(super) fn collection(command: &str, functions: &[&FunctionListed]) -> String {
    let mut text = format!("Usage: {command} FUNCTION [FLAGS] [OPTIONS]\n\nFunctions:\n");
    for function in functions {
        let name = names::own_name(function);
        text.push_str(&row(&escaped(&kebab(name), 200), &one_line(&function.description)));
    }
    text.push_str(&format!("\n{command} FUNCTION --help tells its flags.\n"));
    text
}

fn one_line(text: &str) -> String {
    escaped(&text.split_whitespace().collect::<Vec<_>>().join(" "), FLAG_BYTES)
}

fn block(text: &str, limit: usize) -> String {
    let mut room = limit;
    let mut out = String::new();
    for line in text.lines() {
        let line = escaped(line.trim_end(), room);
        room = room.saturating_sub(line.len() + 1);
        out.push_str(&line);
        out.push('\n');
        if room == 0 {
            break;
        }
    }
    out
}

#[cfg(test)]
#[path = "help_tests.rs"]
mod tests;
