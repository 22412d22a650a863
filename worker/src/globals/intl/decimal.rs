//! Exact decimal numbers: what `Intl` rounds and prints.
//!
//! Never a float: a JavaScript number comes as the shortest text that means it, as ICU
//! takes it too, so 1.005 rounds to 1.01.

use std::cmp::Ordering;

/// The most digits kept of one number; a `BigInt` beyond it is refused.
const DIGITS_MAX: usize = 10_000;

/// A number as text means it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Numeric {
    /// Not a number.
    Nan,
    /// Endless, in one direction or the other.
    Infinite {
        /// Towards the negative end.
        negative: bool,
    },
    /// An exact decimal.
    Finite(Decimal),
}

/// `0.DIGITS × 10^point`; zero has no digits. No leading or trailing zero digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decimal {
    /// Also true of negative zero.
    pub(super) negative: bool,
    pub(super) digits: Vec<u8>,
    pub(super) point: i32,
}

/// The nine rounding modes of ECMA-402.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Rounding {
    Ceil,
    Floor,
    Expand,
    Trunc,
    HalfCeil,
    HalfFloor,
    HalfExpand,
    HalfTrunc,
    HalfEven,
}

/// Digits ready to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) negative: bool,
    pub(super) int: String,
    pub(super) frac: String,
}

impl Numeric {
    /// Reads what JavaScript's `String(number)` gives (`-0` too); nothing when it is not that.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        match rest {
            "NaN" => return Some(Self::Nan),
            "Infinity" => return Some(Self::Infinite { negative }),
            _ => {}
        }
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (rest, 0),
        };
        let (int, frac) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all: Vec<u8> = int.bytes().chain(frac.bytes()).collect();
        if all.is_empty() || all.len() > DIGITS_MAX || !all.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let digits = all.into_iter().map(|byte| byte - b'0').collect();
        let point = i32::try_from(int.len()).ok()?.checked_add(exponent)?;
        Some(Self::Finite(Decimal { negative, digits, point }.trimmed()))
    }
}

impl Decimal {
    fn trimmed(mut self) -> Self {
        let leading = self.digits.iter().take_while(|digit| **digit == 0).count();
        self.digits.drain(..leading);
        self.point = self.point.saturating_sub(i32::try_from(leading).unwrap_or(i32::MAX));
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        if self.digits.is_empty() {
            self.point = 0;
        }
        self
    }

    pub(super) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// The power of ten of the first digit; 0 for zero.
    pub(super) fn magnitude(&self) -> i32 {
        if self.is_zero() { 0 } else { self.point - 1 }
    }

    /// The number times `10^by`.
    pub(super) fn shifted(&self, by: i32) -> Self {
        let mut out = self.clone();
        if !out.is_zero() {
            out.point = out.point.saturating_add(by);
        }
        out
    }

    /// Rounded to a multiple of `increment × 10^magnitude`. `increment` is one of those of
    /// ECMA-402 (1, 2, 5 times a power of ten, and 25 times one).
    pub(super) fn rounded(&self, magnitude: i32, increment: u32, mode: Rounding) -> Self {
        let keep = usize::try_from(self.point.saturating_sub(magnitude)).unwrap_or(0);
        let below = self.point < magnitude;
        let kept: Vec<u8> = (0..keep).map(|i| self.digits.get(i).copied().unwrap_or(0)).collect();
        let rest = self.digits.get(keep.min(self.digits.len())..).unwrap_or(&[]);
        // What is over the last multiple of the increment, against half an increment.
        let over = kept.iter().fold(0_u32, |acc, digit| (acc * 10 + u32::from(*digit)) % increment);
        if over == 0 && rest.is_empty() {
            return self.clone();
        }
        // Half of an odd increment lies in the middle of a unit: the digits behind it decide.
        let against_half = if over * 2 + 1 == increment {
            if below { Ordering::Less } else { against_half(rest) }
        } else {
            (over * 2).cmp(&increment).then(if rest.is_empty() { Ordering::Equal } else { Ordering::Greater })
        };
        let even = quotient_is_even(&kept, increment);
        let up = rounds_up(mode, self.negative, against_half, even);
        let mut digits = subtract(kept, over);
        add(&mut digits, if up { increment } else { 0 });
        let point = i32::try_from(digits.len()).unwrap_or(i32::MAX).saturating_add(magnitude);
        Self { negative: self.negative, digits, point }.trimmed()
    }

