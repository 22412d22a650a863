//! `functions.types`: declarations for a model and for a type checker.
//!
//! Owns its params. Never writes a declaration: [`crate::host::types`] does.

use super::params;
use crate::admin::Revocations;
use crate::host::configured::Catalogue;
use crate::host::permission::ScopeSet;
use crate::host::table::check_names;
use crate::host::types::{self, Described, tool};
use brig_protocol::client::{FunctionsTypesParams, FunctionsTypesResult};
use brig_protocol::codes::RequestCode;
use brig_protocol::names::Pattern;
use brig_protocol::rpc::ErrorData;
use std::collections::HashSet;

/// Most patterns with stars: each is held against every configured function.
const GLOBS: usize = 64;

/// Answers `functions.types` over the configured functions that this principal may list,
/// without those that are revoked, and the declared ones.
///
/// # Errors
/// `invalid_params`, `invalid_function` or `invalid_schema`, naming the member.
pub(super) fn answer(
    catalogue: &Catalogue,
    scopes: &ScopeSet,
    revoked: &Revocations,
    text: &str,
) -> Result<FunctionsTypesResult, ErrorData> {
    let params: FunctionsTypesParams<'_> = params::parse(text)?;
    let wanted = params.functions.as_deref().map(Wanted::of).transpose()?;
    let declared = params.host_functions.unwrap_or_default();
    check_names(&declared)?;
    let mut functions = Vec::new();
    for function in catalogue.visible(scopes) {
        if let Some((collection, _)) = declared.0.iter().find(|(collection, _)| *collection == function.collection) {
            let sentence = format!("params.hostFunctions.{collection}: a collection of this name is configured; rename this one");
            return Err(ErrorData::new(RequestCode::InvalidFunction, sentence));
        }
        let (collection, name) = (&function.collection, &function.name);
        if wanted.as_ref().is_none_or(|wanted| wanted.has(collection, name)) && !revoked.names_function(collection, name) {
            functions.push(Described::configured(function));
        }
    }
    functions.sort_by(|one, other| (one.collection(), one.name()).cmp(&(other.collection(), other.name())));
    for (collection, entries) in &declared.0 {
        for (name, declaration) in &entries.0 {
            let place = |why| format!("params.hostFunctions.{collection}.{name}.{why}");
            let described = Described::of(collection, name, declaration);
            functions.push(described.map_err(|why| ErrorData::new(RequestCode::InvalidSchema, place(why)))?);
        }
    }
    let too_long = |fault| {
        let sentence = format!("{fault}: ask for fewer functions at once in params.functions, or declare fewer");
        ErrorData::new(RequestCode::InvalidSchema, sentence)
    };
    let declarations = types::declarations(&functions).map_err(too_long)?;
    Ok(FunctionsTypesResult { tool: tool::text(&declarations), declarations })
}

/// Which configured functions are asked for.
struct Wanted {
    names: HashSet<String>,
    globs: Vec<Pattern>,
}

impl Wanted {
    fn of(patterns: &[String]) -> Result<Self, ErrorData> {
        let invalid = |message: String| ErrorData::new(RequestCode::InvalidParams, message);
        let mut wanted = Self { names: HashSet::new(), globs: Vec::new() };
        for (index, text) in patterns.iter().enumerate() {
            let pattern = Pattern::parse(text).map_err(|fault| invalid(format!("params.functions[{index}]: {fault}")))?;
            // A name is looked up; what has to be matched is bounded.
            if text.contains(['*', ':']) {
                wanted.globs.push(pattern);
            } else {
                wanted.names.insert(text.clone());
            }
        }
        if wanted.globs.len() > GLOBS {
            return Err(invalid(format!(
                "params.functions has {} patterns that are no plain names; at most {GLOBS} are taken",
                wanted.globs.len()
            )));
        }
        Ok(wanted)
    }

    fn has(&self, collection: &str, name: &str) -> bool {
        self.names.contains(&format!("{collection}.{name}")) || self.globs.iter().any(|pattern| pattern.matches(collection, name))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn answer(text: &str) -> Result<FunctionsTypesResult, ErrorData> {
        super::answer(&Catalogue::default(), &ScopeSet::default(), &Revocations::open(None).unwrap(), text)
    }

    #[test]
    fn declared_functions_are_declared_and_the_tool_holds_them() {
        let result = answer(r#"{"hostFunctions":{"orders":{"list":{"description":"Lists."}}}}"#).unwrap();
        assert!(result.declarations.contains("declare const orders: {\n  /** Lists. */\n  list("), "{}", result.declarations);
        assert!(result.tool.name == "execute" && result.tool.description.contains(&result.declarations));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let told = |text: &str| answer(text).unwrap_err().message;
        assert!(told(r#"{"functions":["orders"]}"#).contains("params.functions[0]"));
        assert!(
            told(r#"{"hostFunctions":{"orders":{"list":{"inputSchema":[]}}}}"#).contains("params.hostFunctions.orders.list.inputSchema")
        );
        assert!(told(r#"{"hostFunctions":{"a b":{}}}"#).contains("a b"));
        assert!(told(r#"{"hostFunction":{}}"#).contains("hostFunction"));
    }
}
