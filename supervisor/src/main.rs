//! brigd: the supervisor, the only trusted process.
//!
//! Owns the order of the start and of the end. Everything that can fail at the start
//! fails before a client can connect, naming what is missing and what to do.

mod admin;
mod admission;
mod api;
mod approvals;
mod audit;
mod cgroup;
mod changes;
mod channel;
mod config;
mod connection;
mod evaluation;
mod host;
mod journal;
mod keeper;
mod lifecycle;
mod listener;
mod logging;
mod metrics;
mod notify;
mod nursery;
mod policy;
mod pool;
mod records;
mod reload;
mod say;
mod serve;
mod service;
mod settings;
mod spawn;
mod state;
mod survey;
mod telemetry;
mod time_of_day;
mod tools;
mod vm;
mod watchdog;

use clap::Parser;
use config::Config;
use settings::{Arguments, Fault};
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    // Before anything else: in these roles it is another program.
    if let Some(code) = keeper::play(std::env::args_os()) {
        return code;
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => Arc::new(arguments),
        Err(told) => return usage(&told),
    };
    if let Some(tool) = &arguments.tool {
        return tool.run();
    }
    match start(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            tracing::error!("{fault}");
            // The log may go to the journal; whoever started it by hand reads this.
            let code = fault.exit_code();
            match fault {
                Fault::Config(faults) => faults.each().iter().for_each(|fault| say::complain(&fault.to_string())),
                other => say::complain(&other.to_string()),
            }
            ExitCode::from(code)
        }
    }
}

/// Help, the version, or what is wrong with the arguments.
fn usage(told: &clap::Error) -> ExitCode {
    // As it is, colours and all: only who started brigd chose what is in it.
    let printed = told.print().and_then(|()| std::io::Write::flush(&mut std::io::stdout()));
    if told.use_stderr() { ExitCode::from(2) } else { say::end_of(printed) }
}

fn start(arguments: &Arc<Arguments>) -> Result<(), Fault> {
    settings::harden()?;
    let mut config = Config::load(arguments.config.as_deref())?;
    arguments.override_settings(&mut config);
    config.check()?;
    logging::start(&config.server.log);
    let mut workers = settings::worker_settings(&config)?;
    // Before there are threads and children: what brigd starts is born where brigd is.
    if !arguments.check {
        workers.cgroups = settings::claim_cgroups(&config)?;
        workers.kills = if workers.cgroups.is_none() { cgroup::Kills::watch().map(Arc::new) } else { None };
    }
    let runtime = settings::runtime(config.runtime.threads)?;
    let outcome = runtime.block_on(serve::run(config, workers, arguments));
    // Whatever still runs on the runtime's threads has no claim to be awaited.
    runtime.shutdown_background();
    outcome
}
