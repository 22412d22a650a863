//! brig: the Rust client library.
