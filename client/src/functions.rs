//! Host functions: what a program may call, and the code that answers.
//!
//! Owns declarations and handlers. Never decides whether a call is permitted and never
//! validates input against its schema: brigd does both before a call comes here.

mod call;

pub use call::{FunctionError, HostCall};

use crate::error::Error;
use brig_protocol::client::{CallFailure, Effect, Example, FunctionDeclaration, FunctionMap};
use call::encoded;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What a handler's code becomes.
pub(crate) type Running = Pin<Box<dyn Future<Output = Result<Box<RawValue>, FunctionError>> + Send>>;
pub(crate) type Handler = Arc<dyn Fn(Box<RawValue>, HostCall) -> Running + Send + Sync>;

/// One host function: its declaration and its handler.
#[derive(Clone)]
pub struct Function {
    description: Option<String>,
    input_schema: Option<Box<RawValue>>,
    output_schema: Option<Box<RawValue>>,
    examples: Vec<(String, Box<RawValue>, Option<Box<RawValue>>)>,
    timeout: Option<Duration>,
    effect: Option<Effect>,
    handler: Handler,
    fault: Option<String>,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Function").field("description", &self.description).field("effect", &self.effect).finish_non_exhaustive()
    }
}

impl Function {
    /// A function that is answered by `handler`: it takes the input, in any type that
    /// can be read from JSON ([`serde_json::Value`] and `Box<RawValue>` too), and the
    /// call, and gives anything that has a JSON form. Calls run concurrently.
    #[must_use]
    pub fn new<I, O, H, F>(handler: H) -> Self
    where
        I: DeserializeOwned,
        O: Serialize,
        H: Fn(I, HostCall) -> F + Send + Sync + 'static,
        F: Future<Output = Result<O, FunctionError>> + Send + 'static,
    {
        Self {
            description: None,
            input_schema: None,
            output_schema: None,
            examples: Vec::new(),
            timeout: None,
            effect: None,
            handler: Arc::new(move |input, call| match serde_json::from_str::<I>(input.get()) {
                Ok(input) => {
                    let answer = handler(input, call);
                    Box::pin(async move { encoded(&answer.await?) })
                }
                // Valid by its schema, and still not what the handler takes: the two
                // were not written for each other. The program learns where.
                Err(fault) => {
                    Box::pin(async move { Err(FunctionError::new("invalid_input", format!("the input can not be read: {fault}"))) })
                }
            }),
            fault: None,
        }
    }

    /// What it does, for the model.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// JSON Schema (draft 7 or 2020-12) that brigd holds the input against before the
    /// handler sees it. Without one, any JSON object is taken.
    #[must_use]
    pub fn input_schema(mut self, schema: impl Serialize) -> Self {
        self.input_schema = self.kept(&schema, "input schema");
        self
    }

    /// JSON Schema that brigd holds the output against before the program sees it.
    #[must_use]
    pub fn output_schema(mut self, schema: impl Serialize) -> Self {
        self.output_schema = self.kept(&schema, "output schema");
        self
    }

    /// An example for the model.
    #[must_use]
    pub fn example(mut self, description: impl Into<String>, input: impl Serialize) -> Self {
        if let Some(input) = self.kept(&input, "example") {
            self.examples.push((description.into(), input, None));
        }
        self
    }

    /// An example for the model, with what comes back.
    #[must_use]
    pub fn example_with_output(mut self, description: impl Into<String>, input: impl Serialize, output: impl Serialize) -> Self {
        let output = self.kept(&output, "example");
        if let Some(input) = self.kept(&input, "example") {
            self.examples.push((description.into(), input, output));
        }
        self
    }

    /// Time for one call, 1 ms to 300 s.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Whether it changes anything. [`Effect::Write`] when nobody says.
    #[must_use]
    pub const fn effect(mut self, effect: Effect) -> Self {
        self.effect = Some(effect);
        self
    }

    fn kept(&mut self, value: &impl Serialize, what: &str) -> Option<Box<RawValue>> {
        match to_raw_value(value) {
            Ok(raw) => Some(raw),
            Err(fault) => {
                self.fault = Some(format!("the {what} has no JSON form: {fault}"));
                None
            }
        }
    }

    fn declaration(&self) -> FunctionDeclaration<'_> {
        FunctionDeclaration {
            description: self.description.clone(),
            input_schema: self.input_schema.as_deref(),
            output_schema: self.output_schema.as_deref(),
            examples: self
                .examples
                .iter()
                .map(|(description, input, output)| Example { description: description.clone(), input, output: output.as_deref() })
                .collect(),
            timeout_ms: self.timeout.map(crate::millis),
            effect: self.effect,
        }
    }
}

