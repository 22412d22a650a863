//! Names of collections and functions as they are typed.
//!
//! Owns finding the one that is meant, by its own name or its command spelling. Never
//! picks one of two.

use crate::cli::Fault;
use crate::cli::spelling;
use brig::FunctionListed;
use brig::protocol::escape::escaped;
use brig::protocol::names::kebab;
use std::collections::BTreeSet;

/// The functions of the collection that is meant.
pub(crate) fn of_collection<'l>(listed: &'l [FunctionListed], typed: &str) -> Result<Vec<&'l FunctionListed>, Fault> {
    match collection(listed, typed)? {
        Some(name) => Ok(listed.iter().filter(|function| function.collection == name).collect()),
        None => {
            let all: BTreeSet<String> = listed.iter().map(|function| kebab(&function.collection)).collect();
            let near = spelling::nearest(typed, all.iter().map(String::as_str));
            let hint = match near {
                Some(near) => format!("did you mean {}?", escaped(near, 100)),
                None => "`brig functions` lists what there is for you".to_owned(),
            };
            Err(Fault::usage(format!("there is no configured collection {:?}; {hint}", escaped(typed, 100))))
        }
    }
}

/// The function that is meant, as brigd is asked for it. One that is not listed keeps its
/// spelling: brigd says what is wrong with it, or lets it be called by who may not see it.
pub(crate) fn function(listed: &[FunctionListed], typed_collection: &str, typed: &str) -> Result<String, Fault> {
    let found = collection(listed, typed_collection)?;
    let functions = listed.iter().filter(|function| found == Some(function.collection.as_str())).map(own_name);
    match one(functions, typed, "function")? {
        Some(function) => Ok(format!("{}.{function}", found.unwrap_or_default())),
        None => {
            let is_command = kebab(typed_collection) == typed_collection && kebab(typed) == typed;
            Ok(format!("{typed_collection}{}{typed}", if is_command { ':' } else { '.' }))
        }
    }
}

fn collection<'l>(listed: &'l [FunctionListed], typed: &str) -> Result<Option<&'l str>, Fault> {
    let names: BTreeSet<&str> = listed.iter().map(|function| function.collection.as_str()).collect();
    one(names.into_iter(), typed, "collection")
}

/// The name without its collection.
pub(crate) fn own_name(function: &FunctionListed) -> &str {
    function.function.strip_prefix(&function.collection).and_then(|rest| rest.strip_prefix('.')).unwrap_or(&function.function)
}

fn one<'l>(names: impl Iterator<Item = &'l str>, typed: &str, what: &str) -> Result<Option<&'l str>, Fault> {
    let found: Vec<&str> = names.filter(|name| *name == typed || kebab(name) == typed).collect();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        several => {
            let all: Vec<String> = several.iter().map(|name| format!("{:?}", escaped(name, 100))).collect();
            Err(Fault::usage(format!("{} can mean the {what}s {}; rename one", escaped(typed, 100), all.join(" and "))))
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use brig::Effect;
    use proptest::prelude::*;

    fn listed(names: &[&str]) -> Vec<FunctionListed> {
        let one = |name: &&str| FunctionListed {
            function: (*name).to_owned(),
            collection: name.split('.').next().unwrap_or_default().to_owned(),
            description: String::new(),
            effect: Effect::Read,
        };
        names.iter().map(one).collect()
    }

    #[test]
    fn a_function_is_found_by_its_own_name_and_its_command_spelling() {
        let listed = listed(&["orderStore.listOrders", "orderStore.admin.purgeAll"]);
        for (collection, typed) in [("order-store", "list-orders"), ("orderStore", "listOrders"), ("order-store", "listOrders")] {
            assert_eq!(function(&listed, collection, typed).unwrap(), "orderStore.listOrders");
        }
        assert_eq!(function(&listed, "order-store", "admin.purge-all").unwrap(), "orderStore.admin.purgeAll");
    }

    #[test]
    fn what_is_not_listed_keeps_its_spelling_for_brigd_to_judge() {
        assert_eq!(function(&[], "order-store", "list-orders").unwrap(), "order-store:list-orders");
        assert_eq!(function(&[], "orderStore", "listOrders").unwrap(), "orderStore.listOrders");
    }

    #[test]
    fn a_spelling_of_two_names_is_refused_with_both_and_each_has_its_own() {
        let functions = listed(&["shop.listOrders", "shop.list_orders"]);
        let told = function(&functions, "shop", "list-orders").unwrap_err().message;
        assert!(told.contains("\"listOrders\" and \"list_orders\""), "{told}");
        assert_eq!(function(&functions, "shop", "list_orders").unwrap(), "shop.list_orders");
        let collections = listed(&["orderStore.a", "order_store.a"]);
        let told = function(&collections, "order-store", "a").unwrap_err().message;
        assert!(told.contains("\"orderStore\" and \"order_store\""), "{told}");
    }

    #[test]
    fn a_collection_that_is_not_there_is_told_with_the_nearest() {
        let told = of_collection(&listed(&["orderStore.a"]), "order-stor").unwrap_err().message;
        assert!(told.contains("order-store?"), "{told}");
    }

    proptest! {
        #[test]
        fn every_name_is_found_by_its_command_spelling(collection in "[a-zA-Z_$][a-zA-Z0-9_$]{0,8}", name in "[a-zA-Z_$][a-zA-Z0-9_$]{0,8}(\\.[a-z][a-zA-Z0-9]{0,4})?") {
            prop_assume!(!kebab(&collection).is_empty() && !kebab(&name).is_empty());
            let full = format!("{collection}.{name}");
            let found = function(&listed(&[&full]), &kebab(&collection), &kebab(&name));
            prop_assert_eq!(found.unwrap(), full);
        }
    }
}
