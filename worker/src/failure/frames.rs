//! Owns stack text: reading the engine's frames, leaving out those of the glue, and giving
//! places in the text as it was sent. Stack text can be whatever a guest made it: it is
//! read leniently and bounded.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use crate::{source::PositionMap, value::text};

/// Frames that are shown.
const FRAMES: usize = 20;
/// Bytes of stack text that are read.
const STACK_BYTES: usize = 16 * 1024;
/// Characters of a function name that are shown.
const NAME_CHARS: usize = 80;
/// File names of the glue begin so.
const GLUE: &str = "brig:";
/// Programs whose places are remembered in a kept realm.
const VIEWS: usize = 64;

/// How places in a program that runs relate to its text as sent.
#[derive(Debug)]
pub(crate) struct View {
    /// The text as it was sent.
    pub(crate) text: String,
    /// From places in the prepared code to places in the text; `None` when they are the same.
    pub(crate) map: Option<PositionMap>,
}

thread_local! {
    static VIEWS_BY_FILE: RefCell<BTreeMap<String, Rc<View>>> = const { RefCell::new(BTreeMap::new()) };
    static RUNNING: RefCell<Option<Rc<View>>> = const { RefCell::new(None) };
}

/// From now on, places in `file` are told by this view.
pub(crate) fn remember(file: &str, view: Rc<View>) {
    super::places::begin();
    RUNNING.set(Some(Rc::clone(&view)));
    VIEWS_BY_FILE.with_borrow_mut(|views| {
        if views.len() >= VIEWS {
            views.pop_first();
        }
        views.insert(file.to_owned(), view);
    });
}

/// Forgets all views: their programs are over, and so are the realms that ran them.
pub(crate) fn forget_all() {
    VIEWS_BY_FILE.take();
    RUNNING.take();
}

/// The program that runs now.
pub(super) fn running() -> Option<Rc<View>> {
    RUNNING.with_borrow(Clone::clone)
}

/// A place in a program's text as sent, 1-based.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) view: Rc<View>,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// One frame.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    name: String,
    place: Option<Place>,
    native: bool,
}

/// The frames of a stack text, the glue's left out.
pub(crate) fn read(stack: &str) -> Vec<Frame> {
    let lines = text::head(stack, STACK_BYTES).lines();
    lines.filter_map(|line| frame(line.trim().strip_prefix("at ")?)).take(FRAMES).collect()
}

fn frame(line: &str) -> Option<Frame> {
    let (name, at) = match line.strip_suffix(')').and_then(|line| line.rsplit_once(" (")) {
        Some((name, at)) => (name, at),
        None => ("", line),
    };
    if at.starts_with(GLUE) {
        return None;
    }
    let name: String = name.chars().filter(|c| !c.is_control()).take(NAME_CHARS).collect();
    let name = if name == "<eval>" || name == "<module>" { String::new() } else { name };
    if at == "native" || at == "missing" {
        return Some(Frame { name, place: None, native: true });
    }
    let place = place(at);
    place.is_some().then_some(Frame { name, place, native: false })
}

/// `file:line:column` of a remembered program, as a place in its text.
fn place(at: &str) -> Option<Place> {
    let (rest, column) = at.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    let (line, column): (u32, u32) = (line.parse().ok()?, column.parse().ok()?);
    let view = VIEWS_BY_FILE.with_borrow(|views| views.get(file).cloned())?;
    let (line, column) = view.map.as_ref().map_or((line, column), |map| map.original(line, column));
    Some(Place { view, line, column })
}

/// The first place in a program that a stack text names.
pub(crate) fn first_place(frames: &[Frame]) -> Option<Place> {
    frames.iter().find_map(|frame| frame.place.clone())
}

/// The place that an error of these classes is told with: where it was made. The engine
/// counts the constructors of its own classes as places, which say nothing of that.
pub(crate) fn place_of(frames: &[Frame], classes: &[String]) -> Option<Place> {
    let constructors = frames.iter().take_while(|frame| classes.contains(&frame.name)).count();
    first_place(frames.get(constructors..).unwrap_or_default()).or_else(|| first_place(frames))
}

/// Frames as they are shown, one text each.
pub(crate) fn shown(stack: &str) -> Vec<String> {
    read(stack).iter().filter_map(Frame::shown).collect()
}

impl Frame {
    /// The name of a function of the language; `None` for a frame of a program.
    pub(super) fn native_name(&self) -> Option<&str> {
        (self.native && !self.name.is_empty()).then_some(self.name.as_str())
    }

    /// `name (program:line:column)`.
    pub(crate) fn shown(&self) -> Option<String> {
        let place = self.place.as_ref().map(|place| format!("program:{}:{}", place.line, place.column));
        match (self.name.as_str(), place, self.native) {
            ("" | "<anonymous>", Some(place), _) => Some(place),
            (name, Some(place), _) => Some(format!("{name} ({place})")),
            ("" | "<anonymous>", None, _) => None,
            (name, None, true) => Some(format!("{name} (native)")),
            (_, None, false) => None,
        }
    }
}

/// Characters shown on each side of the column in a very long line.
const AROUND: usize = 70;
/// Characters before and behind a place that are looked at.
const CHARS_BEFORE: usize = 4_000;
const CHARS_AFTER: usize = 400;

impl Place {
    /// The line, and a caret under the column.
    pub(crate) fn excerpt(&self) -> Option<String> {
        let index = usize::try_from(self.line).ok()?.checked_sub(1)?;
        let line = self.view.text.lines().nth(index)?;
        let characters: Vec<char> = line.chars().map(|c| if c == '\t' || c.is_control() { ' ' } else { c }).collect();
        let column = usize::try_from(self.column).ok()?.saturating_sub(1).min(characters.len());
        let start = if characters.len() > 2 * AROUND { column.saturating_sub(AROUND) } else { 0 };
        let shown: String = characters.iter().skip(start).take(2 * AROUND).collect();
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        Some(format!("{number} | {}\n{gutter} | {}^", shown.trim_end(), " ".repeat(column - start)))
    }

    /// The text around the place, and where in it the place is.
    pub(crate) fn window(&self) -> Option<(Vec<char>, usize)> {
        let text = self.view.text.as_str();
        let index = usize::try_from(self.line).ok()?.checked_sub(1)?;
        let start: usize = text.split_inclusive('\n').take(index).map(str::len).sum();
        let line = text.get(start..)?;
        let column = usize::try_from(self.column).ok()?.saturating_sub(1);
        let at = start + line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
        let mut window: Vec<char> = text.get(..at)?.chars().rev().take(CHARS_BEFORE).collect();
        window.reverse();
        let place = window.len();
        window.extend(text.get(at..)?.chars().take(CHARS_AFTER));
        Some((window, place))
    }
}
