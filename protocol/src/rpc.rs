//! JSON-RPC 2.0 envelopes of the client protocol.
//!
//! Owns reading one line into an envelope and writing answers. Payloads stay raw:
//! this module never builds a tree from them. Refuses duplicate members, batches,
//! and ids that are neither strings nor whole numbers.

use crate::codes::RequestCode;
use crate::json::{self, Bounds};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Longest id that is a string, in bytes.
pub const ID_BYTES: usize = 256;

/// A request id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Id {
    /// A whole number.
    Number(i64),
    /// A string of at most [`ID_BYTES`] bytes.
    Text(String),
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IdVisitor;
        impl Visitor<'_> for IdVisitor {
            type Value = Id;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "an id: a whole number or a string of at most {ID_BYTES} bytes")
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Id, E> {
                Ok(Id::Number(number))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Id, E> {
                i64::try_from(number).map(Id::Number).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Id, E> {
                if text.len() > ID_BYTES {
                    return Err(E::invalid_length(text.len(), &self));
                }
                Ok(Id::Text(text.to_owned()))
            }
        }
        deserializer.deserialize_any(IdVisitor)
    }
}

/// What one line says.
#[derive(Debug)]
pub enum Message<'a> {
    /// Asks, and waits for an answer.
    Request {
        /// Goes back in the answer.
        id: Id,
        /// What is asked.
        method: Cow<'a, str>,
        /// Still raw.
        params: Option<&'a RawValue>,
    },
    /// Tells.
    Notification {
        /// What is told.
        method: Cow<'a, str>,
        /// Still raw.
        params: Option<&'a RawValue>,
    },
    /// Answers a request of ours.
    Response {
        /// The id we gave.
        id: Id,
        /// The answer.
        outcome: Result<&'a RawValue, ErrorObject<'a>>,
    },
}

/// An error of an answer that came in, its data still raw.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorObject<'a> {
    /// JSON-RPC number.
    pub code: i64,
    /// For people.
    #[serde(borrow)]
    pub message: Cow<'a, str>,
    /// Anything.
    #[serde(borrow, default)]
    pub data: Option<&'a RawValue>,
}

/// A line that can not be taken; answer it with [`RpcFault::id`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcFault {
    /// The id of the request, when it could be read.
    pub id: Option<Id>,
    /// Which fault.
    pub code: RequestCode,
    /// What was wrong, where, and what would be right.
    pub message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    // A null id is refused: taken as absent it would make a request that nobody answers.
    #[serde(default, deserialize_with = "present")]
    id: Option<Id>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    // `null` is a result like any other.
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<ErrorObject<'a>>,
}

/// Reads a member that is there, whatever it holds: `null` is a value like any other.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// How far into a line its id is looked for when there is not all of it, in bytes.
const BEGINNING_BYTES: usize = 16 * 1024;

/// The id of a request of which only the beginning is there: nothing when its `id` or its
/// `method` stands further on, or it is no request.
#[must_use]
pub fn id_of_beginning(line: &[u8]) -> Option<Id> {
    let line = line.get(..BEGINNING_BYTES).unwrap_or(line);
    let mut rest = line.trim_ascii_start().strip_prefix(b"{")?;
    let (mut id, mut is_request) = (None, false);
    // Members from the left, as far as each is whole.
    while let Some((name, value, after)) = member(rest) {
        match name.as_str() {
            "id" if id.is_some() => return None,
            "id" => id = Some(serde_json::from_slice(value).ok()?),
            "method" => is_request = true,
            _ => {}
        }
        let Some(next) = after.trim_ascii_start().strip_prefix(b",") else { break };
        rest = next;
    }
    id.filter(|_| is_request)
}

/// The next member of an object, its value as it stands, and what comes after.
fn member(text: &[u8]) -> Option<(String, &[u8], &[u8])> {
    let (name, after) = value(text)?;
    let name: String = serde_json::from_slice(name).ok()?;
    let (value, after) = value(after.trim_ascii_start().strip_prefix(b":")?)?;
    // A number may go on where the text ends.
    (!after.is_empty()).then_some((name, value, after))
}

/// The value that a text begins with, and what comes after.
fn value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<serde::de::IgnoredAny>();
    values.next()?.ok()?;
    text.split_at_checked(values.byte_offset())
}

const BATCH: &str = "batches are not supported; send one request a line, answers come as they are ready";

/// Reads one line.
///
/// # Errors
/// [`RpcFault`] for anything that is not one JSON-RPC 2.0 message within bounds.
pub fn read(line: &[u8]) -> Result<Message<'_>, RpcFault> {
    read_within(line, Bounds::ENVELOPE)
}

/// Reads one line within other bounds: a client takes a larger envelope than brigd
/// does, because an answer adds calls and warnings to a value at its limit.
///
/// # Errors
/// As [`read`].
pub fn read_within(line: &[u8], bounds: Bounds) -> Result<Message<'_>, RpcFault> {
    let text = std::str::from_utf8(line)
        .map_err(|fault| parse_fault(format!("the line is not UTF-8 (byte {}); send UTF-8 JSON", fault.valid_up_to())))?;
    json::count(line, bounds).map_err(|fault| parse_fault(format!("the line is {fault}")))?;
    let envelope: Envelope<'_> = serde_json::from_str(text).map_err(|fault| envelope_fault(text, &fault))?;
    if !json::is_object(text) {
        // The members of an envelope in their order are not an envelope.
        return Err(invalid(None, BATCH));
    }
    if envelope.jsonrpc != "2.0" {
        return Err(invalid(envelope.id, "member \"jsonrpc\" must be \"2.0\""));
    }
    classify(envelope)
}

