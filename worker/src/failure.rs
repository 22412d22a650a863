//! Owns what is told of a failed program: what was thrown becomes a structured error with
//! a place in the text as sent. It reads thrown values without running their getters, and
//! never decides by guest text which kind of end it was.

pub(crate) mod frames;
mod hints;
mod places;

use brig_protocol::{
    client::{ErrorCause, EvaluationError},
    codes::EvaluationCode,
};
use rquickjs::{Atom, Object, Value};

use crate::{
    engine::{
        Intrinsics,
        raw::{self, Slot},
    },
    globals::inspect::{self, Reach},
    source::{SourceError, SourceErrorKind},
    value::{self, Bounds, Notes},
};
use frames::{Place, View};
pub(crate) use hints::Known;

/// Bytes of a message that are told.
const MESSAGE_BYTES: usize = 8 * 1024;
/// Bytes of JSON of a thrown value or of a host error's data that are told.
const DATA_BYTES: usize = 16 * 1024;
/// Levels of such JSON.
const DATA_LEVELS: u32 = 32;
/// Errors below one another, or beside one another in an `AggregateError`, that are told.
const CAUSES: usize = 8;

/// An error as it was thrown, with what the engine leaves out. No guest code runs for it.
struct Thrown {
    name: String,
    message: String,
    frames: Vec<frames::Frame>,
    place: Option<Place>,
}

fn read(intrinsics: &Intrinsics, object: &Object<'_>, known: &Known<'_>) -> Thrown {
    let (name, message) = name_and_message(intrinsics, object);
    let stack = intrinsics.error_stack(object).unwrap_or_default();
    let frames = frames::read(&stack);
    let place = frames::place_of(&frames, &inspect::class_names(object));
    let place = places::better(&name, &message, frames.first(), place.as_ref()).or(place);
    let message = hints::named_callee(&message, frames.first(), place.as_ref(), known)
        .or_else(|| hints::engine_limit(&name, &message))
        .or_else(|| hints::made_regexp(&name, &message, frames.first()))
        .unwrap_or(message);
    Thrown { name, message, frames, place }
}

/// What a program threw, as a failed evaluation tells it.
pub(crate) fn thrown(intrinsics: &std::rc::Rc<Intrinsics>, thrown: &Value<'_>, known: &Known<'_>) -> EvaluationError {
    let object = error_object(thrown);
    let Some(object) = object else { return not_an_error(intrinsics, thrown) };
    let Thrown { name, message, frames, place } = read(intrinsics, object, known);
    let mut error = EvaluationError::new(EvaluationCode::GuestError, name, message);
    error.hint = hints::hint(&error.name, &error.message, place.as_ref(), known);
    let shown: Vec<String> = frames.iter().filter_map(frames::Frame::shown).collect();
    if !shown.is_empty() {
        let lines: Vec<String> = shown.iter().map(|frame| format!("    at {frame}")).collect();
        error.stack = Some(format!("{}: {}\n{}", error.name, first_line(&error.message), lines.join("\n")));
    }
    set_place(&mut error, place.as_ref());
    error.cause = cause_of(intrinsics, object, CAUSES).map(Box::new);
    error.errors = members_of(intrinsics, object);
    if let Some(function) = own_text(object, "function").filter(|_| is_host_error(intrinsics, object)) {
        error.data = own_value(object, "data").and_then(|data| json_of(intrinsics, &data));
        let code = own_text(object, "code").unwrap_or_default();
        error.hint = error
            .hint
            .or_else(|| Some(format!("the host function {function} rejected with code {code}; a program can catch that and go on")));
    }
    error
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn set_place(error: &mut EvaluationError, place: Option<&Place>) {
    if let Some(place) = place {
        error.line = Some(place.line);
        error.column = Some(place.column);
        error.excerpt = place.excerpt();
    }
}

/// A text that is no program.
pub(crate) fn syntax(fault: SourceError, view: &std::rc::Rc<View>, known: &Known<'_>) -> EvaluationError {
    let mut error = EvaluationError::new(EvaluationCode::SyntaxError, "SyntaxError", fault.message);
    let place = Place { view: std::rc::Rc::clone(view), line: fault.line, column: fault.column };
    set_place(&mut error, Some(&place));
    error.hint = match fault.kind {
        SourceErrorKind::Import => Some(match fault.hint {
            Some(hint) => format!("{}; {}", hint.trim_end_matches('.'), known.what_there_is()),
            None => format!("there are no modules to import; {}", known.what_there_is()),
        }),
        _ => fault.hint,
    };
    error
}

/// A program that the engine itself refused to compile.
pub(crate) fn refused(intrinsics: &std::rc::Rc<Intrinsics>, value: &Value<'_>, known: &Known<'_>) -> EvaluationError {
    let mut error = thrown(intrinsics, value, known);
    error.code = EvaluationCode::SyntaxError;
    if error.line.is_none()
        && let Some(place) = places::of_regexp(&|pattern, flags| intrinsics.is_no_regexp(value.ctx(), pattern, flags))
    {
        error.message = hints::no_regexp(&error.message);
        error.hint = hints::hint(&error.name, &error.message, Some(&place), known);
        set_place(&mut error, Some(&place));
    }
    if error.hint.is_none() {
        let stack = error_object(value).and_then(|object| intrinsics.error_stack(object)).unwrap_or_default();
        error.hint = frames::first_place(&frames::read(&stack)).and_then(|place| hints::of_syntax(&error.message, &place));
    }
    error
}

/// The object of a thrown error; `None` for anything else. A proxy is never looked into.
fn error_object<'a, 'js>(value: &'a Value<'js>) -> Option<&'a Object<'js>> {
    value.as_object().filter(|object| object.is_error() && !object.is_proxy()).or_else(|| {
        let object = value.as_object().filter(|object| !object.is_proxy())?;
        // Errors of web APIs are of a class of their own.
        (inspect::class_name(object).as_deref() == Some("DOMException")).then_some(object)
    })
}

fn name_and_message(intrinsics: &Intrinsics, object: &Object<'_>) -> (String, String) {
    if let Some((name, message)) = intrinsics.dom_exception_text(object.as_value()) {
        return (name, message);
    }
    let name = inspect::inherited_text(object, "name").filter(|name| !name.is_empty());
    let name = name.or_else(|| inspect::class_name(object)).unwrap_or_else(|| "Error".to_owned());
    let message = inspect::inherited_text(object, "message").unwrap_or_default();
    (cut(name, 200), cut(message, MESSAGE_BYTES))
}

fn cut(text: String, bytes: usize) -> String {
    if text.len() <= bytes {
        return text;
    }
    format!("{}…", value::text::head(&text, bytes))
}

/// `throw "text"`, `throw null`, `throw {…}`: told as what it is.
fn not_an_error(intrinsics: &std::rc::Rc<Intrinsics>, value: &Value<'_>) -> EvaluationError {
    let shown = inspect::shown(intrinsics, value, Reach { depth: 4, bytes: MESSAGE_BYTES });
    let kind = match raw::shape(value) {
        raw::Shape::Object => "object",
        raw::Shape::String => "string",
        raw::Shape::Null => "null",
        raw::Shape::Undefined => "undefined",
        raw::Shape::Symbol => "symbol",
        raw::Shape::BigInt => "bigint",
        raw::Shape::Bool(_) => "boolean",
        _ => "number",
    };
    let name = if value.is_object() { "Object" } else { kind };
    let mut error = EvaluationError::new(EvaluationCode::GuestError, name, cut(shown, MESSAGE_BYTES));
    error.data = json_of(intrinsics, value);
    error.hint = Some(format!("the program threw a value that is no Error ({kind}); only `new Error(…)` carries a stack and a line"));
    error
}

/// JSON of a value, if it has a small one. Guest code may run (`toJSON`, getters); what it
/// throws is dropped. A proxy is not asked.
fn json_of(intrinsics: &std::rc::Rc<Intrinsics>, value: &Value<'_>) -> Option<serde_json::Value> {
    if value.is_proxy() {
        return None;
    }
    let bounds = Bounds { bytes: DATA_BYTES, levels: DATA_LEVELS };
    let mut text = Vec::new();
    let has_form = value::encode(intrinsics, value, "data", bounds, &mut text, &mut Notes::default()).ok()?;
    if !has_form { None } else { serde_json::from_slice(&text).ok() }
}

fn own_value<'js>(object: &Object<'js>, name: &str) -> Option<Value<'js>> {
    let key = Atom::from_str(object.ctx().clone(), name).ok()?;
    match raw::own_slot(object, &key) {
        Some(Slot::Data(value)) => Some(value),
        _ => None,
    }
}

