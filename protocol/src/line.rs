//! Lines between client and supervisor.
//!
//! Owns cutting a byte stream into lines of bounded length. Never keeps more than
//! the limit and what one read gave: the rest of an overlong line is dropped as it
//! comes, and the stream goes on after its LF.

/// What a byte stream holds next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A line, without its LF (and without a CR before it).
    Text(Vec<u8>),
    /// A line that is over the limit: its rest is being skipped.
    TooLong,
}

/// Cuts a byte stream into lines.
#[derive(Debug)]
pub struct LineDecoder {
    buffer: Vec<u8>,
    searched: usize,
    limit: usize,
    skipping: bool,
}

impl LineDecoder {
    /// A decoder for lines of at most `limit` bytes.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { buffer: Vec::new(), searched: 0, limit, skipping: false }
    }

    /// Bytes that are kept for lines that are not whole yet.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// What is kept of a line that is not whole yet.
    #[must_use]
    pub fn beginning(&self) -> &[u8] {
        &self.buffer
    }

    /// Takes bytes as they were read, then call [`Self::next_line`] until it says
    /// nothing.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        if self.skipping {
            match memchr::memchr(b'\n', bytes) {
                None => return,
                Some(end) => {
                    self.skipping = false;
                    bytes = bytes.get(end + 1..).unwrap_or_default();
                }
            }
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next line, or nothing until more bytes come.
    pub fn next_line(&mut self) -> Option<Line> {
        let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
        match memchr::memchr(b'\n', unsearched) {
            Some(offset) => {
                let end = self.searched + offset;
                self.searched = 0;
                let line = self.take(end);
                Some(if line.len() > self.limit { Line::TooLong } else { Line::Text(line) })
            }
            None if self.is_over() => {
                self.buffer = Vec::new();
                self.searched = 0;
                self.skipping = true;
                Some(Line::TooLong)
            }
            None => {
                self.searched = self.buffer.len();
                None
            }
        }
    }

    /// Whether no LF can make a line within the limit of what is there: a CR right
    /// behind the limit may belong to the end of the line.
    fn is_over(&self) -> bool {
        let over = self.buffer.len().saturating_sub(self.limit);
        over > 1 || (over == 1 && self.buffer.last() != Some(&b'\r'))
    }

    /// What is left when the stream ends without an LF, its bytes as they came. An
    /// overlong rest was told already, unless only its last byte, a CR, is too much.
    pub fn finish(&mut self) -> Option<Line> {
        let rest = std::mem::take(&mut self.buffer);
        self.searched = 0;
        match rest.len() {
            0 => None,
            length if length > self.limit => Some(Line::TooLong),
            _ => Some(Line::Text(rest)),
        }
    }

    /// Cuts `end` bytes and the LF behind them off the front.
    fn take(&mut self, end: usize) -> Vec<u8> {
        let mut line = if end + 1 == self.buffer.len() {
            std::mem::take(&mut self.buffer)
        } else {
            let rest = self.buffer.split_off(end + 1);
            std::mem::replace(&mut self.buffer, rest)
        };
        line.truncate(end);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(decoder: &mut LineDecoder) -> Vec<Line> {
        std::iter::from_fn(|| decoder.next_line()).collect()
    }

    #[test]
    fn lines_end_at_lf_and_lose_a_cr() {
        let mut decoder = LineDecoder::new(10);
        decoder.feed(b"a\r\nb\n\nc");
        assert_eq!(all(&mut decoder), [Line::Text(b"a".to_vec()), Line::Text(b"b".to_vec()), Line::Text(vec![])]);
        assert_eq!(decoder.finish(), Some(Line::Text(b"c".to_vec())));
    }

    #[test]
    fn an_overlong_line_is_told_once_and_the_next_line_lives() {
        let mut decoder = LineDecoder::new(4);
        let mut seen = Vec::new();
        for _ in 0..1000 {
            decoder.feed(b"xxxx");
            seen.extend(all(&mut decoder));
            assert!(decoder.buffer.len() <= 8);
        }
        decoder.feed(b"x\nok\n");
        seen.extend(all(&mut decoder));
        assert_eq!(seen, [Line::TooLong, Line::Text(b"ok".to_vec())]);
    }

    #[test]
    fn a_line_of_exactly_the_limit_is_within_it_wherever_its_cr_and_lf_are_cut() {
        for cut in 1..=6 {
            let mut decoder = LineDecoder::new(4);
            let mut seen = Vec::new();
            for piece in b"four\r\n".chunks(cut) {
                decoder.feed(piece);
                seen.extend(all(&mut decoder));
            }
            assert_eq!(seen, [Line::Text(b"four".to_vec())], "{cut}");
        }
        let mut decoder = LineDecoder::new(4);
        decoder.feed(b"four\r");
        assert_eq!(decoder.next_line(), None);
        assert_eq!(decoder.finish(), Some(Line::TooLong));
    }

    proptest! {
        #[test]
        fn lines_come_out_as_they_went_in_however_the_bytes_are_cut(
            lines in proptest::collection::vec("[a-z]{0,9}", 0..10),
            cut in 1usize..9,
        ) {
            let mut stream = Vec::new();
            for line in &lines {
                stream.extend_from_slice(line.as_bytes());
                stream.push(b'\n');
            }
            let mut decoder = LineDecoder::new(6);
            let mut seen = Vec::new();
            for piece in stream.chunks(cut) {
                decoder.feed(piece);
                seen.extend(all(&mut decoder));
            }
            let expected: Vec<Line> = lines.iter()
                .map(|line| if line.len() > 6 { Line::TooLong } else { Line::Text(line.clone().into_bytes()) })
                .collect();
            prop_assert_eq!(seen, expected);
        }
    }
}
