//! The functions of one evaluation, by index.
//!
//! Owns checking what a client declares and the table that a worker is given: that, and
//! the configured functions that the principal may call. A
//! function that the operator's policy can never allow is not in the table: to the
//! guest it is not there. One that only the request's own `permissions` deny is in
//! it, and its call rejects with `permission_denied`: the client declared it, and the
//! program learns what is wrong. Whatever is in the table, every call is decided again.

mod declared;

pub(crate) use declared::check_names;

use super::configured::Configured;
use super::permission::{self, Origin, Question, Scope, ScopeSet};
use super::redact::{GivenUp, Wanted};
use super::schema::cache::SchemaCache;
use super::schema::{Schema, SchemaFault};
use crate::audit::{Disclosure, Payload};
use crate::policy::{Grant, Live};
use brig_protocol::client::{self, Effect, FunctionDeclaration, HostFunctions, Operation, Permissions, Warning, WarningCode};
use brig_protocol::codes::RequestCode;
use brig_protocol::escape::escaped;
use brig_protocol::limits::{FUNCTION_TIMEOUT_MAX_MS, Limits, REGISTERED_FUNCTIONS};
use brig_protocol::names::{self, NameFault};
use brig_protocol::rpc::ErrorData;
use brig_protocol::worker::CollectionTable;
use declared::{check_beside, check_texts, invalid, pairs};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;

/// One function that may be asked for.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    collection: usize,
    /// Name of the collection.
    pub(crate) collection_name: String,
    /// Name within the collection.
    pub(crate) name: String,
    /// `collection.function`.
    pub(crate) full_name: String,
    /// Checked before the function runs.
    pub(crate) input: Option<Arc<Schema>>,
    /// Checked before the guest gets the output.
    pub(crate) output: Option<Arc<Schema>>,
    /// Longest time for one call.
    pub(crate) timeout: Duration,
    /// What it says it does.
    pub(crate) effect: Effect,
    /// How much of its inputs and outputs is recorded.
    pub(crate) audit: Disclosure,
    /// Who runs it.
    pub(crate) kind: Kind,
}

/// Who runs a function.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// The client that declared it.
    Callback,
    /// brigd, as the operator configured it.
    Configured(Arc<Configured>),
}

impl Function {
    /// The configured function that it is, if it is one.
    pub(crate) const fn configured(&self) -> Option<&Arc<Configured>> {
        match &self.kind {
            Kind::Callback => None,
            Kind::Configured(configured) => Some(configured),
        }
    }

    /// An input of it, as it is recorded: never with a credential.
    ///
    /// # Errors
    /// [`GivenUp`]: nobody awaits it any more.
    pub(crate) fn recorded(&self, text: &str, wanted: Wanted<'_>) -> Result<Payload, GivenUp> {
        let clean = self.configured().map(|configured| configured.clean(text, wanted)).transpose()?.flatten();
        Ok(Payload::shown(text, clean.as_deref().unwrap_or(text), self.audit, self.input.as_deref()))
    }
}

/// What the operator lets a principal call: what it declares itself, and what is configured.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Default))]
pub(crate) struct Granted {
    /// Functions that its client declares.
    pub(crate) callbacks: ScopeSet,
    /// Functions of the operator.
    pub(crate) configured: ScopeSet,
}

impl Granted {
    /// What policy says for one principal.
    pub(crate) fn of(grant: &Grant) -> Self {
        Self { callbacks: grant.callbacks.clone(), configured: grant.functions.clone() }
    }

    /// Who may call a function.
    pub(crate) const fn scopes(&self, function: &Function) -> &ScopeSet {
        match function.kind {
            Kind::Callback => &self.callbacks,
            Kind::Configured(_) => &self.configured,
        }
    }

    fn narrowed(self, scope: &Scope) -> Self {
        let narrow = |scopes: ScopeSet| scopes.and(Origin::Request, scope.clone());
        Self { callbacks: narrow(self.callbacks), configured: narrow(self.configured) }
    }
}

/// All functions of one evaluation, and who may call them.
#[derive(Debug)]
#[cfg_attr(test, derive(Default))]
pub(crate) struct FunctionTable {
    collections: Vec<String>,
    functions: Vec<Function>,
    granted: Granted,
    /// The policy that holds by now, for functions of an evaluation that goes on.
    live: Option<Live>,
    input_bytes: u64,
    output_bytes: u64,
}

