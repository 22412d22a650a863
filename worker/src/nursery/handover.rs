//! What a forked child tells the image that it becomes: fixed bytes through a pipe, in the
//! frames of the control link. Owns: the order of those bytes. Never: anything of a guest.

use brig_protocol::control::{Configure, FrameError, Layers, Ready, Report, Request, Spawn};

/// All that a worker image has to know before it locks itself down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Handover {
    /// As the supervisor sent it.
    pub config: Configure,
    /// As the supervisor sent it.
    pub spawn: Spawn,
    /// What the namespaces gave.
    pub inherited: Layers,
    /// What the rehearsal found.
    pub found: Layers,
    /// The id that was taken, 0 = none of its own.
    pub own_id: u32,
    /// The nursery's process id as the worker sees it.
    pub parent: u32,
}

impl Handover {
    /// The bytes: four frames, each behind its length. Less than a pipe holds.
    pub(super) fn encode(&self) -> Vec<u8> {
        let ready = |layers, pid| Report::Ready(Ready { layers, landlock_abi: 0, pid }).encode();
        let mut bytes = Vec::new();
        for frame in [
            Request::Configure(self.config).encode(),
            Request::Spawn(self.spawn).encode(),
            ready(self.inherited, self.own_id),
            ready(self.found, self.parent),
        ] {
            bytes.push(u8::try_from(frame.len()).unwrap_or(u8::MAX));
            bytes.extend(frame);
        }
        bytes
    }

    /// Reads what [`Handover::encode`] wrote.
    ///
    /// # Errors
    /// For anything else.
    pub(super) fn decode(mut bytes: &[u8]) -> Result<Self, FrameError> {
        let cut = FrameError::Field("handover");
        let mut next = || -> Result<&[u8], FrameError> {
            let (length, rest) = bytes.split_first().ok_or(cut)?;
            let (frame, rest) = rest.split_at_checked(usize::from(*length)).ok_or(cut)?;
            bytes = rest;
            Ok(frame)
        };
        let request = |frame| Request::decode(frame);
        let (first, second) = (request(next()?)?, request(next()?)?);
        let (third, fourth) = (Report::decode(next()?)?, Report::decode(next()?)?);
        match (first, second, third, fourth) {
            (Request::Configure(config), Request::Spawn(spawn), Report::Ready(inherited), Report::Ready(found)) if bytes.is_empty() => {
                Ok(Self { config, spawn, inherited: inherited.layers, found: found.layers, own_id: inherited.pid, parent: found.pid })
            }
            _ => Err(cut),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use brig_protocol::control::{Kind, Layer, Level, Origin};

    use super::*;

    fn handover() -> Handover {
        let mut found = Layers::none();
        found.activate(Layer::Seccomp);
        Handover {
            config: Configure {
                origin: Origin::Exec,
                namespaces: true,
                required: Level::Strong,
                heap_bytes: 1,
                stack_bytes: 2,
                address_space_bytes: 3,
                cpu_ms: 4,
                uid_base: 5,
                uid_count: 6,
            },
            spawn: Spawn { slot: 7, generation: 8, cpu_ms: 9, kind: Kind::Vm },
            inherited: Layers::none(),
            found,
            own_id: 10,
            parent: 1,
        }
    }

    #[test]
    fn a_handover_comes_back_as_it_went() {
        assert_eq!(Handover::decode(&handover().encode()), Ok(handover()));
    }

    #[test]
    fn it_fits_a_pipe_that_nobody_reads_yet() {
        assert!(handover().encode().len() < 4096);
    }

    #[test]
    fn a_handover_cut_or_grown_anywhere_is_refused() {
        let mut bytes = handover().encode();
        for cut in 0..bytes.len() {
            Handover::decode(&bytes[..cut]).unwrap_err();
        }
        bytes.push(0);
        Handover::decode(&bytes).unwrap_err();
    }
}
