//! The head: a small file beside the segments that names the last record.
//!
//! Owns its form, its lock and its place. It is what makes a cut tail of the newest
//! segment show: whoever cuts records off has to forge this too.
//!
//! One line of fixed length, written in place with one call: `written` follows every
//! record, `durable` what the disk has confirmed.

use super::record::{self, Mark};
use super::segment;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

/// Name of the file.
pub(crate) const NAME: &str = "head";
/// Its length, in bytes: one sector, which a disk writes whole or not at all.
const BYTES: usize = 512;

/// What the head says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// The newest segment.
    pub(crate) segment: u64,
    /// The last record.
    pub(crate) written: Mark,
    /// The last record of which the disk said that it has it.
    pub(crate) durable: Mark,
    /// During which run of the machine; empty when that can not be found out.
    pub(crate) boot: String,
}

/// Why there is no head to be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HeadFault {
    /// It is not there, or empty.
    #[error("there is no head file")]
    Missing,
    /// It is not what brigd wrote.
    #[error("the head file was changed, or is not one")]
    Changed,
    /// It can not be read.
    #[error("the head file can not be read: {0}")]
    Io(#[from] io::Error),
}

impl Head {
    /// Reads the head of a folder.
    ///
    /// # Errors
    /// [`HeadFault`].
    pub(crate) fn read(folder: &Path) -> Result<Self, HeadFault> {
        match segment::open_regular(OpenOptions::new().read(true), &folder.join(NAME)) {
            Ok(file) => Self::read_from(&file),
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => Err(HeadFault::Missing),
            Err(fault) => Err(fault.into()),
        }
    }

    fn read_from(mut file: &File) -> Result<Self, HeadFault> {
        let mut text = Vec::with_capacity(BYTES + 1);
        file.by_ref().take(u64::try_from(BYTES).unwrap_or(u64::MAX) + 1).read_to_end(&mut text)?;
        if text.is_empty() {
            return Err(HeadFault::Missing);
        }
        let line = text.strip_suffix(b"\n").filter(|_| text.len() == BYTES).ok_or(HeadFault::Changed)?;
        let line = line.trim_ascii_end();
        record::signed(line).map_err(|_| HeadFault::Changed)?;
        let head: Self = serde_json::from_slice(line).map_err(|_| HeadFault::Changed)?;
        // One head has one spelling: what pads it is checked by writing it again.
        let mut again = Vec::new();
        head.render(&mut again).map_err(|_| HeadFault::Changed)?;
        if again == text { Ok(head) } else { Err(HeadFault::Changed) }
    }

    fn render(&self, out: &mut Vec<u8>) -> io::Result<()> {
        out.clear();
        serde_json::to_writer(&mut *out, self)?;
        out.pop();
        record::sign(out);
        out.pop();
        if out.len() >= BYTES {
            return Err(io::Error::other("the head is too long"));
        }
        out.resize(BYTES - 1, b' ');
        out.push(b'\n');
        Ok(())
    }
}

/// The head of the folder that this process writes to, and nobody else.
#[derive(Clone, Debug)]
pub(super) struct HeadFile {
    file: Arc<File>,
}

impl HeadFile {
    /// Opens it, makes it when there is none, and takes the lock.
    ///
    /// # Errors
    /// When another process has the lock, or the file can not be opened.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = segment::open_regular(&mut options, &folder.join(NAME))?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|fault| {
            if fault == rustix::io::Errno::WOULDBLOCK { io::Error::other("another brigd writes there") } else { fault.into() }
        })?;
        Ok(Self { file: Arc::new(file) })
    }

    /// What it says.
    ///
    /// # Errors
    /// [`HeadFault`].
    pub(super) fn read(&self) -> Result<Head, HeadFault> {
        Head::read_from(&self.file)
    }

    /// Writes it with one call.
    ///
    /// # Errors
    /// When it can not be written.
    pub(super) fn write(&self, head: &Head, buffer: &mut Vec<u8>) -> io::Result<()> {
        head.render(buffer)?;
        self.file.write_all_at(buffer, 0)
    }

    /// Waits until the disk has it.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Which run of the machine this is; empty when `/proc` does not say.
pub(super) fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().chars().filter(|c| c.is_ascii_hexdigit() || *c == '-').take(36).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;
    use crate::audit::record::Hash;

    #[test]
    fn a_head_reads_back_and_any_changed_byte_shows() {
        let folder = tempfile::tempdir().unwrap();
        let file = HeadFile::open(folder.path()).unwrap();
        assert!(matches!(file.read(), Err(HeadFault::Missing)));
        let mark = Mark { seq: u64::MAX, hash: Hash::of(b"x") };
        let head = Head { segment: u64::MAX, written: mark, durable: mark, boot: boot() };
        file.write(&head, &mut Vec::new()).unwrap();
        assert_eq!(Head::read(folder.path()).unwrap(), head);
        let path = folder.path().join(NAME);
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            assert!(matches!(Head::read(folder.path()), Err(HeadFault::Changed)), "byte {at}");
        }
    }

    #[test]
    fn only_one_process_writes_to_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let _first = HeadFile::open(folder.path()).unwrap();
        assert!(HeadFile::open(folder.path()).unwrap_err().to_string().contains("another brigd"));
    }
}
