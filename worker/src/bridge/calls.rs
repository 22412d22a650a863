//! Owns the calls of one evaluation: counted, queued, in flight, settled.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
    rc::Rc,
};

use brig_protocol::{
    client::WarningCode,
    codes::CallCode,
    limits::{Limits, NESTING_LEVELS},
    worker::{self, HostFailure},
};
use rquickjs::{Ctx, Function, Persistent, Promise, Result, Value};

use super::rejection::{self, Rejection};
use crate::{
    engine::{
        Intrinsics,
        raw::{self, Shape},
    },
    globals::output::Output,
    outbox::Outbox,
    value::{self, Bounds, Fault, Notes},
};

/// Errors of the call limit that are remembered, to tell when one ends the program.
const REMEMBERED: usize = 8;

struct Pending {
    resolve: Persistent<Function<'static>>,
    reject: Persistent<Function<'static>>,
    function: Rc<str>,
    /// Where the program made the call, as the engine tells it.
    place: Option<String>,
}

struct Queued {
    index: u32,
    input: String,
    pending: Pending,
}

#[derive(Default)]
struct Table {
    made: u64,
    sent: u64,
    open: BTreeMap<u64, Pending>,
    queued: VecDeque<Queued>,
}

/// All host calls of the running evaluation.
pub(crate) struct Calls {
    intrinsics: Rc<Intrinsics>,
    outbox: Rc<Outbox>,
    output: Rc<Output>,
    limits: Cell<Limits>,
    table: RefCell<Table>,
    /// The functions of the running evaluation by full name, with their indices on the wire.
    given: RefCell<BTreeMap<String, u32>>,
    limit_errors: RefCell<Vec<Persistent<Value<'static>>>>,
}

/// A message that settles one call.
pub(crate) enum Delivery<'a> {
    /// Raw JSON.
    Output(&'a str),
    /// Why there is none.
    Failure(&'a HostFailure<'a>),
}

/// A call that had not settled at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Left {
    /// `collection.function`.
    pub(crate) function: Rc<str>,
    /// Its number; `None`: it was still waiting for its turn and never left the worker.
    pub(crate) id: Option<u64>,
}

impl Calls {
    pub(crate) fn new(intrinsics: Rc<Intrinsics>, outbox: Rc<Outbox>, output: Rc<Output>) -> Self {
        Self {
            intrinsics,
            outbox,
            output,
            limits: Cell::new(Limits::DEFAULT),
            table: RefCell::default(),
            given: RefCell::default(),
            limit_errors: RefCell::default(),
        }
    }

    /// Starts over, under these limits, with no function to call.
    pub(crate) fn start(&self, limits: Limits) {
        self.limits.set(limits);
        let former = self.table.take();
        drop(former);
        self.given.take();
        let errors = self.limit_errors.take();
        drop(errors);
    }

    /// Says what may be called from here on: the functions of these collections, in the order of their indices.
    pub(crate) fn give(&self, collections: &[(String, Vec<String>)]) {
        let names = collections.iter().flat_map(|(name, functions)| functions.iter().map(move |function| format!("{name}.{function}")));
        *self.given.borrow_mut() = names.zip(0..).collect();
    }

    /// Whether any call is in flight or waits for its turn.
    pub(crate) fn is_idle(&self) -> bool {
        let table = self.table.borrow();
        table.open.is_empty() && table.queued.is_empty()
    }

    /// Calls that have not settled, in order.
    pub(crate) fn left(&self) -> Vec<Left> {
        let table = self.table.borrow();
        let open = table.open.iter().map(|(id, call)| Left { function: Rc::clone(&call.function), id: Some(*id) });
        let queued = table.queued.iter().map(|call| Left { function: Rc::clone(&call.pending.function), id: None });
        open.chain(queued).collect()
    }

    /// Whether a value is an error that this table made for the call limit.
    pub(crate) fn is_limit_error(&self, value: &Value<'_>) -> bool {
        let known = self.limit_errors.borrow();
        known.iter().any(|error| error.clone().restore(value.ctx()).is_ok_and(|error| error == *value))
    }

    /// What a host function does when the guest calls it: always gives a promise.
    ///
    /// It goes by its name: in a vm a program may have kept it from an earlier evaluation,
    /// whose table had other functions at the same indices.
    pub(crate) fn call<'js>(&self, ctx: &Ctx<'js>, name: &Rc<str>, input: Option<&Value<'js>>) -> Result<Value<'js>> {
        let (promise, resolve, reject) = Promise::new(ctx)?;
        match self.admit(ctx, name, input) {
            Ok((index, input)) => {
                let pending = Pending {
                    resolve: Persistent::save(ctx, resolve),
                    reject: Persistent::save(ctx, reject),
                    function: Rc::clone(name),
                    place: self.intrinsics.stack_here(ctx),
                };
                self.queue(Queued { index, input, pending });
            }
            Err(Refused::Rejection(rejection)) => {
                let error = rejection.build(ctx, &self.intrinsics)?;
                if rejection.code == CallCode::CallLimit.as_str() {
                    let mut known = self.limit_errors.borrow_mut();
                    if known.len() < REMEMBERED {
                        known.push(Persistent::save(ctx, error.clone().into_value()));
                    }
                }
                reject.call::<_, ()>((error,))?;
            }
            Err(Refused::Thrown(thrown)) => reject.call::<_, ()>((thrown,))?,
        }
        Ok(promise.into_value())
    }

