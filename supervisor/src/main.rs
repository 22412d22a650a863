//! brigd: the supervisor, the only trusted process.

mod lifecycle;

fn main() {}
