//! The words after `brig call`.
//!
//! Owns telling the function, brig's own options and the function's flags apart, before
//! anything is known of the function. That works because a value that stands by itself
//! never begins with `--`. Never reads a flag of the function.

use crate::cli::Fault;
use crate::cli::args::Global;
use crate::cli::shell_args::CallOptions;
use brig::protocol::escape::escaped;
use clap::{CommandFactory, Parser};
use std::ffi::OsString;

/// brig's options where they stand after the collection.
#[derive(Debug, Parser)]
#[command(disable_help_flag = true, disable_version_flag = true, no_binary_name = true)]
pub(super) struct Own {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(flatten)]
    pub(super) options: CallOptions,
}

/// What was written.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) collection: String,
    pub(super) function: Option<String>,
    /// Flags of the function, and their values.
    pub(super) flags: Vec<String>,
    pub(super) own: Own,
    pub(super) help: bool,
}

/// The long options that are brig's own, and whether they take a value.
#[derive(Debug)]
pub(super) struct Reserved(Vec<(String, bool)>);

impl Reserved {
    pub(super) fn new() -> Self {
        let command = Own::command();
        let own = command.get_arguments().filter_map(|arg| Some((arg.get_long()?.to_owned(), arg.get_action().takes_values())));
        Self(own.chain([("help".to_owned(), false)]).collect())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(own, _)| own == name)
    }

    fn takes_value(&self, name: &str) -> Option<bool> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, takes)| *takes)
    }

    /// All of them, with their dashes.
    pub(super) fn options(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(name, _)| format!("--{name}"))
    }
}

/// What was written, still apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) collection: String,
    pub(super) function: Option<String>,
    pub(super) flags: Vec<String>,
    own: Vec<String>,
    pub(super) help: bool,
}

/// Reads the words.
pub(super) fn read(words: Vec<OsString>) -> Result<Words, Fault> {
    let words = words.into_iter().map(text).collect::<Result<Vec<String>, Fault>>()?;
    let parts = parts(&Reserved::new(), words)?;
    let own = Own::try_parse_from(&parts.own).map_err(|fault| {
        let said = fault.to_string();
        let first = said.lines().next().unwrap_or_default();
        Fault::usage(escaped(first.strip_prefix("error: ").unwrap_or(first), 1000))
    })?;
    Ok(Words { collection: parts.collection, function: parts.function, flags: parts.flags, own, help: parts.help })
}

fn text(word: OsString) -> Result<String, Fault> {
    word.into_string().map_err(|word| Fault::usage(format!("the argument {:?} is not UTF-8", escaped(&word.to_string_lossy(), 200))))
}

/// Tells the words apart.
pub(super) fn parts(reserved: &Reserved, words: Vec<String>) -> Result<Parts, Fault> {
    let mut words = words.into_iter().peekable();
    let Some(collection) = words.next().filter(|word| !word.starts_with('-')) else {
        return Err(Fault::usage("name a collection and a function first; `brig functions` lists them"));
    };
    let mut parts = Parts { collection, ..Parts::default() };
    while let Some(word) = words.next() {
        let Some(long) = word.strip_prefix("--") else {
            parts.bare(word)?;
            continue;
        };
        let name = long.split_once('=').map_or(long, |(name, _)| name);
        match reserved.takes_value(name) {
            Some(_) if name == "help" => parts.help = true,
            Some(true) if !long.contains('=') => {
                let value = words.next_if(|next| !next.starts_with("--")).ok_or_else(|| Fault::usage(format!("--{name} needs a value")))?;
                parts.own.push(format!("{word}={value}"));
            }
            Some(_) => parts.own.push(word),
            None if parts.function.is_none() => {
                return Err(Fault::usage(format!("{}: name the function before its flags", escaped(&word, 200))));
            }
            None if name.is_empty() => return Err(Fault::usage("-- says nothing here: every argument of a function has a flag")),
            None => parts.flags.push(word),
        }
    }
    Ok(parts)
}

impl Parts {
    fn bare(&mut self, word: String) -> Result<(), Fault> {
        let waits = self.flags.last().is_some_and(|last| last.starts_with("--") && !last.contains('='));
        if self.flags.is_empty() && word == "-h" {
            self.help = true;
        } else if waits {
            self.flags.push(word);
        } else if self.function.is_none() && !word.starts_with('-') {
            self.function = Some(word);
        } else {
            return Err(Fault::usage(format!("{} stands after nothing that takes a value", escaped(&word, 200))));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn told(words: &[&str]) -> Result<Words, String> {
        read(words.iter().map(OsString::from).collect()).map_err(|fault| fault.message)
    }

    #[test]
    fn options_of_brig_may_stand_anywhere_after_the_collection() {
        let words =
            told(&["shop", "--raw", "list", "--customer", "x", "--timeout", "5s", "--idempotency-key=k", "--n=-5", "--json", "-"]).unwrap();
        assert_eq!((words.collection.as_str(), words.function.as_deref()), ("shop", Some("list")));
        assert_eq!(words.flags, ["--customer", "x", "--n=-5"]);
        assert!(words.own.options.raw && words.own.options.timeout.is_some());
        assert_eq!((words.own.options.idempotency_key.as_deref(), words.own.options.json.as_deref()), (Some("k"), Some("-")));
    }

    #[test]
    fn help_is_asked_for_before_flags_and_is_a_value_after_them() {
        assert!(told(&["shop", "list", "-h"]).unwrap().help);
        assert!(told(&["shop", "list", "--customer", "x", "--help"]).unwrap().help);
        let words = told(&["shop", "list", "--customer", "-h"]).unwrap();
        assert!(!words.help && words.flags == ["--customer", "-h"]);
    }

    #[test]
    fn what_stands_in_no_place_is_refused_in_one_line() {
        for (words, expected) in [
            (vec!["--customer", "x"], "name a collection"),
            (vec!["shop", "--customer", "x"], "name the function before its flags"),
            (vec!["shop", "list", "more"], "more stands after nothing"),
            (vec!["shop", "list", "--a=1", "more\u{1b}[2J"], "more\\u{1b}[2J stands after nothing"),
            (vec!["shop", "list", "--", "x"], "-- says nothing"),
            (vec!["shop", "list", "--timeout"], "--timeout needs a value"),
            (vec!["shop", "list", "--timeout", "--raw"], "--timeout needs a value"),
            (vec!["shop", "list", "--timeout=5"], "5"),
        ] {
            let said = told(&words).unwrap_err();
            assert!(said.contains(expected) && !said.contains('\n'), "{words:?}: {said}");
        }
    }
}
