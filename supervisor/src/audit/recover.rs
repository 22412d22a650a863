//! Going on where an earlier brigd ended, however it ended.
//!
//! Owns what a crash may leave and what it may not. A torn last record is cut off, and a
//! record says so. Records that only the memory of a machine that went down had are gone,
//! and a record says so. Anything else is no crash: brigd does not start on a chain that
//! somebody changed.

use super::chain::{self, Chain};
use super::event::Event;
use super::head::{self, Head, HeadFault, HeadFile};
use super::log::Rules;
use super::record::{self, Hash, LineFault, Mark};
use super::segment::{self, Tail};
use brig_protocol::escape::ShowPath as _;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Why records can not go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenFault {
    /// The system's.
    #[error("the audit folder {} can not be used: {fault}", folder.shown())]
    Io {
        /// Which.
        folder: PathBuf,
        /// Why.
        fault: io::Error,
    },
    /// Somebody's.
    #[error(
        "the audit records in {folder} are not as brigd left them: {what}. Run `brigd audit verify --dir {folder}`, keep the folder as \
         evidence, and move it away: brigd then begins a new chain"
    )]
    Damaged {
        /// Where.
        folder: PathBuf,
        /// How.
        what: String,
    },
}

/// What happened to the end of the chain.
#[derive(Debug)]
enum Scar {
    Torn { segment: u64, torn_bytes: u64, torn_sha256: Hash },
    Lost { written: Mark, durable: Mark },
}

/// What is at the end of the newest segments.
struct Found {
    segment: u64,
    file: File,
    tail: Tail,
    last: Mark,
    sealed: bool,
}

/// Opens the folder for writing.
///
/// # Errors
/// [`OpenFault`].
pub(super) fn open(rules: &Rules, now_ms: u64) -> Result<Chain, OpenFault> {
    let folder = rules.dir.clone();
    let io_fault = |fault| OpenFault::Io { folder: folder.clone(), fault };
    segment::make_folder(&folder).map_err(io_fault)?;
    let head = HeadFile::open(&folder).map_err(io_fault)?;
    let numbers = segment::list(&folder).map_err(io_fault)?;
    let told = match head.read() {
        Ok(told) => Some(told),
        Err(HeadFault::Missing) => None,
        Err(HeadFault::Io(fault)) => return Err(io_fault(fault)),
        Err(fault @ HeadFault::Changed) => return Err(damaged(&folder, fault.to_string())),
    };
    let (mut chain, scars) = match (told, numbers.last()) {
        (None, None) => (begin(&folder, head).map_err(io_fault)?, Vec::new()),
        (Some(told), None) if told.written.seq == 0 => (begin(&folder, head).map_err(io_fault)?, Vec::new()),
        (Some(_), None) => return Err(damaged(&folder, "there are no segments, and the head file names one".to_owned())),
        (None, Some(_)) => return Err(damaged(&folder, "there are segments and no head file".to_owned())),
        (Some(told), Some(_)) => go_on(&folder, head, told, &numbers)?,
    };
    for scar in scars {
        let event = match scar {
            Scar::Torn { segment, torn_bytes, torn_sha256 } => Event::TailRepaired { segment, torn_bytes, torn_sha256 },
            Scar::Lost { written, durable } => Event::TailLost { written, durable },
        };
        tracing::warn!(?event, "the end of the audit was not as it should be");
        chain.record(rules, &event, now_ms).map_err(io_fault)?;
    }
    Ok(chain)
}

fn damaged(folder: &Path, what: String) -> OpenFault {
    OpenFault::Damaged { folder: folder.to_owned(), what }
}

/// The head first: segments without one are a sign that it was taken away.
fn begin(folder: &Path, head: HeadFile) -> io::Result<Chain> {
    let told = Head { segment: 1, boot: head::boot(), ..Head::default() };
    head.write(&told, &mut Vec::new())?;
    head.sync()?;
    let file = chain::create(folder, 1)?;
    File::open(folder)?.sync_all()?;
    Ok(Chain::new(folder.to_owned(), head, file, told))
}

