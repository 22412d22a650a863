//! Owns host calls on the guest's side: the collections a program sees, the promises it
//! gets, the queue in front of the wire. It asks; `supervisor/host/` decides and answers.
//! It never sends a name, only an index of the table that came with the evaluation.

mod calls;
mod collections;
mod rejection;

pub(crate) use calls::{Calls, Delivery};
pub(crate) use collections::{World, collection, define, withdraw};
