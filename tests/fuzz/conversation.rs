//! A worker's socket: what a hostile worker can make of a conversation, and what a worker
//! can make of its supervisor's messages.
//!
//! A script has one step a line. A line that begins with `{` (or anything else) is a body
//! from the worker; `>begin CALLS IN_FLIGHT` and `>answer CALL` are the supervisor's.

use crate::drive::{behaviour, fuzz};
use crate::same::assert_same;
use brig_protocol::client::Warning;
use brig_protocol::frame::{self, FrameDecoder, PREFIX_BYTES};
use brig_protocol::worker::{
    self, Conversation, FromSupervisor, FromWorker, Kind, Phase, Violation, read_from_supervisor, read_from_worker,
};
use std::collections::BTreeSet;

const WORDS: &[&str] = &[
    "\"jsonrpc\":\"2.0\"",
    "\"id\":1",
    "\"id\":2",
    "\"id\":3",
    "\"method\":\"host.call\"",
    "\"method\":\"output\"",
    "\"method\":\"ready\"",
    "\"params\":{\"function\":0,\"input\":{}}",
    "\"params\":null",
    "\"result\":null",
    "\"result\":{\"usage\":{\"cpuMs\":0,\"peakMemoryBytes\":0}}",
    "\"input\":null",
    "\"value\":null",
    "\"error\":null",
    "\"text\":\"x\"",
    "\"truncated\":true",
    "\"layers\":[]",
    "\"stream\":\"stderr\"",
    "null",
    "[]",
    "{}",
    ",",
    "{",
    "}",
    "\n",
    "\n>begin 3 2\n",
    "\n>answer 1\n",
    "\n>answer 2\n",
    "\n>begin 0 1\n",
    "\n>begin 9 9\n",
    "\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"host.call\",\"params\":{\"function\":0,\"input\":1}}\n",
    "\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"host.call\",\"params\":{\"function\":0,\"input\":1}}\n",
    "\n{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"host.call\",\"params\":{\"function\":0,\"input\":1}}\n",
    "\n{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"usage\":{\"cpuMs\":0,\"peakMemoryBytes\":0}}}\n",
];

/// What may be said, written down again without looking at how it is held.
#[derive(Default)]
struct Model {
    begun: u64,
    ready: bool,
    running: bool,
    last: u64,
    open: BTreeSet<u64>,
    calls: u64,
    in_flight: u64,
}

impl Model {
    fn phase(&self) -> Phase {
        match (self.ready, self.running, self.begun) {
            (false, ..) => Phase::Starting,
            (true, true, _) => Phase::Evaluating,
            (true, false, 0) => Phase::Ready,
            (true, false, _) => Phase::Finished,
        }
    }

    /// Whether the message is legal; if it is, it has happened.
    fn takes(&mut self, message: &FromWorker<'_>) -> bool {
        match message {
            FromWorker::Ready(_) => !std::mem::replace(&mut self.ready, true),
            FromWorker::Output { .. } | FromWorker::Warning(_) => self.running,
            FromWorker::HostCall { id, .. } => {
                let open = u64::try_from(self.open.len()).unwrap();
                let legal = self.running && *id == self.last + 1 && *id <= self.calls && open < self.in_flight;
                if legal {
                    self.last = *id;
                    self.open.insert(*id);
                }
                legal
            }
            FromWorker::Finished { id, .. } => {
                let legal = self.running && *id == self.begun;
                self.running &= !legal;
                legal
            }
        }
    }

    fn begins(&mut self, calls: u64, in_flight: u64) -> Option<u64> {
        if !self.ready || self.running {
            return None;
        }
        *self = Self { begun: self.begun + 1, ready: true, running: true, calls, in_flight, ..Self::default() };
        Some(self.begun)
    }
}

/// As the supervisor asks: the kind before the content.
fn admits(conversation: &mut Conversation, message: &FromWorker<'_>) -> Result<(), Violation> {
    conversation.admit(message.kind())?;
    match message {
        FromWorker::HostCall { id, .. } => conversation.call(*id),
        FromWorker::Finished { id, .. } => conversation.finish(*id),
        _ => Ok(()),
    }
}

