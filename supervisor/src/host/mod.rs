//! Host functions: the trusted side of every call a guest makes.
//!
//! Owns the table of one evaluation ([`table`]), the decision ([`permission`]), the
//! schemas ([`schema`]), and the straight way of one call ([`call`]): permission,
//! then validation, then a record, then the function. What a model is told of them is
//! written by [`types`]. Never owns a connection: the
//! client that offers a callback is behind [`callback::Callback`].

pub(crate) mod call;
pub(crate) mod callback;
pub(crate) mod configured;
pub(crate) mod permission;
pub(crate) mod redact;
pub(crate) mod schema;
pub(crate) mod table;
pub(crate) mod turns;
pub(crate) mod types;
pub(crate) mod wall;
