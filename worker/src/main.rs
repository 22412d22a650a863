//! brig-worker: the nursery and the workers it forks.

fn main() {}