impl FunctionTable {
    /// Checks the declarations and the permissions of one request, beside the configured
    /// functions that its principal may call. Schemas that are not known yet are compiled
    /// off the async threads.
    ///
    /// # Errors
    /// `invalid_function`, `invalid_schema`, `invalid_permissions` or `unsupported`,
    /// with the place. Nothing ran.
    pub(crate) async fn build(
        declared: Option<&HostFunctions<'_>>,
        permissions: Option<&Permissions<'_>>,
        (operator, configured): (Granted, &[Arc<Configured>]),
        limits: &Limits,
        (schemas, uid): (&SchemaCache, u32),
    ) -> Result<(Self, Vec<Warning>), ErrorData> {
        let nothing = HostFunctions::default();
        let declared = declared.unwrap_or(&nothing);
        check_names(declared)?;
        check_beside(declared, configured)?;
        let mut warnings = Vec::new();
        let compiled = compile(declared, permissions, (schemas, uid), &mut warnings).await?;
        let mut table = Self {
            collections: declared.0.iter().map(|(name, _)| name.clone()).collect(),
            functions: Vec::new(),
            granted: operator.clone(),
            live: None,
            input_bytes: limits.input_bytes,
            output_bytes: limits.output_bytes,
        };
        let mut left_out = Vec::new();
        for (index, (collection, functions)) in declared.0.iter().enumerate() {
            for (name, declaration) in &functions.0 {
                let question = Question { collection, function: name, operation: Operation::Invoke, input: None };
                if permission::decide(&operator.callbacks, &question).is_err() {
                    left_out.push(format!("{collection}.{name}"));
                    continue;
                }
                table.functions.push(function(index, collection, name, declaration, limits, &compiled, &mut warnings)?);
            }
        }
        if !left_out.is_empty() {
            let names = super::schema::phrase::names(left_out.iter().map(String::as_str));
            warnings
                .push(warning(WarningCode::FunctionDisabled, format!("the operator's policy lets no program of this user call {names}")));
        }
        configured.iter().for_each(|function| table.add_configured(function, limits));
        if let Some(scope) = permissions.and_then(|permissions| permissions.host_function.as_ref()) {
            let mut all: Vec<(&str, &str)> = pairs(declared).map(|(collection, name, _)| (collection, name)).collect();
            all.extend(configured.iter().map(|function| (function.collection.as_str(), function.name.as_str())));
            table.granted = table.granted.narrowed(&Scope::load(scope, &all, &compiled)?);
        }
        Ok((table, warnings))
    }

    /// A table with one configured function, for a call without a program.
    pub(crate) fn one(function: &Arc<Configured>, operator: Granted, limits: &Limits, timeout: Option<Duration>) -> Self {
        let (input_bytes, output_bytes) = (limits.input_bytes, limits.output_bytes);
        let mut table = Self { collections: Vec::new(), functions: Vec::new(), granted: operator, live: None, input_bytes, output_bytes };
        table.add_configured(function, limits);
        if let (Some(function), Some(timeout)) = (table.functions.first_mut(), timeout) {
            function.timeout = function.timeout.min(timeout);
        }
        table
    }

    fn add_configured(&mut self, function: &Arc<Configured>, limits: &Limits) {
        let known = self.collections.iter().position(|name| *name == function.collection);
        let collection = known.unwrap_or_else(|| {
            self.collections.push(function.collection.clone());
            self.collections.len() - 1
        });
        self.functions.push(Function {
            collection,
            collection_name: function.collection.clone(),
            name: function.name.clone(),
            full_name: function.full_name.clone(),
            input: Some(Arc::clone(&function.input)),
            output: function.output.clone(),
            timeout: function.timeout.min(Duration::from_millis(limits.function_timeout_ms)),
            effect: function.effect,
            audit: function.audit,
            kind: Kind::Configured(Arc::clone(function)),
        });
    }

    /// The table for the worker's order: a function's index is its place in it.
    pub(crate) fn collections(&self) -> Vec<CollectionTable<'_>> {
        let mut tables: Vec<CollectionTable<'_>> =
            self.collections.iter().map(|name| CollectionTable { name: Cow::Borrowed(name), functions: Vec::new() }).collect();
        for function in &self.functions {
            if let Some(table) = tables.get_mut(function.collection) {
                table.functions.push(Cow::Borrowed(&function.name));
            }
        }
        tables.retain(|table| !table.functions.is_empty());
        tables
    }

    /// How many functions the worker was given; an index is below this.
    pub(crate) const fn len(&self) -> usize {
        self.functions.len()
    }

    /// The function with this index.
    pub(crate) fn get(&self, index: u32) -> Option<&Function> {
        self.functions.get(usize::try_from(index).ok()?)
    }

    /// The same, where what is denied from now on is denied at once.
    #[must_use]
    pub(crate) fn following(mut self, live: Live) -> Self {
        self.live = Some(live);
        self
    }

    /// What another policy says by now, if there is another.
    pub(crate) fn changed(&self) -> Option<Granted> {
        let grant = self.live.as_ref()?.changed()?;
        let nobody = Granted { callbacks: ScopeSet::default(), configured: ScopeSet::default() };
        Some(if grant.may_evaluate { Granted::of(&grant) } else { nobody })
    }

    /// Who may call a function, as policy was when the evaluation began.
    pub(crate) const fn scopes(&self, function: &Function) -> &ScopeSet {
        self.granted.scopes(function)
    }

    /// Longest input, in bytes.
    pub(crate) const fn input_bytes(&self) -> u64 {
        self.input_bytes
    }

    /// Longest output, in bytes.
    pub(crate) const fn output_bytes(&self) -> u64 {
        self.output_bytes
    }
}

