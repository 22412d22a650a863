//! brigd: the supervisor, the only trusted process.

mod channel;
mod lifecycle;

fn main() {}
