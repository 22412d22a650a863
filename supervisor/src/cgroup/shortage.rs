//! Workers that the kernel killed because memory ran out, told from other kills.
//!
//! Owns what `memory.events` says of them: that of a worker's own cgroup, or, where workers
//! have none, that of the cgroup that they share with brigd. Never decides what is killed:
//! that is `oom_score_adj`, which the nursery raises for its workers.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// What ran out when the kernel killed a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// The worker's own cgroup held as many bytes as it may.
    Own(u64),
    /// What the worker shares with others: the service, `brig.slice`, or the host.
    Shared,
}

impl Shortage {
    /// By the `memory.events` of the worker's own cgroup, which may hold `most` bytes. A
    /// kill for lack of memory is counted where it happens, the lack only where it was.
    pub(super) fn of_leaf(events: &str, most: u64) -> Option<Self> {
        let killed = count(events, "oom_kill").max(count(events, "oom_group_kill")) > 0;
        killed.then(|| if count(events, "oom") > 0 { Self::Own(most) } else { Self::Shared })
    }
}

/// How often the kernel has killed for lack of memory in the cgroup that brigd is in, for
/// workers without one of their own.
#[derive(Debug)]
pub(crate) struct Kills {
    events: PathBuf,
    told: AtomicU64,
}

impl Kills {
    /// Counts from now on; nothing where the kernel does not count.
    pub(crate) fn watch() -> Option<Self> {
        Self::of(&super::own_cgroup().ok()?)
    }

    fn of(cgroup: &Path) -> Option<Self> {
        let events = cgroup.join("memory.events");
        let told = AtomicU64::new(kills(&events)?);
        Some(Self { events, told })
    }

    /// Whether the kernel has killed one more than was told of; asked once for each worker
    /// that nobody here killed. The kernel counts before it kills, so what is seen dead is
    /// counted.
    pub(crate) fn one_more(&self) -> bool {
        let Some(now) = kills(&self.events) else { return false };
        self.told.fetch_update(Ordering::AcqRel, Ordering::Acquire, |told| (told < now).then(|| told + 1)).is_ok()
    }
}

fn kills(events: &Path) -> Option<u64> {
    Some(count(&fs::read_to_string(events).ok()?, "oom_kill"))
}

fn count(events: &str, name: &str) -> u64 {
    let found = events.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok());
    found.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_kill_for_lack_of_memory_is_told_from_none_and_whose_memory_it_was() {
        let told = |events| Shortage::of_leaf(events, 4096);
        assert_eq!(told("low 0\nhigh 0\nmax 12\noom 1\noom_kill 0\noom_group_kill 0\n"), None);
        assert_eq!(told("low 0\nmax 12\noom 1\noom_kill 1\noom_group_kill 1\n"), Some(Shortage::Own(4096)));
        assert_eq!(told("low 0\nmax 0\noom 0\noom_kill 1\noom_group_kill 1\n"), Some(Shortage::Shared));
        assert_eq!(told("oom_kill nonsense\n"), None);
        assert_eq!(told(""), None);
    }

    #[test]
    fn each_kill_in_the_shared_cgroup_is_told_of_once() {
        let cgroup = tempfile::tempdir().unwrap();
        let say = |kills: u32| fs::write(cgroup.path().join("memory.events"), format!("oom 9\noom_kill {kills}\n")).unwrap();
        assert!(Kills::of(cgroup.path()).is_none(), "where the kernel does not count, nothing is known");
        say(3);
        let kills = Kills::of(cgroup.path()).unwrap();
        assert!(!kills.one_more(), "those before are not ours");
        say(5);
        assert!(kills.one_more() && kills.one_more());
        assert!(!kills.one_more(), "two were killed, not three");
    }
}
