//! Owns the crossing between guest values and JSON text, both ways. It never sends
//! anything and never decides what a failure means for the evaluation.

mod decode;
mod encode;
mod forms;
pub(crate) mod notes;
pub(crate) mod number;
mod path;
pub(crate) mod text;

pub(crate) use decode::decode;
pub(crate) use encode::{Bounds, Fault, encode};
pub(crate) use notes::Notes;
