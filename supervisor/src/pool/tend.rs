//! One task for each nursery, and one for each worker until it is verified.
//!
//! Owns the order of hearing: a worker is placed before the state machine hears of it, and
//! an exit is told only of a worker that this nursery made.

use super::core::Core;
use super::lease::Cell;
use crate::cgroup;
use crate::channel::Channel;
use crate::lifecycle::{Event, Fate, NurseryId, WorkerId};
use crate::nursery::{LinkFault, Mismatch, Nursery, NurseryFault, Packet, Scope, WorkerEnds, layer_names};
use crate::spawn;
use brig_protocol::client::Sandbox;
use brig_protocol::control::{Exited, Layers, Report, WaitStatus};
use brig_protocol::escape::escaped;
use brig_protocol::worker::{Conversation, FromWorker, Kind, read_from_worker};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How long a nursery that was told to go may take before it is killed, and then before
/// its end is no longer waited for.
const LEAVE_GRACE: Duration = Duration::from_secs(1);

/// What the workers of one nursery have in common.
#[derive(Debug)]
struct Family {
    id: NurseryId,
    layers: Layers,
    sandbox: Arc<Sandbox>,
    /// What all of them inherit has been looked at in one of them.
    examined: AtomicBool,
}

impl Core {
    /// A nursery's whole life.
    pub(super) async fn tend(self: Arc<Self>, id: NurseryId, kill: CancellationToken) {
        let started = tokio::select! {
            started = (self.seams.raise)(self.settings.worker_path.clone(), self.configure) => started,
            () = kill.cancelled() => Err(NurseryFault::StartLate),
        };
        match started {
            Ok(nursery) => {
                let fault = self.serve(id, &nursery, &kill).await;
                self.see_off(id, nursery, fault).await;
            }
            Err(fault) => {
                let mut held = self.hold();
                if !held.nurseries.get(&id).is_some_and(|nursery| nursery.closing) {
                    Self::complain(&mut held, fault);
                }
            }
        }
        self.hold().nurseries.remove(&id);
        self.tell(Event::NurseryEnded { nursery: id });
    }

    async fn serve(self: &Arc<Self>, id: NurseryId, nursery: &Nursery, kill: &CancellationToken) -> Option<NurseryFault> {
        let sandbox = self.with_cgroup(&nursery.sandbox);
        tracing::info!(nursery = id.0, level = sandbox.level, layers = ?sandbox.layers, "nursery ready");
        let family = Arc::new(Family { id, layers: nursery.layers, sandbox: Arc::clone(&sandbox), examined: AtomicBool::new(false) });
        {
            let mut held = self.hold();
            held.sandbox = sandbox;
            let hand = held.nurseries.get_mut(&id)?;
            hand.link = Some(Arc::clone(&nursery.link));
        }
        self.tell(Event::NurseryReady { nursery: id });
        loop {
            let packet = tokio::select! {
                packet = nursery.link.receive() => packet,
                () = kill.cancelled() => return None,
            };
            match packet {
                Ok(packet) => {
                    if let Some(fault) = self.hear(&family, packet) {
                        return Some(fault);
                    }
                }
                Err(LinkFault::Closed) => return Some(NurseryFault::Ended("it closed the control link".to_owned())),
                Err(fault) => return Some(fault.into()),
            }
        }
    }

    fn hear(self: &Arc<Self>, family: &Arc<Family>, packet: Packet) -> Option<NurseryFault> {
        let name = packet.name();
        match (packet.report, packet.ends) {
            (Report::Spawned(spawned), Some(ends)) => {
                self.born(family, WorkerId { slot: spawned.slot, generation: spawned.generation }, ends);
                None
            }
            (Report::SpawnFailed { slot, generation, errno }, None) => {
                let worker = WorkerId { slot, generation };
                let mut held = self.hold();
                if held.state.expects(worker, family.id) {
                    Self::complain(&mut held, NurseryFault::Spawn { errno });
                    let unclaimed = self.tell_held(&mut held, Event::SpawnFailed { worker });
                    drop(held);
                    drop(unclaimed);
                }
                None
            }
            (Report::Exited(exited), None) => {
                self.died(family, &exited);
                None
            }
            _ => Some(NurseryFault::Unexpected(name)),
        }
    }

