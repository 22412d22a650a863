//! `functions.*`: what is configured for a principal, and one host call without a program.
//!
//! Owns the shapes. A function that the principal may not list has no shape here: it is
//! not told of at all.

use super::{CallRecord, Effect, HostFunctions};
use crate::codes::CallCode;
use crate::rpc::present;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What the ids of calls without a program begin with.
pub const CALL_PREFIX: &str = "fc_";

/// Whether a call whose effect is unknown may be made again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Retry {
    /// Always: twice is as good as once.
    Safe,
    /// With the same idempotency key.
    Keyed,
    /// Not by brig. The default: the careful reading.
    #[default]
    Never,
}

/// Params of `functions.list`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionsListParams {
    /// Only of this collection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection: Option<String>,
}

/// Params of `functions.wait`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FunctionsWaitParams {
    /// What the last one answered; left out: there is nothing to wait for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How long at most, as in `evaluations.wait`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Result of `functions.wait`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionsWaitResult {
    /// Another than the one that was asked with: what may be called may have changed. A text
    /// to compare, which says nothing else.
    pub version: String,
}

/// One configured function, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionListed {
    /// `collection.function`.
    pub function: String,
    /// Its collection.
    pub collection: String,
    /// For the model.
    #[serde(default)]
    pub description: String,
    /// What it does to the world.
    pub effect: Effect,
}

/// Result of `functions.list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionsListResult {
    /// Those that the principal may list, by name.
    pub functions: Vec<FunctionListed>,
}

/// Params of `functions.describe`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionsDescribeParams {
    /// `collection.function` or its command spelling.
    pub function: String,
}

/// One example of a configured function.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExampleShown {
    /// What it shows.
    #[serde(default)]
    pub description: String,
    /// The input.
    pub input: Box<RawValue>,
    /// What comes back.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub output: Option<Box<RawValue>>,
}

/// Result of `functions.describe`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FunctionsDescribeResult {
    /// `collection.function`.
    pub function: String,
    /// Its collection.
    pub collection: String,
    /// For the model.
    pub description: String,
    /// JSON Schema of the input.
    pub input_schema: Box<RawValue>,
    /// JSON Schema of the output; absent: any JSON.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub output_schema: Option<Box<RawValue>>,
    /// Examples for the model.
    pub examples: Vec<ExampleShown>,
    /// Time for one call, in milliseconds.
    pub timeout_ms: u64,
    /// What it does to the world.
    pub effect: Effect,
    /// Whether a call whose effect is unknown may be made again.
    pub retry: Retry,
}

/// Params of `functions.types`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FunctionsTypesParams<'a> {
    /// Patterns ([`crate::names::Pattern`]) of the configured functions that are wanted;
    /// all when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functions: Option<Vec<String>>,
    /// Declared functions, as `evaluate` would get them.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub host_functions: Option<HostFunctions<'a>>,
}

/// The tool that a model is offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolText {
    /// Its name, `execute`.
    pub name: String,
    /// For the model.
    pub description: String,
}

/// Result of `functions.types`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionsTypesResult {
    /// TypeScript declarations.
    pub declarations: String,
    /// How a model is offered all of it.
    pub tool: ToolText,
}

/// Params of `functions.call`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FunctionsCallParams<'a> {
    /// `collection.function` or its command spelling.
    pub function: String,
    /// A JSON object; `{}` when left out.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub input: Option<&'a RawValue>,
    /// At most so long, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Same key, same principal, same request: the same answer, nothing run twice.
    /// 1 to 256 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Why a call has no value. What a `HostError` would say in a guest.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FunctionsCallError {
    /// Which refusal or failure.
    pub code: CallCode,
    /// What was wrong.
    pub message: String,
    /// Name of the function's own error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The function's own code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function_code: Option<String>,
    /// The function's own data.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub data: Option<Box<RawValue>>,
}

/// Result of `functions.call`. What only prevents the attempt as a request (bad params,
/// overload) is an error of JSON-RPC instead.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FunctionsCallResult {
    /// The call, as `evaluate` lists it.
    pub call: CallRecord,
    /// The function's output, when it completed.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub value: Option<Box<RawValue>>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<FunctionsCallError>,
}
