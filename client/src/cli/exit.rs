//! Exit codes: one for each thing that a script can conclude.
//!
//! Owns the table, which `--help` prints. "Nothing ran" and "may have run" are never
//! the same code.

use brig::{CallState, Error, EvaluateResult, EvaluationCode, FunctionsCallResult, Outcome, RequestCode};
use std::process::ExitCode;

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Succeeded,
    Failed,
    Usage,
    Limit,
    TimedOut,
    Cancelled,
    Refused,
    Unreachable,
    Sandbox,
    Lost,
    OutputLost,
}

impl Exit {
    /// Every code with its number and meaning.
    pub(crate) const TABLE: &'static [(Self, u8, &'static str)] = &[
        (Self::Succeeded, 0, "the program succeeded"),
        (Self::Failed, 1, "the program failed (it threw, does not parse, has no JSON value), or a check found problems"),
        (Self::Usage, 2, "wrong arguments, or a bad input file; nothing ran"),
        (Self::Limit, 3, "the program broke a limit (memory, CPU, calls, sizes)"),
        (Self::TimedOut, 4, "the wall-clock limit passed"),
        (Self::Cancelled, 5, "the evaluation was cancelled (Ctrl-C, or on the other side)"),
        (Self::Refused, 6, "brigd refused the request, or the call of `brig call`; nothing ran"),
        (Self::Unreachable, 7, "no brigd answers, and none can be started; nothing ran"),
        (Self::Sandbox, 8, "the worker crashed or broke its protocol, or brigd failed"),
        (Self::Lost, 9, "the connection was lost before the answer, or brigd ended, or the effect of the call of `brig call` is unknown"),
        (Self::OutputLost, 10, "standard output could not be written; the rest of the answer is lost, what ran did run"),
    ];

    /// The code of `brig call` for each state of its call.
    pub(crate) const CALLS: &'static [(CallState, Self, &'static str)] = &[
        (CallState::Completed, Self::Succeeded, "the value is on standard output"),
        (CallState::Refused, Self::Refused, "it did not run: not permitted, input that does not fit, a rate, a budget, an approval"),
        (CallState::Failed, Self::Failed, "it ran and said no, or said what does not fit"),
        (CallState::Unknown, Self::Lost, "it was started, and nobody can say whether it had its effect"),
    ];

    /// The code of a call. Only one that completed, with its value, is a success.
    pub(crate) fn of_call(result: &FunctionsCallResult) -> Self {
        let exit = Self::CALLS.iter().find(|(state, ..)| *state == result.call.state).map_or(Self::Lost, |(_, exit, _)| *exit);
        match (exit, &result.error, &result.value) {
            (Self::Succeeded, Some(_), _) => Self::Failed,
            (Self::Succeeded, None, None) => Self::Lost,
            _ => exit,
        }
    }

    pub(crate) fn code(self) -> u8 {
        Self::TABLE.iter().find(|(exit, ..)| *exit == self).map_or(1, |(_, code, _)| *code)
    }

    /// The code of an evaluation that has a result.
    pub(crate) fn of_result(result: &EvaluateResult) -> Self {
        match result.outcome {
            Outcome::Succeeded => Self::Succeeded,
            Outcome::TimedOut => Self::TimedOut,
            Outcome::Cancelled => Self::Cancelled,
            Outcome::Failed => result.error.as_ref().map_or(Self::Failed, |error| Self::of_failure(error.code)),
        }
    }

    const fn of_failure(code: EvaluationCode) -> Self {
        use EvaluationCode as Code;
        match code {
            Code::GuestError
            | Code::SyntaxError
            | Code::TypeErrorCheck
            | Code::UnserializableValue
            | Code::Deadlock
            | Code::ApprovalDenied
            | Code::Revoked => Self::Failed,
            Code::MemoryLimit | Code::CpuLimit | Code::StackLimit | Code::OutputLimit | Code::CallLimit | Code::ResultTooLarge => {
                Self::Limit
            }
            Code::TimedOut => Self::TimedOut,
            Code::Cancelled => Self::Cancelled,
            Code::WorkerCrashed | Code::ProtocolViolation | Code::Internal => Self::Sandbox,
            Code::Interrupted => Self::Lost,
        }
    }

    /// The code when there is no result.
    pub(crate) fn of_error(error: &Error) -> Self {
        match error {
            Error::Request(_) => Self::Usage,
            Error::Connect { .. } | Error::Start(_) => Self::Unreachable,
            Error::Refused(data) if matches!(data.code, RequestCode::Cancelled) => Self::Cancelled,
            Error::Refused(_) | Error::Rpc { .. } => Self::Refused,
            _ => Self::Lost,
        }
    }

    /// The same table in `docs/cli.md`.
    #[cfg(test)]
    fn document() -> String {
        let rows: Vec<String> = Self::TABLE.iter().map(|(_, code, meaning)| format!("| {code} | {meaning} |")).collect();
        format!("| code | means |\n|---|---|\n{}\n", rows.join("\n"))
    }

    /// That of the states, in the same place.
    #[cfg(test)]
    fn call_document() -> String {
        let rows: Vec<String> = Self::CALLS
            .iter()
            .map(|(state, exit, meaning)| format!("| {} | `{}` | {meaning} |", exit.code(), state_name(*state)))
            .collect();
        format!("| code | state of the call | means |\n|---|---|---|\n{}\n", rows.join("\n"))
    }

    /// The codes of a call, as its `--help` prints them.
    pub(crate) fn call_help() -> String {
        let rows: Vec<String> =
            Self::CALLS.iter().map(|(state, exit, meaning)| format!("  {:<2}  {}: {meaning}", exit.code(), state_name(*state))).collect();
        let others = "  2, 5, 7, 9, 10: as brig --help says; 9 also when the connection was lost";
        format!("Exit codes:\n{}\n{others}", rows.join("\n"))
    }

    /// The table, as `--help` prints it.
    pub(crate) fn help() -> String {
        let rows: Vec<String> = Self::TABLE.iter().map(|(_, code, meaning)| format!("  {code:<2}  {meaning}")).collect();
        format!("Exit codes:\n{}", rows.join("\n"))
    }
}

