//! The form of a record: one line of JSON, bound to the one before it.
//!
//! Owns writing and reading a line and its hash. Never opens a file.
//!
//! `{"seq":7,"time_ms":1767225600000,"prev":"<hash of record 6>","event":"…",…,"hash":"<hash>"}`
//!
//! The hash is SHA-256 over the bytes of the line before `,"hash":"`. They hold the
//! number of the record and the hash of the one before, so that no record can be
//! changed, left out, put in or moved without one of the hashes being wrong.

use super::event::Event;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;

/// Longest line, in bytes: readers never hold more.
pub(crate) const LINE_BYTES: usize = 1024 * 1024;
/// What stands between the hashed bytes and their hash.
const BEFORE_HASH: &[u8] = b",\"hash\":\"";
const AFTER_HASH: &[u8] = b"\"}";
const HEX_BYTES: usize = 64;
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// A SHA-256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Hash([u8; 32]);

impl Hash {
    /// Of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// From 64 lower-case hexadecimal digits; one hash has one spelling.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let nibble = |digit: u8| DIGITS.iter().position(|known| *known == digit).and_then(|value| u8::try_from(value).ok());
        let mut bytes = [0; 32];
        if text.len() != HEX_BYTES {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            let [high, low] = pair else { return None };
            *byte = nibble(*high)? << 4 | nibble(*low)?;
        }
        Some(Self(bytes))
    }

    fn push_to(self, out: &mut Vec<u8>) {
        for byte in self.0 {
            out.extend([byte >> 4, byte & 15].map(|nibble| DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'?')));
        }
    }
}

impl std::fmt::Display for Hash {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl serde::Serialize for Hash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        Self::parse(text.as_bytes()).ok_or_else(|| serde::de::Error::custom("not 64 lower-case hexadecimal digits"))
    }
}

/// A place in the chain: a record by its number and hash. The default is the place
/// before the first record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, Deserialize)]
pub(crate) struct Mark {
    /// Number of the record, from 1.
    pub(crate) seq: u64,
    /// Its hash.
    pub(crate) hash: Hash,
}

/// Writes the record that follows `last` over whatever is in `line`; its place.
///
/// # Errors
/// When the event has no JSON form; `line` is then of no use.
pub(crate) fn write(line: &mut Vec<u8>, last: Mark, time_ms: u64, event: &Event<'_>) -> std::io::Result<Mark> {
    use std::io::Write as _;
    let seq = last.seq.checked_add(1).ok_or_else(|| std::io::Error::other("the numbers of records are used up"))?;
    line.clear();
    write!(line, "{{\"seq\":{seq},\"time_ms\":{time_ms},\"prev\":\"")?;
    last.hash.push_to(line);
    line.push(b'"');
    let joint = line.len();
    serde_json::to_writer(&mut *line, event)?;
    // The event is an object with members: its brace becomes the comma before them.
    if let Some(brace) = line.get_mut(joint) {
        *brace = b',';
    }
    line.pop();
    let hash = sign(line);
    Ok(Mark { seq, hash })
}

/// Ends an open JSON object with the hash of its text so far, and the line.
pub(super) fn sign(line: &mut Vec<u8>) -> Hash {
    let hash = Hash::of(line);
    line.extend_from_slice(BEFORE_HASH);
    hash.push_to(line);
    line.extend_from_slice(AFTER_HASH);
    line.push(b'\n');
    hash
}

/// A line whose hash is right, or what is wrong with it. The line is without its end.
pub(super) fn signed(line: &[u8]) -> Result<Hash, LineFault> {
    let body = line.len().checked_sub(BEFORE_HASH.len() + HEX_BYTES + AFTER_HASH.len()).ok_or(LineFault::NoRecord)?;
    let (body, signature) = line.split_at_checked(body).ok_or(LineFault::NoRecord)?;
    let hex = signature.strip_prefix(BEFORE_HASH).and_then(|rest| rest.strip_suffix(AFTER_HASH)).ok_or(LineFault::NoRecord)?;
    let hash = Hash::parse(hex).ok_or(LineFault::NoRecord)?;
    if Hash::of(body) == hash { Ok(hash) } else { Err(LineFault::Changed) }
}

