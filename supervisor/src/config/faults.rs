//! Everything that is wrong with the keys and the types of a TOML text, at once.
//!
//! Owns going on after the first fault: what it is about is left out, and the rest is read.
//! Never knows what a key means.

use brig_protocol::escape::line;
use serde::de::DeserializeOwned;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, Error};

/// Most faults that are told of one text.
const MOST: usize = 50;

/// What a text says.
///
/// # Errors
/// All faults, in the order of their places; one only where it is not TOML.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Vec<Error>> {
    let mut table = DeTable::parse(text).map_err(|fault| vec![fault])?;
    let mut left_out = Vec::new();
    let mut faults = Vec::new();
    for _ in 0..MOST {
        let mut fault = match T::deserialize(Deserializer::from(table.clone())) {
            Ok(value) if faults.is_empty() => return Ok(value),
            Ok(_) => break,
            Err(fault) => fault,
        };
        fault.set_input(Some(text));
        let key = fault.span().and_then(|span| without(table.get_mut(), &span));
        // That what was left out is missing is no fault of the text.
        let follows = fault.message().strip_prefix("missing field ").is_some_and(|name| left_out.iter().any(|key| *key == name));
        if !follows {
            faults.push(fault);
        }
        match key {
            Some(key) => left_out.push(format!("`{key}`")),
            None => break,
        }
    }
    faults.sort_by_key(|fault| fault.span().map_or(0, |span| span.start));
    Err(faults)
}

/// Takes out the key, or the innermost value, that stands at `span`. Its name.
fn without(table: &mut DeTable<'_>, span: &Range<usize>) -> Option<String> {
    let own = table.iter().find(|(key, _)| key.span() == *span).map(|(key, _)| key.clone());
    let key = match own {
        Some(key) => key,
        None => {
            for (_, value) in table.iter_mut() {
                if let Some(inner) = within(value, span) {
                    return Some(inner);
                }
            }
            let around = |value: &Spanned<DeValue<'_>>| value.span().start <= span.start && span.end <= value.span().end;
            table.iter().find(|(_, value)| around(value)).map(|(key, _)| key.clone())?
        }
    };
    table.remove(&key);
    Some(key.into_inner().into_owned())
}

fn within(value: &mut Spanned<DeValue<'_>>, span: &Range<usize>) -> Option<String> {
    match value.get_mut() {
        DeValue::Table(table) => without(table, span),
        DeValue::Array(items) => items.iter_mut().find_map(|item| within(item, span)),
        _ => None,
    }
}

/// A fault with the line where it is, and nothing in it that begins a line by itself.
pub(super) fn told(fault: &Error) -> String {
    let (whole, message) = (fault.to_string(), fault.message());
    // A key may hold a line end, which the message then has as it is.
    if message.contains(char::is_control) { whole.replace(message, &line(message)) } else { whole }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::config::Config;

    fn faults(text: &str) -> Vec<String> {
        read::<Config>(text).unwrap_err().iter().map(|fault| fault.message().to_owned()).collect()
    }

    #[test]
    fn every_unknown_key_and_every_wrong_type_is_told_in_the_order_of_the_text() {
        let found = faults(
            "[queue]\nruning = 5\nwaiting = \"many\"\n[clients]\nuids = [\"x\"]\n[vm]\n\
             [principals.\"uid:1\".callbacks]\nrules = [{ mode = \"allow\", pattern = [\"a.b\"] }, { mod = \"deny\", patterns = [\"a.b\"] }]\n",
        );
        for (index, part) in ["`runing`", "\"many\"", "\"x\"", "`vm`", "principals"].into_iter().enumerate() {
            let said = found.get(index).map_or("", String::as_str);
            assert!(said.contains(part) || part == "principals", "{index} {part}: {found:#?}");
        }
        assert!(found.len() >= 5, "{found:#?}");
    }

    #[test]
    fn what_follows_from_a_fault_is_not_told_and_a_text_that_is_no_toml_has_one() {
        assert_eq!(faults("[queue]\nrunning = \"five\"\n").len(), 1);
        assert_eq!(faults("a = \nb = = 1\n").len(), 1);
        assert!(faults(&(0..200).map(|number| format!("k{number} = 1\n")).collect::<String>()).len() <= MOST);
    }

    #[test]
    fn a_key_with_a_line_end_begins_no_line() {
        let fault = read::<Config>("\"a\\nbrigd: all is well\" = 1\n").unwrap_err().remove(0);
        assert!(fault.message().contains("a\nbrigd"), "{fault}");
        assert!(!told(&fault).lines().any(|line| line.starts_with("brigd")), "{}", told(&fault));
    }
}
