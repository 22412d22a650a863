//! `Intl.DateTimeFormat`: an instant and resolved options to typed parts.

use rquickjs::function::Func;
use rquickjs::{Ctx, Exception, Object};
use serde::Deserialize;

use super::data::{self, Dates};
use super::number::Part;
use super::zone;
use super::{Piece, flat, from_json, joined, locales, pieces, zone_name};
use crate::globals::web::List;

const DAY_MS: i64 = 86_400_000;

/// Options as the JavaScript side resolved them. Fields are coded by one letter: `n`
/// numeric, `2` two digits, `l` long, `s` short, `w`/`n` narrow, `-` absent.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DateOptions {
    tag: String,
    pub(super) time_zone: String,
    date_style: Option<String>,
    pub(super) time_style: Option<String>,
    hour_cycle: String,
    weekday: char,
    era: Option<String>,
    year: char,
    month: char,
    day: char,
    hour: char,
    minute: char,
    second: char,
    fraction: usize,
    pub(super) time_zone_name: Option<String>,
}

/// A civil date and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Civil {
    year: i64,
    month: usize,
    day: i64,
    weekday: usize,
    hour: usize,
    minute: i64,
    second: i64,
    milli: i64,
}

pub(super) fn define(native: &Object<'_>) -> rquickjs::Result<()> {
    native.set("formatDate", Func::from(format))?;
    native.set("dateParts", Func::from(parts))?;
    native.set("datePattern", Func::from(resolved_pattern))?;
    native.set("hourCycles", Func::from(hour_cycles))
}

fn format(ctx: Ctx<'_>, options: String, time: f64) -> rquickjs::Result<String> {
    // As V8 does: text for people has a plain space before AM, parts keep the narrow one.
    build(&ctx, &options, time).map(|parts| joined(parts).replace('\u{202f}', " "))
}

fn parts(ctx: Ctx<'_>, options: String, time: f64) -> rquickjs::Result<List<String>> {
    build(&ctx, &options, time).map(flat)
}

/// The pattern that the options come to, or nothing when there is none for them.
fn resolved_pattern(ctx: Ctx<'_>, options: String) -> rquickjs::Result<Option<String>> {
    let options: DateOptions = from_json(&ctx, &options)?;
    let dates = locales::find(&options.tag).and_then(data::dates);
    Ok(dates.and_then(|dates| pattern(&dates, &options)))
}

/// The locale's own hour cycle, that for `hour12: true`, that for `hour12: false`.
fn hour_cycles(tag: String) -> List<String> {
    let dates = locales::find(&tag).and_then(data::dates);
    List(dates.map(|d| vec![d.hour_cycle.clone(), d.hour12.clone(), d.hour24.clone()]).unwrap_or_default())
}

fn build(ctx: &Ctx<'_>, options: &str, time: f64) -> rquickjs::Result<Vec<Part>> {
    let options: DateOptions = from_json(ctx, options)?;
    let missing = || Exception::throw_range(ctx, "no date pattern for these options");
    let entry = locales::find(&options.tag).ok_or_else(missing)?;
    let dates = data::dates(entry).ok_or_else(missing)?;
    let pattern = pattern(&dates, &options).ok_or_else(missing)?;
    let zone = zone::get(&options.time_zone).ok_or_else(missing)?;
    // A time value is a whole number of milliseconds within ±8.64e15.
    #[expect(clippy::cast_possible_truncation, reason = "checked range, whole number")]
    let time = time as i64;
    let offset = zone.at(time.div_euclid(1000));
    let civil = Civil::at(time + i64::from(offset.seconds) * 1000);
    let zone_text = || zone_name::name(&dates, entry, &options, time.div_euclid(1000), offset);
    fill(&pattern, &dates, &options, civil, &zone_text).ok_or_else(|| Exception::throw_range(ctx, &unnamed(&options)))
}

fn unnamed(options: &DateOptions) -> String {
    format!(
        "timeZoneName \"{}\" is not available for {} in {}; use \"shortOffset\" or \"longOffset\"",
        options.time_zone_name.as_deref().unwrap_or("short"),
        options.time_zone,
        options.tag
    )
}

fn fill(pattern: &str, dates: &Dates, options: &DateOptions, at: Civil, zone_text: &dyn Fn() -> Option<String>) -> Option<Vec<Part>> {
    let mut out: Vec<Part> = Vec::new();
    for piece in pieces(pattern) {
        let field = match piece {
            Piece::Text(text) => {
                out.push(("literal", text.to_owned()));
                continue;
            }
            Piece::Field(field) => field,
        };
        let set = |sets: &[Vec<String>], item: usize| {
            let index: usize = field.get(1..)?.parse().ok()?;
            sets.get(index)?.get(item).cloned()
        };
        let era_year = if at.year > 0 { at.year } else { 1 - at.year };
        let hour = i64::try_from(at.hour).ok()?;
        let two = |value: i64| format!("{value:02}");
        let clock = |value: i64| if field.len() == 2 { two(value) } else { value.to_string() };
        out.push(match field.as_bytes() {
            b"y" => ("year", era_year.to_string()),
            b"yy" => ("year", two(era_year % 100)),
            b"M" | b"MM" => ("month", clock(i64::try_from(at.month).ok()? + 1)),
            [b'N', ..] => ("month", set(&dates.month_sets, at.month)?),
            b"d" | b"dd" => ("day", clock(at.day)),
            [b'E', ..] => ("weekday", set(&dates.weekday_sets, at.weekday)?),
            b"G" => {
                let width = options.era.as_deref().unwrap_or("short");
                let [before, after] = dates.eras.get(width)?;
                ("era", if at.year > 0 { after } else { before }.clone())
            }
            b"H" | b"HH" => ("hour", clock(hour)),
            b"h" | b"hh" => ("hour", clock((hour + 11) % 12 + 1)),
            b"K" | b"KK" => ("hour", clock(hour % 12)),
            b"k" | b"kk" => ("hour", clock((hour + 23) % 24 + 1)),
            b"m" | b"mm" => ("minute", clock(at.minute)),
            b"s" | b"ss" => ("second", clock(at.second)),
            [b'S', ..] => {
                let digits: usize = field.get(1..)?.parse().ok()?;
                ("fractionalSecond", format!("{:03}", at.milli).get(..digits)?.to_owned())
            }
            [b'a', ..] => ("dayPeriod", set(&dates.period_sets, at.hour)?),
            b"z" => ("timeZoneName", zone_text()?),
            _ => return None,
        });
    }
    Some(out)
}

