//! Owns the realm: built and rehearsed in the nursery, seeded in each worker.

use std::{cell::RefCell, mem::ManuallyDrop, rc::Rc};

use brig_protocol::limits::Limits;
use rquickjs::{Context, Ctx, Persistent, Promise, Result, Runtime, Value, context::EvalOptions};

use super::{
    alloc::{self, CountingAllocator},
    budget::Budget,
    entropy,
    intrinsics::Intrinsics,
    random::{self, Random},
    raw,
};
use crate::{
    bridge::{self, Calls, Delivery, World},
    globals::{self, output::Output, timers::Timers},
    outbox::Outbox,
    value,
};

/// What the engine may use at most, whatever an evaluation asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ceilings {
    /// Stack of guest code, in bytes; above 16 MiB the engine would check nothing.
    pub(crate) stack_bytes: usize,
}

impl Ceilings {
    /// Less stack than this runs no ordinary program, in bytes.
    pub(crate) const LEAST_STACK: usize = 256 * 1024;
}

impl Default for Ceilings {
    fn default() -> Self {
        Self { stack_bytes: 768 * 1024 }
    }
}

/// The largest stack that the engine still checks, in bytes.
const STACK_MAX: usize = 16 * 1024 * 1024;

/// Unhandled rejections that are remembered.
const REJECTIONS: usize = 64;

type Rejection = (Persistent<Value<'static>>, Persistent<Value<'static>>);

/// Rejected promises that nobody has looked at yet.
#[derive(Default)]
pub(crate) struct Rejections {
    unhandled: RefCell<Vec<Rejection>>,
}

impl Rejections {
    fn track<'js>(&self, ctx: &Ctx<'js>, promise: &Value<'js>, reason: &Value<'js>, handled: bool) {
        let mut unhandled = self.unhandled.borrow_mut();
        if handled {
            unhandled.retain(|(known, _)| known.clone().restore(ctx).is_ok_and(|known| known != *promise));
        } else if unhandled.len() < REJECTIONS {
            unhandled.push((Persistent::save(ctx, promise.clone()), Persistent::save(ctx, reason.clone())));
        }
    }

    /// The reasons of what is unhandled now; forgets them.
    pub(crate) fn take<'js>(&self, ctx: &Ctx<'js>) -> Vec<Value<'js>> {
        let unhandled = self.unhandled.take();
        unhandled.into_iter().filter_map(|(_, reason)| reason.restore(ctx).ok()).collect()
    }
}

/// The parts of a realm that native functions share.
pub(crate) struct Shared {
    pub(crate) intrinsics: Rc<Intrinsics>,
    pub(crate) budget: Rc<Budget>,
    pub(crate) outbox: Rc<Outbox>,
    pub(crate) output: Rc<Output>,
    pub(crate) timers: Rc<Timers>,
    pub(crate) calls: Rc<Calls>,
    pub(crate) rejections: Rc<Rejections>,
    pub(crate) world: World,
    random: Rc<Random>,
}

/// A runtime with one furnished realm. It is never torn down: the process ends instead.
pub(crate) struct Realm {
    pub(crate) context: ManuallyDrop<Context>,
    _runtime: ManuallyDrop<Runtime>,
    pub(crate) shared: ManuallyDrop<Rc<Shared>>,
}

/// Builds the realm. Starts no thread, opens no file, reads nothing.
///
/// # Errors
/// When the engine can not be built; there is no worker without it.
pub(crate) fn warm(ceilings: &Ceilings) -> Result<Realm> {
    alloc::lift();
    let cells = Cells::new();
    let runtime = Runtime::new_with_alloc(CountingAllocator)?;
    runtime.set_max_stack_size(ceilings.stack_bytes.min(STACK_MAX));
    let context = Context::full(&runtime)?;
    let shared = context.with(|ctx| furnish(&ctx, cells))?;
    watch(&runtime, &shared);
    Ok(Realm { context: ManuallyDrop::new(context), _runtime: ManuallyDrop::new(runtime), shared: ManuallyDrop::new(Rc::new(shared)) })
}

/// What every evaluation writes of the shared parts. Made one after the other, so that a
/// copy of this process has to copy one page for them.
struct Cells {
    budget: Rc<Budget>,
    outbox: Rc<Outbox>,
    output: Rc<Output>,
    timers: Rc<Timers>,
    rejections: Rc<Rejections>,
    random: Rc<Random>,
}

impl Cells {
    fn new() -> Self {
        let outbox = Rc::new(Outbox::default());
        Self {
            budget: Rc::default(),
            output: Rc::new(Output::new(Rc::clone(&outbox))),
            outbox,
            timers: Rc::default(),
            rejections: Rc::default(),
            random: Rc::default(),
        }
    }
}

