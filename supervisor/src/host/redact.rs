//! Finding credentials in what leaves brigd.
//!
//! Owns the one list of forms in which a credential is looked for, and putting
//! `[redacted:NAME]` in its place: as it is, in base64 (standard and URL alphabet, with
//! whatever stands before it), in hexadecimal, with its quotes doubled or taken out of a
//! shell's, and each long line of one that has several;
//! each of these also where any of its characters are percent-encoded, escaped with a
//! backslash, or HTML entities, mixed and up to three times over ([`decoded`]), and a space
//! is a `+`. Never holds back a text: what can not be mended is refused by its caller.
//!
//! What it can not see: a credential cut into parts, compressed, encrypted, encoded twice
//! in base64 or hexadecimal, in base64 with line breaks, in UTF-16, quoted-printable or
//! punycode, with HTML's names for characters outside of ASCII, or behind escapes that only
//! one language has (PowerShell's backtick, Perl's and Python's names of characters, trigraphs). That a function gives a
//! credential away at all is a fault of the function; this is the net below it.
//!
//! The forms are copies of the credentials. They live as long as brigd, in a process that
//! nobody may trace and that leaves no core.

mod decoded;
mod forms;

use aho_corasick::{AhoCorasick, MatchKind};
use forms::{exact_forms, folded_forms, parts, spaced_form, with_spaces};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

/// Shortest credential, in bytes: a shorter one is found in texts that have nothing to
/// do with it.
pub(crate) const LEAST_BYTES: usize = 6;

/// One credential to look for.
#[derive(Clone, Copy)]
pub(crate) struct Planted<'a> {
    /// What stands in its place.
    pub(crate) name: &'a str,
    /// Its text.
    pub(crate) text: &'a [u8],
}

/// Looks for every credential that was loaded.
#[derive(Clone, Default)]
pub(crate) struct Redactor {
    forms: Option<Arc<Forms>>,
}

/// A form in which a credential may stand.
struct Form {
    /// Of which credential, by place in the names.
    of: usize,
    /// Cut out of base64: the letters beside it are part of it as well.
    within_base64: bool,
}

struct Forms {
    names: Vec<String>,
    /// Letters count as they are written.
    exact: AhoCorasick,
    exact_forms: Vec<Form>,
    /// Hexadecimal digits, which may be of either case.
    folded: AhoCorasick,
    folded_forms: Vec<Form>,
    /// Credentials with a space, every `+` of which is one as well: so forms write it.
    spaced: Option<AhoCorasick>,
    spaced_forms: Vec<Form>,
}

/// Where something was found.
struct Found {
    start: usize,
    end: usize,
    of: usize,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").field("credentials", &self.forms.as_ref().map_or(0, |forms| forms.names.len())).finish()
    }
}

