//! Owns one evaluation from order to answer: the straight line of a program.

mod told;

use std::{rc::Rc, time::Duration};

use brig_protocol::{
    client::{EvaluationError, WarningCode},
    codes::EvaluationCode,
    limits::{Limits, NESTING_LEVELS},
    worker::{self, Finished, WorkerUsage},
};
use rquickjs::{Atom, Ctx, Object, Promise, Value, context::EvalOptions, object::Property};
use serde_json::value::RawValue;

use super::{
    Order,
    endings::{deadlock, shortened, too_large},
    pump::{Pump, Stop, Uncaught},
};
use crate::{
    bridge,
    channel::Channel,
    engine::{Realm, Shared, alloc, budget::Passed, raw},
    failure::{
        self, Known,
        frames::{self, View},
    },
    globals,
    source::{self, Mode, PromiseRead, SourceError, Uncalled},
    value::{self, Bounds, Fault, Notes},
};

/// Kept back of the wall time so that the answer arrives before the supervisor's kill.
const ANSWER_TIME: Duration = Duration::from_millis(50);

/// How a program ended: JSON text of its value, if it has one, or why not.
type Ending = Result<Option<String>, Box<EvaluationError>>;

/// Runs the program; the frame of its answer, or nothing when there is nobody to answer.
pub(super) fn run(realm: &Realm, channel: &Channel, order: Order) -> Option<Vec<u8>> {
    let shared = &*realm.shared;
    let limits = order.limits;
    shared.outbox.start();
    shared.output.start(limits.console_bytes);
    shared.calls.start(limits);
    shared.timers.forget();
    globals::web::begin_evaluation();
    alloc::rule(limits.heap_bytes, order.keep);
    shared.budget.start(Duration::from_millis(limits.timeout_ms), Duration::from_millis(limits.cpu_ms));
    let (id, rehearsal) = (order.id, order.rehearsal);
    let ending = realm.context.with(|ctx| Evaluation { ctx: &ctx, shared, channel, order }.run())?;
    let cpu = shared.budget.cpu_used();
    shared.budget.stop();
    shared.output.hand_over();
    if rehearsal {
        realm.context.with(|ctx| strike(&ctx, shared));
    }
    answer(id, ending, cpu, &limits)
}

/// Takes away what a rehearsal defined.
fn strike(ctx: &Ctx<'_>, shared: &Shared) {
    bridge::withdraw(ctx, &shared.world);
    if ctx.globals().remove("inputs").is_err() {
        drop(ctx.catch());
    }
    frames::forget_all();
}

fn answer(id: u64, ending: Ending, cpu: Duration, limits: &Limits) -> Option<Vec<u8>> {
    let memory = alloc::usage();
    let usage = WorkerUsage {
        cpu_ms: cpu.as_secs_f64() * 1e3,
        peak_memory_bytes: u64::try_from(memory.peak.saturating_sub(memory.floor)).unwrap_or(u64::MAX),
    };
    let (text, error) = match ending {
        Ok(text) => (text, None),
        Err(error) => (None, Some(*error)),
    };
    let value = match text.as_deref().map(serde_json::from_str::<&RawValue>) {
        None => None,
        Some(Ok(value)) => Some(value),
        Some(Err(fault)) => {
            let error = EvaluationError::new(EvaluationCode::Internal, "Internal", format!("the value's JSON is broken: {fault}"));
            return worker::finished_frame(id, &Finished { value: None, error: Some(error), usage }).ok();
        }
    };
    let frame = worker::finished_frame(id, &Finished { value, error, usage });
    frame.or_else(|_| worker::finished_frame(id, &Finished { value: None, error: Some(too_large(limits)), usage })).ok()
}

struct Evaluation<'a, 'js> {
    ctx: &'a Ctx<'js>,
    shared: &'a Rc<Shared>,
    channel: &'a Channel,
    order: Order,
}

