//! `brig __complete`: what could follow, for the completion of a shell.
//!
//! Owns the suggestions, and the time they may take. Never waits for long, never says an
//! error, and never suggests what a shell would take for anything but a plain word.

use super::names;
use super::shape::{Kind, Shape, choice_text};
use super::words::{self, Parts, Reserved};
use crate::cli::args::Global;
use crate::cli::exit::Exit;
use crate::cli::{session, terminal};
use brig::Client;
use brig::protocol::names::kebab;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::time::Duration;

/// How long all of it may take: a person waits with a finger on the key.
const TIME: Duration = Duration::from_millis(700);

/// The word that asks; a hidden command, which no help and no script of a shell lists.
const COMMAND: &str = "__complete";

/// The words to go on from, where a shell asks: `brig __complete -- call order-store l`.
pub(crate) fn asked_by_a_shell(arguments: &[OsString]) -> Option<Vec<OsString>> {
    match arguments {
        [_, command, dashes, words @ ..] if command == COMMAND && dashes == "--" => Some(words.to_vec()),
        _ => None,
    }
}

/// Prints what begins as the last word does, a line each; nothing when it can not be found
/// out in time.
pub(crate) async fn suggest(words: Vec<OsString>) -> Exit {
    let words: Option<Vec<String>> = words.into_iter().map(|word| word.into_string().ok()).collect();
    if let Some(words) = words
        && let Ok(Some(found)) = tokio::time::timeout(TIME, candidates(words)).await
    {
        terminal::out(&found.into_iter().map(|one| one + "\n").collect::<String>());
    }
    Exit::Succeeded
}

async fn candidates(mut words: Vec<String>) -> Option<BTreeSet<String>> {
    let current = words.pop()?;
    let command = if words.is_empty() { return None } else { words.remove(0) };
    let client = session::service(&Global::default()).await.ok()?;
    let all = match (command.as_str(), words.is_empty()) {
        ("functions" | "call", true) => collections(&client).await?,
        ("call", false) => {
            let reserved = Reserved::new();
            let parts = words::parts(&reserved, words).ok()?;
            of_call(&client, &parts, &reserved, &current).await?
        }
        _ => return None,
    };
    Some(all.into_iter().filter(|one| one.starts_with(&current) && is_plain(one)).collect())
}

/// What every shell takes for one word of nothing but itself.
fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:@%+,/".contains(c))
}

async fn collections(client: &Client) -> Option<Vec<String>> {
    Some(client.configured_functions(None).await.ok()?.iter().map(|function| kebab(&function.collection)).collect())
}

async fn of_call(client: &Client, parts: &Parts, reserved: &Reserved, current: &str) -> Option<Vec<String>> {
    let listed = client.configured_functions(None).await.ok()?;
    let Some(function) = &parts.function else {
        let functions = names::of_collection(&listed, &parts.collection).ok()?;
        let names = functions.into_iter().map(|function| kebab(names::own_name(function)));
        return Some(names.chain(reserved.options().filter(|_| current.starts_with('-'))).collect());
    };
    let name = names::function(&listed, &parts.collection, function).ok()?;
    let about = client.describe_function(&name).await.ok()?;
    let shape = Shape::read(&serde_json::from_str(about.input_schema.get()).ok()?);
    Some(of_function(&shape, &parts.flags, reserved))
}

/// The values of a flag that waits for one, else flags.
fn of_function(shape: &Shape, flags: &[String], reserved: &Reserved) -> Vec<String> {
    let waiting = flags.last().and_then(|last| last.strip_prefix("--")).filter(|last| !last.contains('='));
    let meanings = waiting.map(|flag| shape.meanings(flag)).unwrap_or_default();
    if let [(found, false)] = meanings.as_slice()
        && found.field.kind != Kind::Boolean
    {
        let kind = match &found.field.kind {
            Kind::List(element) => element,
            other => other,
        };
        return match kind {
            Kind::Choice(choices) => choices.iter().map(choice_text).collect(),
            Kind::Boolean => vec!["true".to_owned(), "false".to_owned()],
            _ => Vec::new(),
        };
    }
    let mut all: Vec<String> = reserved.options().collect();
    for found in shape.all() {
        let Some(flag) = shape.flag(&found.path, &|name| reserved.has(name)) else { continue };
        if found.field.kind.has_no() {
            all.push(format!("--no-{flag}"));
        }
        all.push(format!("--{flag}"));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_flag_that_waits_for_a_choice_has_its_choices_and_any_other_place_has_flags() {
        let shape = Shape::read(&json!({"properties": {"state": {"enum": ["open", "closed"]}, "dryRun": {"type": "boolean"}}}));
        let of = |flags: &[&str]| of_function(&shape, &flags.iter().map(|flag| (*flag).to_owned()).collect::<Vec<_>>(), &Reserved::new());
        assert_eq!(of(&["--state"]), ["open", "closed"]);
        for flags in [vec![], vec!["--dry-run"], vec!["--state", "open"], vec!["--state=open"]] {
            let all = of(&flags);
            for expected in ["--state", "--dry-run", "--no-dry-run", "--json", "--help"] {
                assert!(all.iter().any(|one| one == expected), "{flags:?}: {all:?}");
            }
        }
    }

    #[test]
    fn what_a_shell_could_run_or_expand_is_never_suggested() {
        for word in ["$(id)", "a b", "`id`", "a;b", "$HOME", "a\nb", "*", "~", "\u{1b}[2J", "", "a'b", "#x", "a>b", "a&b", "\\"] {
            assert!(!is_plain(word), "{word:?}");
        }
        assert!(is_plain("--order-store.list_all") && is_plain("2026-11-29"));
    }
}
