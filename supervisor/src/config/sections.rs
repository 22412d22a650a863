//! The sections of the configuration besides `[principals]`, and their defaults.
//!
//! Owns names and defaults. Never checks a value: [`super::Config`] does.

use crate::audit::Durability;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// `[functions]`
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Functions {
    /// Folder with a file for each collection; without it `functions.d` beside the
    /// configuration file.
    pub(crate) dir: Option<PathBuf>,
}

impl Functions {
    /// The folder, if there is one: without a configuration file nothing is configured.
    pub(crate) fn folder(&self, config: Option<&Path>) -> Option<PathBuf> {
        let beside = |config: &Path| std::path::absolute(config).ok()?.parent().map(|folder| folder.join("functions.d"));
        self.dir.clone().or_else(|| config.and_then(beside))
    }
}

/// `[journal]`
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Kept {
    /// How long an evaluation stays after its end, in seconds; at least ten minutes.
    pub(crate) retention_seconds: u64,
    /// Most evaluations of one principal; the oldest go first.
    pub(crate) evaluations_each: u64,
    /// Most bytes of answers of one principal; the oldest go first.
    pub(crate) bytes_each: u64,
    /// Most bytes of the whole file.
    pub(crate) bytes: u64,
}

impl Default for Kept {
    fn default() -> Self {
        Self { retention_seconds: 7 * 86_400, evaluations_each: 10_000, bytes_each: 64 * 1024 * 1024, bytes: 1024 * 1024 * 1024 }
    }
}

/// `[audit]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Audit {
    /// Folder of the records; without it they go to the log.
    pub(crate) dir: Option<PathBuf>,
    /// A segment is sealed, and another begun, once it has so many bytes.
    pub(super) segment_bytes: u64,
    /// Or is so old, in seconds.
    pub(super) segment_seconds: u64,
    /// Sealed segments are removed, oldest first, while there are more bytes; 0: never.
    pub(super) keep_bytes: u64,
    /// Or when they are so many days old; 0: never.
    pub(super) keep_days: u64,
    /// When records are on disk.
    pub(super) sync: Durability,
    /// Whether each record goes to the log too.
    pub(super) log: bool,
}

impl Default for Audit {
    fn default() -> Self {
        Self {
            dir: None,
            segment_bytes: 64 * 1024 * 1024,
            segment_seconds: 86_400,
            keep_bytes: 0,
            keep_days: 0,
            sync: Durability::Second,
            log: true,
        }
    }
}

/// `[admin]`: who may speak on the admin socket besides root and the user that brigd
/// runs as.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Admin {
    /// Users, by id, for everything.
    pub(crate) uids: BTreeSet<u32>,
    /// Groups, by name or id, for everything.
    pub(crate) groups: Vec<String>,
    /// Whoever may decide approvals and see nothing else, as policy writes principals:
    /// `group:finance-approvers`. A rule says which of its calls they may decide.
    pub(crate) approvers: Vec<String>,
}

/// `[server]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Server {
    /// Path of the client socket; `--socket` wins.
    pub(crate) socket: Option<PathBuf>,
    /// File mode of the socket in octal, `0600` or `0660`.
    pub(crate) socket_mode: String,
    /// Path of the admin socket; `--admin-socket` wins. Without it there is none.
    pub(crate) admin_socket: Option<PathBuf>,
    /// File mode of the admin socket in octal, `0600` or `0660`.
    pub(crate) admin_socket_mode: String,
    /// How long running evaluations may go on after a stop was asked for, in
    /// milliseconds.
    pub(crate) drain_ms: u64,
    /// Directory for what outlives brigd; `--state` wins, then this, then systemd's
    /// `$STATE_DIRECTORY`. Without it nothing does.
    pub(crate) state_dir: Option<PathBuf>,
    /// `error`, `warn`, `info`, `debug` or `trace`.
    pub(crate) log: String,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            socket: None,
            socket_mode: "0600".to_owned(),
            admin_socket: None,
            admin_socket_mode: "0600".to_owned(),
            state_dir: None,
            drain_ms: 10_000,
            log: "info".to_owned(),
        }
    }
}

/// Least confinement with which brigd starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// Everything.
    Full,
    /// System-call filter, no new privileges, limits, and Landlock or namespaces.
    Strong,
    /// The same without Landlock and namespaces.
    Minimal,
}

