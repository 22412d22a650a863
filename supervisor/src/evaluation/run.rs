//! The state of one evaluation, and what each event does to it.
//!
//! Owns the lease, the running host calls and the verdict.

use super::answering::Answering;
use super::clock::{Clock, Due};
use super::console::Console;
use super::end::HostTime;
use super::heard::frame_bytes;
use super::holding::Holding;
use super::parties::Parties;
use super::program::Program;
use super::registry::{Listed, Listing, OpenCalls};
use super::stop::{Stop, StopCause};
use super::verdict::Verdict;
use super::warnings::Warnings;
use crate::admission::Ticket;
use crate::channel::ChannelFault;
use crate::connection::budget::Held;
use crate::connection::outbox::Outbox;
use crate::host::call::{CallOutcome, HostCalls};
use crate::host::table::FunctionTable;
use crate::host::wall::Wall;
use crate::journal::Effects;
use crate::records::Records;
use crate::service::Service;
use crate::telemetry::Trace;
use brig_protocol::client::{CallRecord, EvaluationError, StartedNote, method};
use brig_protocol::codes::RequestCode;
use brig_protocol::frame::Body;
use brig_protocol::limits::Limits;
use brig_protocol::rpc::{self, ErrorData};
use brig_protocol::worker::{self, Violation, WorkerUsage};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::CancellationToken;

/// Most functions named in one sentence.
const NAMED: usize = 8;

/// Something that happened to an evaluation.
pub(super) enum Event {
    /// Somebody asks for its end.
    Stop(StopCause),
    /// A host call is over.
    Called(CallOutcome),
    /// Its worker said something, or is gone.
    Heard(Result<Body, ChannelFault>),
    /// Time to look at the clock, or the clock stands or runs differently.
    Time,
}

/// One evaluation that runs.
pub(crate) struct Run {
    pub(super) host: Arc<HostCalls<Answering, Records>>,
    pub(super) calls: FuturesUnordered<BoxFuture<'static, CallOutcome>>,
    /// The calls that are open.
    pub(super) open: Arc<OpenCalls>,
    pub(super) records: Vec<CallRecord>,
    pub(super) host_time: HostTime,
    pub(super) lease: Holding,
    pub(super) ticket: Ticket,
    pub(super) stop: Arc<Stop>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) stream: bool,
    pub(super) limits: Limits,
    pub(super) frame_bytes: u64,
    /// What waits for a worker that does not read.
    backlog: Held,
    pub(super) clock: Clock,
    pub(super) alarm: Pin<Box<Sleep>>,
    pub(super) console: Console,
    pub(super) warnings: Warnings,
    pub(super) verdict: Option<(Verdict, Instant)>,
    pub(super) waiting: Vec<String>,
    pub(super) told: Told,
    pub(super) service: Arc<Service>,
    /// What a collector is told, if it is.
    pub(super) trace: Option<Box<Trace>>,
    _listed: Listed,
}

/// What the worker said at its end.
#[derive(Default)]
pub(super) struct Told {
    /// What it used.
    pub(super) usage: WorkerUsage,
    /// Where the program was when it was interrupted.
    pub(super) place: Option<Box<EvaluationError>>,
}

