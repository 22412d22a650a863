//! The methods of the client protocol: their params and results.
//!
//! Owns the shapes on the wire, with unit, range and sender of every member. Never
//! decides whether a request may run. Unknown members of params are refused
//! everywhere, so that a misspelt limit is never silently no limit.

mod answer;
mod evaluate;
mod evaluations;
mod function;
mod functions;
mod permissions;
mod policy;
mod session;

pub use answer::{
    CallRecord, CallState, CheckResult, ErrorCause, EvaluateResult, EvaluationError, Outcome, Sandbox, Usage, Warning, WarningCode,
};
pub use evaluate::{CancelParams, Capture, CheckParams, EvaluateParams, Form, Language, OutputOptions};
pub use evaluations::{EvaluationState, EvaluationStatus, EvaluationsGetParams, EvaluationsWaitParams, WAIT_DEFAULT_MS, WAIT_MOST_MS};
pub use function::{Effect, Example, FunctionDeclaration, FunctionMap, HostFunctions};
pub use functions::{
    CALL_PREFIX, ExampleShown, FunctionListed, FunctionsCallError, FunctionsCallParams, FunctionsCallResult, FunctionsDescribeParams,
    FunctionsDescribeResult, FunctionsListParams, FunctionsListResult, FunctionsTypesParams, FunctionsTypesResult, FunctionsWaitParams,
    FunctionsWaitResult, Retry, ToolText,
};
pub use permissions::{Mode, Operation, Permissions, Rule, Scope, ScopeRules};
pub use policy::{BudgetLeft, Decision, PolicyExplainParams, PolicyExplainResult};
pub use session::{
    ApprovalNote, CallFailure, ClientInfo, HostCallParams, HostCancelParams, InitializeParams, InitializeResult, OutputNote,
    PROTOCOL_VERSION, Principal, ServerInfo, StartedNote, Stream, VmCreateParams, VmCreateResult, VmDisposeParams, VmInfo, VmListResult,
    WarningNote,
};

/// Names of the methods and notifications of the client protocol.
pub mod method {
    /// Version negotiation and facts about the server.
    pub const INITIALIZE: &str = "initialize";
    /// Run a program.
    pub const EVALUATE: &str = "evaluate";
    /// End an evaluation (notification, or request that is answered `{}`).
    pub const CANCEL: &str = "cancel";
    /// Parse without running.
    pub const CHECK: &str = "check";
    /// Make a kept worker.
    pub const VM_CREATE: &str = "vm.create";
    /// End a kept worker.
    pub const VM_DISPOSE: &str = "vm.dispose";
    /// The principal's kept workers.
    pub const VM_LIST: &str = "vm.list";
    /// What this principal may call.
    pub const FUNCTIONS_LIST: &str = "functions.list";
    /// One function in full.
    pub const FUNCTIONS_DESCRIBE: &str = "functions.describe";
    /// TypeScript declarations.
    pub const FUNCTIONS_TYPES: &str = "functions.types";
    /// One host call without a program.
    pub const FUNCTIONS_CALL: &str = "functions.call";
    /// When what this principal may call has changed.
    pub const FUNCTIONS_WAIT: &str = "functions.wait";
    /// An answer after a reconnect.
    pub const EVALUATIONS_GET: &str = "evaluations.get";
    /// The same, once it is there.
    pub const EVALUATIONS_WAIT: &str = "evaluations.wait";
    /// What would be decided, and by which rule.
    pub const POLICY_EXPLAIN: &str = "policy.explain";
    /// Supervisor asks: run a declared callback.
    pub const HOST_CALL: &str = "host.call";
    /// Supervisor tells: that call is over.
    pub const HOST_CANCEL: &str = "host.cancel";
    /// Supervisor tells: the id of an evaluation that asked to be announced.
    pub const EVALUATION_STARTED: &str = "evaluation.started";
    /// Supervisor tells: a call waits for a person.
    pub const EVALUATION_APPROVAL: &str = "evaluation.approval";
    /// Supervisor tells: console output.
    pub const EVALUATION_OUTPUT: &str = "evaluation.output";
    /// Supervisor tells: something that the caller would otherwise lose.
    pub const EVALUATION_WARNING: &str = "evaluation.warning";
}
