//! Plural categories (CLDR), for the languages that are offered.

use super::decimal::Shown;

/// What the rules look at: the printed digits, and the power of ten that a compact
/// notation left out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operands {
    /// Integer digits, modulo a million, and whether there are more above.
    i: u64,
    i_large: bool,
    /// How many fraction digits are printed, and their value without trailing zeros.
    v: usize,
    t: u64,
    e: i32,
}

impl Operands {
    pub(super) fn of(shown: &Shown, exponent: i32) -> Self {
        let tail = |text: &str| {
            let start = text.len().saturating_sub(15);
            text.get(start..).and_then(|t| t.parse::<u64>().ok()).unwrap_or(0)
        };
        let head = shown.frac.trim_end_matches('0');
        let int = shown.int.trim_start_matches('0');
        Self {
            i: tail(int),
            i_large: int.len() > 15,
            v: shown.frac.len(),
            t: head.get(..head.len().min(15)).and_then(|t| t.parse().ok()).unwrap_or(0),
            e: exponent,
        }
    }

    fn whole(&self, values: impl IntoIterator<Item = u64>) -> bool {
        self.t == 0 && self.i_is(values)
    }

    fn i_is(&self, values: impl IntoIterator<Item = u64>) -> bool {
        !self.i_large && values.into_iter().any(|value| value == self.i)
    }
}

/// The cardinal category of a number in a language.
pub(super) fn cardinal(locale: &str, n: Operands) -> &'static str {
    let (i10, i100) = (n.i % 10, n.i % 100);
    let millions = n.e == 0 && (n.i != 0 || n.i_large) && n.i.is_multiple_of(1_000_000) && n.v == 0 || !(0..=5).contains(&n.e);
    match language(locale) {
        "ja" | "zh" | "ko" | "id" => "other",
        "fr" if n.i_is([0, 1]) => "one",
        "pt" if locale != "pt-PT" && n.i_is([0, 1]) => "one",
        "es" if n.whole([1]) => "one",
        "it" | "pt" if n.i_is([1]) && n.v == 0 && !(locale != "pt-PT" && language(locale) == "pt") => "one",
        "fr" | "es" | "it" | "pt" => {
            if millions {
                "many"
            } else {
                "other"
            }
        }
        "da" if n.whole([1]) || n.t != 0 && n.i_is([0, 1]) => "one",
        "nb" | "no" | "tr" | "hu" if n.whole([1]) => "one",
        "da" | "nb" | "no" | "tr" | "hu" => "other",
        "pl" => match () {
            () if n.v != 0 => "other",
            () if n.i_is([1]) => "one",
            () if (2..=4).contains(&i10) && !(12..=14).contains(&i100) => "few",
            () => "many",
        },
        "cs" => match () {
            () if n.v != 0 => "many",
            () if n.i_is([1]) => "one",
            () if n.i_is(2..=4) => "few",
            () => "other",
        },
        "ru" | "uk" => match () {
            () if n.v != 0 => "other",
            () if i10 == 1 && i100 != 11 => "one",
            () if (2..=4).contains(&i10) && !(12..=14).contains(&i100) => "few",
            () => "many",
        },
        "ro" => match () {
            () if n.i_is([1]) && n.v == 0 => "one",
            () if n.v != 0 || n.whole([0]) || (1..=19).contains(&i100) => "few",
            () => "other",
        },
        _ => {
            if n.i_is([1]) && n.v == 0 {
                "one"
            } else {
                "other"
            }
        }
    }
}

/// The ordinal category of a number in a language.
pub(super) fn ordinal(locale: &str, n: Operands) -> &'static str {
    if n.t != 0 {
        return "other";
    }
    let (i10, i100) = (n.i % 10, n.i % 100);
    match language(locale) {
        "en" => match (i10, i100) {
            (1, x) if x != 11 => "one",
            (2, x) if x != 12 => "two",
            (3, x) if x != 13 => "few",
            _ => "other",
        },
        "fr" | "ro" if n.i_is([1]) => "one",
        "hu" if n.i_is([1, 5]) => "one",
        "it" if n.i_is([8, 11, 80, 800]) => "many",
        "sv" if (i10 == 1 || i10 == 2) && i100 != 11 && i100 != 12 => "one",
        "uk" if i10 == 3 && i100 != 13 => "few",
        _ => "other",
    }
}

/// The categories that a language has, in the order of ECMA-402.
pub(super) fn categories(locale: &str, ordinals: bool) -> &'static [&'static str] {
    match (language(locale), ordinals) {
        ("en", true) => &["few", "one", "two", "other"],
        ("fr" | "ro" | "hu" | "sv", true) => &["one", "other"],
        ("it", true) => &["many", "other"],
        ("uk", true) => &["few", "other"],
        (_, true) | ("ja" | "zh" | "ko" | "id", false) => &["other"],
        ("fr" | "es" | "it" | "pt", false) => &["one", "many", "other"],
        ("pl" | "cs" | "ru" | "uk", false) => &["one", "few", "many", "other"],
        ("ro", false) => &["one", "few", "other"],
        _ => &["one", "other"],
    }
}

fn language(locale: &str) -> &str {
    locale.split('-').next().unwrap_or(locale)
}
