//! What models put around a program: fences, prose, think-tags.
//!
//! Owns finding the program in a message. Answers with a text of the same length in
//! bytes, everything else blanked, so that no position moves. Never looks into a fence
//! that is part of a string, a template or a comment of a valid program.

use super::edits::blank;
use std::borrow::Cow;
use std::ops::Range;

/// Tags whose content is the model talking to itself.
const THINKING: [&str; 7] = ["think", "thinking", "thought", "reasoning", "reflection", "analysis", "scratchpad"];
/// Tags whose content is the program.
const WRAPPERS: [&str; 8] = ["code", "program", "answer", "script", "javascript", "typescript", "js", "ts"];
/// First words of a fence's tag that name a program for this sandbox.
const CODE_TAGS: [&str; 16] = [
    "js",
    "javascript",
    "mjs",
    "cjs",
    "jsx",
    "ecmascript",
    "es6",
    "node",
    "nodejs",
    "ts",
    "typescript",
    "mts",
    "cts",
    "tsx",
    "deno",
    "bun",
];

/// First words of a fence's tag that name another language.
const OTHER_TAGS: [&str; 20] = [
    "bash",
    "c",
    "console",
    "cpp",
    "csharp",
    "css",
    "go",
    "html",
    "java",
    "kotlin",
    "lua",
    "php",
    "powershell",
    "py",
    "python",
    "ruby",
    "rust",
    "sh",
    "shell",
    "sql",
];

/// `text` without leading think-tags and wrapper tags.
pub(super) fn without_tags(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    // Each turn takes one tag away; nobody nests more.
    for _ in 0..8 {
        let Some((start, end)) = leading_tag(&text) else { break };
        let ranges: Vec<Range<usize>> = std::iter::once(start).chain(end).collect();
        text = Cow::Owned(blanked(&text, &ranges));
    }
    text
}

/// `text` without everything up to a `</think>` whose opening tag was not sent.
pub(super) fn without_open_thinking(text: &str) -> Option<String> {
    let end = THINKING.iter().find_map(|name| {
        let tag = format!("</{name}>");
        text.find(&tag).map(|at| at + tag.len())
    })?;
    Some(blanked(text, std::slice::from_ref(&(0..end))))
}

/// The bytes of the tag that the text begins with, and those of its end tag.
fn leading_tag(text: &str) -> Option<(Range<usize>, Option<Range<usize>>)> {
    let start = text.len() - text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}').len();
    let rest = text.get(start..)?.strip_prefix('<')?;
    let name_end = rest.find('>').filter(|end| *end <= 16)?;
    let name = rest.get(..name_end)?.to_ascii_lowercase();
    let body = start + name_end + 2;
    if THINKING.contains(&name.as_str()) {
        let end = find_closing(text, body, &name)?;
        return Some((start..end.end, None));
    }
    if WRAPPERS.contains(&name.as_str()) {
        return Some((start..body, last_closing(text, body, &name)));
    }
    None
}

fn find_closing(text: &str, from: usize, name: &str) -> Option<Range<usize>> {
    let tail = text.get(from..)?;
    let closing = format!("</{name}>");
    tail.char_indices().filter(|(_, c)| *c == '<').find_map(|(at, _)| {
        let found = tail.get(at..at + closing.len())?;
        found.eq_ignore_ascii_case(&closing).then(|| from + at..from + at + closing.len())
    })
}

fn last_closing(text: &str, from: usize, name: &str) -> Option<Range<usize>> {
    let closing = format!("</{name}>");
    let end = text.trim_end().len();
    let start = end.checked_sub(closing.len()).filter(|start| *start >= from)?;
    text.get(start..end)?.eq_ignore_ascii_case(&closing).then_some(start..end)
}

/// A line that opens or closes a fence.
struct Marker<'t> {
    /// Where the line starts and where the next one does.
    line: Range<usize>,
    mark: u8,
    length: usize,
    info: &'t str,
}

fn markers(text: &str) -> impl Iterator<Item = Marker<'_>> {
    let mut start = 0;
    let mut continued = false;
    text.split_inclusive('\n').filter_map(move |line| {
        let range = start..start + line.len();
        start = range.end;
        // A line that continues a string literal is no fence.
        let inside = std::mem::replace(&mut continued, line.trim_end_matches(['\r', '\n']).ends_with('\\'));
        if inside {
            return None;
        }
        let content = line.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        let mark = *content.as_bytes().first().filter(|byte| matches!(byte, b'`' | b'~'))?;
        let length = content.bytes().take_while(|byte| *byte == mark).count();
        let info = content.get(length..)?.trim();
        (length >= 3 && !info.contains('`')).then_some(Marker { line: range, mark, length, info })
    })
}

/// Whether any line looks like a fence: cheap, and false for nearly every program.
pub(super) fn has_fences(text: &str) -> bool {
    (text.contains("```") || text.contains("~~~")) && (markers(text).next().is_some() || one_line(text).is_some())
}

/// Whether the message begins with a fence, as no program does.
pub(super) fn begins_with_fence(text: &str) -> bool {
    let start = text.len() - text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}').len();
    let first = markers(text).next();
    first.is_some_and(|marker| marker.line.contains(&start)) || one_line(text).is_some()
}

