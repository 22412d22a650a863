//! What there is to call, and the tools that say so.
//!
//! Owns the choice between a text with every declaration and one that only names what
//! there is, and searching. Never knows how a program is run.

use crate::cli::Fault;
use brig::protocol::names::Pattern;
use brig::{Client, Error, HostFunctions, Mode, Operation, Permissions, Rule, Scope, ScopeRules};
use std::collections::BTreeMap;

/// Longest one-line description of a function, in bytes.
const LINE_BYTES: usize = 100;
/// Most functions that a search finds.
const FOUND: usize = 20;

/// Where functions come from, and which of them are offered.
pub(super) struct Sources {
    declared: HostFunctions,
    allow: Vec<Pattern>,
    deny: Vec<Pattern>,
    full_bytes: usize,
}

/// One function in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// `collection.function`.
    pub(super) name: String,
    description: String,
    configured: bool,
}

/// The functions of one moment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Catalogue {
    pub(super) entries: Vec<Entry>,
    /// The text of the tool that runs programs.
    pub(super) text: String,
    /// Whether that text declares every function.
    pub(super) full: bool,
    /// How many are configured, offered or not.
    configured: usize,
}

impl Sources {
    /// `declared` are the functions that this process answers.
    pub(super) fn new(declared: HostFunctions, allow: &[String], deny: &[String], full_bytes: usize) -> Result<Self, Fault> {
        let patterns = |all: &[String]| {
            all.iter().map(|one| Pattern::parse(one)).collect::<Result<Vec<_>, _>>().map_err(|fault| Fault::usage(fault.to_string()))
        };
        let mut sources = Self { declared: HostFunctions::new(), allow: patterns(allow)?, deny: patterns(deny)?, full_bytes };
        sources.declared = declared.only(|collection, function| sources.offers(collection, function));
        Ok(sources)
    }

    fn offers(&self, collection: &str, function: &str) -> bool {
        let any = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(collection, function));
        (self.allow.is_empty() || any(&self.allow)) && !any(&self.deny)
    }

    /// What this process answers.
    pub(super) const fn declared(&self) -> &HostFunctions {
        &self.declared
    }

    /// Reads what there is now.
    pub(super) async fn read(&self, client: &Client) -> Result<Catalogue, Error> {
        let listed = client.configured_functions(None).await?;
        let count = listed.len();
        let configured = listed.into_iter().map(|one| Entry { name: one.function, description: one.description, configured: true });
        let declared =
            self.declared.described().map(|(name, description, _)| Entry { name, description: description.to_owned(), configured: false });
        let mut entries: Vec<Entry> = configured.chain(declared).filter(|entry| self.offers_name(&entry.name)).collect();
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        let types = client.types(Some(configured_names(&entries)), &self.declared).await?;
        if types.tool.description.len() <= self.full_bytes {
            return Ok(Catalogue { entries, text: types.tool.description, full: true, configured: count });
        }
        let how = client.types(Some(Vec::new()), &HostFunctions::new()).await?.tool.description;
        let text = short_text(&how, &entries, self.full_bytes);
        Ok(Catalogue { entries, text, full: false, configured: count })
    }

    fn offers_name(&self, name: &str) -> bool {
        name.split_once('.').is_some_and(|(collection, function)| self.offers(collection, function))
    }

    /// What a program may call, where configured functions have to be kept from it: those
    /// of this process that are not offered are not declared in the first place.
    pub(super) fn permissions(&self, catalogue: &Catalogue) -> Option<Permissions<'static>> {
        let narrows = !(self.allow.is_empty() && self.deny.is_empty());
        if !narrows || catalogue.configured == 0 {
            return None;
        }
        let names: Vec<String> = catalogue.entries.iter().map(|entry| entry.name.clone()).collect();
        let scope = match names.is_empty() {
            true => Scope::All(Mode::Deny),
            false => {
                let operations = vec![Operation::Invoke, Operation::List];
                let rule = Rule { mode: Mode::Allow, operations, patterns: names, when: None, why: None };
                Scope::Rules(ScopeRules { default: Mode::Deny, rules: vec![rule] })
            }
        };
        Some(Permissions { host_function: Some(scope) })
    }

    /// Declarations of some functions.
    pub(super) async fn describe(&self, client: &Client, entries: &[&Entry]) -> Result<String, Error> {
        let wanted =
            |collection: &str, function: &str| entries.iter().any(|entry| entry.name.split_once('.') == Some((collection, function)));
        let configured = entries.iter().filter(|entry| entry.configured).map(|entry| entry.name.clone()).collect();
        Ok(client.types(Some(configured), &self.declared.only(wanted)).await?.declarations)
    }
}

