//! The engine as it comes, without brig: what `tests/test262` compares a worker with.
//!
//! Reads one JSON text a line, `{"source": …}`, runs each as a script in a realm of its own
//! whose only addition is `print`, and writes one line for each: `{"name", "message",
//! "printed"}`, the first two of what was thrown, if anything was. Never shipped.
#![expect(clippy::expect_used, reason = "a tool for development; what is wrong ends it")]

use std::{
    cell::RefCell,
    io::{BufRead as _, Write as _},
    rc::Rc,
    time::{Duration, Instant},
};

use rquickjs::{CatchResultExt as _, CaughtError, Context, Ctx, Function, Runtime, Value, context::EvalOptions};
use serde_json::json;

/// A test that takes longer is one that failed.
const DEADLINE: Duration = Duration::from_secs(10);
/// Heap and stack of one test: those of a worker.
const HEAP_BYTES: usize = 64 << 20;
const STACK_BYTES: usize = 768 * 1024;
/// Stack of the thread itself; the engine's own frames need more than its count of them.
const THREAD_BYTES: usize = 16 << 20;

fn main() {
    let thread = std::thread::Builder::new().stack_size(THREAD_BYTES).spawn(serve).expect("a thread");
    thread.join().expect("the thread ends in order");
}

fn serve() {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let order: serde_json::Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let source = order.get("source").and_then(serde_json::Value::as_str).expect("a source");
        let (thrown, printed) = run(source);
        let (name, message) = thrown.unzip();
        writeln!(out, "{}", json!({ "name": name, "message": message, "printed": printed })).expect("a reader");
        out.flush().expect("a reader");
    }
}

/// What was thrown, if anything was, and what was printed.
fn run(source: &str) -> (Option<(String, String)>, String) {
    let runtime = Runtime::new().expect("a runtime");
    runtime.set_memory_limit(HEAP_BYTES);
    runtime.set_max_stack_size(STACK_BYTES);
    let deadline = Instant::now() + DEADLINE;
    runtime.set_interrupt_handler(Some(Box::new(move || Instant::now() > deadline)));
    let context = Context::full(&runtime).expect("a context");
    let printed = Rc::new(RefCell::new(String::new()));
    let thrown = context.with(|ctx| {
        let lines = Rc::clone(&printed);
        let print = Function::new(ctx.clone(), move |text: String| {
            let mut lines = lines.borrow_mut();
            lines.push_str(&text);
            lines.push('\n');
        });
        ctx.globals().set("print", print.expect("a function")).expect("a global");
        script(&ctx, source)
    });
    while Instant::now() < deadline && runtime.is_job_pending() {
        // What a job throws is a rejection of some promise; the test tells by printing.
        if runtime.execute_pending_job().is_err() {
            continue;
        }
    }
    let printed = printed.borrow().clone();
    (thrown, printed)
}

fn script(ctx: &Ctx<'_>, source: &str) -> Option<(String, String)> {
    let mut options = EvalOptions::default();
    options.strict = false;
    let result: Result<Value<'_>, CaughtError<'_>> = ctx.eval_with_options(source, options).catch(ctx);
    match result.err()? {
        CaughtError::Exception(error) => {
            let name = error.as_object().get::<_, String>("name").unwrap_or_else(|_| "Error".to_owned());
            Some((name, error.message().unwrap_or_default()))
        }
        CaughtError::Value(value) => {
            let object = value.into_object();
            let name = object.as_ref().and_then(|object| object.get::<_, rquickjs::Object<'_>>("constructor").ok());
            let name = name.and_then(|constructor| constructor.get::<_, String>("name").ok());
            let message = object.and_then(|object| object.get::<_, String>("message").ok());
            Some((name.unwrap_or_else(|| "value".to_owned()), message.unwrap_or_default()))
        }
        CaughtError::Error(error) => Some(("Engine".to_owned(), error.to_string())),
    }
}