    /// Finds the function, counts the call and makes its input; or says why not.
    fn admit<'js>(&self, ctx: &Ctx<'js>, name: &Rc<str>, input: Option<&Value<'js>>) -> std::result::Result<(u32, String), Refused<'js>> {
        let limits = self.limits.get();
        let refuse =
            |code, message| Err(Refused::Rejection(Box::new(Rejection::local(code, message, name, self.intrinsics.stack_here(ctx)))));
        let Some(index) = self.given.borrow().get(&**name).copied() else {
            let message = format!(
                "{name}: this evaluation has no such function; the reference to it is from an earlier evaluation of the vm; nothing was called"
            );
            return refuse(CallCode::UnknownFunction, message);
        };
        if self.table.borrow().made >= limits.host_calls {
            let message = format!(
                "{name}: one host call more than this evaluation may make ({}); nothing was called",
                brig_protocol::limits::named("hostCalls", limits.host_calls)
            );
            return refuse(CallCode::CallLimit, message);
        }
        match self.input_text(name, input, &limits) {
            Ok(text) => {
                let made = {
                    let mut table = self.table.borrow_mut();
                    table.made += 1;
                    table.made
                };
                if made > limits.host_calls / 5 * 4 && limits.host_calls >= 5 {
                    self.outbox.limit_near("hostCalls", &format!("{made} host calls were made"), limits.host_calls);
                }
                Ok((index, text))
            }
            Err(Fault::Threw { thrown, .. }) => Err(Refused::Thrown(thrown)),
            Err(fault) => refuse(CallCode::InvalidInput, format!("{name}: {}", told(&fault, &limits))),
        }
    }

    fn input_text<'js>(&self, name: &str, input: Option<&Value<'js>>, limits: &Limits) -> std::result::Result<String, Fault<'js>> {
        let Some(input) = input.filter(|input| raw::shape(input) != Shape::Undefined) else {
            return Ok("{}".to_owned());
        };
        let bounds = Bounds { bytes: usize::try_from(limits.input_bytes).unwrap_or(usize::MAX), levels: NESTING_LEVELS };
        let mut notes = Notes::default();
        let mut text = Vec::new();
        let has_form = value::encode(&self.intrinsics, input, "$", bounds, &mut text, &mut notes)?;
        for line in notes.lines() {
            self.outbox.warn(WarningCode::LossyValue, &format!("input of {name}: {}", line.text), Some(&line.path));
        }
        if !has_form {
            return Ok("{}".to_owned());
        }
        String::from_utf8(text).map_err(|_| Fault::TooLarge)
    }

    fn queue(&self, call: Queued) {
        self.table.borrow_mut().queued.push_back(call);
        self.send_queued();
    }

    /// Sends calls that wait, as far as more may be in flight.
    fn send_queued(&self) {
        loop {
            let frame = {
                let mut table = self.table.borrow_mut();
                let open = u64::try_from(table.open.len()).unwrap_or(u64::MAX);
                if open >= self.limits.get().host_calls_in_flight {
                    return;
                }
                let Some(call) = table.queued.pop_front() else { return };
                table.sent += 1;
                let id = table.sent;
                table.open.insert(id, call.pending);
                worker::host_call_frame(id, call.index, &call.input)
            };
            // What was printed before the call stands before it on the wire.
            self.output.hand_over();
            if let Ok(frame) = frame {
                self.outbox.send(&frame);
            }
        }
    }

    /// Settles the promise of one call. Guest code may run: a promise asks its value for `then`.
    pub(crate) fn deliver(&self, ctx: &Ctx<'_>, id: u64, delivery: &Delivery<'_>) -> Result<()> {
        let Some(pending) = self.table.borrow_mut().open.remove(&id) else { return Ok(()) };
        self.send_queued();
        match delivery {
            Delivery::Output(text) => {
                let mut notes = Notes::default();
                let decoded = value::decode(ctx, text, "$", &mut notes);
                for line in notes.lines() {
                    self.outbox.warn(WarningCode::LossyValue, &format!("output of {}: {}", pending.function, line.text), Some(&line.path));
                }
                match decoded {
                    Ok(value) => pending.resolve.restore(ctx)?.call::<_, ()>((value,)),
                    Err(_) => {
                        let thrown = ctx.catch();
                        pending.reject.restore(ctx)?.call::<_, ()>((thrown,))
                    }
                }
            }
            Delivery::Failure(failure) => {
                let rejection = rejection::from_host(failure, &pending.function, pending.place);
                let error = rejection.build(ctx, &self.intrinsics)?;
                pending.reject.restore(ctx)?.call::<_, ()>((error,))
            }
        }
    }
}

enum Refused<'js> {
    Rejection(Box<Rejection>),
    Thrown(Value<'js>),
}

fn told(fault: &Fault<'_>, limits: &Limits) -> String {
    match fault {
        Fault::Cycle { path } => format!("the input contains itself at {path}, which JSON can not say"),
        Fault::TooDeep { path } => format!("the input is nested deeper than {NESTING_LEVELS} levels at {path}"),
        Fault::TooLarge => {
            format!("the input has more bytes of JSON than it may ({})", brig_protocol::limits::named("inputBytes", limits.input_bytes))
        }
        Fault::Threw { path, .. } => format!("reading the input threw at {path}"),
    }
}
