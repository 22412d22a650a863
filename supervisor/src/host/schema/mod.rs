//! JSON Schemas of host functions.
//!
//! Owns compiling (drafts 7 and 2020-12, also 4, 6 and 2019-09 when declared; never
//! with the network or a file), judging a payload, and saying what is wrong with it.
//! Never lets a schema or a payload run away: see [`graph`] for schemas,
//! [`Schema::cost`] for payloads.
//!
//! Formats: those of the draft are asserted (`date`, `date-time`, `time`,
//! `duration`, `email`, `hostname`, `ipv4`, `ipv6`, `uri`, `uri-reference`,
//! `uri-template`, `iri`, `iri-reference`, `json-pointer`, `relative-json-pointer`,
//! `regex`, `uuid`); any other (`uint32`, `double`, `byte`, …) is a note.

mod alternatives;
pub(crate) mod cache;
mod explain;
pub(crate) mod graph;
mod leaf;
mod lint;
pub(crate) mod payload;
pub(crate) mod phrase;
mod redact;

#[cfg(test)]
mod tests;

use brig_protocol::json::{self, Bounds, Counts};
use brig_protocol::limits::{NESTING_LEVELS, SCHEMA_BYTES};
use graph::Shape;
use jsonschema::{Draft, PatternOptions, ValidationOptions, Validator};
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Steps back that one match of a pattern with look-around or back-references may
/// take. Patterns without them are matched in linear time and take none.
const BACKTRACK_STEPS: usize = 10_000;
/// Largest compiled pattern, in bytes.
const PATTERN_BYTES: usize = 1 << 20;
/// Most values in a payload that is checked by patterns that step back.
const BACKTRACKED_NODES: u64 = 4_000;
/// Most checks (values × subschemas) that one payload may take.
const WORK: u64 = 500_000_000;
/// Most steps of recursion in one check; each takes at most [`STEP_BYTES`] of stack.
const STEPS: u64 = 110_000;
// No schema that compiles takes more of any payload that can be read: nothing to look at
// when one comes.
const _: () =
    assert!((NESTING_LEVELS as u64 + 1) * (graph::CHAIN + 1) <= STEPS, "the longest chain at the deepest place outgrows the stack");
/// Stack that one step of recursion takes at most (2 KiB were measured, unoptimised).
pub(crate) const STEP_BYTES: usize = 4 * 1024;

/// A schema that can not be used, as a half sentence that follows "the schema".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct SchemaFault(pub(crate) String);

/// What judging one payload takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Checks, at most.
    pub(crate) work: u64,
    /// Steps of recursion, at most.
    pub(crate) steps: u64,
    /// Whether a pattern may step back.
    pub(crate) backtracks: bool,
}

impl Cost {
    /// Nothing to check.
    pub(crate) const NONE: Self = Self { work: 0, steps: 0, backtracks: false };
    /// Passing once over a long text.
    pub(crate) const LONG: Self = Self { work: 100_000, steps: 0, backtracks: false };

    /// Two payloads or schemas, one after the other.
    pub(crate) const fn and(self, other: Self) -> Self {
        let steps = if self.steps > other.steps { self.steps } else { other.steps };
        Self { work: self.work.saturating_add(other.work), steps, backtracks: self.backtracks || other.backtracks }
    }

    /// Whether nothing of this is more than in `bound`.
    pub(crate) const fn within(self, bound: Self) -> bool {
        self.work <= bound.work && self.steps <= bound.steps && (bound.backtracks || !self.backtracks)
    }
}

/// One compiled schema.
#[derive(Debug)]
pub(crate) struct Schema {
    text: Box<str>,
    draft: Draft,
    validator: Validator,
    shape: Shape,
    backtracks: bool,
    lint: Vec<String>,
}