fn classify(envelope: Envelope<'_>) -> Result<Message<'_>, RpcFault> {
    let Envelope { id, method, params, result, error, .. } = envelope;
    match (method, id, result, error) {
        (Some(method), id, None, None) => {
            if params.is_some_and(|raw| !raw.get().starts_with('{')) {
                return Err(invalid(id, "member \"params\" must be an object"));
            }
            Ok(match id {
                Some(id) => Message::Request { id, method, params },
                None => Message::Notification { method, params },
            })
        }
        (None, Some(id), Some(result), None) if params.is_none() => Ok(Message::Response { id, outcome: Ok(result) }),
        (None, Some(id), None, Some(error)) if params.is_none() => Ok(Message::Response { id, outcome: Err(error) }),
        (_, id, _, _) => Err(invalid(
            id,
            "a message has a \"method\" (a request with \"id\", a notification without), or an \"id\" and either \"result\" or \"error\"",
        )),
    }
}

/// Tells a line that is no JSON from JSON that is no request, and finds its id.
fn envelope_fault(text: &str, fault: &serde_json::Error) -> RpcFault {
    if fault.is_syntax() || fault.is_eof() {
        return parse_fault(format!("the line is not JSON: {}", crate::escape::escaped(&fault.to_string(), 300)));
    }
    if text.trim_start().starts_with('[') {
        return invalid(None, BATCH);
    }
    let id = loose_id(text);
    invalid(id, &format!("not a JSON-RPC 2.0 message: {}", crate::escape::escaped(&fault.to_string(), 300)))
}

/// The id of an otherwise wrong request, so that its sender can tell which it was.
fn loose_id(text: &str) -> Option<Id> {
    #[derive(Deserialize)]
    struct OnlyId {
        id: Option<Id>,
    }
    serde_json::from_str::<OnlyId>(text).ok().and_then(|only| only.id)
}

fn parse_fault(message: String) -> RpcFault {
    RpcFault { id: None, code: RequestCode::ParseError, message }
}

fn invalid(id: Option<Id>, message: &str) -> RpcFault {
    RpcFault { id, code: RequestCode::InvalidRequest, message: message.to_owned() }
}

/// The `data` of every error that brigd answers with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorData {
    /// Which error.
    pub code: RequestCode,
    /// The same sentence as the error's `message`.
    pub message: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// When to try again, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The limit that was hit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// The setting that raises it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// What to do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl ErrorData {
    /// An error with nothing but its code and sentence.
    #[must_use]
    pub fn new(code: RequestCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retryable: code.retryable(), retry_after_ms: None, limit: None, setting: None, hint: None }
    }
}

#[derive(Serialize)]
struct Outgoing<'a, P: Serialize> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Id>,
    method: &'a str,
    params: P,
}

#[derive(Serialize)]
struct Answer<'a, R: Serialize> {
    jsonrpc: &'static str,
    id: &'a Id,
    result: R,
}

#[derive(Serialize)]
struct Refusal<'a, D: Serialize> {
    jsonrpc: &'static str,
    id: Option<&'a Id>,
    error: OutgoingError<'a, D>,
}

#[derive(Serialize)]
struct OutgoingError<'a, D: Serialize> {
    code: i32,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<D>,
}

/// One line (with its LF) from a serialisable message. Types of this crate always
/// serialise; a payload that does not becomes an empty line, which readers skip.
///
/// A raw payload comes with the white space of whoever wrote it. An LF in it would end
/// the line early and let the rest be read as a message of its own; inside JSON text an
/// LF is only ever white space, so a space says the same.
fn line_of(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    let mut from = 0;
    while let Some(at) = memchr::memchr(b'\n', line.get(from..).unwrap_or_default()) {
        from += at + 1;
        if let Some(byte) = line.get_mut(from - 1) {
            *byte = b' ';
        }
    }
    line.push(b'\n');
    line
}

/// A request line.
#[must_use]
pub fn request(id: &Id, method: &str, params: &impl Serialize) -> Vec<u8> {
    line_of(&Outgoing { jsonrpc: "2.0", id: Some(id), method, params })
}

/// A notification line.
#[must_use]
pub fn notification(method: &str, params: &impl Serialize) -> Vec<u8> {
    line_of(&Outgoing { jsonrpc: "2.0", id: None, method, params })
}

/// An answer line.
#[must_use]
pub fn result(id: &Id, result: &impl Serialize) -> Vec<u8> {
    line_of(&Answer { jsonrpc: "2.0", id, result })
}

/// An error line of brigd; `id` is `null` when the request's could not be read.
#[must_use]
pub fn error(id: Option<&Id>, data: &ErrorData) -> Vec<u8> {
    let error = OutgoingError { code: data.code.rpc_number(), message: &data.message, data: Some(data) };
    line_of(&Refusal { jsonrpc: "2.0", id, error })
}

/// An error line of a client: the answer to `host.call` when the function failed.
#[must_use]
pub fn failure(id: &Id, message: &str, data: Option<&impl Serialize>) -> Vec<u8> {
    let error = OutgoingError { code: crate::codes::RPC_APPLICATION_ERROR, message, data };
    line_of(&Refusal { jsonrpc: "2.0", id: Some(id), error })
}

#[cfg(test)]
#[path = "rpc_tests.rs"]
mod tests;
