//! Owns how parts of a shown value are put together: quotes, lines, widths. It sees text
//! only, never a guest value.

use super::inspect::ELEMENTS;
use crate::value::number;

/// Characters of a nested string that are shown.
const STRING_CHARS: usize = 10_000;
/// Width that a one-line form may take.
const WIDTH: usize = 76;
/// Arrays of more short elements than this are packed several to a line.
const PACK_FROM: usize = 6;

pub(super) fn float_text(float: f64) -> String {
    if float.is_nan() {
        return "NaN".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if float == 0.0 && float.is_sign_negative() {
        return "-0".to_owned();
    }
    let mut out = Vec::new();
    number::push(&mut out, float);
    String::from_utf8_lossy(&out).into_owned()
}

/// A string in quotes, with the quote that needs least escaping.
pub(super) fn quoted(text: &str) -> String {
    let quote = ['\'', '"', '`'].into_iter().find(|quote| !text.contains(*quote)).unwrap_or('\'');
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for (count, character) in text.chars().enumerate() {
        if count == STRING_CHARS {
            out.push(quote);
            out.push_str(&format!("... {} more characters", text.chars().count() - STRING_CHARS));
            return out;
        }
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push_str(&format!("\\x{:02X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

pub(super) fn key_shown(name: &str) -> String {
    let plain = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$');
    if plain || (!name.is_empty() && name.bytes().all(|b| b.is_ascii_digit())) { name.to_owned() } else { quoted(name) }
}

pub(super) fn hole_text(holes: usize) -> Option<String> {
    match holes {
        0 => None,
        1 => Some("<1 empty item>".to_owned()),
        n => Some(format!("<{n} empty items>")),
    }
}

pub(super) fn more(size: usize) -> Option<String> {
    let rest = size.saturating_sub(ELEMENTS);
    (rest > 0).then(|| format!("... {rest} more item{}", if rest == 1 { "" } else { "s" }))
}

/// Parts on one line when they fit, else one a line (short ones of a list packed).
pub(super) fn joined(open: &str, parts: Vec<String>, close: &str, indent: usize, list: bool) -> String {
    if parts.is_empty() {
        return format!("{open}{close}");
    }
    let width: usize = parts.iter().map(|part| part.chars().count() + 2).sum();
    let flat = !parts.iter().any(|part| part.contains('\n')) && !open.contains('\n');
    if flat && indent + open.len() + width < WIDTH && !(list && parts.len() > PACK_FROM * 4) {
        return format!("{open} {} {close}", parts.join(", "));
    }
    let pad = " ".repeat(indent + 2);
    let end = " ".repeat(indent);
    let is_short = |part: &String| part.len() <= WIDTH / PACK_FROM || part.starts_with("... ");
    if list && flat && parts.len() > PACK_FROM && parts.iter().all(is_short) {
        return format!("{open}\n{pad}{}\n{end}{close}", packed(&parts, indent).join(&format!(",\n{pad}")));
    }
    format!("{open}\n{pad}{}\n{end}{close}", parts.join(&format!(",\n{pad}")))
}

pub(super) fn packed(parts: &[String], indent: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if indent + line.len() + part.len() + 4 < WIDTH => {
                line.push_str(", ");
                line.push_str(part);
            }
            _ => lines.push(part.clone()),
        }
    }
    lines
}
