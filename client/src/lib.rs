//! brig: the Rust client library.
//!
//! Runs untrusted JavaScript in a confined worker of `brigd`, next to host functions
//! that stay in this process: their credentials never leave it.
//!
//! ```no_run
//! use brig::{Client, Evaluate, FunctionError, HostFunctions, StartOptions};
//! use serde_json::{Value, json};
//! use std::time::Duration;
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The service when there is one, a private brigd otherwise.
//! let client = Client::connect_or_start(StartOptions::new()).await?;
//!
//! let orders = HostFunctions::new().collection("orders").function(
//!     "list",
//!     json!({"type": "object", "properties": {"customer": {"type": "string"}}, "required": ["customer"]}),
//!     |input: Value, _call| async move {
//!         let customer = input["customer"].as_str().unwrap_or_default().to_owned();
//!         Ok::<_, FunctionError>(json!([{"customer": customer, "amount": 40}, {"customer": customer, "amount": 2}]))
//!     },
//! );
//!
//! let result = client
//!     .evaluate(
//!         Evaluate::new("const list = await orders.list({customer: inputs.customer}); return list.reduce((sum, o) => sum + o.amount, 0)")
//!             .inputs(json!({"customer": "customer_123"}))
//!             .host_functions(orders)
//!             .timeout(Duration::from_secs(5)),
//!     )
//!     .await?;
//! assert_eq!(result.value.map(|value| value.get().to_owned()).as_deref(), Some("42"));
//! # Ok(()) }
//! ```
//!
//! A program that throws, runs too long or breaks a limit is an [`EvaluateResult`] with
//! an [`Outcome`] and an error. An [`Error`] means that there is no result, and
//! [`Error::nothing_ran`] says whether that also means that nothing happened.
//!
//! One [`Client`] serves any number of evaluations at once. Dropping an [`Evaluation`]
//! cancels it; a [`Canceller`] ends it and leaves its result.

mod client;
mod configured;
mod connection;
mod embedded;
mod error;
mod evaluate;
mod functions;

pub use brig_protocol as protocol;
pub use brig_protocol::client::{
    ApprovalNote, CallRecord, CallState, Capture, CheckParams, CheckResult, Effect, ErrorCause, EvaluateResult, EvaluationError,
    EvaluationState, EvaluationStatus, ExampleShown, Form, FunctionListed, FunctionsCallError, FunctionsCallResult,
    FunctionsDescribeResult, FunctionsTypesResult, InitializeResult, Language, Mode, Operation, Outcome, OutputNote, Permissions, Retry,
    Rule, Sandbox, Scope, ScopeRules, Stream, Usage, VmInfo, Warning, WarningCode,
};
pub use brig_protocol::codes::{CallCode, EvaluationCode, RequestCode};
pub use brig_protocol::limits::RequestedLimits;
pub use brig_protocol::rpc::ErrorData;
pub use client::{Client, Origin, Vm, VmOptions};
pub use configured::{Call, Calling};
pub use connection::Canceller;
pub use embedded::{SERVICE_SOCKET, StartOptions, find_binary};
pub use error::Error;
pub use evaluate::{Evaluate, Evaluation};
pub use functions::{Collection, Function, FunctionError, HostCall, HostFunctions};

/// Whole milliseconds, at least one: a time below that is not no time at all.
fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_micros().div_ceil(1000)).unwrap_or(u64::MAX).max(1)
}
