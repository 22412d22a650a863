//! The names that can be completed.
//!
//! Owns the functions of `--functions`, the names of the realm and the dot commands.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most names that are learned from a realm, which a guest fills at will.
const LEARNED: usize = 5_000;
const COMMANDS: &[&str] = &[".clear", ".exit", ".help", ".inputs"];

/// Shared by the loop, which learns, and the editor, which asks.
#[derive(Clone, Debug)]
pub(super) struct Names {
    functions: Arc<BTreeSet<String>>,
    realm: Arc<Mutex<BTreeSet<String>>>,
}

impl Names {
    /// `functions` are `collection.function`.
    pub(super) fn new(functions: impl Iterator<Item = String>) -> Self {
        let mut all = BTreeSet::from(["inputs".to_owned()]);
        for name in functions {
            if let Some((collection, _)) = name.split_once('.') {
                all.insert(collection.to_owned());
            }
            all.insert(name);
        }
        Self { functions: Arc::new(all), realm: Arc::default() }
    }

    /// What the realm has now. Names that are no identifiers could do harm to a terminal.
    pub(super) fn learn(&self, names: Vec<String>) {
        let plain = |name: &String| name.len() <= 64 && name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_' || one == '$');
        *self.lock() = names.into_iter().filter(plain).take(LEARNED).collect();
    }

    /// The realm is gone.
    pub(super) fn forget(&self) {
        self.lock().clear();
    }

    /// Where in `line` the word before `position` begins, and what it could become.
    pub(super) fn complete(&self, line: &str, position: usize) -> (usize, Vec<String>) {
        let before = line.get(..position).unwrap_or(line);
        if before.starts_with('.') {
            return (0, COMMANDS.iter().filter(|name| name.starts_with(before)).map(|name| (*name).to_owned()).collect());
        }
        let part_of_word = |one: char| one.is_ascii_alphanumeric() || one == '_' || one == '$' || one == '.';
        let start = before
            .rfind(|one| !part_of_word(one))
            .map_or(0, |at| at + before.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8));
        let word = before.get(start..).unwrap_or_default();
        if word.is_empty() {
            return (start, Vec::new());
        }
        let realm = self.lock();
        let all: BTreeSet<&String> = self.functions.iter().chain(realm.iter()).filter(|name| name.starts_with(word)).collect();
        // A function comes up once its collection is there.
        let all = all.into_iter().filter(|name| word.contains('.') || !name.contains('.')).cloned().collect();
        (start, all)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.realm.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_functions_globals_and_commands_are_completed() {
        let names = Names::new(["orders.list".to_owned(), "orders.refund".to_owned()].into_iter());
        names.learn(vec!["Object".to_owned(), "order".to_owned(), "bad\u{1b}".to_owned()]);
        assert_eq!(names.complete("1 + ord", 7), (4, vec!["order".to_owned(), "orders".to_owned()]));
        assert_eq!(names.complete("orders.", 7), (0, vec!["orders.list".to_owned(), "orders.refund".to_owned()]));
        assert_eq!(names.complete("é(Obj", 6), (3, vec!["Object".to_owned()]));
        assert_eq!(names.complete(".he", 3), (0, vec![".help".to_owned()]));
        assert_eq!(names.complete("", 0), (0, Vec::new()));
        names.forget();
        assert!(names.complete("Obj", 3).1.is_empty());
    }
}
