//! `brig eval --detach`, `brig evaluations get` and `wait`.
//!
//! Owns leaving a program running and asking for its result later. Never starts a
//! brigd for it: one that ends with this command keeps nothing.

use super::args::{EvaluationArgs, EvaluationsArgs, EvaluationsCommand, Global, ProgramArgs};
use super::exit::Exit;
use super::read::Text;
use super::{Fault, render, run, session, terminal};
use brig::{Client, Evaluate, EvaluationState, EvaluationStatus};
use std::time::{Duration, Instant};

/// What one request waits at most: brigd takes no longer.
const WAIT: Duration = Duration::from_secs(600);

/// Begins a program, prints its id, and leaves it.
pub(super) async fn detach(global: &Global, evaluate: Evaluate, options: &ProgramArgs) -> Result<Exit, Fault> {
    let client = lasting(global).await?;
    let status = client.detach(evaluate).await;
    client.close().await;
    let status = status?;
    if options.json {
        terminal::out(&render::json_line(&status));
    } else {
        terminal::out(&format!("{}\n", terminal::safe_lines(&status.evaluation)));
    }
    Ok(Exit::Succeeded)
}

/// `brig evaluations get ID` and `brig evaluations wait ID`.
pub(crate) async fn evaluations(global: &Global, args: EvaluationsArgs) -> Result<Exit, Fault> {
    let client = lasting(global).await?;
    let shown = args.command.shown();
    let status = match &args.command {
        EvaluationsCommand::Get(get) => client.get_evaluation(&get.evaluation).await,
        EvaluationsCommand::Wait(wait) => waited(&client, &wait.shown.evaluation, wait.timeout).await,
    };
    client.close().await;
    Ok(show(&status?, shown))
}

/// Asks again for as long as it may take.
async fn waited(client: &Client, evaluation: &str, timeout: Option<Duration>) -> Result<EvaluationStatus, brig::Error> {
    let until = timeout.map(|timeout| Instant::now() + timeout);
    loop {
        let left = until.map_or(WAIT, |until| until.saturating_duration_since(Instant::now()).min(WAIT));
        let status = client.wait_evaluation(evaluation, Some(left)).await?;
        if status.state != EvaluationState::Running || until.is_some_and(|until| Instant::now() >= until) {
            return Ok(status);
        }
    }
}

/// A brigd that was there before this command, and is after it.
async fn lasting(global: &Global) -> Result<Client, Fault> {
    if global.private {
        return Err(Fault::usage("a private brigd ends with this command, and keeps nothing: leave --private out"));
    }
    Ok(Client::connect(session::named_socket(global)).await?)
}

fn show(status: &EvaluationStatus, args: &EvaluationArgs) -> Exit {
    let exit = status.result.as_ref().map_or(Exit::TimedOut, Exit::of_result);
    if args.json {
        terminal::out(&render::json_line(status));
        return exit;
    }
    match &status.result {
        Some(result) => {
            let options = ProgramArgs { raw: args.raw, quiet: args.quiet, calls: true, ..ProgramArgs::default() };
            // Its text is not kept: places in it are told, and not shown.
            let program = Text { name: status.evaluation.clone(), text: String::new() };
            run::show(&program, result, &options, false);
        }
        None => terminal::err("it is still running\n"),
    }
    exit
}
