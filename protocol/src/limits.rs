//! Every limit of an evaluation, in one table.
//!
//! Owns names, units, defaults, ranges, and the arithmetic of narrowing. Never
//! enforces: the worker and the supervisor do, and name the row when they do.

use crate::codes::RequestCode;
use serde::{Deserialize, Serialize};

/// Longest client line, in bytes, without its LF.
pub const REQUEST_LINE_BYTES: usize = 16 * 1024 * 1024;
/// Longest program text, in bytes of UTF-8.
pub const SOURCE_BYTES: usize = 1024 * 1024;
/// Deepest nesting of JSON in either direction, in levels.
pub const NESTING_LEVELS: u32 = 512;
/// Levels that an envelope adds around a payload.
pub const ENVELOPE_LEVELS: u32 = 8;
/// Most JSON values (scalars and containers) in one text from a client or a worker.
pub const JSON_NODES: u64 = 2_000_000;
/// Most functions one evaluation may declare.
pub const REGISTERED_FUNCTIONS: usize = 1024;
/// Largest JSON Schema, in bytes of text.
pub const SCHEMA_BYTES: usize = 64 * 1024;
/// Longest collection or function name, in bytes.
pub const NAME_BYTES: usize = 64;
/// Longest function time-out a declaration may ask for, in milliseconds.
pub const FUNCTION_TIMEOUT_MAX_MS: u64 = 300_000;
/// Most warnings in one answer; the last one then counts the rest.
pub const WARNINGS: usize = 100;

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct LimitRow {
    /// The member of `limits` in a request (or `timeoutMs`).
    pub name: &'static str,
    /// The setting of the configuration that raises the ceiling.
    pub setting: &'static str,
    /// `ms`, `bytes` or `count`.
    pub unit: &'static str,
    /// What holds when nobody says otherwise; also the ceiling without configuration.
    pub default: u64,
    /// Less than this is refused: the evaluation could not start.
    pub minimum: u64,
    /// No configuration may go above this.
    pub maximum: u64,
    /// What happens at the limit.
    pub effect: &'static str,
}

macro_rules! limit_table {
    ($($field:ident $name:literal $setting:literal $unit:literal $default:expr, $min:expr, $max:expr, $effect:literal;)+) => {
        /// The limits that hold for one evaluation. Every field has a [`LimitRow`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct Limits { $(#[doc = $effect] pub $field: u64,)+ }

        /// What a request asks for; every member may be left out.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct RequestedLimits {
            $(#[doc = $effect] #[serde(default, skip_serializing_if = "Option::is_none")] pub $field: Option<u64>,)+
        }

        /// The table: one record for each limit.
        pub const LIMITS: &[LimitRow] = &[
            $(LimitRow { name: $name, setting: $setting, unit: $unit, default: $default, minimum: $min, maximum: $max, effect: $effect },)+
        ];

        impl Limits {
            /// What holds without configuration.
            pub const DEFAULT: Self = Self { $($field: $default,)+ };

            /// The values in the order of [`LIMITS`].
            #[must_use]
            pub fn values(&self) -> Vec<u64> { vec![$(self.$field),+] }

            /// These ceilings, lowered by what a request asks for. A request can
            /// never raise one: what it asks above the ceiling is cut to it and told.
            ///
            /// # Errors
            /// [`LimitFault`] when a value is below the row's minimum.
            pub fn narrowed(&self, asked: &RequestedLimits) -> Result<Narrowed, LimitFault> {
                let mut limits = *self;
                let mut cut = Vec::new();
                $(if let Some(value) = asked.$field {
                    let minimum: u64 = $min;
                    if value.checked_sub(minimum).is_none() {
                        return Err(LimitFault { name: $name, value, minimum, maximum: self.$field });
                    }
                    if value > self.$field {
                        cut.push(Cut { name: $name, asked: value, ceiling: self.$field, setting: $setting });
                    }
                    limits.$field = value.min(self.$field);
                })+
                Ok(Narrowed { limits, cut })
            }
        }
    };
}