    /// `ToRawFixed`: at most `max` fraction digits, at least `min`.
    pub(super) fn fixed(&self, min: i32, max: i32, increment: u32, mode: Rounding) -> Shown {
        self.rounded(-max, increment, mode).shown(min)
    }

    /// `ToRawPrecision`: at most `max` significant digits, at least `min`.
    pub(super) fn precise(&self, min: i32, max: i32, mode: Rounding) -> Shown {
        if self.is_zero() {
            return self.shown(min - 1);
        }
        let rounded = self.rounded(self.point - max, 1, mode);
        rounded.shown(min - rounded.point)
    }

    fn shown(&self, min_frac: i32) -> Shown {
        let digit = |i: i32| {
            let index = usize::try_from(i).ok();
            char::from(b'0' + index.and_then(|i| self.digits.get(i)).copied().unwrap_or(0))
        };
        let count = i32::try_from(self.digits.len()).unwrap_or(i32::MAX);
        let int: String = if self.point <= 0 { "0".to_owned() } else { (0..self.point).map(digit).collect() };
        let frac_len = (count - self.point).max(min_frac).max(0);
        let frac = (0..frac_len).map(|i| digit(self.point + i)).collect();
        Shown { negative: self.negative, int, frac }
    }
}

impl Shown {
    pub(super) fn is_zero(&self) -> bool {
        self.int.bytes().chain(self.frac.bytes()).all(|byte| byte == b'0')
    }

    pub(super) fn strip_zero_fraction(&mut self) {
        if self.frac.bytes().all(|byte| byte == b'0') {
            self.frac.clear();
        }
    }

    pub(super) fn pad_int(&mut self, min: usize) {
        while self.int.len() < min {
            self.int.insert(0, '0');
        }
    }
}

fn against_half(rest: &[u8]) -> Ordering {
    match rest {
        [] => Ordering::Less,
        [first, more @ ..] => first.cmp(&5).then(if more.is_empty() { Ordering::Equal } else { Ordering::Greater }),
    }
}

/// Whether the kept digits, divided by the increment, make an even number.
fn quotient_is_even(kept: &[u8], increment: u32) -> bool {
    let last = kept.iter().fold(0_u32, |acc, digit| (acc * 10 + u32::from(*digit)) % (increment * 2));
    last < increment
}

fn rounds_up(mode: Rounding, negative: bool, half: Ordering, even: bool) -> bool {
    match mode {
        Rounding::Ceil => !negative,
        Rounding::Floor => negative,
        Rounding::Expand => true,
        Rounding::Trunc => false,
        Rounding::HalfCeil => half == Ordering::Greater || half == Ordering::Equal && !negative,
        Rounding::HalfFloor => half == Ordering::Greater || half == Ordering::Equal && negative,
        Rounding::HalfExpand => half != Ordering::Less,
        Rounding::HalfTrunc => half == Ordering::Greater,
        Rounding::HalfEven => half == Ordering::Greater || half == Ordering::Equal && !even,
    }
}

fn subtract(mut digits: Vec<u8>, mut amount: u32) -> Vec<u8> {
    let mut borrow = 0;
    for digit in digits.iter_mut().rev() {
        let take = amount % 10 + borrow;
        amount /= 10;
        let have = u32::from(*digit);
        borrow = u32::from(have < take);
        *digit = u8::try_from(have + borrow * 10 - take).unwrap_or(0);
    }
    digits
}

fn add(digits: &mut Vec<u8>, mut amount: u32) {
    for digit in digits.iter_mut().rev() {
        amount += u32::from(*digit);
        *digit = u8::try_from(amount % 10).unwrap_or(0);
        amount /= 10;
    }
    while amount > 0 {
        digits.insert(0, u8::try_from(amount % 10).unwrap_or(0));
        amount /= 10;
    }
}
