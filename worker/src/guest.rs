//! Owns the guest half's three entry points, for the nursery: build, make one's own, run.
//! It never locks anything down; whoever calls [`run`] has done so.

use std::os::fd::OwnedFd;

use crate::{
    engine::{self, Ceilings, Realm},
    session::{self, Facts},
};

/// A warmed engine.
pub struct Guest(Realm);

impl std::fmt::Debug for Guest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Guest")
    }
}

/// Bytes of stack that native code below the guest may need: the engine's own recursion,
/// the parser's, and what walks values.
const NATIVE_STACK: u64 = 1024 * 1024;

/// Builds the engine and its realm. Starts no thread, opens no file, reads nothing.
/// `stack_bytes` is the size of the stack that the guest will run on.
///
/// # Panics
/// When the engine can not be built; there is no worker without it.
#[must_use]
pub fn warm(stack_bytes: u64) -> Guest {
    let room = usize::try_from(stack_bytes.saturating_sub(NATIVE_STACK)).unwrap_or(usize::MAX);
    let ceilings = Ceilings { stack_bytes: Ceilings::default().stack_bytes.min(room.max(Ceilings::LEAST_STACK)) };
    #[expect(clippy::panic, reason = "the panic hook ends the process with its own code")]
    let guest = match engine::warm(&ceilings) {
        Ok(realm) => Guest(realm),
        Err(fault) => panic!("the engine could not be built: {fault}"),
    };
    // What is made on first use (built-ins, caches, the processor's features) is made
    // here, once, on pages that all workers share, and not in each of them.
    for _ in 0..REHEARSALS {
        rehearse(&guest);
    }
    engine::settle(&guest.0);
    engine::alloc::plug_holes();
    // Once more: what each evaluation makes anew lies behind all the rest from now on.
    rehearse(&guest);
    guest
}

fn rehearse(guest: &Guest) {
    #[expect(clippy::panic, reason = "the panic hook ends the process with its own code")]
    if let Err(fault) = engine::touch(&guest.0) {
        panic!("the throw-away program failed: {fault}");
    }
    own(guest, &[0; 64]);
    session::rehearse(&guest.0);
}

/// Runs of the throw-away program before the first fork: after two nothing more settles.
const REHEARSALS: usize = 2;

/// Gives the engine this worker's own randomness. After the fork, before the last filter.
pub fn own(guest: &Guest, seed: &[u8; 64]) {
    engine::reseed(&guest.0, seed);
}

/// Says that the worker is ready, and serves the supervisor over its socket until it hangs up;
/// then ends the process. The socket is never closed.
pub fn run(guest: &Guest, socket: OwnedFd, layers: Vec<String>) -> ! {
    session::run(&guest.0, socket, &Facts { layers })
}
