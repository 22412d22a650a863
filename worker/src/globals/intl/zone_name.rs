//! Names of time zones: offsets in every locale, words where CLDR has them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use serde::Deserialize;

use super::data::Dates;
use super::date::DateOptions;
use super::locales::Entry;
use super::zone::Offset;

const EARLY: [&str; 5] = ["Europe/London", "Europe/Dublin", "Europe/Guernsey", "Europe/Isle_of_Man", "Europe/Jersey"];

/// Long standard, long summer, short standard, short summer; absent: the offset is shown.
type Words = [Option<String>; 4];

#[derive(Deserialize)]
struct Names {
    meta: HashMap<usize, Words>,
    zone: HashMap<String, Words>,
}

/// A meta zone with the seconds from and until which it was used.
type Use = (usize, Option<i64>, Option<i64>);

#[derive(Deserialize)]
struct Uses {
    zones: HashMap<String, Vec<Use>>,
    aliases: HashMap<String, String>,
}

thread_local! {
    static USES: RefCell<Option<Rc<Uses>>> = const { RefCell::new(None) };
    static NAMES: RefCell<HashMap<&'static str, Option<Rc<Names>>>> = RefCell::default();
}

fn uses() -> Option<Rc<Uses>> {
    USES.with_borrow_mut(|cell| {
        if cell.is_none() {
            *cell = serde_json::from_str(include_str!("data/zones.json")).ok().map(Rc::new);
        }
        cell.clone()
    })
}

fn names(entry: &'static Entry) -> Option<Rc<Names>> {
    NAMES.with_borrow_mut(|map| map.entry(entry.tag).or_insert_with(|| serde_json::from_str(entry.zones).ok().map(Rc::new)).clone())
}

/// The text for `timeZoneName` at an instant in seconds since 1970.
pub(super) fn name(dates: &Dates, entry: &'static Entry, options: &DateOptions, seconds: i64, offset: Offset) -> Option<String> {
    let [short, long] = &dates.offsets;
    let in_digits = |wide: bool| in_offset(if wide { long } else { short }, offset.seconds, wide);
    // Styles show a zone too: the full one in words, the long one abbreviated.
    let asked = options.time_zone_name.as_deref();
    let style = options.time_style.as_deref();
    match asked.or(style.map(|style| if style == "full" { "long" } else { "short" })) {
        Some("longOffset") => Some(in_digits(true)),
        Some("shortOffset") => Some(in_digits(false)),
        Some("long") => words(entry, &options.time_zone, seconds, offset, true).unwrap_or_else(|| Some(in_digits(true))),
        _ => words(entry, &options.time_zone, seconds, offset, false).unwrap_or_else(|| Some(in_digits(false))),
    }
}

/// The words, nothing when the offset is to be shown, or `Some(None)` when they are unknown.
fn words(entry: &'static Entry, zone: &str, seconds: i64, offset: Offset, long: bool) -> Option<Option<String>> {
    let (Some(uses), Some(names)) = (uses(), names(entry)) else {
        return Some(None);
    };
    let zone = uses.aliases.get(zone).map_or(zone, String::as_str);
    // CLDR's record of who called a clock what starts in 1970.
    if seconds < 0 && zone != "UTC" {
        // British and Irish names go further back, by rules that are not here.
        return EARLY.contains(&zone).then_some(None);
    }
    let list = uses.zones.get(zone);
    let latest = list.and_then(|list| list.last()).and_then(|(_, from, _)| *from);
    let own = names.zone.get(zone).filter(|_| latest.is_none_or(|from| from <= seconds));
    let of_meta = || {
        let within = |(_, from, to): &&Use| from.is_none_or(|from| from <= seconds) && to.is_none_or(|to| seconds < to);
        let (meta, _, _) = list?.iter().find(within)?;
        names.meta.get(meta)
    };
    let [long_standard, long_summer, short_standard, short_summer] = own.or_else(of_meta)?;
    let word = match (long, offset.summer) {
        (true, false) => long_standard,
        (true, true) => long_summer,
        (false, false) => short_standard,
        (false, true) => short_summer,
    };
    word.clone().map(Some)
}

/// An offset written after the examples for UTC, +9:00, +5:30 and -5:00.
fn in_offset(examples: &[String; 4], seconds: i32, long: bool) -> String {
    let [zero, plus, half, minus] = examples;
    if seconds == 0 {
        return zero.clone();
    }
    let example = if seconds < 0 { minus } else { plus };
    let start = example.find(|c: char| c.is_ascii_digit()).unwrap_or(example.len());
    let between = half.trim_end_matches(|c: char| c.is_ascii_digit());
    let between = between.chars().next_back().unwrap_or(':');
    let mut out = example.get(..start).unwrap_or_default().to_owned();
    let (hours, minutes, rest) = (seconds.abs() / 3600, seconds.abs() / 60 % 60, seconds.abs() % 60);
    out.push_str(&if long { format!("{hours:02}{between}{minutes:02}") } else { hours.to_string() });
    if !long && (minutes > 0 || rest > 0) {
        out.push_str(&format!("{between}{minutes:02}"));
    }
    if rest > 0 {
        out.push_str(&format!("{between}{rest:02}"));
    }
    out
}
