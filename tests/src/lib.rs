//! Acceptance tests: everything here goes through the real binaries and sockets.
