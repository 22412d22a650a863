//! A static program that does nothing: the floor of starting a process.

fn main() {}
