//! Configured functions: those of the operator, in `functions.d`.
//!
//! Owns the catalogue: what is configured, what of it a principal may see, and the way
//! from a permitted call to the program that runs it. Never decides who may call what:
//! [`super::permission`] does, for each call again.

mod arguments;
mod command;
mod credentials;
mod file;
mod load;
mod ownership;
mod rate;
mod run;
mod users;

pub(crate) use arguments::CallFacts;
pub(crate) use command::Prepared;
pub(crate) use credentials::Source;
pub(crate) use load::{Kept, load};

use super::call::{Audience, Judges};
use super::callback::{CallAnswer, Delivery};
use super::permission::{self, Known, Question, ScopeSet};
use super::redact::{GivenUp, Redactor, Wanted};
use super::schema::{Cost, Schema};
use super::turns::{Turn, Turns};
use crate::audit::Disclosure;
use brig_protocol::client::{Effect, ExampleShown, FunctionListed, FunctionsDescribeResult, Operation, Retry};
use brig_protocol::codes::CallCode;
use brig_protocol::escape::{ShowPath as _, line};
use brig_protocol::names;
use serde_json::Value;
use serde_json::value::RawValue;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// One configured function.
#[derive(Debug)]
pub(crate) struct Configured {
    /// Name of the collection.
    pub(crate) collection: String,
    /// Name within it.
    pub(crate) name: String,
    /// `collection.function`.
    pub(crate) full_name: String,
    /// For the model.
    pub(crate) description: String,
    /// JSON Schema of the input, as text.
    pub(crate) input_text: Box<RawValue>,
    /// JSON Schema of the output, as text.
    pub(crate) output_text: Option<Box<RawValue>>,
    /// For the model; each was checked.
    pub(crate) examples: Vec<ExampleShown>,
    /// Checked before it runs.
    pub(crate) input: Arc<Schema>,
    /// Checked before anybody gets the output.
    pub(crate) output: Option<Arc<Schema>>,
    /// Longest time for one call.
    pub(crate) timeout: Duration,
    /// What it does to the world.
    pub(crate) effect: Effect,
    /// Whether a call whose effect is unknown may be made again.
    pub(crate) retry: Retry,
    /// What the audit record of a call holds of its input.
    pub(crate) audit: Disclosure,
    turns: Turns,
    rate: Option<Mutex<rate::Rate>>,
    redactor: Redactor,
    kind: Kind,
}

/// What a configured function is.
#[derive(Debug)]
enum Kind {
    /// A program.
    Command(command::Command),
}

/// A call that may run.
pub(crate) struct Running<'a> {
    /// Its place among those that run.
    pub(crate) place: Place,
    /// What it runs.
    pub(crate) prepared: Prepared,
    /// Which call it is.
    pub(crate) delivery: &'a Delivery<'a>,
    /// Longest output.
    pub(crate) output_bytes: u64,
    /// Where a long output is looked through.
    pub(crate) judges: &'a Judges,
    /// For whom.
    pub(crate) uid: u32,
}

/// A call that was let in: it holds its place until it is over.
#[derive(Debug)]
pub(crate) struct Place {
    turn: Turn,
}

impl Configured {
    /// What a call with a valid input runs.
    ///
    /// # Errors
    /// A half sentence that follows "the input"; the call does not run.
    pub(crate) fn prepared(&self, input: &Value, facts: &CallFacts) -> Result<Prepared, String> {
        let Kind::Command(command) = &self.kind;
        command.prepared(input, facts)
    }

    /// The same JSON text without any credential, when there is one in it.
    ///
    /// # Errors
    /// [`GivenUp`]: nobody awaits it any more.
    pub(crate) fn clean(&self, text: &str, wanted: Wanted<'_>) -> Result<Option<String>, GivenUp> {
        self.redactor.clean_json_while(text, wanted)
    }

