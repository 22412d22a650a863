//! Taking over a changed configuration while brigd runs.
//!
//! Owns what a reload changes and what only a restart does. All or nothing: a
//! configuration with any fault changes nothing. Evaluations that run keep the policy
//! they began with, but for what is denied from now on.

use crate::audit::event::{By, policy_refused, policy_reloaded};
use crate::config::layers::Layers;
use crate::config::{Config, ConfigFault, fault};
use crate::host::configured::{self, Catalogue, Disabled, Kept};
use crate::host::redact;
use crate::policy::Policy;
use crate::policy::selector::SystemAccounts;
use crate::service::Service;
use crate::settings::Arguments;
use crate::survey;
use brig_protocol::escape::ShowPath as _;
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
    /// Files of functions that are not used.
    pub(crate) off: Vec<Disabled>,
    /// What loads and should be mended.
    pub(crate) warnings: Vec<String>,
}

/// Everything as the files have it.
struct Again {
    policy: Policy,
    config: Config,
    catalogue: Catalogue,
    warnings: Vec<String>,
}

impl Again {
    fn reloaded(&self, old: &Config) -> Reloaded {
        Reloaded { after_restart: changed(old, &self.config), off: self.catalogue.disabled().to_vec(), warnings: self.warnings.clone() }
    }
}

impl Source {
    /// What brigd was started with.
    pub(crate) const fn new(arguments: Arc<Arguments>) -> Self {
        Self { arguments, turn: Mutex::new(()) }
    }

    fn read(&self) -> Result<(Config, Layers), ConfigFault> {
        let layers = self.layers()?;
        let mut config = layers.config()?;
        self.arguments.override_settings(&mut config);
        config.check().map_err(|fault| layers.placed(fault))?;
        Ok((config, layers))
    }

    /// The files, for the places of settings in them.
    fn layers(&self) -> Result<Layers, ConfigFault> {
        self.arguments.config.as_deref().map_or_else(|| Ok(Layers::default()), Layers::read)
    }
}

impl Service {
    /// Reads the configuration again and changes nothing.
    ///
    /// # Errors
    /// [`ConfigFault`] with the place.
    pub(crate) fn check_configuration(&self) -> Result<Reloaded, ConfigFault> {
        Ok(self.read_again()?.reloaded(&self.config))
    }

    fn read_again(&self) -> Result<Again, ConfigFault> {
        let (config, layers) = self.source.read()?;
        // By the state directory that brigd has: another is taken only by a restart.
        let catalogue = read_functions(&config, self.source.arguments.config.as_deref(), kept(&self.config));
        let policy = Policy::compile_with(&config, &SystemAccounts, catalogue.known().as_ref());
        let policy = policy.and_then(|policy| self.check_kept(&policy).map(|()| policy)).map_err(|fault| layers.placed(fault))?;
        // Who may speak on the admin socket is what the start said, whatever the file says now.
        let warnings = survey::warnings(&config, &self.people, &catalogue);
        let warnings = warnings.iter().map(|warning| survey::told(warning, Some(&layers))).collect();
        Ok(Again { policy, config, catalogue, warnings })
    }

    /// What should be mended about the configuration that a start just took.
    pub(crate) fn warn_at_the_start(&self) {
        let layers = self.source.layers().ok();
        let all = survey::warnings(&self.config, &self.people, &self.catalogue());
        self.warn(all.iter().map(|warning| survey::told(warning, layers.as_ref())).collect());
    }

    /// Tells warnings to the log, and keeps them for whoever asks.
    fn warn(&self, warnings: Vec<String>) {
        for warning in &warnings {
            tracing::warn!(%warning, "the configuration holds, and should be mended");
        }
        self.keep_warnings(warnings);
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
        let again = match self.read_again() {
            Ok(read) => read,
            Err(fault) => {
                refused.count();
                self.audit.note(&policy_refused(&old, &fault.to_string(), by));
                return Err(fault);
            }
        };
        let done = again.reloaded(&self.config);
        let Again { policy, catalogue, warnings, .. } = again;
        take_over(&catalogue);
        self.warn(warnings);
        let new = Arc::clone(policy.version());
        // On record first: no call is decided by a policy that no record names.
        self.audit.note(&policy_reloaded(&old, &new, by));
        self.policy.replace(policy);
        self.catalogue.replace(catalogue);
        taken_over.count();
        Ok(done)
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
        tracing::error!(file = %disabled.file.shown(), fault = %disabled.fault, "a file of configured functions is not used");
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
