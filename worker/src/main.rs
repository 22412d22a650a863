//! brig-worker: the nursery and the workers it forks.

mod bridge;
mod channel;
mod engine;
mod failure;
mod globals;
mod outbox;
mod session;
mod source;
mod value;

fn main() {}
