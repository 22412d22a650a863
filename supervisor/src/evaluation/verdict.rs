//! How an evaluation ended, decided once.
//!
//! Owns the translation of causes into outcome and error. What a worker says of its
//! own end is a claim about itself and is taken within bounds; whether it was killed,
//! by whom and why is known here.

use super::stop::StopCause;
use super::warnings::cut;
use crate::cgroup::Shortage;
use crate::lifecycle::Fate;
use crate::pool::Ended;
use crate::vm::Lost;
use brig_protocol::client::{ErrorCause, EvaluationError, Outcome};
use brig_protocol::codes::EvaluationCode;
use brig_protocol::control::exit;
use brig_protocol::limits::Limits;
use brig_protocol::worker::Violation;
use serde_json::value::RawValue;

/// Longest message, stack and excerpt of a guest's error, in bytes.
const TEXT_BYTES: usize = 16 * 1024;
/// Longest name, code and hint, in bytes.
const NAME_BYTES: usize = 1024;
/// Most members of an `AggregateError`.
const MEMBERS: usize = 32;
/// Longest chain of causes.
const CAUSES: usize = 8;
/// Most JSON text of `data`, in bytes.
const DATA_BYTES: usize = 64 * 1024;

/// SIGSYS: a forbidden system call.
const SIGSYS: u8 = 31;
const SIGKILL: u8 = 9;
const SIGXCPU: u8 = 24;
const SIGSEGV: u8 = 11;

/// The first terminal cause. Later facts only add detail.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The program's value, or `undefined`.
    Value(Option<Box<RawValue>>),
    /// The worker says that the program failed.
    Failed(Box<EvaluationError>),
    /// The wall-clock limit passed.
    TimedOut,
    /// The CPU budget is used up.
    CpuUsed,
    /// Somebody asked for the end.
    Stopped(StopCause),
    /// The worker broke its protocol.
    Breach(Violation),
    /// The worker stopped talking or died; its exit report says more.
    Died,
}

/// An outcome with its value or its error.
#[derive(Debug)]
pub(crate) struct Judged {
    /// One of the four.
    pub(crate) outcome: Outcome,
    /// The program's value.
    pub(crate) value: Option<Box<RawValue>>,
    /// Why not.
    pub(crate) error: Option<EvaluationError>,
}

impl Verdict {
    /// What a worker's error means, or the breach that it is: some codes only the
    /// supervisor may give.
    ///
    /// # Errors
    /// [`Violation::Malformed`] for a code that a worker can not know to be true.
    pub(crate) fn of_error(mut error: EvaluationError) -> Result<Self, Violation> {
        use EvaluationCode as Code;
        match error.code {
            Code::TimedOut => Ok(Self::TimedOut),
            Code::CpuLimit => Ok(Self::CpuUsed),
            Code::Cancelled
            | Code::ProtocolViolation
            | Code::WorkerCrashed
            | Code::Internal
            | Code::Interrupted
            | Code::Revoked
            | Code::ApprovalDenied
            | Code::TypeErrorCheck => Err(Violation::Malformed(format!("a worker can not end with {}", error.code))),
            Code::GuestError
            | Code::SyntaxError
            | Code::UnserializableValue
            | Code::MemoryLimit
            | Code::StackLimit
            | Code::OutputLimit
            | Code::CallLimit
            | Code::ResultTooLarge
            | Code::Deadlock => {
                bound(&mut error);
                Ok(Self::Failed(Box::new(error)))
            }
        }
    }

    /// Whether the worker is to be killed rather than retired.
    pub(crate) const fn kills(&self) -> bool {
        !matches!(self, Self::Value(_) | Self::Failed(_))
    }

    /// Why a vm in which the evaluation ran is lost, if it is. A program that was
    /// cancelled and whose worker was `polite` about it has left its realm in order.
    pub(crate) const fn loses(&self, polite: bool) -> Option<Lost> {
        match self {
            Self::Value(_) | Self::Failed(_) => None,
            Self::Stopped(StopCause::Cancelled) if polite => None,
            Self::Stopped(_) => Some(Lost::Stopped),
            Self::TimedOut => Some(Lost::TimedOut),
            Self::CpuUsed => Some(Lost::CpuUsed),
            Self::Breach(_) => Some(Lost::Breach),
            Self::Died => Some(Lost::Died),
        }
    }

