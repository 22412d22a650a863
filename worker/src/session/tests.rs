//! Drives a session over a socket pair, as the supervisor does.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod ends;
mod errors;
mod guest_world;
mod host_calls;
mod immortal;
mod values;

use std::{
    io::{Read, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    thread,
    time::Duration,
};

use brig_protocol::{
    client::{EvaluationError, Stream, Warning, WarningCode},
    codes::CallCode,
    frame::FrameDecoder,
    limits::Limits,
    worker::{
        CollectionTable, EvaluateOrder, FromWorker, HostFailure, WorkerUsage, cancel_frame, evaluate_frame, host_failure_frame,
        host_result_frame, read_from_worker, rehearse_frame,
    },
};
use serde_json::value::RawValue;

use super::{Facts, serve};
use crate::engine::{Ceilings, reseed, settle, touch, warm};
use crate::source::{Form, Language};

/// How the simulated host answers one call.
pub(super) enum Reply {
    Json(&'static str),
    Echo,
    Fail(CallCode, &'static str),
    Never,
    Cancel,
}

/// What one evaluation gave.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) value: Option<String>,
    pub(super) error: Option<EvaluationError>,
    pub(super) usage: WorkerUsage,
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) truncated: Vec<Stream>,
    pub(super) warnings: Vec<Warning>,
    /// Function index and input of each call, in order.
    pub(super) calls: Vec<(u32, String)>,
    /// `call`, `output`, in the order of arrival.
    pub(super) events: Vec<&'static str>,
}

impl Answer {
    pub(super) fn value(&self) -> &str {
        self.value.as_deref().unwrap_or_else(|| panic!("no value: {self:?}"))
    }

    pub(super) fn error(&self) -> &EvaluationError {
        self.error.as_ref().unwrap_or_else(|| panic!("no error: {self:?}"))
    }

    pub(super) fn warned(&self, code: WarningCode) -> Vec<&str> {
        self.warnings.iter().filter(|warning| warning.code == code).map(|warning| warning.message.as_str()).collect()
    }
}

/// A worker in a thread, and the supervisor's end of its socket.
pub(super) struct Worker {
    socket: UnixStream,
    decoder: FrameDecoder,
    evaluations: u64,
}

impl Worker {
    pub(super) fn start() -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let body = move || {
            let realm = warm(&Ceilings::default()).unwrap();
            touch(&realm).unwrap();
            settle(&realm);
            reseed(&realm, &[7; 64]);
            touch(&realm).unwrap();
            serve(&realm, OwnedFd::from(theirs), &Facts { layers: vec!["seccomp".to_owned()] });
        };
        thread::Builder::new().stack_size(16 << 20).spawn(body).unwrap();
        let mut worker = Self { socket: ours, decoder: FrameDecoder::new(64 << 20), evaluations: 0 };
        worker.receive(|message| assert!(matches!(message, FromWorker::Ready(ready) if ready.layers == ["seccomp"])));
        worker
    }

    fn receive<R>(&mut self, take: impl FnOnce(FromWorker<'_>) -> R) -> R {
        let mut buffer = [0; 65536];
        loop {
            if let Some(body) = self.decoder.next_frame().unwrap() {
                let message = read_from_worker(body).unwrap_or_else(|fault| panic!("{fault}: {}", String::from_utf8_lossy(body)));
                return take(message);
            }
            let count = self.socket.read(&mut buffer).expect("the worker said nothing for long");
            assert!(count > 0, "the worker hung up");
            self.decoder.feed(&buffer[..count]);
        }
    }

    pub(super) fn send(&mut self, frame: &[u8]) {
        self.socket.write_all(frame).unwrap();
    }

    pub(super) fn rehearse(&mut self) {
        self.send(&rehearse_frame().unwrap());
    }

    pub(super) fn evaluate(&mut self, program: &Program) -> Answer {
        self.evaluations += 1;
        let inputs = program.inputs.map(|inputs| serde_json::from_str::<&RawValue>(inputs).unwrap());
        let order = EvaluateOrder {
            source: program.source.as_str().into(),
            form: Form::Auto,
            language: Language::Auto,
            inputs,
            collections: program.table(),
            limits: program.limits,
            time_zone: program.time_zone.map(Into::into),
            keep: program.keep,
            parse_only: program.parse_only,
        };
        self.send(&evaluate_frame(self.evaluations, &order).unwrap());
        let mut answer = Answer::default();
        loop {
            let mut call = None;
            let finished = self.receive(|message| {
                match message {
                    FromWorker::Output { stream, text, truncated } => {
                        answer.events.push("output");
                        if truncated {
                            answer.truncated.push(stream);
                        }
                        match stream {
                            Stream::Stdout => answer.stdout.push_str(&text),
                            Stream::Stderr => answer.stderr.push_str(&text),
                        }
                    }
                    FromWorker::Warning(warning) => answer.warnings.push(warning),
                    FromWorker::HostCall { id, function, input } => {
                        answer.events.push("call");
                        answer.calls.push((function, input.get().to_owned()));
                        call = Some((id, function, input.get().to_owned()));
                    }
                    FromWorker::Finished { id, finished } => {
                        assert_eq!(id, self_evaluations(program, id));
                        answer.value = finished.value.map(|value| value.get().to_owned());
                        answer.error = finished.error;
                        answer.usage = finished.usage;
                        return true;
                    }
                    FromWorker::Ready(_) => panic!("ready twice"),
                }
                false
            });
            if finished {
                return answer;
            }
            if let Some((id, function, input)) = call {
                self.reply(id, (program.host)(function, &input), &input);
            }
        }
    }

    fn reply(&mut self, id: u64, reply: Reply, input: &str) {
        match reply {
            Reply::Json(text) => self.send(&host_result_frame(id, text).unwrap()),
            Reply::Echo => self.send(&host_result_frame(id, input).unwrap()),
            Reply::Fail(code, message) => {
                let failure = HostFailure { code, name: None, message: message.into(), function_code: None, data: None };
                self.send(&host_failure_frame(id, &failure).unwrap());
            }
            Reply::Never => {}
            Reply::Cancel => self.send(&cancel_frame().unwrap()),
        }
    }
}

fn self_evaluations(_: &Program, id: u64) -> u64 {
    id
}

type Host = Box<dyn Fn(u32, &str) -> Reply>;

pub(super) struct Program {
    pub(super) source: String,
    pub(super) inputs: Option<&'static str>,
    pub(super) collections: Vec<(&'static str, Vec<&'static str>)>,
    pub(super) host: Host,
    pub(super) limits: Limits,
    pub(super) time_zone: Option<&'static str>,
    pub(super) keep: bool,
    pub(super) parse_only: bool,
}

impl Program {
    pub(super) fn new(source: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            inputs: None,
            collections: vec![("orders", vec!["list", "refund"]), ("items", vec!["get"])],
            host: Box::new(|_, _| Reply::Echo),
            limits: Limits { drain_ms: 200, ..Limits::DEFAULT },
            time_zone: None,
            keep: false,
            parse_only: false,
        }
    }

    pub(super) fn host(mut self, host: impl Fn(u32, &str) -> Reply + 'static) -> Self {
        self.host = Box::new(host);
        self
    }

    pub(super) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    fn table(&self) -> Vec<CollectionTable<'static>> {
        let table = self.collections.iter().map(|(name, functions)| CollectionTable {
            name: (*name).into(),
            functions: functions.iter().map(|function| (*function).into()).collect(),
        });
        table.collect()
    }

    pub(super) fn run(&self) -> Answer {
        Worker::start().evaluate(self)
    }
}

/// Runs a program with the usual collections, whose functions echo their input.
pub(super) fn run(source: &str) -> Answer {
    Program::new(source).run()
}
