//! Length-prefixed frames between worker and supervisor.
//!
//! A frame is four bytes, little-endian: the length of the body, then the body.
//! Owns cutting and building frames. Never allocates ahead of received bytes: the
//! buffer grows with what arrived, not with the length that was announced.

/// Bytes of the length in front of every body.
pub const PREFIX_BYTES: usize = 4;
/// Longest body either side may send, in bytes. The largest legal message is an
/// `evaluate` that carries a program and inputs from one client line, escaped anew.
pub const BODY_BYTES: usize = 40 * 1024 * 1024;

/// A length that no honest peer sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameFault {
    /// A frame without a body.
    #[error("a frame announced an empty body")]
    Empty,
    /// A body over the limit.
    #[error("a frame announced {announced} bytes; at most {limit} are accepted")]
    TooLong {
        /// What the prefix said.
        announced: u64,
        /// What is accepted.
        limit: usize,
    },
}

/// Cuts a byte stream into frames.
#[derive(Debug)]
pub struct FrameDecoder {
    buffer: Vec<u8>,
    start: usize,
    limit: usize,
}

impl FrameDecoder {
    /// A decoder that accepts bodies of at most `limit` bytes.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, limit }
    }

    /// From now on accepts bodies of at most `limit` bytes.
    pub const fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Takes bytes as they were read. Feed at most what one read gave.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.start > 0 && (self.start == self.buffer.len() || self.start >= 64 * 1024) {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Whether bytes of an unfinished frame are waiting: a frame that stays so past
    /// its deadline is a stalled peer.
    #[must_use]
    pub fn mid_frame(&self) -> bool {
        self.start < self.buffer.len()
    }

    /// The next whole body, borrowed until the next call.
    ///
    /// # Errors
    /// [`FrameFault`] as soon as a prefix announces an empty or oversized body. The
    /// stream can not be read any further then.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, FrameFault> {
        let pending = self.buffer.get(self.start..).unwrap_or_default();
        let Some((prefix, rest)) = pending.split_first_chunk::<PREFIX_BYTES>() else {
            return Ok(None);
        };
        let announced = u32::from_le_bytes(*prefix);
        let length = check_length(announced, self.limit)?;
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        self.start += PREFIX_BYTES + length;
        Ok(Some(body))
    }
}

/// One whole body, owned.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Body {
    bytes: Vec<u8>,
    start: usize,
}

impl std::ops::Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }
}

/// Bodies up to this length are copied out of the buffer, so that it can be used again;
/// longer ones take it along, so that no byte of them is copied.
const COPIED_BYTES: usize = 4 * 1024;
/// Room that is made for a read when nothing is known about what comes.
const READ_BYTES: usize = 8 * 1024;
/// Most room that is made for one read.
const READ_MOST_BYTES: usize = 1024 * 1024;

impl FrameDecoder {
    /// Lets `read` append to the buffer, at its spare capacity if it likes: at least 4
    /// KiB, never more than the greater of 8 KiB and what has been received, and never
    /// more than 1 MiB. So a large frame takes few reads and one that was only announced
    /// takes no memory.
    pub fn fill<R>(&mut self, read: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        let spare = self.buffer.capacity() - self.buffer.len();
        if spare < READ_BYTES / 2 {
            self.buffer.reserve_exact(self.buffer.len().clamp(READ_BYTES, READ_MOST_BYTES));
        }
        read(&mut self.buffer)
    }

    /// The next whole body, owned.
    ///
    /// # Errors
    /// As [`Self::next_frame`].
    pub fn take_body(&mut self) -> Result<Option<Body>, FrameFault> {
        let before = self.start;
        let Some(body) = self.next_frame()? else { return Ok(None) };
        if body.len() <= COPIED_BYTES {
            return Ok(Some(Body { bytes: body.to_vec(), start: 0 }));
        }
        // What follows the body in the buffer, seldom anything, moves to a new one.
        let rest = self.buffer.split_off(self.start);
        self.start = 0;
        let bytes = std::mem::replace(&mut self.buffer, rest);
        Ok(Some(Body { bytes, start: before + PREFIX_BYTES }))
    }
}

fn check_length(announced: u32, limit: usize) -> Result<usize, FrameFault> {
    let length = usize::try_from(announced).unwrap_or(usize::MAX);
    if length == 0 {
        return Err(FrameFault::Empty);
    }
    if length > limit {
        return Err(FrameFault::TooLong { announced: u64::from(announced), limit });
    }
    Ok(length)
}

