//! The methods of the client protocol: from a name and raw params to a typed request.
//!
//! Owns the table of methods, and the checks that need no worker. Never runs a
//! program: what does is handed to [`crate::evaluation`].

pub(crate) mod evaluate;
pub(crate) mod evaluations;
pub(crate) mod explain;
pub(crate) mod functions;
pub(crate) mod idempotency;
pub(crate) mod judged;
pub(crate) mod params;
mod session;
mod types;
pub(crate) mod vm;

pub(crate) use session::answer_at_once;

use brig_protocol::client::method;
use brig_protocol::codes::RequestCode;
use brig_protocol::rpc::ErrorData;
use judged::Judged;

/// How a method is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// Needs a worker: `evaluate`.
    Evaluate,
    /// Needs a worker: `check`.
    Check,
    /// Needs a worker: `vm.create`.
    VmCreate,
    /// Runs a host call: `functions.call`.
    FunctionsCall,
    /// Reads the journal: `evaluations.get`.
    EvaluationsGet,
    /// Reads the journal once there is an answer: `evaluations.wait`.
    EvaluationsWait,
    /// Waits until what may be called has changed: `functions.wait`.
    FunctionsWait,
    /// Ends an evaluation of this connection or principal.
    Cancel,
    /// Needs no worker, but may take time.
    Judged(Judged),
    /// Answered from what is known.
    AtOnce(AtOnce),
}

/// A method that is answered from what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtOnce {
    /// `initialize`
    Initialize,
    /// `vm.dispose`
    VmDispose,
    /// `vm.list`
    VmList,
}

/// Every method that a client can ask.
pub(crate) const METHODS: &[(&str, Method)] = &[
    (method::INITIALIZE, Method::AtOnce(AtOnce::Initialize)),
    (method::EVALUATE, Method::Evaluate),
    (method::CANCEL, Method::Cancel),
    (method::CHECK, Method::Check),
    (method::VM_CREATE, Method::VmCreate),
    (method::VM_DISPOSE, Method::AtOnce(AtOnce::VmDispose)),
    (method::VM_LIST, Method::AtOnce(AtOnce::VmList)),
    (method::FUNCTIONS_LIST, Method::Judged(Judged::FunctionsList)),
    (method::FUNCTIONS_DESCRIBE, Method::Judged(Judged::FunctionsDescribe)),
    (method::FUNCTIONS_TYPES, Method::Judged(Judged::FunctionsTypes)),
    (method::FUNCTIONS_CALL, Method::FunctionsCall),
    (method::FUNCTIONS_WAIT, Method::FunctionsWait),
    (method::EVALUATIONS_GET, Method::EvaluationsGet),
    (method::EVALUATIONS_WAIT, Method::EvaluationsWait),
    (method::POLICY_EXPLAIN, Method::Judged(Judged::PolicyExplain)),
];

/// The method with this name.
///
/// # Errors
/// `method_not_found` with the nearest name, or all of them.
pub(crate) fn method_named(name: &str) -> Result<Method, ErrorData> {
    if let Some((_, method)) = METHODS.iter().find(|(known, _)| *known == name) {
        return Ok(*method);
    }
    let known: Vec<&str> = METHODS.iter().map(|(known, _)| *known).collect();
    let quoted = brig_protocol::escape::escaped(name, 100);
    let mut data = ErrorData::new(RequestCode::MethodNotFound, format!("there is no method {quoted:?}"));
    data.hint = Some(match params::nearest(name, &known) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("there are {}", known.join(", ")),
    });
    Err(data)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn an_unknown_method_is_answered_with_the_nearest_or_with_all() {
        assert_eq!(method_named("evaluate").unwrap(), Method::Evaluate);
        assert!(method_named("evalute").unwrap_err().hint.is_some_and(|hint| hint.contains("\"evaluate\"")));
        assert!(method_named("rm -rf\n").unwrap_err().hint.is_some_and(|hint| hint.contains("functions.types")));
        assert!(!method_named("a\nb").unwrap_err().message.contains('\n'));
    }
}
