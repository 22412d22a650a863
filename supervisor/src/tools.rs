//! Offline tools: what brigd does instead of serving.
//!
//! Owns the list of subcommands. They live in brigd because only its own code knows what
//! it would load. A tool starts no worker, opens no socket, and needs no running brigd.

use crate::audit::tools::AuditTool;
use crate::config::tool::ConfigTool;
use crate::journal::JournalTool;
use crate::policy::tool::PolicyTool;
use std::process::ExitCode;

/// One tool. Each has its arguments and its work in a module of its own.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Tool {
    /// Check, watch and export audit records.
    #[command(subcommand)]
    Audit(AuditTool),
    /// Look at the configuration.
    #[command(subcommand)]
    Config(ConfigTool),
    /// Copy the journal.
    #[command(subcommand)]
    Journal(JournalTool),
    /// Say what a policy means, and test it before it is loaded.
    #[command(subcommand)]
    Policy(PolicyTool),
}

impl Tool {
    /// Does the work.
    pub(crate) fn run(&self) -> ExitCode {
        match self {
            Self::Audit(tool) => tool.run(),
            Self::Config(tool) => tool.run(),
            Self::Journal(tool) => tool.run(),
            Self::Policy(tool) => tool.run(),
        }
    }
}
