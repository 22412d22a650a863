//! Params and results of the client protocol: what is accepted is understood in full, and
//! is written again so that it reads as the same.

use crate::drive::{behaviour, fuzz};
use crate::envelopes::WORDS;
use crate::same::assert_same;
use brig_protocol::client::{
    CallFailure, CancelParams, CheckParams, EvaluateParams, EvaluateResult, FunctionMap, FunctionsCallParams, FunctionsDescribeParams,
    FunctionsListParams, FunctionsTypesParams, HostCallParams, HostCancelParams, InitializeParams, InitializeResult, Mode, OutputNote,
    Permissions, Scope, VmCreateParams, VmDisposeParams, WarningNote,
};
use brig_protocol::json;
use brig_protocol::limits::{LIMITS, Limits, RequestedLimits};
use brig_protocol::names::Pattern;
use brig_protocol::rpc::{self, ErrorData, Message};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// How exactly the text of a type says what was read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exact {
    /// Every member, defaults excepted.
    Every,
    /// Unknown members are let go, or times are rounded: only what is written is kept.
    Written,
}

/// Reads `text` as a `T`; whether it is one.
fn survives<'t, T: Deserialize<'t> + Serialize>(text: &'t str, exact: Exact) -> Result<String, String> {
    let read: T = serde_json::from_str(text).map_err(|fault| fault.to_string())?;
    let written = serde_json::to_string(&read).unwrap();
    if exact == Exact::Every {
        assert_same(text, &written);
    }
    Ok(written)
}

/// The same for a type that borrows: `$type` is read from the text, and from its own text.
macro_rules! survives {
    ($text:expr, $exact:expr, $($type:ty),+ $(,)?) => {{
        let text: &str = $text;
        let mut told = String::new();
        $(match survives::<$type>(text, $exact) {
            Ok(written) => {
                let again = survives::<$type>(&written, $exact).unwrap_or_else(|fault| panic!("{fault}: {written}"));
                assert_eq!(written, again, "{}", stringify!($type));
                told.push('+');
            }
            Err(fault) => told.push_str(&fault),
        })+
        told
    }};
}

/// The envelope lets nothing else through.
fn object(input: &[u8]) -> Option<&str> {
    std::str::from_utf8(input).ok().filter(|text| json::is_object(text))
}

/// The payloads of the lines that the envelope target begins with.
fn payloads() -> Vec<Vec<u8>> {
    let payload = |line: &Vec<u8>| match rpc::read(line).ok()? {
        Message::Request { params, .. } | Message::Notification { params, .. } => params.map(RawValue::get).map(str::to_owned),
        Message::Response { outcome: Ok(result), .. } => Some(result.get().to_owned()),
        Message::Response { outcome: Err(error), .. } => error.data.map(RawValue::get).map(str::to_owned),
    };
    crate::seeds::lines().iter().filter_map(payload).map(String::into_bytes).collect()
}

#[test]
fn params_are_refused_or_understood_in_full() {
    fuzz(&crate::target("params", WORDS, 90), payloads(), |input| {
        let Some(text) = object(input) else { return behaviour("no object") };
        let strict = survives!(
            text,
            Exact::Every,
            EvaluateParams<'_>,
            CheckParams<'_>,
            CancelParams,
            InitializeParams,
            InitializeResult,
            VmCreateParams<'_>,
            VmDisposeParams,
            FunctionsCallParams<'_>,
            FunctionsDescribeParams,
            FunctionsListParams,
            FunctionsTypesParams<'_>,
            RequestedLimits,
            Limits,
        );
        let lax = survives!(
            text,
            Exact::Written,
            EvaluateResult,
            HostCallParams<'_>,
            HostCancelParams,
            CallFailure<'_>,
            ErrorData,
            OutputNote,
            WarningNote,
        );
        if let Ok(EvaluateParams { host_functions: Some(collections), .. }) = serde_json::from_str(text) {
            unique(&collections);
            collections.0.iter().for_each(|(_, functions)| unique(functions));
        }
        if let Ok(asked) = serde_json::from_str::<RequestedLimits>(text) {
            narrows(&asked);
        }
        behaviour(&format!("{strict}|{lax}"))
    });
}

/// No function hides another of the same name.
fn unique<T>(map: &FunctionMap<T>) {
    let names: std::collections::BTreeSet<&str> = map.0.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.len(), map.0.len());
}

/// Nothing that is asked raises a limit, and a limit that holds is one that was allowed.
fn narrows(asked: &RequestedLimits) {
    let ceilings = Limits::DEFAULT.values();
    match Limits::DEFAULT.narrowed(asked) {
        Ok(narrowed) => {
            for ((value, ceiling), row) in narrowed.limits.values().iter().zip(&ceilings).zip(LIMITS) {
                assert!(value <= ceiling && *value >= row.minimum, "{} became {value}", row.name);
            }
            assert!(narrowed.cut.iter().all(|cut| cut.asked > cut.ceiling));
        }
        Err(fault) => assert!(fault.value < fault.minimum, "{fault}"),
    }
}

#[test]
fn a_permission_scope_is_refused_or_understood_in_full() {
    let seeds = [
        r#"{"hostFunction":"allow"}"#,
        r#"{"hostFunction":{"rules":[{"mode":"allow","patterns":["orders.*"]}]}}"#,
        r#"{"hostFunction":{"default":"allow","rules":[{"mode":"ask","operations":["invoke"],"patterns":["a:b","**"],"when":{"a":1},"why":"w"},{"mode":"deny","patterns":[]}]}}"#,
        r#"{}"#,
    ];
    fuzz(&crate::target("permissions", WORDS, 90), seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect(), |input| {
        let Some(text) = object(input) else { return behaviour("no object") };
        let told = survives!(text, Exact::Every, Permissions<'_>);
        let Ok(Permissions { host_function: Some(scope) }) = serde_json::from_str::<Permissions<'_>>(text) else { return behaviour(&told) };
        let scope_told = match scope {
            Scope::All(mode) => {
                assert_ne!(mode, Mode::Ask, "nobody is asked about everything");
                format!("{mode:?}")
            }
            Scope::Rules(rules) => {
                let parsed = rules.rules.iter().flat_map(|rule| &rule.patterns).filter(|pattern| Pattern::parse(pattern).is_ok()).count();
                format!("{:?} {} {}", rules.default, "r".repeat(rules.rules.len().min(5)), "p".repeat(parsed.min(5)))
            }
        };
        behaviour(&scope_told)
    });
}
