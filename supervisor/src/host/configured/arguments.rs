//! From an input to the arguments of a program, never through a shell.
//!
//! Owns the placeholders: which there are, what each may stand for, how a value is
//! written, and when it is refused. A value is never split, never read again, and never
//! becomes an option that the operator did not write:
//!
//! - `{input.a.b}` is a member of the input whose schema says that it is a string, a
//!   number or a boolean; `{{` and `}}` are braces.
//! - An argument that begins with a value must not begin with `-`, unless a `--` comes
//!   before it or the placeholder says `{input.a:dash}`. An argument of dashes and a value
//!   (`--{input.a}`) is refused when it is loaded: the value would choose the option.
//! - A value that is not there, or null, drops its argument; in a list of arguments, the
//!   whole list.
//! - NUL, and what is too long for an argument, is refused.

use crate::host::schema::phrase::{kind, nearest, quoted};
use serde_json::Value;

/// Longest argument, in bytes: the kernel's bound is a page table of 128 KiB with its NUL.
const ARGUMENT_BYTES: usize = 128 * 1024 - 1;
/// Most bytes of all arguments and variables.
const ALL_BYTES: usize = 1024 * 1024;

/// What besides the input a call can tell its program.
#[derive(Clone, Debug)]
pub(crate) struct CallFacts {
    /// The same for every delivery of this call.
    pub(crate) idempotency_key: String,
    /// For whom it runs.
    pub(crate) uid: u32,
}

/// Text with placeholders.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Input { path: Vec<String>, dash: bool },
    IdempotencyKey,
    Uid,
}

/// One entry of the list.
#[derive(Clone, Debug)]
pub(crate) enum Argument {
    /// Stands by itself.
    One(Template),
    /// Stand together or not at all.
    Group(Vec<Template>),
}

/// The arguments of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments(pub(crate) Vec<Argument>);

impl Template {
    /// Reads a text; each placeholder must be described by the input's schema.
    ///
    /// # Errors
    /// A half sentence.
    pub(crate) fn parse(text: &str, schema: &Value) -> Result<Self, String> {
        if text.contains('\0') {
            return Err("holds a NUL, which no argument can".to_owned());
        }
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, tail) = rest.split_at(at);
            plain.push_str(before);
            if let Some(after) = tail.strip_prefix("{{") {
                plain.push('{');
                rest = after;
            } else if let Some(after) = tail.strip_prefix("}}") {
                plain.push('}');
                rest = after;
            } else if let Some((inside, after)) = tail.strip_prefix('{').and_then(|tail| tail.split_once('}')) {
                if !plain.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                }
                parts.push(placeholder(inside, schema)?);
                rest = after;
            } else {
                return Err(format!("{} has a brace without its partner; write {{{{ or }}}} for a brace", quoted(text)));
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() || parts.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Self { parts })
    }

    /// The same for an argument, which must not let a value choose an option.
    ///
    /// # Errors
    /// A half sentence.
    pub(crate) fn parse_argument(text: &str, schema: &Value) -> Result<Self, String> {
        let template = Self::parse(text, schema)?;
        if let [Part::Text(dashes), Part::Input { .. }, ..] = template.parts.as_slice()
            && dashes.bytes().all(|byte| byte == b'-')
        {
            return Err(format!("{} would let the input choose an option; write the option, and the value behind it", quoted(text)));
        }
        Ok(template)
    }

    /// Whether any placeholder is about the input.
    fn looks_at_input(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Input { .. }))
    }

    /// The text; nothing when a value is not there. `guarded`: it must not become an option.
    fn rendered(&self, input: &Value, facts: &CallFacts, guarded: bool) -> Result<Option<String>, String> {
        let mut text = String::new();
        for part in &self.parts {
            let begins = text.is_empty();
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::IdempotencyKey => text.push_str(&facts.idempotency_key),
                Part::Uid => text.push_str(&facts.uid.to_string()),
                Part::Input { path, dash } => {
                    let Some(value) = look_up(input, path).filter(|value| !value.is_null()) else { return Ok(None) };
                    let value = written(value, path)?;
                    if guarded && begins && !dash && value.starts_with('-') {
                        return Err(format!("has a {} that begins with \"-\", which the program could take for an option", shown(path)));
                    }
                    text.push_str(&value);
                }
            }
        }
        if text.len() > ARGUMENT_BYTES {
            return Err(format!("makes an argument of {} bytes; at most {ARGUMENT_BYTES} can be passed", text.len()));
        }
        Ok(Some(text))
    }

    /// The value of a variable; nothing when a value is not there.
    ///
    /// # Errors
    /// A half sentence that follows "the input".
    pub(crate) fn variable(&self, input: &Value, facts: &CallFacts) -> Result<Option<String>, String> {
        self.rendered(input, facts, false)
    }
}

