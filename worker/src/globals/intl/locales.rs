//! Which locales are offered, and how a request is matched to one: exactly or not at all.
//!
//! A near relative (`de-LI` for `de-DE`) prints differently, so it is refused, not guessed.

use icu_locale_core::Locale;

/// One locale: its tag, other tags that mean just the same, its data.
pub(super) struct Entry {
    pub(super) tag: &'static str,
    also: &'static [&'static str],
    pub(super) data: &'static str,
    /// Names of time zones.
    pub(super) zones: &'static str,
}

macro_rules! locales {
    ($($tag:literal $([$($also:literal),*])?),* $(,)?) => {
        &[$(Entry {
            tag: $tag,
            also: &[$($($also),*)?],
            data: include_str!(concat!("data/", $tag, ".json")),
            zones: include_str!(concat!("data/zones/", $tag, ".json")),
        }),*]
    };
}

/// Every locale that is offered; the first is the default.
pub(super) const LOCALES: &[Entry] = locales![
    "en-US" ["en"], "en-GB", "en-CA", "en-AU", "en-IN", "en-NZ", "en-IE", "en-ZA", "en-SG",
    "de-DE" ["de"], "de-AT", "fr-FR" ["fr"], "fr-CA", "fr-CH", "fr-BE",
    "es-ES" ["es"], "es-MX", "es-US", "es-AR", "it-IT" ["it"], "pt-BR" ["pt"], "pt-PT",
    "nl-NL" ["nl"], "nl-BE", "sv-SE" ["sv"], "da-DK" ["da"], "nb-NO" ["nb", "no"],
    "fi-FI" ["fi"], "pl-PL" ["pl"], "cs-CZ" ["cs"], "tr-TR", "ru-RU" ["ru"], "uk-UA" ["uk"],
    "ja-JP" ["ja"], "zh-CN" ["zh", "zh-Hans", "zh-Hans-CN"],
    "zh-TW" ["zh-Hant", "zh-Hant-TW"], "ko-KR" ["ko"], "id-ID" ["id"], "hu-HU" ["hu"],
    "ro-RO" ["ro"],
];

/// The entry for a tag without extensions, in canonical case.
pub(super) fn find(tag: &str) -> Option<&'static Entry> {
    LOCALES.iter().find(|entry| entry.tag == tag || entry.also.contains(&tag))
}

/// The tags to name when a request is refused.
pub(super) fn offered() -> String {
    let tags: Vec<_> = LOCALES.iter().map(|entry| entry.tag).collect();
    tags.join(", ")
}

/// The canonical form of a language tag (BCP 47), or nothing when it is not one.
pub(super) fn canonical(tag: &str) -> Option<String> {
    if tag.contains('_') || tag.is_empty() {
        return None;
    }
    Locale::try_from_str(tag).ok().map(|locale| locale.to_string())
}

/// A canonical tag without extensions, then its `-u-` keywords: key, value, key, value.
pub(super) fn split(tag: &str) -> Vec<String> {
    let Ok(locale) = Locale::try_from_str(tag) else {
        return Vec::new();
    };
    let mut out = vec![locale.id.to_string()];
    for (key, value) in locale.extensions.unicode.keywords.iter() {
        out.push(key.to_string());
        out.push(value.to_string());
    }
    out
}
