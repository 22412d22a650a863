//! `brig man`: the man pages, from the definitions that `--help` prints.
//!
//! Owns where they go. Never says anything that `--help` does not.

use super::args::Cli;
use super::exit::Exit;
use super::shell_args::ManArgs;
use super::{Fault, terminal};
use brig::protocol::escape::ShowPath as _;
use brig::protocol::escape::escaped;
use clap::CommandFactory;

/// Writes `brig.1` and a page of each command.
pub(crate) fn man(args: &ManArgs) -> Result<Exit, Fault> {
    let folder = escaped(&args.folder.shown().to_string(), 1000);
    if !args.folder.is_dir() {
        return Err(Fault::usage(format!("{folder} is no directory")));
    }
    clap_mangen::generate_to(Cli::command(), &args.folder)
        .map_err(|fault| Fault::usage(format!("the man pages can not be written to {folder}: {fault}")))?;
    terminal::err(&format!("brig.1 and the pages of its commands are in {folder}\n"));
    Ok(Exit::Succeeded)
}
