//! Text to bytes and back: UTF-8, UTF-16 in both orders, windows-1252.
//!
//! Bytes come from the guest as hex: the engine's own `toHex` reads a buffer without the
//! unsafe views that a resizable or detached buffer could invalidate.

use rquickjs::function::Func;
use rquickjs::{ArrayBuffer, Ctx, IntoJs, Object, Value};

use super::List;

pub(super) fn define(native: &Object<'_>) -> rquickjs::Result<()> {
    native.set("encodeUtf8", Func::from(encode))?;
    native.set("encodeUtf8Into", Func::from(encode_into))?;
    native.set("encodingName", Func::from(|label: String| name_of(&label)))?;
    native.set("decode", Func::from(decode))
}

/// The bytes of a string of hex digits as the engine writes them.
pub(super) fn from_hex(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        _ => 0,
    };
    hex.as_bytes()
        .chunks_exact(2)
        .map(|pair| match pair {
            [high, low] => digit(*high) << 4 | digit(*low),
            _ => 0,
        })
        .collect()
}

fn encode<'js>(ctx: Ctx<'js>, text: String) -> rquickjs::Result<ArrayBuffer<'js>> {
    ArrayBuffer::new_copy(ctx, text.into_bytes())
}

/// As much of `text` as fits in `room` bytes without cutting a character: UTF-16 units
/// read, bytes written, the bytes.
fn encode_into<'js>(ctx: Ctx<'js>, text: String, room: usize) -> rquickjs::Result<List<Value<'js>>> {
    let mut end = text.len().min(room);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let taken = text.get(..end).unwrap_or_default();
    let bytes = ArrayBuffer::new_copy(ctx.clone(), taken)?;
    Ok(List(vec![taken.encode_utf16().count().into_js(&ctx)?, end.into_js(&ctx)?, bytes.into_value()]))
}

/// The encoding that a label stands for (Encoding Standard, section 4.2), where offered.
fn name_of(label: &str) -> Option<&'static str> {
    let label = label.trim_matches(['\t', '\n', '\x0c', '\r', ' ']).to_ascii_lowercase();
    match label.as_str() {
        "utf-8" | "utf8" | "unicode-1-1-utf-8" | "unicode11utf8" | "unicode20utf8" | "x-unicode20utf8" => Some("utf-8"),
        "utf-16" | "utf-16le" | "csunicode" | "iso-10646-ucs-2" | "ucs-2" | "unicode" | "unicodefeff" => Some("utf-16le"),
        "utf-16be" | "unicodefffe" => Some("utf-16be"),
        "windows-1252" | "ansi_x3.4-1968" | "ascii" | "cp1252" | "cp819" | "csisolatin1" | "ibm819" | "iso-8859-1" | "iso-ir-100"
        | "iso8859-1" | "iso88591" | "iso_8859-1" | "iso_8859-1:1987" | "l1" | "latin1" | "us-ascii" | "x-cp1252" => Some("windows-1252"),
        _ => None,
    }
}

/// Text and how many trailing bytes wait for more input (only while streaming); nothing
/// when `fatal` and the bytes are not valid. `strip` drops a leading byte order mark.
fn decode<'js>(
    ctx: Ctx<'js>,
    encoding: String,
    hex: String,
    stream: bool,
    fatal: bool,
    strip: bool,
) -> rquickjs::Result<Option<List<Value<'js>>>> {
    let bytes = from_hex(&hex);
    let decoded = match encoding.as_str() {
        "utf-16le" => utf16(&bytes, u16::from_le_bytes, stream, fatal),
        "utf-16be" => utf16(&bytes, u16::from_be_bytes, stream, fatal),
        "windows-1252" => Some((bytes.iter().copied().map(windows_1252).collect(), 0)),
        _ => utf8(&bytes, stream, fatal),
    };
    let Some((text, left)) = decoded else {
        return Ok(None);
    };
    let marked = strip && encoding != "windows-1252";
    let text = if marked { text.strip_prefix('\u{feff}').unwrap_or(&text) } else { &text };
    Ok(Some(List(vec![text.into_js(&ctx)?, left.into_js(&ctx)?])))
}

fn utf8(bytes: &[u8], stream: bool, fatal: bool) -> Option<(String, usize)> {
    let mut text = String::with_capacity(bytes.len());
    let mut chunks = bytes.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        text.push_str(chunk.valid());
        let invalid = chunk.invalid();
        if invalid.is_empty() {
            continue;
        }
        let last = chunks.peek().is_none();
        let unfinished = std::str::from_utf8(invalid).is_err_and(|e| e.error_len().is_none());
        if stream && last && unfinished {
            return Some((text, invalid.len()));
        }
        if fatal {
            return None;
        }
        text.push(char::REPLACEMENT_CHARACTER);
    }
    Some((text, 0))
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16, stream: bool, fatal: bool) -> Option<(String, usize)> {
    let pairs = bytes.chunks_exact(2);
    let mut left = pairs.remainder().len();
    let mut units: Vec<u16> = pairs
        .map(|pair| match pair {
            [a, b] => unit([*a, *b]),
            _ => 0,
        })
        .collect();
    let waits_for_low = matches!(units.last(), Some(0xd800..=0xdbff));
    if stream && waits_for_low {
        units.pop();
        left += 2;
    }
    let odd = left > 0 && !stream;
    let mut text = String::with_capacity(units.len());
    for item in char::decode_utf16(units) {
        match item {
            Ok(character) => text.push(character),
            Err(_) if fatal => return None,
            Err(_) => text.push(char::REPLACEMENT_CHARACTER),
        }
    }
    if odd {
        if fatal {
            return None;
        }
        // One replacement for a dangling surrogate and the odd byte after it together.
        if !waits_for_low {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        left = 0;
    }
    Some((text, left))
}

fn windows_1252(byte: u8) -> char {
    const HIGH: [char; 32] = [
        '\u{20ac}', '\u{81}', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}', '\u{2021}', '\u{2c6}', '\u{2030}', '\u{160}',
        '\u{2039}', '\u{152}', '\u{8d}', '\u{17d}', '\u{8f}', '\u{90}', '\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}', '\u{2022}',
        '\u{2013}', '\u{2014}', '\u{2dc}', '\u{2122}', '\u{161}', '\u{203a}', '\u{153}', '\u{9d}', '\u{17e}', '\u{178}',
    ];
    byte.checked_sub(0x80).and_then(|index| HIGH.get(usize::from(index))).copied().unwrap_or(char::from(byte))
}
