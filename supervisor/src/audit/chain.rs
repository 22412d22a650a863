//! The chain of records as it grows: the newest segment and its head.
//!
//! Owns appending, sealing and beginning segments. A record that could not be written
//! whole is taken away again, so that the next one stands on its own. Never waits for the
//! disk: see [`super::keep`].

use super::event::Event;
use super::head::{Head, HeadFile};
use super::log::Rules;
use super::record::{self, LINE_BYTES, Mark};
use super::segment;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

/// The form of records that is written.
const FORMAT: u32 = 1;

/// Records that could not be written.
#[derive(Clone, Copy, Debug)]
struct Refused {
    count: u64,
    first_ms: u64,
    last_ms: u64,
}

/// The newest segment, open for appending.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) folder: PathBuf,
    pub(super) head: HeadFile,
    pub(super) file: Arc<File>,
    /// What the head file says.
    pub(super) told: Head,
    /// Number of the first record of the segment.
    pub(super) first_seq: u64,
    /// When the segment was begun, in milliseconds since 1970.
    pub(super) opened_ms: u64,
    /// Length of the whole records of the segment, in bytes.
    pub(super) length: u64,
    /// The segment has its last record.
    pub(super) sealed: bool,
    /// There may be part of a record after the whole ones.
    pub(super) torn: bool,
    /// Files that are sealed and not known to be on disk.
    pub(super) retired: Vec<Arc<File>>,
    refused: Option<Refused>,
    line: Vec<u8>,
    head_line: Vec<u8>,
}

impl Chain {
    /// A chain that goes on after `told.written`, in `file`.
    pub(super) fn new(folder: PathBuf, head: HeadFile, file: File, told: Head) -> Self {
        Self {
            folder,
            head,
            file: Arc::new(file),
            first_seq: told.written.seq.saturating_add(1),
            told,
            opened_ms: 0,
            length: 0,
            sealed: false,
            torn: false,
            retired: Vec::new(),
            refused: None,
            line: Vec::with_capacity(1024),
            head_line: Vec::with_capacity(1024),
        }
    }

    /// Appends one record.
    ///
    /// # Errors
    /// When it, or what must stand before it, can not be written. How many were refused
    /// is recorded once there is room again.
    pub(super) fn record(&mut self, rules: &Rules, event: &Event<'_>, now_ms: u64) -> io::Result<Mark> {
        let recorded = self.prepare(rules, now_ms).and_then(|()| self.append(event, now_ms));
        if recorded.is_err() {
            let refused = self.refused.get_or_insert(Refused { count: 0, first_ms: now_ms, last_ms: now_ms });
            refused.count = refused.count.saturating_add(1);
            refused.last_ms = now_ms;
        }
        recorded
    }

    /// The last record, for who reads what was written.
    pub(super) fn last_line(&self) -> &[u8] {
        self.line.trim_ascii_end()
    }

    /// Whatever has to stand before the next record.
    fn prepare(&mut self, rules: &Rules, now_ms: u64) -> io::Result<()> {
        self.mend()?;
        if !self.sealed && self.length > 0 {
            let age_ms = now_ms.saturating_sub(self.opened_ms);
            if self.length >= rules.segment_bytes {
                self.seal("size", now_ms)?;
            } else if age_ms / 1_000 >= rules.segment_seconds {
                self.seal("age", now_ms)?;
            }
        }
        if self.sealed {
            self.begin_next()?;
        }
        if self.length == 0 {
            self.opened_ms = now_ms;
            self.append(&Event::SegmentOpened { segment: self.told.segment, format: FORMAT }, now_ms)?;
        }
        if let Some(Refused { count, first_ms, last_ms }) = self.refused {
            self.append(&Event::RecordsRefused { count, first_ms, last_ms }, now_ms)?;
            self.refused = None;
        }
        Ok(())
    }

    fn append(&mut self, event: &Event<'_>, now_ms: u64) -> io::Result<Mark> {
        let mark = record::write(&mut self.line, self.told.written, now_ms, event)?;
        if self.line.len() > LINE_BYTES {
            return Err(io::Error::other(format!("the record has {} bytes; at most {LINE_BYTES} are written", self.line.len())));
        }
        if let Err(fault) = (&*self.file).write_all(&self.line) {
            self.torn = true;
            if let Err(fault) = self.mend() {
                tracing::error!(%fault, "part of an audit record is left; no other is written before it is taken away");
            }
            return Err(fault);
        }
        self.length = self.length.saturating_add(u64::try_from(self.line.len()).unwrap_or(u64::MAX));
        self.told.written = mark;
        self.write_head()?;
        Ok(mark)
    }

    /// Takes away what is left of a record that could not be written.
    fn mend(&mut self) -> io::Result<()> {
        if self.torn {
            self.file.set_len(self.length)?;
            self.torn = false;
        }
        Ok(())
    }

    fn seal(&mut self, reason: &str, now_ms: u64) -> io::Result<()> {
        let segment = self.told.segment;
        // This record is the one after the last.
        let records = self.told.written.seq.saturating_add(2).saturating_sub(self.first_seq);
        let mark = self.append(&Event::SegmentSealed { segment, records, reason }, now_ms)?;
        self.sealed = true;
        tracing::info!(segment, seq = mark.seq, hash = %mark.hash, reason, "an audit segment is sealed");
        Ok(())
    }

    fn begin_next(&mut self) -> io::Result<()> {
        let number = self.told.segment.saturating_add(1);
        let file = create(&self.folder, number)?;
        self.retired.push(std::mem::replace(&mut self.file, Arc::new(file)));
        self.told.segment = number;
        self.first_seq = self.told.written.seq.saturating_add(1);
        self.length = 0;
        self.sealed = false;
        Ok(())
    }

    /// Puts on the head what is known now.
    ///
    /// # Errors
    /// When it can not be written.
    pub(super) fn write_head(&mut self) -> io::Result<()> {
        self.head.write(&self.told, &mut self.head_line)
    }
}

/// A new segment.
pub(super) fn create(folder: &std::path::Path, number: u64) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(segment::path(folder, number))
}
