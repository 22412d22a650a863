//! brig-worker as a library: what the nursery, its workers and their tests share.

mod bridge;
mod channel;
mod engine;
mod failure;
mod globals;
pub mod guest;
pub mod lockdown;
pub mod nursery;
mod outbox;
mod session;
mod source;
mod value;
