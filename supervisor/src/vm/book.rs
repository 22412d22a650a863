//! Which vms there are, whose they are, and which are busy.
//!
//! Owns the quota and the memory of what was lost. Pure: time is an argument, and
//! nothing is ended here; what is removed is given back to whoever does.

use super::{Vm, not_found};
use crate::evaluation::Stop;
use brig_protocol::client::VmInfo;
use brig_protocol::codes::RequestCode;
use brig_protocol::rpc::ErrorData;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::time::Instant;

/// How many lost vms of one principal are remembered, so that it is told why.
const REMEMBERED_EACH: usize = 64;
/// How many lost vms are remembered in all.
const REMEMBERED: usize = 4096;

/// Why a vm was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// A program ran out of time.
    TimedOut,
    /// A program used its CPU time up, or the vm its own.
    CpuUsed,
    /// A program used more memory than it may.
    Memory,
    /// A program was ended, and its worker did not stop in time.
    Stopped,
    /// Its worker died.
    Died,
    /// Its worker broke its protocol.
    Breach,
    /// Nothing ran in it for too long.
    Idle,
    /// It may not live longer.
    Lifetime,
    /// The connection that made it went away.
    Abandoned,
}

impl Lost {
    /// What the caller reads.
    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Self::TimedOut => "an evaluation in it timed out",
            Self::CpuUsed => "its CPU time was used up",
            Self::Memory => "an evaluation in it used more memory than it may",
            Self::Stopped => "an evaluation in it was ended by force",
            Self::Died => "its worker died",
            Self::Breach => "its worker broke its protocol and was killed",
            Self::Idle => "nothing ran in it for longer than vms.idle_timeout_ms",
            Self::Lifetime => "it reached the limit of its lifetime, vms.lifetime_ms",
            Self::Abandoned => "the connection that made it went away",
        }
    }
}

/// One vm in the book.
#[derive(Debug)]
pub(super) struct Entry {
    vm: Arc<Vm>,
    uid: u32,
    connection: u64,
    made: Instant,
    evaluations: u64,
    /// The end of what runs in it.
    running: Option<Arc<Stop>>,
    idle_since: Instant,
}

impl Entry {
    /// A vm in which nothing has run yet.
    pub(super) const fn new(vm: Arc<Vm>, uid: u32, connection: u64, now: Instant) -> Self {
        Self { vm, uid, connection, made: now, evaluations: 0, running: None, idle_since: now }
    }
}

/// A vm that is out of the book and has to be ended.
#[derive(Debug)]
pub(super) struct Removed {
    /// The vm.
    pub(super) vm: Arc<Vm>,
    /// What runs in it.
    pub(super) running: Option<Arc<Stop>>,
}

#[derive(Debug)]
struct Memory {
    uid: u32,
    id: String,
    why: Lost,
}

/// How many vms policy lets one principal have.
#[derive(Clone, Debug)]
pub(super) struct Quota {
    /// So many.
    pub(crate) most: usize,
    /// Which setting says so.
    pub(crate) setting: String,
}

/// All vms of everybody.
#[derive(Debug)]
pub(super) struct Book {
    most_each: usize,
    most: usize,
    vms: HashMap<String, Entry>,
    /// Places of vms whose worker is being made.
    coming: HashMap<u32, usize>,
    lost: VecDeque<Memory>,
}

impl Book {
    pub(super) fn new(most_each: usize, most: usize) -> Self {
        Self { most_each, most, vms: HashMap::new(), coming: HashMap::new(), lost: VecDeque::new() }
    }

    /// Takes a place of the quota: that of `[vms]`, or a smaller one that policy gives.
    pub(super) fn reserve(&mut self, uid: u32, quota: Option<&Quota>) -> Result<(), ErrorData> {
        let own = self.vms.values().filter(|entry| entry.uid == uid).count() + self.coming.get(&uid).copied().unwrap_or_default();
        let all = self.vms.len() + self.coming.values().sum::<usize>();
        let full = |message: String, setting: &str| {
            let mut data = ErrorData::new(RequestCode::QuotaExceeded, message);
            data.setting = Some(setting.to_owned());
            data.retry_after_ms = Some(1_000);
            Err(data)
        };
        let (most, setting) = match quota {
            Some(quota) if quota.most < self.most_each => (quota.most, quota.setting.as_str()),
            _ => (self.most_each, "vms.most_each"),
        };
        if own >= most {
            let message = format!("user {uid} has {own} vms, which is as many as one may have; dispose of one; nothing was made");
            return full(message, setting);
        }
        if all >= self.most {
            return full("there are as many vms as may be; nothing was made".to_owned(), "vms.most");
        }
        *self.coming.entry(uid).or_default() += 1;
        Ok(())
    }