/// The body that says what `message` does.
fn written(message: &FromWorker<'_>) -> String {
    let frame = match message {
        FromWorker::Ready(ready) => worker::ready_frame(ready),
        FromWorker::HostCall { id, function, input } => worker::host_call_frame(*id, *function, input.get()),
        FromWorker::Output { stream, text, truncated } => worker::output_frame(*stream, text, *truncated),
        FromWorker::Warning(warning) => worker::warning_frame(warning),
        FromWorker::Finished { id, finished } => worker::finished_frame(*id, finished),
    };
    String::from_utf8(frame.unwrap()[PREFIX_BYTES..].to_vec()).unwrap()
}

fn numbers(step: &str) -> [u64; 2] {
    let mut numbers = step.split(' ').skip(1).map(|number| number.trim().parse().unwrap_or(1));
    [numbers.next().unwrap_or(1), numbers.next().unwrap_or(1)]
}

/// One step of the supervisor's own.
fn supervisor_step(step: &str, conversation: &mut Conversation, model: &mut Model) -> &'static str {
    let [first, second] = numbers(step);
    if step.starts_with(">begin") {
        let begun = conversation.begin(first, second);
        assert_eq!(begun, model.begins(first, second));
        if begun.is_some() { "B" } else { "b" }
    } else {
        assert_eq!(conversation.answered(first), model.open.remove(&first));
        "a"
    }
}

/// One body of the worker, through its frame.
fn worker_step(body: &[u8], decoder: &mut FrameDecoder, conversation: &mut Conversation, model: &mut Model) -> String {
    let Ok(framed) = frame::build(|out| out.extend_from_slice(body)) else { return String::new() };
    let (head, tail) = framed.split_at(framed.len() / 2);
    decoder.feed(head);
    assert_eq!(decoder.next_frame(), Ok(None));
    decoder.feed(tail);
    let received = decoder.next_frame().unwrap().unwrap();
    assert_eq!(received, body);
    let message = match read_from_worker(received) {
        Ok(message) => message,
        Err(violation) => return violation.to_string(),
    };
    assert_same(std::str::from_utf8(body).unwrap(), &written(&message));
    let before = (conversation.phase(), conversation.open_calls().collect::<Vec<_>>());
    let admitted = admits(conversation, &message);
    assert_eq!(admitted.is_ok(), model.takes(&message), "{message:?}: {admitted:?}");
    let after = (conversation.phase(), conversation.open_calls().collect::<Vec<_>>());
    assert!(admitted.is_ok() || before == after, "what is refused changes nothing: {message:?}");
    match admitted {
        Ok(()) => format!("{:?}", message.kind()).chars().take(2).collect(),
        Err(violation) => violation.to_string(),
    }
}

/// Scripts of one legal evaluation, and of two in a kept worker.
fn scripts() -> Vec<Vec<u8>> {
    let bodies = crate::seeds::from_worker();
    let [ready, call1, call2, out, err, warning, finished1, failed1, finished2] = &bodies[..] else { panic!("nine bodies") };
    let begin = b">begin 3 2".to_vec();
    let answer = b">answer 1".to_vec();
    let script = |steps: &[&Vec<u8>]| steps.iter().map(|step| step.as_slice()).collect::<Vec<_>>().join(&b'\n');
    vec![
        script(&[ready, &begin, call1, out, &answer, call2, err, warning, finished1]),
        script(&[ready, &begin, call1, call2, failed1, &begin, call1, &answer, call2, finished2]),
        script(&[ready, &begin, finished1, &begin, finished2, &begin]),
    ]
}

