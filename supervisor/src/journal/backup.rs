//! `brigd journal backup`: a whole copy of the journal, beside a running brigd or without.
//!
//! Owns the copy until it is on disk and found whole. Never writes into the state
//! directory, and never over a file that is there. It is a tool of brigd because only the
//! SQLite in brigd is known not to damage the file: those of Debian 12 and 13 are older.

use super::store;
use crate::config::Config;
use crate::config::tool::DEFAULT_PATH;
use crate::say;
use brig_protocol::escape::ShowPath as _;
use rusqlite::{Connection, OpenFlags};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where the service has its state when no configuration says otherwise.
const STATE: &str = "/var/lib/brig";

/// What can be done with the journal.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum JournalTool {
    /// Write a whole copy, while brigd runs or not. It is mode 0600: it has the answers of
    /// all users. Exit code 0: it is there, on disk, and whole; 2: there is none.
    Backup(BackupArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct BackupArgs {
    /// File to write, outside the state directory; one that is there is not replaced.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// State directory [default: server.state_dir of the configuration, else /var/lib/brig].
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Configuration that names it [default: /etc/brig/brig.toml, where there is one].
    #[arg(long, value_name = "FILE", conflicts_with = "state")]
    config: Option<PathBuf>,
}

impl JournalTool {
    /// Does it.
    pub(crate) fn run(&self) -> ExitCode {
        let Self::Backup(args) = self;
        match args.run() {
            Ok(bytes) => say::print(&format!("{}: {bytes} bytes, whole\n", args.to.shown())),
            Err(why) => {
                say::of("brigd journal", &why);
                ExitCode::from(2)
            }
        }
    }
}

impl BackupArgs {
    fn run(&self) -> Result<u64, String> {
        backup(&self.folder()?, &self.to)
    }

    fn folder(&self) -> Result<PathBuf, String> {
        if let Some(state) = &self.state {
            return Ok(state.clone());
        }
        let usual = Path::new(DEFAULT_PATH);
        let file = self.config.as_deref().or_else(|| usual.exists().then_some(usual));
        let config = Config::load(file).map_err(|fault| format!("{fault}; or name the state directory with --state DIR"))?;
        Ok(config.server.state_dir.unwrap_or_else(|| PathBuf::from(STATE)))
    }
}

/// Copies the journal of a state directory; its size in bytes.
fn backup(state: &Path, to: &Path) -> Result<u64, String> {
    let journal = state.join(store::FILE);
    let inside = |folder: &Path| Some(folder.canonicalize().ok()? == state.canonicalize().ok()?);
    if to.parent().and_then(inside) == Some(true) {
        return Err(format!("{} is in the state directory: what lies beside the journal is lost with it; name another folder", to.shown()));
    }
    let unread = |fault: rusqlite::Error| format!("{} can not be read: {fault}", journal.shown());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(&journal, flags).map_err(unread)?;
    connection.busy_timeout(store::BUSY).map_err(unread)?;
    store::check_owner(&connection, &journal).map_err(|fault| fault.to_string())?;
    // SQLite fills a file that is empty, and nothing else.
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    let file = made.map_err(|fault| format!("{} can not be made: {fault}", to.shown()))?;
    let copied = copy(&connection, &file, to);
    if copied.is_err() {
        // What is not whole would be taken for a backup one day.
        std::fs::remove_file(to).unwrap_or(());
    }
    copied
}

fn copy(journal: &Connection, file: &std::fs::File, to: &Path) -> Result<u64, String> {
    let unmade = |fault: &dyn std::fmt::Display| format!("{} can not be written: {fault}", to.shown());
    let name = to.to_str().ok_or_else(|| unmade(&"its name is not UTF-8"))?;
    journal.execute("VACUUM INTO ?1", [name]).map_err(|fault| unmade(&fault))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let copied = Connection::open_with_flags(to, flags).map_err(|fault| unmade(&fault))?;
    store::check_whole(&copied, to).map_err(|fault| fault.to_string())?;
    file.sync_all().map_err(|fault| unmade(&fault))?;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(|fault| unmade(&fault))?;
    file.metadata().map(|facts| facts.len()).map_err(|fault| unmade(&fault))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    const MOST: u64 = 64 * 1024 * 1024;

    fn counters(connection: &Connection) -> i64 {
        connection.query_row("SELECT count(*) FROM counters", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_copy_beside_the_writer_has_what_was_written_and_opens_as_a_journal() {
        let (state, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let writer = store::open(&state.path().join(store::FILE), MOST).unwrap();
        // In the -wal file, which a copy of the file alone would miss.
        writer.execute("INSERT INTO counters VALUES (1, 'k', 0, '1', 5)", []).unwrap();
        let to = folder.path().join("copy.sqlite");
        let bytes = backup(state.path(), &to).unwrap();
        writer.execute("INSERT INTO counters VALUES (2, 'k', 0, '1', 5)", []).unwrap();
        let facts = std::fs::metadata(&to).unwrap();
        assert_eq!((facts.mode() & 0o777, facts.len()), (0o600, bytes));
        assert_eq!(counters(&store::open(&to, MOST).unwrap()), 1);
        assert_eq!(counters(&writer), 2, "the journal goes on");
    }

    #[test]
    fn nothing_is_replaced_nothing_half_is_left_and_nothing_else_is_taken_for_a_journal() {
        let (state, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let to = folder.path().join("copy.sqlite");
        assert!(backup(state.path(), &to).unwrap_err().contains("can not be read"));
        drop(store::open(&state.path().join(store::FILE), MOST).unwrap());
        assert!(backup(state.path(), &state.path().join("copy")).unwrap_err().contains("lost with it"));
        std::fs::write(&to, "kept").unwrap();
        assert!(backup(state.path(), &to).unwrap_err().contains("can not be made"));
        assert_eq!(std::fs::read_to_string(&to).unwrap(), "kept");
        std::fs::remove_file(state.path().join(store::FILE)).unwrap();
        Connection::open(state.path().join(store::FILE)).unwrap().execute_batch("CREATE TABLE x (y)").unwrap();
        let other = folder.path().join("other");
        assert!(backup(state.path(), &other).unwrap_err().contains("not made by brigd"));
        assert!(!other.exists());
    }
}