impl Run {
    /// Sends the program to its worker.
    pub(super) fn dispatch(
        program: Program<'_>,
        table: FunctionTable,
        (ticket, mut lease): (Ticket, Holding),
        answering: Answering,
        (evaluation, effects): (String, Effects),
        parties: &Parties<'_>,
    ) -> Result<Self, ErrorData> {
        let limits = program.limits;
        let unusable = |what: String| ErrorData::new(RequestCode::WorkerUnavailable, format!("{what}; nothing ran"));
        let number = lease.conversation().begin(limits.host_calls, limits.host_calls_in_flight);
        let number = number.ok_or_else(|| unusable("the worker was not ready".to_owned()))?;
        let frame = worker::evaluate_frame(number, &program.order(table.collections())).map_err(|fault| {
            ErrorData::new(RequestCode::InvalidParams, format!("params are too large for a worker: {fault}; nothing ran"))
        })?;
        let now = Instant::now();
        let clock = Clock::start(now, lease.cpu_time().unwrap_or_default(), &limits);
        lease.limit_frames(usize::try_from(frame_bytes(&limits)).unwrap_or(usize::MAX));
        lease.queue(frame).map_err(|fault| unusable(fault.to_string()))?;
        program.record_start(&evaluation, parties);
        let mut warnings = Warnings::default();
        program.warnings.into_iter().for_each(|warning| warnings.keep(warning));
        let wall = Arc::new(Wall::until(now + Duration::from_millis(limits.timeout_ms)));
        let table = Arc::new(table);
        let open = Arc::new(OpenCalls::of(Arc::clone(&table)));
        let listing = Listing {
            facts: parties.facts.clone(),
            pid: parties.peer.pid,
            began: now,
            stop: Arc::clone(parties.stop),
            wall: Arc::clone(&wall),
            open: Arc::clone(&open),
        };
        let alarm = Box::pin(tokio::time::sleep_until(clock.next_look(wall.deadline())));
        let listed = parties.service.running.list(&evaluation, listing);
        // Looked at after it was listed: whoever revokes now finds it in the list.
        if parties.service.revocations.names_principal(parties.facts) {
            parties.stop.request(StopCause::PrincipalRevoked);
        }
        if program.announce {
            let note = StartedNote { id: parties.request.clone(), evaluation: evaluation.clone() };
            parties.outbox.send(rpc::notification(method::EVALUATION_STARTED, &note));
        }
        Ok(Self {
            host: Arc::new(HostCalls {
                evaluation,
                principal: parties.principal(),
                table,
                client: Arc::new(answering),
                audit: Arc::clone(&parties.service.audit),
                effects,
                judges: Arc::clone(&parties.service.judges),
                wall,
                facts: parties.facts.clone(),
                policy: Arc::clone(&parties.service.policy),
                policy_version: Arc::clone(&parties.grant.version),
                revocations: Arc::clone(&parties.service.revocations),
                approvals: Arc::clone(&parties.service.approvals),
                counts: parties.service.counters.for_evaluation(),
                cancelled: CancellationToken::new(),
            }),
            calls: FuturesUnordered::new(),
            open,
            records: Vec::new(),
            host_time: HostTime::default(),
            lease,
            ticket,
            stop: Arc::clone(parties.stop),
            outbox: Arc::clone(parties.outbox),
            stream: program.stream,
            limits,
            frame_bytes: frame_bytes(&limits),
            backlog: parties.service.budget.part(parties.peer.uid),
            alarm,
            clock,
            console: Console::new(limits.console_bytes, program.capture),
            warnings,
            verdict: None,
            waiting: Vec::new(),
            told: Told::default(),
            service: Arc::clone(parties.service),
            trace: None,
            _listed: listed,
        })
    }

    /// Told of to a collector.
    pub(super) fn traced(mut self, trace: Option<Box<Trace>>) -> Self {
        self.trace = trace;
        self
    }

    /// The id of this evaluation.
    pub(crate) fn id(&self) -> &str {
        &self.host.evaluation
    }

    /// Runs it to its end.
    pub(crate) async fn finish(mut self) -> super::Ended {
        loop {
            let event = self.next().await;
            if self.take(event).is_break() {
                return self.end().await;
            }
        }
    }

    /// What happens next.
    async fn next(&mut self) -> Event {
        let undecided = self.verdict.is_none();
        tokio::select! {
            biased;
            cause = self.stop.requested(), if undecided => Event::Stop(cause),
            Some(outcome) = self.calls.next(), if !self.calls.is_empty() => Event::Called(outcome),
            heard = self.lease.receive() => Event::Heard(heard),
            () = self.alarm.as_mut() => Event::Time,
            () = self.host.wall.turned() => Event::Time,
        }
    }

