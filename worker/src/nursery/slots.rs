//! User ids of nursery and worker slots. Owns: which slot has which id. Never: hands one id
//! to two slots.

use brig_protocol::control::Configure;
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities, set_keep_capabilities};

use crate::lockdown;

/// "Nobody", inside the user namespace: the nursery, and every worker where slots have no id
/// of their own.
pub(super) const NOBODY: u32 = 65534;

/// Where a slot's id comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotIds {
    /// There is no range: everyone is who the nursery is.
    None,
    /// A range mapped into the user namespace: slot `n` is `n + 1` there.
    Mapped {
        /// Ids in the range, the nursery's included.
        count: u32,
    },
    /// Real ids: slot `n` is `base + 1 + n`.
    Real {
        /// The nursery's.
        base: u32,
        /// As above.
        count: u32,
    },
}

impl SlotIds {
    /// The range of a configuration, for a process that may use it.
    pub(super) fn real(config: &Configure) -> Self {
        match (rustix::process::geteuid().is_root(), config.uid_count) {
            (true, 1..) => Self::Real { base: config.uid_base, count: config.uid_count },
            _ => Self::None,
        }
    }

    /// A slot's id; `None` where slots have none of their own.
    ///
    /// # Errors
    /// `EINVAL` for a slot beyond the range.
    pub(super) fn of(self, slot: u16) -> Result<Option<u32>, Errno> {
        let place = u32::from(slot) + 1;
        let within = |count| place < count;
        match self {
            Self::None => Ok(None),
            Self::Mapped { count } if within(count) => Ok(Some(place)),
            Self::Real { base, count } if within(count) => Ok(Some(base + place)),
            _ => Err(Errno::INVAL),
        }
    }

    /// Makes this process the nursery's user, with no more capabilities than giving workers
    /// their ids takes.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub(super) fn settle(self) -> Result<(), Errno> {
        match self {
            Self::None => {
                forget_bounding_set()?;
                lockdown::drop_capabilities()
            }
            Self::Mapped { .. } => {
                forget_bounding_set()?;
                lockdown::keep_only_id_capabilities()
            }
            Self::Real { base, .. } => {
                forget_bounding_set()?;
                set_keep_capabilities(true)?;
                lockdown::take_ids(base)?;
                lockdown::keep_only_id_capabilities()?;
                set_keep_capabilities(false)
            }
        }
    }
}

/// No program that is ever run from here gets a capability back. Possible only for who may;
/// for the others `no_new_privs` says the same.
fn forget_bounding_set() -> Result<(), Errno> {
    if !capabilities(None)?.effective.contains(CapabilitySet::SETPCAP) {
        return Ok(());
    }
    for capability in CapabilitySet::all().iter() {
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            // A kernel that does not know it can not give it either.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_have_different_ids_and_none_has_the_nurserys() {
        let ids = SlotIds::Real { base: 100, count: 4 };
        assert_eq!(ids.of(0), Ok(Some(101)));
        assert_eq!(ids.of(2), Ok(Some(103)));
        assert_eq!(ids.of(3), Err(Errno::INVAL));
    }

    #[test]
    fn a_mapped_slot_is_never_root_inside() {
        let ids = SlotIds::Mapped { count: 3 };
        assert_eq!(ids.of(0), Ok(Some(1)));
        assert_eq!(ids.of(1), Ok(Some(2)));
        assert_eq!(ids.of(2), Err(Errno::INVAL));
        assert_eq!(ids.of(u16::MAX), Err(Errno::INVAL));
    }

    #[test]
    fn without_a_range_any_slot_will_do() {
        assert_eq!(SlotIds::None.of(u16::MAX), Ok(None));
    }
}
