//! Source excerpts: the line in question, its neighbours, and a caret.
//!
//! Owns cutting a small, safe window out of a text that may be hostile, huge, or one
//! line of a megabyte. Never lets a control character through.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use brig::protocol::escape::escaped;
use std::ops::Range;

/// Lines shown before and after the one in question.
const NEIGHBOURS: usize = 2;
/// Characters shown before and after the place in a long line.
const REACH: usize = 100;

/// A window on a text, ready to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) text: String,
    /// Number of its first line.
    pub(crate) first_line: usize,
    /// Bytes of `text` that are in question.
    pub(crate) span: Range<usize>,
}

/// The window around a place (1-based; `column` in UTF-16 units). Nothing when the text
/// has no such line.
pub(crate) fn window(text: &str, line: usize, column: usize) -> Option<Window> {
    let index = line.checked_sub(1)?;
    let first = index.saturating_sub(NEIGHBOURS);
    let mut out = String::new();
    let mut span = None;
    for (number, content) in text.lines().enumerate().skip(first).take(index - first + NEIGHBOURS + 1) {
        if number == index {
            let (shown, within) = shown_line(content, column);
            span = Some(out.len() + within.start..out.len() + within.end);
            out.push_str(&shown);
        } else {
            out.push_str(&escaped(content, 2 * REACH));
        }
        out.push('\n');
    }
    // An error at the very end of a text is on a line that `lines` does not have.
    let span = span.or_else(|| (index == text.lines().count()).then_some(out.len()..out.len()))?;
    Some(Window { text: out, first_line: first + 1, span })
}

/// A line cut around its place: its text, and the bytes of the place.
fn shown_line(content: &str, column: usize) -> (String, Range<usize>) {
    let place = character_index(content, column.saturating_sub(1));
    let total = content.chars().count();
    let from = place.saturating_sub(REACH);
    let to = total.min(place + REACH);
    let part = |range: Range<usize>| content.chars().skip(range.start).take(range.len()).collect::<String>();
    let mark = |cut: bool| if cut { "…" } else { "" };
    let before = format!("{}{}", mark(from > 0), escaped(&part(from..place), usize::MAX));
    let word = part(place..to);
    let length = word_length(&word);
    let at = escaped(&word.chars().take(length).collect::<String>(), usize::MAX);
    let after = escaped(&word.chars().skip(length).collect::<String>(), usize::MAX);
    let span = before.len()..before.len() + at.len();
    (format!("{before}{at}{after}{}", mark(to < total)), span)
}

/// Which character stands at so many UTF-16 units.
fn character_index(text: &str, units: usize) -> usize {
    let mut seen = 0;
    text.chars()
        .take_while(|character| {
            let before = seen;
            seen += character.len_utf16();
            before < units
        })
        .count()
}

/// Characters of the word that begins here; one for anything else.
fn word_length(text: &str) -> usize {
    let word = text.chars().take_while(|character| character.is_alphanumeric() || matches!(character, '_' | '$')).count();
    word.max(usize::from(!text.is_empty()))
}

impl Window {
    /// As an element of a report. It has no path: where it was cut or escaped, its
    /// columns are not those of the text, so the place stands above it by itself.
    pub(crate) fn snippet(&self) -> Snippet<'static, annotate_snippets::Annotation<'static>> {
        let annotation = AnnotationKind::Primary.span(self.span.clone());
        Snippet::source(self.text.clone()).line_start(self.first_line).fold(false).annotation(annotation)
    }

    /// Number of its last line.
    pub(crate) fn last_line(&self) -> usize {
        self.first_line + self.text.lines().count().saturating_sub(1)
    }
}

/// A fault in a file, without colours: `file:line:column: message` and the excerpt.
pub(crate) fn plain_fault(message: &str, name: &str, text: &str, line: usize, column: usize) -> String {
    placed_fault(message, &format!("{}:{line}:{column}", escaped(name, 400)), text, line, column)
}

/// The same with a place that is already written out.
pub(crate) fn placed_fault(message: &str, place: &str, text: &str, line: usize, column: usize) -> String {
    let place = format!("{place}: {}", escaped(message, 1000));
    match window(text, line, utf16_column(text, line, column)) {
        Some(window) => {
            let report = [Level::ERROR.primary_title("").element(window.snippet())];
            let rendered = Renderer::plain().render(&report);
            // The first line is the title, which `place` says already.
            format!("{place}\n{}", rendered.split_once('\n').map_or("", |(_, excerpt)| excerpt))
        }
        None => place,
    }
}

/// JSON faults count bytes, excerpts count UTF-16 units.
fn utf16_column(text: &str, line: usize, column: usize) -> usize {
    let content = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let before = content.char_indices().take_while(|(index, _)| *index + 1 < column).map(|(_, character)| character.len_utf16());
    before.sum::<usize>() + 1
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use proptest::prelude::*;

    fn in_question(text: &str, line: usize, column: usize) -> String {
        let window = window(text, line, column).unwrap();
        window.text.get(window.span).unwrap().to_owned()
    }

    #[test]
    fn the_word_at_the_place_is_in_question() {
        assert_eq!(in_question("a\nconst x = orders.lst()\nb", 2, 18), "lst");
        assert_eq!(in_question("(", 1, 1), "(");
    }

    #[test]
    fn columns_count_utf16_units() {
        assert_eq!(in_question("\"🦀\" + boom", 1, 8), "boom");
    }

    #[test]
    fn a_line_of_a_megabyte_is_cut_around_its_place() {
        let line = format!("{}boom{}", "x+".repeat(250_000), "+y".repeat(250_000));
        let window = window(&line, 1, 500_001).unwrap();
        assert_eq!(window.text.get(window.span.clone()), Some("boom"));
        assert!(window.text.len() < 1000);
    }

    #[test]
    fn control_characters_of_the_text_are_escaped() {
        assert!(!window("a\u{1b}[2J boom", 1, 7).unwrap().text.contains('\u{1b}'));
    }

    #[test]
    fn a_place_that_the_text_does_not_have_has_no_window() {
        assert_eq!(window("a", 0, 1), None);
        assert_eq!(window("a", 9, 1), None);
        assert!(window("a\n", 2, 1).is_some(), "the end of the text");
    }

    proptest! {
        #[test]
        fn any_place_in_any_text_is_rendered_without_panic(text in "[a-z \u{1b}\u{202e}\t🦀漢\r\n]{0,60}", line in 0usize..6, column in 0usize..80) {
            plain_fault("x", "file", &text, line, column);
            if let Some(window) = window(&text, line, column) {
                prop_assert!(window.text.get(window.span.clone()).is_some());
            }
        }
    }
}
