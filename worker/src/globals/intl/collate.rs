//! Comparing and casing text by language (ICU4X).

use std::cell::RefCell;
use std::cmp::Ordering;

use icu_casemap::CaseMapper;
use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, MaxVariable, Strength};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};
use icu_collator::{Collator, CollatorBorrowed, CollatorPreferences};
use icu_locale_core::Locale;
use rquickjs::Object;
use rquickjs::function::Func;

thread_local! {
    /// The collator used last: sorting compares with one again and again.
    static LAST: RefCell<Option<(String, CollatorBorrowed<'static>)>> = const { RefCell::new(None) };
}

pub(super) fn define(native: &Object<'_>) -> rquickjs::Result<()> {
    native.set("compare", Func::from(compare))?;
    native.set("mapCase", Func::from(map_case))
}

/// -1, 0 or 1. `spec` is `tag/sensitivity/numeric/caseFirst/ignorePunctuation`, with `1` or
/// `0` for the flags.
fn compare(spec: String, a: String, b: String) -> i32 {
    let order = LAST.with_borrow_mut(|last| {
        if last.as_ref().is_none_or(|(known, _)| *known != spec) {
            *last = build(&spec).map(|collator| (spec, collator));
        }
        match last {
            Some((_, collator)) => collator.compare(&a, &b),
            None => a.cmp(&b),
        }
    });
    match order {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}

fn build(spec: &str) -> Option<CollatorBorrowed<'static>> {
    let mut fields = spec.split('/');
    let locale = Locale::try_from_str(fields.next()?).ok()?;
    let sensitivity = fields.next()?;
    let numeric = fields.next()? == "1";
    let case_first = fields.next()?;
    let ignore_punctuation = fields.next()? == "1";

    let mut preferences = CollatorPreferences::from(&locale);
    preferences.numeric_ordering = Some(if numeric { CollationNumericOrdering::True } else { CollationNumericOrdering::False });
    preferences.case_first = match case_first {
        "upper" => Some(CollationCaseFirst::Upper),
        "lower" => Some(CollationCaseFirst::Lower),
        "false" => Some(CollationCaseFirst::False),
        _ => None,
    };
    let mut options = CollatorOptions::default();
    options.strength = Some(match sensitivity {
        "base" | "case" => Strength::Primary,
        "accent" => Strength::Secondary,
        _ => Strength::Tertiary,
    });
    options.case_level = Some(if sensitivity == "case" { CaseLevel::On } else { CaseLevel::Off });
    if ignore_punctuation {
        options.alternate_handling = Some(AlternateHandling::Shifted);
        options.max_variable = Some(MaxVariable::Punctuation);
    }
    Collator::try_new(preferences, options).ok()
}

/// The text in upper or lower case as `tag`'s language writes it.
fn map_case(text: String, tag: String, upper: bool) -> Option<String> {
    let language = Locale::try_from_str(&tag).ok()?.id;
    let mapper = CaseMapper::new();
    Some(if upper {
        mapper.uppercase_to_string(&text, &language).into_owned()
    } else {
        mapper.lowercase_to_string(&text, &language).into_owned()
    })
}
