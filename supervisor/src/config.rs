//! What the operator sets.
//!
//! Owns the shape of the configuration, its defaults and its checks; [`layers`] reads it.
//! Without a file the embedded default holds: everything here has one. Never reads a
//! secret.

pub(crate) mod faults;
pub(crate) mod layers;
pub(crate) mod observe;
mod sections;
pub(crate) mod tool;

pub(crate) use sections::{Admin, Audit, Clients, Functions, Kept, Level, Origin, Queue, Runtime, Sandbox, Server, Vms, Workers};

use crate::audit::Rules;
use crate::policy::document::PrincipalTable;
use crate::policy::selector::{Accounts, SystemAccounts};
use brig_protocol::escape::ShowPath as _;
use brig_protocol::limits::{self, Limits};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Most threads of the runtime: more than any host has cores, fewer than it can not start.
const THREADS_MOST: usize = 1024;

/// Everything that an operator can set.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// The socket.
    pub(crate) server: Server,
    /// Confinement.
    pub(crate) sandbox: Sandbox,
    /// Workers.
    pub(crate) workers: Workers,
    /// Ceilings, by the name of [`limits::LimitRow::setting`].
    limits: BTreeMap<String, u64>,
    /// Who may connect, and how much one may ask.
    pub(crate) clients: Clients,
    /// Running and waiting.
    pub(crate) queue: Queue,
    /// Kept workers.
    pub(crate) vms: Vms,
    /// Threads.
    pub(crate) runtime: Runtime,
    /// Records of what happens.
    pub(crate) audit: Audit,
    /// Who may speak on the admin socket.
    pub(crate) admin: Admin,
    /// Calls that wait for a person.
    pub(crate) approvals: crate::approvals::Bounds,
    /// What is kept.
    pub(crate) journal: Kept,
    /// Who may do what. Empty: the embedded default, see [`crate::policy`].
    pub(crate) principals: BTreeMap<String, PrincipalTable>,
    /// Functions of the operator.
    pub(crate) functions: Functions,
    /// Who is shown figures.
    metrics: observe::Metrics,
    /// Who is told of each evaluation.
    telemetry: observe::Telemetry,
}

/// What is wrong with a configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigFault {
    /// Not readable.
    #[error("cannot read the configuration {}: {fault}", path.shown())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        fault: std::io::Error,
    },
    /// Not what a configuration looks like; the text says where.
    #[error("the configuration {} is not valid\n{fault}", path.shown())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line, caret, and what is expected.
        fault: String,
    },
    /// Somebody else could have written it.
    #[error("the configuration {} is not trusted: {doubt}", path.shown())]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// Why, and what to do.
        doubt: String,
    },
    /// A value that cannot be, and where it stands.
    #[error("{place}: {setting} is set to {value}; {expected}")]
    Placed {
        /// The file and the line.
        place: layers::Place,
        /// Which setting.
        setting: String,
        /// To what.
        value: String,
        /// What it may be.
        expected: String,
    },
    /// More than one thing: all that was found at once.
    #[error("{}", lines(.0))]
    Several(Vec<ConfigFault>),
    /// A value that cannot be.
    #[error("{setting} is set to {value}; {expected}")]
    Value {
        /// Which setting.
        setting: String,
        /// To what.
        value: String,
        /// What it may be.
        expected: String,
    },
}

fn lines(faults: &[ConfigFault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl ConfigFault {
    /// Each fault by itself.
    pub(crate) fn each(self) -> Vec<Self> {
        match self {
            Self::Several(all) => all.into_iter().flat_map(Self::each).collect(),
            one => vec![one],
        }
    }
}

/// What went well, when all did; else everything that did not, so that it is mended at once.
///
/// # Errors
/// The one fault, or [`ConfigFault::Several`].
pub(crate) fn all_well<T>(results: impl IntoIterator<Item = Result<T, ConfigFault>>) -> Result<Vec<T>, ConfigFault> {
    let (mut well, mut faults) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(value) => well.push(value),
            Err(fault) => faults.extend(fault.each()),
        }
    }
    match faults.pop() {
        None => Ok(well),
        Some(only) if faults.is_empty() => Err(only),
        Some(last) => {
            faults.push(last);
            Err(ConfigFault::Several(faults))
        }
    }
}

impl Config {
    /// Reads a file and the drop-ins beside it, or takes the embedded default when there
    /// is none.
    ///
    /// # Errors
    /// [`ConfigFault`] with the place and what is expected there.
    pub(crate) fn load(path: Option<&Path>) -> Result<Self, ConfigFault> {
        path.map_or_else(|| Ok(Self::default()), |path| layers::Layers::read(path)?.config())
    }

    /// Whether every value can be.
    ///
    /// # Errors
    /// [`ConfigFault`] naming each that can not.
    pub(crate) fn check(&self) -> Result<(), ConfigFault> {
        self.check_with(&SystemAccounts)
    }

