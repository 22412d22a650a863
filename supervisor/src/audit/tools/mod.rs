//! `brigd audit …`: reading records offline.
//!
//! Owns the arguments and the exit codes: 0 all is well, 1 something is wrong with the
//! records, 2 nothing can be said. Never writes into the folder.

mod export;
mod show;
pub(crate) mod tail;

use super::record::Hash;
use super::verify::{Report, verify};
use crate::config::Config;
use crate::config::tool::DEFAULT_PATH;
use crate::say;
use brig_protocol::escape::ShowPath as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where records are when no configuration says otherwise.
const FOLDER: &str = "/var/lib/brig/audit";

/// What can be done with records.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum AuditTool {
    /// Check that no record was changed, removed, put in or moved. Exit code 0: none; 1:
    /// broken, with segment, line and why; 2: the records can not be read.
    Verify(VerifyArgs),
    /// Print the last records, and new ones as they come.
    Tail(tail::TailArgs),
    /// Print records that match, as lines of JSON or as CSV.
    Export(export::ExportArgs),
}

/// Which folder.
#[derive(Debug, clap::Args)]
pub(crate) struct Place {
    /// Folder of the records [default: audit.dir of the configuration, else /var/lib/brig/audit].
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Configuration file that names the folder [default: /etc/brig/brig.toml, where there is one].
    #[arg(long, value_name = "FILE", conflicts_with = "dir")]
    config: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    place: Place,
    /// A hash that was noted elsewhere: a record must have it. May be repeated.
    #[arg(long, value_name = "HASH", value_parser = hash)]
    anchor: Vec<Hash>,
}

/// How a tool ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Good,
    Broken,
}

/// Why a tool can not go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolFault {
    #[error("{0}")]
    Said(String),
    #[error("standard output can not be written: {0}")]
    Output(#[from] io::Error),
}

impl AuditTool {
    /// Does it.
    pub(crate) fn run(&self) -> ExitCode {
        let mut out = io::BufWriter::new(io::stdout().lock());
        let done = match self {
            Self::Verify(args) => args.run(&mut out),
            Self::Tail(args) => args.run(&mut out),
            Self::Export(args) => args.run(&mut out),
        };
        let done = done.and_then(|outcome| out.flush().map(|()| outcome).map_err(ToolFault::Output));
        match done {
            Ok(Outcome::Good) => ExitCode::SUCCESS,
            Ok(Outcome::Broken) => ExitCode::from(1),
            // Whoever reads has enough.
            Err(ToolFault::Output(fault)) if fault.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(fault) => {
                say::of("brigd audit", &fault.to_string());
                ExitCode::from(2)
            }
        }
    }
}

impl Place {
    fn folder(&self) -> Result<PathBuf, ToolFault> {
        if let Some(dir) = &self.dir {
            return Ok(dir.clone());
        }
        match &self.config {
            Some(file) => {
                let said = || ToolFault::Said(format!("{} sets no audit.dir: records go to the log; {NAME_IT}", file.shown()));
                configured(file)?.ok_or_else(said)
            }
            None => usual(Path::new(DEFAULT_PATH), Path::new(FOLDER)),
        }
    }
}

/// What to do where no folder is known.
const NAME_IT: &str = "name the folder with --dir DIR, or a configuration that sets audit.dir with --config FILE";

/// The folder that a configuration names.
fn configured(file: &Path) -> Result<Option<PathBuf>, ToolFault> {
    let config = Config::load(Some(file)).map_err(|fault| ToolFault::Said(format!("{fault}; or name the folder with --dir DIR")))?;
    Ok(config.audit_rules().map(|rules| rules.dir))
}

/// Where the service keeps its records: where its configuration says, else at the usual place.
fn usual(file: &Path, folder: &Path) -> Result<PathBuf, ToolFault> {
    let is_there = |path: &Path| !matches!(path.symlink_metadata(), Err(fault) if fault.kind() == io::ErrorKind::NotFound);
    if is_there(file)
        && let Some(dir) = configured(file)?
    {
        return Ok(dir);
    }
    if is_there(folder) {
        return Ok(folder.to_owned());
    }
    let why = if is_there(file) { format!("{} sets no audit.dir", file.shown()) } else { format!("there is no {}", file.shown()) };
    Err(ToolFault::Said(format!("it is not known where the audit records are: {why}, and there is no {}; {NAME_IT}", folder.shown())))
}

/// A hash as it is printed.
///
/// # Errors
/// What a hash looks like.
pub(crate) fn hash(text: &str) -> Result<Hash, String> {
    Hash::parse(text.as_bytes()).ok_or_else(|| "a hash has 64 lower-case hexadecimal digits".to_owned())
}

impl VerifyArgs {
    fn run(&self, out: &mut impl Write) -> Result<Outcome, ToolFault> {
        let folder = self.place.folder()?;
        let report = verify(&folder, &self.anchor).map_err(|fault| ToolFault::Said(fault.to_string()))?;
        let Report { segments, records, first, last, findings, untold, notes } = &report;
        for note in notes {
            writeln!(out, "note: {note}")?;
        }
        for finding in findings {
            writeln!(out, "BROKEN: {finding}")?;
        }
        if *untold > 0 {
            writeln!(out, "BROKEN: and {untold} more")?;
        }
        let count = segments.len();
        let summary = format!("{records} records ({} to {}) in {count} segments", first.map_or(0, |mark| mark.seq), last.seq);
        if findings.is_empty() {
            writeln!(out, "ok: {summary}; the last has the hash {}", last.hash)?;
            return Ok(Outcome::Good);
        }
        writeln!(out, "broken: {summary} are as they were written, and the above is wrong")?;
        Ok(Outcome::Broken)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn without_options_the_configured_folder_is_read_else_the_usual_one_else_the_remedy_is_told() {
        let root = tempfile::tempdir().unwrap();
        let (file, folder) = (root.path().join("brig.toml"), root.path().join("audit"));
        let none = usual(&file, &folder).unwrap_err().to_string();
        assert!(none.contains("there is no ") && none.contains("brig.toml") && none.contains("--dir DIR"), "{none}");
        std::fs::write(&file, "").unwrap();
        assert!(usual(&file, &folder).unwrap_err().to_string().contains("sets no audit.dir"));
        std::fs::create_dir(&folder).unwrap();
        assert_eq!(usual(&file, &folder).unwrap(), folder);
        std::fs::write(&file, "[audit]\ndir = \"/elsewhere\"\n").unwrap();
        assert_eq!(usual(&file, &folder).unwrap(), Path::new("/elsewhere"));
        std::fs::write(&file, "[audit]\ndirr = 1\n").unwrap();
        assert!(usual(&file, &folder).unwrap_err().to_string().contains("did you mean `dir`?"));
    }
}