    /// The outcome as the caller reads it. `waiting` names the host calls that were
    /// open, `ended` is the exit report of a worker that died.
    pub(crate) fn judged(self, limits: &Limits, waiting: &[String], ended: Option<&Ended>) -> Judged {
        match self {
            Self::Value(value) => Judged { outcome: Outcome::Succeeded, value, error: None },
            Self::Failed(error) => failed(*error),
            Self::TimedOut => {
                let message = format!("the program was not done within {} ms{}", limits.timeout_ms, waited_for(waiting));
                let error = own(EvaluationCode::TimedOut, message).with_limit("timeoutMs", limits.timeout_ms);
                Judged { outcome: Outcome::TimedOut, value: None, error: Some(error) }
            }
            Self::CpuUsed => failed(cpu_limit(limits)),
            Self::Stopped(cause) if cause.is_revoke() => {
                failed(own(EvaluationCode::Revoked, format!("{}{}", cause.sentence(), waited_for(waiting))))
            }
            Self::Stopped(cause) => {
                let error = own(EvaluationCode::Cancelled, format!("{}{}", cause.sentence(), waited_for(waiting)));
                Judged { outcome: Outcome::Cancelled, value: None, error: Some(error) }
            }
            Self::Breach(violation) => {
                let message = format!("the worker broke its protocol and was killed: {violation}");
                failed(own(EvaluationCode::ProtocolViolation, message))
            }
            Self::Died => failed(match ended {
                Some(ended) => death(ended, limits),
                None => own(EvaluationCode::WorkerCrashed, "the worker is gone".to_owned()),
            }),
        }
    }
}

/// Where the program was when it was interrupted, as its worker tells: detail for an
/// error that is ours.
pub(crate) fn add_place(error: &mut EvaluationError, mut told: EvaluationError) {
    bound(&mut told);
    error.stack = told.stack;
    error.line = told.line;
    error.column = told.column;
    error.excerpt = told.excerpt;
}

fn waited_for(waiting: &[String]) -> String {
    if waiting.is_empty() { String::new() } else { format!("; it was waiting for {}", waiting.join(", ")) }
}

fn failed(error: EvaluationError) -> Judged {
    Judged { outcome: Outcome::Failed, value: None, error: Some(error) }
}

fn own(code: EvaluationCode, message: String) -> EvaluationError {
    EvaluationError::new(code, class_name(code), message)
}

/// `timed_out` → `TimedOut`, as the worker names its own.
fn class_name(code: EvaluationCode) -> String {
    let mut raise = true;
    let mut name = String::new();
    for character in code.as_str().chars() {
        if character == '_' {
            raise = true;
        } else {
            name.push(if raise { character.to_ascii_uppercase() } else { character });
            raise = false;
        }
    }
    name
}

fn cpu_limit(limits: &Limits) -> EvaluationError {
    let message = format!("the program used more than {} ms of CPU time", limits.cpu_ms);
    own(EvaluationCode::CpuLimit, message).with_limit("cpuMs", limits.cpu_ms)
}

/// What the end of a worker that nobody here killed says about its program.
fn death(ended: &Ended, limits: &Limits) -> EvaluationError {
    let crashed = |message: String| own(EvaluationCode::WorkerCrashed, message);
    match ended.fate {
        Fate::Exited(exit::HEAP_LIMIT) => {
            let message = format!("the program used more than {} bytes of heap", limits.heap_bytes);
            own(EvaluationCode::MemoryLimit, message).with_limit("heapBytes", limits.heap_bytes)
        }
        Fate::Exited(code) => {
            let meaning = exit::meaning(code).unwrap_or("no code of ours");
            crashed(format!("the worker ended in the middle of the program with exit code {code} ({meaning})"))
        }
        Fate::Signalled(SIGSYS) => crashed("the worker was killed by SIGSYS: it made a forbidden system call".to_owned()),
        Fate::Signalled(SIGXCPU) => cpu_limit(limits),
        Fate::Signalled(_) | Fate::Lost if matches!(ended.shortage, Some(Shortage::Own(_))) => out_of_memory(ended.shortage),
        Fate::Signalled(SIGKILL) if used_up(ended, limits) => cpu_limit(limits),
        Fate::Signalled(_) | Fate::Lost if ended.shortage.is_some() => out_of_memory(ended.shortage),
        Fate::Signalled(SIGKILL) => {
            crashed("the worker was killed by SIGKILL: by the kernel for lack of memory, with its nursery, or by an operator".to_owned())
        }
        Fate::Signalled(SIGSEGV) => crashed("the worker was killed by SIGSEGV: its stack overflowed, or the engine failed".to_owned()),
        Fate::Signalled(signal) => crashed(format!("the worker was killed by {}", signal_name(signal))),
        Fate::Lost => crashed("the worker is gone and nobody reported how it ended".to_owned()),
    }
}

