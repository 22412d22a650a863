//! How host calls end, and the words for it.
//!
//! Owns what is known of the effect by what happened. Never decides that a call ends.

use super::Refused;
use crate::audit::Payload;
use crate::host::callback::CleanFailure;
use crate::host::table::Function;
use brig_protocol::client::{CallState, Effect};
use brig_protocol::codes::CallCode;
use brig_protocol::limits;
use brig_protocol::worker::{HostFailure, host_failure_frame};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// An end before it is worded for the worker.
pub(super) struct End {
    pub(super) state: CallState,
    pub(super) code: Option<CallCode>,
    pub(super) rule: Option<String>,
    pub(super) output: Option<Payload>,
    pub(super) frame: Vec<u8>,
}

/// Why a call is not awaited any longer.
#[derive(Clone, Copy)]
pub(super) enum Stop {
    /// The evaluation ended.
    Cancelled,
    /// The function's own time is over.
    TimedOut,
    /// An operator revoked the function.
    Revoked,
}

impl Stop {
    pub(super) const fn code(self) -> CallCode {
        match self {
            Self::Cancelled => CallCode::Cancelled,
            Self::TimedOut => CallCode::FunctionTimedOut,
            Self::Revoked => CallCode::Revoked,
        }
    }
}

pub(super) const UNKNOWN: &str = "whether it had its effect is unknown";

pub(super) fn timed_out(function: &Function) -> String {
    let (name, limit) = (&function.full_name, function.timeout.as_millis());
    let setting = limits::row("functionTimeoutMs").map_or("", |row| row.setting);
    format!("{name}: no answer within its time-out of {limit} ms (functionTimeoutMs at most; {setting} raises it)")
}

/// The function ran, and there was no time left to check what it gave.
pub(super) fn unjudged(call: u64, function: &Function, stop: Stop) -> End {
    let (code, why) = match stop {
        Stop::Cancelled => (CallCode::Cancelled, "the evaluation ended"),
        Stop::TimedOut => (CallCode::FunctionTimedOut, "its time-out passed"),
        Stop::Revoked => (CallCode::Revoked, "an operator revoked it"),
    };
    spoilt(call, code, format!("{}: {why} before its output was checked. The function ran.", function.full_name), None)
}

pub(super) fn too_late(function: &Function, stop: Stop) -> Refused {
    let name = &function.full_name;
    match stop {
        Stop::Cancelled => Refused::new(CallCode::Cancelled, format!("{name}: the evaluation ended before the call ran")),
        Stop::TimedOut => Refused::new(CallCode::FunctionTimedOut, format!("{name}: its time-out passed before the call ran")),
        Stop::Revoked => Refused::new(CallCode::Revoked, format!("{name}: an operator revoked this function; the call did not run")),
    }
}

pub(super) fn refused(call: u64, refusal: Refused) -> End {
    let data = refusal.retry_after_ms.and_then(|wait| RawValue::from_string(format!("{{\"retryAfterMs\":{wait}}}")).ok());
    End { rule: refusal.rule, ..end_with(call, CallState::Refused, refusal.code, refusal.message, data.as_deref()) }
}

/// A call of which nobody can say what it did: one that only reads did nothing, as far as
/// the operator's word goes; a client's word does not.
pub(super) fn undecided(call: u64, function: &Function, code: CallCode, message: &str) -> End {
    if function.configured().is_some() && function.effect == Effect::Read {
        return end(call, CallState::Failed, code, message.to_owned());
    }
    unknown(call, code, format!("{message}; {UNKNOWN}"))
}

pub(super) fn unknown(call: u64, code: CallCode, message: String) -> End {
    end(call, CallState::Unknown, code, message)
}

pub(super) fn spoilt(call: u64, code: CallCode, message: String, output: Option<Payload>) -> End {
    End { output, ..end(call, CallState::Completed, code, message) }
}

pub(super) fn failed(call: u64, message: &str, data: Option<&RawValue>) -> End {
    let clean = CleanFailure::of(message, data);
    let frame = host_failure_frame(call, &clean.as_host_failure()).unwrap_or_default();
    End { state: CallState::Failed, code: Some(CallCode::FunctionFailed), rule: None, output: None, frame }
}

/// An end in brig's own words. Its frame is small and always builds.
pub(super) fn end(call: u64, state: CallState, code: CallCode, message: String) -> End {
    end_with(call, state, code, message, None)
}

fn end_with(call: u64, state: CallState, code: CallCode, message: String, data: Option<&RawValue>) -> End {
    let failure = HostFailure { code, name: None, message: Cow::Owned(message), function_code: None, data };
    let frame = host_failure_frame(call, &failure).unwrap_or_default();
    End { state, code: Some(code), rule: None, output: None, frame }
}