impl<'js> Evaluation<'_, 'js> {
    /// `None`: there is nobody to answer.
    fn run(mut self) -> Option<Ending> {
        let zone = self.order.time_zone.as_deref().unwrap_or("UTC");
        if !globals::intl::set_time_zone(zone) {
            let message = format!("timeZone: there is no time zone {zone:?}; it takes an IANA name such as \"Europe/Prague\"");
            return Some(Err(Box::new(EvaluationError::new(EvaluationCode::GuestError, "RangeError", message))));
        }
        let file = format!("program-{}", self.order.id);
        if self.order.parse_only {
            return Some(self.checked(file));
        }
        let prepared = source::prepare(&self.order.source, self.order.form, self.order.language, self.order.keep);
        let given = self.furnish();
        let mut program = match prepared {
            Ok(program) => program,
            Err(fault) => return Some(Err(Box::new(self.no_program(fault)))),
        };
        if let Err(error) = given {
            return Some(Err(Box::new(self.not_furnished(error))));
        }
        if let Some(as_written) = program.as_written.take()
            && let Err(refused) = self.compiled(&file, as_written)
        {
            return Some(Err(refused));
        }
        if let Some(taken) = program.globals.iter().find(|global| self.is_taken(&global.name)) {
            let fault = taken.taken(&self.order.source);
            return Some(Err(Box::new(self.no_program(fault))));
        }
        self.tell_promise_reads(&program.promise_reads);
        let text = std::mem::take(&mut self.order.source);
        frames::remember(&file, Rc::new(View { text, map: Some(program.map) }));
        let started = self.start(file, program.code, program.mode);
        let mut pump = Pump { ctx: self.ctx, shared: self.shared, channel: self.channel, uncaught: Vec::new() };
        let ended = started.map(|started| value_of(&mut pump, started, program.mode));
        let uncaught = std::mem::take(&mut pump.uncaught);
        match ended {
            Err(refused) => Some(Err(Box::new(self.refused(&refused)))),
            Ok(ended) => self.finish(ended, uncaught),
        }
    }

    /// Checks the program and runs none of it.
    fn checked(&mut self, file: String) -> Ending {
        match source::uncalled(&self.order.source, self.order.form, self.order.language) {
            Ok(function) => self.compiled(&file, function).map(|()| Some("null".to_owned())),
            Err(fault) => Err(Box::new(self.no_program(fault))),
        }
    }

    /// Has the engine look at a program without running any of it.
    fn compiled(&self, file: &str, function: Uncalled) -> Result<(), Box<EvaluationError>> {
        frames::remember(file, Rc::new(View { text: self.order.source.clone(), map: Some(function.map) }));
        match raw::compile(self.ctx, file, function.code) {
            Ok(()) => Ok(()),
            Err(_) => Err(Box::new(self.refused(&self.ctx.catch()))),
        }
    }

    /// Only a realm that a program has run in can refuse what an evaluation is given.
    fn not_furnished(&self, error: String) -> EvaluationError {
        if !self.order.keep {
            return EvaluationError::new(EvaluationCode::Internal, "Internal", error);
        }
        let message = format!(
            "this vm's globalThis does not take `inputs` and the collections, since a program before this one closed it ({error}); \
             make a new vm"
        );
        EvaluationError::new(EvaluationCode::GuestError, "TypeError", message)
    }

    fn no_program(&mut self, fault: SourceError) -> EvaluationError {
        // Its places are already those of the text as sent.
        let view = Rc::new(View { text: std::mem::take(&mut self.order.source), map: None });
        self.with_known(|known| failure::syntax(fault, &view, known))
    }

    /// Whether a program can not make a global of this name: what it assigns would be lost.
    fn is_taken(&self, name: &str) -> bool {
        let globals = self.ctx.globals();
        let slot = Atom::from_str(self.ctx.clone(), name).ok().and_then(|key| raw::own_slot(&globals, &key));
        match slot {
            Some(raw::Slot::Data(_)) => raw::is_read_only(&globals, name),
            Some(raw::Slot::Accessor { set, .. }) => !set,
            None => false,
        }
    }

    /// Defines `inputs` and the collections.
    fn furnish(&self) -> Result<(), String> {
        let shared = self.shared;
        let define = || -> rquickjs::Result<()> {
            bridge::withdraw(self.ctx, &shared.world);
            let mut notes = Notes::default();
            let inputs = value::decode(self.ctx, self.order.inputs.as_deref().unwrap_or("{}"), "inputs", &mut notes)?;
            for line in notes.lines() {
                shared.outbox.warn(WarningCode::LossyValue, &line.text, Some(&line.path));
            }
            freeze_deep(self.ctx, &inputs)?;
            let inputs = Property::from(inputs).enumerable();
            let passing = self.order.keep || self.order.rehearsal;
            let inputs = if passing { inputs.configurable() } else { inputs };
            self.ctx.globals().prop("inputs", inputs)?;
            let outlets = (&*shared.outbox, &*shared.output);
            bridge::define(self.ctx, &shared.calls, &shared.world, outlets, self.order.collections.clone(), passing)
        };
        define().map_err(|fault| {
            drop(self.ctx.catch());
            format!("the program's world could not be made: {fault}")
        })
    }

    fn with_known<R>(&self, tell: impl FnOnce(&Known<'_>) -> R) -> R {
        let collections = self.shared.world.collections.borrow();
        tell(&Known { collections: &collections })
    }

    /// Starts the program; the error is what the engine says of a text that it can not run.
    fn start(&self, file: String, code: String, mode: Mode) -> Result<Value<'js>, Value<'js>> {
        let mut options = EvalOptions::default();
        options.global = true;
        options.strict = false;
        options.backtrace_barrier = true;
        options.promise = mode == Mode::Script;
        options.filename = Some(file);
        self.ctx.eval_with_options::<Value, _>(code, options).map_err(|_| self.ctx.catch())
    }

    /// The engine refused the text before any of it ran; or a limit stopped it.
    fn refused(&self, thrown: &Value<'js>) -> EvaluationError {
        match self.shared.budget.passed() {
            Some(passed) => self.passed(passed),
            None => self.with_known(|known| failure::refused(&self.shared.intrinsics, thrown, known)),
        }
    }

    /// Drains host calls, tells what would be lost, and makes the answer.
    fn finish(&self, ended: Result<Value<'js>, Stop<'js>>, uncaught: Vec<Uncaught<'js>>) -> Option<Ending> {
        let can_drain = matches!(ended, Ok(_) | Err(Stop::Thrown(_)));
        if can_drain && !self.shared.calls.is_idle() {
            let room = self.shared.budget.real_wall_left().saturating_sub(ANSWER_TIME);
            let time = Duration::from_millis(self.order.limits.drain_ms).min(room);
            let mut pump = Pump { ctx: self.ctx, shared: self.shared, channel: self.channel, uncaught: Vec::new() };
            match pump.drain(time) {
                Err(Stop::HungUp) => return None,
                Err(Stop::Passed(passed)) => return Some(Err(Box::new(self.passed(passed)))),
                _ => {}
            }
        }
        let ending = match ended {
            Ok(value) => self.encoded(&value),
            Err(Stop::Thrown(thrown)) => {
                self.tell_rejections(Some(&thrown), &uncaught);
                Err(Box::new(self.thrown(&thrown)))
            }
            Err(Stop::Passed(passed)) => Err(Box::new(self.passed(passed))),
            Err(Stop::Deadlock) => Err(Box::new(self.deadlocked(&uncaught))),
            Err(Stop::HungUp) => return None,
        };
        self.tell_rejections(None, &uncaught);
        if can_drain {
            self.tell_cancelled();
        }
        Some(ending)
    }

    fn thrown(&self, thrown: &Value<'js>) -> EvaluationError {
        if let Some(passed) = self.shared.budget.passed() {
            return self.passed(passed);
        }
        let mut error = self.with_known(|known| failure::thrown(&self.shared.intrinsics, thrown, known));
        if self.shared.calls.is_limit_error(thrown) {
            error.code = EvaluationCode::CallLimit;
            error = error.with_limit("hostCalls", self.order.limits.host_calls);
        }
        error
    }

    fn encoded(&self, value: &Value<'js>) -> Ending {
        if raw::shape(value) == raw::Shape::Undefined {
            return Ok(None);
        }
        let limits = &self.order.limits;
        let bounds = Bounds { bytes: usize::try_from(limits.result_bytes).unwrap_or(usize::MAX), levels: NESTING_LEVELS };
        let mut text = Vec::new();
        let mut notes = Notes::default();
        let encoded = value::encode(&self.shared.intrinsics, value, "$", bounds, &mut text, &mut notes);
        if let Some(passed) = self.shared.budget.passed() {
            return Err(Box::new(self.passed(passed)));
        }
        for line in notes.lines() {
            self.shared.outbox.warn(WarningCode::LossyValue, &line.text, Some(&line.path));
        }
        match encoded {
            Ok(false) => Ok(None),
            Ok(true) => {
                self.warn_when_large(text.len());
                String::from_utf8(text).map(Some).map_err(|_| Box::new(too_large(limits)))
            }
            Err(fault) => Err(Box::new(self.has_no_form(fault))),
        }
    }

    fn warn_when_large(&self, bytes: usize) {
        let limit = self.order.limits.result_bytes;
        if u64::try_from(bytes).unwrap_or(u64::MAX) > limit / 5 * 4 {
            self.shared.outbox.limit_near("resultBytes", &format!("the value has {bytes} bytes"), limit);
        }
    }

    fn has_no_form(&self, fault: Fault<'js>) -> EvaluationError {
        let unserializable = |message: String, hint: &str| {
            let mut error = EvaluationError::new(EvaluationCode::UnserializableValue, "UnserializableValue", message);
            error.hint = Some(hint.to_owned());
            error
        };
        match fault {
            Fault::TooLarge => too_large(&self.order.limits),
            Fault::Cycle { path } => unserializable(
                format!("the program's value contains itself at {path} (a circular structure), which JSON can not say"),
                "return the parts that are needed, not the whole graph",
            ),
            Fault::TooDeep { path } => unserializable(
                format!("the program's value is nested deeper than {NESTING_LEVELS} levels at {}", shortened(&path)),
                "return a flatter value",
            ),
            Fault::Threw { path, thrown } => {
                let mut error = self.with_known(|known| failure::thrown(&self.shared.intrinsics, &thrown, known));
                error.code = EvaluationCode::UnserializableValue;
                error.message = format!("reading the program's value threw at {}: {}", shortened(&path), error.message);
                error
            }
        }
    }

    /// What a limit of time, or the supervisor, ended.
    fn passed(&self, passed: Passed) -> EvaluationError {
        let limits = &self.order.limits;
        let open: Vec<String> = self.shared.calls.left().iter().take(8).map(|call| call.function.to_string()).collect();
        let waiting = if open.is_empty() { String::new() } else { format!("; it was waiting for {}", open.join(", ")) };
        match passed {
            Passed::Wall => EvaluationError::new(
                EvaluationCode::TimedOut,
                "TimedOut",
                format!("the program was not done within {} ms (timeoutMs){waiting}", limits.timeout_ms),
            )
            .with_limit("timeoutMs", limits.timeout_ms),
            Passed::Cpu => EvaluationError::new(
                EvaluationCode::CpuLimit,
                "CpuLimit",
                format!("the program used more than {} ms of CPU time (limits.cpuMs){waiting}", limits.cpu_ms),
            )
            .with_limit("cpuMs", limits.cpu_ms),
            Passed::Cancelled => {
                EvaluationError::new(EvaluationCode::Cancelled, "Cancelled", format!("the evaluation was cancelled{waiting}"))
            }
        }
    }

    /// Rejections come before the deadlock that they lead to, and say why.
    fn deadlocked(&self, uncaught: &[Uncaught<'js>]) -> EvaluationError {
        let rejected = self.shared.rejections.take(self.ctx);
        let first = rejected.first().or(uncaught.first().map(|uncaught| &uncaught.thrown));
        let before = first.map(|thrown| self.with_known(|known| failure::thrown(&self.shared.intrinsics, thrown, known)));
        self.tell_each(None, rejected);
        deadlock(before)
    }
}

/// Follows what the program gave to its value: the completion of a script, promises, thenables.
fn value_of<'js>(pump: &mut Pump<'_, 'js>, started: Value<'js>, mode: Mode) -> Result<Value<'js>, Stop<'js>> {
    let value = match (mode, started.as_promise()) {
        (Mode::Script, Some(completion)) => {
            let completion = pump.settle(completion)?;
            let held = completion.as_object().map(|completion| completion.get::<_, Value>("value"));
            held.and_then(Result::ok).unwrap_or(completion)
        }
        _ => started,
    };
    let Some(promise) = adopted(pump, &value) else { return Ok(value) };
    pump.settle(&promise)
}

/// A promise of an object that may itself be a promise or a thenable. The engine's own
/// resolve function asks it; `None` for what can not be one.
fn adopted<'js>(pump: &Pump<'_, 'js>, value: &Value<'js>) -> Option<Promise<'js>> {
    if let Some(promise) = value.as_promise() {
        return Some(promise.clone());
    }
    if !value.is_object() {
        return None;
    }
    let (promise, resolve, _) = Promise::new(pump.ctx).ok()?;
    if resolve.call::<_, ()>((value.clone(),)).is_err() {
        drop(pump.ctx.catch());
    }
    Some(promise)
}

/// Freezes a value that was just parsed, with all that is in it.
fn freeze_deep<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> rquickjs::Result<()> {
    let Some(object) = value.as_object() else { return Ok(()) };
    for inner in Object::values::<Value>(object) {
        freeze_deep(ctx, &inner?)?;
    }
    raw::freeze(ctx, object)
}