    /// Gives a place back.
    pub(super) fn give_up(&mut self, uid: u32) {
        if let Some(count) = self.coming.get_mut(&uid) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.coming.remove(&uid);
            }
        }
    }

    /// A vm takes its place.
    pub(super) fn fill(&mut self, entry: Entry) {
        self.give_up(entry.uid);
        self.vms.insert(entry.vm.id.clone(), entry);
    }

    /// Something is going to run in a vm.
    pub(super) fn begin(&mut self, uid: u32, id: &str, stop: &Arc<Stop>) -> Result<Arc<Vm>, ErrorData> {
        let Some(entry) = self.vms.get_mut(id).filter(|entry| entry.uid == uid) else {
            return Err(self.gone(uid, id));
        };
        if entry.running.is_some() {
            let mut data = ErrorData::new(RequestCode::VmBusy, format!("vm {id} runs another evaluation; one at a time; nothing ran"));
            data.retry_after_ms = Some(50);
            return Err(data);
        }
        entry.running = Some(Arc::clone(stop));
        entry.evaluations += 1;
        Ok(Arc::clone(&entry.vm))
    }

    /// Nothing runs in it any more.
    pub(super) fn finish(&mut self, id: &str, now: Instant) {
        if let Some(entry) = self.vms.get_mut(id) {
            entry.running = None;
            entry.idle_since = now;
        }
    }

    /// Since when nothing runs in it; nothing while something does.
    pub(super) fn idle_since(&self, id: &str) -> Option<Instant> {
        self.vms.get(id).filter(|entry| entry.running.is_none()).map(|entry| entry.idle_since)
    }

    /// Takes a vm out on its principal's word. Nothing: it was lost before, which is as
    /// good.
    pub(super) fn dispose(&mut self, uid: u32, id: &str) -> Result<Option<Removed>, ErrorData> {
        if self.vms.get(id).is_some_and(|entry| entry.uid == uid) {
            return Ok(self.take(id));
        }
        let before = self.lost.len();
        self.lost.retain(|memory| !(memory.uid == uid && memory.id == id));
        if self.lost.len() < before { Ok(None) } else { Err(not_found(id)) }
    }

    /// Takes a vm out, and remembers why.
    pub(super) fn lose(&mut self, id: &str, why: Lost) -> Option<Removed> {
        let uid = self.vms.get(id)?.uid;
        self.remember(uid, id, why);
        self.take(id)
    }

    /// The same for all that a connection made.
    pub(super) fn lose_connection(&mut self, connection: u64) -> Vec<Removed> {
        let made: Vec<String> = self.vms.values().filter(|entry| entry.connection == connection).map(|entry| entry.vm.id.clone()).collect();
        made.iter().filter_map(|id| self.lose(id, Lost::Abandoned)).collect()
    }

    /// A principal's, oldest first.
    pub(super) fn list(&self, uid: u32, now: Instant) -> Vec<VmInfo> {
        let mut own: Vec<&Entry> = self.vms.values().filter(|entry| entry.uid == uid).collect();
        own.sort_by_key(|entry| entry.made);
        own.into_iter()
            .map(|entry| VmInfo {
                vm: entry.vm.id.clone(),
                busy: entry.running.is_some(),
                evaluations: entry.evaluations,
                age_ms: ms_since(entry.made, now),
                idle_ms: if entry.running.is_some() { 0 } else { ms_since(entry.idle_since, now) },
            })
            .collect()
    }

    pub(super) fn count(&self) -> usize {
        self.vms.len()
    }

    fn take(&mut self, id: &str) -> Option<Removed> {
        self.vms.remove(id).map(|entry| Removed { vm: entry.vm, running: entry.running })
    }

    fn remember(&mut self, uid: u32, id: &str, why: Lost) {
        let own = self.lost.iter().filter(|memory| memory.uid == uid).count();
        let surplus = if own >= REMEMBERED_EACH {
            self.lost.iter().position(|memory| memory.uid == uid)
        } else {
            (self.lost.len() >= REMEMBERED).then_some(0)
        };
        if let Some(oldest) = surplus {
            self.lost.remove(oldest);
        }
        self.lost.push_back(Memory { uid, id: id.to_owned(), why });
    }

    fn gone(&self, uid: u32, id: &str) -> ErrorData {
        match self.lost.iter().find(|memory| memory.uid == uid && memory.id == id) {
            None => not_found(id),
            Some(memory) => {
                let message = format!("vm {id} is gone with its realm: {}; nothing ran", memory.why.sentence());
                let mut data = ErrorData::new(RequestCode::VmLost, message);
                data.hint = Some("make another with vm.create and run again what defined the names".to_owned());
                data
            }
        }
    }
}

fn ms_since(then: Instant, now: Instant) -> u64 {
    u64::try_from(now.saturating_duration_since(then).as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "book_tests.rs"]
mod tests;
