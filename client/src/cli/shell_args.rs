//! The arguments of the commands for shells: functions as commands, links, completions.
//!
//! Owns their names, help and syntax. Never opens a file.

use super::Fault;
use super::args::Global;
use super::values::time;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args, Debug)]
pub(crate) struct FunctionsArgs {
    /// Only this collection
    pub(crate) collection: Option<String>,
    /// Print one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CallArgs {
    #[command(flatten)]
    pub(crate) options: CallOptions,
    /// The collection, the function, and its flags, such as `order-store list-orders
    /// --customer x`; with --help after them, the function tells its flags
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "COLLECTION FUNCTION [FLAGS]")]
    pub(crate) words: Vec<OsString>,
    /// Whether it was called by the name of a link.
    #[arg(skip)]
    pub(crate) linked: bool,
}

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct CallOptions {
    /// The input as a JSON object, or what flags do not say of it; `-` reads standard input
    #[arg(long, value_name = "JSON", allow_hyphen_values = true, conflicts_with = "json_file")]
    pub(crate) json: Option<String>,
    /// The same from a file
    #[arg(long, value_name = "FILE")]
    pub(crate) json_file: Option<PathBuf>,
    /// Print a string value without its quotes
    #[arg(long)]
    pub(crate) raw: bool,
    /// Give up after so long, such as `500ms`, `5s` or `2m` [default: the function's own time]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) timeout: Option<Duration>,
    /// Same key and same input: the same answer, and nothing runs twice
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

impl CallOptions {
    /// These, where `later` does not say otherwise.
    pub(crate) fn over(self, later: &Self) -> Result<Self, Fault> {
        let both = Self {
            json: later.json.clone().or(self.json),
            json_file: later.json_file.clone().or(self.json_file),
            raw: later.raw || self.raw,
            timeout: later.timeout.or(self.timeout),
            idempotency_key: later.idempotency_key.clone().or(self.idempotency_key),
        };
        if both.json.is_some() && both.json_file.is_some() {
            return Err(Fault::usage("--json and --json-file can not both be given"));
        }
        Ok(both)
    }
}

impl Global {
    /// These, where `later` does not say otherwise.
    pub(crate) fn over(&self, later: &Self) -> Self {
        Self {
            socket: later.socket.clone().or_else(|| self.socket.clone()),
            private: later.private || self.private,
            verbose: later.verbose || self.verbose,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct LinkArgs {
    /// A directory that is there, best one on PATH
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Remove the links of this brig instead
    #[arg(long)]
    pub(crate) remove: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// Of which shell
    #[arg(value_enum)]
    pub(crate) shell: ShellArg,
}

/// A shell that can complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShellArg {
    Bash,
    Zsh,
    Fish,
}

#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// A directory that is there; brig.1 and a page of each command are written to it
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}
