//! `brig call`: a configured function as a command.
//!
//! Owns the way from words to one call, and how its end is told. Never calls before every
//! word is understood, and never says success of what did not complete.

mod flags;
mod help;
pub(super) mod names;
mod shape;
mod suggest;
mod words;

pub(crate) use suggest::{asked_by_a_shell, suggest};

use super::args::Global;
use super::exit::Exit;
use super::members::Members;
use super::read::{self, Text};
use super::run::Stops;
use super::shell_args::{CallArgs, CallOptions};
use super::{Fault, inputs, render, session, terminal};
use brig::protocol::client::ApprovalNote;
use brig::protocol::escape::escaped;
use brig::protocol::limits::REQUEST_LINE_BYTES;
use brig::{Call, CallState, Client, Error, FunctionsCallResult, FunctionsDescribeResult};
use shape::Shape;
use std::path::Path;
use words::{Reserved, Words};

/// Longest line about an error, in bytes.
const ERROR_BYTES: usize = 4000;

/// Calls the function, or tells about it.
pub(crate) async fn call(global: &Global, args: CallArgs) -> Result<Exit, Fault> {
    let words = words::read(args.words)?;
    let global = global.over(&words.own.global);
    let options = args.options.over(&words.own.options)?;
    let client = session::service(&global).await.map_err(one_line)?;
    let done = with(&client, &words, &options, args.linked).await;
    client.close().await;
    done
}

async fn with(client: &Client, words: &Words, options: &CallOptions, linked: bool) -> Result<Exit, Fault> {
    let listed = client.configured_functions(None).await.map_err(refusal)?;
    let prefix = if linked { format!("brig-{}", words.collection) } else { format!("brig call {}", words.collection) };
    let Some(function) = &words.function else {
        let functions = names::of_collection(&listed, &words.collection)?;
        let text = help::collection(&escaped(&prefix, 200), &functions);
        if words.help {
            terminal::out(&text);
            return Ok(Exit::Succeeded);
        }
        return Err(Fault::usage(format!("name a function of {}; {prefix} --help lists them", escaped(&words.collection, 200))));
    };
    let name = names::function(&listed, &words.collection, function)?;
    let command = escaped(&format!("{prefix} {function}"), 400);
    if !words.help && words.flags.is_empty() {
        // Needs no schema: also for those who may call the function and not see it.
        return made(client, &name, base(options)?.unwrap_or_default(), options, &command).await;
    }
    let about = client.describe_function(&name).await.map_err(refusal)?;
    let shape = shape_of(&about)?;
    if words.help {
        terminal::out(&help::function(&command, &about, &shape, &Reserved::new()));
        return Ok(Exit::Succeeded);
    }
    let settings = flags::parse(&shape, &words.flags)?;
    let input = flags::apply(base(options)?.unwrap_or_default(), settings)?;
    made(client, &name, input, options, &command).await
}

fn shape_of(about: &FunctionsDescribeResult) -> Result<Shape, Fault> {
    match serde_json::from_str(about.input_schema.get()) {
        Ok(schema) => Ok(Shape::read(&schema)),
        Err(fault) => {
            Err(Fault::usage(format!("the input schema of {} can not be read ({fault}); use --json", escaped(&about.function, 200))))
        }
    }
}

/// What `--json` or `--json-file` say.
fn base(options: &CallOptions) -> Result<Option<Members>, Fault> {
    let text = match (&options.json, &options.json_file) {
        (Some(json), _) if json != "-" => Text { name: "--json".to_owned(), text: json.clone() },
        (Some(_), _) => read::text(Path::new("-"), "input", REQUEST_LINE_BYTES)?,
        (None, Some(file)) => read::text(file, "input", REQUEST_LINE_BYTES)?,
        (None, None) => return Ok(None),
    };
    inputs::object(&text, "the input").map(Some)
}

async fn made(client: &Client, name: &str, input: Members, options: &CallOptions, command: &str) -> Result<Exit, Fault> {
    let mut call = Call::new(name).input(input).on_approval(|note| terminal::err(&waits(note)));
    if let Some(time) = options.timeout {
        call = call.timeout(time);
    }
    if let Some(key) = &options.idempotency_key {
        call = call.idempotency_key(key);
    }
    // Before anything is sent: an interrupt that comes at once must not be missed.
    let mut stops = Stops::new();
    let mut calling = client.call(&call);
    let canceller = calling.canceller();
    let answer = tokio::select! {
        answer = &mut calling => answer,
        () = stops.next() => {
            canceller.cancel();
            tokio::select! {
                answer = &mut calling => answer,
                () = stops.next() => Err(Error::ConnectionLost("this command gave up waiting".to_owned())),
            }
        }
    };
    Ok(show(&answer.map_err(refusal)?, options, command))
}

/// The line that says what is waited for: also in a script's log, where nothing else would
/// say why it stands still.
fn waits(note: &ApprovalNote) -> String {
    let seconds = note.expires_in_ms.div_ceil(1000);
    let line = format!(
        "waiting: {} needs a person's approval, for at most {seconds} s; an approver decides with: brig approve {}",
        note.function, note.approval
    );
    format!("{}\n", escaped(&line, ERROR_BYTES))
}

/// Prints the value, or why there is none; the exit is that of the state.
fn show(result: &FunctionsCallResult, options: &CallOptions, command: &str) -> Exit {
    match (&result.error, &result.value, result.call.state) {
        (None, Some(value), CallState::Completed) => {
            let terminal = terminal::reads_stdout();
            let is_text = value.get().starts_with('"');
            let pretty = terminal || (options.raw && is_text);
            terminal::out(&if pretty { render::value(value, options.raw, terminal) } else { render::json_line(value) });
        }
        (Some(error), _, state) => {
            let own = error.function_code.as_ref().map(|code| format!(" [{code}]")).unwrap_or_default();
            let more = match (error.code, state) {
                (brig::CallCode::InvalidInput, CallState::Refused) => format!("; see {command} --help"),
                (_, CallState::Unknown) => "; whether it had its effect is unknown".to_owned(),
                _ => String::new(),
            };
            terminal::err(&format!("{}\n", escaped(&format!("{}: {}{own}{more}", error.code, error.message), ERROR_BYTES)));
        }
        (None, _, _) => terminal::err("protocol_error: brigd told neither a value nor an error; whether it had its effect is unknown\n"),
    }
    Exit::of_call(result)
}

/// Why there is no answer, in one line that begins with its code.
fn refusal(error: Error) -> Fault {
    one_line(Fault::from(error))
}

fn one_line(mut fault: Fault) -> Fault {
    if let Some(error) = &fault.error {
        let text = |name: &str| error.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
        let hint = match text("hint") {
            "" => String::new(),
            hint => format!(" ({hint})"),
        };
        fault.message = escaped(&format!("{}: {}{hint}", text("code"), text("message")), ERROR_BYTES);
        fault.bare = true;
    }
    fault
}
