//! Flags into the members of an input, and back.
//!
//! Owns the syntax of values. What goes in by flags comes out the same: every value keeps
//! its text. Never opens a file, never talks to brigd.

use super::shape::{Found, Kind, Shape, choice_text};
use crate::cli::Fault;
use crate::cli::members::Members;
use crate::cli::spelling;
use brig::protocol::escape::escaped;
use brig::protocol::names::kebab;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Number, Value};

/// Longest part of an argument in a message, in bytes.
const SHOWN_BYTES: usize = 200;

/// One member and its value.
#[derive(Debug)]
pub(super) struct Setting {
    path: Vec<String>,
    flag: String,
    value: Given,
}

#[derive(Debug)]
enum Given {
    One(Box<RawValue>),
    /// Elements, in the order they were given.
    Each(Vec<Box<RawValue>>),
}

/// Reads flags and their values.
pub(super) fn parse(shape: &Shape, tokens: &[String]) -> Result<Vec<Setting>, Fault> {
    let mut settings: Vec<Setting> = Vec::new();
    let mut tokens = tokens.iter().peekable();
    while let Some(token) = tokens.next() {
        let Some(written) = token.strip_prefix("--") else {
            return Err(wrong(token, "comes after nothing that takes a value"));
        };
        let (flag, value) = written.split_once('=').map_or((written, None), |(flag, value)| (flag, Some(value)));
        let (found, without) = meaning(shape, flag)?;
        let elements = matches!(found.field.kind, Kind::List(_));
        let given = match (&found.field.kind, without, value) {
            (_, true, Some(_)) => return Err(wrong(&dashed(flag), "takes no value")),
            (Kind::List(_), true, None) => Given::Each(Vec::new()),
            (_, true, None) => Given::One(raw("false")?),
            (Kind::Boolean, false, None) => Given::One(raw("true")?),
            (kind, false, value) => {
                let next = tokens.next_if(|next| value.is_none() && !next.starts_with("--"));
                let text = value.or(next.map(String::as_str)).ok_or_else(|| no_value(flag))?;
                let read = read(element(kind), text).map_err(|why| wrong(&dashed(flag), &why))?;
                if elements { Given::Each(vec![read]) } else { Given::One(read) }
            }
        };
        add(&mut settings, &found, flag, given)?;
    }
    Ok(settings)
}

fn element(kind: &Kind) -> &Kind {
    match kind {
        Kind::List(element) => element,
        other => other,
    }
}

fn add(settings: &mut Vec<Setting>, found: &Found<'_>, flag: &str, given: Given) -> Result<(), Fault> {
    let Some(before) = settings.iter_mut().find(|setting| setting.path == found.path) else {
        let path = found.path.iter().map(|name| (*name).to_owned()).collect();
        settings.push(Setting { path, flag: flag.to_owned(), value: given });
        return Ok(());
    };
    match (&mut before.value, given) {
        (Given::Each(before), Given::Each(more)) if !before.is_empty() && !more.is_empty() => before.extend(more),
        _ => return Err(wrong(&dashed(flag), &format!("is given twice: {:?} takes one value", shown(&found.name())))),
    }
    Ok(())
}

/// The one member that a flag means.
pub(super) fn meaning<'s>(shape: &'s Shape, flag: &str) -> Result<(Found<'s>, bool), Fault> {
    let mut meanings = shape.meanings(flag);
    match (meanings.len(), meanings.pop()) {
        (1, Some(one)) => Ok(one),
        (0, _) | (_, None) => Err(unknown(shape, flag)),
        (_, Some(last)) => {
            meanings.push(last);
            let all: Vec<String> = meanings
                .iter()
                .map(|(found, without)| format!("{}{:?}", if *without { "no " } else { "" }, shown(&found.name())))
                .collect();
            Err(wrong(&dashed(flag), &format!("can mean {}: write the member's own name, or use --json", all.join(" and "))))
        }
    }
}

