//! Values of arguments: limits, times, sizes, patterns.
//!
//! Owns how they are written, and what is said of one that is not.

use brig::RequestedLimits;
use brig::protocol::limits::{LIMITS, LimitRow};
use brig::protocol::names::Pattern;
use std::time::Duration;

/// One `--limit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LimitArg {
    name: &'static str,
    value: u64,
}

/// The limits that were asked for, the last of each name.
pub(crate) fn requested_limits(asked: &[LimitArg]) -> RequestedLimits {
    let members: serde_json::Map<String, serde_json::Value> =
        asked.iter().map(|limit| (limit.name.to_owned(), serde_json::Value::from(limit.value))).collect();
    // Every name is a row's, and every row a member.
    serde_json::from_value(serde_json::Value::Object(members)).unwrap_or_default()
}

pub(super) fn limit(text: &str) -> Result<LimitArg, String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE, such as heapBytes=16MiB")?;
    let row = LIMITS.iter().find(|row| row.name == name).ok_or_else(|| {
        let names: Vec<&str> = LIMITS.iter().map(|row| row.name).collect();
        format!("there is no limit {name:?}; the limits are {}", names.join(", "))
    })?;
    let value = limit_value(row, value)?;
    if value < row.minimum {
        return Err(format!("{name} is at least {} ({})", row.minimum, row.unit));
    }
    Ok(LimitArg { name: row.name, value })
}

fn limit_value(row: &LimitRow, text: &str) -> Result<u64, String> {
    if let Ok(value) = text.parse() {
        return Ok(value);
    }
    let value = match row.unit {
        "ms" => time(text).ok().map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        "bytes" => bytes(text),
        _ => None,
    };
    value.ok_or_else(|| match row.unit {
        "ms" => format!("{text:?} is no time: write milliseconds, or a number with ms, s or m"),
        "bytes" => format!("{text:?} is no size: write bytes, or a number with KiB, MiB or GiB"),
        _ => format!("{text:?} is no whole number"),
    })
}

fn bytes(text: &str) -> Option<u64> {
    let units = [("KiB", 1u64 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
    units.iter().find_map(|(unit, factor)| text.strip_suffix(unit)?.trim_end().parse::<u64>().ok()?.checked_mul(*factor))
}

pub(super) fn time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time: write a number with its unit, such as 500ms, 5s or 2m");
    let units = [("ms", 1u64), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
    let (number, factor) =
        units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?.trim_end(), *factor))).ok_or_else(wrong)?;
    let whole = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)).map(Duration::from_millis);
    let time = match whole {
        Some(time) => time,
        None => decimal(number, factor).ok_or_else(wrong)?,
    };
    if time.is_zero() { Err("a time limit of nothing would let nothing run".to_owned()) } else { Ok(time) }
}

/// `1.5` of a unit.
fn decimal(number: &str, factor: u64) -> Option<Duration> {
    if !number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let number: f64 = number.parse().ok()?;
    Duration::try_from_secs_f64(number * Duration::from_millis(factor).as_secs_f64()).ok()
}

pub(super) fn pattern(text: &str) -> Result<String, String> {
    Pattern::parse(text).map(|pattern| pattern.as_str().to_owned()).map_err(|fault| fault.to_string())
}