#[test]
fn no_worker_says_more_than_the_phase_its_limits_and_its_ids_allow() {
    fuzz(&crate::target("conversation", WORDS, 85), scripts(), |input| {
        let mut conversation = Conversation::new();
        let mut decoder = FrameDecoder::new(frame::BODY_BYTES);
        let mut model = Model::default();
        let mut told = std::collections::VecDeque::new();
        for step in input.split(|byte| *byte == b'\n') {
            told.push_back(match std::str::from_utf8(step) {
                Ok(text) if text.starts_with('>') => supervisor_step(text, &mut conversation, &mut model).to_owned(),
                _ => worker_step(step, &mut decoder, &mut conversation, &mut model),
            });
            // The last steps and the state they led to tell scripts apart well enough.
            if told.len() > 3 {
                told.pop_front();
            }
            assert_eq!(conversation.phase(), model.phase());
            assert!(conversation.open_calls().eq(model.open.iter().copied()));
            assert!(u64::try_from(model.open.len()).unwrap() <= model.in_flight);
        }
        let state = format!(
            "{:?}{}{}",
            model.phase(),
            "o".repeat(model.open.len().min(4)),
            "b".repeat(usize::try_from(model.begun.min(4)).unwrap())
        );
        behaviour(&told.into_iter().chain([state]).collect::<String>())
    });
}

#[test]
fn a_body_from_a_worker_is_refused_or_understood_in_full() {
    fuzz(&crate::target("from-worker", WORDS, 90), crate::seeds::from_worker(), |input| match read_from_worker(input) {
        Ok(message) => {
            let again = written(&message);
            assert_same(std::str::from_utf8(input).unwrap(), &again);
            let reread = read_from_worker(again.as_bytes()).unwrap();
            assert_eq!(written(&reread), again);
            let detail = match &message {
                FromWorker::Finished { finished, .. } => {
                    format!("{} {:?}", finished.value.is_some(), finished.error.as_ref().map(|error| error.code))
                }
                FromWorker::Warning(Warning { code, path, .. }) => format!("{code:?} {}", path.is_some()),
                _ => String::new(),
            };
            behaviour(&format!("{:?} {detail}", message.kind()))
        }
        Err(Violation::Malformed(told)) => {
            assert!(told.len() <= 400 && !told.contains(|c: char| c.is_control()), "{told:?}");
            behaviour(&told)
        }
        Err(other) => panic!("{other} before anything was known of a conversation"),
    });
}

#[test]
fn a_body_from_the_supervisor_reads_back_as_it_was_understood() {
    let words: Vec<&str> = WORDS.iter().chain(crate::envelopes::WORDS).copied().collect();
    fuzz(&crate::target("from-supervisor", &words, 90), crate::seeds::from_supervisor(), |input| {
        let message = match read_from_supervisor(input) {
            Ok(message) => message,
            Err(told) => return behaviour(&told),
        };
        let frame = match &message {
            FromSupervisor::Evaluate { id, order } => worker::evaluate_frame(*id, order),
            FromSupervisor::HostResult { id, output } => worker::host_result_frame(*id, output.get()),
            FromSupervisor::HostFailure { id, failure } => worker::host_failure_frame(*id, failure),
            FromSupervisor::Cancel => worker::cancel_frame(),
            FromSupervisor::Rehearse => worker::rehearse_frame(),
        };
        let again = frame.unwrap()[PREFIX_BYTES..].to_vec();
        assert_same(std::str::from_utf8(input).unwrap(), std::str::from_utf8(&again).unwrap());
        let reread = read_from_supervisor(&again).unwrap();
        assert_eq!(format!("{reread:?}"), format!("{message:?}"));
        behaviour(&format!("{message:?}").chars().take(12).collect::<String>())
    });
}

#[test]
fn every_kind_has_its_phase_and_no_other() {
    let all = [Kind::Ready, Kind::HostCall, Kind::Output, Kind::Warning, Kind::Finished];
    let allowed = |phase: Phase| all.iter().filter(|kind| phase.allows(**kind)).count();
    assert_eq!([Phase::Starting, Phase::Ready, Phase::Evaluating, Phase::Finished].map(allowed), [1, 0, 4, 0]);
}