fn unknown(shape: &Shape, flag: &str) -> Fault {
    let spellings: Vec<String> =
        shape.all().iter().map(|found| found.path.iter().map(|name| kebab(name)).collect::<Vec<_>>().join(".")).collect();
    let near = spelling::nearest(flag, spellings.iter().map(String::as_str)).map(|near| format!("; did you mean --{}?", shown(near)));
    let others = if shape.without_flag > 0 { "; some members have no flag and need --json" } else { "" };
    wrong(&dashed(flag), &format!("is no flag of this function{}", near.as_deref().unwrap_or(others)))
}

fn dashed(flag: &str) -> String {
    format!("--{flag}")
}

fn shown(text: &str) -> String {
    escaped(text, SHOWN_BYTES)
}

fn wrong(what: &str, why: &str) -> Fault {
    Fault::usage(format!("{} {why}", shown(what)))
}

fn no_value(flag: &str) -> Fault {
    wrong(&dashed(flag), &format!("needs a value; one that begins with -- is written --{}=VALUE", shown(flag)))
}

/// The JSON of a value as it was written.
fn read(kind: &Kind, text: &str) -> Result<Box<RawValue>, String> {
    let given = || format!("{:?}", shown(text));
    let plain = |what: &str| format!("is {what}, not {}", given());
    match kind {
        Kind::Text => to_raw_value(text).map_err(|fault| fault.to_string()),
        Kind::Integer => match text.strip_prefix('-').unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit()) {
            true => number(text).ok_or_else(|| plain("a whole number")),
            false => Err(plain("a whole number")),
        },
        Kind::Number => number(text).ok_or_else(|| plain("a number")),
        Kind::Boolean if matches!(text, "true" | "false") => raw(text).map_err(|fault| fault.message),
        Kind::Boolean => Err(plain("true or false")),
        Kind::Choice(choices) => choice(choices, text),
        Kind::List(_) | Kind::Group(_) | Kind::Json => {
            let json: &RawValue = serde_json::from_str(text).map_err(|fault| format!("is JSON, and {} is none: {fault}", given()))?;
            if matches!(kind, Kind::Group(_)) && serde_json::from_str::<Members>(json.get()).is_err() {
                return Err(plain("a JSON object"));
            }
            Ok(json.to_owned())
        }
    }
}

/// A JSON number with all its digits.
fn number(text: &str) -> Option<Box<RawValue>> {
    let first = text.bytes().next()?;
    let read: &RawValue = serde_json::from_str(text).ok()?;
    ((first == b'-' || first.is_ascii_digit()) && read.get() == text).then(|| read.to_owned())
}

fn choice(choices: &[Value], text: &str) -> Result<Box<RawValue>, String> {
    let fits: Vec<&Value> = choices.iter().filter(|choice| choice_text(choice) == text).collect();
    let list = |all: &[&Value]| shown(&all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
    match fits.as_slice() {
        [one] => to_raw_value(one).map_err(|fault| fault.to_string()),
        [] => Err(format!("is one of {}, not {:?}", list(&choices.iter().collect::<Vec<_>>()), shown(text))),
        several => Err(format!("can mean {}: use --json", list(several))),
    }
}

fn raw(text: &str) -> Result<Box<RawValue>, Fault> {
    RawValue::from_string(text.to_owned()).map_err(|fault| Fault::usage(fault.to_string()))
}

/// Puts the flags over the members of the JSON. Outer ones come first, so that a dotted
/// flag changes what the flag of its object gave.
pub(super) fn apply(mut members: Members, mut settings: Vec<Setting>) -> Result<Members, Fault> {
    settings.sort_by_key(|setting| setting.path.len());
    for setting in settings {
        let value = match setting.value {
            Given::One(value) => value,
            Given::Each(elements) => to_raw_value(&elements).map_err(|fault| Fault::usage(fault.to_string()))?,
        };
        set(&mut members, &setting.path, value, &setting.flag)?;
    }
    Ok(members)
}

fn set(members: &mut Members, path: &[String], value: Box<RawValue>, flag: &str) -> Result<(), Fault> {
    let Some((first, rest)) = path.split_first() else { return Ok(()) };
    if rest.is_empty() {
        members.set(first.clone(), value);
        return Ok(());
    }
    let mut inner = match members.get(first) {
        None => Members::default(),
        Some(raw) => serde_json::from_str(raw.get())
            .map_err(|_| wrong(&dashed(flag), &format!("goes into {:?}, which the JSON says is no object", shown(first))))?,
    };
    set(&mut inner, rest, value, flag)?;
    members.set(first.clone(), to_raw_value(&inner).map_err(|fault| Fault::usage(fault.to_string()))?);
    Ok(())
}

/// The arguments that give an input: flags, and `--json` for what has none.
pub(super) fn arguments(shape: &Shape, input: &Members, reserved: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut rest = Members::default();
    let writer = Writer { whole: shape, reserved };
    for (name, value) in input.iter() {
        match shape.fields.iter().find(|field| field.name == name).and_then(|field| writer.member(&mut vec![name], &field.kind, value)) {
            Some(written) => arguments.extend(written),
            None => rest.set(name.to_owned(), value.to_owned()),
        }
    }
    if rest.iter().next().is_some() {
        // Members always serialise.
        arguments.extend(["--json".to_owned(), serde_json::to_string(&rest).unwrap_or_default()]);
    }
    arguments
}

struct Writer<'s> {
    whole: &'s Shape,
    reserved: &'s dyn Fn(&str) -> bool,
}

