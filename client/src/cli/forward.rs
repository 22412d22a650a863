//! Tools that brigd has: `brig audit …` runs `brigd audit …`.
//!
//! Owns handing over. Only brigd's own code knows what it would read and load, so this
//! becomes brigd, with its exit codes, and never interprets what it says.

use super::Fault;
use brig::find_binary;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Becomes the brigd that is found; returns only if there is none.
pub(crate) fn forward(tool: &str, arguments: &[OsString]) -> Fault {
    let brigd = match find_binary("brigd", "BRIGD") {
        Ok(brigd) => brigd,
        Err(why) => return Fault::usage(why),
    };
    let fault = Command::new(&brigd).arg(tool).args(arguments).exec();
    Fault::usage(format!("{} can not be started: {fault}", brigd.display()))
}
