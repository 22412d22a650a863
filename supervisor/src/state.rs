//! Small files in the state directory.
//!
//! Owns reading one whole, and replacing one so that whoever looks, also after a crash,
//! finds the old text or the new and nothing between. Never guesses at a file that it can
//! not read: what it held may be what keeps somebody out.

use brig_protocol::escape::ShowPath as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Largest file that is read.
const FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Why a state file can not be used.
#[derive(Debug, thiserror::Error)]
#[error("the state file {} can not be read: {fault}; repair it, or move it away to begin without what it holds", path.shown())]
pub(crate) struct FileFault {
    path: PathBuf,
    fault: io::Error,
}

impl FileFault {
    /// A file that reads as JSON and holds what can not be.
    pub(crate) fn torn(folder: Option<&Path>, name: &str, fault: &str) -> Self {
        Self { path: folder.unwrap_or(Path::new(".")).join(name), fault: io::Error::other(fault.to_owned()) }
    }

    /// Whether whoever asked may not read it, which says nothing of what it holds.
    pub(crate) fn is_closed(&self) -> bool {
        self.fault.kind() == ErrorKind::PermissionDenied
    }
}

/// One file.
#[derive(Clone, Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
}

impl StateFile {
    /// The file of this name in `folder`.
    pub(crate) fn within(folder: &Path, name: &str) -> Self {
        Self { path: folder.join(name) }
    }

    /// What it holds; nothing when there is none.
    ///
    /// # Errors
    /// [`FileFault`] when it is there and is not what was written.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<Option<T>, FileFault> {
        let broken = |fault: io::Error| FileFault { path: self.path.clone(), fault };
        match fs::metadata(&self.path) {
            Err(fault) if fault.kind() == ErrorKind::NotFound => return Ok(None),
            Err(fault) => return Err(broken(fault)),
            Ok(facts) if facts.len() > FILE_BYTES => {
                return Err(broken(io::Error::other(format!("it has {} bytes; at most {FILE_BYTES} are read", facts.len()))));
            }
            Ok(_) => {}
        }
        let text = fs::read(&self.path).map_err(broken)?;
        serde_json::from_slice(&text).map(Some).map_err(|fault| broken(fault.into()))
    }

    /// Puts `value` in its place. Blocks until it is on the disk.
    ///
    /// # Errors
    /// What the system says; the old text is there still.
    pub(crate) fn replace(&self, value: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_vec(value)?;
        let new = self.path.with_extension("new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        File::open(self.path.parent().unwrap_or(Path::new(".")))?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn what_was_written_is_read_and_only_its_owner_can() {
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile::within(folder.path(), "a.json");
        assert_eq!(file.read::<Vec<u32>>().unwrap(), None);
        file.replace(&vec![1, 2]).unwrap();
        file.replace(&vec![3]).unwrap();
        assert_eq!(file.read::<Vec<u32>>().unwrap(), Some(vec![3]));
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(folder.path().join("a.json")).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_torn_file_is_a_fault_that_names_it_and_never_an_empty_one() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.json"), "[1,").unwrap();
        let fault = StateFile::within(folder.path(), "a.json").read::<Vec<u32>>().unwrap_err().to_string();
        assert!(fault.contains("a.json") && fault.contains("repair"), "{fault}");
    }

    #[test]
    fn a_write_that_fails_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile::within(folder.path(), "a.json");
        file.replace(&1).unwrap();
        fs::create_dir(folder.path().join("a.new")).unwrap();
        assert!(file.replace(&2).is_err());
        assert_eq!(file.read::<u32>().unwrap(), Some(1));
    }
}