/// The state as the protocol spells it.
const fn state_name(state: CallState) -> &'static str {
    match state {
        CallState::Refused => "refused",
        CallState::Failed => "failed",
        CallState::Completed => "completed",
        CallState::Unknown => "unknown",
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exit_has_a_code_of_its_own() {
        let codes: std::collections::BTreeSet<u8> = Exit::TABLE.iter().map(|(_, code, _)| *code).collect();
        assert_eq!(codes.len(), Exit::TABLE.len());
        for (exit, code, _) in Exit::TABLE {
            assert_eq!(exit.code(), *code);
        }
    }

    #[test]
    fn the_table_of_the_document_is_that_of_the_code() {
        let text = include_str!("../../../docs/cli.md");
        for table in [Exit::document(), Exit::call_document()] {
            assert!(text.contains(&table), "docs/cli.md should have\n{table}");
        }
    }

    #[test]
    fn limits_crashes_and_guest_errors_are_told_apart() {
        assert_eq!(Exit::of_failure(EvaluationCode::GuestError), Exit::Failed);
        assert_eq!(Exit::of_failure(EvaluationCode::MemoryLimit), Exit::Limit);
        assert_eq!(Exit::of_failure(EvaluationCode::WorkerCrashed), Exit::Sandbox);
    }

    #[test]
    fn an_error_after_which_nothing_ran_never_has_the_code_of_one_after_which_something_may_have() {
        let unsure = Error::ConnectionLost(String::new());
        assert!(!unsure.nothing_ran());
        assert_eq!(Exit::of_error(&unsure), Exit::Lost);
        for sure in [Error::Request(String::new()), Error::Start(String::new())] {
            assert!(sure.nothing_ran());
            assert_ne!(Exit::of_error(&sure), Exit::Lost);
        }
    }
}
