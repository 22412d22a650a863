//! The result of an evaluation.

use crate::codes::{CallCode, EvaluationCode};
use crate::rpc::present;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// How an evaluation ended. Exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// There is a value (or the program gave `undefined`).
    Succeeded,
    /// It threw, broke a limit, or its worker died: see `error.code`.
    Failed,
    /// Its wall-clock limit passed.
    TimedOut,
    /// The client cancelled it, or went away.
    Cancelled,
}

/// Result of `evaluate`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EvaluateResult {
    /// Its id, `ev_…`.
    pub evaluation: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The program's value as JSON; absent when it gave `undefined`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub value: Option<Box<RawValue>>,
    /// When it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<EvaluationError>,
    /// Console output, if captured.
    #[serde(default)]
    pub stdout: String,
    /// Console output, if captured.
    #[serde(default)]
    pub stderr: String,
    /// Whether `stdout` was cut at its limit.
    #[serde(default)]
    pub stdout_truncated: bool,
    /// Whether `stderr` was cut at its limit.
    #[serde(default)]
    pub stderr_truncated: bool,
    /// What the caller would otherwise lose.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// Every host call, in the order of their ids.
    #[serde(default)]
    pub calls: Vec<CallRecord>,
    /// What it cost.
    pub usage: Usage,
    /// The layers that were active for its worker.
    pub sandbox: Sandbox,
}

/// Milliseconds with at most three decimals, and none where there are none. What is too
/// large to be rounded (a hostile worker may say so) is written as it is: `null` would be
/// no number.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates, and only whole numbers of plausible size take it")]
fn millis<S: serde::Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    let rounded = (value * 1000.0).round() / 1000.0;
    if !rounded.is_finite() {
        serializer.serialize_f64(*value)
    } else if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
        serializer.serialize_i64(rounded as i64)
    } else {
        serializer.serialize_f64(rounded)
    }
}

/// Why an evaluation did not succeed. Texts are the guest's where `code` is
/// `guest_error` or `syntax_error`; `code` never is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EvaluationError {
    /// Which end.
    pub code: EvaluationCode,
    /// Name of the error's class, or of the code.
    pub name: String,
    /// What was wrong.
    pub message: String,
    /// Where, function by function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// 1-based, in the text as sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// 1-based, in characters (UTF-16 units), in the text as sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The line, and a caret under the column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
    /// What caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Box<ErrorCause>>,
    /// Members of an `AggregateError`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorCause>,
    /// `data` of a `HostError`, or a thrown value that was no error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
    /// What to do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The limit that was hit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_value: Option<u64>,
    /// The setting that raises it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// Whether the same program may succeed when sent again unchanged.
    #[serde(default)]
    pub retryable: bool,
}

impl EvaluationError {
    /// An error with nothing but its code and sentence.
    #[must_use]
    pub fn new(code: EvaluationCode, name: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            name: name.into(),
            message: message.into(),
            stack: None,
            line: None,
            column: None,
            excerpt: None,
            cause: None,
            errors: Vec::new(),
            data: None,
            hint: None,
            limit: None,
            limit_value: None,
            setting: None,
            retryable: code.retryable(),
        }
    }

    /// Names the limit that was hit.
    #[must_use]
    pub fn with_limit(mut self, name: &str, value: u64) -> Self {
        self.limit = Some(name.to_owned());
        self.limit_value = Some(value);
        self.setting = crate::limits::row(name).map(|row| row.setting.to_owned());
        self
    }
}

/// Result of `check`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckResult {
    /// Whether the program would be run.
    pub ok: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<EvaluationError>,
}

/// One error below another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ErrorCause {
    /// Name of its class.
    pub name: String,
    /// What was wrong.
    pub message: String,
    /// `code` of a `HostError`, or what the program set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Any data it carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
    /// What caused it in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Box<ErrorCause>>,
}

/// What a warning is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarningCode {
    /// A value changed on its way into JSON.
    LossyValue,
    /// A promise rejected and nobody looked.
    UnhandledRejection,
    /// Something was read of a promise that was not awaited, and is undefined.
    PromiseRead,
    /// A call was still running at the end and was cancelled.
    CallCancelled,
    /// A collection has the name of a global and was not defined.
    CollectionNotDefined,
    /// A limit was over 80 % used.
    LimitNear,
    /// A limit was asked above its ceiling and cut to it.
    LimitCut,
    /// A function was left out (bad schema, clash of names).
    FunctionDisabled,
    /// A declared schema has a keyword that looks misspelt.
    SuspectSchema,
    /// The vm that the program ran in is lost with its realm.
    VmLost,
    /// More warnings than are kept.
    MoreWarnings,
}

/// What the caller would otherwise lose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Warning {
    /// What it is about.
    pub code: WarningCode,
    /// One sentence.
    pub message: String,
    /// Where in a value, as `$.a[0].b`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// What is known of a host call's effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallState {
    /// It did not run.
    Refused,
    /// It ran and said no.
    Failed,
    /// It ran and answered.
    Completed,
    /// It was started, and nobody can say.
    Unknown,
}

/// One host call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallRecord {
    /// Its number within the evaluation, from 1.
    pub call: u64,
    /// `collection.function`.
    pub function: String,
    /// What is known of its effect.
    pub state: CallState,
    /// Why not completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<CallCode>,
    /// From request to answer, in milliseconds.
    #[serde(serialize_with = "millis")]
    pub duration_ms: f64,
    /// Length of the input's JSON text.
    pub input_bytes: u64,
    /// Length of the output's JSON text.
    pub output_bytes: u64,
}

/// What an evaluation cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Usage {
    /// From dispatch to verdict, in milliseconds.
    #[serde(serialize_with = "millis")]
    pub wall_ms: f64,
    /// CPU time of the worker, in milliseconds.
    #[serde(serialize_with = "millis")]
    pub cpu_ms: f64,
    /// Time during which at least one host call was running, in milliseconds.
    #[serde(serialize_with = "millis")]
    pub host_ms: f64,
    /// Time a person took, in milliseconds; not part of the wall-clock limit.
    #[serde(serialize_with = "millis")]
    pub approval_ms: f64,
    /// Most heap at one time above the warm realm, in bytes.
    pub peak_memory_bytes: u64,
    /// Host calls made.
    pub host_calls: u64,
}

/// The confinement that was active.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sandbox {
    /// `full`, `strong` or `minimal`.
    pub level: String,
    /// Names of the active layers.
    pub layers: Vec<String>,
}
