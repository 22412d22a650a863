//! Owns where an error is told to be when the engine says nothing of that, or names what it
//! looked at before: then the program's tree is asked.

use std::cell::{Cell, RefCell};

use super::{
    Known,
    frames::{self, Frame, Place},
};
use crate::engine::alloc;
use crate::source::places::{Kind, Sought, find, tree_bytes};

/// Bytes that are looked into for one evaluation, of which many errors may be told: the
/// largest program eight times, each in 0.1 s (at worst 0.25 s), a small one for as many
/// errors as are told.
const MOST: usize = 8 << 20;
/// What a worker may have beside its heap (64 MiB where a cgroup counts) and does not need
/// itself, bytes.
const SPARE_BYTES: usize = 32 << 20;

thread_local! {
    /// Bytes that may still be looked into.
    static LEFT: Cell<usize> = const { Cell::new(MOST) };
}

/// Another evaluation begins.
pub(super) fn begin() {
    LEFT.set(MOST);
}

/// Whether a program may be looked into once more: its tree must not cost the worker its
/// life, where there is an error to tell.
fn may_look_into(text: &str) -> bool {
    let Some(left) = LEFT.get().checked_sub(text.len()) else { return false };
    let memory = alloc::usage();
    let room = memory.limit.saturating_sub(memory.peak).saturating_add(SPARE_BYTES);
    let fits = tree_bytes(text) <= room;
    if fits {
        LEFT.set(left);
    }
    fits
}

/// The place of an error that the engine made, better than the one it told.
pub(super) fn better(name: &str, message: &str, first: Option<&Frame>, told: Option<&Place>) -> Option<Place> {
    match told {
        None => placeless(name, message),
        // What a function of the language looks into is given to it where the program calls it.
        Some(told) if name == "TypeError" && first.and_then(Frame::native_name).is_none() && !is_made_at(told, name) => {
            let place = (told.line, told.column);
            let sought = match message {
                "Cannot convert undefined or null to object" => Sought::Pattern(Kind::Object, place),
                "value is not iterable" => Sought::Pattern(Kind::List, place),
                _ => match property(message)? {
                    "Symbol.iterator" => Sought::Pattern(Kind::List, place),
                    property => Sought::Member(property, place),
                },
            };
            at(told.clone(), sought)
        }
        Some(_) => None,
    }
}

/// Whether a program makes an error itself there, whose message may be any.
fn is_made_at(place: &Place, name: &str) -> bool {
    place.window().is_some_and(|(text, at)| text.iter().skip(at).copied().take(name.len()).eq(name.chars()))
}

/// What could not be read or written, of undefined or null.
fn property(message: &str) -> Option<&str> {
    let rest = message.strip_prefix("cannot read property '").or_else(|| message.strip_prefix("cannot set property '"))?;
    rest.rsplit_once("' of ").map(|(property, _)| property)
}

fn placeless(name: &str, message: &str) -> Option<Place> {
    let quoted = |prefix: &str| message.strip_prefix(prefix)?.strip_suffix('\'');
    let sought = match name {
        "ReferenceError" => Sought::Import(quoted("could not load module '")?),
        "SyntaxError" => Sought::PrivateName(quoted("undefined private field '#")?),
        _ => return None,
    };
    at(start()?, sought)
}

/// The literal of a regular expression that the engine did not take, with how it is written.
pub(super) fn of_regexp(is_bad: &dyn Fn(&str, &str) -> bool) -> Option<Place> {
    at(start()?, Sought::RegExp(is_bad))
}

/// What is said of a member of a collection that the program takes and that is not there.
pub(super) fn lacking(text: &str, known: &Known<'_>) -> Option<String> {
    if !may_look_into(text) {
        return None;
    }
    let said = RefCell::new(None);
    let note = |collection: &str, name: &str| {
        let lacks = known.has_not(collection, name);
        if lacks {
            said.replace(Some(known.lacks(collection, name)));
        }
        lacks
    };
    find(text, Sought::Taken(&note))?;
    said.into_inner()
}

fn start() -> Option<Place> {
    Some(Place { view: frames::running()?, line: 1, column: 1 })
}

fn at(mut place: Place, sought: Sought<'_>) -> Option<Place> {
    if !may_look_into(&place.view.text) {
        return None;
    }
    (place.line, place.column) = find(&place.view.text, sought)?;
    Some(place)
}
