//! brig: the command line.

fn main() {}
