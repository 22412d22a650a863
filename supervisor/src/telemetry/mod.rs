//! Traces for OpenTelemetry, where the operator names a collector.
//!
//! Owns what is told of an evaluation and its host calls ([`Trace`]), the bounded queue to
//! the exporter, and its form ([`otlp`]) and way out ([`export`]). Never content: no
//! program, input, output, message, and no name that a client or a guest chose. Never
//! makes anything wait: what there is no room for is dropped and counted. Without a
//! collector it is one `None`.

mod export;
mod otlp;

use crate::config::observe::Told;
use crate::metrics::{outcome_word, state_word};
use crate::service::Service;
use brig_protocol::client::{CallRecord, EvaluationError, Outcome};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Most spans that wait for the exporter.
const QUEUE: usize = 8_192;
/// Most host calls of one evaluation that have a span; the rest is counted in its own.
const CALLS: usize = 256;
/// How long the last spans may take to go out.
const LAST_SPANS: Duration = Duration::from_secs(2);

/// Something that took time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span {
    trace: [u8; 16],
    id: [u8; 8],
    parent: Option<[u8; 8]>,
    name: &'static str,
    began_ns: u64,
    ended_ns: u64,
    /// The code, when it did not end well.
    fault: Option<&'static str>,
    attributes: Vec<(&'static str, Attribute)>,
}

/// What is said of a span: from closed lists, numbers, names of the operator, and ids
/// that brigd made.
#[derive(Clone, Debug, PartialEq)]
enum Attribute {
    Word(&'static str),
    Name(String),
    Number(u64),
}

/// Tells of evaluations, or does not.
#[derive(Debug, Default)]
pub(crate) struct Telemetry {
    on: Option<On>,
}

#[derive(Debug)]
struct On {
    told: Told,
    /// Evaluations that no client traces, so far.
    seen: AtomicU32,
    spans: Mutex<Option<mpsc::Sender<Span>>>,
    queued: Mutex<Option<mpsc::Receiver<Span>>>,
}

impl Telemetry {
    /// Tells whom the operator named.
    pub(crate) fn new(told: Option<Told>) -> Self {
        let on = told.map(|told| {
            let (spans, queued) = mpsc::channel(QUEUE);
            On { told, seen: AtomicU32::new(0), spans: Mutex::new(Some(spans)), queued: Mutex::new(Some(queued)) }
        });
        Self { on }
    }

    /// Begins to tell of an evaluation, if it is to be told of. `parent` is the client's
    /// `traceparent`: what it says about sampling holds.
    pub(crate) fn begin(&self, parent: Option<&str>) -> Option<Box<Trace>> {
        let on = self.on.as_ref()?;
        let parent = parent.and_then(Parent::read);
        let wanted = match &parent {
            Some(parent) => parent.sampled,
            None => on.seen.fetch_add(1, Ordering::Relaxed).is_multiple_of(on.told.one_in),
        };
        if !wanted {
            return None;
        }
        let (trace, id) = (parent.as_ref().map_or_else(random, |parent| Some(parent.trace))?, random()?);
        Some(Box::new(Trace { trace, id, parent: parent.map(|parent| parent.span), began_ns: now_ns(), calls: Vec::new() }))
    }

    /// Hands spans on; those that there is no room for are dropped, and counted.
    fn hand_on(&self, spans: impl IntoIterator<Item = Span>, service: &Service) {
        let sender = self.on.as_ref().and_then(|on| on.spans.lock().unwrap_or_else(PoisonError::into_inner).clone());
        let [_, dropped, _] = &service.metrics.spans;
        for span in spans {
            if sender.as_ref().is_none_or(|sender| sender.try_send(span).is_err()) {
                dropped.count();
            }
        }
    }

    /// Starts to export. Nothing to do without a collector.
    pub(crate) fn start(service: &Arc<Service>) -> Option<JoinHandle<()>> {
        let on = service.telemetry.on.as_ref()?;
        let queued = on.queued.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        tracing::info!(endpoint = ?on.told.endpoint, one_in = on.told.one_in, "evaluations are told to a collector");
        Some(tokio::spawn(export::run(queued, on.told.clone(), Arc::clone(service))))
    }

