//! `brig eval` and `brig run`.
//!
//! Owns the way from arguments to an evaluation, and Ctrl-C: the first cancels and
//! still shows what there is, the second gives up waiting.

use super::args::{EvalArgs, Global, ProgramArgs, RunArgs, requested_limits};
use super::exit::Exit;
use super::read::{self, Text};
use super::{Fault, evaluations, functions_file, inputs, render, session, terminal};
use brig::protocol::limits::SOURCE_BYTES;
use brig::{Canceller, Evaluate, EvaluateResult, Evaluation, Mode, Operation, Outcome, Permissions, Rule, Scope, ScopeRules};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// `brig eval PROGRAM`.
pub(crate) async fn eval(global: &Global, args: EvalArgs) -> Result<Exit, Fault> {
    let program = if args.program == "-" {
        read::text(Path::new("-"), "program", SOURCE_BYTES)?
    } else {
        Text { name: "program".to_owned(), text: args.program }
    };
    evaluate(global, &program, &args.options).await
}

/// `brig run FILE`.
pub(crate) async fn run(global: &Global, args: RunArgs) -> Result<Exit, Fault> {
    let program = read::text(&args.file, "program", SOURCE_BYTES)?;
    evaluate(global, &program, &args.options).await
}

async fn evaluate(global: &Global, program: &Text, options: &ProgramArgs) -> Result<Exit, Fault> {
    let mut evaluate = request(program, options)?;
    if options.detach {
        return evaluations::detach(global, evaluate, options).await;
    }
    let streamed = Arc::new(AtomicBool::new(false));
    if !(options.json || options.quiet || options.no_stream) {
        let streamed = Arc::clone(&streamed);
        evaluate = evaluate.on_output(move |note| {
            streamed.store(true, Ordering::Relaxed);
            terminal::err(&terminal::safe_lines(&note.text));
        });
    }
    let client = session::open(global, options.quiet || options.json).await?;
    let answer = await_or_cancel(|| client.evaluate(evaluate)).await;
    client.close().await;
    let Some(answer) = answer else {
        return Ok(Exit::Cancelled);
    };
    let result = answer?;
    show(program, &result, options, streamed.load(Ordering::Relaxed));
    Ok(Exit::of_result(&result))
}

/// The request that the arguments describe.
fn request(program: &Text, options: &ProgramArgs) -> Result<Evaluate, Fault> {
    let mut evaluate = Evaluate::new(program.text.as_str())
        .form(options.form.into())
        .limits(requested_limits(&options.limit))
        .host_functions(functions_file::load(&options.functions)?);
    if let Some(inputs) = inputs::read(&options.inputs)? {
        evaluate = evaluate.inputs(inputs);
    }
    if let Some(time) = options.timeout {
        evaluate = evaluate.timeout(time);
    }
    if let Some(zone) = &options.time_zone {
        evaluate = evaluate.time_zone(zone);
    }
    if let Some(scope) = scope(&options.allow, &options.deny) {
        evaluate = evaluate.permissions(Permissions { host_function: Some(scope) });
    }
    Ok(evaluate)
}

/// The last rule that matches wins, so the denials come last. With nothing but denials
/// everything else stays allowed; this only ever narrows what policy grants.
pub(super) fn scope(allow: &[String], deny: &[String]) -> Option<Scope<'static>> {
    if allow.is_empty() && deny.is_empty() {
        return None;
    }
    let rule = |mode, patterns: &[String]| {
        (!patterns.is_empty()).then(|| Rule {
            mode,
            operations: vec![Operation::Invoke, Operation::List],
            patterns: patterns.to_vec(),
            when: None,
            why: None,
        })
    };
    let rules = [rule(Mode::Allow, allow), rule(Mode::Deny, deny)].into_iter().flatten().collect();
    let default = if allow.is_empty() { Mode::Allow } else { Mode::Deny };
    Some(Scope::Rules(ScopeRules { default, rules }))
}

/// The signals that mean: stop.
pub(super) struct Stops {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
}

impl Stops {
    pub(super) fn new() -> Self {
        Self { interrupt: signal(SignalKind::interrupt()).ok(), terminate: signal(SignalKind::terminate()).ok() }
    }

    pub(super) async fn next(&mut self) {
        async fn one(signal: &mut Option<Signal>) {
            match signal {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        }
        tokio::select! {
            () = one(&mut self.interrupt) => {}
            () = one(&mut self.terminate) => {}
        }
    }
}

/// The answer, also after a first Ctrl-C. Nothing after a second. Signals are listened for
/// before anything is sent: one that comes at once must not be missed.
pub(super) async fn await_or_cancel(start: impl FnOnce() -> Evaluation) -> Option<Result<EvaluateResult, brig::Error>> {
    let mut stops = Stops::new();
    let mut evaluation = start();
    let canceller: Canceller = evaluation.canceller();
    tokio::select! {
        answer = &mut evaluation => return Some(answer),
        () = stops.next() => canceller.cancel(),
    }
    tokio::select! {
        answer = &mut evaluation => Some(answer),
        () = stops.next() => None,
    }
}

/// Prints a result: the value on standard output, everything else on standard error.
pub(super) fn show(program: &Text, result: &EvaluateResult, options: &ProgramArgs, streamed: bool) {
    if options.json {
        terminal::out(&render::json_line(result));
        return;
    }
    if !options.quiet {
        if !streamed {
            terminal::err(&terminal::safe_lines(&result.stderr));
            terminal::err(&terminal::safe_lines(&result.stdout));
        }
        terminal::err(&render::notes(result));
        if options.calls || (result.error.is_some() && !result.calls.is_empty()) {
            terminal::err(&render::calls(&result.calls));
        }
    }
    if options.quiet {
        terminal::err(&render::undefined_collections(result));
    }
    if let Some(error) = &result.error {
        if result.outcome == Outcome::Cancelled && !(options.quiet || result.calls.is_empty()) {
            terminal::err("what was done until then is listed above; it is not undone\n");
        }
        terminal::err(&render::evaluation_error(error, program));
    }
    if let Some(value) = &result.value {
        terminal::out(&render::value(value, options.raw, terminal::reads_stdout()));
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    fn scope_json(allow: &[&str], deny: &[&str]) -> serde_json::Value {
        let own = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        serde_json::to_value(scope(&own(allow), &own(deny))).unwrap()
    }

    #[test]
    fn denials_come_last_so_that_they_win() {
        let scope = scope_json(&["orders.*"], &["orders.refund"]);
        assert_eq!(scope["rules"][0]["mode"], "allow");
        assert_eq!(scope["rules"][1]["mode"], "deny");
        assert!(scope.get("default").is_none(), "deny is what is left out: {scope}");
    }

    #[test]
    fn nothing_but_denials_leaves_the_rest_allowed() {
        assert_eq!(scope_json(&[], &["orders.refund"])["default"], "allow");
        assert!(scope_json(&[], &[]).is_null());
    }
}