    /// Waits for a place among the calls that run, and counts the call.
    ///
    /// # Errors
    /// How long until one more may begin.
    pub(crate) async fn place(&self, uid: u32) -> Result<Place, Duration> {
        // The turns are never closed.
        let turn = self.turns.take(uid).await.ok_or(Duration::from_secs(1))?;
        if let Some(rate) = &self.rate {
            rate.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now())?;
        }
        Ok(Place { turn })
    }

    /// Runs a call. Dropping the future ends what it started. A long output is looked
    /// through where long judgements are made.
    pub(crate) async fn run(self: &Arc<Self>, call: Running<'_>) -> CallAnswer {
        let Kind::Command(command) = &self.kind;
        let Running { place, prepared, delivery, output_bytes, judges, uid } = call;
        let orders = match command.orders(prepared).to_bytes() {
            Ok(orders) => orders,
            Err(message) => return CallAnswer::Failed { message, data: None },
        };
        let finished = match run::run(orders, command.fed(delivery.input), output_bytes, place.turn).await {
            Ok(finished) => finished,
            Err(fault) => {
                tracing::error!(function = %self.full_name, %fault, "the program of a function could not be started");
                return CallAnswer::Failed {
                    message: "the program could not be started; the log of brigd says why".to_owned(),
                    data: None,
                };
            }
        };
        let cost = if finished.is_long() { Cost::LONG } else { Cost::NONE };
        let (function, evaluation, call) = (Arc::clone(self), delivery.evaluation.to_owned(), delivery.call);
        let judged = judges.run_while(uid, cost, move |audience| function.answer(finished, (&evaluation, call), audience)).await;
        judged.unwrap_or_else(|| CallAnswer::Spoilt {
            code: CallCode::InvalidOutput,
            fault: "could not be looked through for credentials".to_owned(),
            bytes: 0,
        })
    }

    fn answer(&self, finished: run::Finished, (evaluation, call): (&str, u64), audience: &Audience) -> CallAnswer {
        let Kind::Command(command) = &self.kind;
        let label = run::Label { function: &self.full_name, evaluation, call };
        finished.log(label, &self.redactor);
        let bytes = finished.output.len();
        command.answer(finished, label, (&self.redactor, &|| audience.still())).unwrap_or_else(|GivenUp| CallAnswer::Spoilt {
            code: CallCode::InvalidOutput,
            fault: "was not looked through for credentials to its end: nobody awaits it any more".to_owned(),
            bytes,
        })
    }

    /// In short.
    pub(crate) fn listed(&self) -> FunctionListed {
        FunctionListed {
            function: self.full_name.clone(),
            collection: self.collection.clone(),
            description: self.description.clone(),
            effect: self.effect,
        }
    }

    /// In full.
    pub(crate) fn described(&self) -> FunctionsDescribeResult {
        FunctionsDescribeResult {
            function: self.full_name.clone(),
            collection: self.collection.clone(),
            description: self.description.clone(),
            input_schema: self.input_text.clone(),
            output_schema: self.output_text.clone(),
            examples: self.examples.clone(),
            timeout_ms: u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX),
            effect: self.effect,
            retry: self.retry,
        }
    }

    fn is_allowed(&self, scopes: &ScopeSet, operation: Operation) -> bool {
        let question = Question { collection: &self.collection, function: &self.name, operation, input: None };
        permission::decide(scopes, &question).is_ok()
    }
}

/// A file that is not used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Disabled {
    /// The file, or the folder of all.
    pub(crate) file: PathBuf,
    /// A half sentence that follows its name: each thing that is wrong, with its line.
    pub(crate) fault: String,
}

impl std::fmt::Display for Disabled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.file.shown(), line(&self.fault))
    }
}

/// What a policy can be judged by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Brief {
    /// Name of the collection.
    pub(crate) collection: String,
    /// Name within it.
    pub(crate) name: String,
    /// What it does to the world.
    pub(crate) effect: Effect,
}

/// Everything that is configured.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    functions: Vec<Arc<Configured>>,
    disabled: Vec<Disabled>,
    /// Functions of files that are not used, where their names could be read; nothing when
    /// there is a file of which they could not.
    unused: Option<Vec<Brief>>,
    redactor: Redactor,
    schema_bytes: u64,
}

impl Catalogue {
    fn new(mut functions: Vec<Arc<Configured>>, disabled: Vec<Disabled>, unused: Option<Vec<Brief>>, redactor: Redactor) -> Self {
        functions.sort_by(|one, other| one.full_name.cmp(&other.full_name));
        let length = |text: &RawValue| u64::try_from(text.get().len()).unwrap_or(u64::MAX);
        let both = |one: &Arc<Configured>| length(&one.input_text) + one.output_text.as_deref().map_or(0, length);
        let schema_bytes = functions.iter().map(both).sum();
        Self { functions, disabled, unused, redactor, schema_bytes }
    }

