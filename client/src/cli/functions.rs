//! `brig functions`: what is configured for this principal.
//!
//! Owns the list as people and scripts read it. Never shows a description as it is.

use super::args::Global;
use super::call::names;
use super::exit::Exit;
use super::shell_args::FunctionsArgs;
use super::{Fault, render, session, terminal};
use brig::protocol::escape::escaped;
use brig::protocol::names::kebab;
use brig::{Effect, FunctionListed};
use comfy_table::Table;
use serde_json::json;

/// Longest description in the table, in bytes.
const TEXT_BYTES: usize = 100;

/// Lists them.
pub(crate) async fn functions(global: &Global, args: FunctionsArgs) -> Result<Exit, Fault> {
    let client = session::service(global).await?;
    let listed = client.configured_functions(None).await;
    client.close().await;
    let listed = listed?;
    let wanted: Vec<&FunctionListed> = match &args.collection {
        Some(collection) => names::of_collection(&listed, collection)?,
        None => listed.iter().collect(),
    };
    if args.json {
        terminal::out(&render::json_line(&json!({ "functions": wanted })));
    } else if wanted.is_empty() {
        terminal::err("no functions are configured for you\n");
    } else {
        terminal::out(&table(&wanted));
    }
    Ok(Exit::Succeeded)
}

fn table(functions: &[&FunctionListed]) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(["collection", "function", "effect", "description"]);
    for function in functions {
        let description = function.description.split_whitespace().collect::<Vec<_>>().join(" ");
        table.add_row([
            escaped(&kebab(&function.collection), TEXT_BYTES),
            escaped(&kebab(names::own_name(function)), TEXT_BYTES),
            match function.effect {
                Effect::Read => "read".to_owned(),
                Effect::Write => "write".to_owned(),
            },
            escaped(&description, TEXT_BYTES),
        ]);
    }
    table.lines().map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_commands_and_a_description_is_one_harmless_line() {
        let function = FunctionListed {
            function: "orderStore.listOrders".to_owned(),
            collection: "orderStore".to_owned(),
            description: "Lists\nthem\u{1b}[2J \u{202e}".to_owned() + &"x".repeat(10_000),
            effect: Effect::Read,
        };
        let text = table(&[&function]);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("order-store") && text.contains("list-orders") && text.contains("Lists them\\u{1b}[2J \\u{202e}x"), "{text}");
        assert!(text.len() < 1000);
    }
}