/// Why there is no redactor: then nothing that has a credential may run.
#[derive(Debug, thiserror::Error)]
#[error("the forms of the credentials could not be compiled: {0}")]
pub(crate) struct RedactFault(#[from] aho_corasick::BuildError);

/// Whether anybody still awaits what is looked through: a long text of escapes takes time.
pub(crate) type Wanted<'a> = &'a dyn Fn() -> bool;

/// Nobody awaits it any more, so nothing of it may be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GivenUp;

impl Redactor {
    /// One that looks for these.
    ///
    /// # Errors
    /// When the credentials are too large altogether.
    pub(crate) fn new(planted: &[Planted<'_>]) -> Result<Self, RedactFault> {
        if planted.is_empty() {
            return Ok(Self::default());
        }
        let mut exact: BTreeSet<(Vec<u8>, usize, bool)> = BTreeSet::new();
        let mut folded: BTreeSet<(Vec<u8>, usize, bool)> = BTreeSet::new();
        let mut spaced: BTreeSet<(Vec<u8>, usize, bool)> = BTreeSet::new();
        for (of, Planted { text, .. }) in planted.iter().enumerate() {
            for part in parts(text) {
                exact.extend(exact_forms(part).into_iter().map(|(form, cut)| (form, of, cut)));
                folded.extend(folded_forms(part).into_iter().map(|form| (form, of, false)));
                spaced.extend(
                    exact_forms(part)
                        .iter()
                        .filter(|(_, cut)| !cut)
                        .filter_map(|(text, _)| spaced_form(text))
                        .map(|form| (form, of, false)),
                );
            }
        }
        let build = |forms: &BTreeSet<(Vec<u8>, usize, bool)>, fold| {
            AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .ascii_case_insensitive(fold)
                .build(forms.iter().map(|(form, _, _)| form))
        };
        let kinds = |forms: &BTreeSet<(Vec<u8>, usize, bool)>| {
            forms.iter().map(|(_, of, within_base64)| Form { of: *of, within_base64: *within_base64 }).collect()
        };
        let forms = Forms {
            names: planted.iter().map(|planted| planted.name.to_owned()).collect(),
            exact: build(&exact, false)?,
            exact_forms: kinds(&exact),
            folded: build(&folded, true)?,
            folded_forms: kinds(&folded),
            spaced: if spaced.is_empty() { None } else { Some(build(&spaced, false)?) },
            spaced_forms: kinds(&spaced),
        };
        Ok(Self { forms: Some(Arc::new(forms)) })
    }

    /// The text with a mark in the place of each credential; the same text when there is
    /// none in it.
    pub(crate) fn clean<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.clean_while(text, &|| true).unwrap_or_default()
    }

    /// The same while somebody awaits it: `wanted` is asked every now and then.
    ///
    /// # Errors
    /// [`GivenUp`]: nobody does any more.
    pub(crate) fn clean_while<'t>(&self, text: &'t str, wanted: Wanted<'_>) -> Result<Cow<'t, str>, GivenUp> {
        let Some(forms) = &self.forms else { return Ok(Cow::Borrowed(text)) };
        let found = forms.find(text.as_bytes(), wanted)?;
        Ok(if found.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(forms.marked(text, &found)) })
    }

    /// The same for a JSON text, which stays one: strings are looked at as what they
    /// mean, however they are escaped, and a number that is a credential becomes a
    /// string. `None`: there is none in it.
    #[cfg(test)]
    pub(crate) fn clean_json(&self, text: &str) -> Option<String> {
        self.clean_json_while(text, &|| true).unwrap_or_default()
    }

    /// The same while somebody awaits it.
    ///
    /// # Errors
    /// [`GivenUp`]: nobody does any more.
    pub(crate) fn clean_json_while(&self, text: &str, wanted: Wanted<'_>) -> Result<Option<String>, GivenUp> {
        let Some(forms) = &self.forms else { return Ok(None) };
        if !text.contains('\\') && forms.find(text.as_bytes(), wanted)?.is_empty() {
            return Ok(None);
        }
        let mut out = String::with_capacity(text.len());
        let mut changed = false;
        let mut rest = text;
        while let Some((before, string, after)) = next_string(rest) {
            changed |= forms.write_bare(before, &mut out, wanted)?;
            changed |= forms.write_string(string, &mut out, wanted)?;
            rest = after;
        }
        changed |= forms.write_bare(rest, &mut out, wanted)?;
        Ok(changed.then_some(out))
    }
}

impl Forms {
    /// All places, in order, none within another.
    fn find(&self, text: &[u8], wanted: Wanted<'_>) -> Result<Vec<Found>, GivenUp> {
        let mut all = self.matches(text);
        for copy in decoded::copies(text) {
            if !wanted() {
                return Err(GivenUp);
            }
            let found = merged(self.matches(copy.bytes()));
            if !found.is_empty() {
                let places = copy.back(text, found.iter().map(|found| (found.start, found.end)).collect());
                all.extend(found.iter().zip(places).map(|(found, (start, end))| Found { start, end, of: found.of }));
            }
        }
        Ok(merged(all))
    }

    /// All places of a text as it stands.
    fn matches(&self, text: &[u8]) -> Vec<Found> {
        let place = |found: aho_corasick::Match, forms: &[Form]| {
            let form = forms.get(found.pattern().as_usize());
            let (mut start, mut end) = (found.start(), found.end());
            if form.is_some_and(|form| form.within_base64) {
                (start, end) = widened(text, start, end);
            }
            Found { start, end, of: form.map_or(0, |form| form.of) }
        };
        let mut all: Vec<Found> = self.exact.find_iter(text).map(|found| place(found, &self.exact_forms)).collect();
        all.extend(self.folded.find_iter(text).map(|found| place(found, &self.folded_forms)));
        if let Some(spaced) = self.spaced.as_ref().filter(|_| text.contains(&b'+')) {
            let text = with_spaces(text);
            all.extend(spaced.find_iter(&text).map(|found| place(found, &self.spaced_forms)));
        }
        all
    }

    fn marked(&self, text: &str, found: &[Found]) -> String {
        let mut out = String::with_capacity(text.len());
        let mut from = 0;
        for found in found {
            // A form may begin or end within a character only if the credential is not text.
            let (start, end) = (floor(text, found.start), ceiling(text, found.end));
            out.push_str(text.get(from..start).unwrap_or_default());
            out.push_str("[redacted:");
            out.push_str(self.names.get(found.of).map_or("", String::as_str));
            out.push(']');
            from = end.max(from);
        }
        out.push_str(text.get(from..).unwrap_or_default());
        out
    }

