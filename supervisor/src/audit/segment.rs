//! Segments: the files that records are in.
//!
//! Owns their names, and reading them in bounded memory. Never writes one.

use super::record::{self, LINE_BYTES, LineFault};
use rustix::fs::OFlags;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// How much of the end of a segment is looked at for its last record, in bytes.
const TAIL_BYTES: u64 = 8 * 1024 * 1024;

/// The file of a segment.
pub(crate) fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(name(number))
}

/// The name of a segment's file.
pub(crate) fn name(number: u64) -> String {
    format!("segment-{number:010}.jsonl")
}

/// Opens a file of the folder: a regular one, never what a link leads to, and never
/// waiting for the other end of a pipe.
///
/// # Errors
/// When it can not be opened, or is something else.
pub(crate) fn open_regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let other = || io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file: brigd never puts anything else there");
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
    let file = match options.custom_flags(flags).open(path) {
        Err(_) if is_other(path) => return Err(other()),
        opened => opened?,
    };
    if file.metadata()?.is_file() { Ok(file) } else { Err(other()) }
}

fn is_other(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|facts| !facts.is_file())
}

/// The names in a folder that are not brigd's, in order.
///
/// # Errors
/// When the folder can not be read.
pub(crate) fn foreign(folder: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        if name != super::head::NAME && name.to_str().and_then(number_of).is_none() {
            found.push(name.to_string_lossy().into_owned());
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn number_of(file: &str) -> Option<u64> {
    let number: u64 = file.strip_prefix("segment-")?.strip_suffix(".jsonl")?.parse().ok()?;
    (name(number) == file).then_some(number)
}

/// The segments of a folder, oldest first.
///
/// # Errors
/// When the folder can not be read.
pub(crate) fn list(folder: &Path) -> io::Result<Vec<u64>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        found.extend(entry?.file_name().to_str().and_then(number_of));
    }
    found.sort_unstable();
    Ok(found)
}

/// Makes the folder of segments, for its owner only.
///
/// # Errors
/// When it can not be made.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// One line of a segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// A whole one, without its end.
    Whole(&'a [u8]),
    /// One that is longer than a record can be; it was skipped.
    TooLong,
    /// The end of the file came before the end of the line.
    Torn {
        /// How many bytes there are.
        bytes: u64,
        /// The first of them, as many as a record may have.
        beginning: &'a [u8],
    },
}

/// Reads lines in bounded memory.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
}

impl Lines<File> {
    /// Of a segment.
    ///
    /// # Errors
    /// When it can not be opened.
    pub(crate) fn open(folder: &Path, number: u64) -> io::Result<Self> {
        Ok(Self::new(open_regular(OpenOptions::new().read(true), &path(folder, number))?))
    }
}

impl<R: io::Read> Lines<R> {
    /// Of anything that can be read.
    pub(crate) fn new(reader: R) -> Self {
        Self { reader: BufReader::with_capacity(64 * 1024, reader), line: Vec::new() }
    }

    /// The next line; nothing at the end.
    ///
    /// # Errors
    /// When reading fails.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        let most = u64::try_from(LINE_BYTES).unwrap_or(u64::MAX) + 1;
        let read = self.reader.by_ref().take(most).read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
            return Ok(Some(Line::Whole(&self.line)));
        }
        let mut bytes = u64::try_from(read).unwrap_or(u64::MAX);
        if bytes < most {
            return Ok(Some(Line::Torn { bytes, beginning: &self.line }));
        }
        let (skipped, ended) = self.skip_line()?;
        bytes = bytes.saturating_add(skipped);
        Ok(Some(if ended { Line::TooLong } else { Line::Torn { bytes, beginning: &self.line } }))
    }

    fn skip_line(&mut self) -> io::Result<(u64, bool)> {
        let mut skipped = 0u64;
        loop {
            let chunk = self.reader.fill_buf()?;
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(chunk.len(), |end| end + 1);
            if taken == 0 {
                return Ok((skipped, false));
            }
            self.reader.consume(taken);
            skipped = skipped.saturating_add(u64::try_from(taken).unwrap_or(u64::MAX));
            if end.is_some() {
                return Ok((skipped, true));
            }
        }
    }
}

/// The end of a segment.
#[derive(Debug, Default)]
pub(super) struct Tail {
    /// The last whole line, without its end.
    pub(super) line: Option<Vec<u8>>,
    /// What comes after it: a record that was being written.
    pub(super) torn: Vec<u8>,
    /// Length of the whole lines, in bytes.
    pub(super) length: u64,
}

/// Looks at the end of a segment.
///
/// # Errors
/// When it can not be read, or its end is no end of a segment.
pub(super) fn tail(file: &mut File) -> io::Result<Tail> {
    let length = file.seek(SeekFrom::End(0))?;
    let start = length.saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let torn = bytes.split_off(whole);
    if bytes.pop().is_none() {
        return if start == 0 { Ok(Tail { line: None, torn, length: 0 }) } else { Err(io::Error::other("its end is not of records")) };
    }
    let before = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if before == 0 && start > 0 {
        return Err(io::Error::other("its last line is longer than a record can be"));
    }
    let length = length.saturating_sub(u64::try_from(torn.len()).unwrap_or(u64::MAX));
    Ok(Tail { line: Some(bytes.split_off(before)), torn, length })
}

/// The first record of a segment: its number, and when it was written.
///
/// # Errors
/// When it can not be read.
pub(super) fn first_record(folder: &Path, number: u64) -> io::Result<(u64, u64)> {
    match Lines::open(folder, number)?.next_line()? {
        Some(Line::Whole(line)) => {
            let (envelope, _) = record::read(line).map_err(damaged)?;
            Ok((envelope.seq, envelope.time_ms))
        }
        _ => Err(io::Error::other("its first line is not a record")),
    }
}

pub(super) fn damaged(fault: LineFault) -> io::Error {
    io::Error::other(fault.to_string())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn only_the_names_that_brigd_gives_are_segments() {
        assert_eq!(number_of("segment-0000000012.jsonl"), Some(12));
        for other in ["segment-12.jsonl", "segment-0000000012.jsonl.gz", "head", "segment-+000000012.jsonl"] {
            assert_eq!(number_of(other), None, "{other}");
        }
    }

    #[test]
    fn a_line_without_end_is_torn_and_an_endless_one_takes_no_memory() {
        let long = [b"ab\n".as_slice(), &vec![b'x'; 3 * LINE_BYTES], b"\nc"].concat();
        let mut lines = Lines::new(&*long);
        assert_eq!(lines.next_line().unwrap(), Some(Line::Whole(b"ab")));
        assert_eq!(lines.next_line().unwrap(), Some(Line::TooLong));
        assert!(lines.line.capacity() < 3 * LINE_BYTES);
        assert_eq!(lines.next_line().unwrap(), Some(Line::Torn { bytes: 1, beginning: b"c" }));
        assert_eq!(lines.next_line().unwrap(), None);
    }
}
