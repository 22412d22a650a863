//! The arguments of `brig admin`, `brig approve` and `brig top`.

use super::super::exit::Exit;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Where brigd takes admins when nobody says otherwise.
const ADMIN_SOCKET: &str = "/run/brig/admin.sock";

/// Which admin socket, and how to print.
#[derive(Args, Debug)]
pub(crate) struct AdminGlobal {
    /// The admin socket
    #[arg(long, global = true, value_name = "PATH", env = "BRIG_ADMIN_SOCKET", default_value = ADMIN_SOCKET)]
    pub(crate) admin_socket: PathBuf,
    /// Print the answer of brigd as one line of JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Operate a brigd.
#[derive(Args, Debug)]
pub(crate) struct AdminArgs {
    #[command(flatten)]
    pub(crate) global: AdminGlobal,
    #[command(subcommand)]
    pub(crate) command: AdminCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AdminCommand {
    /// Everything about this brigd, in figures
    #[command(after_help = Exit::help())]
    Status,
    /// List what runs
    #[command(after_help = Exit::help())]
    Evaluations,
    /// End an evaluation; its client is told
    #[command(after_help = Exit::help())]
    Kill {
        /// Which, `ev_…`
        evaluation: String,
        /// For the record
        #[arg(long)]
        reason: Option<String>,
    },
    /// Let functions, or a principal, be used no more; ends what uses them now
    #[command(after_help = Exit::help())]
    Revoke(TargetArgs),
    /// Take a revoke back
    #[command(after_help = Exit::help())]
    Restore(TargetArgs),
    /// List what is revoked
    #[command(after_help = Exit::help())]
    Revoked,
    /// Say whether the configuration would load; change nothing
    #[command(after_help = Exit::help())]
    Check,
    /// Load the configuration, all of it or nothing
    #[command(after_help = Exit::help())]
    Reload,
    /// The last audit records, or whether all are as they were written
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Take no new work, finish what runs, and end
    #[command(after_help = Exit::help())]
    Drain,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Print the last records, as lines of JSON
    #[command(after_help = Exit::help())]
    Tail {
        /// How many; 20 when left out
        #[arg(short = 'n', long, value_name = "N")]
        lines: Option<u64>,
    },
    /// Say whether all records are as they were written; the exit code says so too
    #[command(after_help = Exit::help())]
    Verify {
        /// A hash that was noted elsewhere: a record must have it; may be repeated
        #[arg(long = "anchor", value_name = "HASH")]
        anchors: Vec<String>,
    },
}

#[derive(Args, Debug)]
pub(crate) struct TargetArgs {
    /// A function or a pattern, such as `store.refund` or `store.*`
    #[arg(required_unless_present = "principal")]
    pub(crate) pattern: Option<String>,
    /// A principal instead, such as `uid:1000`, `user:ada` or `group:agents`
    #[arg(long, value_name = "PRINCIPAL", conflicts_with = "pattern")]
    pub(crate) principal: Option<String>,
    /// For the record
    #[arg(long)]
    pub(crate) reason: Option<String>,
}

/// Decide calls that wait for a person; without an id, list them.
#[derive(Args, Debug)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    pub(crate) global: AdminGlobal,
    #[command(subcommand)]
    pub(crate) command: Option<ApproveCommand>,
    /// Which call, `ap_…`: shows what would run, and asks
    pub(crate) approval: Option<String>,
    /// For the record
    #[arg(long, requires = "approval")]
    pub(crate) comment: Option<String>,
    /// Say yes to what is shown without asking; needed where nobody sits at a terminal
    #[arg(long, requires = "approval")]
    pub(crate) yes: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApproveCommand {
    /// List what waits
    #[command(after_help = Exit::help())]
    List {
        /// Also what was decided
        #[arg(long)]
        decided: bool,
    },
    /// Show exactly what would run
    #[command(after_help = Exit::help())]
    Show {
        /// Which, `ap_…`
        approval: String,
    },
    /// Do not let it run
    #[command(after_help = Exit::help())]
    Deny {
        /// Which, `ap_…`
        approval: String,
        /// For the record; the program does not see it
        #[arg(long)]
        comment: Option<String>,
    },
}

/// Watch a brigd.
#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    pub(crate) global: AdminGlobal,
    /// Print one frame and end
    #[arg(long)]
    pub(crate) once: bool,
}
