//! The forms of a credential that are looked for, before any escapes.
//!
//! Owns the list of them. Never looks at a text.

use super::{LEAST_BYTES, decoded, quoted};
use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER};
use std::fmt::Write as _;

/// Shortest line of a credential that is looked for by itself, in bytes.
const LINE_BYTES: usize = 16;

/// A credential and its long lines.
pub(super) fn parts(text: &[u8]) -> Vec<&[u8]> {
    let mut parts = vec![text];
    if text.contains(&b'\n') {
        parts.extend(text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| line.len() >= LINE_BYTES));
    }
    parts
}

/// Forms in which the case of letters counts, and whether each is a part of base64.
pub(super) fn exact_forms(text: &[u8]) -> Vec<(Vec<u8>, bool)> {
    // One that itself looks escaped is read as what it looks like, as the texts are.
    let plain = |text: &[u8]| Some(decoded::plain(text)).filter(|plain| plain.len() >= LEAST_BYTES);
    let mut meant = vec![text.to_vec()];
    meant.extend(plain(text));
    let in_quotes: Vec<Vec<u8>> = meant.iter().flat_map(|text| within_quotes(text)).collect();
    meant.extend(in_quotes.iter().filter_map(|text| plain(text)));
    meant.extend(in_quotes);
    let mut forms: Vec<(Vec<u8>, bool)> = meant.into_iter().map(|form| (form, false)).collect();
    if let Ok(text) = std::str::from_utf8(text) {
        let json = quoted(text);
        let json = json.get(1..json.len().saturating_sub(1)).unwrap_or_default().to_owned();
        forms.push((json.replace('/', "\\/").into_bytes(), false));
        forms.push((ascii_json(&json).into_bytes(), false));
        forms.push((json.into_bytes(), false));
    }
    for encoding in [&BASE64_NOPAD, &BASE64URL_NOPAD] {
        for before in 0..3_usize {
            let mut shifted = vec![0; before];
            shifted.extend_from_slice(text);
            let encoded = encoding.encode(&shifted);
            // Letters that also hold bits of what stands before or after.
            let first = [0, 2, 3].get(before).copied().unwrap_or(0);
            let last = encoded.len() - usize::from(shifted.len() % 3 != 0);
            let core = encoded.as_bytes().get(first..last).unwrap_or_default();
            if core.len() >= LEAST_BYTES {
                forms.push((core.to_vec(), true));
            }
        }
    }
    forms
}

/// Forms in which the case of letters does not count.
pub(super) fn folded_forms(text: &[u8]) -> Vec<Vec<u8>> {
    let percent = |byte: &u8| format!("%{byte:02x}");
    let unreserved = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let url: String = text.iter().map(|byte| if unreserved(byte) { char::from(*byte).to_string() } else { percent(byte) }).collect();
    // As in a form, as encodeURI and encodeURIComponent leave it, and every byte of it.
    let form = url.replace("%20", "+");
    let component: String = text
        .iter()
        .map(|byte| if unreserved(byte) || b"!*'()".contains(byte) { char::from(*byte).to_string() } else { percent(byte) })
        .collect();
    let whole: String = text
        .iter()
        .map(|byte| if unreserved(byte) || b"!*'();/?:@&=+$,#".contains(byte) { char::from(*byte).to_string() } else { percent(byte) })
        .collect();
    let every: String = text.iter().map(percent).collect();
    let escaped: String = text.iter().map(|byte| format!("\\x{byte:02x}")).collect();
    let spelt: String = String::from_utf8_lossy(text).encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    [url, form, component, whole, every, escaped, spelt, HEXLOWER.encode(text)].into_iter().map(String::into_bytes).collect()
}

/// What becomes of a text's own quotes where it is put in quotes without a backslash: CSV,
/// SQL and Visual Basic double them; a shell ends its quotes, has one, and begins again.
pub(super) fn within_quotes(text: &[u8]) -> Vec<Vec<u8>> {
    const WAYS: [(u8, &[u8]); 4] = [(b'"', b"\"\""), (b'\'', b"''"), (b'\'', b"'\\''"), (b'\'', b"'\"'\"'")];
    let written = |(quote, way): (u8, &[u8])| {
        let each = |byte: &u8| if *byte == quote { way.to_vec() } else { vec![*byte] };
        text.contains(&quote).then(|| text.iter().flat_map(each).collect())
    };
    WAYS.into_iter().filter_map(written).collect()
}

/// What a credential with spaces is where each `+` is one.
pub(super) fn spaced_form(text: &[u8]) -> Option<Vec<u8>> {
    (text.len() >= LEAST_BYTES && text.contains(&b' ')).then(|| with_spaces(text))
}

pub(super) fn with_spaces(text: &[u8]) -> Vec<u8> {
    text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect()
}

/// JSON with every character above ASCII escaped, as some writers do.
pub(super) fn ascii_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_ascii() {
            out.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a string never fails.
                write!(out, "\\u{unit:04x}").unwrap_or(());
            }
        }
    }
    out
}