fn furnish(ctx: &Ctx<'_>, cells: Cells) -> Result<Shared> {
    let Cells { budget, outbox, output, timers, rejections, random } = cells;
    let intrinsics = Rc::new(Intrinsics::capture(ctx)?);
    for shared_memory in ["SharedArrayBuffer", "Atomics"] {
        ctx.globals().remove(shared_memory)?;
    }
    random.seed(&[0; 32]);
    random::install(ctx, &random)?;
    globals::install(ctx, &intrinsics, &output, &timers)?;
    intrinsics.capture_web(ctx)?;
    let calls = Rc::new(Calls::new(Rc::clone(&intrinsics), Rc::clone(&outbox), Rc::clone(&output)));
    Ok(Shared { intrinsics, budget, outbox, output, timers, calls, rejections, world: World::default(), random })
}

/// Installs what the engine calls back: the interrupt and the rejection tracker.
fn watch(runtime: &Runtime, shared: &Shared) {
    let (budget, output, outbox) = (Rc::clone(&shared.budget), Rc::clone(&shared.output), Rc::clone(&shared.outbox));
    runtime.set_interrupt_handler(Some(Box::new(move || {
        output.flush();
        warn_when_near(&budget, &outbox);
        budget.check()
    })));
    let rejections = Rc::clone(&shared.rejections);
    runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, reason, handled| {
        rejections.track(&ctx, &promise, &reason, handled);
    })));
}

/// Tells, once each, that most of the heap or of a time limit is used.
pub(crate) fn warn_when_near(budget: &Budget, outbox: &Outbox) {
    if alloc::is_nearly_full() {
        let usage = alloc::usage();
        outbox.limit_near("heapBytes", &format!("the program held {} bytes", usage.peak - usage.floor), usage.limit - usage.floor);
    }
    for (name, used, limit) in budget.nearly_used() {
        outbox.limit_near(name, &format!("{} ms were used", used.as_millis()), limit.as_millis());
    }
}

/// Gives a worker its own randomness; after the fork, before anything else.
pub(crate) fn reseed(realm: &Realm, seed: &[u8; entropy::SEED_BYTES]) {
    entropy::seed(seed);
    let mut own = [0; 32];
    entropy::fill(&mut own);
    realm.shared.random.seed(&own);
}

/// Ends the building: from here on the realm's own objects are neither counted nor freed
/// (see [`raw::make_immortal`]), so that the copies of this process share their pages.
/// Once, before the first fork, with nothing pending.
pub(crate) fn settle(realm: &Realm) {
    realm.context.with(|ctx| raw::make_immortal(&ctx));
}

/// What most programs do, in few lines: it makes their pages this worker's own.
const TOUCH: &str = r##"(async (host, text) => {
  const rows = JSON.parse(text), seen = new Map(), kinds = new Set();
  class Row { #id; constructor(id) { this.#id = id; } get id() { return this.#id; } }
  for (const { id, kind = "none", ...rest } of rows) { seen.set(id, new Row(id)); kinds.add(kind); void rest; }
  try { null.missing; } catch (error) { String(error.stack); }
  const answers = await Promise.all(rows.map((row) => host.touch(row)));
  const words = `${answers.length} of ${rows.length}`.split(" ").map((word) => word.replace(/\d+/g, "#"));
  return { words, ids: [...seen.keys()].sort((a, b) => b - a), total: rows.reduce((sum, row) => sum + row.id, 0.5) };
})"##;

const TOUCH_ROWS: &str = r#"[{"id":1,"kind":"a","tags":["x"]},{"id":2,"note":"text","price":1.5,"on":true,"none":null}]"#;

/// Runs a throw-away program through all that an ordinary evaluation uses. Leaves no trace
/// in the realm; nothing is sent.
///
/// # Errors
/// When the throw-away program fails: the realm is of no use then.
pub(crate) fn touch(realm: &Realm) -> Result<()> {
    let shared = &realm.shared;
    let (name, functions) = ("touch".to_owned(), vec!["touch".to_owned()]);
    shared.calls.start(Limits::DEFAULT);
    shared.calls.give(&[(name, functions.clone())]);
    realm.context.with(|ctx| {
        let host = bridge::collection(&ctx, &shared.calls, "touch", &functions)?;
        let mut options = EvalOptions::default();
        options.filename = Some("brig:touch".to_owned());
        let program: rquickjs::Function = ctx.eval_with_options(TOUCH, options)?;
        let promise: Promise = program.call((host, TOUCH_ROWS))?;
        for call in 1..=2 {
            while ctx.execute_pending_job() {}
            shared.calls.deliver(&ctx, call, &Delivery::Output(TOUCH_ROWS))?;
        }
        let answer: Value = promise.finish()?;
        let bounds = value::Bounds { bytes: 4096, levels: 16 };
        let encoded = value::encode(&shared.intrinsics, &answer, "$", bounds, &mut Vec::new(), &mut value::Notes::default());
        drop(encoded);
        Result::Ok(())
    })?;
    shared.calls.start(Limits::DEFAULT);
    shared.rejections.unhandled.take();
    Ok(())
}
