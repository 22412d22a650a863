//! brigd: the supervisor, the only trusted process.

#[expect(dead_code, reason = "wired by the evaluation line")]
mod host;

fn main() {}
