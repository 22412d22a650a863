//! Locale-aware formatting: `Intl` and the `toLocale*` methods, right or refused.
//!
//! The tables in `intl/data` were taken from ICU by `intl/generate.mjs`; arithmetic, plural
//! rules and assembly are here, collation and case mapping are ICU4X's, time zones are the
//! tz database compiled in. Whatever is not covered is a `RangeError` that says what is.
//! Nothing here reads a file, the environment or the clock.

mod collate;
mod data;
mod date;
mod decimal;
mod locales;
mod number;
mod number_options;
mod plural;
mod relative;
mod zone;
mod zone_name;

use rquickjs::function::Func;
use rquickjs::{Ctx, Exception, Object};

use super::web::{self, List};
use decimal::Numeric;
use number::{Formatter, Part};
use number_options::NumberOptions;

const SOURCES: [(&str, &str); 4] = [
    ("brig:intl", include_str!("intl/locale.js")),
    ("brig:intl-number", include_str!("intl/number.js")),
    ("brig:intl-date", include_str!("intl/date.js")),
    ("brig:intl-text", include_str!("intl/text.js")),
];

/// Puts `Intl` on `globalThis` and replaces the `toLocale*` methods of the engine.
///
/// What names no time zone is in that of the evaluation, set by [`set_time_zone`].
///
/// # Errors
/// When the realm refuses a definition.
pub(crate) fn install(ctx: &Ctx<'_>) -> rquickjs::Result<()> {
    let intrinsics = web::intrinsics(ctx)?;
    let native = native(ctx)?;
    let intl = Object::new(ctx.clone())?;
    for (name, source) in SOURCES {
        web::compile(ctx, name, source)?.call::<_, ()>((native.clone(), intrinsics.clone(), intl.clone()))?;
    }
    Ok(())
}

pub(crate) use zone::set_time_zone;

fn native<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    native.set_prototype(None)?;
    native.set("canonicalTag", Func::from(|tag: String| locales::canonical(&tag)))?;
    native.set("splitTag", Func::from(|tag: String| List(locales::split(&tag))))?;
    native.set("hasLocale", Func::from(|tag: String| locales::find(&tag).is_some()))?;
    native.set("offeredLocales", Func::from(locales::offered))?;
    native.set("hasCurrency", Func::from(has_currency))?;
    native.set("currencyDigits", Func::from(currency_digits))?;
    native.set("hasUnit", Func::from(has_unit))?;
    native.set("list", Func::from(list))?;
    native.set("formatNumber", Func::from(format_number))?;
    native.set("numberParts", Func::from(number_parts))?;
    native.set("plural", Func::from(plural_category))?;
    native.set("pluralCategories", Func::from(plural_categories))?;
    native.set("listPatterns", Func::from(list_patterns))?;
    native.set("displayName", Func::from(display_name))?;
    collate::define(&native)?;
    date::define(&native)?;
    relative::define(&native)?;
    zone::define(&native)?;
    Ok(native)
}

/// A piece of a pattern: text, or a field named between braces.
enum Piece<'a> {
    Text(&'a str),
    Field(&'a str),
}

fn pieces(pattern: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = pattern;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(inner) = rest.strip_prefix('{') {
            let (field, tail) = inner.split_once('}').unwrap_or((inner, ""));
            rest = tail;
            return Some(Piece::Field(field));
        }
        let end = rest.find('{').unwrap_or(rest.len());
        let (text, tail) = rest.split_at(end);
        rest = tail;
        Some(Piece::Text(text))
    })
}

fn has_currency(code: String) -> bool {
    data::shared().is_some_and(|shared| shared.currencies.contains(&code))
}

fn currency_digits(code: String) -> u32 {
    data::shared().and_then(|shared| shared.currency_digits.get(&code).copied()).unwrap_or(2)
}

fn has_unit(unit: String) -> bool {
    data::shared().is_some_and(|shared| shared.units.contains(&unit))
}

/// What `Intl.supportedValuesOf` lists.
fn list(kind: String) -> List<String> {
    List(match kind.as_str() {
        "currency" => data::shared().map(|s| s.currencies.clone()).unwrap_or_default(),
        "unit" => data::shared().map(|s| s.units.iter().filter(|unit| !unit.contains("-per-")).cloned().collect()).unwrap_or_default(),
        "timeZone" => zone::names(),
        _ => Vec::new(),
    })
}

/// Parts of a number for options in JSON and the number's text.
fn parts_of(ctx: &Ctx<'_>, options: &str, value: &str) -> rquickjs::Result<Vec<Part>> {
    with_formatter(ctx, options, value, |formatter, value| formatter.parts(value))
}

fn with_formatter<T>(ctx: &Ctx<'_>, options: &str, value: &str, then: impl FnOnce(&Formatter<'_>, &Numeric) -> T) -> rquickjs::Result<T> {
    let options: NumberOptions = from_json(ctx, options)?;
    let Some(value) = Numeric::parse(value) else {
        return Err(Exception::throw_range(ctx, "the number has too many digits to format"));
    };
    let numbers =
        locales::find(&options.tag).and_then(data::numbers).ok_or_else(|| Exception::throw_range(ctx, "no data for this locale"))?;
    Ok(then(&Formatter::new(&numbers, &options), &value))
}

fn from_json<T: serde::de::DeserializeOwned>(ctx: &Ctx<'_>, text: &str) -> rquickjs::Result<T> {
    serde_json::from_str(text).map_err(|error| Exception::throw_type(ctx, &error.to_string()))
}

fn format_number(ctx: Ctx<'_>, options: String, value: String) -> rquickjs::Result<String> {
    Ok(joined(parts_of(&ctx, &options, &value)?))
}

fn number_parts(ctx: Ctx<'_>, options: String, value: String) -> rquickjs::Result<List<String>> {
    Ok(flat(parts_of(&ctx, &options, &value)?))
}

fn joined(parts: Vec<Part>) -> String {
    parts.into_iter().map(|(_, text)| text).collect()
}

/// Type and text in turn; neighbouring literals are one.
fn flat(parts: Vec<Part>) -> List<String> {
    let mut out: Vec<String> = Vec::with_capacity(parts.len() * 2);
    let mut literal = false;
    for (kind, text) in parts {
        if text.is_empty() && kind == "literal" {
            continue;
        }
        match out.last_mut() {
            Some(last) if literal && kind == "literal" => last.push_str(&text),
            _ => out.extend([kind.to_owned(), text]),
        }
        literal = kind == "literal";
    }
    List(out)
}

fn plural_category(ctx: Ctx<'_>, options: String, value: String, ordinal: bool) -> rquickjs::Result<&'static str> {
    with_formatter(&ctx, &options, &value, |formatter, value| formatter.category(value, ordinal))
}

fn plural_categories(tag: String, ordinal: bool) -> List<&'static str> {
    let tag = locales::find(&tag).map_or("en-US", |entry| entry.tag);
    List(plural::categories(tag, ordinal).to_vec())
}

fn list_patterns(tag: String, key: String) -> List<String> {
    let lists = locales::find(&tag).and_then(data::lists);
    List(lists.and_then(|lists| lists.get(&key).map(|patterns| patterns.to_vec())).unwrap_or_default())
}

fn display_name(tag: String, kind: String, code: String) -> Option<String> {
    let entry = locales::find(&tag)?;
    data::names(entry)?.get(&kind)?.get(&code).cloned()
}

#[cfg(test)]
mod tests;
