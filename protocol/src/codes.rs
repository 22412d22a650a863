//! Every error code that brig speaks, in three closed tables.
//!
//! Owns the spelling of codes and what each means. Never decides which one applies:
//! that is for whoever knows (the supervisor, never the guest).

use serde::{Deserialize, Serialize};

/// Makes one closed table of codes: the enum, its wire spelling and its meaning.
macro_rules! code_table {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal : $retryable:literal, $meaning:literal;)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name {
            $(#[doc = $meaning] #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// All codes of the table, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The spelling on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// One sentence: what happened.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),+ }
            }

            /// Whether the same request may succeed when sent again unchanged.
            #[must_use]
            pub const fn retryable(self) -> bool {
                match self { $(Self::$variant => $retryable),+ }
            }

            /// The code with this spelling.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

code_table! {
    /// Why a request was refused before anything ran (`error.data.code`).
    RequestCode {
        ParseError = "parse_error": false, "The line is not JSON, not UTF-8, or nested too deeply.";
        InvalidRequest = "invalid_request": false, "The line is JSON but not a JSON-RPC 2.0 request.";
        MethodNotFound = "method_not_found": false, "There is no such method.";
        InvalidParams = "invalid_params": false, "A member of params is missing, unknown, or of the wrong type or range.";
        LineTooLong = "line_too_long": false, "The line is over the limit; it was skipped.";
        DuplicateId = "duplicate_id": false, "A request with this id is still in flight on this connection.";
        TooManyInFlight = "too_many_in_flight": true, "This connection has as many requests in flight as it may.";
        InvalidSchema = "invalid_schema": false, "A JSON Schema does not compile, is too large, or needs the network.";
        InvalidPermissions = "invalid_permissions": false, "A permission scope is malformed or has a pattern that can match nothing.";
        InvalidFunction = "invalid_function": false, "A declared function or collection has a bad name or there are too many.";
        NotPermitted = "not_permitted": false, "Policy does not let this principal do that.";
        Overloaded = "overloaded": true, "All workers are busy and the queue of this principal is full.";
        QuotaExceeded = "quota_exceeded": true, "This principal has used up a quota.";
        ShuttingDown = "shutting_down": true, "brigd is draining and takes no new work.";
        Cancelled = "cancelled": true, "The client cancelled, or went away, before anything ran.";
        WorkerUnavailable = "worker_unavailable": true, "No worker could be made; nothing ran.";
        VmNotFound = "vm_not_found": false, "This principal has no vm with this id.";
        VmBusy = "vm_busy": true, "The vm runs another evaluation.";
        VmLost = "vm_lost": false, "The vm ended (time-out, crash, idle or lifetime limit) and its realm is gone.";
        EvaluationNotFound = "evaluation_not_found": false, "This principal has no evaluation with this id.";
        IdempotencyConflict = "idempotency_conflict": false, "This idempotency key was used with a different request.";
        JournalUnavailable = "journal_unavailable": true, "The journal can not be written or read, so what must be kept can not be; nothing ran.";
        ApprovalNotFound = "approval_not_found": false, "There is no approval with this id (any more).";
        ApprovalDecided = "approval_decided": false, "Somebody decided first, or nobody can decide any more; the message says who and what.";
        ApprovalChanged = "approval_changed": false, "The hash that was given is not that of the input that waits; look again.";
        Unsupported = "unsupported": false, "This build or configuration does not offer that.";
        InternalError = "internal": true, "brigd failed; nothing ran.";
    }
}

code_table! {
    /// How an evaluation ended when it did not succeed (`result.error.code`).
    EvaluationCode {
        GuestError = "guest_error": false, "The program threw, or rejected.";
        SyntaxError = "syntax_error": false, "The program does not parse.";
        TypeErrorCheck = "type_error_check": false, "Type checking was asked for and found errors; nothing ran.";
        UnserializableValue = "unserializable_value": false, "The program's value has no JSON form (a cycle, or a getter that threw).";
        MemoryLimit = "memory_limit": false, "The program used more memory than it may, or memory ran out for all.";
        CpuLimit = "cpu_limit": false, "The program used more CPU time than it may.";
        StackLimit = "stack_limit": false, "The program ended by exhausting its stack.";
        OutputLimit = "output_limit": false, "The program wrote more console output than the wire carries.";
        CallLimit = "call_limit": false, "The program made more host calls than it may.";
        ResultTooLarge = "result_too_large": false, "The program's value is larger than it may be; it is never cut.";
        Deadlock = "deadlock": false, "The program awaits something that can never settle.";
        TimedOut = "timed_out": true, "The wall-clock limit passed.";
        Cancelled = "cancelled": true, "The client cancelled, or went away.";
        WorkerCrashed = "worker_crashed": true, "The worker died.";
        ProtocolViolation = "protocol_violation": false, "The worker said something it may not say, and was killed.";
        ApprovalDenied = "approval_denied": false, "A person said no to a host call, and policy ends the evaluation for that.";
        Revoked = "revoked": false, "An operator revoked what this evaluation was using.";
        Interrupted = "interrupted": false, "brigd ended while the program ran; its write calls that are on record are listed, and nothing is run again.";
        Internal = "internal": true, "brigd failed.";
    }
}

code_table! {
    /// Why one host call was refused or failed (`HostError.code` in the guest, `calls[].code`).
    CallCode {
        PermissionDenied = "permission_denied": false, "No rule allows this call; it did not run.";
        InvalidInput = "invalid_input": false, "The input does not match the function's schema; it did not run.";
        InvalidOutput = "invalid_output": false, "The function ran, but its output does not match its schema.";
        FunctionFailed = "function_failed": false, "The function ran and said no.";
        FunctionCrashed = "function_crashed": false, "The function's program ended without saying whether it did what it was asked.";
        FunctionTimedOut = "function_timed_out": true, "The function did not answer in time; whether it had its effect is unknown.";
        UnknownFunction = "unknown_function": false, "There is no such function; nothing ran.";
        CallLimit = "call_limit": false, "One more host call than this evaluation may make, or have in flight; it did not run.";
        RateLimited = "rate_limited": true, "The function was called more often than it may be; it did not run.";
        OutputTooLarge = "output_too_large": false, "The function ran, but its output is larger than it may be.";
        ApprovalDenied = "approval_denied": false, "A person said no; it did not run.";
        ApprovalExpired = "approval_expired": true, "Nobody decided in time; it did not run.";
        Revoked = "revoked": false, "An operator revoked the function, or what the evaluation uses; `state` says whether it ran.";
        BudgetExhausted = "budget_exhausted": true, "The call is over a budget of its rule; it did not run.";
        AuditUnavailable = "audit_unavailable": true, "The audit record could not be written; it did not run.";
        JournalUnavailable = "journal_unavailable": true, "The journal could not be written; it did not run.";
        ClientGone = "client_gone": true, "The client that offers the function went away; whether it had its effect is unknown.";
        Cancelled = "cancelled": true, "The evaluation ended before the call did.";
        Interrupted = "interrupted": false, "brigd ended while the call ran; whether it had its effect is unknown.";
    }
}

/// JSON-RPC 2.0: the line is not JSON.
pub const RPC_PARSE_ERROR: i32 = -32700;
/// JSON-RPC 2.0: the JSON is not a request.
pub const RPC_INVALID_REQUEST: i32 = -32600;
/// JSON-RPC 2.0: no such method.
pub const RPC_METHOD_NOT_FOUND: i32 = -32601;
/// JSON-RPC 2.0: bad params.
pub const RPC_INVALID_PARAMS: i32 = -32602;
/// JSON-RPC 2.0: the server failed.
pub const RPC_INTERNAL_ERROR: i32 = -32603;
/// Application errors: `data.code` tells which.
pub const RPC_APPLICATION_ERROR: i32 = -32000;

impl RequestCode {
    /// The JSON-RPC number that goes with this code.
    #[must_use]
    pub const fn rpc_number(self) -> i32 {
        match self {
            Self::ParseError | Self::LineTooLong => RPC_PARSE_ERROR,
            Self::InvalidRequest | Self::DuplicateId => RPC_INVALID_REQUEST,
            Self::MethodNotFound => RPC_METHOD_NOT_FOUND,
            Self::InvalidParams => RPC_INVALID_PARAMS,
            Self::InternalError => RPC_INTERNAL_ERROR,
            _ => RPC_APPLICATION_ERROR,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_reads_back_as_itself_and_ends_its_meaning_with_a_full_stop() {
        for code in RequestCode::ALL {
            assert_eq!(RequestCode::parse(code.as_str()), Some(*code));
            assert!(code.meaning().ends_with('.'));
        }
        for code in EvaluationCode::ALL {
            assert_eq!(EvaluationCode::parse(code.as_str()), Some(*code));
            assert!(code.meaning().ends_with('.'));
        }
        for code in CallCode::ALL {
            assert_eq!(CallCode::parse(code.as_str()), Some(*code));
            assert!(code.meaning().ends_with('.'));
        }
    }

    #[test]
    fn a_code_serialises_as_its_spelling() {
        assert_eq!(serde_json::to_string(&EvaluationCode::TimedOut).ok().as_deref(), Some("\"timed_out\""));
    }
}
