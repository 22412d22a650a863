//! Doing what the state machine decided, one action at a time, under its lock.
//!
//! Never blocks: what is done here are single system calls that do not wait, and tasks
//! that wait elsewhere.

use super::core::{Answer, Core, Held, NurseryHand};
use super::lease::{Ended, Lease};
use crate::cgroup::Leaf;
use crate::lifecycle::{Action, Event, Fate, NurseryId, Trouble, WorkerId};
use crate::nursery::{NurseryFault, exit_text};
use crate::spawn;
use brig_protocol::control::{Kind, Request, Spawn};
use brig_protocol::worker::rehearse_frame;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

impl Core {
    pub(super) fn act(self: &Arc<Self>, held: &mut Held, action: Action, unclaimed: &mut Vec<Answer>) {
        match action {
            Action::StartNursery(id) => self.start_nursery(held, id),
            Action::CloseNursery(id) => {
                if let Some(nursery) = held.nurseries.get_mut(&id) {
                    nursery.closing = true;
                    match &nursery.link {
                        Some(link) => link.close(),
                        None => nursery.kill.cancel(),
                    }
                }
            }
            Action::KillNursery(id) => {
                if let Some(nursery) = held.nurseries.get(&id) {
                    nursery.kill.cancel();
                }
            }
            Action::Spawn { nursery, worker, kept } => self.ask(held, nursery, worker, kept),
            Action::Rehearse(worker) => Self::let_rehearse(held, worker),
            Action::Grant { request, worker } => {
                let Some(lease) = self.lease_of(held, worker) else { return };
                match held.waiters.remove(&request) {
                    Some(waiter) => unclaimed.extend(waiter.send(Ok(lease)).err()),
                    None => unclaimed.push(Ok(lease)),
                }
            }
            Action::Refuse(request) => {
                if let Some(waiter) = held.waiters.remove(&request) {
                    unclaimed.extend(waiter.send(Err(Self::refusal(held))).err());
                }
            }
            Action::Kill(id) => {
                if let Some(hand) = held.hand(id) {
                    spawn::kill(hand.cell.pidfd.as_fd());
                }
            }
            Action::Bury(id) => self.bury(held, id),
            Action::Gone { worker, fate } => self.gone(held, worker, fate),
            Action::Note(trouble) => Self::note(held, trouble),
        }
    }

    fn start_nursery(self: &Arc<Self>, held: &mut Held, id: NurseryId) {
        let kill = CancellationToken::new();
        held.counts.nurseries_started += 1;
        held.nurseries.insert(id, NurseryHand { link: None, kill: kill.clone(), closing: false });
        self.runtime.spawn(Arc::clone(self).tend(id, kill));
    }

    fn ask(&self, held: &Held, nursery: NurseryId, worker: WorkerId, kept: bool) {
        let (kind, cpu_ms) = if kept { (Kind::Vm, self.settings.kept_cpu_ms) } else { (Kind::Once, self.settings.once_cpu_ms()) };
        let request = Request::Spawn(Spawn { slot: worker.slot, generation: worker.generation, cpu_ms, kind });
        let Some(link) = held.nurseries.get(&nursery).and_then(|nursery| nursery.link.as_ref()) else { return };
        if let Err(fault) = link.send(&request) {
            // Its task sees the end of the link, and tells.
            tracing::error!(%fault, nursery = nursery.0, "control link");
            link.close();
        }
    }

    /// A worker that can not be told is only slower; whether it still lives, its exit tells.
    fn let_rehearse(held: &mut Held, worker: WorkerId) {
        if let Some((channel, _)) = held.hand_mut(worker).and_then(|hand| hand.voice.as_mut())
            && let Ok(frame) = rehearse_frame()
            && let Err(fault) = channel.queue(frame)
        {
            tracing::debug!(%fault, "a worker was not told to rehearse");
        }
    }

    pub(super) fn lease_of(self: &Arc<Self>, held: &mut Held, worker: WorkerId) -> Option<Lease> {
        let hand = held.hand_mut(worker)?;
        let (channel, conversation) = hand.voice.take()?;
        Some(Lease::new(Arc::clone(self), Arc::clone(&hand.cell), channel, conversation))
    }

    /// The worker's nursery is gone; nobody will report its exit, so it is watched.
    fn bury(self: &Arc<Self>, held: &mut Held, id: WorkerId) {
        let Some(hand) = held.hand(id) else { return };
        let cell = Arc::clone(&hand.cell);
        spawn::kill(cell.pidfd.as_fd());
        let core = Arc::clone(self);
        self.runtime.spawn(async move {
            // Unbounded on its own: the state machine forgets the worker at its deadline,
            // and then this event names nobody.
            if spawn::await_exit(cell.pidfd.as_fd()).await.is_ok() {
                core.tell(Event::Exited { worker: id, fate: Fate::Lost });
            }
        });
    }

    fn gone(&self, held: &mut Held, id: WorkerId, fate: Fate) {
        held.counts.abnormal_deaths += u64::from(fate.is_abnormal());
        let Some(hand) = held.workers.get_mut(usize::from(id.slot)).and_then(|slot| slot.take_if(|hand| hand.cell.id == id)) else {
            return;
        };
        let (cpu, max_rss_bytes) = hand.spent;
        // One small read, and only for a worker that was killed.
        let killed = matches!(fate, Fate::Signalled(9) | Fate::Lost);
        let shortage = hand.cell.leaf.get().filter(|_| killed).and_then(Leaf::ran_out);
        // Set once, by the one `Gone` that there is for a worker.
        drop(hand.cell.ended.set(Ended { fate, cpu, max_rss_bytes, shortage }));
    }

    fn note(held: &mut Held, trouble: Trouble) {
        let fault = match trouble {
            Trouble::StartLate(_) => NurseryFault::StartLate,
            Trouble::SpawnLate(_) | Trouble::ExitLate(_) | Trouble::EndLate(_) => NurseryFault::Stalled,
            Trouble::HelloLate(_) => NurseryFault::HelloLate,
            Trouble::DiedEarly(_, Fate::Exited(code)) => NurseryFault::DiedEarly(exit_text(code)),
            Trouble::DiedEarly(_, Fate::Signalled(signal)) => NurseryFault::DiedEarly(format!("signal {signal}")),
            Trouble::DiedEarly(_, Fate::Lost) => NurseryFault::DiedEarly("its nursery was lost".to_owned()),
        };
        Self::complain(held, fault);
    }
}