impl Arguments {
    /// The arguments for one input.
    ///
    /// # Errors
    /// A half sentence that follows "the input".
    pub(crate) fn rendered(&self, input: &Value, facts: &CallFacts) -> Result<Vec<String>, String> {
        let mut all: Vec<String> = Vec::new();
        let mut options_over = false;
        for argument in &self.0 {
            let mut group = Vec::new();
            let templates = match argument {
                Argument::One(template) => std::slice::from_ref(template),
                Argument::Group(templates) => templates.as_slice(),
            };
            let mut over = options_over;
            for template in templates {
                let Some(text) = template.rendered(input, facts, !over)? else {
                    group.clear();
                    over = options_over;
                    break;
                };
                over |= text == "--" && !template.looks_at_input();
                group.push(text);
            }
            options_over = over;
            all.append(&mut group);
        }
        let bytes: usize = all.iter().map(|argument| argument.len() + 1).sum();
        if bytes > ALL_BYTES {
            return Err(format!("makes arguments of {bytes} bytes; at most {ALL_BYTES} can be passed"));
        }
        Ok(all)
    }
}

const PLACEHOLDERS: &str = "{input.NAME}, {input.NAME:dash}, {call.idempotency_key} and {principal.uid}";

fn placeholder(inside: &str, schema: &Value) -> Result<Part, String> {
    match inside {
        "call.idempotency_key" => return Ok(Part::IdempotencyKey),
        "principal.uid" => return Ok(Part::Uid),
        _ => {}
    }
    let (name, dash) = match inside.split_once(':') {
        None => (inside, false),
        Some((name, "dash")) => (name, true),
        Some((_, word)) => return Err(format!("has a placeholder with {}; only \":dash\" can stand there", quoted(word))),
    };
    let unknown = || format!("has the placeholder {}; there are {PLACEHOLDERS}", quoted(&format!("{{{inside}}}")));
    let path: Vec<String> = name.strip_prefix("input.").ok_or_else(unknown)?.split('.').map(str::to_owned).collect();
    if path.iter().any(|segment| segment.is_empty() || segment.contains(|c: char| c.is_whitespace() || c == '{')) {
        return Err(unknown());
    }
    described(schema, &path)?;
    Ok(Part::Input { path, dash })
}

/// Whether the schema says that the member is a scalar.
fn described(schema: &Value, path: &[String]) -> Result<(), String> {
    let mut here = schema;
    for segment in path {
        let members = here.get("properties").and_then(Value::as_object);
        here = members.and_then(|members| members.get(segment)).ok_or_else(|| {
            let near = members.and_then(|members| nearest(segment, members.keys().map(String::as_str)));
            let advice = near.map_or_else(String::new, |near| format!("; did you mean {}?", quoted(near)));
            format!("has a placeholder for {}, which input_schema does not have under `properties`{advice}", shown(path))
        })?;
    }
    if is_scalar(here) {
        return Ok(());
    }
    let name = shown(path);
    Err(format!(
        "has a placeholder for {name}, which input_schema does not say is a string, a number or a boolean; lists and objects go by standard input"
    ))
}

fn is_scalar(schema: &Value) -> bool {
    let word = |word: &Value| matches!(word.as_str(), Some("string" | "number" | "integer" | "boolean" | "null"));
    match (schema.get("type"), schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(words)), _, _) => words.iter().all(word),
        (Some(one), _, _) => word(one),
        (None, Some(Value::Array(values)), _) => values.iter().all(|value| !value.is_array() && !value.is_object()),
        (None, None, Some(value)) => !value.is_array() && !value.is_object(),
        _ => false,
    }
}

fn look_up<'v>(input: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(input, |here, segment| here.as_object()?.get(segment))
}

/// A value as it stands in an argument: strings as they are, `true` and `false`, whole
/// numbers by their digits, other numbers by the shortest decimal that is the same number.
fn written(value: &Value, path: &[String]) -> Result<String, String> {
    match value {
        Value::String(text) if text.contains('\0') => Err(format!("has a {} with a NUL, which no argument can hold", shown(path))),
        Value::String(text) => Ok(text.clone()),
        Value::Bool(yes) => Ok(yes.to_string()),
        Value::Number(number) => number_text(number)
            .ok_or_else(|| format!("has a {} that is too large to be passed on digit by digit; send it as a string", shown(path))),
        other => Err(format!("has {} as its {}, which can not be an argument", kind(other), shown(path))),
    }
}

/// Above this not every whole number is one of its own.
const EXACT: f64 = 9_007_199_254_740_992.0;

fn number_text(number: &serde_json::Number) -> Option<String> {
    if number.is_i64() || number.is_u64() {
        return Some(number.to_string());
    }
    let float = number.as_f64()?;
    (float.abs() < EXACT).then(|| if float == 0.0 { "0".to_owned() } else { format!("{float}") })
}

fn shown(path: &[String]) -> String {
    quoted(&path.join("."))
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