fn configured_names(entries: &[Entry]) -> Vec<String> {
    entries.iter().filter(|entry| entry.configured).map(|entry| entry.name.clone()).collect()
}

/// How to write a program, and what there is by name: with a line on each function
/// where that fits, by name only where it does not, else by collection.
fn short_text(how: &str, entries: &[Entry], room: usize) -> String {
    let how = how.split("\n```ts").next().unwrap_or(how).replace("declared below", "that are named below");
    let rule = "\nThe functions are too many to be declared here. Before you write a program, find them with the tool `search` \
                (words for what you need) and read their types with the tool `describe` (names).\n\n";
    let lines = |entry: &Entry| {
        if entry.description.is_empty() { entry.name.clone() } else { format!("{}: {}", entry.name, one_line(&entry.description)) }
    };
    let with_lines: Vec<String> = entries.iter().map(lines).collect();
    let names: Vec<String> =
        by_collection(entries).map(|(collection, functions)| format!("{collection}: {}", functions.join(", "))).collect();
    let counts: Vec<String> =
        by_collection(entries).map(|(collection, functions)| format!("{collection}: {} functions", functions.len())).collect();
    let room = room.saturating_sub(how.len() + rule.len());
    let fits = |list: &[String]| list.iter().map(|line| line.len() + 1).sum::<usize>() <= room;
    let list = [with_lines, names].into_iter().find(|list| fits(list)).unwrap_or(counts);
    format!("{how}{rule}{}\n", list.join("\n"))
}

fn by_collection(entries: &[Entry]) -> impl Iterator<Item = (&str, Vec<&str>)> {
    let mut collections: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (collection, function) in entries.iter().filter_map(|entry| entry.name.split_once('.')) {
        collections.entry(collection).or_default().push(function);
    }
    collections.into_iter()
}

/// The first sentence of a description, on one line and cut.
fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = line.split_inclusive(". ").next().unwrap_or(&line).trim_end();
    brig::protocol::escape::escaped(sentence, LINE_BYTES)
}

impl Catalogue {
    /// The functions that fit best, best first, each on a line.
    pub(super) fn search(&self, query: &str) -> Vec<String> {
        let words: Vec<String> = words(query).collect();
        let mut found: Vec<(usize, &Entry)> =
            self.entries.iter().map(|entry| (score(entry, &words), entry)).filter(|(score, _)| *score > 0).collect();
        found.sort_by(|(one, left), (other, right)| other.cmp(one).then_with(|| left.name.cmp(&right.name)));
        found.into_iter().take(FOUND).map(|(_, entry)| format!("{}: {}", entry.name, one_line(&entry.description))).collect()
    }