fn own_text(object: &Object<'_>, name: &str) -> Option<String> {
    inspect::data_text(object, name).map(|text| cut(text, 200))
}

fn is_host_error(intrinsics: &Intrinsics, object: &Object<'_>) -> bool {
    let ours = intrinsics.host_error_prototype(object.ctx());
    ours.is_ok_and(|ours| object.get_prototype().is_some_and(|prototype| prototype == ours))
}

/// The chain below an error; it may be circular, so it is only followed so far.
fn cause_of(intrinsics: &std::rc::Rc<Intrinsics>, object: &Object<'_>, depth: usize) -> Option<ErrorCause> {
    let cause = own_value(object, "cause")?;
    if depth == 0 || raw::shape(&cause) == raw::Shape::Undefined {
        return None;
    }
    Some(described(intrinsics, &cause, depth - 1))
}

fn described(intrinsics: &std::rc::Rc<Intrinsics>, value: &Value<'_>, depth: usize) -> ErrorCause {
    match error_object(value) {
        Some(object) => {
            let (name, message) = name_and_message(intrinsics, object);
            ErrorCause {
                name,
                message,
                code: own_text(object, "code"),
                data: own_value(object, "data").and_then(|data| json_of(intrinsics, &data)),
                cause: cause_of(intrinsics, object, depth).map(Box::new),
            }
        }
        None => {
            let error = not_an_error(intrinsics, value);
            ErrorCause { name: error.name, message: error.message, code: None, data: error.data, cause: None }
        }
    }
}

fn members_of(intrinsics: &std::rc::Rc<Intrinsics>, object: &Object<'_>) -> Vec<ErrorCause> {
    let members = own_value(object, "errors").filter(|errors| !errors.is_proxy());
    let Some(array) = members.as_ref().and_then(Value::as_array) else { return Vec::new() };
    let mut told = Vec::new();
    for index in 0..raw::array_length(array.as_object()).min(CAUSES) {
        let key = Atom::from_u32(object.ctx().clone(), u32::try_from(index).unwrap_or(0)).ok();
        if let Some(Slot::Data(member)) = key.and_then(|key| raw::own_slot(array.as_object(), &key)) {
            told.push(described(intrinsics, &member, 2));
        }
    }
    told
}

/// One line about what a promise or a timer threw and nobody caught.
pub(crate) fn summary(intrinsics: &Intrinsics, value: &Value<'_>, known: &Known<'_>) -> String {
    match error_object(value) {
        Some(object) => {
            let told = read(intrinsics, object, known);
            let place = told.place.map(|place| format!(" (line {}, column {})", place.line, place.column));
            format!("{}{}", cut(format!("{}: {}", told.name, told.message), 400), place.unwrap_or_default())
        }
        None => cut(inspect::nested(intrinsics, value, Reach { depth: 1, bytes: 400 }), 400),
    }
}
