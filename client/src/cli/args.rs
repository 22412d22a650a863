//! The arguments.
//!
//! Owns their names, help and syntax. Never opens a file.

use super::admin::args::{AdminArgs, ApproveArgs, TopArgs};
use super::exit::Exit;
use super::shell_args::{CallArgs, CompletionsArgs, FunctionsArgs, LinkArgs, ManArgs};
pub(crate) use super::values::requested_limits;
use super::values::{LimitArg, limit, pattern, time};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Runs untrusted JavaScript in a confined worker, next to functions that you keep.
#[derive(Debug, Parser)]
#[command(name = "brig", version, after_help = Exit::help(), propagate_version = false, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Which brigd.
#[derive(Args, Debug, Default)]
pub(crate) struct Global {
    /// Use the brigd on this socket and no other [env: BRIG_SOCKET] [default:
    /// /run/brig/brig.sock when something answers there, a private brigd otherwise]
    // The library reads the variable: an empty one counts as none.
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Start a private brigd, whatever else there is; it ends with this command
    #[arg(long, global = true)]
    pub(crate) private: bool,
    /// Let a private brigd write its log to standard error
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program given as an argument
    #[command(after_help = Exit::help())]
    Eval(EvalArgs),
    /// Run a program from a file
    #[command(after_help = Exit::help())]
    Run(RunArgs),
    /// Run one input after the other; names persist
    #[command(after_help = Exit::help())]
    Repl(ReplArgs),
    /// Ask for the answer of an evaluation later
    #[command(after_help = Exit::help())]
    Evaluations(EvaluationsArgs),
    /// Parse a program without running it
    #[command(after_help = Exit::help())]
    Check(CheckArgs),
    /// Offer the functions to a model, as a server of the Model Context Protocol
    #[command(after_help = Exit::help())]
    Mcp(McpArgs),
    /// List the functions that are configured for you
    #[command(after_help = Exit::help())]
    Functions(FunctionsArgs),
    /// Call a configured function: `brig call order-store list-orders --customer x`
    #[command(after_help = Exit::call_help())]
    Call(CallArgs),
    /// Make a command of each collection: `brig-order-store list-orders --customer x`
    Link(LinkArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Write the man pages
    Man(ManArgs),
    /// Print the versions of this command and of brigd
    #[command(after_help = Exit::help())]
    Version(VersionArgs),
    /// Check, watch and export the audit records of a brigd (its own tool: brigd audit)
    #[command(disable_help_flag = true)]
    Audit(ForwardArgs),
    /// Say what is missing on this host, and what to do about it
    #[command(after_help = Exit::help())]
    Doctor(DoctorArgs),
    /// Operate a brigd: what runs, revoke, reload, drain
    #[command(after_help = Exit::help())]
    Admin(AdminArgs),
    /// Decide host calls that wait for a person
    #[command(after_help = Exit::help())]
    Approve(ApproveArgs),
    /// Watch a brigd: principals, evaluations, calls, approvals
    #[command(after_help = Exit::help())]
    Top(TopArgs),
    /// Say what a policy means, test it, explain a decision (brigd policy)
    #[command(disable_help_flag = true)]
    Policy(ForwardArgs),
    /// Check and show a configuration (brigd config)
    #[command(disable_help_flag = true)]
    Config(ForwardArgs),
}

/// What goes to brigd as it is.
#[derive(Args, Debug)]
pub(crate) struct ForwardArgs {
    /// Arguments of the command of brigd; `--help` shows them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub(crate) arguments: Vec<std::ffi::OsString>,
}

impl Command {
    /// Whether an error without a result is to be one line of JSON too. `version` and
    /// `doctor` have their own: that no brigd answers is part of their answer.
    pub(crate) const fn prints_json(&self) -> bool {
        match self {
            Self::Eval(eval) => eval.options.json,
            Self::Run(run) => run.options.json,
            Self::Check(check) => check.json,
            Self::Admin(admin) => admin.global.json,
            Self::Approve(approve) => approve.global.json,
            Self::Top(top) => top.global.json,
            Self::Evaluations(evaluations) => evaluations.command.shown().json,
            _ => false,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct EvalArgs {
    /// The program, JavaScript or TypeScript; `-` reads it from standard input
    #[arg(allow_hyphen_values = true)]
    pub(crate) program: String,
    #[command(flatten)]
    pub(crate) options: ProgramArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The file; `-` is standard input
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) options: ProgramArgs,
}

/// What every input of a `brig repl` is given and may do.
#[derive(Args, Debug)]
pub(crate) struct ReplArgs {
    /// The global `inputs`: a JSON file, `name=text`, or `name:=JSON`; later ones win
    #[arg(short, long, value_name = "FILE|NAME=TEXT|NAME:=JSON")]
    pub(crate) inputs: Vec<String>,
    /// Host functions whose handlers are commands; see docs/cli.md
    #[arg(short, long, value_name = "FILE")]
    pub(crate) functions: Vec<PathBuf>,
    /// Wall-clock limit of each input, such as `500ms`, `5s` or `2m` [default: 30s]
    #[arg(short, long, value_name = "TIME", value_parser = time)]
    pub(crate) timeout: Option<Duration>,
    /// Lower a limit, such as `heapBytes=16MiB` or `cpuMs=2s`
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = limit)]
    pub(crate) limit: Vec<LimitArg>,
    /// Let programs call only functions that match, such as `orders.list` or `orders.*`
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub(crate) allow: Vec<String>,
    /// Never let programs call functions that match; wins over --allow
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub(crate) deny: Vec<String>,
    /// IANA time zone [default: UTC]
    #[arg(long, value_name = "ZONE")]
    pub(crate) time_zone: Option<String>,
    /// Print no greeting
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug)]
pub(crate) struct EvaluationsArgs {
    #[command(subcommand)]
    pub(crate) command: EvaluationsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EvaluationsCommand {
    /// Say how far it is, and show its result once it is over
    Get(EvaluationArgs),
    /// Wait until it is over, and show its result
    Wait(WaitArgs),
}

impl EvaluationsCommand {
    /// Which evaluation, and how it is shown.
    pub(crate) const fn shown(&self) -> &EvaluationArgs {
        match self {
            Self::Get(shown) => shown,
            Self::Wait(wait) => &wait.shown,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct WaitArgs {
    #[command(flatten)]
    pub(crate) shown: EvaluationArgs,
    /// Give up waiting after so long, such as `30s` or `10m` [default: wait for its end]
    #[arg(short, long, value_name = "TIME", value_parser = time)]
    pub(crate) timeout: Option<Duration>,
}

#[derive(Args, Debug)]
pub(crate) struct EvaluationArgs {
    /// Its id, as `brig eval --detach` printed it
    #[arg(value_name = "ID")]
    pub(crate) evaluation: String,
    /// Print the whole status object as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a string value without its quotes
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) raw: bool,
    /// Print only the value and errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// The file; `-` is standard input
    pub(crate) file: PathBuf,
    /// Check the types too, against the configured functions and those of --functions: with
    /// node and the `typescript` of the project in the working directory
    #[arg(long)]
    pub(crate) types: bool,
    /// Host functions whose handlers are commands; see docs/cli.md
    #[arg(short, long, value_name = "FILE", requires = "types")]
    pub(crate) functions: Vec<PathBuf>,
    /// How the text is to be read
    #[arg(long, value_enum, default_value_t)]
    pub(crate) form: FormArg,
    /// Print the result object as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print what is wrong and nothing else
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// What a model can run and how it is reached.
#[derive(Args, Debug)]
pub(crate) struct McpArgs {
    /// Host functions whose handlers are commands; see docs/cli.md
    #[arg(short, long, value_name = "FILE")]
    pub(crate) functions: Vec<PathBuf>,
    /// Offer only functions that match, such as `orders.list` or `orders.*`
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub(crate) allow: Vec<String>,
    /// Never offer functions that match; wins over --allow
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub(crate) deny: Vec<String>,
    /// Wall-clock limit of each program, such as `500ms`, `5s` or `2m` [default: 30s]
    #[arg(short, long, value_name = "TIME", value_parser = time)]
    pub(crate) timeout: Option<Duration>,
    /// Lower a limit, such as `heapBytes=16MiB` or `cpuMs=2s`
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = limit)]
    pub(crate) limit: Vec<LimitArg>,
    /// IANA time zone of the programs [default: UTC]
    #[arg(long, value_name = "ZONE")]
    pub(crate) time_zone: Option<String>,
    /// Largest tool text that declares every function, in bytes (three to four to a token);
    /// above it functions are named, and the model looks them up
    #[arg(long, value_name = "BYTES", default_value_t = super::mcp::FULL_BYTES)]
    pub(crate) full_up_to: usize,
    /// How long a program that waits for a person's approval keeps the model waiting, before
    /// it is answered as pending; it goes on all the same
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "20s")]
    pub(crate) pending_after: Duration,
    /// Serve streamable HTTP instead of standard input and output: `unix:PATH`,
    /// `127.0.0.1:PORT` or `[::1]:PORT`
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// File with the bearer token that clients over TCP must present [env: BRIG_MCP_TOKEN
    /// has the token itself]
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(crate) token_file: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct VersionArgs {
    /// Print one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Also run programs that try to get out, and say what held; takes a minute
    #[arg(long)]
    pub(crate) attack: bool,
    /// The configuration of the brigd that is meant
    #[arg(long, value_name = "FILE", default_value = "/etc/brig/brig.toml")]
    pub(crate) config: PathBuf,
    /// Its admin socket [default: the service's]
    #[arg(long, value_name = "PATH", env = "BRIG_ADMIN_SOCKET")]
    pub(crate) admin_socket: Option<PathBuf>,
    /// Print one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a program is given, what it may do, and how its result is shown.
#[derive(Args, Debug, Default)]
pub(crate) struct ProgramArgs {
    /// The global `inputs`: a JSON file (`-` is standard input), `name=text`, or
    /// `name:=JSON`; later ones win
    #[arg(short, long, value_name = "FILE|NAME=TEXT|NAME:=JSON")]
    pub(crate) inputs: Vec<String>,
    /// Host functions whose handlers are commands; see docs/cli.md
    #[arg(short, long, value_name = "FILE")]
    pub(crate) functions: Vec<PathBuf>,
    /// Wall-clock limit, such as `500ms`, `5s` or `2m` [default: 30s]
    #[arg(short, long, value_name = "TIME", value_parser = time)]
    pub(crate) timeout: Option<Duration>,
    /// Lower a limit, such as `heapBytes=16MiB` or `cpuMs=2s`
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = limit)]
    pub(crate) limit: Vec<LimitArg>,
    /// Let the program call only functions that match, such as `orders.list` or
    /// `orders.*`
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub(crate) allow: Vec<String>,
    /// Never let the program call functions that match; wins over --allow
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub(crate) deny: Vec<String>,
    /// How the text is to be read
    #[arg(long, value_enum, default_value_t)]
    pub(crate) form: FormArg,
    /// IANA time zone of the program: Intl and the toLocale* methods follow it; Date's own
    /// getters and texts stay UTC [default: UTC]
    #[arg(long, value_name = "ZONE")]
    pub(crate) time_zone: Option<String>,
    /// Print the whole result object as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a string value without its quotes
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) raw: bool,
    /// Print only the value, errors, and collections that could not be defined
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print console output at the end instead of as it comes
    #[arg(long)]
    pub(crate) no_stream: bool,
    /// List the host calls also when the program succeeded
    #[arg(long)]
    pub(crate) calls: bool,
    /// Print the id of the evaluation once it runs, and leave it running: see
    /// `brig evaluations`. Needs a brigd that stays
    #[arg(long, conflicts_with_all = ["functions", "private", "raw", "calls"])]
    pub(crate) detach: bool,
}

/// How a program text is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormArg {
    /// Find out
    #[default]
    Auto,
    /// One expression
    Expression,
    /// A function body; `return` gives the value
    Body,
    /// An ES module; the default export gives the value
    Module,
}

impl From<FormArg> for brig::Form {
    fn from(form: FormArg) -> Self {
        match form {
            FormArg::Auto => Self::Auto,
            FormArg::Expression => Self::Expression,
            FormArg::Body => Self::Body,
            FormArg::Module => Self::Module,
        }
    }
}

#[cfg(test)]
mod tests;
