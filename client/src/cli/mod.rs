//! The `brig` command.
//!
//! Owns arguments, files, terminal and exit codes. Never talks to brigd but through the
//! library, and never prints what a guest chose without making it safe.

mod admin;
mod args;
mod call;
mod check;
mod command_handler;
mod completions;
mod doctor;
mod evaluations;
mod exit;
mod forward;
mod functions;
mod functions_file;
mod inputs;
mod link;
mod man;
mod mcp;
mod members;
mod read;
mod render;
mod repl;
mod run;
mod session;
mod shell_args;
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
    let (arguments, linked) = link::arguments(std::env::args_os());
    if let Some(words) = call::asked_by_a_shell(&arguments) {
        return run(call::suggest(words)).into();
    }
    let mut cli = match Cli::try_parse_from(arguments) {
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
    if let Command::Call(call) = &mut cli.command {
        call.linked = linked;
    }
    unless_output_is_lost(run(dispatch(cli))).into()
}

/// Runs one command on an event loop of its own.
fn run(command: impl Future<Output = Exit>) -> Exit {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(fault) => {
            terminal::complain(&format!("the event loop can not be started: {fault}"));
            return Exit::Unreachable;
        }
    };
    let exit = runtime.block_on(command);
    // A read of standard input that is still waiting in a thread must not hold the end.
    runtime.shutdown_background();
    exit
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
        Command::Functions(functions) => functions::functions(&cli.global, functions).await,
        Command::Call(call) => call::call(&cli.global, call).await,
        Command::Link(link) => link::link(&cli.global, link).await,
        Command::Completions(completions) => completions::completions(completions),
        Command::Man(man) => man::man(&man),
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
            _ if fault.bare => terminal::err(&format!("{}\n", fault.message)),
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
    /// Whether the message begins with its code, and nothing is to come before it.
    bare: bool,
}

impl Fault {
    /// A mistake in the arguments or in a file that they name.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into(), error: None, bare: false }
    }
}

impl From<brig::Error> for Fault {
    fn from(error: brig::Error) -> Self {
        let message = render::client_error(&error);
        Self { exit: Exit::of_error(&error), message, error: Some(render::error_object(&error)), bare: false }
    }
}
