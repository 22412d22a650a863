//! The store: one SQLite file.
//!
//! Owns its tables, the way from one version of them to the next, and the checks before
//! it is used. A file that is damaged, foreign or from a later brigd is never made anew:
//! it says which write calls may have run.

use brig_protocol::escape::ShowPath as _;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Its name in the state directory.
pub(super) const FILE: &str = "journal.sqlite";
/// `brig`, where SQLite keeps whose file it is.
const APPLICATION: i64 = 0x6272_6967;
/// The newest version of the tables.
const VERSION: i64 = 1;
/// How long a lock of another process, as that of a backup, is waited for.
pub(super) const BUSY: Duration = Duration::from_secs(5);
/// Bytes of one page.
const PAGE: u64 = 4096;

/// Each step makes a version of the tables from the one before.
const STEPS: &[&str] = &[include_str!("schema-1.sql")];

/// Why the journal is not opened.
#[derive(Debug, thiserror::Error)]
#[error("the journal {} {what}. brigd does not start without it: it says which write calls may have run. {remedy}", path.shown())]
pub(crate) struct OpenFault {
    path: PathBuf,
    what: String,
    remedy: &'static str,
}

const RESTORE: &str = "Restore it from a backup, or move it and its -wal and -shm files away to begin with an empty one, \
                       knowing that unknown calls, detached answers and idempotency keys are then forgotten";

/// It can not be trusted as it is.
pub(super) fn damaged(path: &Path, why: &str) -> OpenFault {
    OpenFault { path: path.to_owned(), what: format!("is damaged or can not be read: {why}"), remedy: RESTORE }
}

/// Opens the file, or makes it where there is none.
///
/// # Errors
/// [`OpenFault`] with the remedy.
pub(super) fn open(path: &Path, most_bytes: u64) -> Result<Connection, OpenFault> {
    if !path.exists() {
        make(path)?;
    }
    match std::fs::metadata(path).map(|metadata| metadata.len()) {
        Ok(0) => return Err(damaged(path, "the file is empty")),
        Ok(_) => {}
        Err(fault) => return Err(damaged(path, &fault.to_string())),
    }
    let unreadable = |fault: rusqlite::Error| damaged(path, &fault.to_string());
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut connection = Connection::open_with_flags(path, flags).map_err(unreadable)?;
    connection.busy_timeout(BUSY).map_err(unreadable)?;
    check_owner(&connection, path)?;
    check_whole(&connection, path)?;
    prepare(&connection, most_bytes).map_err(unreadable)?;
    migrate(&mut connection).map_err(unreadable)?;
    Ok(connection)
}

/// A store in memory.
///
/// # Errors
/// When SQLite can not be used at all.
pub(super) fn in_memory() -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_in_memory()?;
    prepare(&connection, super::evaluations::MEMORY_BYTES)?;
    migrate(&mut connection)?;
    Ok(connection)
}

/// Makes the file whole before it has its name: an empty file is then always damage.
fn make(path: &Path) -> Result<(), OpenFault> {
    let unmade = |fault: &dyn std::fmt::Display| OpenFault {
        path: path.to_owned(),
        what: format!("can not be made: {fault}"),
        remedy: "Mend what is said, or name another place in --state or server.state_dir",
    };
    if path.with_extension("sqlite-wal").exists() {
        return Err(damaged(path, "it is gone, and its -wal file is still there"));
    }
    let new = path.with_extension("new");
    std::fs::remove_file(&new).ok();
    made_whole(&new).map_err(|fault| unmade(&fault))?;
    std::fs::rename(&new, path).map_err(|fault| unmade(&fault))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(|fault| unmade(&fault))
}

fn made_whole(new: &Path) -> rusqlite::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let io = |fault: std::io::Error| rusqlite::Error::ToSqlConversionFailure(Box::new(fault));
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(new).map_err(io)?;
    let mut connection = Connection::open_with_flags(new, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NOFOLLOW)?;
    connection.execute_batch(&format!("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA application_id = {APPLICATION};"))?;
    migrate(&mut connection)?;
    connection.close().map_err(|(_, fault)| fault)
}

