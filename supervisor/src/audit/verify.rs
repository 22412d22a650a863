//! Whether records are as brigd wrote them, found out from the files alone.
//!
//! Owns the account of what is wrong: which segment, which line, why. Never writes, needs
//! no brigd, and works beside one that runs: the head is read before the segments, which
//! only grow.
//!
//! What this can not see is a whole folder forged from some record on, head included:
//! against that, hashes are kept elsewhere and given as anchors.

use super::head::{Head, HeadFault};
use super::record::{self, Envelope, Hash, Mark};
use super::segment::{self, Line, Lines};
use std::collections::HashSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Most findings that are told.
const TOLD: usize = 100;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// In which segment; the head has none.
    pub(crate) segment: Option<u64>,
    /// In which line, from 1.
    pub(crate) line: Option<u64>,
    /// What.
    pub(crate) why: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.segment, self.line) {
            (Some(segment), Some(line)) => write!(formatter, "{}:{line}: {}", segment::name(segment), self.why),
            (Some(segment), None) => write!(formatter, "{}: {}", segment::name(segment), self.why),
            _ => formatter.write_str(&self.why),
        }
    }
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// The segments that are there.
    pub(crate) segments: Vec<u64>,
    /// Records that are as they were written.
    pub(crate) records: u64,
    /// The first record.
    pub(crate) first: Option<Mark>,
    /// The last record.
    pub(crate) last: Mark,
    /// What is wrong, at most [`TOLD`].
    pub(crate) findings: Vec<Finding>,
    /// How much more is wrong.
    pub(crate) untold: u64,
    /// What happened and is no change: crashes, segments removed as configured.
    pub(crate) notes: Vec<String>,
}

/// The records can not be read.
#[derive(Debug, thiserror::Error)]
#[error("{place} can not be read: {fault}")]
pub(crate) struct Unreadable {
    place: PathBuf,
    fault: io::Error,
}

/// Checks all records of a folder. Each of `anchors` is a hash that was noted elsewhere:
/// it must be that of a record that is here, or of the last one before the beginning.
///
/// # Errors
/// [`Unreadable`]: nothing can be said.
pub(crate) fn verify(folder: &Path, anchors: &[Hash]) -> Result<Report, Unreadable> {
    let unreadable = |place: PathBuf, fault| Unreadable { place, fault };
    let mut walk = Walk { anchors: anchors.iter().copied().collect(), ..Walk::default() };
    match Head::read(folder) {
        Ok(head) => walk.head = Some(head),
        Err(HeadFault::Io(fault)) => return Err(unreadable(folder.join(super::head::NAME), fault)),
        Err(fault) => walk.find(None, None, format!("{fault}: whether the end was cut off can not be told")),
    }
    let numbers = segment::list(folder).map_err(|fault| unreadable(folder.to_owned(), fault))?;
    if numbers.is_empty() && walk.head.is_none() {
        return Err(unreadable(folder.to_owned(), io::Error::new(io::ErrorKind::NotFound, "there are no audit records in it")));
    }
    walk.foreign(&segment::foreign(folder).map_err(|fault| unreadable(folder.to_owned(), fault))?);
    let newest = numbers.last().copied();
    for number in &numbers {
        let mut lines = match Lines::open(folder, *number) {
            Ok(lines) => lines,
            Err(fault) if fault.kind() == io::ErrorKind::InvalidInput => {
                walk.find(Some(*number), None, fault.to_string());
                continue;
            }
            Err(fault) => return Err(unreadable(segment::path(folder, *number), fault)),
        };
        walk.segment(*number, newest == Some(*number), &mut lines).map_err(|fault| unreadable(segment::path(folder, *number), fault))?;
    }
    walk.report.segments = numbers;
    Ok(walk.finish())
}

/// What the next record must follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expected {
    /// Nothing was read yet.
    #[default]
    Anything,
    /// This record.
    After(Mark),
    /// One whose hash can not be known.
    Unknown(u64),
}

/// Where the records that are here begin.
#[derive(Clone, Copy, Debug)]
struct Beginning {
    segment: u64,
    seq: u64,
    prev: Hash,
}

#[derive(Default)]
struct Walk {
    head: Option<Head>,
    anchors: HashSet<Hash>,
    expected: Expected,
    beginning: Option<Beginning>,
    /// What records say was removed: the last segment and record of each removal.
    removed: Vec<(u64, Mark)>,
    segment_before: Option<u64>,
    report: Report,
}

/// Where the walk is.
#[derive(Clone, Copy)]
struct At {
    segment: u64,
    line: u64,
    first_seq: Option<u64>,
    sealed: bool,
}

impl Walk {
    fn find(&mut self, segment: Option<u64>, line: Option<u64>, why: String) {
        if self.report.findings.len() < TOLD {
            self.report.findings.push(Finding { segment, line, why });
        } else {
            self.report.untold += 1;
        }
    }

