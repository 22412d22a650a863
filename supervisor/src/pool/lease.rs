//! One worker in the hands of one evaluation.

use super::core::Core;
use crate::cgroup::{Kills, Leaf, Shortage};
use crate::channel::{Channel, ChannelFault};
use crate::lifecycle::{Event, Release, WorkerId};
use crate::spawn;
use brig_protocol::client::Sandbox;
use brig_protocol::frame::Body;
use brig_protocol::worker::Conversation;
use nix::time::ClockId;
use nix::unistd::Pid;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::SetOnce;

pub(crate) use crate::lifecycle::Fate;

/// How a worker ended, as the kernel told its nursery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// How.
    pub fate: Fate,
    /// CPU time of the whole process; zero when nobody can say.
    pub cpu: Duration,
    /// Largest resident set, bytes; 0 when nobody can say.
    pub max_rss_bytes: u64,
    /// The kernel killed it because memory ran out.
    pub shortage: Option<Shortage>,
}

impl Ended {
    const UNKNOWN: Self = Self { fate: Fate::Lost, cpu: Duration::ZERO, max_rss_bytes: 0, shortage: None };
}

/// What stays true of a worker while anybody cares for it.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) id: WorkerId,
    pub(super) pidfd: OwnedFd,
    /// Its process id as we see it, where we do.
    pub(super) pid: OnceLock<i32>,
    pub(super) sandbox: Arc<Sandbox>,
    /// Its cgroup, where it has one of its own.
    pub(super) leaf: OnceLock<Leaf>,
    pub(super) ended: SetOnce<Ended>,
}

/// How long a worker that closed its socket may take until its exit is reported, before it
/// is killed.
const EXIT_GRACE: Duration = Duration::from_millis(500);
/// How long after a kill until its exit is given up on. The nursery that does not report
/// it is replaced meanwhile.
const KILL_GRACE: Duration = Duration::from_secs(6);

/// A verified, ready, single-use worker. Dropping it kills the worker; [`Lease::retire`]
/// is the polite way.
#[derive(Debug)]
pub(crate) struct Lease {
    core: Arc<Core>,
    cell: Arc<Cell>,
    /// Nothing once hung up.
    channel: Option<Channel>,
    conversation: Conversation,
}

impl Lease {
    pub(super) fn new(core: Arc<Core>, cell: Arc<Cell>, channel: Channel, conversation: Conversation) -> Self {
        Self { core, cell, channel: Some(channel), conversation }
    }

    /// Slot and generation, for logs.
    pub(crate) fn worker(&self) -> WorkerId {
        self.cell.id
    }

    /// Its confinement.
    pub(crate) fn sandbox(&self) -> Arc<Sandbox> {
        Arc::clone(&self.cell.sandbox)
    }

    /// What it may say now; already past `ready`.
    pub(crate) fn conversation(&mut self) -> &mut Conversation {
        &mut self.conversation
    }

    /// Sends a frame: at once as far as the socket takes it; the rest is written while
    /// [`Lease::receive`] is awaited.
    ///
    /// # Errors
    /// [`ChannelFault`] when too much waits for a worker that does not read.
    pub(crate) fn queue(&mut self, frame: Vec<u8>) -> Result<(), ChannelFault> {
        self.channel.as_mut().map_or(Err(ChannelFault::Closed), |channel| channel.queue(frame))
    }

    /// From now on a frame with a longer body is a fault as soon as it is announced: what a
    /// worker can make us hold is what its evaluation may send, not what any may.
    pub(crate) fn limit_frames(&mut self, bytes: usize) {
        if let Some(channel) = &mut self.channel {
            channel.limit_frames(bytes);
        }
    }

    /// Bytes that wait for the worker to take them.
    pub(crate) fn backlog(&self) -> usize {
        self.channel.as_ref().map_or(0, Channel::backlog)
    }

    /// The next whole frame. Cancel-safe.
    ///
    /// # Errors
    /// [`ChannelFault`]; [`ChannelFault::Closed`] when the worker closed its end.
    pub(crate) async fn receive(&mut self) -> Result<Body, ChannelFault> {
        match &mut self.channel {
            Some(channel) => channel.receive().await,
            None => Err(ChannelFault::Closed),
        }
    }

    /// CPU time that the worker has used, by the kernel's account; nothing when it has
    /// ended or its process id is hidden from us.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        let pid = Pid::from_raw(*self.cell.pid.get()?);
        let used = ClockId::pid_cpu_clock_id(pid).ok()?.now().ok()?;
        // The id may be another's by now; if the pidfd's process lives, it was not.
        (!spawn::has_ended(self.cell.pidfd.as_fd())).then(|| Duration::from(used))
    }

    /// Whether the worker's process has ended.
    pub(super) fn is_dead(&self) -> bool {
        spawn::has_ended(self.cell.pidfd.as_fd())
    }

    /// Ends the worker now. [`Lease::ended`] tells when it has.
    pub(crate) fn kill(&self) {
        spawn::kill(self.cell.pidfd.as_fd());
    }

    /// Hangs up and waits until the worker has ended; one that lingers is killed. Bounded:
    /// when not even that is reported, the fate is [`Fate::Lost`].
    pub(crate) async fn ended(&mut self) -> Ended {
        self.channel = None;
        if let Ok(ended) = tokio::time::timeout(EXIT_GRACE, self.cell.ended.wait()).await {
            return self.by_the_shared_cgroup(*ended);
        }
        self.core.tell(Event::Released { worker: self.cell.id, release: Release::Killed });
        match tokio::time::timeout(KILL_GRACE, self.cell.ended.wait()).await {
            Ok(ended) => *ended,
            Err(_) => Ended::UNKNOWN,
        }
    }

    /// What the kernel's count says of a worker without a cgroup of its own, that nobody
    /// here killed.
    fn by_the_shared_cgroup(&self, ended: Ended) -> Ended {
        let killed = ended.shortage.is_none() && matches!(ended.fate, Fate::Signalled(9));
        let counted = killed && self.core.settings.kills.as_deref().is_some_and(Kills::one_more);
        if counted { Ended { shortage: Some(Shortage::Shared), ..ended } } else { ended }
    }

    /// Hangs up: the worker leaves by itself and is reaped in the background; one that
    /// lingers is killed.
    pub(crate) fn retire(mut self) {
        self.channel = None;
        self.core.tell(Event::Released { worker: self.cell.id, release: Release::Retired });
    }
}

impl Drop for Lease {
    /// After [`Lease::retire`] or [`Lease::ended`] this names a worker that is on its way
    /// out or gone, and changes nothing.
    fn drop(&mut self) {
        self.core.tell(Event::Released { worker: self.cell.id, release: Release::Killed });
    }
}

#[cfg(test)]
impl Lease {
    /// A handle that outlives the lease.
    pub(crate) fn watch_for_test(&self) -> OwnedFd {
        self.cell.pidfd.try_clone().unwrap_or_else(|fault| unreachable!("{fault}"))
    }

    /// The worker's process id as the test sees it.
    pub(crate) fn pid_for_test(&self) -> i32 {
        self.cell.pid.get().copied().unwrap_or_default()
    }
}