/// Builds one frame around what `write` appends.
///
/// # Errors
/// [`FrameFault`] when the body is empty or longer than [`BODY_BYTES`].
pub fn build(write: impl FnOnce(&mut Vec<u8>)) -> Result<Vec<u8>, FrameFault> {
    let mut frame = vec![0; PREFIX_BYTES];
    write(&mut frame);
    let length = frame.len() - PREFIX_BYTES;
    let announced = u32::try_from(length).unwrap_or(u32::MAX);
    check_length(announced, BODY_BYTES)?;
    if let Some(prefix) = frame.first_chunk_mut::<PREFIX_BYTES>() {
        *prefix = announced.to_le_bytes();
    }
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drain(decoder: &mut FrameDecoder) -> Result<Vec<Vec<u8>>, FrameFault> {
        let mut bodies = Vec::new();
        while let Some(body) = decoder.next_frame()? {
            bodies.push(body.to_vec());
        }
        Ok(bodies)
    }

    #[test]
    fn a_frame_is_its_length_and_its_body() {
        let frame = build(|out| out.extend_from_slice(b"{}")).unwrap_or_default();
        assert_eq!(frame, b"\x02\0\0\0{}");
    }

    #[test]
    fn an_empty_frame_is_a_fault() {
        let mut decoder = FrameDecoder::new(10);
        decoder.feed(&[0, 0, 0, 0]);
        assert_eq!(drain(&mut decoder), Err(FrameFault::Empty));
    }

    #[test]
    fn a_length_over_the_limit_is_a_fault_before_any_body_arrives() {
        let mut decoder = FrameDecoder::new(10);
        decoder.feed(&[11, 0, 0, 0]);
        assert_eq!(drain(&mut decoder), Err(FrameFault::TooLong { announced: 11, limit: 10 }));
        let mut decoder = FrameDecoder::new(10);
        decoder.feed(&[255, 255, 255, 255]);
        assert!(drain(&mut decoder).is_err());
    }

    #[test]
    fn an_announced_length_allocates_nothing() {
        let mut decoder = FrameDecoder::new(BODY_BYTES);
        decoder.feed(&u32::try_from(BODY_BYTES).unwrap_or(0).to_le_bytes());
        assert_eq!(drain(&mut decoder), Ok(vec![]));
        assert!(decoder.buffer.capacity() < 1024);
    }

    #[test]
    fn room_for_a_read_grows_with_what_was_received_and_not_with_what_was_announced() {
        let mut decoder = FrameDecoder::new(BODY_BYTES);
        decoder.fill(|buffer| buffer.extend_from_slice(&u32::try_from(BODY_BYTES).unwrap_or(0).to_le_bytes()));
        let mut received = PREFIX_BYTES;
        for _ in 0..200 {
            decoder.fill(|buffer| {
                let spare = buffer.capacity() - buffer.len();
                assert!(spare >= 1024 && buffer.capacity() <= 2 * received + 2 * READ_BYTES, "{received}");
                buffer.resize(buffer.capacity(), 7);
                received = buffer.len();
            });
            assert_eq!(decoder.take_body(), Ok(None));
            if received > BODY_BYTES / 2 {
                break;
            }
        }
    }

    #[test]
    fn a_large_body_is_handed_over_without_a_copy() {
        let frame = build(|out| out.resize(100_000, 1)).unwrap_or_default();
        let mut decoder = FrameDecoder::new(BODY_BYTES);
        decoder.fill(|buffer| buffer.extend_from_slice(&frame));
        let place = decoder.buffer.as_ptr();
        let body = decoder.take_body().ok().flatten().unwrap_or_default();
        assert_eq!(body.bytes.as_ptr(), place);
    }

    proptest! {
        #[test]
        fn bodies_come_out_as_they_went_in_however_the_bytes_are_cut(
            bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..50), 0..8),
            cut in 1usize..17,
        ) {
            let mut stream = Vec::new();
            for body in &bodies {
                stream.extend(build(|out| out.extend_from_slice(body)).unwrap_or_default());
            }
            let mut decoder = FrameDecoder::new(64);
            let mut seen = Vec::new();
            for piece in stream.chunks(cut) {
                decoder.feed(piece);
                seen.extend(drain(&mut decoder).unwrap_or_default());
            }
            prop_assert_eq!(seen, bodies);
            prop_assert!(!decoder.mid_frame());
        }

        #[test]
        fn owned_bodies_come_out_as_they_went_in_however_the_bytes_are_cut(
            lengths in proptest::collection::vec(prop_oneof![1usize..50, 3_000usize..20_000], 0..8),
            cut in 1usize..30_000,
        ) {
            let bodies: Vec<Vec<u8>> = lengths.iter().map(|length| (0..*length).map(|at| u8::try_from(at % 251).unwrap_or(0)).collect()).collect();
            let mut stream = Vec::new();
            for body in &bodies {
                stream.extend(build(|out| out.extend_from_slice(body)).unwrap_or_default());
            }
            let mut decoder = FrameDecoder::new(BODY_BYTES);
            let mut seen: Vec<Vec<u8>> = Vec::new();
            for piece in stream.chunks(cut) {
                decoder.fill(|buffer| buffer.extend_from_slice(piece));
                while let Ok(Some(body)) = decoder.take_body() {
                    seen.push(body.to_vec());
                }
            }
            prop_assert_eq!(seen, bodies);
            prop_assert!(!decoder.mid_frame());
        }

        #[test]
        fn no_bytes_make_the_decoder_panic_or_hold_more_than_it_was_fed(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut decoder = FrameDecoder::new(32);
            decoder.feed(&bytes);
            drop(drain(&mut decoder));
            prop_assert!(decoder.buffer.len() <= bytes.len());
        }
    }
}
