//! Owns the JSON forms of values that JSON has no word for: maps, errors, dates, promises,
//! typed arrays and what is rarer still. Each is told as lossy.

use rquickjs::{Atom, Object, Promise, Value, object::Filter, promise::PromiseState};

use super::{
    encode::{Outcome, Walk},
    notes::Loss,
    path::Path,
    text,
};
use crate::{engine::raw, globals::inspect::class_name};

impl<'js> Walk<'_, 'js> {
    pub(super) fn rarer_form(
        &mut self,
        value: &Value<'js>,
        object: &Object<'js>,
        class: raw::ClassId,
        path: &Path<'_, 'js>,
    ) -> Outcome<'js, bool> {
        let classes = self.intrinsics.classes;
        if class == classes.date {
            return self.date(value, path);
        }
        if classes.typed_name(class).is_some() {
            return self.typed_array(value, object, path);
        }
        if class == classes.regexp {
            self.note(Loss::RegExp, path);
            let written = self.intrinsics.regexp_text(value).map_err(|_| self.threw(path))?;
            text::push(self.out, written.as_bytes());
            return Ok(true);
        }
        if [classes.number, classes.string, classes.boolean, classes.big_int].contains(&class)
            && let Some(primitive) = self.intrinsics.primitive_of(class, value)
        {
            return self.value(primitive, path);
        }
        if class == classes.array_buffer {
            self.note(Loss::ArrayBuffer, path);
        } else if [classes.weak_map, classes.weak_set, classes.weak_ref].contains(&class) {
            self.note(Loss::Opaque, path);
        } else if !object.is_proxy() {
            return self.members_or_nothing(object, path, true);
        }
        self.members(object, path, &mut true).map(|()| true)
    }

    /// The members of an object. One without any, whose class is the program's own or one
    /// of the language, is told: what it holds is where no property is.
    pub(super) fn members_or_nothing(&mut self, object: &Object<'js>, path: &Path<'_, 'js>, of_the_language: bool) -> Outcome<'js, bool> {
        let start = self.out.len();
        self.members(object, path, &mut true)?;
        let is_empty = || object.own_keys::<Atom>(Filter::default()).next().is_none();
        if self.out.len() == start + 2 && is_empty() && (of_the_language || class_name(object).is_some_and(|name| name != "Object")) {
            self.note(Loss::Hidden, path);
        }
        Ok(true)
    }

    fn date(&mut self, value: &Value<'js>, path: &Path<'_, 'js>) -> Outcome<'js, bool> {
        match self.intrinsics.date_text(value).map_err(|_| self.threw(path))? {
            Some(iso) => {
                self.note(Loss::Date, path);
                text::push(self.out, iso.as_bytes());
            }
            None => {
                self.note(Loss::InvalidDate, path);
                self.out.extend_from_slice(b"null");
            }
        }
        Ok(true)
    }

    pub(super) fn promise(&mut self, value: &Value<'js>, path: &Path<'_, 'js>) -> Outcome<'js, bool> {
        let state = value.as_promise().map_or(PromiseState::Pending, Promise::state);
        let settled = value.as_promise().and_then(Promise::result::<Value>);
        match (state, settled) {
            (PromiseState::Resolved, Some(Ok(inner))) => {
                self.note(Loss::AwaitedPromise, path);
                self.value(inner, path)
            }
            (PromiseState::Rejected, _) => {
                drop(self.ctx.catch());
                self.note(Loss::RejectedPromise, path);
                self.out.extend_from_slice(b"null");
                Ok(true)
            }
            _ => {
                self.note(Loss::PendingPromise, path);
                self.out.extend_from_slice(b"null");
                Ok(true)
            }
        }
    }

    pub(super) fn map(&mut self, value: &Value<'js>, path: &Path<'_, 'js>) -> Outcome<'js, bool> {
        let entries = self.intrinsics.map_entries(value).map_err(|_| self.threw(path))?;
        if entries.iter().all(|(key, _)| key.is_string()) {
            self.note(Loss::Map, path);
            self.out.push(b'{');
            let mut first = true;
            for (key, member) in &entries {
                let mark = self.out.len();
                self.count()?;
                self.separate(&mut first);
                self.string(key, path)?;
                self.out.push(b':');
                if !self.value(member.clone(), &Path::Text(path, key))? {
                    self.undo(mark, &mut first);
                }
            }
            self.out.push(b'}');
            return Ok(true);
        }
        self.note(Loss::MapEntries, path);
        // Entries nest one level deeper than the map itself does.
        self.enter(value, path)?;
        self.out.push(b'[');
        for (index, (key, member)) in entries.into_iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            self.count()?;
            self.list([key, member].into_iter(), &Path::Index(path, index))?;
        }
        self.out.push(b']');
        self.open.pop();
        Ok(true)
    }

    pub(super) fn error(&mut self, object: &Object<'js>, path: &Path<'_, 'js>) -> Outcome<'js, bool> {
        self.note(Loss::Error, path);
        self.out.push(b'{');
        let mut first = true;
        for name in ["name", "message", "cause", "errors"] {
            let key = Atom::from_str(self.ctx.clone(), name).map_err(|_| self.threw(path))?;
            let inherited = matches!(name, "name" | "message");
            if !inherited && object.is_error() && raw::own_slot(object, &key).is_none() {
                continue;
            }
            let member: Value = object.get(key.clone()).map_err(|_| self.threw(&Path::Key(path, &key)))?;
            if member.is_undefined() {
                continue;
            }
            self.member(&key, member, path, &mut first)?;
        }
        for key in object.own_keys::<Atom>(Filter::default()) {
            let key = key.map_err(|_| self.threw(path))?;
            let name = raw::key_text(&key).unwrap_or_default();
            if matches!(name.as_str(), "name" | "message" | "cause" | "errors" | "stack") {
                continue;
            }
            let member: Value = object.get(key.clone()).map_err(|_| self.threw(&Path::Key(path, &key)))?;
            self.member(&key, member, path, &mut first)?;
        }
        self.out.push(b'}');
        Ok(true)
    }

    fn typed_array(&mut self, value: &Value<'js>, object: &Object<'js>, path: &Path<'_, 'js>) -> Outcome<'js, bool> {
        self.note(Loss::TypedArray, path);
        let length = self.intrinsics.typed_length(value).map_err(|_| self.threw(path))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an array length")]
        let length = length as u32;
        self.out.push(b'[');
        for index in 0..length {
            if index > 0 {
                self.out.push(b',');
            }
            let element: Value = object.get(index).map_err(|_| self.threw(path))?;
            if !self.value(element, path)? {
                self.out.extend_from_slice(b"null");
            }
        }
        self.out.push(b']');
        Ok(true)
    }
}