impl Writer<'_> {
    /// Nothing for what its flag can not say.
    fn member(&self, path: &mut Vec<&str>, kind: &Kind, value: &RawValue) -> Option<Vec<String>> {
        let flag = self.whole.flag(path, self.reserved)?;
        match kind {
            Kind::Boolean => {
                let without = format!("no-{flag}");
                let is_plain = self.whole.meanings(&without).len() == 1;
                match value.get() {
                    "true" => Some(vec![dashed(&flag)]),
                    "false" if is_plain => Some(vec![dashed(&without)]),
                    "false" => Some(vec![format!("--{flag}=false")]),
                    _ => None,
                }
            }
            Kind::List(element) => self.list(&flag, element, value),
            Kind::Group(shape) => {
                let members: Members = serde_json::from_str(value.get()).ok()?;
                let inner: Option<Vec<Vec<String>>> = members.iter().map(|(name, value)| self.inner(path, shape, name, value)).collect();
                match inner {
                    Some(inner) if !inner.is_empty() => Some(inner.concat()),
                    _ => Some(pair(&flag, value.get().to_owned())),
                }
            }
            scalar => Some(pair(&flag, written(scalar, value)?)),
        }
    }

    fn inner(&self, path: &[&str], shape: &Shape, name: &str, value: &RawValue) -> Option<Vec<String>> {
        let field = shape.fields.iter().find(|field| field.name == name)?;
        let mut path = path.to_vec();
        path.push(&field.name);
        self.member(&mut path, &field.kind, value)
    }

    fn list(&self, flag: &str, element: &Kind, value: &RawValue) -> Option<Vec<String>> {
        let elements: Vec<Box<RawValue>> = serde_json::from_str(value.get()).ok()?;
        if elements.is_empty() {
            let without = format!("no-{flag}");
            return (self.whole.meanings(&without).len() == 1).then(|| vec![dashed(&without)]);
        }
        let each: Option<Vec<Vec<String>>> = elements.iter().map(|value| Some(pair(flag, written(element, value)?))).collect();
        Some(each?.concat())
    }
}

/// A value as it is written, if reading it gives the same.
fn written(kind: &Kind, value: &RawValue) -> Option<String> {
    let text = match kind {
        Kind::Text => serde_json::from_str::<String>(value.get()).ok()?,
        Kind::Choice(_) => choice_text(&serde_json::from_str(value.get()).ok()?),
        _ => value.get().to_owned(),
    };
    let again = read(kind, &text).ok()?;
    same(again.get(), value.get()).then_some(text)
}

fn same(one: &str, other: &str) -> bool {
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    one == other || (value(one) == value(other) && serde_json::from_str::<Number>(one).is_err())
}

/// A value that could be taken for a flag is joined to its own.
fn pair(flag: &str, value: String) -> Vec<String> {
    if value.starts_with('-') { vec![format!("--{flag}={value}")] } else { vec![dashed(flag), value] }
}

#[cfg(test)]
#[path = "flags_tests.rs"]
mod tests;
