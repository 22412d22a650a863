//! The data files, read when first needed and section by section.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::locales::Entry;

/// Text that may differ by plural category.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Plural {
    /// The same for every category.
    Same(String),
    /// By category; always has `other`, and `=1` where one itself is written otherwise.
    By(HashMap<String, String>),
}

impl Plural {
    pub(super) fn get(&self, category: &str) -> &str {
        match self {
            Self::Same(text) => text,
            Self::By(map) => map.get(category).or_else(|| map.get("other")).map_or("", String::as_str),
        }
    }
}

/// How one power of ten is abbreviated.
#[derive(Debug, Deserialize)]
pub(super) struct Compact {
    /// The power of ten that is left out.
    pub(super) shift: i32,
    /// Pattern without a sign, with a minus, with a plus.
    pub(super) p: Plural,
    pub(super) n: Option<Plural>,
    pub(super) s: Option<Plural>,
}

type Signs = [String; 3];

/// What numbers look like.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Numbers {
    pub(super) decimal: String,
    pub(super) group: String,
    pub(super) minus: String,
    pub(super) plus: String,
    pub(super) percent: String,
    pub(super) exponent: String,
    pub(super) exp_minus: String,
    pub(super) nan: String,
    pub(super) infinity: String,
    pub(super) grouping: [usize; 2],
    pub(super) min_grouping: usize,
    pub(super) cur_decimal: String,
    pub(super) cur_group: String,
    /// Of money, by `currencySign`: standard, accounting.
    pub(super) cur_grouping: [[usize; 2]; 2],
    pub(super) decimal_signs: Signs,
    pub(super) percent_signs: Signs,
    /// By `currencySign`: patterns for a symbol, patterns for letters.
    pub(super) currency: HashMap<String, [Signs; 2]>,
    pub(super) currency_name: Plural,
    pub(super) currency_names: HashMap<String, Plural>,
    pub(super) currency_symbols: HashMap<String, String>,
    pub(super) currency_narrow: HashMap<String, String>,
    /// By unit: short, long, narrow.
    pub(super) units: HashMap<String, [Plural; 3]>,
    /// By display and kind: one for each power of ten from 0 to 20.
    pub(super) compact: HashMap<String, Vec<Compact>>,
}

/// What dates and times look like.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Dates {
    pub(super) month_sets: Vec<Vec<String>>,
    pub(super) weekday_sets: Vec<Vec<String>>,
    pub(super) period_sets: Vec<Vec<String>>,
    pub(super) eras: HashMap<String, [String; 2]>,
    pub(super) patterns: Vec<String>,
    pub(super) date_table: Vec<i32>,
    pub(super) time_table: HashMap<String, Vec<i32>>,
    pub(super) styles: HashMap<String, HashMap<String, usize>>,
    pub(super) glue: HashMap<String, String>,
    pub(super) whole: HashMap<String, usize>,
    /// Short and long: UTC, +9:00, +5:30, -5:00.
    pub(super) offsets: [[String; 4]; 2],
    pub(super) hour_cycle: String,
    pub(super) hour12: String,
    pub(super) hour24: String,
}

/// One unit in one style.
#[derive(Debug, Deserialize)]
pub(super) struct RelativeUnit {
    pub(super) past: Plural,
    pub(super) future: Plural,
    pub(super) auto: HashMap<String, String>,
}

/// By unit, then style.
pub(super) type Relative = HashMap<String, HashMap<String, RelativeUnit>>;
/// By type and style: between two, after the first, between, before the last.
pub(super) type Lists = HashMap<String, [String; 4]>;
/// By type (`region`, `language`), then code.
pub(super) type Names = HashMap<String, HashMap<String, String>>;

/// What does not depend on the locale.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shared {
    pub(super) currencies: Vec<String>,
    pub(super) currency_digits: HashMap<String, u32>,
    pub(super) units: Vec<String>,
}

#[derive(Deserialize)]
struct Sections<'a> {
    #[serde(borrow)]
    numbers: &'a RawValue,
    #[serde(borrow)]
    dates: &'a RawValue,
    #[serde(borrow)]
    relative: &'a RawValue,
    #[serde(borrow)]
    lists: &'a RawValue,
    #[serde(borrow)]
    names: &'a RawValue,
}

type Cache<T> = RefCell<HashMap<&'static str, Option<Rc<T>>>>;

thread_local! {
    static NUMBERS: Cache<Numbers> = RefCell::default();
    static DATES: Cache<Dates> = RefCell::default();
    static RELATIVE: Cache<Relative> = RefCell::default();
    static LISTS: Cache<Lists> = RefCell::default();
    static NAMES: Cache<Names> = RefCell::default();
    static SHARED: RefCell<Option<Rc<Shared>>> = const { RefCell::new(None) };
}

fn cached<T: for<'de> Deserialize<'de>>(
    cache: &'static std::thread::LocalKey<Cache<T>>,
    entry: &'static Entry,
    section: for<'a> fn(&Sections<'a>) -> &'a RawValue,
) -> Option<Rc<T>> {
    cache.with_borrow_mut(|map| {
        map.entry(entry.tag)
            .or_insert_with(|| {
                let sections: Sections<'_> = serde_json::from_str(entry.data).ok()?;
                serde_json::from_str(section(&sections).get()).ok().map(Rc::new)
            })
            .clone()
    })
}

pub(super) fn numbers(entry: &'static Entry) -> Option<Rc<Numbers>> {
    cached(&NUMBERS, entry, |sections| sections.numbers)
}

pub(super) fn dates(entry: &'static Entry) -> Option<Rc<Dates>> {
    cached(&DATES, entry, |sections| sections.dates)
}

pub(super) fn relative(entry: &'static Entry) -> Option<Rc<Relative>> {
    cached(&RELATIVE, entry, |sections| sections.relative)
}

pub(super) fn lists(entry: &'static Entry) -> Option<Rc<Lists>> {
    cached(&LISTS, entry, |sections| sections.lists)
}

pub(super) fn names(entry: &'static Entry) -> Option<Rc<Names>> {
    cached(&NAMES, entry, |sections| sections.names)
}

pub(super) fn shared() -> Option<Rc<Shared>> {
    SHARED.with_borrow_mut(|cell| {
        if cell.is_none() {
            *cell = serde_json::from_str(include_str!("data/shared.json")).ok().map(Rc::new);
        }
        cell.clone()
    })
}
