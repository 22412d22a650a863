//! Owns how a place in a value is told: `$.orders[0]["odd key"]`. It never reads the value.

use rquickjs::{Atom, Value};

use crate::engine::raw;

/// Where the walk is, as a list on the stack: nothing is allocated until it is told.
pub(super) enum Path<'a, 'js> {
    Root(&'static str),
    Key(&'a Path<'a, 'js>, &'a Atom<'js>),
    Text(&'a Path<'a, 'js>, &'a Value<'js>),
    Index(&'a Path<'a, 'js>, usize),
}

impl Path<'_, '_> {
    pub(super) fn told(&self) -> String {
        let mut text = String::new();
        self.push(&mut text);
        text
    }

    fn push(&self, text: &mut String) {
        match self {
            Self::Root(root) => text.push_str(root),
            Self::Index(parent, index) => {
                parent.push(text);
                text.push_str(&format!("[{index}]"));
            }
            Self::Key(parent, key) => {
                parent.push(text);
                push_key(text, &raw::key_text(key).unwrap_or_default());
            }
            Self::Text(parent, key) => {
                parent.push(text);
                push_key(text, &raw::text_of(key).unwrap_or_default());
            }
        }
    }
}

/// Longest key that a path spells out, in characters.
const KEY_CHARS: usize = 60;

pub(super) fn push_key(text: &mut String, key: &str) {
    let plain = !key.is_empty()
        && !key.starts_with(|first: char| first.is_ascii_digit())
        && key.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$');
    let shown: String = key.chars().take(KEY_CHARS).collect();
    let dots = if shown.len() < key.len() { "…" } else { "" };
    if plain {
        text.push('.');
        text.push_str(&shown);
        text.push_str(dots);
    } else {
        text.push_str(&format!("[{:?}]", format!("{shown}{dots}")));
    }
}