/// The worker as a whole, not the program's heap, was more than its cgroup may hold; or
/// memory ran out that it shares, and then the program may be no bigger than others.
fn out_of_memory(shortage: Option<Shortage>) -> EvaluationError {
    let Some(Shortage::Own(bytes)) = shortage else {
        let message = "memory ran out for all that brig runs (`MemoryMax=` of brig.slice, as a service) or on the host, and the kernel ended the program's worker";
        return own(EvaluationCode::MemoryLimit, message.to_owned());
    };
    let message = format!("the worker of the program used more than {bytes} bytes of memory, and the kernel ended it");
    let mut error = own(EvaluationCode::MemoryLimit, message);
    error.limit_value = Some(bytes);
    error.setting = Some("sandbox.cgroup_memory_bytes".to_owned());
    error
}

/// The kernel's CPU timer kills at the budget, give or take a tick.
fn used_up(ended: &Ended, limits: &Limits) -> bool {
    ended.cpu.as_millis() * 100 >= u128::from(limits.cpu_ms) * 95
}

fn signal_name(signal: u8) -> String {
    nix::sys::signal::Signal::try_from(i32::from(signal)).map_or_else(|_| format!("signal {signal}"), |signal| signal.as_str().to_owned())
}

/// Cuts what a guest wrote into its error.
fn bound(error: &mut EvaluationError) {
    cut(&mut error.name, NAME_BYTES);
    cut(&mut error.message, TEXT_BYTES);
    for text in [&mut error.stack, &mut error.excerpt].into_iter().flatten() {
        cut(text, TEXT_BYTES);
    }
    for text in [&mut error.hint, &mut error.limit, &mut error.setting].into_iter().flatten() {
        cut(text, NAME_BYTES);
    }
    bound_data(&mut error.data);
    error.retryable = error.code.retryable();
    error.errors.truncate(MEMBERS);
    for member in &mut error.errors {
        bound_cause(member);
    }
    if let Some(cause) = &mut error.cause {
        bound_cause(cause);
    }
}

fn bound_cause(cause: &mut ErrorCause) {
    let mut next = Some(cause);
    let mut left = CAUSES;
    while let Some(cause) = next {
        cut(&mut cause.name, NAME_BYTES);
        cut(&mut cause.message, TEXT_BYTES);
        if let Some(code) = &mut cause.code {
            cut(code, NAME_BYTES);
        }
        bound_data(&mut cause.data);
        left -= 1;
        if left == 0 {
            cause.cause = None;
        }
        next = cause.cause.as_deref_mut();
    }
}

