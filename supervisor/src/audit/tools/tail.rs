//! `brigd audit tail`: the last records, and new ones as they come.

use super::show::Shown;
use super::{Outcome, Place, ToolFault};
use crate::audit::segment;
use crate::say;
use brig_protocol::escape::ShowPath as _;
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write};
use std::path::Path;
use std::time::Duration;

/// How often a followed folder is looked at.
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, clap::Args)]
pub(crate) struct TailArgs {
    #[command(flatten)]
    place: Place,
    /// How many of the last records.
    #[arg(short = 'n', long = "lines", value_name = "N", default_value_t = 10)]
    lines: usize,
    /// Go on with records as they come.
    #[arg(short, long)]
    follow: bool,
    /// Print records as they are: lines of JSON.
    #[arg(long)]
    json: bool,
}

/// A place in the newest segment.
struct Cursor {
    number: u64,
    reader: BufReader<File>,
    /// A line whose end is not there yet.
    partial: Vec<u8>,
}

impl Cursor {
    fn open(folder: &Path, number: u64) -> Result<Self, ToolFault> {
        let path = segment::path(folder, number);
        let file = segment::open_regular(OpenOptions::new().read(true), &path).map_err(|fault| unreadable(&path, &fault))?;
        Ok(Self { number, reader: BufReader::new(file), partial: Vec::new() })
    }

    /// The next whole line.
    fn next_line(&mut self) -> Result<Option<Vec<u8>>, ToolFault> {
        let read = self.reader.read_until(b'\n', &mut self.partial);
        read.map_err(|fault| ToolFault::Said(format!("{} can not be read: {fault}", segment::name(self.number))))?;
        Ok(self.partial.pop_if(|byte| *byte == b'\n').map(|_| std::mem::take(&mut self.partial)))
    }
}

fn unreadable(path: &Path, fault: &std::io::Error) -> ToolFault {
    ToolFault::Said(format!("{} can not be read: {fault}", path.shown()))
}

/// The last lines of a folder, and the place after them.
fn last_lines(folder: &Path, lines: usize) -> Result<(VecDeque<Vec<u8>>, Cursor), ToolFault> {
    let numbers = segment::list(folder).map_err(|fault| unreadable(folder, &fault))?;
    let Some(newest) = numbers.last().copied() else {
        return Err(ToolFault::Said(format!("{} has no audit records", folder.shown())));
    };
    let mut last = VecDeque::new();
    let mut cursor = Cursor::open(folder, newest)?;
    keep_last(&mut cursor, lines, &mut last)?;
    // Older segments, for what the newest has too little of.
    for number in numbers.iter().rev().skip(1).copied() {
        if last.len() >= lines {
            break;
        }
        let mut older = VecDeque::new();
        keep_last(&mut Cursor::open(folder, number)?, lines, &mut older)?;
        while last.len() < lines
            && let Some(line) = older.pop_back()
        {
            last.push_front(line);
        }
    }
    Ok((last, cursor))
}

fn keep_last(cursor: &mut Cursor, lines: usize, last: &mut VecDeque<Vec<u8>>) -> Result<(), ToolFault> {
    while let Some(line) = cursor.next_line()? {
        last.push_back(line);
        if last.len() > lines {
            last.pop_front();
        }
    }
    Ok(())
}

/// The last records as they are, oldest first: no more than so many, and of them only the
/// newest that have no more than so many bytes together.
///
/// # Errors
/// When they can not be read, or one is not as it was written.
pub(crate) fn last_records(folder: &Path, lines: usize, bytes: usize) -> Result<Vec<Box<RawValue>>, ToolFault> {
    let (last, _) = last_lines(folder, lines)?;
    let (mut records, mut length) = (Vec::new(), 0usize);
    for line in last.into_iter().rev() {
        length = length.saturating_add(line.len());
        if length > bytes {
            break;
        }
        let record = Shown::read(&line).and_then(|_| String::from_utf8(line).ok()).and_then(|line| RawValue::from_string(line).ok());
        let broken = || ToolFault::Said("a line is not a record as it was written: verify the audit".to_owned());
        records.push(record.ok_or_else(broken)?);
    }
    records.reverse();
    Ok(records)
}

impl TailArgs {
    pub(super) fn run(&self, out: &mut impl Write) -> Result<Outcome, ToolFault> {
        let folder = self.place.folder()?;
        let (last, mut cursor) = last_lines(&folder, self.lines)?;
        let mut outcome = Outcome::Good;
        for line in last {
            self.print(out, &line, &mut outcome)?;
        }
        if !self.follow {
            return Ok(outcome);
        }
        loop {
            out.flush()?;
            self.follow(out, &folder, &mut cursor, &mut outcome)?;
        }
    }

    /// Prints what has come; then the next segment if there is one, else a pause.
    fn follow(&self, out: &mut impl Write, folder: &Path, cursor: &mut Cursor, outcome: &mut Outcome) -> Result<(), ToolFault> {
        let next = segment::path(folder, cursor.number.saturating_add(1));
        // Asked before reading: what was written before the next one began is not missed.
        let is_there = next.try_exists().unwrap_or(false);
        while let Some(line) = cursor.next_line()? {
            self.print(out, &line, outcome)?;
        }
        if !is_there {
            std::thread::sleep(PAUSE);
            return Ok(());
        }
        *cursor = Cursor::open(folder, cursor.number.saturating_add(1))?;
        Ok(())
    }

    fn print(&self, out: &mut impl Write, line: &[u8], outcome: &mut Outcome) -> Result<(), ToolFault> {
        match Shown::read(line) {
            Some(_) if self.json => {
                out.write_all(line)?;
                out.write_all(b"\n")?;
            }
            Some(shown) => writeln!(out, "{}", shown.line())?,
            None => {
                *outcome = Outcome::Broken;
                say::of("brigd audit", "a line is not a record as it was written: run brigd audit verify");
            }
        }
        Ok(())
    }
}
