//! What a client declares: how much of it, and under which names.
//!
//! Owns its bounds, and that no two names meet. Never looks into a schema.

use super::*;

/// Most examples of one function.
const EXAMPLES: usize = 20;

/// Longest description of a function or an example, in bytes.
const DESCRIPTION_BYTES: usize = 16 * 1024;

/// Every declared function with its collection.
pub(super) fn pairs<'d, 'a>(declared: &'d HostFunctions<'a>) -> impl Iterator<Item = (&'d str, &'d str, &'d FunctionDeclaration<'a>)> {
    declared.0.iter().flat_map(|(collection, functions)| {
        functions.0.iter().map(move |(name, declaration)| (collection.as_str(), name.as_str(), declaration))
    })
}

/// Checks how many there are and what they are called.
///
/// # Errors
/// `invalid_function` with the place.
pub(crate) fn check_names(declared: &HostFunctions<'_>) -> Result<(), ErrorData> {
    let count = pairs(declared).count();
    if count > REGISTERED_FUNCTIONS || declared.0.len() > REGISTERED_FUNCTIONS {
        return Err(invalid(format!("hostFunctions declares {count} functions; at most {REGISTERED_FUNCTIONS} are taken")));
    }
    distinct(declared.0.iter().map(|(name, _)| name.as_str()), "hostFunctions", names::check_collection)?;
    for (collection, functions) in &declared.0 {
        distinct(functions.0.iter().map(|(name, _)| name.as_str()), &format!("hostFunctions.{collection}"), names::check_function)?;
    }
    Ok(())
}

/// A declared collection never stands in for, or mixes with, one of the operator.
pub(super) fn check_beside(declared: &HostFunctions<'_>, configured: &[Arc<Configured>]) -> Result<(), ErrorData> {
    let count = pairs(declared).count() + configured.len();
    if count > REGISTERED_FUNCTIONS {
        return Err(invalid(format!(
            "there are {count} functions, {} of them configured; at most {REGISTERED_FUNCTIONS} are taken: name those that are wanted in \
             params.collections",
            configured.len()
        )));
    }
    let commands: std::collections::HashSet<String> = configured.iter().map(|function| names::kebab(&function.collection)).collect();
    match declared.0.iter().find(|(name, _)| commands.contains(&names::kebab(name))) {
        Some((name, _)) => {
            Err(invalid(format!("hostFunctions.{name}: the operator has configured a collection of this name; rename yours")))
        }
        None => Ok(()),
    }
}

/// Names that are well formed and do not meet in the command spelling.
fn distinct<'n>(all: impl Iterator<Item = &'n str>, place: &str, check: fn(&str) -> Result<(), NameFault>) -> Result<(), ErrorData> {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for name in all {
        check(name).map_err(|fault| invalid(format!("{place}: {:?} can not be a name: {fault}", escaped(name, 100))))?;
        let command = names::kebab(name);
        if let Some(other) = seen.insert(command.clone(), name) {
            return Err(invalid(format!("{place}: {other:?} and {name:?} are both {command:?} as commands; rename one")));
        }
    }
    Ok(())
}

pub(super) fn check_texts(full_name: &str, declaration: &FunctionDeclaration<'_>) -> Result<(), ErrorData> {
    let examples = declaration.examples.len();
    if examples > EXAMPLES {
        return Err(invalid(format!("hostFunctions.{full_name}.examples has {examples} examples; at most {EXAMPLES} are taken")));
    }
    let texts = declaration.description.iter().chain(declaration.examples.iter().map(|example| &example.description));
    match texts.map(String::len).max().filter(|length| *length > DESCRIPTION_BYTES) {
        Some(length) => {
            Err(invalid(format!("hostFunctions.{full_name} has a description of {length} bytes; at most {DESCRIPTION_BYTES} are taken")))
        }
        None => Ok(()),
    }
}

pub(super) fn invalid(message: String) -> ErrorData {
    ErrorData::new(RequestCode::InvalidFunction, message)
}