/// `[sandbox]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Sandbox {
    /// Least confinement; brigd refuses to start below it.
    pub(crate) require: Level,
    /// Whether workers live in namespaces of their own where the kernel allows it.
    pub(crate) namespaces: bool,
    /// Whether each worker has a cgroup of its own: `true` demands it, `false` goes
    /// without, nothing takes what the service manager delegates.
    pub(crate) cgroup: Option<bool>,
    /// Memory of one worker in its cgroup, in bytes [default: `limits.heap_bytes` and
    /// 64 MiB].
    pub(crate) cgroup_memory_bytes: Option<u64>,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self { require: Level::Strong, namespaces: true, cgroup: None, cgroup_memory_bytes: None }
    }
}

/// How workers are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Origin {
    /// Copies of a warmed process.
    Fork,
    /// A fresh image each.
    Exec,
}

/// `[workers]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Workers {
    /// The worker binary; `--worker` wins. Without it: beside brigd, then libexec.
    pub(crate) path: Option<PathBuf>,
    /// How they are made.
    pub(crate) origin: Origin,
    /// How many wait, ready.
    pub(crate) ready: usize,
    /// How many may live at the same time.
    pub(crate) most: usize,
    /// First uid and number of uids for workers when brigd runs as root; without it root
    /// takes them from 400000 on.
    pub(crate) uid_range: Option<(u32, u32)>,
    /// A nursery is replaced after so many workers.
    pub(crate) generation_workers: u64,
    /// A nursery is replaced after so long, in seconds.
    pub(crate) generation_seconds: u64,
}

impl Default for Workers {
    fn default() -> Self {
        Self { path: None, origin: Origin::Fork, ready: 8, most: 128, uid_range: None, generation_workers: 10_000, generation_seconds: 600 }
    }
}

/// `[clients]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Clients {
    /// Most connections at one time.
    pub(crate) connections: usize,
    /// Most connections of one uid at one time.
    pub(crate) connections_each: usize,
    /// Most requests in flight on one connection.
    pub(crate) requests_in_flight: usize,
    /// Uids that may evaluate besides root and the one that brigd runs as.
    pub(crate) uids: BTreeSet<u32>,
    /// Bytes of lines from and to clients that brigd holds in all.
    pub(crate) buffer_bytes: usize,
    /// A client that takes nothing for so long while something waits for it is
    /// disconnected, in milliseconds.
    pub(crate) slow_reader_ms: u64,
}

impl Default for Clients {
    fn default() -> Self {
        Self {
            connections: 1024,
            connections_each: 256,
            requests_in_flight: 256,
            uids: BTreeSet::new(),
            buffer_bytes: 256 * 1024 * 1024,
            slow_reader_ms: 10_000,
        }
    }
}

/// `[queue]`
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Queue {
    /// Evaluations that run at the same time.
    pub(crate) running: usize,
    /// Evaluations of one principal that run at the same time.
    pub(crate) running_each: usize,
    /// Evaluations that wait.
    pub(crate) waiting: usize,
    /// Evaluations of one principal that wait.
    pub(crate) waiting_each: usize,
    /// Longest wait, in milliseconds; then `overloaded`.
    pub(crate) wait_ms: u64,
}

impl Default for Queue {
    fn default() -> Self {
        Self { running: 96, running_each: 64, waiting: 4096, waiting_each: 512, wait_ms: 10_000 }
    }
}

/// `[vms]`
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Vms {
    /// A vm in which nothing ran for so long ends, in milliseconds.
    pub(crate) idle_timeout_ms: u64,
    /// A vm ends after so long in any case, in milliseconds.
    pub(crate) lifetime_ms: u64,
    /// CPU time of a vm over all of its evaluations, in milliseconds.
    pub(crate) cpu_ms: u32,
    /// Vms of one principal.
    pub(crate) most_each: usize,
    /// Vms in all: each takes one of `workers.most`.
    pub(crate) most: usize,
}

impl Default for Vms {
    fn default() -> Self {
        Self { idle_timeout_ms: 300_000, lifetime_ms: 3_600_000, cpu_ms: 600_000, most_each: 4, most: 24 }
    }
}

/// `[runtime]`
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Runtime {
    /// Threads that serve clients and workers: 0 is one for each core, 1 serves
    /// everything on the main thread.
    pub(crate) threads: usize,
}
