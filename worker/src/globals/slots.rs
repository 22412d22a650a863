//! Owns reading names and texts off guest objects by their slots alone: no getter and no
//! proxy trap runs.

use rquickjs::{Atom, Object, Value};

use crate::engine::raw::{self, Slot};

/// `Name: message` of an error, from its slots.
pub(crate) fn error_head(object: &Object<'_>) -> String {
    let name = inherited_text(object, "name").or_else(|| class_name(object)).unwrap_or_else(|| "Error".to_owned());
    let message = inherited_text(object, "message").unwrap_or_default();
    match (name.is_empty(), message.is_empty()) {
        (_, true) => name,
        (true, false) => message,
        (false, false) => format!("{name}: {message}"),
    }
}

pub(super) fn atom<'js>(object: &Object<'js>, name: &str) -> Option<Atom<'js>> {
    Atom::from_str(object.ctx().clone(), name).ok()
}

/// Text of an own data property.
pub(crate) fn data_text(object: &Object<'_>, name: &str) -> Option<String> {
    let key = atom(object, name)?;
    match raw::own_slot(object, &key) {
        Some(Slot::Data(value)) if value.is_string() => raw::text_of(&value).ok(),
        _ => None,
    }
}

/// Longest prototype chain that is looked at.
const PROTOTYPES: usize = 16;

/// The nearest data property of this name along the prototypes, proxies excluded.
pub(super) fn inherited<'js>(object: &Object<'js>, name: &str) -> Option<Value<'js>> {
    let key = atom(object, name)?;
    let mut here = object.clone();
    for _ in 0..PROTOTYPES {
        if here.is_proxy() {
            return None;
        }
        match raw::own_slot(&here, &key) {
            Some(Slot::Data(value)) => return Some(value),
            Some(Slot::Accessor { .. }) => return None,
            None => here = here.get_prototype()?,
        }
    }
    None
}

/// Text of the nearest data property of this name along the prototypes.
pub(crate) fn inherited_text(object: &Object<'_>, name: &str) -> Option<String> {
    inherited(object, name).filter(Value::is_string).and_then(|value| raw::text_of(&value).ok())
}

/// The names of all constructors along the prototypes of an object, proxies excluded.
pub(crate) fn class_names(object: &Object<'_>) -> Vec<String> {
    let mut names = Vec::new();
    let mut here = object.get_prototype();
    for _ in 0..PROTOTYPES {
        let Some(prototype) = here.filter(|prototype| !prototype.is_proxy()) else { break };
        if let Some(key) = atom(&prototype, "constructor")
            && let Some(Slot::Data(constructor)) = raw::own_slot(&prototype, &key)
            && let Some(function) = constructor.as_object().filter(|function| !function.is_proxy())
        {
            names.extend(data_text(function, "name").filter(|name| !name.is_empty()));
        }
        here = prototype.get_prototype();
    }
    names
}

/// The name of the constructor of an object; `None` without a prototype.
pub(crate) fn class_name(object: &Object<'_>) -> Option<String> {
    let mut here = object.get_prototype()?;
    for _ in 0..PROTOTYPES {
        if here.is_proxy() {
            return Some("Object".to_owned());
        }
        let key = atom(&here, "constructor")?;
        if let Some(Slot::Data(constructor)) = raw::own_slot(&here, &key)
            && let Some(function) = constructor.as_object().filter(|function| !function.is_proxy())
            && let Some(name) = data_text(function, "name").filter(|name| !name.is_empty())
        {
            return Some(name);
        }
        match here.get_prototype() {
            Some(next) => here = next,
            None => break,
        }
    }
    Some("Object".to_owned())
}

pub(super) fn named(object: &Object<'_>, kind: &str) -> String {
    class_name(object).unwrap_or_else(|| kind.to_owned())
}
