//! Who takes part in an evaluation besides its worker.
//!
//! Owns asking for the right to run and for a worker, each with a deadline and an end
//! when the client wants none any more.

use super::holding::Holding;
use super::program::{Program, Request};
use super::stop::{Stop, StopCause};
use crate::admission::{Part, Ticket};
use crate::connection::link::Link;
use crate::connection::outbox::Outbox;
use crate::host::configured::{Configured, UnknownCollection};
use crate::host::table::Granted;
use crate::journal::{Effects, Keep};
use crate::listener::Peer;
use crate::policy::{Facts, Grant, Live};
use crate::pool::{Lease, LeaseError};
use crate::service::Service;
use crate::vm::Loan;
use brig_protocol::client::{Principal, Warning, WarningCode};
use brig_protocol::codes::RequestCode;
use brig_protocol::rpc::{ErrorData, Id};
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for a worker once the queue has let an evaluation through.
const LEASE_WAIT: Duration = Duration::from_secs(10);

/// Who takes part in an evaluation besides its worker.
#[derive(Clone, Copy)]
pub(crate) struct Parties<'a> {
    /// What all connections share.
    pub(crate) service: &'a Arc<Service>,
    /// The client's request.
    pub(crate) request: &'a Id,
    /// For whom it runs, as the kernel says.
    pub(crate) peer: Peer,
    /// The same, in full.
    pub(crate) facts: &'a Facts,
    /// What the operator's policy says about it.
    pub(crate) grant: &'a Grant,
    /// That policy, and the one that holds later.
    pub(crate) live: &'a Live,
    /// By which connection it came.
    pub(crate) connection: u64,
    /// The client's callbacks.
    pub(crate) link: &'a Arc<Link>,
    /// The way to the client for notes.
    pub(crate) outbox: &'a Arc<Outbox>,
    /// How it is ended early.
    pub(crate) stop: &'a Arc<Stop>,
    /// Why its answer is asked for again, if it is.
    pub(crate) keep: &'a Keep,
}

impl Parties<'_> {
    /// What the operator lets this principal call, and the configured functions in it, of
    /// these collections.
    pub(crate) fn granted(&self, collections: Option<&[String]>) -> Result<(Granted, Vec<Arc<Configured>>), ErrorData> {
        let granted = Granted::of(self.grant);
        let offered = self.service.catalogue().offered(&granted.configured, collections).map_err(|unknown| unknown_collection(&unknown))?;
        Ok((granted, offered))
    }

    /// The right to run, when it is this principal's turn.
    pub(crate) async fn ticket(&self) -> Result<Ticket, ErrorData> {
        let quotas = &self.grant.quotas;
        let part = Part::new(self.service.config.queue, quotas.running, quotas.queued, &self.grant.section);
        let begun = std::time::Instant::now();
        let ticket = self.unless_stopped(self.service.admission.enter(self.peer.uid, self.connection, &part)).await;
        self.service.metrics.queue_wait.observe(begun.elapsed());
        ticket
    }

    /// What comes before a program runs, given up when the client wants it no more.
    pub(crate) async fn unless_stopped<T>(&self, work: impl Future<Output = Result<T, ErrorData>>) -> Result<T, ErrorData> {
        tokio::select! {
            biased;
            cause = self.stop.requested() => Err(stopped_before(cause)),
            done = work => done,
        }
    }

    /// The vm that the program asks for, and what holds in it: its limits are the
    /// ceilings of the program, whose heap is that of the vm as a whole.
    pub(super) fn borrowed<'r>(&self, program: &mut Program<'r>, request: &'r Request) -> Result<Option<Loan>, ErrorData> {
        let Some(id) = program.vm.as_deref() else { return Ok(None) };
        let loan = self.service.vms.borrow(self.peer.uid, id, self.stop)?;
        let declared = loan.declared();
        *program = request.program(&declared.limits)?;
        program.limits.heap_bytes = declared.limits.heap_bytes;
        if program.time_zone.is_none() {
            program.time_zone.clone_from(&declared.time_zone);
        }
        Ok(Some(loan))
    }

    /// The worker for a program: that of its vm, or one of its own.
    pub(super) async fn worker(&self, loan: Option<Loan>, program: &mut Program<'_>) -> Result<Holding, ErrorData> {
        let Some(mut loan) = loan else { return Ok(Holding::own(self.lease().await?)) };
        let lease = loan.lease().await?;
        let Some(left) = loan.cpu_left(lease.cpu_time().unwrap_or_default()) else { return Err(loan.used_up()) };
        if left < program.limits.cpu_ms {
            program.limits.cpu_ms = left;
            let message = format!("limit cpuMs is {left}: that is left of the CPU time of the vm; vms.cpu_ms raises it");
            program.warnings.push(Warning { code: WarningCode::LimitCut, message, path: None });
        }
        Ok(Holding::borrowed(lease, loan))
    }

    /// A worker for one evaluation.
    async fn lease(&self) -> Result<Lease, ErrorData> {
        self.awaited(self.service.pool.lease()).await
    }

    /// A worker that is kept.
    pub(crate) async fn lease_kept(&self) -> Result<Lease, ErrorData> {
        self.awaited(self.service.pool.lease_kept()).await
    }

    async fn awaited(&self, lease: impl Future<Output = Result<Lease, LeaseError>>) -> Result<Lease, ErrorData> {
        let leased = tokio::select! {
            biased;
            cause = self.stop.requested() => return Err(stopped_before(cause)),
            leased = tokio::time::timeout(LEASE_WAIT, lease) => leased,
        };
        let fault = match leased {
            Ok(Ok(lease)) => return Ok(lease),
            Ok(Err(fault)) => fault.to_string(),
            Err(_) => format!("none was ready within {} ms", LEASE_WAIT.as_millis()),
        };
        tracing::warn!(%fault, "no worker for an evaluation");
        let mut data = ErrorData::new(RequestCode::WorkerUnavailable, format!("there is no worker: {fault}; nothing ran"));
        data.retry_after_ms = Some(1_000);
        Err(data)
    }

    /// What the evaluation writes to the journal; itself, first, if it is to be kept.
    pub(super) async fn listed(&self, id: &str, worker: &Holding) -> Result<Effects, ErrorData> {
        let effects = Effects::of(&self.service.journal, id, self.peer.uid, worker.sandbox());
        match effects.keep(self.keep).await {
            Ok(()) => Ok(effects),
            Err(fault) => Err(crate::api::evaluations::not_kept(&fault)),
        }
    }

    pub(crate) const fn principal(&self) -> Principal {
        Principal { uid: self.peer.uid, gid: self.peer.gid }
    }
}

fn unknown_collection(unknown: &UnknownCollection) -> ErrorData {
    let name = brig_protocol::escape::escaped(&unknown.name, 100);
    let mut data =
        ErrorData::new(RequestCode::InvalidParams, format!("params.collections: there is no configured collection {name:?}; nothing ran"));
    data.hint = unknown.near.as_ref().map(|near| format!("did you mean {near:?}?"));
    data
}

fn stopped_before(cause: StopCause) -> ErrorData {
    let code = if cause == StopCause::ShuttingDown { RequestCode::ShuttingDown } else { RequestCode::Cancelled };
    ErrorData::new(code, format!("{} before it began; nothing ran", cause.sentence()))
}
