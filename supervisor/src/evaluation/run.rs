//! The state of one evaluation, and what each event does to it.
//!
//! Owns the lease, the running host calls and the verdict. Every worker frame passes
//! the conversation before its content is looked at.

use super::clock::{Clock, Due};
use super::console::Console;
use super::id;
use super::program::Program;
use super::registry::Listed;
use super::stop::{Stop, StopCause};
use super::verdict::{self, Judged, Verdict};
use super::warnings::Warnings;
use crate::admission::Ticket;
use crate::channel::ChannelFault;
use crate::connection::link::Link;
use crate::connection::outbox::Outbox;
use crate::host::call::{Asked, CallOutcome, HostCalls};
use crate::host::permission::ScopeSet;
use crate::host::table::FunctionTable;
use crate::listener::Peer;
use crate::pool::Lease;
use crate::records::Records;
use crate::service::Service;
use brig_protocol::client::{
    CallRecord, EvaluateResult, EvaluationError, OutputNote, Principal, StartedNote, Stream, Usage, Warning, WarningNote, method,
};
use brig_protocol::codes::{EvaluationCode, RequestCode};
use brig_protocol::frame::Body;
use brig_protocol::limits::Limits;
use brig_protocol::rpc::{self, ErrorData, Id};
use brig_protocol::worker::{self, Finished, FromWorker, Kind, Violation, WorkerUsage, read_from_worker};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::CancellationToken;

/// Longest wait for a worker once the queue has let an evaluation through.
const LEASE_WAIT: Duration = Duration::from_secs(10);
/// CPU time that a worker may have used before its program was sent, in milliseconds.
const USAGE_SLACK_MS: f64 = 1_000.0;
/// Most functions named in one sentence.
const NAMED: usize = 8;
/// Bytes of a frame besides its payload.
const ENVELOPE_BYTES: u64 = 1024 * 1024;

/// Who takes part in an evaluation besides its worker.
#[derive(Clone, Copy)]
pub(crate) struct Parties<'a> {
    /// What all connections share.
    pub(crate) service: &'a Arc<Service>,
    /// The client's request.
    pub(crate) request: &'a Id,
    /// For whom it runs, as the kernel says.
    pub(crate) peer: Peer,
    /// By which connection it came.
    pub(crate) connection: u64,
    /// The client's callbacks.
    pub(crate) link: &'a Arc<Link>,
    /// The way to the client for notes.
    pub(crate) outbox: &'a Arc<Outbox>,
    /// How it is ended early.
    pub(crate) stop: &'a Arc<Stop>,
}

