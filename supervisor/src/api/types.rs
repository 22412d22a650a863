//! `functions.types`: declarations for a model and for a type checker.
//!
//! Owns its params. Never writes a declaration: [`crate::host::types`] does.

use super::params;
use crate::host::table::check_names;
use crate::host::types::{self, Described, tool};
use brig_protocol::client::{FunctionsTypesParams, FunctionsTypesResult};
use brig_protocol::codes::RequestCode;
use brig_protocol::names::Pattern;
use brig_protocol::rpc::ErrorData;

/// Answers `functions.types` over the declared functions.
///
/// # Errors
/// `invalid_params`, `invalid_function` or `invalid_schema`, naming the member.
pub(super) fn answer(text: &str) -> Result<FunctionsTypesResult, ErrorData> {
    let params: FunctionsTypesParams<'_> = params::parse(text)?;
    for (index, pattern) in params.functions.iter().flatten().enumerate() {
        Pattern::parse(pattern)
            .map_err(|fault| ErrorData::new(RequestCode::InvalidParams, format!("params.functions[{index}]: {fault}")))?;
    }
    let declared = params.host_functions.unwrap_or_default();
    check_names(&declared)?;
    let mut functions = Vec::new();
    for (collection, entries) in &declared.0 {
        for (name, declaration) in &entries.0 {
            let described = Described::of(collection, name, declaration);
            functions
                .push(described.map_err(|why| {
                    ErrorData::new(RequestCode::InvalidSchema, format!("params.hostFunctions.{collection}.{name}.{why}"))
                })?);
        }
    }
    let declarations = types::declarations(&functions);
    Ok(FunctionsTypesResult { tool: tool::text(&declarations), declarations })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

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
