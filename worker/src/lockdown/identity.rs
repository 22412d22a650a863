//! User, group and capabilities. Owns: becoming somebody with no power. Never: going back.

use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::of_nix;

/// Becomes user and group `id`, with no supplementary group.
///
/// # Errors
/// `EPERM` without the capabilities for it, `EINVAL` for an id that is not mapped.
pub(crate) fn take_ids(id: u32) -> Result<(), Errno> {
    setgroups(&[]).map_err(of_nix)?;
    let (user, group) = (Uid::from_raw(id), Gid::from_raw(id));
    setresgid(group, group, group).map_err(of_nix)?;
    setresuid(user, user, user).map_err(of_nix)
}

/// Whether user and group are `id` already.
///
/// # Errors
/// `EPERM` when they are not.
pub(super) fn verify_ids(id: u32) -> Result<(), Errno> {
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    if (user.as_raw(), group.as_raw()) == (id, id) { Ok(()) } else { Err(Errno::PERM) }
}

/// Gives up every capability, and reads back that none is left.
///
/// # Errors
/// The kernel's refusal, or `EPERM` when some are left.
pub(crate) fn drop_capabilities() -> Result<(), Errno> {
    keep(CapabilitySet::empty())
}

/// Keeps what a nursery needs to give each worker its own ids, and nothing else.
///
/// # Errors
/// As [`drop_capabilities`].
pub(crate) fn keep_only_id_capabilities() -> Result<(), Errno> {
    keep(CapabilitySet::SETUID | CapabilitySet::SETGID)
}

fn keep(wanted: CapabilitySet) -> Result<(), Errno> {
    let sets = CapabilitySets { effective: wanted, permitted: wanted, inheritable: CapabilitySet::empty() };
    // A filter around brigd may refuse this; what counts is what the kernel shows then: who
    // has nothing has nothing to give up.
    let set = rustix::thread::set_capabilities(None, sets);
    let left = rustix::thread::capabilities(None)?;
    if left.effective == wanted && left.permitted == wanted && left.inheritable.is_empty() { Ok(()) } else { set.and(Err(Errno::PERM)) }
}