    fn nothing_of(folder: &Path, fault: String) -> Self {
        Self { disabled: vec![Disabled { file: folder.to_owned(), fault }], ..Self::default() }
    }

    /// The files that are not used.
    pub(crate) fn disabled(&self) -> &[Disabled] {
        &self.disabled
    }

    /// What patterns of a policy can be about. Nothing where that is not known: the names in
    /// a file can not be read, or none is there yet.
    pub(crate) fn known(&self) -> Option<Known> {
        let functions: Vec<_> = self.briefs()?.into_iter().map(|brief| (brief.collection, brief.name)).collect();
        (!functions.is_empty()).then_some(Known { functions })
    }

    /// Every function that there is or would be, were its file mended; nothing when the
    /// names in a file can not be read.
    pub(crate) fn briefs(&self) -> Option<Vec<Brief>> {
        let brief = |function: &Arc<Configured>| Brief {
            collection: function.collection.clone(),
            name: function.name.clone(),
            effect: function.effect,
        };
        let unused = match (&self.unused, self.disabled.is_empty()) {
            (Some(unused), _) => unused.clone(),
            (None, true) => Vec::new(),
            (None, false) => return None,
        };
        Some(self.functions.iter().map(brief).chain(unused).collect())
    }

    /// Looks for every credential that was loaded.
    pub(crate) const fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Those whose calls may change something.
    pub(crate) fn writing(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().filter(|function| function.effect == Effect::Write).map(|function| function.full_name.as_str())
    }

    /// Whether there is a function of this name.
    pub(crate) fn has(&self, full_name: &str) -> bool {
        self.functions.binary_search_by(|function| function.full_name.as_str().cmp(full_name)).is_ok()
    }

    /// How many functions there are.
    pub(crate) const fn count(&self) -> usize {
        self.functions.len()
    }

    /// How long its schemas are together.
    pub(crate) const fn schema_bytes(&self) -> u64 {
        self.schema_bytes
    }

    /// What a principal may list, by name, with its schemas: what is not here is not told.
    pub(crate) fn visible<'c>(&'c self, scopes: &'c ScopeSet) -> impl Iterator<Item = &'c Arc<Configured>> {
        self.functions.iter().filter(|function| function.is_allowed(scopes, Operation::List))
    }

    /// What a program of a principal could call, in the collections that it asks for: all
    /// of them when it asks for none.
    ///
    /// # Errors
    /// A collection that the principal has nothing of, with the nearest that it has.
    pub(crate) fn offered(&self, scopes: &ScopeSet, collections: Option<&[String]>) -> Result<Vec<Arc<Configured>>, UnknownCollection> {
        let callable: Vec<&Arc<Configured>> =
            self.functions.iter().filter(|function| function.is_allowed(scopes, Operation::Invoke)).collect();
        let Some(wanted) = collections else { return Ok(callable.into_iter().cloned().collect()) };
        for name in wanted {
            if !callable.iter().any(|function| function.collection == *name) {
                let known = callable.iter().map(|function| function.collection.as_str());
                let near = super::schema::phrase::nearest(name, known).map(str::to_owned);
                return Err(UnknownCollection { name: name.clone(), near });
            }
        }
        Ok(callable.into_iter().filter(|function| wanted.contains(&function.collection)).cloned().collect())
    }

    /// The function of this name, `collection.function` or its command spelling, if the
    /// principal may do that with it. One that it may not is as unknown as one that is not.
    pub(crate) fn find(&self, scopes: &ScopeSet, name: &str, operation: Operation) -> Option<&Arc<Configured>> {
        let is_it = |function: &Configured| match name.split_once(':') {
            Some((collection, command)) => names::kebab(&function.collection) == collection && names::kebab(&function.name) == command,
            None => function.full_name == name,
        };
        self.functions.iter().find(|function| is_it(function) && function.is_allowed(scopes, operation))
    }
}

/// A collection that is not there for a principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownCollection {
    /// As it was asked for.
    pub(crate) name: String,
    /// The nearest that it has.
    pub(crate) near: Option<String>,
}
