//! Owns timers: their order, and the functions that set and clear them. It never waits:
//! the session does, for as long as [`Timers::next_due`] says.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
    time::Duration,
};

use rquickjs::{
    Ctx, Exception, Function, Persistent, Result, Value,
    function::{Args, Rest},
    object::Property,
};

use crate::engine::{clock, raw};

/// Timers that may be pending at once.
const PENDING: usize = 10_000;
/// Longest delay, as in browsers: more than this is 1 ms.
const LONGEST_MS: f64 = 2_147_483_647.0;
/// Least delay between two runs of an interval.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);

struct Timer {
    callback: Persistent<Function<'static>>,
    args: Vec<Persistent<Value<'static>>>,
    every: Option<Duration>,
}

/// When a timer fires: its time, then the order of creation.
type Due = (Duration, u32);

/// All pending timers.
#[derive(Default)]
pub(crate) struct Timers {
    pending: RefCell<BTreeMap<Due, Timer>>,
    due_of: RefCell<BTreeMap<u32, Duration>>,
    last_id: Cell<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Timeout,
    Interval,
    Immediate,
}

fn native<F>(run: F) -> F
where
    F: for<'js> Fn(Ctx<'js>, Rest<Value<'js>>) -> Result<Value<'js>> + 'static,
{
    run
}

/// Defines `setTimeout`, `setInterval`, `setImmediate` and what clears them.
///
/// # Errors
/// When the realm refuses a definition.
pub(crate) fn install(ctx: &Ctx<'_>, timers: &Rc<Timers>) -> Result<()> {
    for (name, kind) in [("setTimeout", Kind::Timeout), ("setInterval", Kind::Interval), ("setImmediate", Kind::Immediate)] {
        let timers = Rc::clone(timers);
        let function = Function::new(ctx.clone(), native(move |ctx, args| timers.set(&ctx, name, kind, &args.0)))?;
        define(ctx, name, function, if kind == Kind::Immediate { 1 } else { 2 })?;
    }
    for name in ["clearTimeout", "clearInterval", "clearImmediate"] {
        let timers = Rc::clone(timers);
        let function = Function::new(
            ctx.clone(),
            native(move |ctx, args| {
                timers.clear(args.0.first());
                Ok(Value::new_undefined(ctx))
            }),
        )?;
        define(ctx, name, function, 1)?;
    }
    Ok(())
}

fn define<'js>(ctx: &Ctx<'js>, name: &str, function: Function<'js>, length: usize) -> Result<()> {
    let function = function.with_name(name)?.with_length(length)?;
    ctx.globals().prop(name, Property::from(function).writable().configurable().enumerable())
}

/// A delay as the guest gave it: numbers and numeric strings; anything else is 0.
fn delay(value: Option<&Value<'_>>) -> Duration {
    let milliseconds = match value {
        Some(value) if value.is_string() => raw::text_of(value).ok().and_then(|text| text.trim().parse().ok()),
        Some(value) => value.as_number(),
        None => None,
    };
    let milliseconds = milliseconds.filter(|ms| *ms > 0.0).unwrap_or(0.0);
    let milliseconds = if milliseconds > LONGEST_MS { 1.0 } else { milliseconds };
    Duration::from_secs_f64(milliseconds / 1e3)
}

impl Timers {
    fn set<'js>(&self, ctx: &Ctx<'js>, name: &str, kind: Kind, args: &[Value<'js>]) -> Result<Value<'js>> {
        let Some(callback) = args.first().and_then(Value::as_function) else {
            return Err(Exception::throw_type(ctx, &format!("{name} needs a function")));
        };
        if self.pending.borrow().len() >= PENDING {
            return Err(Exception::throw_range(ctx, &format!("more than {PENDING} timers are pending")));
        }
        let (delay, rest) = match kind {
            Kind::Immediate => (Duration::ZERO, args.get(1..)),
            _ => (delay(args.get(1)), args.get(2..)),
        };
        let every = (kind == Kind::Interval).then(|| delay.max(SHORTEST_INTERVAL));
        let args = rest.unwrap_or_default().iter().map(|arg| Persistent::save(ctx, arg.clone())).collect();
        let id = self.last_id.get().wrapping_add(1).max(1);
        self.last_id.set(id);
        let timer = Timer { callback: Persistent::save(ctx, callback.clone()), args, every };
        self.insert(id, clock::now().saturating_add(every.unwrap_or(delay)), timer);
        Ok(Value::new_number(ctx.clone(), f64::from(id)))
    }

    fn insert(&self, id: u32, due: Duration, timer: Timer) {
        self.due_of.borrow_mut().insert(id, due);
        self.pending.borrow_mut().insert((due, id), timer);
    }

    fn clear(&self, id: Option<&Value<'_>>) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; such ids do not exist")]
        let id = id.and_then(|id| id.as_number()).map(|id| id as u32);
        if let Some(id) = id
            && let Some(due) = self.due_of.borrow_mut().remove(&id)
        {
            let timer = self.pending.borrow_mut().remove(&(due, id));
            drop(timer);
        }
    }

    /// Forgets all timers, for the next evaluation.
    pub(crate) fn forget(&self) {
        self.due_of.borrow_mut().clear();
        let pending = std::mem::take(&mut *self.pending.borrow_mut());
        drop(pending);
    }

    /// When the next timer fires; `None`: there is none.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.pending.borrow().keys().next().map(|(due, _)| *due)
    }

    /// Runs the next timer if its time has come. Whatever it throws is the realm's pending
    /// exception, in the error.
    pub(crate) fn fire_one(&self, ctx: &Ctx<'_>) -> Option<Result<()>> {
        let due = self.pending.borrow().keys().next().copied()?;
        if due.0 > clock::now() {
            return None;
        }
        let timer = self.pending.borrow_mut().remove(&due)?;
        self.due_of.borrow_mut().remove(&due.1);
        let callback = timer.callback.clone();
        let args: Vec<_> = timer.args.clone();
        if let Some(every) = timer.every {
            self.insert(due.1, clock::now().saturating_add(every), timer);
        }
        Some(Self::run(ctx, callback, args))
    }

    fn run(ctx: &Ctx<'_>, callback: Persistent<Function<'static>>, args: Vec<Persistent<Value<'static>>>) -> Result<()> {
        let mut call = Args::new(ctx.clone(), args.len());
        for arg in args {
            call.push_arg(arg.restore(ctx)?)?;
        }
        callback.restore(ctx)?.call_arg::<()>(call)
    }
}