    fn born(self: &Arc<Self>, family: &Arc<Family>, id: WorkerId, ends: WorkerEnds) {
        let mut held = self.hold();
        if !held.state.expects(id, family.id) {
            // Not asked for, or not any more: it has no place and must not live.
            spawn::kill(ends.pidfd.as_fd());
            return;
        }
        let cell = Arc::new(Cell {
            id,
            pidfd: ends.pidfd,
            pid: std::sync::OnceLock::new(),
            sandbox: Arc::clone(&family.sandbox),
            leaf: std::sync::OnceLock::new(),
            ended: tokio::sync::SetOnce::new(),
        });
        held.place(Arc::clone(&cell));
        let unclaimed = self.tell_held(&mut held, Event::Spawned { worker: id });
        drop(held);
        drop(unclaimed);
        tokio::spawn(Arc::clone(self).admit(Arc::clone(family), cell, ends.socket));
    }

    fn died(self: &Arc<Self>, family: &Family, exited: &Exited) {
        let worker = WorkerId { slot: exited.slot, generation: exited.generation };
        let fate = match exited.status {
            WaitStatus::Code(code) => Fate::Exited(code),
            WaitStatus::Signal(signal) => Fate::Signalled(signal),
        };
        let cpu = Duration::from_micros(exited.user_us.saturating_add(exited.system_us));
        let mut held = self.hold();
        if !held.state.knows(worker, family.id) {
            return;
        }
        held.spend(worker, cpu, exited.max_rss_kb.saturating_mul(1024));
        let unclaimed = self.tell_held(&mut held, Event::Exited { worker, fate });
        drop(held);
        drop(unclaimed);
    }

    /// From a live process to a worker of the pool. The state machine bounds it: at the
    /// deadline it kills the worker, which ends the wait for its hello.
    async fn admit(self: Arc<Self>, family: Arc<Family>, cell: Arc<Cell>, socket: OwnedFd) {
        let id = cell.id;
        match self.verify(&family, &cell, socket).await {
            Ok(Some(voice)) => {
                let mut held = self.hold();
                if let Some(hand) = held.hand_mut(id) {
                    hand.voice = Some(voice);
                }
                Self::prove(&mut held);
                let unclaimed = self.tell_held(&mut held, Event::Verified { worker: id });
                drop(held);
                drop(unclaimed);
            }
            // It is dead or dying; the exit report says why.
            Ok(None) | Err(Mismatch::Gone) => {}
            Err(mismatch) => {
                let mut held = self.hold();
                Self::complain(&mut held, mismatch.into());
                let unclaimed = self.tell_held(&mut held, Event::Rejected { worker: id });
                drop(held);
                drop(unclaimed);
            }
        }
    }

    async fn verify(&self, family: &Family, cell: &Cell, socket: OwnedFd) -> Result<Option<(Channel, Conversation)>, Mismatch> {
        let breach = |fault: String| Mismatch::Breach(escaped(&fault, 200));
        crate::channel::refuse_rights(&socket);
        let mut channel = Channel::new(socket, self.settings.channel).map_err(|fault| breach(fault.to_string()))?;
        let body = match channel.receive().await {
            Ok(body) => body,
            Err(crate::channel::ChannelFault::Closed) => return Ok(None),
            Err(fault) => return Err(breach(fault.to_string())),
        };
        let mut conversation = Conversation::new();
        conversation.admit(Kind::Ready).map_err(|fault| breach(fault.to_string()))?;
        let said = match read_from_worker(&body) {
            Ok(FromWorker::Ready(ready)) => ready.layers,
            Ok(message) => return Err(breach(format!("{:?} instead of a hello", message.kind()))),
            Err(fault) => return Err(breach(fault.to_string())),
        };
        if channel.has_unread() {
            return Err(breach("more than a hello".to_owned()));
        }
        if !layer_names(&family.layers).eq(said.iter().map(String::as_str)) {
            let promised = layer_names(&family.layers).collect::<Vec<_>>().join(", ");
            return Err(Mismatch::Hello { said: escaped(&said.join(", "), 500), promised });
        }
        self.examine(family, cell, &channel)?;
        self.enrol(cell).await?;
        Ok(Some((channel, conversation)))
    }

