//! brig-worker as a library: what the nursery, its workers and their tests share.

pub mod lockdown;
pub mod nursery;
