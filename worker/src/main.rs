//! brig-worker: the nursery and the workers it forks.

mod source;

fn main() {}