    /// A cgroup of its own, where there are any: a worker without it is not handed out.
    async fn enrol(&self, cell: &Cell) -> Result<(), Mismatch> {
        let Some(cgroups) = self.settings.cgroups.clone() else { return Ok(()) };
        let (id, Some(pid)) = (cell.id, cell.pid.get().copied()) else {
            return Err(Mismatch::Cgroup("its process id is not to be seen".to_owned()));
        };
        let begun = Instant::now();
        // The kernel may wait long for this.
        let enrolled = tokio::task::spawn_blocking(move || cgroups.enrol(id, pid)).await;
        let leaf = enrolled.map_err(|fault| Mismatch::Cgroup(fault.to_string()))?;
        // What was moved is this worker only if it lives now: process ids are used again.
        if spawn::has_ended(cell.pidfd.as_fd()) {
            return Err(Mismatch::Gone);
        }
        cell.leaf.set(leaf.map_err(|fault| Mismatch::Cgroup(fault.to_string()))?).unwrap_or(());
        self.hold().counts.cgroup_time += begun.elapsed();
        Ok(())
    }

    /// The layers as callers are told them.
    fn with_cgroup(&self, sandbox: &Arc<Sandbox>) -> Arc<Sandbox> {
        if self.settings.cgroups.is_none() {
            return Arc::clone(sandbox);
        }
        let mut sandbox = Sandbox::clone(sandbox);
        sandbox.layers.push(cgroup::LAYER.to_owned());
        Arc::new(sandbox)
    }

    /// What the kernel says. All of it for the first worker of a nursery.
    fn examine(&self, family: &Family, cell: &Cell, channel: &Channel) -> Result<(), Mismatch> {
        let begun = Instant::now();
        let whole = !family.examined.load(Ordering::Acquire);
        let scope = Scope { layers: family.layers, uid: self.settings.uid_of(cell.id.slot) };
        let worker = (self.seams.read_back)(&cell.pidfd, channel.as_fd(), &scope, whole)?;
        if let Some(pid) = worker.pid {
            cell.pid.set(pid).unwrap_or(());
        }
        let mut held = self.hold();
        held.counts.read_back_time += begun.elapsed();
        if whole {
            family.examined.store(true, Ordering::Release);
            held.counts.read_back = worker.facts.names();
            tracing::info!(nursery = family.id.0, read = ?held.counts.read_back, "read back from the kernel");
        }
        Ok(())
    }

    /// Sees a nursery's process gone. What remains of its workers, the state machine buries.
    async fn see_off(&self, id: NurseryId, nursery: Nursery, fault: Option<NurseryFault>) {
        let closing = self.hold().nurseries.get(&id).is_none_or(|hand| hand.closing);
        nursery.link.close();
        let Some(process) = nursery.process else {
            if !closing {
                Self::complain(&mut self.hold(), fault.unwrap_or(NurseryFault::Stalled));
            }
            return;
        };
        let pidfd = process.pidfd().try_clone_to_owned();
        if !closing || fault.is_none() {
            process.kill();
        }
        let status = tokio::time::timeout(LEAVE_GRACE, process.ended()).await.ok().flatten();
        if let Ok(pidfd) = pidfd {
            // Dropping the process killed it, when it had not left by itself.
            drop(tokio::time::timeout(LEAVE_GRACE, spawn::await_exit(pidfd.as_fd())).await);
        }
        if !closing {
            tracing::error!(nursery = id.0, ?status, "nursery lost");
            Self::complain(&mut self.hold(), fault.unwrap_or(NurseryFault::Stalled));
        }
    }
}
