//! What the pool is told, and what follows from it.

use super::PoolError;
use crate::cgroup::{Cgroups, Kills};
use crate::channel::ChannelBounds;
use crate::lifecycle::Rules;
use brig_protocol::control::{Configure, Level, Origin};
use brig_protocol::limits::{Limits, row};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How workers are made, confined and kept.
#[derive(Clone, Debug)]
pub(crate) struct WorkerSettings {
    /// The program that is nursery and worker.
    pub worker_path: PathBuf,
    /// How workers are made.
    pub origin: Origin,
    /// Whether namespaces are tried.
    pub namespaces: bool,
    /// The least confinement with which the pool starts.
    pub require: Level,
    /// First user id and number of ids for workers, the nursery's included; only as root.
    pub uid_range: Option<(u32, u32)>,
    /// What no evaluation may go above; the kernel's limits follow from them.
    pub ceilings: Limits,
    /// CPU time of a kept worker over all of its evaluations, milliseconds.
    pub kept_cpu_ms: u32,
    /// Ready workers to hold, at least 1.
    pub ready: usize,
    /// Living workers at most, more than `ready`, at most 65,000.
    pub most: usize,
    /// Workers after which a nursery gets a successor, at least 1.
    pub generation_workers: u64,
    /// Age at which a nursery gets a successor.
    pub generation_age: Duration,
    /// How long refilling may wait while most ready workers are there.
    pub refill_delay: Duration,
    /// What one worker's socket may hold, and how long a frame may take.
    pub channel: ChannelBounds,
    /// Where each worker gets a cgroup of its own.
    pub cgroups: Option<Arc<Cgroups>>,
    /// Where workers share brigd's: what the kernel kills there.
    pub kills: Option<Arc<Kills>>,
}

impl Default for WorkerSettings {
    fn default() -> Self {
        let rules = Rules::default();
        Self {
            worker_path: PathBuf::from("/usr/lib/brig/brig-worker"),
            origin: Origin::Fork,
            namespaces: true,
            require: Level::Strong,
            uid_range: None,
            ceilings: Limits::DEFAULT,
            kept_cpu_ms: row("cpuMs").map_or(u32::MAX, |row| saturated(row.maximum)),
            ready: rules.ready,
            most: usize::from(rules.most),
            generation_workers: rules.generation_workers,
            generation_age: rules.generation_age,
            refill_delay: rules.refill_delay,
            channel: ChannelBounds::default(),
            cgroups: None,
            kills: None,
        }
    }
}

/// Main stack of a worker, bytes. The engine's own limit lies far below.
const STACK_BYTES: u64 = 8 << 20;
/// Address space of a worker beyond its heap limit: program, stack, and copies of what
/// comes and goes through the socket, bytes.
const ADDRESS_SPACE_BYTES: u64 = 256 << 20;
/// CPU time that making and touching a worker may take out of its budget, milliseconds.
const START_CPU_MS: u32 = 100;

fn saturated(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

impl WorkerSettings {
    /// The rules of the state machine.
    ///
    /// # Errors
    /// A sentence about a setting out of its range.
    pub(super) fn rules(&self) -> Result<Rules, PoolError> {
        let refuse = |text: String| Err(PoolError::Setting(text));
        if self.ready == 0 || self.ready >= self.most {
            return refuse(format!("workers.ready is {}; it must be at least 1 and less than workers.most ({})", self.ready, self.most));
        }
        let most = match u16::try_from(self.most) {
            Ok(most) if most <= 65_000 => most,
            _ => return refuse(format!("workers.most is {}; it must be at most 65000", self.most)),
        };
        if self.generation_workers == 0 {
            return refuse("workers.generation_workers is 0; it must be at least 1".to_owned());
        }
        if let Some((base, count)) = self.uid_range {
            let needed = u32::from(most) + 1;
            if base == 0 || count < needed || count > 65_000 || base.checked_add(count).is_none_or(|end| end == u32::MAX) {
                return refuse(format!(
                    "workers.uid_range is {base}+{count}; it must not hold 0 and needs {needed} to 65000 ids, one for each of workers.most and one more"
                ));
            }
        }
        Ok(Rules {
            ready: self.ready,
            most,
            generation_workers: self.generation_workers,
            generation_age: self.generation_age,
            refill_delay: self.refill_delay,
            ..Rules::default()
        })
    }

    /// What a nursery is told.
    pub(super) fn configure(&self) -> Configure {
        let (uid_base, uid_count) = self.uid_range.unwrap_or((0, 0));
        Configure {
            origin: self.origin,
            namespaces: self.namespaces,
            required: self.require,
            heap_bytes: self.ceilings.heap_bytes.max(1),
            stack_bytes: STACK_BYTES,
            address_space_bytes: self.ceilings.heap_bytes.saturating_add(ADDRESS_SPACE_BYTES),
            cpu_ms: self.kept_cpu_ms.max(self.once_cpu_ms()),
            uid_base,
            uid_count,
        }
    }

    /// CPU budget of a worker for one evaluation, milliseconds. The supervisor holds each
    /// evaluation to its own limit; this is what the kernel does when the supervisor can not.
    pub(super) fn once_cpu_ms(&self) -> u32 {
        saturated(self.ceilings.cpu_ms).saturating_add(START_CPU_MS)
    }

    /// The user id that the worker of a slot has, as the host sees it.
    pub(super) fn uid_of(&self, slot: u16) -> Option<u32> {
        self.uid_range.map(|(base, _)| base.saturating_add(1).saturating_add(u32::from(slot)))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use brig_protocol::control::Request;

    #[test]
    fn the_defaults_are_in_range_and_make_a_legal_configure() {
        let settings = WorkerSettings::default();
        settings.rules().unwrap();
        let configure = Request::Configure(settings.configure());
        assert_eq!(Request::decode(&configure.encode()), Ok(configure));
        assert!(settings.configure().cpu_ms >= settings.once_cpu_ms());
    }

    #[test]
    fn settings_out_of_range_are_refused_by_name() {
        let base = WorkerSettings::default;
        for (settings, name) in [
            (WorkerSettings { ready: 0, ..base() }, "workers.ready"),
            (WorkerSettings { ready: 8, most: 8, ..base() }, "workers.ready"),
            (WorkerSettings { most: 65_001, ..base() }, "workers.most"),
            (WorkerSettings { generation_workers: 0, ..base() }, "workers.generation_workers"),
            (WorkerSettings { uid_range: Some((1000, 10)), ..base() }, "workers.uid_range"),
            (WorkerSettings { uid_range: Some((0, 100)), ..base() }, "workers.uid_range"),
        ] {
            assert!(settings.rules().unwrap_err().to_string().contains(name));
        }
    }
}
