//! brig-protocol: the wall between the trusted side and everything else.
//!
//! This crate is the specification of both protocols that brig speaks, and the only
//! code that parses what another process sent. It owns types, codes, limits and
//! framing. It never does I/O, never reads a clock or the environment, and never
//! panics on input.
//!
//! # Client and supervisor
//!
//! One JSON text a line (LF, UTF-8) over a Unix stream socket, JSON-RPC 2.0, both
//! sides may ask. [`line`] cuts lines in bounded memory, [`json`] counts depth and
//! nodes before anything is built from a text, [`rpc`] reads and writes envelopes,
//! [`client`] has the params and results of every method.
//!
//! A line is at most [`limits::REQUEST_LINE_BYTES`] bytes. A longer one is answered
//! with an error of id `null` and skipped; the connection lives. Ids are strings of
//! at most [`rpc::ID_BYTES`] bytes or whole numbers; an id in flight can not be used
//! again. Batches (arrays) are refused with `-32600`: a client that wants many
//! evaluations at once sends many lines, answers come as they are ready.
//!
//! JSON-RPC faults carry JSON-RPC's own numbers. Everything else is `-32000` with
//! `data` of type [`rpc::ErrorData`], whose `code` is one of [`codes::RequestCode`]:
//! an error response to `evaluate` always means that nothing ran. A program that
//! ran and failed is a result, with a code of [`codes::EvaluationCode`].
//!
//! [`admin`] has the methods of the admin socket, whose lines are the same.
//!
//! # Worker and supervisor
//!
//! JSON-RPC 2.0 bodies behind a four-byte little-endian length ([`frame`]), over the
//! worker's one socket. [`worker`] has the messages, the phases in which each is
//! legal, and [`worker::Conversation`], which the supervisor asks about every
//! message before it looks at the content. A breach is a [`worker::Violation`] and
//! the end of the worker: there is no resynchronising with a hostile peer.
//!
//! ```text
//! starting --ready--> ready --evaluate--> evaluating --finished--> finished
//!                       ^                                             |
//!                       +------------- (a vm only) -------------------+
//! ```
//!
//! # Supervisor and nursery
//!
//! Small fixed frames with descriptors, see [`control`].

pub mod admin;
pub mod client;
pub mod codes;
pub mod control;
pub mod escape;
pub mod frame;
pub mod json;
pub mod limits;
pub mod line;
pub mod names;
pub mod rpc;
pub mod spelling;
pub mod worker;