/// What is wrong with one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LineFault {
    /// Its form.
    #[error("the line is not a record")]
    NoRecord,
    /// Its bytes.
    #[error("the record was changed: its hash is not that of its bytes")]
    Changed,
    /// Its length.
    #[error("the line is longer than a record can be")]
    TooLong,
}

/// What of a record the chain is made of, and what its keepers say in it.
#[derive(Debug, Deserialize)]
pub(crate) struct Envelope<'a> {
    /// Its number.
    pub(crate) seq: u64,
    /// When it was written, in milliseconds since 1970.
    pub(crate) time_ms: u64,
    /// Hash of the record before.
    pub(crate) prev: Hash,
    /// What happened.
    #[serde(borrow)]
    pub(crate) event: Cow<'a, str>,
    /// Of `segment_opened`, `segment_sealed`: which.
    #[serde(default)]
    pub(crate) segment: Option<u64>,
    /// Of `segment_sealed`: how many records the segment has, this one counted.
    #[serde(default)]
    pub(crate) records: Option<u64>,
    /// Of `segments_removed`: the last of them.
    #[serde(default)]
    pub(crate) through: Option<u64>,
    /// Of `segments_removed`: the last record that is gone.
    #[serde(default)]
    pub(crate) last: Option<Mark>,
}

/// Reads a line, without its end.
///
/// # Errors
/// [`LineFault`].
pub(crate) fn read(line: &[u8]) -> Result<(Envelope<'_>, Mark), LineFault> {
    let hash = signed(line)?;
    let envelope: Envelope<'_> = serde_json::from_slice(line).map_err(|_| LineFault::NoRecord)?;
    let mark = Mark { seq: envelope.seq, hash };
    Ok((envelope, mark))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;
    use crate::audit::event::{StopReason, stopped};

    fn line_after(last: Mark) -> (Vec<u8>, Mark) {
        let mut line = Vec::new();
        let mark = write(&mut line, last, 5, &stopped(StopReason::Signal("SIGTERM"))).unwrap();
        assert_eq!(line.pop(), Some(b'\n'));
        (line, mark)
    }

    #[test]
    fn a_record_reads_back_as_it_was_written_and_names_the_one_before() {
        let (line, first) = line_after(Mark::default());
        let (envelope, mark) = read(&line).unwrap();
        assert_eq!((envelope.seq, envelope.time_ms, &*envelope.event, mark), (1, 5, "stopped", first));
        let (line, _) = line_after(first);
        assert_eq!(read(&line).unwrap().0.prev, first.hash);
    }

    #[test]
    fn the_hash_is_that_of_the_bytes_before_it_so_that_any_tool_can_check_it() {
        let (line, mark) = line_after(Mark::default());
        let text = String::from_utf8(line).unwrap();
        let (body, rest) = text.split_once(",\"hash\":\"").unwrap();
        assert_eq!(format!("{:x}", Sha256::digest(body.as_bytes())), mark.hash.to_string());
        assert_eq!(rest, format!("{}\"}}", mark.hash));
    }

    #[test]
    fn a_hash_has_one_spelling() {
        let hash = Hash::of(b"x").to_string();
        assert!(Hash::parse(hash.as_bytes()).is_some());
        assert_eq!(Hash::parse(hash.to_uppercase().as_bytes()), None);
        assert_eq!(Hash::parse(&hash.as_bytes()[1..]), None);
    }

    proptest::proptest! {
        #[test]
        fn a_line_with_any_byte_changed_is_no_record(at in 0usize..10_000, to in 0u8..=255) {
            let (mut line, _) = line_after(Mark::default());
            let at = at % line.len();
            if line[at] != to {
                line[at] = to;
                proptest::prop_assert!(read(&line).is_err());
            }
        }
    }
}
