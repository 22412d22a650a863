//! `Intl.NumberFormat`: a number and resolved options to typed parts.

use super::data::{Compact, Numbers, Plural};
use super::decimal::{Decimal, Numeric, Shown};
use super::number_options::{NumberOptions, RoundingType};
use super::plural::{self, Operands};

/// A type and its text, as `formatToParts` gives them.
pub(super) type Part = (&'static str, String);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    None,
    Minus,
    Plus,
}

/// A number after rounding: its digits and the powers of ten left out or written apart.
struct Core {
    shown: Option<Shown>,
    word: Option<&'static str>,
    /// Left out by a compact notation.
    shift: i32,
    magnitude: i32,
    exponent: Option<i32>,
    sign: Sign,
}

/// Everything about one number in one locale.
pub(super) struct Formatter<'a> {
    numbers: &'a Numbers,
    options: &'a NumberOptions,
}

impl<'a> Formatter<'a> {
    pub(super) fn new(numbers: &'a Numbers, options: &'a NumberOptions) -> Self {
        Self { numbers, options }
    }

    pub(super) fn parts(&self, value: &Numeric) -> Vec<Part> {
        let core = self.core(value);
        match self.options.style.as_str() {
            "currency" => self.currency(&core),
            // ICU takes a compact percentage for the unit of that name.
            "percent" if self.is_compact() => self.unit("percent", &core),
            "percent" => self.signed(&self.numbers.percent_signs, &core),
            "unit" => self.unit(self.options.unit.as_deref().unwrap_or_default(), &core),
            _ => self.signed(&self.numbers.decimal_signs, &core),
        }
    }