pub(super) fn check_owner(connection: &Connection, path: &Path) -> Result<(), OpenFault> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let application = number("application_id").map_err(|fault| damaged(path, &fault.to_string()))?;
    if application != APPLICATION {
        return Err(damaged(path, "it was not made by brigd"));
    }
    let version = number("user_version").map_err(|fault| damaged(path, &fault.to_string()))?;
    if version > VERSION {
        return Err(OpenFault {
            path: path.to_owned(),
            what: format!("has version {version}, and this brigd knows version {VERSION}"),
            remedy: "Run the later brigd that made it, or restore the backup from before that one",
        });
    }
    Ok(())
}

pub(super) fn check_whole(connection: &Connection, path: &Path) -> Result<(), OpenFault> {
    let said: String =
        connection.pragma_query_value(None, "integrity_check", |row| row.get(0)).map_err(|fault| damaged(path, &fault.to_string()))?;
    if said == "ok" { Ok(()) } else { Err(damaged(path, &said)) }
}

/// What holds for each connection. `synchronous` is the writer's.
fn prepare(connection: &Connection, most_bytes: u64) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "journal_size_limit", 16 * 1024 * 1024)?;
    connection.pragma_update(None, "max_page_count", i64::try_from(most_bytes / PAGE).unwrap_or(i64::MAX))
}

fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let done = usize::try_from(version).unwrap_or(usize::MAX);
    for (index, step) in STEPS.iter().enumerate().skip(done) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", i64::try_from(index + 1).unwrap_or(i64::MAX))?;
        transaction.commit()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use std::os::unix::fs::{FileExt as _, MetadataExt as _};

    const MOST: u64 = 64 * 1024 * 1024;

    fn told(path: &Path) -> String {
        open(path, MOST).unwrap_err().to_string()
    }

    #[test]
    fn sqlite_is_later_than_the_one_that_could_damage_a_file_in_wal_mode() {
        assert!(rusqlite::version_number() >= 3_051_003);
    }

    #[test]
    fn it_is_made_once_for_its_owner_only_and_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let first = open(&path, MOST).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o077, 0);
        let mode: String = first.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        let synchronous: i64 = first.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
        assert_eq!((mode.as_str(), synchronous), ("wal", 2));
        first.execute("INSERT INTO counters VALUES (1, 'k', 0, '1', 5)", []).unwrap();
        drop(first);
        let again: i64 = open(&path, MOST).unwrap().query_row("SELECT count(*) FROM counters", [], |row| row.get(0)).unwrap();
        assert_eq!(again, 1);
    }

    #[test]
    fn a_damaged_empty_foreign_or_later_file_is_refused_by_name_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        std::fs::write(&path, b"").unwrap();
        assert!(told(&path).contains("the file is empty"));
        std::fs::write(&path, b"no database at all, but long enough to have a header of one hundred bytes, which SQLite reads first..")
            .unwrap();
        let fault = told(&path);
        assert!(fault.contains("journal.sqlite") && fault.contains("Restore it from a backup"), "{fault}");
        std::fs::remove_file(&path).unwrap();
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE x (y)").unwrap();
        assert!(told(&path).contains("not made by brigd"));
        std::fs::remove_file(&path).unwrap();
        open(&path, MOST).unwrap().pragma_update(None, "user_version", 99).unwrap();
        let before = std::fs::read(&path).unwrap();
        assert!(told(&path).contains("version 99"));
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    #[test]
    fn a_page_that_was_overwritten_is_found_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        drop(open(&path, MOST).unwrap());
        let length = std::fs::metadata(&path).unwrap().len();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        for page in 1..length / PAGE {
            file.write_all_at(&[0xa5; 64], page * PAGE).unwrap();
        }
        assert!(told(&path).contains("is damaged"));
    }

    #[test]
    fn a_file_that_is_gone_while_its_log_is_there_is_not_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        std::fs::write(folder.path().join("journal.sqlite-wal"), b"x").unwrap();
        assert!(told(&path).contains("-wal"));
        assert!(!path.exists());
    }
}