fn pattern(dates: &Dates, o: &DateOptions) -> Option<String> {
    if o.date_style.is_some() || o.time_style.is_some() {
        let letter = |style: &Option<String>| style.as_ref().and_then(|s| s.chars().next()).unwrap_or('-');
        let key = format!("{}{}", letter(&o.date_style), letter(&o.time_style));
        let table = if o.time_style.is_some() { o.hour_cycle.as_str() } else { "h12" };
        let index = *dates.styles.get(table)?.get(&key)?;
        return dates.patterns.get(index).cloned();
    }
    let date = date_index(o)?;
    let time = time_index(o)?;
    let at = |index: i32| dates.patterns.get(usize::try_from(index).ok()?).cloned();
    let table = if o.hour == '-' { "none" } else { o.hour_cycle.as_str() };
    let time_pattern = || at(*dates.time_table.get(table)?.get(time)?);
    let date_pattern = || at(*dates.date_table.get(date)?);
    match (date > 0, time > 0 || o.hour != '-') {
        (false, false) => None,
        (true, false) => date_pattern(),
        (false, true) => time_pattern(),
        (true, true) => {
            let zone = ["-", "s", "o"].get(zone_class(o))?;
            let key = format!(
                "{}{}{}{}{}{}{}{}{zone}{}",
                o.weekday, o.year, o.month, o.day, o.hour, o.minute, o.second, o.fraction, o.hour_cycle
            );
            if let Some(index) = dates.whole.get(&key).filter(|_| o.era.is_none()) {
                return dates.patterns.get(*index).cloned();
            }
            let bare_weekday = o.year == '-' && o.month == '-' && o.day == '-';
            let odd_clock = o.fraction > 0 || !matches!(o.hour_cycle.as_str(), "h12" | "h23");
            if bare_weekday && o.hour != '-' && odd_clock {
                return None;
            }
            let class = match (o.month, o.weekday) {
                ('l', '-') => "l",
                ('l', _) => "f",
                ('s', _) => "m",
                _ => "s",
            };
            Some(format!("{}{}{}", date_pattern()?, dates.glue.get(class)?, time_pattern()?))
        }
    }
}

/// Where the date fields stand in the table: era, weekday, year, month, day.
fn date_index(o: &DateOptions) -> Option<usize> {
    let era = usize::from(o.era.is_some());
    let weekday = "-lsn".find(o.weekday)?;
    let year = "-n2".find(o.year)?;
    let month = "-n2lsw".find(o.month)?;
    let day = "-n2".find(o.day)?;
    Some((((era * 4 + weekday) * 3 + year) * 6 + month) * 3 + day)
}

/// Where the time fields stand in their table; 0 is nothing only without an hour.
fn time_index(o: &DateOptions) -> Option<usize> {
    let minute = "-n2".find(o.minute)?;
    let second = "-n2".find(o.second)?;
    let rest = ((minute * 3 + second) * 4 + o.fraction.min(3)) * 3 + zone_class(o);
    match o.hour {
        '-' | 'n' => Some(rest),
        '2' => Some(rest + 108),
        _ => None,
    }
}

/// No zone name, a short one, any other: the kinds that patterns tell apart.
fn zone_class(o: &DateOptions) -> usize {
    match o.time_zone_name.as_deref() {
        None => 0,
        Some("short") => 1,
        Some(_) => 2,
    }
}

impl Civil {
    /// The civil time of milliseconds counted on the local clock (proleptic Gregorian).
    fn at(local: i64) -> Self {
        let days = local.div_euclid(DAY_MS);
        let within = local.rem_euclid(DAY_MS);
        // Days are counted from 1 March of year 0, so that a leap day ends a year.
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let of_era = shifted.rem_euclid(146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = (shifted_month + 2) % 12;
        let year = year_of_era + era * 400 + i64::from(month < 2);
        let index = |value: i64| usize::try_from(value).unwrap_or(0);
        Self {
            year,
            month: index(month),
            day,
            weekday: index((days + 4).rem_euclid(7)),
            hour: index(within / 3_600_000),
            minute: within / 60_000 % 60,
            second: within / 1_000 % 60,
            milli: within % 1_000,
        }
    }
}
