//! Lines and frames, against decoders that are too simple to be wrong.

use crate::drive::{behaviour, fuzz};
use brig_protocol::frame::{self, FrameDecoder, FrameFault, PREFIX_BYTES};
use brig_protocol::line::{Line, LineDecoder};

/// Cuts `stream` into pieces whose lengths come from `cuts`, over and over.
fn pieces<'s>(stream: &'s [u8], cuts: &[u8]) -> Vec<&'s [u8]> {
    let mut rest = stream;
    let mut lengths = cuts.iter().map(|cut| usize::from(*cut) + 1).cycle();
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(lengths.next().unwrap_or(1).min(rest.len()));
        pieces.push(piece);
        rest = tail;
    }
    pieces
}

/// All lines of a whole stream: what `LineDecoder` must say however it is fed.
fn naive_lines(stream: &[u8], limit: usize) -> Vec<Line> {
    let mut lines: Vec<&[u8]> = stream.split(|byte| *byte == b'\n').collect();
    let rest = lines.pop().unwrap_or_default();
    let mut told: Vec<Line> = lines
        .iter()
        .map(|line| {
            let bare = line.strip_suffix(b"\r").unwrap_or(line);
            if bare.len() > limit { Line::TooLong } else { Line::Text(bare.to_vec()) }
        })
        .collect();
    if rest.len() > limit {
        told.push(Line::TooLong);
    } else if !rest.is_empty() {
        told.push(Line::Text(rest.to_vec()));
    }
    told
}

#[test]
fn lines_are_cut_as_a_naive_reader_cuts_the_whole_stream() {
    let seeds = [
        &b"\x05\x02\x00\x07one\ntwo\r\nthree is too long\n\nrest"[..],
        b"\x00\x00\x01\x00\n\n\r\n\r\rx\n",
        b"\x03\x01\x05\x02abc\r\nabc\nabcd\n",
    ];
    fuzz(&crate::target("line", &["\n", "\r\n", "\r", "x"], 30), seeds.iter().map(|seed| seed.to_vec()).collect(), |input| {
        let (head, stream) = input.split_at(input.len().min(4));
        let limit = head.first().map_or(0, |byte| usize::from(byte % 16));
        let mut decoder = LineDecoder::new(limit);
        let mut seen = Vec::new();
        for piece in pieces(stream, head.get(1..).unwrap_or_default()) {
            decoder.feed(piece);
            seen.extend(std::iter::from_fn(|| decoder.next_line()));
        }
        seen.extend(decoder.finish());
        assert_eq!(seen, naive_lines(stream, limit), "limit {limit}");
        let long = seen.iter().filter(|line| **line == Line::TooLong).count();
        behaviour(&format!("{}/{}", "l".repeat(seen.len().min(20)), "t".repeat(long.min(20))))
    });
}

/// Frames of a whole stream, and the fault that ends it.
fn naive_frames(stream: &[u8], limit: usize) -> (Vec<Vec<u8>>, Option<FrameFault>) {
    let mut bodies = Vec::new();
    let mut rest = stream;
    while rest.len() >= PREFIX_BYTES {
        let announced = u32::from_le_bytes([rest[0], rest[1], rest[2], rest[3]]);
        let length = usize::try_from(announced).unwrap();
        if length == 0 {
            return (bodies, Some(FrameFault::Empty));
        }
        if length > limit {
            return (bodies, Some(FrameFault::TooLong { announced: u64::from(announced), limit }));
        }
        if rest.len() - PREFIX_BYTES < length {
            break;
        }
        bodies.push(rest[PREFIX_BYTES..PREFIX_BYTES + length].to_vec());
        rest = &rest[PREFIX_BYTES + length..];
    }
    (bodies, None)
}

#[test]
fn frames_are_cut_as_a_naive_reader_cuts_the_whole_stream() {
    let mut seeds = vec![b"\x10\x02\x00\x07\x02\0\0\0{}\x01\0\0\0x\xff\xff\xff\xff".to_vec(), b"\x00\x00\x00\x00\0\0\0\0".to_vec()];
    seeds.extend(
        crate::seeds::from_worker()
            .iter()
            .map(|body| [b"\x3f\x03\x40\x01".as_slice(), &frame::build(|out| out.extend_from_slice(body)).unwrap().repeat(3)].concat()),
    );
    fuzz(&crate::target("frame", &[], 0), seeds, |input| {
        let (head, stream) = input.split_at(input.len().min(4));
        let limit = head.first().map_or(1, |byte| usize::from(*byte) * 8 + 1);
        let mut decoder = FrameDecoder::new(limit);
        let (mut bodies, mut fault) = (Vec::new(), None);
        for piece in pieces(stream, head.get(1..).unwrap_or_default()) {
            decoder.feed(piece);
            while fault.is_none() {
                match decoder.next_frame() {
                    Ok(Some(body)) => bodies.push(body.to_vec()),
                    Ok(None) => break,
                    Err(found) => fault = Some(found),
                }
            }
        }
        let expected = naive_frames(stream, limit);
        let told: usize = expected.0.iter().map(|body| body.len() + PREFIX_BYTES).sum();
        assert_eq!(decoder.mid_frame(), told < stream.len());
        assert_eq!((&bodies, &fault), (&expected.0, &expected.1));
        behaviour(&format!("{}/{fault:?}/{}", "b".repeat(bodies.len().min(20)), decoder.mid_frame()))
    });
}

/// The largest resident set of this process so far, in kibibytes.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn half_a_gibibyte_of_overlong_lines_and_announced_frames_costs_next_to_nothing() {
    let piece = vec![b'x'; 64 * 1024];
    let mut line = LineDecoder::new(1024 * 1024);
    let mut told = 0;
    for _ in 0..8192 {
        line.feed(&piece);
        told += std::iter::from_fn(|| line.next_line()).count();
    }
    assert_eq!(told, 1);
    let mut decoders: Vec<FrameDecoder> = (0..1000).map(|_| FrameDecoder::new(frame::BODY_BYTES)).collect();
    for decoder in &mut decoders {
        decoder.feed(&u32::try_from(frame::BODY_BYTES).unwrap().to_le_bytes());
        assert_eq!(decoder.next_frame(), Ok(None));
    }
    // Other targets run at the same time; together they stay far below what was sent.
    assert!(peak_kib() < 256 * 1024, "{} KiB", peak_kib());
}
