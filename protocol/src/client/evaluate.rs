//! `evaluate`, `check` and `cancel`: what a client asks.

use super::{HostFunctions, Permissions};
use crate::limits::RequestedLimits;
use crate::rpc::Id;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// How the program text is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Find out.
    #[default]
    Auto,
    /// One expression.
    Expression,
    /// A function body: `return` gives the value.
    Body,
    /// An ES module without imports: the default export gives the value.
    Module,
}

/// In which language the program is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Types are stripped when there are any.
    #[default]
    Auto,
    /// Types are syntax errors.
    Javascript,
    /// Types are stripped.
    Typescript,
}

/// Which console streams the answer carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Capture {
    /// Neither.
    None,
    /// Only `stderr`.
    Stderr,
    /// Both.
    #[default]
    All,
}

/// What happens to console output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OutputOptions {
    /// What the answer carries.
    #[serde(default)]
    pub capture: Capture,
    /// Whether lines are also sent as they come (`evaluation.output`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stream: bool,
}

/// Params of `evaluate`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EvaluateParams<'a> {
    /// The program, at most [`crate::limits::SOURCE_BYTES`] bytes.
    #[serde(borrow)]
    pub source: Cow<'a, str>,
    /// How to read it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub form: Form,
    /// In which language.
    #[serde(default, skip_serializing_if = "is_default")]
    pub language: Language,
    /// A JSON object: the frozen global `inputs`.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<&'a RawValue>,
    /// Collections that this client offers for this evaluation.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub host_functions: Option<HostFunctions<'a>>,
    /// Narrows the configured collections to these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collections: Option<Vec<String>>,
    /// Narrows what policy grants.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Permissions<'a>>,
    /// Wall-clock limit in milliseconds; the same as `limits.timeoutMs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Lowers the principal's ceilings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<RequestedLimits>,
    /// What happens to console output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputOptions>,
    /// A kept worker of this principal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm: Option<String>,
    /// IANA time zone of the program; `UTC` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// Same key, same principal, same request: the same answer, nothing run twice.
    /// 1 to 256 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Answers with an [`super::EvaluationStatus`] once the program runs, and goes on when
    /// the client disconnects; its answer waits in `evaluations.get`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detach: bool,
    /// Asks for one `evaluation.started` notification before anything else is told or
    /// asked for this evaluation. A client with several evaluations in flight needs it
    /// to know whose a `host.call`, a line of output or a warning is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub announce: bool,
    /// Type-checks first, and does not run what fails.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub check: bool,
    /// W3C `traceparent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// Params of `check`: what `evaluate` would parse.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckParams<'a> {
    /// The program.
    #[serde(borrow)]
    pub source: Cow<'a, str>,
    /// How to read it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub form: Form,
    /// In which language.
    #[serde(default, skip_serializing_if = "is_default")]
    pub language: Language,
}

/// Params of `cancel`: one of the two.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelParams {
    /// The id of the `evaluate` request on this connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Id>,
    /// The evaluation, if it belongs to this principal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<String>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
