//! Landlock, as a domain that allows nothing. Never: a rule that opens something.

use landlock::{ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus, Scope};
use rustix::io::Errno;

use super::raw;

/// The newest version whose access rights are named here; the crate leaves out what the
/// kernel does not know.
const NEWEST: ABI = ABI::V10;

/// Denies every file, TCP, and signals and abstract sockets out of the domain: as much of it
/// as this kernel knows.
///
/// # Errors
/// `ENOSYS`, `EOPNOTSUPP` or a filter's number where there is no Landlock; `EPERM` when the
/// kernel did not enforce it.
pub(super) fn deny_all() -> Result<(), Errno> {
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))
        .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(NEWEST)))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(NEWEST)))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self)
        .map_err(|_| Errno::PERM)?;
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        // Asked for only now, since each worker comes by here: why not.
        RulesetStatus::NotEnforced => raw::landlock_abi().and(Err(Errno::PERM)),
    }
}