    /// Takes an event. A break is the end.
    fn take(&mut self, event: Event) -> ControlFlow<()> {
        match event {
            Event::Stop(StopCause::Cancelled) => self.decide_with_grace(Verdict::Stopped(StopCause::Cancelled)),
            Event::Stop(cause) => return self.decide(Verdict::Stopped(cause)),
            Event::Called(outcome) => {
                // A call that ends because the evaluation's time is over is no answer.
                let flow = self.look_at_clock();
                return if self.called(outcome).is_break() { ControlFlow::Break(()) } else { flow };
            }
            Event::Heard(Ok(body)) => match self.heard(&body) {
                Ok(flow) => return flow,
                Err(violation) => return self.decide(Verdict::Breach(violation)),
            },
            Event::Heard(Err(fault)) => return self.decide(verdict_of_fault(fault)),
            Event::Time => {
                let flow = self.look_at_clock();
                self.set_alarm();
                return flow;
            }
        }
        ControlFlow::Continue(())
    }

    fn look_at_clock(&mut self) -> ControlFlow<()> {
        let lease = &self.lease;
        match self.clock.look(Instant::now(), self.host.wall.deadline(), || lease.cpu_time()) {
            Due::Nothing => {}
            Due::TimedOut => self.decide_with_grace(Verdict::TimedOut),
            Due::CpuUsed => self.decide_with_grace(Verdict::CpuUsed),
            Due::Kill => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    /// Sets the verdict if there is none, and ends.
    pub(super) fn decide(&mut self, verdict: Verdict) -> ControlFlow<()> {
        if self.verdict.is_none() {
            self.waiting = self.open_functions();
            self.verdict = Some((verdict, Instant::now()));
        }
        ControlFlow::Break(())
    }

    /// Sets the verdict if there is none, ends the host calls, and gives the worker a
    /// moment to say its last.
    fn decide_with_grace(&mut self, verdict: Verdict) {
        if self.verdict.is_some() {
            return;
        }
        // It goes on only until the grace is over.
        if self.decide(verdict).is_break() {
            self.host.cancelled.cancel();
        }
        let asked = worker::cancel_frame().map_err(|fault| fault.to_string());
        if let Err(fault) = asked.and_then(|frame| self.lease.queue(frame).map_err(|fault| fault.to_string())) {
            tracing::debug!(fault, "a worker could not be asked to end");
        }
        self.clock.begin_grace(Instant::now());
        self.set_alarm();
    }

    fn set_alarm(&mut self) {
        let next = self.clock.next_look(self.host.wall.deadline());
        self.alarm.as_mut().reset(next);
    }

    fn called(&mut self, mut outcome: CallOutcome) -> ControlFlow<()> {
        self.call_over();
        let index = self.open.ended(outcome.record.call);
        // A worker that is busy with something else takes its answers later; until then
        // they are bytes that its user has waiting. Less than before always fits.
        let backlog = self.lease.backlog();
        let fits = self.backlog.resize(backlog) && (backlog == 0 || self.backlog.resize(backlog.saturating_add(outcome.frame.len())));
        if !fits {
            outcome = self.host.withheld(outcome);
        }
        let open = self.lease.conversation().answered(outcome.record.call);
        self.listed(outcome.record, index);
        // Decided: its worker is told to end, and nothing else.
        if !open || self.verdict.is_some() {
            return ControlFlow::Continue(());
        }
        match self.lease.queue(outcome.frame) {
            Ok(()) => ControlFlow::Continue(()),
            Err(fault) => self.decide(verdict_of_fault(fault)),
        }
    }

    /// Names of the functions whose calls are open, at most a few.
    fn open_functions(&self) -> Vec<String> {
        self.open.names(NAMED)
    }
}

fn verdict_of_fault(fault: ChannelFault) -> Verdict {
    match fault {
        ChannelFault::Closed | ChannelFault::Io(_) => Verdict::Died,
        ChannelFault::Frame(fault) => Verdict::Breach(Violation::Frame(fault)),
        ChannelFault::Stalled(_) | ChannelFault::QueueFull(_) => Verdict::Breach(Violation::Malformed(fault.to_string())),
    }
}