    /// What stands between strings. Whether anything was found.
    fn write_bare(&self, text: &str, out: &mut String, wanted: Wanted<'_>) -> Result<bool, GivenUp> {
        if self.find(text.as_bytes(), wanted)?.is_empty() {
            out.push_str(text);
            return Ok(false);
        }
        let is_scalar = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let mut rest = text;
        let mut changed = false;
        while let Some(start) = rest.find(is_scalar) {
            let (before, tail) = rest.split_at(start);
            let (scalar, after) = tail.split_at(tail.find(|c| !is_scalar(c)).unwrap_or(tail.len()));
            out.push_str(before);
            let found = self.find(scalar.as_bytes(), wanted)?;
            if found.is_empty() {
                out.push_str(scalar);
            } else {
                changed = true;
                out.push_str(&quoted(&self.marked(scalar, &found)));
            }
            rest = after;
        }
        out.push_str(rest);
        Ok(changed)
    }

    /// One string with its quotes. Whether anything was found.
    fn write_string(&self, string: &str, out: &mut String, wanted: Wanted<'_>) -> Result<bool, GivenUp> {
        let Ok(meant) = serde_json::from_str::<String>(string) else {
            // Half a pair of surrogates, which other readers take; or no string at all.
            return self.write_odd(string, out, wanted);
        };
        let found = self.find(meant.as_bytes(), wanted)?;
        if found.is_empty() {
            out.push_str(string);
            return Ok(false);
        }
        out.push_str(&quoted(&self.marked(&meant, &found)));
        Ok(true)
    }

    /// A string that has no meaning here, as it is written.
    fn write_odd(&self, string: &str, out: &mut String, wanted: Wanted<'_>) -> Result<bool, GivenUp> {
        let found = self.find(string.as_bytes(), wanted)?;
        let Some(first) = found.first() else {
            out.push_str(string);
            return Ok(false);
        };
        let clean = self.marked(string, &found);
        let stays = serde_json::from_str::<&serde_json::value::RawValue>(&clean).is_ok();
        // A place may begin or end within an escape: then there is nothing to keep of it.
        let whole = || quoted(&self.marked("", &[Found { start: 0, end: 0, of: first.of }]));
        out.push_str(&if stays { clean } else { whole() });
        Ok(true)
    }
}

/// In order, and none within another.
fn merged(mut all: Vec<Found>) -> Vec<Found> {
    all.sort_by_key(|found| (found.start, std::cmp::Reverse(found.end)));
    let mut merged: Vec<Found> = Vec::with_capacity(all.len());
    for found in all {
        match merged.last_mut() {
            Some(last) if found.start < last.end => last.end = last.end.max(found.end),
            _ => merged.push(found),
        }
    }
    merged
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// What comes before the next string of a JSON text, the string with its quotes, the rest.
fn next_string(text: &str) -> Option<(&str, &str, &str)> {
    let start = text.find('"')?;
    let (before, tail) = text.split_at(start);
    let mut escaped = false;
    for (index, byte) in tail.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => {
                let (string, after) = tail.split_at(index + 1);
                return Some((before, string, after));
            }
            _ => {}
        }
    }
    None
}

/// One more letter of base64 on each side, and the padding.
fn widened(text: &[u8], start: usize, end: usize) -> (usize, usize) {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
    let start = start.checked_sub(1).filter(|before| text.get(*before).is_some_and(is_letter)).unwrap_or(start);
    let mut end = end + usize::from(text.get(end).is_some_and(is_letter));
    while text.get(end) == Some(&b'=') {
        end += 1;
    }
    (start, end)
}

fn floor(text: &str, mut index: usize) -> usize {
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

fn ceiling(text: &str, mut index: usize) -> usize {
    while index < text.len() && !text.is_char_boundary(index) {
        index += 1;
    }
    index
}

/// How many sets of credentials are looked for: those in use, and those before them, which
/// calls that still run may speak of.
const SETS: usize = 8;

static PROCESS: RwLock<Vec<Arc<Redactor>>> = RwLock::new(Vec::new());

/// Makes this the redactor of everything that brigd logs, beside the last few before it.
pub(crate) fn install(redactor: Redactor) {
    let mut sets = PROCESS.write().unwrap_or_else(PoisonError::into_inner);
    sets.insert(0, Arc::new(redactor));
    sets.truncate(SETS);
}

/// A line of the log as it may be written.
pub(crate) fn clean_log(text: &str) -> Cow<'_, str> {
    let sets = PROCESS.read().unwrap_or_else(PoisonError::into_inner);
    sets.iter().fold(Cow::Borrowed(text), |text, redactor| match redactor.clean(&text) {
        Cow::Owned(clean) => Cow::Owned(clean),
        Cow::Borrowed(_) => text,
    })
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
