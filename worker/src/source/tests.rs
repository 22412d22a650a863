//! Behaviour of program preparation, most of it seen through the engine.

#![expect(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "tests")]

mod arbitrary;
mod hostile;
mod kept;
mod messages;
mod modules;
mod refusals;
mod typescript;
mod unawaited;
mod values;

use super::{Form, Language, Mode, PositionMap, Program, SourceError, SourceErrorKind, prepare, uncalled};
use rquickjs::context::EvalOptions;
use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, Promise, Runtime, Value};

/// What a program came to: its value as JSON text, or where it failed.
#[derive(Debug, PartialEq, Eq)]
enum Came {
    To(String),
    Failed { message: String, line: u32, column: u32 },
}

struct Engine {
    context: Context,
    runtime: Runtime,
}

impl Engine {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        runtime.set_max_stack_size(512 * 1024);
        let context = Context::full(&runtime).unwrap();
        let engine = Self { context, runtime };
        let world = "globalThis.inputs = Object.freeze({ n: 7 });
            globalThis.items = { get: async ({ id }) => id > 3 ? null : { id, name: ['zero', 'one', 'two', 'three'][id] } };
            globalThis.logs = []; globalThis.calls = 0;";
        assert_eq!(engine.run(world, false).map(|_| ()), Ok(()));
        engine
    }

    fn run(&self, code: &str, promise: bool) -> Result<String, (String, String)> {
        self.context.with(|ctx| {
            let mut options = EvalOptions::default();
            options.promise = promise;
            options.strict = false;
            options.filename = Some("program".into());
            let value = ctx.eval_with_options::<Value<'_>, _>(code, options).catch(&ctx).map_err(describe)?;
            let value = self.settled(&ctx, value)?;
            let value = if promise { value.as_object().unwrap().get("value").unwrap() } else { value };
            let value = self.settled(&ctx, value)?;
            Ok(ctx.json_stringify(value).unwrap().map_or("undefined".into(), |text| text.to_string().unwrap()))
        })
    }

    fn settled<'js>(&self, ctx: &Ctx<'js>, value: Value<'js>) -> Result<Value<'js>, (String, String)> {
        let Some(promise) = value.as_promise() else { return Ok(value) };
        let promise: Promise<'js> = promise.clone();
        while ctx.execute_pending_job() {}
        match promise.result::<Value<'js>>() {
            Some(result) => result.catch(ctx).map_err(describe),
            None => panic!("the program never settles"),
        }
    }

    fn came(&self, program: &Program) -> Came {
        if let Some(Err(failed)) = program.as_written.as_ref().map(|written| self.run(&written.code, false)) {
            return failure(failed, &program.as_written.as_ref().unwrap().map);
        }
        match self.run(&program.code, program.mode == Mode::Script) {
            Ok(value) => Came::To(value),
            Err(failed) => failure(failed, &program.map),
        }
    }
}

fn failure((message, stack): (String, String), map: &PositionMap) -> Came {
    let (line, column) = first_position(&stack);
    let (line, column) = map.original(line, column);
    Came::Failed { message, line, column }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.runtime.run_gc();
    }
}

fn describe(error: CaughtError<'_>) -> (String, String) {
    match error {
        CaughtError::Exception(exception) => (exception.message().unwrap_or_default(), exception.stack().unwrap_or_default()),
        CaughtError::Value(value) => (format!("{value:?}"), String::new()),
        CaughtError::Error(error) => (error.to_string(), String::new()),
    }
}

/// The first `program:LINE:COLUMN` of a stack.
fn first_position(stack: &str) -> (u32, u32) {
    let Some(at) = stack.find("program:") else { return (1, 1) };
    let mut numbers = stack[at + 8..].split(|c: char| !c.is_ascii_digit()).map(|text| text.parse().unwrap_or(1));
    (numbers.next().unwrap(), numbers.next().unwrap_or(1))
}

fn auto(text: &str) -> Result<Program, SourceError> {
    prepare(text, Form::Auto, Language::Auto, false)
}

/// What `text` comes to in a fresh engine, in any form.
fn value(text: &str) -> String {
    let program = match auto(text) {
        Ok(program) => program,
        Err(error) => return format!("refused {:?} {}:{} {}", error.kind, error.line, error.column, error.message),
    };
    match Engine::new().came(&program) {
        Came::To(value) => value,
        Came::Failed { message, line, column } => format!("failed {line}:{column} {message} <- {}", program.code),
    }
}

fn table(rows: &[(&str, &str)]) {
    let wrong: Vec<String> = rows
        .iter()
        .map(|(text, wanted)| (text, wanted, value(text)))
        .filter(|(_, wanted, got)| got != *wanted)
        .map(|(text, wanted, got)| format!("{text:?}\n   wanted {wanted}\n   got    {got}"))
        .collect();
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}
