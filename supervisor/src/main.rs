//! brigd: the supervisor, the only trusted process.
#![cfg_attr(not(test), expect(dead_code, reason = "not wired yet"))]

mod channel;
mod lifecycle;
mod nursery;
mod pool;
mod spawn;

fn main() {}
