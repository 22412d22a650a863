//! Names, literals and comments, as TypeScript writes them.
//!
//! Owns every character that a schema or a description can put into a declaration:
//! nothing ends a comment or a literal but what is written here.

use serde_json::Value;

/// Longest text of a comment that one description may give, in bytes.
const DESCRIPTION_BYTES: usize = 2_000;
/// Most lines of one description.
const DESCRIPTION_LINES: usize = 40;
/// Longest value in a comment, in bytes.
const VALUE_BYTES: usize = 200;

/// Words that can not be the name of a constant.
const RESERVED: &[&str] = &[
    "arguments",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "declare",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

/// Globals of every program: a collection of such a name is not defined.
const GLOBALS: &[&str] = &[
    "AbortController",
    "AbortSignal",
    "AggregateError",
    "Array",
    "ArrayBuffer",
    "AsyncDisposableStack",
    "BigInt",
    "BigInt64Array",
    "BigUint64Array",
    "Boolean",
    "Crypto",
    "CustomEvent",
    "DOMException",
    "DataView",
    "Date",
    "DisposableStack",
    "Error",
    "EvalError",
    "Event",
    "EventTarget",
    "FinalizationRegistry",
    "Float16Array",
    "Float32Array",
    "Float64Array",
    "Function",
    "HostError",
    "Infinity",
    "Int16Array",
    "Int32Array",
    "Int8Array",
    "InternalError",
    "Intl",
    "Iterator",
    "JSON",
    "Map",
    "Math",
    "NaN",
    "Number",
    "Object",
    "Promise",
    "Proxy",
    "RangeError",
    "ReferenceError",
    "Reflect",
    "RegExp",
    "Set",
    "String",
    "SubtleCrypto",
    "SuppressedError",
    "Symbol",
    "SyntaxError",
    "TextDecoder",
    "TextEncoder",
    "TypeError",
    "URIError",
    "URL",
    "URLSearchParams",
    "Uint16Array",
    "Uint32Array",
    "Uint8Array",
    "Uint8ClampedArray",
    "WeakMap",
    "WeakRef",
    "WeakSet",
    "atob",
    "btoa",
    "clearImmediate",
    "clearInterval",
    "clearTimeout",
    "console",
    "crypto",
    "decodeURI",
    "decodeURIComponent",
    "encodeURI",
    "encodeURIComponent",
    "escape",
    "eval",
    "globalThis",
    "inputs",
    "isFinite",
    "isNaN",
    "parseFloat",
    "parseInt",
    "performance",
    "queueMicrotask",
    "setImmediate",
    "setInterval",
    "setTimeout",
    "structuredClone",
    "undefined",
    "unescape",
];

/// Whether it is written as it is as the name of a member.
pub(super) fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '$')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
}

/// Why a collection can not be reached by this name, if it can not.
pub(super) fn unreachable(name: &str) -> Option<&'static str> {
    if GLOBALS.contains(&name) {
        Some("every program has a global of that name")
    } else if RESERVED.contains(&name) || !is_identifier(name) {
        Some("that is no name of a constant")
    } else {
        None
    }
}

/// The name of a member: as it is, or quoted.
pub(super) fn member_name(name: &str) -> String {
    if is_identifier(name) { name.to_owned() } else { quoted(name) }
}

/// A string literal.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            _ if is_unsafe(character) => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            _ => out.push(character),
        }
    }
    out.push('"');
    out
}

/// What could end a line, turn text around, or not be seen.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A text that can stand in a comment, on one line.
pub(super) fn on_one_line(text: &str, limit: usize) -> String {
    let mut out = String::new();
    let mut space = false;
    for character in text.chars() {
        if character.is_whitespace() || is_unsafe(character) {
            space = !out.is_empty();
            continue;
        }
        if out.len() + character.len_utf8() > limit {
            out.push('…');
            break;
        }
        if std::mem::take(&mut space) {
            out.push(' ');
        }
        // `*/` would end the comment, `/*` would look as if another began.
        if (character == '/' && out.ends_with('*')) || (character == '*' && out.ends_with('/')) {
            out.push('\\');
        }
        out.push(character);
    }
    out
}

/// A description as lines of a comment: its own lines, bounded.
pub(super) fn lines(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut left = DESCRIPTION_BYTES;
    for line in text.lines().map(str::trim_end).skip_while(|line| line.trim().is_empty()) {
        if out.len() >= DESCRIPTION_LINES || left == 0 {
            out.push("…".to_owned());
            break;
        }
        let indent = line.len() - line.trim_start().len();
        let clean = on_one_line(line, left);
        left = left.saturating_sub(clean.len().max(1));
        // What looks like a tag of JSDoc stays text.
        let clean = if clean.starts_with('@') { format!("\\{clean}") } else { clean };
        let cut = clean.ends_with('…') && !line.ends_with('…');
        out.push(if clean.is_empty() { clean } else { format!("{}{clean}", " ".repeat(indent.min(8))) });
        if cut {
            break;
        }
    }
    while out.last().is_some_and(String::is_empty) {
        out.pop();
    }
    out
}

/// A value in a comment, on one line and cut.
pub(super) fn value(value: &Value) -> String {
    // More than is shown, for the white space that is left out.
    let (text, whole) = beginning(value, 4 * VALUE_BYTES);
    let shown = on_one_line(&text, VALUE_BYTES);
    if whole || shown.ends_with('…') { shown } else { format!("{shown}…") }
}

/// Whether a value has more bytes than that as JSON. Never writes more of it.
pub(super) fn is_longer(value: &Value, bytes: usize) -> bool {
    !beginning(value, bytes).1
}

/// A value as JSON as far as it has so many bytes, and whether that is all of it.
fn beginning(value: &Value, most: usize) -> (String, bool) {
    let mut cut = Cut { bytes: Vec::new(), most };
    let whole = serde_json::to_writer(&mut cut, value).is_ok();
    (String::from_utf8_lossy(&cut.bytes).into_owned(), whole)
}

/// Takes so many bytes, and no more.
struct Cut {
    bytes: Vec<u8>,
    most: usize,
}

impl std::io::Write for Cut {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = self.most.saturating_sub(self.bytes.len());
        if room == 0 && !bytes.is_empty() {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.bytes.extend_from_slice(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