impl Schema {
    /// Compiles the text of a schema. Takes milliseconds and much stack: call it
    /// through [`cache::SchemaCache`].
    ///
    /// # Errors
    /// [`SchemaFault`] with what is wrong and where.
    pub(crate) fn compile(text: &str) -> Result<Self, SchemaFault> {
        let value = readable(text)?;
        let draft = draft_of(&value)?;
        let shape = graph::shape(&value).map_err(SchemaFault)?;
        let linear = options(draft).with_pattern_options(linear_patterns()).build(&value);
        let (validator, backtracks) = match linear {
            Ok(validator) => (validator, false),
            Err(_) => (
                options(draft).with_pattern_options(bounded_patterns()).build(&value).map_err(|fault| does_not_compile(&fault, &value))?,
                true,
            ),
        };
        if backtracks && graph::inverted_patterns(&value).any(|pattern| !is_linear(draft, pattern)) {
            return Err(SchemaFault(
                "has a pattern with look-around or back-references below \"not\", \"if\" or \"oneOf\", where a match that is given up \
                 would count as a yes; write it without"
                    .to_owned(),
            ));
        }
        let lint = lint::misspellings(&value);
        Ok(Self { text: text.into(), draft, validator, shape, backtracks, lint })
    }

    /// About how many bytes this keeps in memory, within a factor of a few.
    pub(crate) fn weight(&self) -> usize {
        self.text.len().saturating_mul(50).saturating_add(self.shape.patterns.saturating_mul(32 * 1024)).saturating_add(4 * 1024)
    }

    /// Keywords that look misspelt, each a sentence with its place.
    pub(crate) fn lint(&self) -> &[String] {
        &self.lint
    }

    /// Whether a pattern needs steps back, of which there is a limit: then a text can
    /// be refused for being too hard to match.
    pub(crate) const fn steps_back(&self) -> bool {
        self.backtracks
    }

    /// The payload without what is marked as secret (`writeOnly`, `format: "password"`) and
    /// without what nothing describes; nothing when that takes too long to find out.
    pub(crate) fn redacted(&self, payload: &Value) -> Option<Value> {
        redact::redacted(&serde_json::from_str(&self.text).ok()?, payload)
    }

    /// What judging the largest payload that is judged takes.
    pub(crate) fn worst_cost(&self) -> Cost {
        let levels = u64::from(NESTING_LEVELS) + 1;
        Cost { work: WORK, steps: self.steps(levels), backtracks: self.backtracks }
    }

    fn steps(&self, levels: u64) -> u64 {
        self.shape.longest.unwrap_or(u64::MAX).min(levels * (self.shape.chain + 1))
    }

    /// What judging a payload with these counts takes.
    ///
    /// # Errors
    /// A half sentence that follows "the input" when it is more than is spent.
    pub(crate) fn cost(&self, counts: Counts) -> Result<Cost, String> {
        let steps = self.steps(u64::from(counts.depth) + 1);
        let work = counts.nodes.saturating_mul(self.shape.expansion);
        if work > WORK || (self.backtracks && counts.nodes > BACKTRACKED_NODES) {
            return Err("is too large and its schema too intricate to be checked; send less at once".to_owned());
        }
        Ok(Cost { work, steps, backtracks: self.backtracks })
    }

    /// Whether a payload is valid. Call only after [`Schema::cost`] allowed it, on a
    /// stack that has room for its steps.
    pub(crate) fn is_valid(&self, payload: &Value) -> bool {
        self.holds(payload).unwrap_or(false)
    }

    /// The same, or nothing when the validator failed: whoever asks decides which way
    /// is the careful one.
    pub(crate) fn holds(&self, payload: &Value) -> Option<bool> {
        // The pattern engine is known to panic on odd patterns.
        catch_unwind(AssertUnwindSafe(|| self.validator.is_valid(payload))).ok()
    }

