//! Fields to bytes and back, for the frames of the control link only.

use super::{Cause, FRAME_MAX, FrameError, Layer, LayerState, Layers, VERSION, WaitStatus, size_of_frame};

pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn new(tag: u8) -> Self {
        let mut bytes = Vec::with_capacity(FRAME_MAX);
        bytes.extend([tag, VERSION]);
        Self(bytes)
    }

    fn put(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn u8(self, value: u8) -> Self {
        self.put(&[value])
    }

    pub(super) fn u16(self, value: u16) -> Self {
        self.put(&value.to_le_bytes())
    }

    pub(super) fn u32(self, value: u32) -> Self {
        self.put(&value.to_le_bytes())
    }

    pub(super) fn u64(self, value: u64) -> Self {
        self.put(&value.to_le_bytes())
    }
}

/// Reads the fields of a packet whose length was checked against its tag, so that running
/// out of bytes can not happen; it would read zeros.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn open(packet: &'a [u8]) -> Result<(u8, Self), FrameError> {
        let got = packet.len();
        let (Some(&tag), Some(&version)) = (packet.first(), packet.get(1)) else {
            return Err(FrameError::Length { got, want: 2 });
        };
        let want = size_of_frame(tag).ok_or(FrameError::Tag(tag))?;
        if version != VERSION {
            return Err(FrameError::Version(version));
        }
        match packet.get(2..) {
            Some(rest) if got == want => Ok((tag, Self(rest))),
            _ => Err(FrameError::Length { got, want }),
        }
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk::<N>() {
            Some((chunk, rest)) => {
                self.0 = rest;
                *chunk
            }
            None => [0; N],
        }
    }

    pub(super) fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.take())
    }

    pub(super) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    pub(super) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    pub(super) fn flag(&mut self, field: &'static str) -> Result<bool, FrameError> {
        match self.u8() {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(FrameError::Field(field)),
        }
    }

    pub(super) fn layers(&mut self) -> Result<Layers, FrameError> {
        let mut layers = Layers::none();
        for layer in Layer::ALL {
            let state = match (self.flag("layers")?, self.u8(), self.u16()) {
                (true, 0, 0) => LayerState::Active,
                (true, ..) => return Err(FrameError::Field("layers")),
                (false, cause, errno) => LayerState::Missing { cause: Cause::from_code(cause)?, errno },
            };
            layers.set(*layer, state);
        }
        Ok(layers)
    }

    pub(super) fn status(&mut self) -> Result<WaitStatus, FrameError> {
        match (self.flag("status")?, self.u8()) {
            (false, code) => Ok(WaitStatus::Code(code)),
            (true, signal @ 1..=64) => Ok(WaitStatus::Signal(signal)),
            (true, _) => Err(FrameError::Field("status")),
        }
    }
}