limit_table! {
    timeout_ms "timeoutMs" "limits.timeout_ms" "ms" 30_000, 1, 86_400_000,
        "Wall-clock time, approvals excepted. At the limit: outcome `timed_out`.";
    cpu_ms "cpuMs" "limits.cpu_ms" "ms" 10_000, 1, 3_600_000,
        "CPU time of the worker. At the limit: `failed` with `cpu_limit`.";
    heap_bytes "heapBytes" "limits.heap_bytes" "bytes" 67_108_864, 262_144, 4_294_967_296,
        "Heap of the program. At the limit: `failed` with `memory_limit`.";
    host_calls "hostCalls" "limits.host_calls" "count" 1_000, 0, 1_000_000,
        "Host calls an evaluation may make. One more rejects with `call_limit`.";
    host_calls_in_flight "hostCallsInFlight" "limits.host_calls_in_flight" "count" 64, 1, 1_024,
        "Host calls that may run at the same time. One more waits for its turn inside the worker.";
    result_bytes "resultBytes" "limits.result_bytes" "bytes" 4_194_304, 2, 16_777_216,
        "JSON text of the program's value. Larger: `failed` with `result_too_large`.";
    console_bytes "consoleBytes" "limits.console_bytes" "bytes" 262_144, 0, 16_777_216,
        "Console text of each stream. The rest is cut, with a marker and the flag.";
    input_bytes "inputBytes" "limits.input_bytes" "bytes" 1_048_576, 2, 16_777_216,
        "JSON text of one host call's input. Larger rejects with `invalid_input`.";
    output_bytes "outputBytes" "limits.output_bytes" "bytes" 4_194_304, 2, 16_777_216,
        "JSON text of one host call's output. Larger rejects with `output_too_large`.";
    drain_ms "drainMs" "limits.drain_ms" "ms" 1_000, 0, 300_000,
        "How long issued host calls may go on after the value is ready. Then they are cancelled and listed.";
    function_timeout_ms "functionTimeoutMs" "limits.function_timeout_ms" "ms" 30_000, 1, 300_000,
        "Time for one host call. At the limit it rejects with `function_timed_out`.";
}

/// Limits after narrowing, with what was cut to a ceiling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Narrowed {
    /// What holds for the evaluation.
    pub limits: Limits,
    /// What the request asked above its ceiling.
    pub cut: Vec<Cut>,
}

/// A limit that was asked above its ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Name of the row.
    pub name: &'static str,
    /// What was asked.
    pub asked: u64,
    /// What holds.
    pub ceiling: u64,
    /// The setting that raises the ceiling.
    pub setting: &'static str,
}

/// A limit below its minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("limit {name} is {value}; it must be between {minimum} and {maximum}")]
pub struct LimitFault {
    /// Name of the row.
    pub name: &'static str,
    /// What was asked.
    pub value: u64,
    /// The least that is accepted.
    pub minimum: u64,
    /// The ceiling of this principal.
    pub maximum: u64,
}

impl LimitFault {
    /// The code this fault is answered with.
    pub const CODE: RequestCode = RequestCode::InvalidParams;
}

/// Names a limit, its value and the setting that raises it, the same way everywhere:
/// `limit hostCalls is 1000; limits.host_calls raises it`.
#[must_use]
pub fn named(name: &str, value: u64) -> String {
    let setting = row(name).map_or("no setting", |row| row.setting);
    format!("limit {name} is {value}; {setting} raises it")
}

/// The row with this name.
#[must_use]
pub fn row(name: &str) -> Option<&'static LimitRow> {
    LIMITS.iter().find(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_lies_within_its_range() {
        for row in LIMITS {
            assert!(row.minimum <= row.default && row.default <= row.maximum, "{}", row.name);
        }
    }

    #[test]
    fn narrowing_lowers_and_never_raises() {
        let asked = RequestedLimits { cpu_ms: Some(5), heap_bytes: Some(u64::MAX), ..Default::default() };
        let narrowed = Limits::DEFAULT.narrowed(&asked).ok();
        let narrowed = narrowed.as_ref();
        assert_eq!(narrowed.map(|n| n.limits.cpu_ms), Some(5));
        assert_eq!(narrowed.map(|n| n.limits.heap_bytes), Some(Limits::DEFAULT.heap_bytes));
        assert_eq!(narrowed.map(|n| n.cut.len()), Some(1));
    }

    #[test]
    fn a_value_below_the_minimum_is_refused_by_name() {
        let asked = RequestedLimits { heap_bytes: Some(1), ..Default::default() };
        assert_eq!(Limits::DEFAULT.narrowed(&asked).err().map(|fault| fault.name), Some("heapBytes"));
    }
}
