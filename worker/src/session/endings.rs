//! Owns what a program is told that ended otherwise than by a value or an error of its own.

use brig_protocol::{
    client::{ErrorCause, EvaluationError},
    codes::EvaluationCode,
    limits::Limits,
};

use crate::value;

/// The end of a program that awaits what can not happen; `before` is what was thrown and
/// not caught, which is mostly why.
pub(super) fn deadlock(before: Option<EvaluationError>) -> EvaluationError {
    let message = "the program awaits something that can never settle: no host call and no timer is pending";
    let mut error = EvaluationError::new(EvaluationCode::Deadlock, "Deadlock", message);
    let Some(before) = before else {
        error.hint = Some("look for a promise that nothing resolves, such as new Promise(() => {})".to_owned());
        return error;
    };
    let more = before.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    error.hint =
        Some(format!("nothing caught what was thrown here, so the promise was never settled: {}: {}{more}", before.name, before.message));
    (error.line, error.column, error.excerpt) = (before.line, before.column, before.excerpt);
    error.cause =
        Some(Box::new(ErrorCause { name: before.name, message: before.message, code: None, data: before.data, cause: before.cause }));
    error
}

/// The value is too long.
pub(super) fn too_large(limits: &Limits) -> EvaluationError {
    let message =
        format!("the program's result is larger than {} bytes of JSON, or has too many values; it is never cut", limits.result_bytes);
    let mut error = EvaluationError::new(EvaluationCode::ResultTooLarge, "ResultTooLarge", message);
    error.hint = Some("return a summary, a page, or fewer fields".to_owned());
    error.with_limit("resultBytes", limits.result_bytes)
}

/// A path that is told in a message, cut in its middle.
pub(super) fn shortened(path: &str) -> String {
    const SHOWN: usize = 120;
    if path.len() <= SHOWN {
        return path.to_owned();
    }
    let front = value::text::head(path, SHOWN / 2);
    let back = value::text::head(path, path.len() - SHOWN / 2).len();
    format!("{front}…{}", path.get(back..).unwrap_or_default())
}