/// Compiles every schema of a request, each text once.
async fn compile<'d>(
    declared: &'d HostFunctions<'_>,
    permissions: Option<&'d Permissions<'_>>,
    (schemas, uid): (&SchemaCache, u32),
    warnings: &mut Vec<Warning>,
) -> Result<HashMap<&'d str, Arc<Schema>>, ErrorData> {
    let mut wanted: Vec<(&'d str, String, RequestCode)> = Vec::new();
    for (collection, name, declaration) in pairs(declared) {
        for (schema, member) in [(declaration.input_schema, "inputSchema"), (declaration.output_schema, "outputSchema")] {
            if let Some(schema) = schema {
                wanted.push((schema.get(), format!("hostFunctions.{collection}.{name}.{member}"), RequestCode::InvalidSchema));
            }
        }
    }
    if let Some(client::Scope::Rules(rules)) = permissions.and_then(|permissions| permissions.host_function.as_ref()) {
        for (index, rule) in rules.rules.iter().enumerate() {
            if let Some(when) = rule.when {
                wanted.push((when.get(), format!("permissions.hostFunction.rules[{index}].when"), RequestCode::InvalidPermissions));
            }
        }
    }
    let mut texts: Vec<&'d str> = wanted.iter().map(|(text, _, _)| *text).collect();
    texts.sort_unstable();
    texts.dedup();
    let outcomes = schemas.compiled(uid, texts.clone()).await;
    let by_text: HashMap<&str, Result<Arc<Schema>, SchemaFault>> = texts.into_iter().zip(outcomes).collect();
    let mut compiled = HashMap::new();
    for (text, place, code) in wanted {
        let outcome = by_text.get(text).cloned().unwrap_or_else(|| Err(SchemaFault("could not be compiled".to_owned())));
        let schema = outcome.map_err(|fault| ErrorData::new(code, format!("{place}: the schema {fault}")))?;
        if code == RequestCode::InvalidPermissions && schema.steps_back() {
            return Err(ErrorData::new(
                code,
                format!("{place}: a pattern with look-around or back-references can not decide a permission"),
            ));
        }
        warnings.extend(schema.lint().iter().map(|sentence| warning(WarningCode::SuspectSchema, format!("{place}: {sentence}"))));
        compiled.insert(text, schema);
    }
    Ok(compiled)
}

fn function(
    index: usize,
    collection: &str,
    name: &str,
    declaration: &FunctionDeclaration<'_>,
    limits: &Limits,
    compiled: &HashMap<&str, Arc<Schema>>,
    warnings: &mut Vec<Warning>,
) -> Result<Function, ErrorData> {
    let full_name = format!("{collection}.{name}");
    check_texts(&full_name, declaration)?;
    let asked = declaration.timeout_ms.unwrap_or(limits.function_timeout_ms);
    if asked == 0 || asked > FUNCTION_TIMEOUT_MAX_MS {
        return Err(invalid(format!("hostFunctions.{full_name}.timeoutMs is {asked}; it must be between 1 and {FUNCTION_TIMEOUT_MAX_MS}")));
    }
    if asked > limits.function_timeout_ms {
        let held = limits.function_timeout_ms;
        let message = format!("{full_name}: timeoutMs {asked} was cut to functionTimeoutMs {held} (raised by limits.function_timeout_ms)");
        warnings.push(warning(WarningCode::LimitCut, message));
    }
    let schema = |raw: Option<&serde_json::value::RawValue>| raw.and_then(|raw| compiled.get(raw.get()).cloned());
    Ok(Function {
        collection: index,
        collection_name: collection.to_owned(),
        name: name.to_owned(),
        full_name,
        input: schema(declaration.input_schema),
        output: schema(declaration.output_schema),
        timeout: Duration::from_millis(asked.min(limits.function_timeout_ms)),
        effect: declaration.effect.unwrap_or_default(),
        audit: Disclosure::Hash,
        kind: Kind::Callback,
    })
}

const fn warning(code: WarningCode, message: String) -> Warning {
    Warning { code, message, path: None }
}