impl Parties<'_> {
    /// What the operator lets this principal call: without a policy, whoever may
    /// evaluate may call what it declares.
    pub(super) fn scopes(&self) -> ScopeSet {
        ScopeSet::unconfigured(&self.principal(), self.peer.uid)
    }

    /// The right to run, when it is this principal's turn.
    pub(super) async fn ticket(&self) -> Result<Ticket, ErrorData> {
        tokio::select! {
            biased;
            cause = self.stop.requested() => Err(stopped_before(cause)),
            ticket = self.service.admission.enter(self.peer.uid, self.connection) => ticket,
        }
    }

    /// A worker of its own.
    pub(super) async fn lease(&self) -> Result<Lease, ErrorData> {
        let leased = tokio::select! {
            biased;
            cause = self.stop.requested() => return Err(stopped_before(cause)),
            leased = tokio::time::timeout(LEASE_WAIT, self.service.pool.lease()) => leased,
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

    const fn principal(&self) -> Principal {
        Principal { uid: self.peer.uid, gid: self.peer.gid }
    }
}

fn stopped_before(cause: StopCause) -> ErrorData {
    let code = if cause == StopCause::ShuttingDown { RequestCode::ShuttingDown } else { RequestCode::Cancelled };
    ErrorData::new(code, format!("{} before it began; nothing ran", cause.sentence()))
}

/// Something that happened to an evaluation.
pub(super) enum Event {
    /// Somebody asks for its end.
    Stop(StopCause),
    /// A host call is over.
    Called(CallOutcome),
    /// Its worker said something, or is gone.
    Heard(Result<Body, ChannelFault>),
    /// Time to look at the clock.
    Time,
}

/// An answer, and what is to be let go once the client has it.
pub(crate) struct Ended {
    /// The answer.
    pub(crate) result: EvaluateResult,
    /// The worker, to be retired.
    pub(crate) lease: Lease,
    /// The place in the queue.
    pub(crate) ticket: Ticket,
}

/// One evaluation that runs.
pub(super) struct Run {
    host: Arc<HostCalls<Link, Records>>,
    calls: FuturesUnordered<BoxFuture<'static, CallOutcome>>,
    /// Function of each call that runs, by call.
    open: BTreeMap<u64, u32>,
    records: Vec<CallRecord>,
    host_time: HostTime,
    lease: Lease,
    ticket: Ticket,
    stop: Arc<Stop>,
    outbox: Arc<Outbox>,
    stream: bool,
    limits: Limits,
    frame_bytes: u64,
    clock: Clock,
    alarm: Pin<Box<Sleep>>,
    console: Console,
    warnings: Warnings,
    verdict: Option<(Verdict, Instant)>,
    waiting: Vec<String>,
    told: Told,
    service: Arc<Service>,
    _listed: Listed,
}

/// What the worker said at its end.
#[derive(Default)]
struct Told {
    usage: WorkerUsage,
    place: Option<Box<EvaluationError>>,
}

impl Run {
    /// Sends the program to its worker.
    pub(super) fn dispatch(
        program: Program<'_>,
        table: FunctionTable,
        ticket: Ticket,
        mut lease: Lease,
        parties: &Parties<'_>,
    ) -> Result<Self, ErrorData> {
        let limits = program.limits;
        let evaluation = id::fresh("ev_")?;
        let unusable = |what: String| ErrorData::new(RequestCode::WorkerUnavailable, format!("{what}; nothing ran"));
        let number = lease.conversation().begin(limits.host_calls, limits.host_calls_in_flight);
        let number = number.ok_or_else(|| unusable("the worker was not ready".to_owned()))?;
        let frame = worker::evaluate_frame(number, &program.order(table.collections()))
            .map_err(|fault| ErrorData::new(RequestCode::InvalidParams, format!("params are too large for a worker: {fault}; nothing ran")))?;
        let now = Instant::now();
        let clock = Clock::start(now, lease.cpu_time().unwrap_or_default(), &limits);
        lease.queue(frame).map_err(|fault| unusable(fault.to_string()))?;
        let mut warnings = Warnings::default();
        program.warnings.into_iter().for_each(|warning| warnings.keep(warning));
        let listed = parties.service.running.list(&evaluation, parties.peer.uid, parties.stop);
        if program.announce {
            let note = StartedNote { id: parties.request.clone(), evaluation: evaluation.clone() };
            parties.outbox.send(rpc::notification(method::EVALUATION_STARTED, &note));
        }
        let until = now + Duration::from_millis(limits.timeout_ms);
        Ok(Self {
            host: Arc::new(HostCalls {
                evaluation,
                principal: parties.principal(),
                table: Arc::new(table),
                client: Arc::clone(parties.link),
                audit: Arc::clone(&parties.service.audit),
                judges: Arc::clone(&parties.service.judges),
                until: until.into_std(),
                cancelled: CancellationToken::new(),
            }),
            calls: FuturesUnordered::new(),
            open: BTreeMap::new(),
            records: Vec::new(),
            host_time: HostTime::default(),
            lease,
            ticket,
            stop: Arc::clone(parties.stop),
            outbox: Arc::clone(parties.outbox),
            stream: program.stream,
            limits,
            frame_bytes: frame_bytes(&limits),
            alarm: Box::pin(tokio::time::sleep_until(clock.next_look())),
            clock,
            console: Console::new(limits.console_bytes, program.capture),
            warnings,
            verdict: None,
            waiting: Vec::new(),
            told: Told::default(),
            service: Arc::clone(parties.service),
            _listed: listed,
        })
    }

    /// What happens next.
    pub(super) async fn next(&mut self) -> Event {
        let undecided = self.verdict.is_none();
        tokio::select! {
            biased;
            cause = self.stop.requested(), if undecided => Event::Stop(cause),
            Some(outcome) = self.calls.next(), if !self.calls.is_empty() => Event::Called(outcome),
            heard = self.lease.receive() => Event::Heard(heard),
            () = self.alarm.as_mut() => Event::Time,
        }
    }

    /// Takes an event. A break is the end.
    pub(super) fn take(&mut self, event: Event) -> ControlFlow<()> {
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
                self.alarm.as_mut().reset(self.clock.next_look());
                return flow;
            }
        }
        ControlFlow::Continue(())
    }

    fn look_at_clock(&mut self) -> ControlFlow<()> {
        let lease = &self.lease;
        match self.clock.look(Instant::now(), || lease.cpu_time()) {
            Due::Nothing => {}
            Due::TimedOut => self.decide_with_grace(Verdict::TimedOut),
            Due::CpuUsed => self.decide_with_grace(Verdict::CpuUsed),
            Due::Kill => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    /// Sets the verdict if there is none, and ends.
    fn decide(&mut self, verdict: Verdict) -> ControlFlow<()> {
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
        self.alarm.as_mut().reset(self.clock.next_look());
    }

    fn called(&mut self, outcome: CallOutcome) -> ControlFlow<()> {
        self.host_time.ended(Instant::now());
        self.open.remove(&outcome.record.call);
        let open = self.lease.conversation().answered(outcome.record.call);
        self.records.push(outcome.record);
        // Decided: its worker is told to end, and nothing else.
        if !open || self.verdict.is_some() {
            return ControlFlow::Continue(());
        }
        match self.lease.queue(outcome.frame) {
            Ok(()) => ControlFlow::Continue(()),
            Err(fault) => self.decide(verdict_of_fault(fault)),
        }
    }

    fn heard(&mut self, body: &Body) -> Result<ControlFlow<()>, Violation> {
        let length = u64::try_from(body.len()).unwrap_or(u64::MAX);
        if length > self.frame_bytes {
            return Err(Violation::Oversized { what: "frame", bytes: body.len(), limit: self.frame_bytes });
        }
        let message = read_from_worker(body)?;
        self.lease.conversation().admit(message.kind())?;
        match message {
            FromWorker::HostCall { id, function, input } => {
                self.lease.conversation().call(id)?;
                self.check_input(input.get().len())?;
                let functions = self.host.table.len();
                if usize::try_from(function).is_ok_and(|index| index >= functions) {
                    return Err(Violation::Function { index: function, functions });
                }
                let host = Arc::clone(&self.host);
                let asked = Asked { call: id, function, input: input.to_owned() };
                self.open.insert(id, function);
                self.host_time.begun(Instant::now());
                self.calls.push(Box::pin(async move { host.run(asked).await }));
            }
            FromWorker::Output { stream, text, truncated } => self.printed(stream, &text, truncated)?,
            FromWorker::Warning(warning) => self.warned(warning)?,
            FromWorker::Finished { id, finished } => {
                self.lease.conversation().finish(id)?;
                return self.finished(*finished);
            }
            FromWorker::Ready(_) => {
                return Err(Violation::Phase { phase: self.lease.conversation().phase(), kind: Kind::Ready });
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The worker rejects a larger input by itself.
    fn check_input(&self, bytes: usize) -> Result<(), Violation> {
        let limit = self.limits.input_bytes;
        if u64::try_from(bytes).unwrap_or(u64::MAX) > limit {
            return Err(Violation::Oversized { what: "input", bytes, limit });
        }
        Ok(())
    }

    /// What a worker says it used is told to the caller; what can not be is a breach.
    fn check_usage(&self, usage: &WorkerUsage) -> Result<(), Violation> {
        let possible = ms(self.clock.wall_since(Instant::now())) + USAGE_SLACK_MS;
        if !(0.0..=possible).contains(&usage.cpu_ms) || usage.peak_memory_bytes > self.limits.heap_bytes {
            return Err(Violation::Malformed("a usage that can not be".to_owned()));
        }
        Ok(())
    }

    fn printed(&mut self, stream: Stream, text: &str, truncated: bool) -> Result<(), Violation> {
        let fits = self.console.take(stream, text, truncated)?;
        if self.stream && !fits.is_empty() {
            let note = OutputNote { evaluation: self.host.evaluation.clone(), stream, text: fits.to_owned() };
            self.outbox.send_if_room(rpc::notification(method::EVALUATION_OUTPUT, &note));
        }
        Ok(())
    }

    fn warned(&mut self, warning: Warning) -> Result<(), Violation> {
        let kept = self.warnings.take(warning)?;
        if let Some(kept) = kept.filter(|_| self.stream) {
            let note = WarningNote { evaluation: self.host.evaluation.clone(), warning: kept.clone() };
            self.outbox.send_if_room(rpc::notification(method::EVALUATION_WARNING, &note));
        }
        Ok(())
    }

    fn finished(&mut self, finished: Finished<'_>) -> Result<ControlFlow<()>, Violation> {
        self.check_usage(&finished.usage)?;
        self.told.usage = finished.usage;
        if self.verdict.is_some() {
            self.told.place = finished.error.map(Box::new);
            return Ok(ControlFlow::Break(()));
        }
        let verdict = match (finished.value, finished.error) {
            (Some(_), Some(_)) => return Err(Violation::Malformed("both a value and an error".to_owned())),
            (None, Some(error)) => {
                self.told.place = matches!(error.code.as_str(), "timed_out" | "cpu_limit").then(|| Box::new(error.clone()));
                Verdict::of_error(error)?
            }
            (value, None) => {
                let bytes = value.map_or(0, |value| value.get().len());
                let limit = self.limits.result_bytes;
                if u64::try_from(bytes).unwrap_or(u64::MAX) > limit {
                    return Err(Violation::Oversized { what: "value", bytes, limit });
                }
                Verdict::Value(value.map(ToOwned::to_owned))
            }
        };
        Ok(self.decide(verdict))
    }

    /// The answer. The worker is killed unless it finished by itself.
    pub(super) async fn end(mut self) -> Ended {
        let (verdict, at) = self.verdict.take().unwrap_or((Verdict::Died, Instant::now()));
        self.end_calls().await;
        let mut cpu = self.lease.cpu_time();
        if verdict.kills() {
            self.lease.kill();
        }
        let report = if matches!(verdict, Verdict::Died) { Some(self.lease.ended().await) } else { None };
        if let Some(report) = &report {
            cpu = Some(report.cpu);
        }
        self.log(&verdict);
        let Judged { outcome, value, mut error } = verdict.judged(&self.limits, &self.waiting, report.as_ref());
        if let (Some(error), Some(place)) = (&mut error, self.told.place.take()) {
            verdict::add_place(error, *place);
        }
        self.service.metrics.ended(outcome);
        let usage = Usage {
            wall_ms: ms(self.clock.wall_since(at)),
            cpu_ms: cpu.map_or(self.told.usage.cpu_ms, |cpu| ms(self.clock.cpu_since(cpu))),
            host_ms: ms(self.host_time.total),
            approval_ms: 0.0,
            peak_memory_bytes: peak(&error, &self.told.usage, &self.limits),
            host_calls: u64::try_from(self.records.len()).unwrap_or(u64::MAX),
        };
        self.records.sort_unstable_by_key(|record| record.call);
        let printed = self.console.printed();
        let result = EvaluateResult {
            evaluation: self.host.evaluation.clone(),
            outcome,
            value,
            error,
            stdout: printed.stdout,
            stderr: printed.stderr,
            stdout_truncated: printed.stdout_truncated,
            stderr_truncated: printed.stderr_truncated,
            warnings: self.warnings.finish(),
            calls: self.records,
            usage,
            sandbox: (*self.lease.sandbox()).clone(),
        };
        Ended { result, lease: self.lease, ticket: self.ticket }
    }

    /// Ends what still runs; each call says what is known of its effect.
    async fn end_calls(&mut self) {
        self.host.cancelled.cancel();
        while let Some(outcome) = self.calls.next().await {
            self.host_time.ended(Instant::now());
            self.records.push(outcome.record);
        }
        self.host.client.forget(&self.host.evaluation);
    }

    /// Names of the functions whose calls are open, at most a few.
    fn open_functions(&self) -> Vec<String> {
        let open = self.open.values().filter_map(|index| self.host.table.get(*index));
        open.take(NAMED).map(|function| function.full_name.clone()).collect()
    }

    fn log(&self, verdict: &Verdict) {
        let evaluation = self.host.evaluation.as_str();
        match verdict {
            Verdict::Breach(violation) => {
                self.service.metrics.breaches.count();
                let violation = brig_protocol::escape::escaped(&violation.to_string(), 300);
                tracing::warn!(evaluation, %violation, "a worker broke its protocol and was killed");
            }
            Verdict::Died => tracing::warn!(evaluation, "a worker died"),
            _ => tracing::debug!(evaluation, "an evaluation is over"),
        }
    }
}

/// Time during which at least one host call was running.
#[derive(Debug, Default)]
struct HostTime {
    open: usize,
    since: Option<Instant>,
    total: Duration,
}

impl HostTime {
    fn begun(&mut self, now: Instant) {
        self.open += 1;
        self.since.get_or_insert(now);
    }

    fn ended(&mut self, now: Instant) {
        self.open = self.open.saturating_sub(1);
        if self.open == 0
            && let Some(since) = self.since.take()
        {
            self.total += now.saturating_duration_since(since);
        }
    }
}

/// No honest frame is longer: the largest payload, escaped where it is text.
fn frame_bytes(limits: &Limits) -> u64 {
    let payload = limits.input_bytes.max(limits.result_bytes).max(limits.console_bytes.saturating_mul(6));
    payload.saturating_add(ENVELOPE_BYTES)
}

fn verdict_of_fault(fault: ChannelFault) -> Verdict {
    match fault {
        ChannelFault::Closed | ChannelFault::Io(_) => Verdict::Died,
        ChannelFault::Frame(fault) => Verdict::Breach(Violation::Frame(fault)),
        ChannelFault::Stalled(_) | ChannelFault::QueueFull(_) => Verdict::Breach(Violation::Malformed(fault.to_string())),
    }
}

/// A worker that its heap limit ended had no time to say how much it held.
fn peak(error: &Option<EvaluationError>, told: &WorkerUsage, limits: &Limits) -> u64 {
    let at_limit = error.as_ref().is_some_and(|error| error.code == EvaluationCode::MemoryLimit);
    if at_limit { limits.heap_bytes } else { told.peak_memory_bytes }
}

/// Milliseconds with three decimals: the clock says no more.
fn ms(duration: Duration) -> f64 {
    let micros = u32::try_from(duration.as_micros()).map_or(f64::MAX, f64::from);
    if micros == f64::MAX { duration.as_secs_f64() * 1000.0 } else { micros / 1000.0 }
}
