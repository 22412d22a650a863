//! The `brig` command.
//!
//! Owns arguments, files, terminal and exit codes. Never talks to brigd but through the
//! library, and never prints what a guest chose without making it safe.

mod admin;
mod args;
mod check;
mod command_handler;
mod doctor;
mod evaluations;
mod exit;
mod forward;
mod functions_file;
mod inputs;
mod mcp;
mod read;
mod render;
mod repl;
mod run;
mod session;
mod spelling;
mod terminal;
mod type_check;
mod values;

use args::{Cli, Command};
use clap::Parser;
use exit::Exit;
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;

/// Parses the arguments and does what they say.
pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(fault) => {
            // Help and version go to stdout and are no fault; a closed pipe is nobody's.
            let printed = fault.print();
            if fault.use_stderr() {
                return Exit::Usage.into();
            }
            terminal::note_output(printed.and_then(|()| std::io::stdout().flush()));
            return unless_output_is_lost(Exit::Succeeded).into();
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(fault) => {
            terminal::complain(&format!("the event loop can not be started: {fault}"));
            return Exit::Unreachable.into();
        }
    };
    let exit = runtime.block_on(dispatch(cli));
    // A read of standard input that is still waiting in a thread must not hold the end.
    runtime.shutdown_background();
    unless_output_is_lost(exit).into()
}

/// An answer that did not arrive is no success, whatever the program did.
fn unless_output_is_lost(exit: Exit) -> Exit {
    match terminal::lost_output() {
        Some(why) => {
            terminal::complain(&format!("standard output can not be written: {why}"));
            Exit::OutputLost
        }
        None => exit,
    }
}

async fn dispatch(cli: Cli) -> Exit {
    let json = cli.command.prints_json();
    let done = match cli.command {
        Command::Eval(eval) => run::eval(&cli.global, eval).await,
        Command::Run(program) => run::run(&cli.global, program).await,
        Command::Repl(repl) => repl::repl(&cli.global, repl).await,
        Command::Evaluations(evaluations) => evaluations::evaluations(&cli.global, evaluations).await,
        Command::Check(check) => check::check(&cli.global, check).await,
        Command::Mcp(mcp) => mcp::mcp(&cli.global, mcp).await,
        Command::Version(version) => session::version(&cli.global, version).await,
        Command::Audit(args) => Err(forward::to_brigd("audit", &args.arguments)),
        Command::Doctor(doctor) => doctor::doctor(&cli.global, doctor).await,
        Command::Admin(args) => admin::admin(args).await,
        Command::Approve(args) => admin::approve(args).await,
        Command::Top(args) => admin::top(args).await,
        Command::Config(config) => Err(forward::to_brigd("config", &config.arguments)),
        Command::Policy(policy) => Err(forward::to_brigd("policy", &policy.arguments)),
    };
    done.unwrap_or_else(|fault| {
        match &fault.error {
            Some(error) if json => terminal::out(&render::json_line(&json!({ "error": error }))),
            _ => terminal::complain(&fault.message),
        }
        fault.exit
    })
}

/// Why a command can not go on: what to say, and how to end.
#[derive(Debug)]
pub(crate) struct Fault {
    exit: Exit,
    message: String,
    /// What `--json` prints of it; nothing for a mistake in the arguments.
    error: Option<Value>,
}

impl Fault {
    /// A mistake in the arguments or in a file that they name.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into(), error: None }
    }
}

impl From<brig::Error> for Fault {
    fn from(error: brig::Error) -> Self {
        Self { exit: Exit::of_error(&error), message: render::client_error(&error), error: Some(render::error_object(&error)) }
    }
}