fn go_on(folder: &Path, head: HeadFile, told: Head, numbers: &[u64]) -> Result<(Chain, Vec<Scar>), OpenFault> {
    let io_fault = |fault| OpenFault::Io { folder: folder.to_owned(), fault };
    let found = find_end(folder, numbers)?;
    let mut scars = Vec::new();
    if !found.tail.torn.is_empty() {
        let torn_bytes = u64::try_from(found.tail.torn.len()).unwrap_or(u64::MAX);
        scars.push(Scar::Torn { segment: found.segment, torn_bytes, torn_sha256: Hash::of(&found.tail.torn) });
        found.file.set_len(found.tail.length).map_err(io_fault)?;
    }
    scars.extend(lost(folder, &told, found.last)?);
    let told = Head { segment: found.segment, written: found.last, durable: found.last, boot: head::boot() };
    // What goes on from here is on disk before anything builds on it.
    found.file.sync_all().map_err(io_fault)?;
    let mut chain = Chain::new(folder.to_owned(), head, found.file, told);
    chain.length = found.tail.length;
    chain.sealed = found.sealed;
    if chain.length > 0 {
        let first = segment::first_record(folder, found.segment);
        (chain.first_seq, chain.opened_ms) =
            first.map_err(|fault| damaged(folder, format!("{}: {fault}", segment::name(found.segment))))?;
    }
    Ok((chain, scars))
}

/// The last whole record. A segment that was begun and has none goes on after the one
/// before it.
fn find_end(folder: &Path, numbers: &[u64]) -> Result<Found, OpenFault> {
    let io_fault = |fault| OpenFault::Io { folder: folder.to_owned(), fault };
    let open = |number| segment::open_regular(OpenOptions::new().read(true).append(true), &segment::path(folder, number)).map_err(io_fault);
    let Some(newest) = numbers.last().copied() else {
        return Err(damaged(folder, "there are no segments".to_owned()));
    };
    let mut file = open(newest)?;
    let tail = segment::tail(&mut file).map_err(|fault| damaged(folder, format!("{}: {fault}", segment::name(newest))))?;
    if let Some(line) = &tail.line {
        let (last, sealed) = last_of(line).map_err(|fault| damaged(folder, format!("{}: {fault}", segment::name(newest))))?;
        return Ok(Found { segment: newest, file, tail, last, sealed });
    }
    let before = numbers.iter().rev().nth(1).copied();
    let last = match before {
        None if newest == 1 => Mark::default(),
        None => return Err(damaged(folder, format!("{} has no record, and the one before is gone", segment::name(newest)))),
        Some(before) => {
            let tail = segment::tail(&mut open(before)?).map_err(io_fault)?;
            let line = tail.line.unwrap_or_default();
            let (last, sealed) = last_of(&line).map_err(|fault| damaged(folder, format!("{}: {fault}", segment::name(before))))?;
            if !sealed || before.saturating_add(1) != newest {
                return Err(damaged(folder, format!("{} does not follow a sealed segment", segment::name(newest))));
            }
            last
        }
    };
    Ok(Found { segment: newest, file, tail, last, sealed: false })
}

fn last_of(line: &[u8]) -> Result<(Mark, bool), LineFault> {
    let (envelope, mark) = record::read(line)?;
    Ok((mark, envelope.event == "segment_sealed"))
}

/// What the head knows of and is not there. The memory of a machine that goes down is
/// lost; what the disk had confirmed is not, nor anything while the machine runs.
fn lost(folder: &Path, told: &Head, last: Mark) -> Result<Option<Scar>, OpenFault> {
    let Head { written, durable, boot, .. } = told;
    if last.seq > written.seq || last == *written {
        return Ok(None);
    }
    if last.seq == written.seq {
        return Err(damaged(folder, format!("record {} is another than the one that the head file names", last.seq)));
    }
    let same_boot = !boot.is_empty() && *boot == head::boot();
    if same_boot || last.seq < durable.seq {
        return Err(damaged(folder, format!("the end is cut off: records {} to {} are gone", last.seq.saturating_add(1), written.seq)));
    }
    Ok(Some(Scar::Lost { written: *written, durable: *durable }))
}