/// Whether every fence line lies within one of `comments`, which are in order, or is made
/// of tildes. In a program that parses, tildes at the start of a line are part of a
/// template; back-ticks there can only be in a comment, for three in a row would be an
/// empty template that is called.
pub(super) fn fences_are_text(text: &str, comments: &[Range<usize>]) -> bool {
    markers(text).filter(|marker| marker.mark == b'`').all(|marker| {
        let next = comments.partition_point(|comment| comment.end <= marker.line.start);
        comments.get(next).is_some_and(|comment| comment.start < marker.line.start)
    })
}

/// What the fences of a message hold.
pub(super) enum Fenced {
    /// The program, everything else blanked.
    Program(String),
    /// Only a program in another language, in a fence that starts here.
    OtherLanguage(usize),
    /// Nothing that is a fence after all.
    Nothing,
}

/// The fenced program in `text`. Blocks tagged as JavaScript or TypeScript are read as
/// one program, in order; without any, the first untagged block is, or else the first.
pub(super) fn fenced(text: &str) -> Fenced {
    if let Some(range) = one_line(text) {
        return Fenced::Program(outside_blanked(text, std::slice::from_ref(&range)));
    }
    let quiet = without_thinking_before_fence(text);
    let blocks = blocks(&quiet);
    let tagged: Vec<Range<usize>> = blocks.iter().filter(|block| block.is_code).map(|block| block.content.clone()).collect();
    if !tagged.is_empty() {
        return Fenced::Program(outside_blanked(&quiet, &tagged));
    }
    let Some(chosen) = blocks.iter().find(|block| block.is_plain).or_else(|| blocks.first()) else { return Fenced::Nothing };
    if chosen.is_other {
        return Fenced::OtherLanguage(chosen.content.start);
    }
    Fenced::Program(outside_blanked(&quiet, std::slice::from_ref(&chosen.content)))
}

struct Block {
    content: Range<usize>,
    is_code: bool,
    is_plain: bool,
    is_other: bool,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Marker<'_>> = None;
    for marker in markers(text) {
        open = match open {
            None => Some(marker),
            Some(first) if first.mark == marker.mark && marker.length >= first.length && marker.info.is_empty() => {
                found.push(block(&first, marker.line.start));
                None
            }
            Some(first) => Some(first),
        };
    }
    if let Some(first) = open {
        let rest = text.get(first.line.end..).unwrap_or_default().trim_end();
        if rest.is_empty() && first.info.is_empty() && found.is_empty() {
            // The end of a fence whose start was not sent.
            found.push(Block { content: 0..first.line.start, is_code: true, is_plain: true, is_other: false });
        } else {
            // A fence that nobody closed, or one closed at the end of the last line of code.
            let code = rest.strip_suffix("```").unwrap_or(rest);
            found.push(block(&first, first.line.end + code.len()));
        }
    }
    found
}

fn block(first: &Marker<'_>, end: usize) -> Block {
    let tag = first.info.split(|c: char| !c.is_ascii_alphanumeric()).find(|word| !word.is_empty());
    let tag = tag.unwrap_or_default().to_ascii_lowercase();
    Block {
        content: first.line.end..end.max(first.line.end),
        is_code: CODE_TAGS.contains(&tag.as_str()),
        is_plain: first.info.is_empty(),
        is_other: OTHER_TAGS.contains(&tag.as_str()),
    }
}

/// The code of a fence that opens and closes on the only line there is.
fn one_line(text: &str) -> Option<Range<usize>> {
    let trimmed = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let inner = trimmed.strip_prefix("```")?.strip_suffix("```")?;
    if inner.contains(['\n', '`']) || inner.trim().is_empty() {
        return None;
    }
    let start = text.find("```")? + 3;
    let tag = inner.split_whitespace().next().unwrap_or_default();
    let tagged = inner.starts_with(tag) && CODE_TAGS.contains(&tag.to_ascii_lowercase().as_str());
    let skip = if tagged { tag.len() } else { 0 };
    Some(start + skip..start + inner.len())
}

fn without_thinking_before_fence(text: &str) -> Cow<'_, str> {
    let Some(first) = markers(text).next().map(|marker| marker.line.start) else { return Cow::Borrowed(text) };
    let found = THINKING.iter().find_map(|name| {
        let start = text.find(&format!("<{name}>")).filter(|start| *start < first)?;
        Some(start..find_closing(text, start, name)?.end)
    });
    match found {
        Some(range) => Cow::Owned(blanked(text, std::slice::from_ref(&range))),
        None => Cow::Borrowed(text),
    }
}

fn blanked(text: &str, ranges: &[Range<usize>]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut cursor = 0;
    for range in ranges {
        out.push_str(text.get(cursor..range.start).unwrap_or_default());
        out.push_str(&blank(text.get(range.clone()).unwrap_or_default()));
        cursor = range.end;
    }
    out.push_str(text.get(cursor..).unwrap_or_default());
    out
}

fn outside_blanked(text: &str, keep: &[Range<usize>]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut cursor = 0;
    for range in keep {
        out.push_str(&blank(text.get(cursor..range.start).unwrap_or_default()));
        out.push_str(text.get(range.clone()).unwrap_or_default());
        cursor = range.end;
    }
    out.push_str(&blank(text.get(cursor..).unwrap_or_default()));
    out
}