    /// The same, with names of users and groups from elsewhere.
    ///
    /// # Errors
    /// [`ConfigFault`] naming each that can not.
    pub(crate) fn check_with(&self, accounts: &(dyn Accounts + Sync)) -> Result<(), ConfigFault> {
        let mut results = vec![
            self.ceilings().map(drop),
            self.socket_mode().map(drop),
            self.admin_socket_mode().map(drop),
            self.shown().map(drop),
            self.told().map(drop),
            self.log_level(),
        ];
        results.extend(self.bounds().into_iter().map(|(setting, value, least, most)| within(setting, value, least, most)));
        results.push(crate::admin::People::with(self, accounts).map(drop));
        // A policy is judged by ceilings: without them it can not be.
        if self.ceilings().is_ok() {
            results.push(crate::policy::Policy::compile_with(self, accounts, None).map(drop));
        }
        all_well(results).map(drop)
    }

    /// Numbers that must lie between two others.
    fn bounds(&self) -> Vec<(&'static str, u64, u64, u64)> {
        let size = |value: usize| u64::try_from(value).unwrap_or(u64::MAX);
        const DAY_MS: u64 = 86_400_000;
        const NO_END: u64 = u64::MAX;
        vec![
            ("workers.most", size(self.workers.most), 1, NO_END),
            ("workers.generation_seconds", self.workers.generation_seconds, 1, NO_END),
            ("clients.connections", size(self.clients.connections), 1, NO_END),
            ("clients.connections_each", size(self.clients.connections_each), 1, NO_END),
            ("clients.requests_in_flight", size(self.clients.requests_in_flight), 1, NO_END),
            ("clients.buffer_bytes", size(self.clients.buffer_bytes), size(2 * limits::REQUEST_LINE_BYTES), NO_END),
            ("queue.running", size(self.queue.running), 1, NO_END),
            ("queue.running_each", size(self.queue.running_each), 1, NO_END),
            // A day at most: what is never over would be a worker that is never given back.
            ("vms.idle_timeout_ms", self.vms.idle_timeout_ms, 1, DAY_MS),
            ("vms.lifetime_ms", self.vms.lifetime_ms, 1, DAY_MS),
            ("vms.cpu_ms", u64::from(self.vms.cpu_ms), 1, DAY_MS),
            ("journal.retention_seconds", self.journal.retention_seconds, 600, NO_END),
            ("journal.evaluations_each", self.journal.evaluations_each, 1, NO_END),
            ("journal.bytes_each", self.journal.bytes_each, 1024 * 1024, NO_END),
            ("journal.bytes", self.journal.bytes, 8 * 1024 * 1024, NO_END),
            ("runtime.threads", size(self.runtime.threads), 0, size(THREADS_MOST)),
            ("audit.segment_bytes", self.audit.segment_bytes, 4096, NO_END),
            ("audit.segment_seconds", self.audit.segment_seconds, 1, NO_END),
        ]
    }

    fn log_level(&self) -> Result<(), ConfigFault> {
        if tracing_subscriber::EnvFilter::try_new(&self.server.log).is_ok() {
            return Ok(());
        }
        let log = brig_protocol::escape::escaped(&self.server.log, 100);
        Err(fault("server.log", log, "it must be error, warn, info, debug or trace"))
    }

    /// The ceilings of every principal.
    ///
    /// # Errors
    /// [`ConfigFault::Value`] for a limit that does not exist or is out of range.
    pub(crate) fn ceilings(&self) -> Result<Limits, ConfigFault> {
        limits_over(Limits::DEFAULT, "limits", &self.limits)
    }

    /// The file mode of the socket.
    ///
    /// # Errors
    /// [`ConfigFault::Value`] for anything but `0600` and `0660`.
    pub(crate) fn socket_mode(&self) -> Result<u32, ConfigFault> {
        mode("server.socket_mode", &self.server.socket_mode)
    }

    /// The file mode of the admin socket.
    ///
    /// # Errors
    /// [`ConfigFault::Value`] for anything but `0600` and `0660`.
    pub(crate) fn admin_socket_mode(&self) -> Result<u32, ConfigFault> {
        mode("server.admin_socket_mode", &self.server.admin_socket_mode)
    }

    /// How records are kept; nothing when they go to the log only.
    pub(crate) fn audit_rules(&self) -> Option<Rules> {
        let Audit { dir, segment_bytes, segment_seconds, keep_bytes, keep_days, sync, log } = self.audit.clone();
        Some(Rules { dir: dir?, segment_bytes, segment_seconds, keep_bytes, keep_days, sync, log })
    }

    /// How long running evaluations may go on after a stop was asked for.
    pub(crate) const fn drain(&self) -> Duration {
        Duration::from_millis(self.server.drain_ms)
    }
}