    /// Names that brigd does not give. One like a segment's is there to be taken for one.
    fn foreign(&mut self, names: &[String]) {
        for name in names {
            let shown = brig_protocol::escape::escaped(name, 200);
            if name.to_ascii_lowercase().starts_with("segment") {
                self.find(None, None, format!("{shown:?} has a name like a segment's, and is none of brigd's: it was not read"));
            } else {
                self.report.notes.push(format!("{shown:?} is none of brigd's files: it was not read"));
            }
        }
    }

    /// What stands after the last whole line of the newest segment.
    fn torn(&mut self, at: At, bytes: u64, beginning: &[u8]) {
        if is_part_of_a_record(beginning, self.expected) {
            return self.report.notes.push(format!(
                "{}:{}: {bytes} bytes of a record that was being written when brigd was killed, or is being written now; brigd cuts them off \
                 when it starts, and a record says so",
                segment::name(at.segment),
                at.line
            ));
        }
        let why =
            format!("the last line has no end, and its {bytes} bytes are not the beginning of the next record: brigd did not write them");
        self.find(Some(at.segment), Some(at.line), why);
    }

    fn segment<R: io::Read>(&mut self, number: u64, newest: bool, lines: &mut Lines<R>) -> io::Result<()> {
        if let Some(before) = self.segment_before
            && before.saturating_add(1) != number
        {
            let (first, last) = (before.saturating_add(1), number.saturating_sub(1));
            let why = if first == last {
                "the segment before it is missing".to_owned()
            } else {
                format!("segments {first} to {last} are missing")
            };
            self.find(Some(number), None, why);
        }
        self.segment_before = Some(number);
        let mut at = At { segment: number, line: 0, first_seq: None, sealed: false };
        while let Some(line) = lines.next_line()? {
            at.line += 1;
            match line {
                Line::Whole(line) => self.line(&mut at, line),
                Line::TooLong => {
                    self.find(Some(number), Some(at.line), record::LineFault::TooLong.to_string());
                    self.lose_track();
                }
                Line::Torn { bytes, beginning } if newest => self.torn(at, bytes, beginning),
                Line::Torn { .. } => self.find(Some(number), Some(at.line), "the line has no end".to_owned()),
            }
        }
        if !newest && !at.sealed {
            self.find(Some(number), None, "it does not end with its seal: its end was cut off".to_owned());
        }
        Ok(())
    }

    /// The next record can not be held against this one.
    fn lose_track(&mut self) {
        self.expected = match self.expected {
            Expected::Anything => Expected::Anything,
            Expected::After(mark) => Expected::Unknown(mark.seq.saturating_add(1)),
            Expected::Unknown(seq) => Expected::Unknown(seq.saturating_add(1)),
        };
    }

    fn line(&mut self, at: &mut At, line: &[u8]) {
        let (envelope, mark) = match record::read(line) {
            Ok(read) => read,
            Err(fault) => {
                self.find(Some(at.segment), Some(at.line), fault.to_string());
                return self.lose_track();
            }
        };
        if let Some(why) = self.follows(&envelope, mark, *at) {
            self.find(Some(at.segment), Some(at.line), why);
        }
        if let Some(why) = belongs(&envelope, mark, at) {
            self.find(Some(at.segment), Some(at.line), why);
        }
        self.against_head(mark, *at);
        self.anchors.remove(&mark.hash);
        self.expected = Expected::After(mark);
        self.report.records += 1;
        self.report.first.get_or_insert(mark);
        self.report.last = mark;
        self.note(&envelope, *at);
    }

    /// Whether a record follows the one before it.
    fn follows(&mut self, envelope: &Envelope<'_>, mark: Mark, at: At) -> Option<String> {
        let (before, hash) = match self.expected {
            Expected::Anything => {
                self.beginning = Some(Beginning { segment: at.segment, seq: mark.seq, prev: envelope.prev });
                return None;
            }
            Expected::After(mark) => (mark.seq, Some(mark.hash)),
            Expected::Unknown(seq) => (seq, None),
        };
        let next = before.saturating_add(1);
        if mark.seq > next {
            let last = mark.seq.saturating_sub(1);
            return Some(if next == last {
                format!("record {next} is missing before it")
            } else {
                format!("records {next} to {last} are missing before it")
            });
        }
        if mark.seq < next {
            return Some(format!("record {} stands after record {before}: put in, repeated or moved", mark.seq));
        }
        let follows = hash.is_none_or(|hash| hash == envelope.prev);
        (!follows).then(|| {
            format!("record {} does not follow the record {before} that is here: one of them, or its segment, was replaced", mark.seq)
        })
    }

    fn against_head(&mut self, mark: Mark, at: At) {
        let Some(head) = &self.head else { return };
        let other = [head.written, head.durable].iter().any(|told| told.seq == mark.seq && *told != mark);
        if other {
            self.find(Some(at.segment), Some(at.line), format!("record {} is another than the one that the head file names", mark.seq));
        }
    }

