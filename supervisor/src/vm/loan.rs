//! A vm in the hands of one evaluation.
//!
//! Owns that it is given back, or lost, whatever happens to the evaluation.

use super::{Declared, Lost, Vm, Vms};
use crate::connection::link::Link;
use crate::pool::Lease;
use brig_protocol::codes::RequestCode;
use brig_protocol::rpc::ErrorData;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Longest wait for a worker that is there and idle.
const HAND_OVER: Duration = Duration::from_secs(5);

/// A vm that runs one evaluation. Dropped before the worker was taken, it is as before;
/// dropped with the worker, the vm is lost.
#[derive(Debug)]
pub(crate) struct Loan {
    vms: Arc<Vms>,
    vm: Arc<Vm>,
    cpu_ms: u32,
    back: Option<oneshot::Sender<Lease>>,
    settled: bool,
}

impl Loan {
    pub(super) const fn new(vms: Arc<Vms>, vm: Arc<Vm>, cpu_ms: u32) -> Self {
        Self { vms, vm, cpu_ms, back: None, settled: false }
    }

    /// Its vm's id.
    pub(crate) fn id(&self) -> &str {
        &self.vm.id
    }

    /// What holds for every evaluation in it.
    pub(crate) fn declared(&self) -> &Declared {
        &self.vm.declared
    }

    /// Who answers for the functions that were declared with it.
    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.vm.link
    }

    /// Its worker.
    ///
    /// # Errors
    /// `vm_lost`: it ended in this moment. Nothing ran.
    pub(crate) async fn lease(&mut self) -> Result<Lease, ErrorData> {
        let lent = async {
            let (want, lent) = oneshot::channel();
            self.vm.wants.send(want).await.ok()?;
            lent.await.ok()
        };
        match tokio::time::timeout(HAND_OVER, lent).await {
            Ok(Some((lease, back))) => {
                self.back = Some(back);
                Ok(lease)
            }
            Ok(None) | Err(_) => Err(self.gone("it ended in this moment")),
        }
    }

    /// What the vm may still use of its CPU time, in milliseconds; `None` without any.
    pub(crate) fn cpu_left(&self, used: Duration) -> Option<u64> {
        let used = u64::try_from(used.as_millis()).unwrap_or(u64::MAX);
        u64::from(self.cpu_ms).checked_sub(used).filter(|left| *left > 0)
    }

    /// Its CPU time is used up.
    pub(crate) fn used_up(self) -> ErrorData {
        let mut data = self.gone("its CPU time was used up");
        data.setting = Some("vms.cpu_ms".to_owned());
        self.lose(Lost::CpuUsed);
        data
    }

    /// The evaluation is over and the realm is as the program left it.
    pub(crate) fn give_back(mut self, lease: Lease) {
        self.settled = true;
        if let Some(back) = self.back.take() {
            // It comes back when the vm ended meanwhile, and is killed here.
            drop(back.send(lease));
        }
        self.vms.finish(&self.vm.id);
    }

    /// The evaluation is over and the realm with it. The worker is not given back.
    pub(crate) fn lose(mut self, why: Lost) {
        self.settled = true;
        self.vms.lose(&self.vm.id, why);
    }

    fn gone(&self, why: &str) -> ErrorData {
        let mut data = ErrorData::new(RequestCode::VmLost, format!("vm {} is gone with its realm: {why}; nothing ran", self.vm.id));
        data.hint = Some("make another with vm.create and run again what defined the names".to_owned());
        data
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        match self.back {
            None => self.vms.finish(&self.vm.id),
            Some(_) => self.vms.lose(&self.vm.id, Lost::Stopped),
        }
    }
}
