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
        fn no_bytes_make_the_decoder_panic_or_hold_more_than_it_was_fed(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut decoder = FrameDecoder::new(32);
            decoder.feed(&bytes);
            drop(drain(&mut decoder));
            prop_assert!(decoder.buffer.len() <= bytes.len());
        }
    }
}
