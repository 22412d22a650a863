//! The task of one vm.
//!
//! Owns the worker while nothing runs in it, and the vm's clock. Lends the worker to
//! one evaluation after the other; ends when the vm does.

use super::{Lost, Vm, Vms};
use crate::pool::Lease;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

/// A worker, and the way back of it.
pub(super) type Lent = (Lease, oneshot::Sender<Lease>);
/// Somebody who has borrowed the vm wants its worker.
pub(super) type Want = oneshot::Sender<Lent>;

/// What ends a time in which nothing ran.
enum Next {
    /// Somebody wants the worker.
    Lend(Want),
    /// The vm is out of the book.
    End,
    /// It has to be taken out.
    Lost(Lost),
}

/// Keeps a vm until it ends. Nothing in here waits longer than the vm may live.
pub(super) async fn keep(vms: Arc<Vms>, vm: Arc<Vm>, mut lease: Lease, mut wants: mpsc::Receiver<Want>) {
    loop {
        match idle(&vms, &vm, &mut lease, &mut wants).await {
            Next::End => return lease.retire(),
            Next::Lost(why) => return vms.lose(&vm.id, why),
            Next::Lend(want) => {
                let (back, returned) = oneshot::channel();
                if let Err((unwanted, _)) = want.send((lease, back)) {
                    lease = unwanted;
                    continue;
                }
                lease = tokio::select! {
                    biased;
                    () = vm.end.cancelled() => return,
                    returned = returned => match returned {
                        Ok(lease) => lease,
                        // Whoever had it has said why, or was dropped with it.
                        Err(_) => return vms.lose(&vm.id, Lost::Stopped),
                    },
                    () = sleep_until(vm.dies) => return vms.lose(&vm.id, Lost::Lifetime),
                };
            }
        }
    }
}

async fn idle(vms: &Vms, vm: &Vm, lease: &mut Lease, wants: &mut mpsc::Receiver<Want>) -> Next {
    let mut look = Instant::now() + vms.idle_timeout();
    loop {
        tokio::select! {
            biased;
            () = vm.end.cancelled() => return Next::End,
            // Before a want: what a worker says between evaluations is of none of them.
            heard = lease.receive() => {
                let why = if heard.is_ok() { Lost::Breach } else { Lost::Died };
                tracing::warn!(vm = %vm.id, worker = ?lease.worker(), fault = ?heard.err(), "an idle vm's worker died or spoke");
                return Next::Lost(why);
            }
            want = wants.recv() => match want {
                Some(want) => return Next::Lend(want),
                // The vm holds the other end.
                None => return Next::End,
            },
            () = sleep_until(vm.dies) => return Next::Lost(Lost::Lifetime),
            () = sleep_until(look) => match vms.lose_if_idle(&vm.id, Instant::now()) {
                Some(later) => look = later,
                None => return Next::End,
            },
        }
    }
}
