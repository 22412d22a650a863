//! Commands that are brigd's own: only its code knows what it would load.
//!
//! Owns finding the brigd that there is, and becoming it. Never reads a policy.

use super::Fault;
use brig::find_binary;
use brig::protocol::escape::ShowPath as _;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Becomes `brigd WORD …`; comes back only when that can not be.
pub(crate) fn to_brigd(word: &str, arguments: &[OsString]) -> Fault {
    let brigd = match find_binary("brigd", "BRIGD") {
        Ok(brigd) => brigd,
        Err(why) => return Fault::usage(format!("brig {word} is a command of brigd, and there is no brigd: {why}")),
    };
    let fault = Command::new(&brigd).arg(word).args(arguments).exec();
    Fault::usage(format!("{} can not be run: {fault}", brigd.shown()))
}
