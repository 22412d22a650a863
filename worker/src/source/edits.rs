//! Changes to a program's text, and the way back from the engine's positions.
//!
//! Owns insertions and replacements by byte offset, and the arithmetic from a line and
//! column that the engine reports to those of the text as it was sent. Never decides
//! what to change.

use std::borrow::Cow;

/// One change: the bytes `start..end` of the text become `text`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edit {
    start: usize,
    end: usize,
    text: String,
}

/// Changes to one text, in any order; they must not overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Edits {
    list: Vec<Edit>,
}

impl Edits {
    pub(super) fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at, at, text);
    }

    pub(super) fn replace(&mut self, start: usize, end: usize, text: impl Into<String>) {
        self.list.push(Edit { start, end, text: text.into() });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn extend_from(&mut self, other: &Self) {
        self.list.extend(other.list.iter().cloned());
    }

    /// The text with every change made.
    pub(super) fn apply<'t>(&mut self, source: &'t str) -> Cow<'t, str> {
        if self.list.is_empty() {
            return Cow::Borrowed(source);
        }
        // Stable, and an insertion sorts before a replacement that starts at its place.
        self.list.sort_by_key(|edit| (edit.start, edit.end));
        Cow::Owned(self.rebuilt(source))
    }

    fn rebuilt(&self, source: &str) -> String {
        let grown: usize = self.list.iter().map(|edit| edit.text.len()).sum();
        let mut out = String::with_capacity(source.len() + grown);
        let mut cursor = 0;
        for edit in &self.list {
            out.push_str(source.get(cursor..edit.start).unwrap_or_default());
            out.push_str(&edit.text);
            cursor = edit.end.max(cursor);
        }
        out.push_str(source.get(cursor..).unwrap_or_default());
        out
    }

    /// Where a byte of the changed text was in the unchanged one. A byte that a change
    /// brought in belongs to the place of the change.
    fn before(&self, offset: usize) -> usize {
        let mut shift_new = 0usize;
        let mut shift_old = 0usize;
        for edit in &self.list {
            let new_start = (edit.start + shift_new).saturating_sub(shift_old);
            if offset < new_start {
                break;
            }
            if offset < new_start + edit.text.len() {
                return (edit.start + (offset - new_start)).min(edit.end.max(edit.start));
            }
            shift_new += edit.text.len();
            shift_old += edit.end - edit.start;
        }
        (offset + shift_old).saturating_sub(shift_new)
    }
}

/// Leads from positions in the prepared code to positions in the text as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PositionMap {
    original: Box<str>,
    /// What the edits were made on, where the lines of `original` are others: a line
    /// separator that was blanked ends no line of the code.
    base: Option<Box<str>>,
    edits: Edits,
}

impl PositionMap {
    /// `base` is `original` with bytes blanked, and what `edits` were made on.
    pub(super) fn new(original: &str, base: &str, edits: Edits) -> Self {
        let base = (separators(original) != separators(base)).then(|| base.into());
        Self { original: original.into(), base, edits }
    }

    /// The position, in the text as sent, of what the engine reports at `line` and
    /// `column` of the prepared code. The engine counts columns in bytes, from 1; the answer counts characters, from 1. Positions outside the
    /// code are drawn to its nearest end. Takes time linear in the size of the text.
    #[must_use]
    pub(crate) fn original(&self, line: u32, column: u32) -> (u32, u32) {
        let base = self.base.as_ref().unwrap_or(&self.original);
        let code = if self.edits.is_empty() { Cow::Borrowed(&**base) } else { Cow::Owned(self.edits.rebuilt(base)) };
        let offset = engine_offset(&code, line, column);
        position(&self.original, self.edits.before(offset))
    }
}

/// The byte offset of a position that the engine reports.
fn engine_offset(code: &str, line: u32, column: u32) -> usize {
    let column = usize::try_from(column).unwrap_or(usize::MAX);
    if line <= 1 {
        return column.saturating_sub(1).min(code.len());
    }
    let mut seen = 1;
    let mut start = code.len();
    let mut bytes = code.bytes().enumerate().peekable();
    while let Some((at, byte)) = bytes.next() {
        let ends = match byte {
            b'\n' => Some(at + 1),
            b'\r' if !matches!(bytes.peek(), Some((_, b'\n'))) => Some(at + 1),
            // U+2028 and U+2029 end a line for the engine, too.
            0xE2 if is_line_separator(code, at) => Some(at + 3),
            _ => None,
        };
        if let Some(next) = ends {
            seen += 1;
            if seen == line {
                start = next;
                break;
            }
        }
    }
    (start + column.saturating_sub(1)).min(code.len())
}

fn separators(text: &str) -> usize {
    text.matches(['\u{2028}', '\u{2029}']).count()
}

fn is_line_separator(code: &str, at: usize) -> bool {
    matches!(code.as_bytes().get(at..at + 3), Some([0xE2, 0x80, 0xA8 | 0xA9]))
}

/// Line and column (both from 1; the column in characters) of a byte offset.
pub(super) fn position(text: &str, offset: usize) -> (u32, u32) {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = text.get(..end).unwrap_or_default();
    let mut line = 1u32;
    let mut start = 0;
    for (at, byte) in before.bytes().enumerate() {
        let pair = byte == b'\r' && text.as_bytes().get(at + 1) == Some(&b'\n');
        if byte == b'\n' || (byte == b'\r' && !pair) {
            line = line.saturating_add(1);
            start = at + 1;
        }
    }
    let column = before.get(start..).unwrap_or_default().chars().count();
    (line, u32::try_from(column).unwrap_or(u32::MAX).saturating_add(1))
}

/// The byte offset of a line and column (both from 1; the column in characters).
pub(super) fn offset_of(text: &str, (line, column): (u32, u32)) -> usize {
    let mut start = 0;
    for _ in 1..line {
        let rest = text.get(start..).unwrap_or_default();
        let Some(end) = rest.find(['\n', '\r']) else { return text.len() };
        let pair = rest.get(end..).is_some_and(|rest| rest.starts_with("\r\n"));
        start += end + if pair { 2 } else { 1 };
    }
    let column = usize::try_from(column).unwrap_or(usize::MAX).saturating_sub(1);
    text.get(start..).and_then(|line| line.char_indices().nth(column)).map_or(text.len(), |(at, _)| start + at)
}

/// Spaces in place of `text`: as many bytes, its line ends kept.
pub(super) fn blank(text: &str) -> String {
    text.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { char::from(byte) } else { ' ' }).collect()
}

/// The line ends of `text` and nothing else.
pub(super) fn line_ends(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().filter(|c| matches!(c, '\n' | '\r'))
}
