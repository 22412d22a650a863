//! Taking over a changed configuration while brigd runs.
//!
//! Owns what a reload changes and what only a restart does. All or nothing: a
//! configuration with any fault changes nothing. Evaluations that run keep the policy
//! they began with, but for what is denied from now on.

use crate::audit::event::{By, policy_refused, policy_reloaded};
use crate::config::{Config, ConfigFault, fault};
use crate::host::configured::{self, Catalogue, Kept};
use crate::host::redact;
use crate::policy::Policy;
use crate::policy::selector::SystemAccounts;
use crate::service::Service;
use crate::settings::Arguments;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// What a reload takes over; everything else is told as needing a restart.
const TAKEN_OVER: &[&str] = &["principals", "clients.uids", "functions"];

/// Where the configuration comes from, so that it can be read again.
#[derive(Debug)]
pub(crate) struct Source {
    arguments: Arc<Arguments>,
    /// One reload at a time.
    turn: Mutex<()>,
}

/// What a reload did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reloaded {
    /// Settings that are changed in the files and hold only after a restart.
    pub(crate) after_restart: Vec<String>,
}

impl Source {
    /// What brigd was started with.
    pub(crate) const fn new(arguments: Arc<Arguments>) -> Self {
        Self { arguments, turn: Mutex::new(()) }
    }

    fn read(&self) -> Result<Config, ConfigFault> {
        let mut config = Config::load(self.arguments.config.as_deref())?;
        self.arguments.override_settings(&mut config);
        config.check()?;
        Ok(config)
    }
}

impl Service {
    /// Reads the configuration again and changes nothing.
    ///
    /// # Errors
    /// [`ConfigFault`] with the place.
    pub(crate) fn check_configuration(&self) -> Result<Reloaded, ConfigFault> {
        let (_, config, _) = self.read_again()?;
        Ok(Reloaded { after_restart: changed(&self.config, &config) })
    }

    fn read_again(&self) -> Result<(Policy, Config, Catalogue), ConfigFault> {
        let config = self.source.read()?;
        // By the state directory that brigd has: another is taken only by a restart.
        let catalogue = read_functions(&config, self.source.arguments.config.as_deref(), kept(&self.config));
        let policy = Policy::compile_with(&config, &SystemAccounts, catalogue.known().as_ref())?;
        self.check_kept(&policy)?;
        Ok((policy, config, catalogue))
    }

    /// Reads the configuration again and takes it over. Reads files: not for the threads
    /// that serve clients.
    ///
    /// # Errors
    /// [`ConfigFault`] with the place; then nothing has changed.
    pub(crate) fn reload(&self, by: By<'_>) -> Result<Reloaded, ConfigFault> {
        let _turn = self.source.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let old = Arc::clone(self.policy.current().version());
        let [taken_over, refused] = &self.metrics.reloads;
        let (policy, config, catalogue) = match self.read_again() {
            Ok(read) => read,
            Err(fault) => {
                refused.count();
                self.audit.note(&policy_refused(&old, &fault.to_string(), by));
                return Err(fault);
            }
        };
        let after_restart = changed(&self.config, &config);
        take_over(&catalogue);
        let new = Arc::clone(policy.version());
        // On record first: no call is decided by a policy that no record names.
        self.audit.note(&policy_reloaded(&old, &new, by));
        self.policy.replace(policy);
        self.replace_catalogue(catalogue);
        taken_over.count();
        Ok(Reloaded { after_restart })
    }
}

impl Service {
    fn check_kept(&self, policy: &Policy) -> Result<(), ConfigFault> {
        check_kept(policy, self.config.server.state_dir.as_deref())
    }
}

/// Whether what people are asked and say, and what budgets used, can be written down.
///
/// # Errors
/// [`ConfigFault::Value`]: there is nowhere to keep it.
pub(crate) fn check_kept(policy: &Policy, state: Option<&Path>) -> Result<(), ConfigFault> {
    if state.is_some() {
        return Ok(());
    }
    let needs = |what: &str| {
        Err(fault("server.state_dir", "nothing", &format!("{what}, which needs a state directory: set it, or give --state DIR")))
    };
    match (policy.asks(), policy.counts_long()) {
        (true, _) => needs("a rule of [principals] asks a person"),
        (_, true) => needs("a budget of [principals] is for an hour or a day, and so has to survive a restart"),
        _ => Ok(()),
    }
}

/// What the operator has configured. A file that can not be used is told, and nothing else
/// is wrong with it. Loaded when the nursery is there: it was started before any credential
/// was read.
pub(crate) fn functions(config: &Config, file: Option<&Path>, kept: Kept) -> Catalogue {
    let catalogue = read_functions(config, file, kept);
    take_over(&catalogue);
    catalogue
}

fn read_functions(config: &Config, file: Option<&Path>, kept: Kept) -> Catalogue {
    let Some(folder) = config.functions.folder(file) else { return Catalogue::default() };
    configured::load(&folder, &configured::Source::of_process(), kept)
}

/// Whether calls of functions that may change something are kept anywhere.
pub(crate) const fn kept(config: &Config) -> Kept {
    if config.server.state_dir.is_some() { Kept::OnDisk } else { Kept::Nowhere }
}

/// Says what there is, and hides its credentials from now on.
fn take_over(catalogue: &Catalogue) {
    redact::install(catalogue.redactor().clone());
    for disabled in catalogue.disabled() {
        tracing::error!("a file of configured functions is not used: {disabled}");
    }
    if catalogue.count() > 0 {
        tracing::info!(functions = catalogue.count(), "functions are configured");
    }
}

/// Settings in which two configurations differ, without those that a reload takes over.
fn changed(old: &Config, new: &Config) -> Vec<String> {
    let (old, new) = (leaves(old), leaves(new));
    let names: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let taken_over =
        |name: &str| TAKEN_OVER.iter().any(|taken| name.strip_prefix(taken).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')));
    names.into_iter().filter(|name| old.get(*name) != new.get(*name) && !taken_over(name)).cloned().collect()
}

/// Every setting by its dotted name.
fn leaves(config: &Config) -> std::collections::BTreeMap<String, toml::Value> {
    fn walk(table: toml::Table, prefix: &str, found: &mut std::collections::BTreeMap<String, toml::Value>) {
        for (key, value) in table {
            let name = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
            match value {
                toml::Value::Table(inner) => walk(inner, &name, found),
                value => {
                    found.insert(name, value);
                }
            }
        }
    }
    let mut found = std::collections::BTreeMap::new();
    // A configuration that was read can be written.
    walk(toml::Table::try_from(config).unwrap_or_default(), "", &mut found);
    found
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn config(text: &str) -> Config {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn what_only_a_restart_changes_is_named_and_what_a_reload_takes_over_is_not() {
        let old = config("[queue]\nrunning = 5\n");
        let new = config("[queue]\nrunning = 6\n[clients]\nuids = [1]\nconnections = 7\n[server]\nsocket = \"/s\"\n");
        assert_eq!(changed(&old, &new), ["clients.connections", "queue.running", "server.socket"]);
        assert!(changed(&new, &new).is_empty());
    }
}