fn bound_data(data: &mut Option<serde_json::Value>) {
    let length = data.as_ref().and_then(|value| serde_json::to_string(value).ok()).map_or(0, |text| text.len());
    if length > DATA_BYTES {
        *data = Some(serde_json::Value::String(format!("[{length} bytes of data were left out]")));
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::panic, reason = "tests")]
    use super::*;
    use std::time::Duration;

    fn code_of(fate: Fate, cpu: Duration) -> Option<EvaluationCode> {
        let ended = Ended { fate, cpu, max_rss_bytes: 0, shortage: None };
        Verdict::Died.judged(&Limits::DEFAULT, &[], Some(&ended)).error.map(|error| error.code)
    }

    #[test]
    fn each_death_has_its_code() {
        let short = Duration::from_millis(1);
        assert_eq!(code_of(Fate::Exited(86), short), Some(EvaluationCode::MemoryLimit));
        assert_eq!(code_of(Fate::Exited(87), short), Some(EvaluationCode::WorkerCrashed));
        assert_eq!(code_of(Fate::Exited(0), short), Some(EvaluationCode::WorkerCrashed));
        assert_eq!(code_of(Fate::Signalled(SIGKILL), short), Some(EvaluationCode::WorkerCrashed));
        assert_eq!(code_of(Fate::Signalled(SIGKILL), Duration::from_secs(10)), Some(EvaluationCode::CpuLimit));
        assert_eq!(code_of(Fate::Signalled(SIGXCPU), short), Some(EvaluationCode::CpuLimit));
        assert_eq!(code_of(Fate::Lost, short), Some(EvaluationCode::WorkerCrashed));
    }

    #[test]
    fn a_kill_by_the_workers_own_cgroup_is_the_memory_limit_and_names_the_setting() {
        let ended =
            Ended { fate: Fate::Signalled(SIGKILL), cpu: Duration::from_secs(10), max_rss_bytes: 0, shortage: Some(Shortage::Own(4096)) };
        let Some(error) = Verdict::Died.judged(&Limits::DEFAULT, &[], Some(&ended)).error else { panic!("an error") };
        assert_eq!(error.code, EvaluationCode::MemoryLimit);
        assert!(error.message.contains("4096"), "{}", error.message);
        assert_eq!(error.setting.as_deref(), Some("sandbox.cgroup_memory_bytes"));
    }

    #[test]
    fn a_kill_for_lack_of_memory_that_all_share_is_the_memory_limit_and_blames_no_setting_of_the_program() {
        let error = |cpu| {
            let ended = Ended { fate: Fate::Signalled(SIGKILL), cpu, max_rss_bytes: 0, shortage: Some(Shortage::Shared) };
            Verdict::Died.judged(&Limits::DEFAULT, &[], Some(&ended)).error.unwrap_or_else(|| panic!("an error"))
        };
        let told = error(Duration::ZERO);
        assert_eq!(told.code, EvaluationCode::MemoryLimit);
        assert!(told.message.contains("brig.slice") && told.setting.is_none() && told.limit.is_none(), "{told:?}");
        assert_eq!(error(Duration::from_secs(10)).code, EvaluationCode::CpuLimit, "the CPU timer kills by the same signal");
    }

    #[test]
    fn a_crash_names_its_signal_and_a_forbidden_call_is_said_to_be_one() {
        let message = |signal| {
            let ended = Ended { fate: Fate::Signalled(signal), cpu: Duration::ZERO, max_rss_bytes: 0, shortage: None };
            Verdict::Died.judged(&Limits::DEFAULT, &[], Some(&ended)).error.map(|error| error.message).unwrap_or_default()
        };
        assert!(message(SIGSYS).contains("SIGSYS") && message(SIGSYS).contains("forbidden system call"));
        assert!(message(SIGSEGV).contains("SIGSEGV") && message(SIGSEGV).contains("stack"));
        assert!(message(7).contains("SIGBUS"));
    }

    #[test]
    fn a_worker_can_not_claim_what_only_the_supervisor_knows() {
        for code in EvaluationCode::ALL {
            let verdict = Verdict::of_error(EvaluationError::new(*code, "x", "x"));
            let own = matches!(
                code,
                EvaluationCode::Cancelled
                    | EvaluationCode::ProtocolViolation
                    | EvaluationCode::WorkerCrashed
                    | EvaluationCode::Internal
                    | EvaluationCode::Interrupted
                    | EvaluationCode::Revoked
                    | EvaluationCode::ApprovalDenied
                    | EvaluationCode::TypeErrorCheck
            );
            assert_eq!(verdict.is_err(), own, "{code}");
        }
    }

    #[test]
    fn an_error_of_any_size_is_cut_to_size() {
        let mut deep = ErrorCause { name: "x".repeat(99_999), message: "y".repeat(99_999), code: None, data: None, cause: None };
        for _ in 0..100 {
            deep = ErrorCause { cause: Some(Box::new(deep.clone())), ..deep };
        }
        let mut error = EvaluationError::new(EvaluationCode::GuestError, "n".repeat(99_999), "m".repeat(99_999));
        error.data = Some(serde_json::Value::String("d".repeat(99_999)));
        error.cause = Some(Box::new(deep.clone()));
        error.errors = vec![deep; 50];
        let Ok(Verdict::Failed(error)) = Verdict::of_error(error) else { panic!("a failure") };
        let length = serde_json::to_string(&error).map_or(0, |text| text.len());
        assert!(length < (MEMBERS + 3) * CAUSES * (TEXT_BYTES + NAME_BYTES + 200), "{length}");
    }
}
