//! The resolved options of a number, as they come from the JavaScript side.

use serde::Deserialize;

use super::decimal::Rounding;

/// Options as the JavaScript side resolved them; every member is always there.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NumberOptions {
    pub(super) tag: String,
    pub(super) style: String,
    pub(super) currency: Option<String>,
    pub(super) currency_display: Option<String>,
    pub(super) currency_sign: Option<String>,
    pub(super) unit: Option<String>,
    pub(super) unit_display: Option<String>,
    pub(super) notation: String,
    pub(super) compact_display: Option<String>,
    pub(super) sign_display: String,
    pub(super) use_grouping: String,
    pub(super) minimum_integer_digits: usize,
    pub(super) minimum_fraction_digits: i32,
    pub(super) maximum_fraction_digits: i32,
    pub(super) minimum_significant_digits: i32,
    pub(super) maximum_significant_digits: i32,
    pub(super) rounding_type: RoundingType,
    pub(super) rounding_increment: u32,
    pub(super) rounding_mode: Rounding,
    pub(super) trailing_zero_display: String,
}

/// Which of fraction and significant digits decide where to round.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(super) enum RoundingType {
    FractionDigits,
    SignificantDigits,
    MorePrecision,
    LessPrecision,
}
