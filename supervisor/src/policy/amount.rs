//! Amounts that budgets count: exact decimal numbers.
//!
//! Owns reading one from the text of a number, adding, and writing it. Never rounds: a
//! number that is not exact here is refused. Never negative.

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// Digits after the point.
const PLACES: u32 = 12;
/// One, in the least unit.
const ONE: u128 = 10u128.pow(PLACES);
/// Most digits before the point: far below where additions could overflow.
const MOST: u128 = ONE * 10u128.pow(18);

/// A decimal number from 0 to 10^18 with up to twelve places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Amount(u128);

/// Why a number can not be counted, as a half sentence after what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AmountFault {
    /// No number.
    #[error("is not a number")]
    NotANumber,
    /// Below zero.
    #[error("is negative")]
    Negative,
    /// Not exact.
    #[error("has more than {PLACES} decimal places")]
    TooFine,
    /// Too large.
    #[error("is over 10^18")]
    TooLarge,
}

impl Amount {
    /// Nothing.
    pub(crate) const ZERO: Self = Self(0);
    /// One call.
    pub(crate) const ONE: Self = Self(ONE);

    /// A whole number.
    pub(crate) const fn whole(number: u64) -> Option<Self> {
        // No u64 times 10^12 overflows.
        let units = number as u128 * ONE;
        if units <= MOST { Some(Self(units)) } else { None }
    }

    /// Reads the text of a JSON number, all of it.
    ///
    /// # Errors
    /// [`AmountFault`]: it is no number, or none that is counted exactly.
    pub(crate) fn parse(text: &str) -> Result<Self, AmountFault> {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let only_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let has_point = digits.contains('.');
        if whole.is_empty() || !only_digits(whole) || !only_digits(fraction) || (has_point && fraction.is_empty()) {
            return Err(AmountFault::NotANumber);
        }
        let exponent = read_exponent(exponent)?;
        let digits = format!("{whole}{fraction}");
        let places = i64::try_from(fraction.len()).unwrap_or(i64::MAX).saturating_sub(exponent);
        let amount = scaled(&digits, places)?;
        if negative && amount != Self::ZERO { Err(AmountFault::Negative) } else { Ok(amount) }
    }

    /// Both together.
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Without the other; nothing when there was less.
    pub(crate) const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// The exponent; beyond any that matters it is as large as it needs to be to be refused.
fn read_exponent(text: &str) -> Result<i64, AmountFault> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(AmountFault::NotANumber);
    }
    let size = digits.parse().map_or(i64::MAX / 4, |size: i64| size.min(i64::MAX / 4));
    Ok(if negative { -size } else { size })
}

/// `digits` with the point `places` from their end.
fn scaled(digits: &str, places: i64) -> Result<Amount, AmountFault> {
    let digits = digits.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Ok(Amount::ZERO);
    }
    let dropped = i64::try_from(digits.len() - significant.len()).unwrap_or(i64::MAX);
    // How many zeros follow the significant digits, in the least unit.
    let zeros = i64::from(PLACES).saturating_sub(places).saturating_add(dropped);
    if zeros < 0 {
        return Err(AmountFault::TooFine);
    }
    // What does not fit has too many digits.
    let number: u128 = significant.parse().map_err(|_| AmountFault::TooLarge)?;
    let factor = u32::try_from(zeros).ok().and_then(|zeros| 10u128.checked_pow(zeros)).ok_or(AmountFault::TooLarge)?;
    match number.checked_mul(factor) {
        Some(units) if units <= MOST => Ok(Amount(units)),
        _ => Err(AmountFault::TooLarge),
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0 / ONE, self.0 % ONE);
        if fraction == 0 {
            return write!(f, "{whole}");
        }
        let digits = format!("{fraction:012}");
        write!(f, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AmountVisitor;
        impl Visitor<'_> for AmountVisitor {
            type Value = Amount;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number from 0 to 10^18, or the text of one")
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Amount, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Amount, E> {
                self.visit_str(&number.to_string())
            }
            // The shortest text that reads back as this float: what was written, up to 15 digits.
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Amount, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
                Amount::parse(text).map_err(|fault| E::custom(format_args!("the amount {text} {fault}")))
            }
        }
        deserializer.deserialize_any(AmountVisitor)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_tenth_added_ten_times_is_one() {
        let tenth = Amount::parse("0.1").unwrap();
        let sum = (0..10).fold(Amount::ZERO, |sum, _| sum.plus(tenth));
        assert_eq!(sum, Amount::ONE);
        assert_eq!(Amount::parse("0.1").unwrap().plus(Amount::parse("0.2").unwrap()).to_string(), "0.3");
    }

    #[test]
    fn every_way_to_write_a_number_is_the_same_amount() {
        for text in ["250", "250.0", "2.5e2", "2.5E+2", "25000e-2", "0.25e3", "250.0000000000000000000000000000000000000000"] {
            assert_eq!(Amount::parse(text).unwrap().to_string(), "250", "{text}");
        }
        assert_eq!(Amount::parse("-0.0").unwrap(), Amount::ZERO);
        assert_eq!(Amount::parse("0e99999999999999999999").unwrap(), Amount::ZERO);
        assert_eq!(Amount::parse("1000000000000000000").unwrap().to_string(), "1000000000000000000");
    }

    #[test]
    fn what_is_not_counted_exactly_is_refused_and_never_rounded() {
        for (text, fault) in [
            ("-1", AmountFault::Negative),
            ("-1e-3", AmountFault::Negative),
            ("1e-13", AmountFault::TooFine),
            ("0.1234567890123", AmountFault::TooFine),
            ("1e-99999999999999999999", AmountFault::TooFine),
            ("1000000000000000000.1", AmountFault::TooLarge),
            ("1e19", AmountFault::TooLarge),
            ("1e99999999999999999999", AmountFault::TooLarge),
            ("99999999999999999999999999999999999999999999", AmountFault::TooLarge),
            ("", AmountFault::NotANumber),
            ("1.", AmountFault::NotANumber),
            (".5", AmountFault::NotANumber),
            ("1e", AmountFault::NotANumber),
            ("\"1\"", AmountFault::NotANumber),
            ("NaN", AmountFault::NotANumber),
            ("+1", AmountFault::NotANumber),
            ("1 ", AmountFault::NotANumber),
            ("١", AmountFault::NotANumber),
        ] {
            assert_eq!(Amount::parse(text), Err(fault), "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_amount_reads_back_as_itself(whole in 0u64..1_000_000_000_000_000_000, fraction in 0u64..1_000_000_000_000) {
            let text = format!("{whole}.{fraction:012}");
            let amount = Amount::parse(&text).unwrap();
            prop_assert_eq!(Amount::parse(&amount.to_string()).unwrap(), amount);
            prop_assert_eq!(amount, Amount(u128::from(whole) * ONE + u128::from(fraction)));
        }

        #[test]
        fn no_text_panics(text in "[-+0-9.eE]{0,60}") {
            std::hint::black_box(Amount::parse(&text).is_ok());
        }
    }
}