    /// Exports what waits, for a bounded time.
    pub(crate) async fn close(&self, exporting: Option<JoinHandle<()>>) {
        if let Some(on) = &self.on {
            on.spans.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        if let Some(mut exporting) = exporting
            && tokio::time::timeout(LAST_SPANS, &mut exporting).await.is_err()
        {
            exporting.abort();
            tracing::warn!("the last spans did not reach the collector in time");
        }
    }
}

/// What a client's `traceparent` says.
struct Parent {
    trace: [u8; 16],
    span: [u8; 8],
    sampled: bool,
}

impl Parent {
    /// Of a text whose form was checked when it came.
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (_, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let (trace, span) = (u128::from_str_radix(trace, 16).ok()?, u64::from_str_radix(span, 16).ok()?);
        let flags = u8::from_str_radix(flags, 16).ok()?;
        (trace != 0 && span != 0).then(|| Self { trace: trace.to_be_bytes(), span: span.to_be_bytes(), sampled: flags & 1 == 1 })
    }
}

/// One evaluation that is told of.
#[derive(Debug)]
pub(crate) struct Trace {
    trace: [u8; 16],
    id: [u8; 8],
    parent: Option<[u8; 8]>,
    began_ns: u64,
    calls: Vec<Span>,
}

impl Trace {
    /// A host call is over; `configured` when its function is the operator's, whose name
    /// may be told.
    pub(crate) fn called(&mut self, record: &CallRecord, configured: bool) {
        let Some(id) = random().filter(|_| self.calls.len() < CALLS) else { return };
        let ended_ns = now_ns();
        let took = Duration::try_from_secs_f64(record.duration_ms / 1_000.0).unwrap_or_default();
        let mut attributes = vec![
            ("brig.call", Attribute::Number(record.call)),
            ("brig.call.state", Attribute::Word(state_word(record.state))),
            ("brig.call.input_bytes", Attribute::Number(record.input_bytes)),
            ("brig.call.output_bytes", Attribute::Number(record.output_bytes)),
            ("brig.function.kind", Attribute::Word(if configured { "configured" } else { "callback" })),
        ];
        let code = record.code.map(|code| code.as_str());
        attributes.extend(code.map(|code| ("error.type", Attribute::Word(code))));
        if configured {
            attributes.push(("brig.function", Attribute::Name(record.function.clone())));
        }
        self.calls.push(Span {
            trace: self.trace,
            id,
            parent: Some(self.id),
            name: "host call",
            began_ns: ended_ns.saturating_sub(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)),
            ended_ns,
            fault: code,
            attributes,
        });
    }

    /// The evaluation is over.
    pub(crate) fn ended(self, service: &Service, evaluation: &str, outcome: Outcome, error: Option<&EvaluationError>, calls: usize) {
        let code = error.map(|error| error.code.as_str());
        let mut attributes = vec![
            ("brig.evaluation", Attribute::Name(evaluation.to_owned())),
            ("brig.outcome", Attribute::Word(outcome_word(outcome))),
            ("brig.host_calls", Attribute::Number(u64::try_from(calls).unwrap_or(u64::MAX))),
        ];
        attributes.extend(code.map(|code| ("error.type", Attribute::Word(code))));
        let Self { trace, id, parent, began_ns, calls } = self;
        let own = Span { trace, id, parent, name: "evaluation", began_ns, ended_ns: now_ns(), fault: code, attributes };
        service.telemetry.hand_on(std::iter::once(own).chain(calls), service);
    }
}

fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let given = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty()).ok()?;
    (given == N && bytes.iter().any(|byte| *byte != 0)).then_some(bytes)
}

fn now_ns() -> u64 {
    u64::try_from(crate::time_of_day::now().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::config::observe::Endpoint;

    fn telemetry(one_in: u32) -> Telemetry {
        Telemetry::new(Some(Told { endpoint: Endpoint::Socket("/none".into()), one_in, metrics_seconds: 0 }))
    }

    #[test]
    fn a_clients_trace_goes_on_and_what_it_does_not_sample_is_not_told() {
        let telemetry = telemetry(1);
        let trace = telemetry.begin(Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")).unwrap();
        assert_eq!(u128::from_be_bytes(trace.trace), 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!(trace.parent.map(u64::from_be_bytes), Some(0xb7ad_6b71_6920_3331));
        assert!(telemetry.begin(Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")).is_none());
        assert_eq!(telemetry.begin(None).unwrap().parent, None);
    }

    #[test]
    fn one_in_so_many_is_told_and_none_when_it_is_off() {
        let telemetry = telemetry(3);
        let told: Vec<bool> = (0..6).map(|_| telemetry.begin(None).is_some()).collect();
        assert_eq!(told, [true, false, false, true, false, false]);
        assert!(Telemetry::default().begin(None).is_none());
    }

    #[test]
    fn a_program_with_many_calls_has_a_bounded_number_of_spans() {
        let mut trace = telemetry(1).begin(None).unwrap();
        let record = CallRecord {
            call: 1,
            function: "secret.name".to_owned(),
            state: brig_protocol::client::CallState::Completed,
            code: None,
            duration_ms: f64::NAN,
            input_bytes: 0,
            output_bytes: 0,
        };
        for _ in 0..10 * CALLS {
            trace.called(&record, false);
        }
        assert_eq!(trace.calls.len(), CALLS);
        assert!(!format!("{trace:?}").contains("secret.name"), "a client's name is not told");
    }
}
