//! Owns the engine: the realm, how it is made, seeded and rehearsed. It never reads what a
//! supervisor or a guest wrote, and never does I/O.

pub(crate) mod alloc;
pub(crate) mod budget;
pub(crate) mod clock;
pub(crate) mod entropy;
mod intrinsics;
pub(crate) mod random;
pub(crate) mod raw;
mod realm;

pub(crate) use intrinsics::Intrinsics;
pub(crate) use realm::{Ceilings, Realm, Shared, reseed, settle, touch, warm, warn_when_near};