/// `base` with what a table of limits at `place` sets.
///
/// # Errors
/// [`ConfigFault::Value`] for a limit that does not exist or is out of range.
pub(crate) fn limits_over(base: Limits, place: &str, set: &BTreeMap<String, u64>) -> Result<Limits, ConfigFault> {
    let mut values = match serde_json::to_value(base) {
        Ok(serde_json::Value::Object(values)) => values,
        _ => serde_json::Map::new(),
    };
    for (name, value) in set {
        let setting = format!("{place}.{name}");
        let Some(row) = limits::LIMITS.iter().find(|row| row.setting.strip_prefix("limits.") == Some(name)) else {
            let known: Vec<&str> = limits::LIMITS.iter().map(|row| row.setting).collect();
            let near = crate::api::params::nearest(&format!("limits.{name}"), &known);
            let advice = near.map_or_else(|| format!("there are {}", known.join(", ")), |near| format!("did you mean {near}?"));
            return Err(fault(&setting, value, &format!("there is no such limit; {advice}")));
        };
        if *value < row.minimum || *value > row.maximum {
            return Err(fault(&setting, value, &format!("it must be between {} and {} {}", row.minimum, row.maximum, row.unit)));
        }
        values.insert(row.name.to_owned(), (*value).into());
    }
    serde_json::from_value(values.into()).map_err(|wrong| fault(place, wrong, "every limit is a whole number"))
}

/// A value that cannot be.
pub(crate) fn fault(setting: &str, value: impl std::fmt::Display, expected: &str) -> ConfigFault {
    ConfigFault::Value { setting: setting.to_owned(), value: value.to_string(), expected: expected.to_owned() }
}

fn within(setting: &str, value: u64, least: u64, most: u64) -> Result<(), ConfigFault> {
    let right = match most {
        _ if (least..=most).contains(&value) => return Ok(()),
        u64::MAX => format!("it must be at least {least}"),
        _ if least == 0 => format!("it must be at most {most}"),
        _ => format!("it must be between {least} and {most}"),
    };
    Err(fault(setting, value, &right))
}

fn mode(setting: &str, text: &str) -> Result<u32, ConfigFault> {
    match text {
        "0600" | "600" => Ok(0o600),
        "0660" | "660" => Ok(0o660),
        other => Err(fault(setting, other, "it must be \"0600\" or \"0660\"")),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn parsed(text: &str) -> Result<Config, ConfigFault> {
        let config = layers::parse_strictly(Path::new("brig.toml"), text)?;
        config.check()?;
        Ok(config)
    }

    #[test]
    fn nothing_set_is_the_embedded_default() {
        let config = parsed("").unwrap();
        assert_eq!(config.ceilings().unwrap(), Limits::DEFAULT);
        assert_eq!(config.socket_mode().unwrap(), 0o600);
    }

    #[test]
    fn a_misspelt_setting_is_named_with_its_place_and_what_there_is() {
        let fault = parsed("[workers]\nreddy = 3\n").unwrap_err().to_string();
        assert!(fault.contains("reddy") && fault.contains("ready") && fault.contains("line 2"), "{fault}");
    }

    #[test]
    fn limits_are_set_by_the_name_that_errors_tell() {
        assert_eq!(parsed("[limits]\ncpu_ms = 20000\n").unwrap().ceilings().unwrap().cpu_ms, 20_000);
        for row in limits::LIMITS {
            let name = row.setting.strip_prefix("limits.").unwrap();
            assert!(parsed(&format!("[limits]\n{name} = {}\n", row.maximum)).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_limit_out_of_range_or_unknown_is_refused_with_the_range() {
        let fault = parsed("[limits]\nheap_bytes = 1\n").unwrap_err().to_string();
        assert!(fault.contains("limits.heap_bytes") && fault.contains("262144"), "{fault}");
        assert!(parsed("[limits]\nheap = 1\n").unwrap_err().to_string().contains("limits.heap_bytes"));
        assert!(parsed("[limits]\ntimout_ms = 1\n").unwrap_err().to_string().contains("did you mean limits.timeout_ms?"));
    }

    #[test]
    fn a_value_that_would_hang_or_be_ignored_at_the_start_is_refused_by_name() {
        for (text, setting) in [
            ("[runtime]\nthreads = 1000000\n", "runtime.threads"),
            ("[workers]\ngeneration_seconds = 0\n", "workers.generation_seconds"),
            ("[server]\nlog = \"brigd=nonsense\"\n", "server.log"),
            ("[audit]\nsegment_bytes = 1\n", "audit.segment_bytes"),
            ("[audit]\nsegment_seconds = 0\n", "audit.segment_seconds"),
        ] {
            assert!(parsed(text).unwrap_err().to_string().contains(setting), "{text}");
        }
    }

    #[test]
    fn a_world_writable_socket_is_refused() {
        assert!(parsed("[server]\nsocket_mode = \"0666\"\n").is_err());
    }
}
