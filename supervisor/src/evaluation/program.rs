//! A program that may run, and the request that it came in.
//!
//! Owns the bytes of the client's line for as long as they are needed. Never copies
//! the program, its inputs or its schemas out of it.

use crate::api;
use crate::connection::budget::Held;
use brig_protocol::client::{Capture, Form, HostFunctions, Language, Permissions, Warning};
use brig_protocol::codes::RequestCode;
use brig_protocol::limits::Limits;
use brig_protocol::rpc::ErrorData;
use brig_protocol::worker::{CollectionTable, EvaluateOrder};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;

/// The member by which a request runs once, as it stands in the text.
const KEY_MEMBER: &str = "\"idempotencyKey\"";

/// What a client asked to run, checked once.
#[derive(Debug)]
pub(crate) struct Program<'a> {
    /// The text.
    pub(crate) source: Cow<'a, str>,
    /// How to read it.
    pub(crate) form: Form,
    /// In which language.
    pub(crate) language: Language,
    /// A JSON object.
    pub(crate) inputs: Option<&'a RawValue>,
    /// What the client offers.
    pub(crate) functions: HostFunctions<'a>,
    /// Which configured collections it gets; all when left out.
    pub(crate) collections: Option<Vec<String>>,
    /// What it narrows.
    pub(crate) permissions: Permissions<'a>,
    /// What holds.
    pub(crate) limits: Limits,
    /// IANA time zone.
    pub(crate) time_zone: Option<String>,
    /// What of the console the answer carries.
    pub(crate) capture: Capture,
    /// Whether lines are sent as they come.
    pub(crate) stream: bool,
    /// Whether the client is told the evaluation's id before anything else.
    pub(crate) announce: bool,
    /// Only parse.
    pub(crate) parse_only: bool,
    /// The vm that it is to run in.
    pub(crate) vm: Option<String>,
    /// What was found before it ran.
    pub(crate) warnings: Vec<Warning>,
}

impl Default for Program<'_> {
    fn default() -> Self {
        Self {
            source: Cow::Borrowed(""),
            form: Form::default(),
            language: Language::default(),
            inputs: None,
            functions: HostFunctions::default(),
            collections: None,
            permissions: Permissions::default(),
            limits: Limits::DEFAULT,
            time_zone: None,
            capture: Capture::default(),
            stream: false,
            announce: false,
            parse_only: false,
            vm: None,
            warnings: Vec::new(),
        }
    }
}

impl Program<'_> {
    /// What the worker is told.
    pub(crate) fn order<'b>(&'b self, collections: Vec<CollectionTable<'b>>) -> EvaluateOrder<'b> {
        EvaluateOrder {
            source: Cow::Borrowed(&self.source),
            form: self.form,
            language: self.language,
            inputs: self.inputs,
            collections,
            limits: self.limits,
            time_zone: self.time_zone.as_deref().map(Cow::Borrowed),
            keep: self.vm.is_some(),
            parse_only: self.parse_only,
        }
    }
}

/// What a request that takes its time asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// To run a program.
    Evaluate,
    /// To parse one.
    Check,
    /// To make a vm.
    VmCreate,
    /// To run one host call; a worker it does not need.
    FunctionsCall,
}

/// A request that takes its time, as it came.
#[derive(Debug)]
pub(crate) struct Request {
    /// The whole line, so that nothing is moved.
    line: String,
    /// Where in it the params are; nowhere when there are none.
    params: Range<usize>,
    asked: Asked,
    /// Room for the text.
    held: Held,
}

impl Request {
    /// The params of what is asked for.
    pub(crate) const fn new(line: String, params: Range<usize>, asked: Asked, held: Held) -> Self {
        Self { line, params, asked, held }
    }

    /// What is asked for.
    pub(crate) const fn asked(&self) -> Asked {
        self.asked
    }

    /// Room for the text, and nothing else of the request.
    pub(crate) fn into_held(self) -> Held {
        self.held
    }

    /// The params as they came.
    pub(crate) fn text(&self) -> &str {
        match self.line.get(self.params.clone()) {
            Some(text) if !text.is_empty() => text,
            _ => "{}",
        }
    }

    /// The key by which it is to run once.
    ///
    /// # Errors
    /// Those of [`Self::program`].
    pub(crate) fn idempotency_key(&self, ceilings: &Limits) -> Result<Option<String>, ErrorData> {
        // A second parse only for who asks for it: the member is looked for first.
        if self.asked != Asked::Evaluate || !self.text().contains(KEY_MEMBER) {
            return Ok(None);
        }
        api::evaluate::evaluate(self.text(), ceilings).map(|checked| checked.idempotency_key)
    }

    /// The program in it.
    ///
    /// # Errors
    /// What is wrong with the request, by member.
    pub(crate) fn program(&self, ceilings: &Limits) -> Result<Program<'_>, ErrorData> {
        let checked = if self.asked == Asked::Check {
            api::evaluate::check(self.text(), ceilings)
        } else {
            api::evaluate::evaluate(self.text(), ceilings)
        }?;
        // Spelt with escapes it was not seen before, and nothing may run as if it were not there.
        if checked.idempotency_key.is_some() && !self.text().contains(KEY_MEMBER) {
            let sentence = "params.idempotencyKey: write the member's name without escapes; nothing ran";
            return Err(ErrorData::new(RequestCode::InvalidParams, sentence));
        }
        Ok(checked.program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::budget::Budget;

    #[test]
    fn an_idempotency_key_that_was_not_seen_is_refused_rather_than_ignored() {
        for (member, seen) in [("idempotencyKey", true), ("idempotency\\u004bey", false)] {
            let line = format!("{{\"source\":\"1\",\"{member}\":\"k\"}}");
            let params = 0..line.len();
            let request = Request::new(line, params, Asked::Evaluate, Budget::new(1024).part(1));
            let key = request.idempotency_key(&Limits::DEFAULT);
            assert_eq!(key.ok().flatten().is_some(), seen);
            assert_eq!(request.program(&Limits::DEFAULT).is_ok(), seen);
        }
    }
}