    /// The plural category of the number as printed.
    pub(super) fn category(&self, value: &Numeric, ordinal: bool) -> &'static str {
        let core = self.core(value);
        let Some(shown) = &core.shown else {
            return "other";
        };
        let operands = Operands::of(shown, 0);
        if ordinal { plural::ordinal(&self.options.tag, operands) } else { plural::cardinal(&self.options.tag, operands) }
    }

    fn core(&self, value: &Numeric) -> Core {
        let mut core = Core { shown: None, word: None, shift: 0, magnitude: 0, exponent: None, sign: Sign::None };
        match value {
            Numeric::Nan => {
                core.word = Some("nan");
                core.sign = self.sign(false, true);
            }
            Numeric::Infinite { negative } => {
                core.word = Some("infinity");
                core.sign = self.sign(*negative, false);
            }
            Numeric::Finite(decimal) => self.finite(decimal, &mut core),
        }
        core
    }

    fn finite(&self, decimal: &Decimal, core: &mut Core) {
        let by = if self.options.style == "percent" { 2 } else { 0 };
        let decimal = decimal.shifted(by);
        let mut shown = match self.options.notation.as_str() {
            "compact" => self.scaled(&decimal, core, |m| self.compact_shift(m)),
            "scientific" => {
                let shown = self.scaled(&decimal, core, |m| m);
                core.exponent = Some(core.shift);
                shown
            }
            "engineering" => {
                let shown = self.scaled(&decimal, core, |m| m.div_euclid(3) * 3);
                core.exponent = Some(core.shift);
                shown
            }
            _ => self.round(&decimal),
        };
        if self.options.trailing_zero_display == "stripIfInteger" {
            shown.strip_zero_fraction();
        }
        core.sign = self.sign(shown.negative, shown.is_zero());
        shown.pad_int(self.options.minimum_integer_digits);
        core.shown = Some(shown);
    }

    /// Rounds after leaving out a power of ten; once more when rounding reached the next.
    fn scaled(&self, decimal: &Decimal, core: &mut Core, shift: impl Fn(i32) -> i32) -> Shown {
        core.magnitude = decimal.magnitude();
        core.shift = shift(core.magnitude);
        let shown = self.round(&decimal.shifted(-core.shift));
        let reached = i32::try_from(shown.int.trim_start_matches('0').len()).unwrap_or(0) - 1;
        let magnitude = reached + core.shift;
        if decimal.is_zero() || reached < 0 || magnitude <= core.magnitude {
            return shown;
        }
        core.magnitude = magnitude;
        let next = shift(magnitude);
        if next == core.shift {
            return shown;
        }
        core.shift = next;
        self.round(&decimal.shifted(-next))
    }

    fn round(&self, decimal: &Decimal) -> Shown {
        let o = self.options;
        let fixed = || decimal.fixed(o.minimum_fraction_digits, o.maximum_fraction_digits, o.rounding_increment, o.rounding_mode);
        let precise = || decimal.precise(o.minimum_significant_digits, o.maximum_significant_digits, o.rounding_mode);
        let finer = decimal.magnitude() - o.maximum_significant_digits < -o.maximum_fraction_digits;
        match o.rounding_type {
            RoundingType::FractionDigits => fixed(),
            RoundingType::SignificantDigits => precise(),
            RoundingType::MorePrecision if finer => precise(),
            RoundingType::MorePrecision => fixed(),
            RoundingType::LessPrecision if finer => fixed(),
            RoundingType::LessPrecision => precise(),
        }
    }

    fn sign(&self, negative: bool, zero: bool) -> Sign {
        let plain = if negative { Sign::Minus } else { Sign::None };
        match self.options.sign_display.as_str() {
            "never" => Sign::None,
            "always" if !negative => Sign::Plus,
            "exceptZero" if zero => Sign::None,
            "exceptZero" if !negative => Sign::Plus,
            "negative" if zero => Sign::None,
            _ => plain,
        }
    }

    fn compact_row(&self, kind: &str, magnitude: i32) -> Option<&Compact> {
        let display = self.options.compact_display.as_deref().unwrap_or("short");
        let rows = self.numbers.compact.get(&format!("{display}{kind}"))?;
        rows.get(usize::try_from(magnitude.clamp(0, 20)).unwrap_or(0))
    }

    fn compact_shift(&self, magnitude: i32) -> i32 {
        self.compact_row(self.compact_kind(), magnitude).map_or(0, |row| row.shift)
    }

    /// Which compact patterns count: those of plain numbers, of money written with a symbol
    /// or of money written with letters.
    fn compact_kind(&self) -> &'static str {
        match self.symbol_shown() {
            None => "",
            Some(symbol) if self.is_lettered(symbol) => "Currency1",
            Some(_) => "Currency0",
        }
    }

    /// The currency's symbol, unless it is no currency or named in words.
    fn symbol_shown(&self) -> Option<&str> {
        let code = self.options.currency.as_deref()?;
        match self.options.currency_display.as_deref() {
            Some("name") => None,
            Some("code") => Some(code),
            display => Some(self.symbol(code, display == Some("narrowSymbol"))),
        }
    }

    /// Whether the end of a currency symbol that touches the number is a letter, which asks
    /// for a space that a sign like € does not.
    fn is_lettered(&self, symbol: &str) -> bool {
        let standard = self.numbers.currency.get("standard");
        let pattern = standard.map_or("", |[[pattern, ..], _]| pattern);
        let before = pattern.find("{c}") < pattern.find("{0}");
        let touching = if before { symbol.chars().next_back() } else { symbol.chars().next() };
        touching.is_some_and(|c| c.is_alphanumeric() || c == '.')
    }

    fn is_compact(&self) -> bool {
        self.options.notation == "compact"
    }

    fn category_of(&self, core: &Core) -> &'static str {
        core.shown.as_ref().map_or("other", |shown| plural::cardinal(&self.options.tag, Operands::of(shown, 0)))
    }

    fn compact_form<'b>(&self, forms: &'b Plural, core: &Core) -> &'b str {
        let one = core.shown.as_ref().is_some_and(|s| s.int == "1" && s.frac.is_empty());
        match forms {
            Plural::By(map) if one && map.contains_key("=1") => forms.get("=1"),
            _ => forms.get(self.category_of(core)),
        }
    }

    /// The category for a word after the whole number, what compact notation left out included.
    fn full_category(&self, core: &Core) -> &'static str {
        let Some(shown) = &core.shown else {
            return "other";
        };
        if core.shift == 0 {
            return self.category_of(core);
        }
        let zeros = usize::try_from(core.shift.abs()).unwrap_or(0);
        let mut whole = shown.clone();
        if core.shift < 0 {
            whole.pad_int(zeros + 1);
            let tail = whole.int.split_off(whole.int.len() - zeros);
            whole.frac.insert_str(0, &tail);
            return plural::cardinal(&self.options.tag, Operands::of(&whole, 0));
        }
        let fraction: String = whole.frac.chars().chain(std::iter::repeat('0')).take(zeros).collect();
        whole.frac = whole.frac.chars().skip(zeros).collect();
        whole.int.push_str(&fraction);
        let exponent = if self.is_compact() { core.shift } else { 0 };
        plural::cardinal(&self.options.tag, Operands::of(&whole, exponent))
    }

    /// The number itself, with the compact word around it.
    fn inner(&self, core: &Core, out: &mut Vec<Part>) {
        match (self.is_compact(), self.compact_row("", core.magnitude)) {
            (true, Some(row)) if core.shown.is_some() => {
                let pattern = self.compact_form(&row.p, core);
                self.expand(pattern, "", out, &mut |out| self.digits(core, out));
            }
            _ => self.digits(core, out),
        }
    }

    fn digits(&self, core: &Core, out: &mut Vec<Part>) {
        let Some(shown) = &core.shown else {
            match core.word {
                Some("nan") => out.push(("nan", self.numbers.nan.clone())),
                _ => out.push(("infinity", self.numbers.infinity.clone())),
            }
            return;
        };
        let money = self.options.style == "currency";
        let (group, decimal) =
            if money { (&self.numbers.cur_group, &self.numbers.cur_decimal) } else { (&self.numbers.group, &self.numbers.decimal) };
        for (index, run) in self.grouped(&shown.int).into_iter().enumerate() {
            if index > 0 {
                out.push(("group", group.clone()));
            }
            out.push(("integer", run));
        }
        if !shown.frac.is_empty() {
            out.push(("decimal", decimal.clone()));
            out.push(("fraction", shown.frac.clone()));
        }
        if let Some(exponent) = core.exponent {
            out.push(("exponentSeparator", self.numbers.exponent.clone()));
            if exponent < 0 {
                out.push(("exponentMinusSign", self.numbers.exp_minus.clone()));
            }
            out.push(("exponentInteger", exponent.unsigned_abs().to_string()));
        }
    }

    fn grouped(&self, int: &str) -> Vec<String> {
        let [standard, accounting] = self.numbers.cur_grouping;
        let [first, further] = match self.symbol_shown() {
            Some(_) if self.currency_sign() == "accounting" => accounting,
            Some(_) => standard,
            None => self.numbers.grouping,
        };
        let least = match self.options.use_grouping.as_str() {
            "always" => 1,
            "auto" if !self.is_compact() => self.numbers.min_grouping,
            "auto" | "min2" => self.numbers.min_grouping.max(2),
            _ => return vec![int.to_owned()],
        };
        if int.len() < first + least || first == 0 {
            return vec![int.to_owned()];
        }
        let mut runs = Vec::new();
        let (mut rest, tail) = int.split_at(int.len() - first);
        runs.push(tail.to_owned());
        while rest.len() > further {
            let (head, tail) = rest.split_at(rest.len() - further);
            runs.push(tail.to_owned());
            rest = head;
        }
        if !rest.is_empty() {
            runs.push(rest.to_owned());
        }
        runs.reverse();
        runs
    }

    fn signed(&self, signs: &[String; 3], core: &Core) -> Vec<Part> {
        let mut out = Vec::new();
        self.expand(by_sign(signs, core.sign), "", &mut out, &mut |out| self.inner(core, out));
        out
    }

    fn unit(&self, name: &str, core: &Core) -> Vec<Part> {
        let display = match self.options.unit_display.as_deref() {
            Some("long") => 1,
            Some("narrow") => 2,
            _ => 0,
        };
        let forms = self.numbers.units.get(name);
        let pattern = forms.and_then(|forms| forms.get(display));
        let pattern = pattern.map_or("{0}", |forms| forms.get(self.full_category(core)));
        self.around(pattern, "", core)
    }

    /// A pattern around the signed number.
    fn around(&self, pattern: &str, name: &str, core: &Core) -> Vec<Part> {
        let mut out = Vec::new();
        self.expand(pattern, name, &mut out, &mut |out| {
            let signs = by_sign(&self.numbers.decimal_signs, core.sign);
            self.expand(signs, "", out, &mut |out| self.inner(core, out));
        });
        out
    }

    fn currency(&self, core: &Core) -> Vec<Part> {
        let code = self.options.currency.as_deref().unwrap_or_default();
        let Some(symbol) = self.symbol_shown() else {
            let category = self.full_category(core);
            let name = self.numbers.currency_names.get(code).map_or(code, |n| n.get(category));
            return self.around(self.numbers.currency_name.get(category), name, core);
        };
        let sign = self.currency_sign();
        let Some([with_symbol, with_letters]) = self.numbers.currency.get(sign) else {
            return Vec::new();
        };
        // Only digits ask for the space after letters, not the sign of infinity.
        let letters = core.shown.is_some() && self.is_lettered(symbol);
        let signs = if letters { with_letters } else { with_symbol };
        let pattern = match self.compact_row(self.compact_kind(), core.magnitude) {
            Some(row) if self.is_compact() && core.shown.is_some() => self.compact_form(compact_pattern(row, core.sign), core),
            _ => by_sign(signs, core.sign),
        };
        let mut out = Vec::new();
        self.expand(pattern, symbol, &mut out, &mut |out| self.digits(core, out));
        out
    }

    /// Without any sign there is nothing to account with.
    fn currency_sign(&self) -> &str {
        if self.options.sign_display == "never" { "standard" } else { self.options.currency_sign.as_deref().unwrap_or("standard") }
    }

    fn symbol<'b>(&'b self, code: &'b str, narrow: bool) -> &'b str {
        let narrow = self.numbers.currency_narrow.get(code).filter(|_| narrow);
        narrow.or_else(|| self.numbers.currency_symbols.get(code)).map_or(code, String::as_str)
    }

    fn expand(&self, pattern: &str, currency: &str, out: &mut Vec<Part>, number: &mut dyn FnMut(&mut Vec<Part>)) {
        for piece in super::pieces(pattern) {
            match piece {
                super::Piece::Text(text) => out.push(("literal", text.to_owned())),
                super::Piece::Field("0") => number(out),
                super::Piece::Field("-") => out.push(("minusSign", self.numbers.minus.clone())),
                super::Piece::Field("+") => out.push(("plusSign", self.numbers.plus.clone())),
                super::Piece::Field("%") => out.push(("percentSign", self.numbers.percent.clone())),
                super::Piece::Field("c") => out.push(("currency", currency.to_owned())),
                super::Piece::Field(field) => match field.split_once(':') {
                    Some(("k", text)) => out.push(("compact", text.to_owned())),
                    Some((_, text)) => out.push(("unit", text.to_owned())),
                    None => {}
                },
            }
        }
    }
}

fn by_sign(signs: &[String; 3], sign: Sign) -> &str {
    let [none, minus, plus] = signs;
    match sign {
        Sign::None => none,
        Sign::Minus => minus,
        Sign::Plus => plus,
    }
}

fn compact_pattern(row: &Compact, sign: Sign) -> &Plural {
    match sign {
        Sign::None => &row.p,
        Sign::Minus => row.n.as_ref().unwrap_or(&row.p),
        Sign::Plus => row.s.as_ref().unwrap_or(&row.p),
    }
}