    /// The functions with these names; `orders.*` and other patterns stand for several.
    ///
    /// # Errors
    /// A sentence that names what is not there.
    pub(super) fn named(&self, wanted: &[String]) -> Result<Vec<&Entry>, String> {
        let mut found: Vec<&Entry> = Vec::new();
        for name in wanted {
            let pattern = Pattern::parse(name).map_err(|fault| format!("{name:?}: {fault}"))?;
            let matching =
                |entry: &&Entry| entry.name.split_once('.').is_some_and(|(collection, function)| pattern.matches(collection, function));
            let before = found.len();
            let more: Vec<&Entry> = self.entries.iter().filter(matching).filter(|entry| !found.contains(entry)).collect();
            found.extend(more);
            if found.len() == before && !found.iter().any(matching) {
                let near = self.search(name);
                let near = if near.is_empty() { String::new() } else { format!("; near it are\n{}", near.join("\n")) };
                return Err(format!("there is no function {name:?}{near}"));
            }
        }
        Ok(found)
    }
}

/// The words of a text: `listOrders` is `list` and `orders`.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let mut spaced = String::with_capacity(text.len() + 8);
    let mut before = ' ';
    for character in text.chars() {
        if character.is_uppercase() && before.is_lowercase() {
            spaced.push(' ');
        }
        spaced.push(character);
        before = character;
    }
    let all: Vec<String> = spaced.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    all.into_iter()
}

/// How well a function fits: words of its name count more than those of its text.
fn score(entry: &Entry, wanted: &[String]) -> usize {
    let name: Vec<String> = words(&entry.name).collect();
    let text: Vec<String> = words(&entry.description).collect();
    // `order` and `orders` mean the same, and so do longer forms of one word.
    let alike =
        |one: &str, other: &str| one == other || (one.len().min(other.len()) >= 4 && (one.starts_with(other) || other.starts_with(one)));
    let points = |word: &String| {
        if name.contains(word) {
            6
        } else if name.iter().any(|other| alike(word, other)) {
            4
        } else if text.iter().any(|other| alike(word, other)) {
            2
        } else {
            0
        }
    };
    wanted.iter().map(points).sum()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn entry(name: &str, description: &str) -> Entry {
        Entry { name: name.to_owned(), description: description.to_owned(), configured: false }
    }

    fn catalogue() -> Catalogue {
        let entries = vec![
            entry("billing.createRefund", "Give money back for an order."),
            entry("orders.list", "List the orders of a customer. Newest first."),
            entry("orders.listItems", "What an order holds."),
        ];
        Catalogue { entries, text: String::new(), full: false, configured: 0 }
    }

    #[test]
    fn words_of_the_name_count_more_than_those_of_the_text() {
        assert_eq!(catalogue().search("refund an order").first().unwrap(), "billing.createRefund: Give money back for an order.");
        assert_eq!(catalogue().search("list").len(), 2);
        assert_eq!(catalogue().search("customers"), ["orders.list: List the orders of a customer."]);
        assert!(catalogue().search("weather").is_empty());
    }

    #[test]
    fn a_name_that_is_not_there_is_told_with_what_is_near() {
        let catalogue = catalogue();
        assert_eq!(catalogue.named(&["orders.*".to_owned()]).unwrap().len(), 2);
        let told = catalogue.named(&["orders.refund".to_owned()]).unwrap_err();
        assert!(told.contains("\"orders.refund\"") && told.contains("billing.createRefund"), "{told}");
        assert!(catalogue.named(&["orders".to_owned()]).unwrap_err().contains("orders.*"));
    }

    #[test]
    fn a_catalogue_is_named_as_fully_as_there_is_room() {
        let entries: Vec<Entry> = (0..500).map(|number| entry(&format!("shop{}.function{number}", number % 5), &"x".repeat(200))).collect();
        let how = "How, with the functions declared below.\n\n```ts\n…";
        let lines = short_text(how, &entries, 100_000);
        assert!(lines.contains("shop0.function0: xxx") && !lines.contains("```") && lines.contains("`search`"), "{lines}");
        let names = short_text(how, &entries, 12_000);
        assert!(names.contains("shop0: function0, ") && names.len() <= 12_000, "{names}");
        let counts = short_text(how, &entries, 1_000);
        assert!(counts.contains("shop0: 100 functions") && counts.len() <= 1_000, "{counts}");
    }
}