    /// What is wrong with a payload that is not valid: one problem a line, bounded.
    /// `hidden`: no value of the payload is shown.
    pub(crate) fn explain(&self, payload: &Value, hidden: bool) -> String {
        let fallback = || "does not match its schema".to_owned();
        let Ok(schema) = readable(&self.text) else { return fallback() };
        catch_unwind(AssertUnwindSafe(|| explain::problems(&schema, self.draft, payload, hidden))).unwrap_or_else(|_| fallback())
    }
}

/// Bounds and reads the text of a schema.
fn readable(text: &str) -> Result<Value, SchemaFault> {
    if text.len() > SCHEMA_BYTES {
        return Err(SchemaFault(format!("has {} bytes; at most {SCHEMA_BYTES} are taken", text.len())));
    }
    json::count(text.as_bytes(), Bounds { depth: graph::SCHEMA_LEVELS, nodes: 40_000 })
        .map_err(|fault| SchemaFault(format!("is {fault}")))?;
    let value = payload::tree(text).map_err(|fault| SchemaFault(fault.0))?;
    if value.is_object() || value.is_boolean() { Ok(value) } else { Err(SchemaFault("is neither an object nor true or false".to_owned())) }
}

fn draft_of(schema: &Value) -> Result<Draft, SchemaFault> {
    let Some(declared) = schema.get("$schema") else { return Ok(Draft::Draft202012) };
    match declared.as_str().map(|uri| uri.trim_end_matches('#').trim_start_matches("https").trim_start_matches("http")) {
        Some("://json-schema.org/draft/2020-12/schema") => Ok(Draft::Draft202012),
        Some("://json-schema.org/draft/2019-09/schema") => Ok(Draft::Draft201909),
        Some("://json-schema.org/draft-07/schema") => Ok(Draft::Draft7),
        Some("://json-schema.org/draft-06/schema") => Ok(Draft::Draft6),
        Some("://json-schema.org/draft-04/schema") => Ok(Draft::Draft4),
        _ => Err(SchemaFault(format!(
            "declares \"$schema\": {}, which is not known; use \"https://json-schema.org/draft/2020-12/schema\" or \
             \"http://json-schema.org/draft-07/schema#\", or leave it out for 2020-12",
            phrase::scalar(declared)
        ))),
    }
}

fn options(draft: Draft) -> ValidationOptions<'static> {
    jsonschema::options().offline().with_draft(draft).should_validate_formats(true).should_ignore_unknown_formats(true)
}

fn linear_patterns() -> PatternOptions<jsonschema::Regex> {
    PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES)
}

/// Whether a pattern is matched in linear time.
fn is_linear(draft: Draft, pattern: &str) -> bool {
    options(draft).with_pattern_options(linear_patterns()).build(&serde_json::json!({"pattern": pattern})).is_ok()
}

fn bounded_patterns() -> PatternOptions<jsonschema::FancyRegex> {
    PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_STEPS).size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES)
}

fn does_not_compile(fault: &jsonschema::ValidationError<'_>, schema: &Value) -> SchemaFault {
    let place = fault.instance_path().to_string();
    let given = schema.pointer(&place);
    let keyword = place.rsplit('/').next().unwrap_or_default();
    let what = match (keyword, given) {
        ("pattern", Some(pattern)) => {
            format!("has a pattern that is not a regular expression, or too large a one: {}", phrase::scalar(pattern))
        }
        ("type", Some(kind)) => format!(
            "has the type {}; types are \"array\", \"boolean\", \"integer\", \"null\", \"number\", \"object\" and \"string\"",
            phrase::scalar(kind)
        ),
        ("items", Some(Value::Array(_))) => {
            "has a list as \"items\"; write \"prefixItems\" (2020-12), or declare \"$schema\": \"http://json-schema.org/draft-07/schema#\""
                .to_owned()
        }
        _ => format!("is not a JSON Schema: {}", brig_protocol::escape::escaped(&fault.masked().to_string(), 200)),
    };
    let at = if place.is_empty() { String::new() } else { format!(" (at {})", brig_protocol::escape::escaped(&place, 200)) };
    SchemaFault(format!("{what}{at}"))
}
