//! brigd: the supervisor, the only trusted process.

fn main() {}
