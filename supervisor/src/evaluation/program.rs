//! A program that may run, and the request that it came in.
//!
//! Owns the bytes of the client's line for as long as they are needed. Never copies
//! the program, its inputs or its schemas out of it.

use super::parties::Parties;
use crate::api;
use crate::audit::{Disclosure, Event, Payload, Who};
use crate::connection::budget::Held;
use brig_protocol::client::{Capture, Form, HostFunctions, Language, Permissions, Warning};
use brig_protocol::codes::RequestCode;
use brig_protocol::limits::Limits;
use brig_protocol::rpc::ErrorData;
use brig_protocol::worker::{CollectionTable, EvaluateOrder};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;

/// The members by which an answer is asked for again, as they stand in the text.
const KEY_MEMBER: &str = "\"idempotencyKey\"";
const DETACH_MEMBER: &str = "\"detach\"";

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
    /// The client's trace, W3C `traceparent`.
    pub(crate) trace: Option<String>,
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
            trace: None,
            vm: None,
            warnings: Vec::new(),
        }
    }
}

impl Program<'_> {
    /// Puts on record that it is with its worker.
    pub(super) fn record_start(&self, evaluation: &str, parties: &Parties<'_>) {
        let shown = |text: &str| Payload::of(text, Disclosure::Hash, None);
        parties.service.audit.note(&Event::EvaluationStarted {
            evaluation,
            who: Who {
                uid: parties.peer.uid,
                gid: parties.peer.gid,
                principal: Some(&*parties.grant.section).filter(|name| !name.is_empty()),
            },
            policy: &parties.grant.version,
            source: &shown(&self.source),
            inputs: self.inputs.map(|inputs| shown(inputs.get())).as_ref(),
            vm: self.vm.as_deref(),
            parse_only: self.parse_only,
        });
    }

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

/// What a request that is not answered at once asks for.
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
    /// To know how far an evaluation is.
    EvaluationsGet,
    /// To know once it is over.
    EvaluationsWait,
}

/// A request that is not answered at once, as it came.
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

    /// The key by which it is to run once, and whether it goes on without its client.
    ///
    /// # Errors
    /// Those of [`Self::program`].
    pub(crate) fn again(&self, ceilings: &Limits) -> Result<(Option<String>, bool), ErrorData> {
        // A second parse only for who asks for it: the members are looked for first.
        let text = self.text();
        if self.asked != Asked::Evaluate || !(text.contains(KEY_MEMBER) || text.contains(DETACH_MEMBER)) {
            return Ok((None, false));
        }
        api::evaluate::evaluate(text, ceilings).map(|checked| (checked.idempotency_key, checked.detach))
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
        for (asked, member, name) in
            [(checked.idempotency_key.is_some(), KEY_MEMBER, "idempotencyKey"), (checked.detach, DETACH_MEMBER, "detach")]
        {
            if asked && !self.text().contains(member) {
                let sentence = format!("params.{name}: write the member's name without escapes; nothing ran");
                return Err(ErrorData::new(RequestCode::InvalidParams, sentence));
            }
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
            let key = request.again(&Limits::DEFAULT).map(|(key, _)| key);
            assert_eq!(key.ok().flatten().is_some(), seen);
            assert_eq!(request.program(&Limits::DEFAULT).is_ok(), seen);
        }
    }

    #[test]
    fn a_detach_that_was_not_seen_is_refused_rather_than_ignored() {
        for (member, seen) in [("detach", true), ("det\\u0061ch", false)] {
            let line = format!("{{\"source\":\"1\",\"{member}\":true}}");
            let params = 0..line.len();
            let request = Request::new(line, params, Asked::Evaluate, Budget::new(1024).part(1));
            assert_eq!(request.again(&Limits::DEFAULT).is_ok_and(|(_, detach)| detach), seen);
            assert_eq!(request.program(&Limits::DEFAULT).is_ok(), seen);
        }
    }
}
