//! Owns the worker's randomness after lock-down: a generator over SHA-256, seeded once by
//! the supervisor's side with kernel randomness. It never asks the kernel, and its past
//! output can not be computed from its present state.

use std::cell::RefCell;

use sha2::{Digest, Sha256};

/// Bytes of a seed.
pub(crate) const SEED_BYTES: usize = 64;

thread_local! {
    static SOURCE: RefCell<Source> = const { RefCell::new(Source { key: [0; 32] }) };
}

struct Source {
    key: [u8; 32],
}

impl Source {
    /// One block for the caller, one that becomes the next key.
    fn block(&mut self) -> [u8; 32] {
        let half = |label: &[u8]| -> [u8; 32] { Sha256::new().chain_update(self.key).chain_update(label).finalize().into() };
        let out = half(b"out");
        self.key = half(b"key");
        out
    }
}

/// Replaces the state by one that depends on the seed, the former state and a label.
pub(crate) fn seed(seed: &[u8; SEED_BYTES]) {
    SOURCE.with_borrow_mut(|source| {
        source.key = Sha256::new().chain_update(source.key).chain_update(seed).chain_update(b"brig entropy").finalize().into();
    });
}

/// Fills a buffer with bytes fit for keys. Before [`seed`] they are predictable.
pub(crate) fn fill(buffer: &mut [u8]) {
    SOURCE.with_borrow_mut(|source| {
        for chunk in buffer.chunks_mut(32) {
            let block = source.block();
            chunk.copy_from_slice(block.get(..chunk.len()).unwrap_or_default());
        }
    });
}
