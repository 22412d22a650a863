//! `Intl.RelativeTimeFormat`.

use rquickjs::function::Func;
use rquickjs::{Ctx, Exception, Object};
use serde::Deserialize;

use super::data::{self, RelativeUnit};
use super::number::Part;
use super::{Piece, locales, pieces};
use crate::globals::web::List;

#[derive(Deserialize)]
struct RelativeOptions {
    tag: String,
    unit: String,
    style: String,
    auto: bool,
}

pub(super) fn define(native: &Object<'_>) -> rquickjs::Result<()> {
    native.set("relativeParts", Func::from(parts))
}

/// Type, text and unit (empty for literals) in turn. `number` are the options for the
/// number, `value` its text with sign.
fn parts(ctx: Ctx<'_>, options: String, number: String, value: String) -> rquickjs::Result<List<String>> {
    let options: RelativeOptions = super::from_json(&ctx, &options)?;
    let missing = || Exception::throw_range(&ctx, "no relative times for these options");
    let relative = locales::find(&options.tag).and_then(data::relative).ok_or_else(missing)?;
    let unit = relative.get(&options.unit).and_then(|styles| styles.get(&options.style)).ok_or_else(missing)?;
    if let Some(word) = word(unit, &value).filter(|_| options.auto) {
        return Ok(List(vec!["literal".to_owned(), word.to_owned(), String::new()]));
    }
    let (direction, amount) = match value.strip_prefix('-') {
        Some(amount) => (&unit.past, amount),
        None => (&unit.future, value.as_str()),
    };
    let category = super::plural_category(ctx.clone(), number.clone(), amount.to_owned(), false)?;
    let digits = super::parts_of(&ctx, &number, amount)?;
    Ok(List(assemble(direction.get(category), &digits, &options.unit)))
}

fn word<'a>(unit: &'a RelativeUnit, value: &str) -> Option<&'a str> {
    // Zero ago and zero ahead are the same word.
    let key = if value == "-0" { "0" } else { value };
    unit.auto.get(key).map(String::as_str)
}

fn assemble(pattern: &str, digits: &[Part], unit: &str) -> Vec<String> {
    let mut out = Vec::new();
    for piece in pieces(pattern) {
        match piece {
            Piece::Text(text) => out.extend(["literal".to_owned(), text.to_owned(), String::new()]),
            Piece::Field(_) => {
                for (kind, text) in digits {
                    out.extend([(*kind).to_owned(), text.clone(), unit.to_owned()]);
                }
            }
        }
    }
    out
}
