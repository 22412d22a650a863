//! brig-protocol: the wall between the trusted side and everything else.

pub mod control;