/// Collections of host functions, to be offered to an evaluation or a vm. Cheap to
/// clone; the clones share the handlers.
///
/// ```
/// use brig::{Function, FunctionError, HostFunctions};
/// use serde_json::{Value, json};
///
/// let schema = json!({"type": "object", "required": ["customer"]});
/// let functions = HostFunctions::new()
///     .collection("orders")
///     .function("list", schema, |input: Value, _call| async move {
///         Ok(json!([{"customer": input["customer"], "amount": 42}]))
///     })
///     .add("refund", Function::new(|_: Value, _call| async { Err::<(), _>(FunctionError::new("closed", "not today")) }))
///     .finish();
/// # drop(functions);
/// ```
#[derive(Clone, Debug, Default)]
pub struct HostFunctions {
    collections: Vec<(String, Vec<(String, Function)>)>,
}

impl HostFunctions {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens the collection `name`, to add functions to it.
    #[must_use]
    pub fn collection(mut self, name: impl Into<String>) -> Collection {
        let name = name.into();
        let functions = match self.collections.iter().position(|(existing, _)| *existing == name) {
            Some(index) => self.collections.remove(index).1,
            None => Vec::new(),
        };
        Collection { before: self, name, functions }
    }

    /// Whether there is no function.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.collections.iter().all(|(_, functions)| functions.is_empty())
    }

    /// Names of the functions as `collection.function`, in the order they were added.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.collections.iter().flat_map(|(collection, functions)| functions.iter().map(move |(name, _)| format!("{collection}.{name}")))
    }

    /// Of each function its name as `collection.function`, what it says it does, and
    /// its effect, in the order they were added.
    pub fn described(&self) -> impl Iterator<Item = (String, &str, Effect)> {
        self.collections.iter().flat_map(|(collection, functions)| {
            functions.iter().map(move |(name, function)| {
                (format!("{collection}.{name}"), function.description.as_deref().unwrap_or_default(), function.effect.unwrap_or_default())
            })
        })
    }

    /// Only those of which `wanted` says so, by collection and function.
    #[must_use]
    pub fn only(&self, mut wanted: impl FnMut(&str, &str) -> bool) -> Self {
        let mut collections = self.collections.clone();
        for (collection, functions) in &mut collections {
            functions.retain(|(name, _)| wanted(collection, name));
        }
        collections.retain(|(_, functions)| !functions.is_empty());
        Self { collections }
    }

    /// What the request says of them.
    pub(crate) fn declarations(&self) -> Result<brig_protocol::client::HostFunctions<'_>, Error> {
        let mut collections = Vec::with_capacity(self.collections.len());
        for (collection, functions) in &self.collections {
            let mut declared = Vec::with_capacity(functions.len());
            for (name, function) in functions {
                if let Some(fault) = &function.fault {
                    return Err(Error::Request(format!("host function {collection}.{name}: {fault}")));
                }
                declared.push((name.clone(), function.declaration()));
            }
            collections.push((collection.clone(), FunctionMap(declared)));
        }
        Ok(FunctionMap(collections))
    }

    /// Who answers, by `collection.function`.
    pub(crate) fn handlers(&self) -> Handlers {
        let all = self.collections.iter().flat_map(|(collection, functions)| {
            functions.iter().map(move |(name, function)| (format!("{collection}.{name}"), Arc::clone(&function.handler)))
        });
        Handlers(all.collect())
    }
}

/// A collection that is being filled.
#[derive(Clone, Debug)]
pub struct Collection {
    before: HostFunctions,
    name: String,
    functions: Vec<(String, Function)>,
}

impl Collection {
    /// Adds a function with an input schema ([`serde_json::Value::Null`] for none) and
    /// a handler; see [`Function::new`].
    #[must_use]
    pub fn function<I, O, H, F>(self, name: impl Into<String>, input_schema: serde_json::Value, handler: H) -> Self
    where
        I: DeserializeOwned,
        O: Serialize,
        H: Fn(I, HostCall) -> F + Send + Sync + 'static,
        F: Future<Output = Result<O, FunctionError>> + Send + 'static,
    {
        let function = Function::new(handler);
        self.add(name, if input_schema.is_null() { function } else { function.input_schema(input_schema) })
    }

    /// Adds a function with all that it declares. One of the same name is replaced.
    #[must_use]
    pub fn add(mut self, name: impl Into<String>, function: Function) -> Self {
        let name = name.into();
        self.functions.retain(|(existing, _)| *existing != name);
        self.functions.push((name, function));
        self
    }

    /// Closes this collection and opens another.
    #[must_use]
    pub fn collection(self, name: impl Into<String>) -> Self {
        self.finish().collection(name)
    }

    /// Closes the collection.
    #[must_use]
    pub fn finish(self) -> HostFunctions {
        let Self { mut before, name, functions } = self;
        before.collections.push((name, functions));
        before
    }
}

impl From<Collection> for HostFunctions {
    fn from(collection: Collection) -> Self {
        collection.finish()
    }
}

/// Handlers by `collection.function`.
#[derive(Clone, Default)]
pub(crate) struct Handlers(HashMap<String, Handler>);

impl Handlers {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The handler of a function.
    pub(crate) fn find(&self, function: &str) -> Option<&Handler> {
        self.0.get(function)
    }
}

impl std::fmt::Debug for Handlers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