    fn note(&mut self, envelope: &Envelope<'_>, at: At) {
        let place = || format!("{}:{}", segment::name(at.segment), at.line);
        match &*envelope.event {
            "segments_removed" => self.removed.extend(envelope.through.zip(envelope.last)),
            "tail_repaired" => {
                self.report.notes.push(format!("{}: brigd was killed while it wrote a record; what there was of it was cut off", place()))
            }
            "tail_lost" => self.report.notes.push(format!("{}: the machine went down before the last records were on disk", place())),
            "records_refused" => self
                .report
                .notes
                .push(format!("{}: records could not be written for a while; the calls they stand before did not run", place())),
            _ => {}
        }
    }

    fn finish(mut self) -> Report {
        self.judge_beginning();
        let last = self.report.last.seq;
        if let Some(head) = self.head.take()
            && last < head.written.seq
        {
            let first = last.saturating_add(1);
            let newest = self.segment_before;
            self.find(
                newest,
                None,
                format!("the end is cut off: records {first} to {} are gone, which the head file knows of", head.written.seq),
            );
        }
        let mut anchors: Vec<String> = self.anchors.iter().map(Hash::to_string).collect();
        anchors.sort_unstable();
        for anchor in anchors {
            self.find(
                None,
                None,
                format!("no record has the anchored hash {anchor}: it was removed, or all of this is not what was anchored"),
            );
        }
        self.report
    }

    /// Records begin with the first one, or where a record says that those before were
    /// removed, or after an anchor.
    fn judge_beginning(&mut self) {
        let Some(Beginning { segment, seq, prev }) = self.beginning else { return };
        let before = Mark { seq: seq.saturating_sub(1), hash: prev };
        let anchored = self.anchors.remove(&prev);
        if segment == 1 && before == Mark::default() {
            return;
        }
        let stated = self.removed.iter().any(|(through, last)| through.saturating_add(1) == segment && *last == before);
        if stated || anchored {
            let why = if stated { "segments before it were removed as configured" } else { "it follows an anchored record" };
            self.report.notes.push(format!("{}: the records begin here: {why}", segment::name(segment)));
        } else {
            let why = format!("the records begin with number {seq} here, and no record says that those before were removed");
            self.find(Some(segment), None, why);
        }
    }
}

/// Whether bytes can be what there is of the record after the last one: a crash leaves the
/// beginning of a record, or zeros where the file had grown before its bytes were there.
fn is_part_of_a_record(bytes: &[u8], expected: Expected) -> bool {
    if bytes.iter().all(|byte| *byte == 0) {
        return true;
    }
    let seq = match expected {
        Expected::Anything => None,
        Expected::After(Mark { seq, .. }) | Expected::Unknown(seq) => Some(seq.saturating_add(1)),
    };
    let hash = if let Expected::After(Mark { hash, .. }) = expected { Some(hash) } else { None };
    // A whole one lacks only the end of its line.
    if let Ok((envelope, mark)) = record::read(bytes) {
        return seq.is_none_or(|seq| seq == mark.seq) && hash.is_none_or(|hash| hash == envelope.prev);
    }
    let cut = serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_err_and(|fault| fault.is_eof());
    let Some(seq) = seq else { return cut && begins(bytes, b"{\"seq\":") };
    let before = format!("{{\"seq\":{seq},\"time_ms\":");
    let Some(rest) = bytes.strip_prefix(before.as_bytes()) else { return before.as_bytes().starts_with(bytes) };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let prev = format!(",\"prev\":\"{}", hash.map(|hash| format!("{hash}\"")).unwrap_or_default());
    cut && begins(rest.get(digits..).unwrap_or_default(), prev.as_bytes())
}

/// Whether one begins as the other, as far as both go.
fn begins(one: &[u8], other: &[u8]) -> bool {
    one.iter().zip(other).all(|(one, other)| one == other)
}

/// Whether a record may stand at this place of a segment.
fn belongs(envelope: &Envelope<'_>, mark: Mark, at: &mut At) -> Option<String> {
    if at.line == 1 {
        at.first_seq = Some(mark.seq);
    }
    let opens = envelope.event == "segment_opened";
    if at.sealed {
        return Some("it stands after the seal of its segment".to_owned());
    }
    if opens != (at.line == 1) {
        let why = if opens { "a segment begins in the middle of this one" } else { "a segment's first record must say that it begins" };
        return Some(why.to_owned());
    }
    if (opens || envelope.event == "segment_sealed") && envelope.segment != Some(at.segment) {
        return Some(format!("it says that it is of segment {}", envelope.segment.unwrap_or_default()));
    }
    if envelope.event == "segment_sealed" {
        at.sealed = true;
        let records = at.first_seq.map(|first| mark.seq.saturating_sub(first).saturating_add(1));
        if records.is_some() && envelope.records != records {
            return Some(format!(
                "the seal counts {} records; there are {}",
                envelope.records.unwrap_or_default(),
                records.unwrap_or_default()
            ));
        }
    }
    None
}
