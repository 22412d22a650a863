//! The protocol on the worker's one socket.
//!
//! Owns messages, phases and the [`Conversation`] that every message from a worker
//! passes before its content is looked at. Never trusts: a worker names a function
//! by its index in the table that it was given, and nothing else.

mod conversation;
mod from_supervisor;
mod from_worker;

pub use conversation::{Conversation, Kind, Phase, Violation};
pub use from_supervisor::{
    CollectionTable, EvaluateOrder, FromSupervisor, HostFailure, cancel_frame, evaluate_frame, host_failure_frame, host_result_frame,
    read_from_supervisor, rehearse_frame,
};
pub use from_worker::{
    Finished, FromWorker, Ready, WorkerUsage, finished_frame, host_call_frame, output_frame, read_from_worker, ready_frame, warning_frame,
};
