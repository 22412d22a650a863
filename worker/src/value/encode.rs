//! Owns guest value → JSON text: what `JSON.stringify` would write where it can write,
//! and the conversions of the specification, each told, where it can not. It never cuts
//! a value and never looks up a function that a guest could have replaced, `toJSON` apart.

use std::rc::Rc;

use rquickjs::{Atom, Ctx, Object, Value, object::Filter};

use super::{
    notes::{Loss, Notes},
    number,
    path::Path,
    text,
};
use crate::engine::{
    Intrinsics,
    raw::{self, Shape},
};

/// What an encoded value may measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Bytes of JSON text.
    pub(crate) bytes: usize,
    /// Levels of nesting.
    pub(crate) levels: u32,
}

/// Why a value has no JSON text.
#[derive(Debug)]
pub(crate) enum Fault<'js> {
    /// The value contains itself.
    Cycle { path: String },
    /// Nested more deeply than may cross.
    TooDeep { path: String },
    /// More text than may cross; nothing of it is used.
    TooLarge,
    /// Guest code that ran on the way (a getter, `toJSON`, a proxy trap) threw.
    Threw { path: String, thrown: Value<'js> },
}

/// Appends the JSON text of a value. `Ok(false)`: the value has none (`undefined`, a
/// function, a symbol) and nothing was appended.
///
/// # Errors
/// [`Fault`]; what was appended so far is then meaningless.
pub(crate) fn encode<'js>(
    intrinsics: &Rc<Intrinsics>,
    value: &Value<'js>,
    root: &'static str,
    bounds: Bounds,
    out: &mut Vec<u8>,
    notes: &mut Notes,
) -> Result<bool, Fault<'js>> {
    let ctx = value.ctx().clone();
    let to_json = Atom::from_str(ctx.clone(), "toJSON").map_err(|_| Fault::TooLarge)?;
    let mut walk = Walk {
        intrinsics,
        ctx,
        to_json,
        limit: out.len().saturating_add(bounds.bytes),
        levels: bounds.levels,
        out,
        notes,
        open: Vec::new(),
        nodes: NODES,
    };
    walk.value(value.clone(), &Path::Root(root))
}

/// Values and keys of one text, less what the message around it has: the supervisor
/// refuses more.
const NODES: u64 = brig_protocol::limits::JSON_NODES - 64;

/// One walk over a value; the rarer classes are in [`super::forms`].
pub(super) struct Walk<'a, 'js> {
    pub(super) intrinsics: &'a Rc<Intrinsics>,
    pub(super) ctx: Ctx<'js>,
    pub(super) to_json: Atom<'js>,
    pub(super) limit: usize,
    pub(super) levels: u32,
    pub(super) out: &'a mut Vec<u8>,
    pub(super) notes: &'a mut Notes,
    pub(super) open: Vec<Value<'js>>,
    /// Values and keys that may still be written.
    pub(super) nodes: u64,
}

pub(super) type Outcome<'js, T> = Result<T, Fault<'js>>;

impl<'js> Walk<'_, 'js> {
    pub(super) fn threw(&self, path: &Path<'_, 'js>) -> Fault<'js> {
        Fault::Threw { path: path.told(), thrown: self.ctx.catch() }
    }

    pub(super) fn within(&self) -> Outcome<'js, ()> {
        if self.out.len() > self.limit { Err(Fault::TooLarge) } else { Ok(()) }
    }

    pub(super) fn count(&mut self) -> Outcome<'js, ()> {
        self.nodes = self.nodes.checked_sub(1).ok_or(Fault::TooLarge)?;
        self.within()
    }

    pub(super) fn note(&mut self, loss: Loss, path: &Path<'_, 'js>) {
        self.notes.add(loss, || path.told());
    }

    /// One value; `false` when it has no JSON form.
    pub(super) fn value(&mut self, value: Value<'js>, path: &Path<'_, 'js>) -> Outcome<'js, bool> {
        self.count()?;
        match raw::shape(&value) {
            Shape::Object => return self.object(value, path),
            Shape::Int(int) => number::push_int(self.out, i64::from(int)),
            Shape::Float(float) => self.float(float, path),
            Shape::String => self.string(&value, path)?,
            Shape::Bool(true) => self.out.extend_from_slice(b"true"),
            Shape::Bool(false) => self.out.extend_from_slice(b"false"),
            Shape::Null => self.out.extend_from_slice(b"null"),
            Shape::BigInt => {
                self.note(Loss::BigInt, path);
                self.string(&value, path)?;
            }
            Shape::Undefined => {
                self.note(Loss::Undefined, path);
                return Ok(false);
            }
            Shape::Symbol => {
                self.note(Loss::Symbol, path);
                return Ok(false);
            }
            Shape::Other => return Ok(false),
        }
        self.within().map(|()| true)
    }

    pub(super) fn float(&mut self, value: f64, path: &Path<'_, 'js>) {
        if value.is_finite() {
            number::push(self.out, value);
        } else {
            self.note(Loss::NotANumber, path);
            self.out.extend_from_slice(b"null");
        }
    }

    pub(super) fn string(&mut self, value: &Value<'js>, path: &Path<'_, 'js>) -> Outcome<'js, ()> {
        let room = self.limit.saturating_sub(self.out.len());
        let out = &mut *self.out;
        let start = out.len();
        let written = raw::with_text(value, |bytes| (bytes.len() <= room).then(|| text::push(out, bytes)));
        match written {
            Ok(Some(is_lone)) => {
                if is_lone {
                    self.note(Loss::LoneSurrogate, path);
                }
                if self.out.get(start..).is_some_and(|text| text::holds(text, b"[object Promise]")) {
                    self.note(Loss::PromiseText, path);
                }
                Ok(())
            }
            Ok(None) => Err(Fault::TooLarge),
            Err(_) => Err(self.threw(path)),
        }
    }

    pub(super) fn object(&mut self, value: Value<'js>, path: &Path<'_, 'js>) -> Outcome<'js, bool> {
        if self.open.contains(&value) {
            return Err(Fault::Cycle { path: path.told() });
        }
        self.enter(&value, path)?;
        let written = self.own_form(value, path)?;
        self.open.pop();
        self.within().map(|()| written)
    }

    /// Opens one level of nesting.
    pub(super) fn enter(&mut self, value: &Value<'js>, path: &Path<'_, 'js>) -> Outcome<'js, ()> {
        let level = u32::try_from(self.open.len()).unwrap_or(u32::MAX);
        if level >= self.levels {
            return Err(Fault::TooDeep { path: path.told() });
        }
        self.open.push(value.clone());
        Ok(())
    }

    /// `toJSON` first, as `JSON.stringify` does, then the form that the class has.
    pub(super) fn own_form(&mut self, value: Value<'js>, path: &Path<'_, 'js>) -> Outcome<'js, bool> {
        let Some(object) = value.as_object() else { return Ok(false) };
        let convert: Value = object.get(self.to_json.clone()).map_err(|_| self.threw(path))?;
        if let Some(function) = convert.as_function()
            && !self.intrinsics.is_date_to_json(&convert)
        {
            let key = self.key_of(path).map_err(|_| self.threw(path))?;
            let own = function.call::<_, Value>((rquickjs::function::This(value.clone()), key));
            let own = own.map_err(|_| self.threw(path))?;
            if own != value {
                return self.value(own, path);
            }
        }
        self.class_form(&value, object, path)
    }

    /// The key under which `toJSON` is told it was found.
    pub(super) fn key_of(&self, path: &Path<'_, 'js>) -> rquickjs::Result<Value<'js>> {
        match path {
            Path::Root(_) => raw::string_from(&self.ctx, "").map(rquickjs::String::into_value),
            Path::Key(_, key) => key.to_value(),
            Path::Text(_, key) => Ok((*key).clone()),
            Path::Index(_, index) => raw::string_from(&self.ctx, &index.to_string()).map(rquickjs::String::into_value),
        }
    }

    pub(super) fn class_form(&mut self, value: &Value<'js>, object: &Object<'js>, path: &Path<'_, 'js>) -> Outcome<'js, bool> {
        let class = raw::class_of(value);
        let classes = &self.intrinsics.classes;
        if class == classes.object {
            return self.members_or_nothing(object, path, false);
        }
        if class == classes.array {
            return self.array(object, path);
        }
        if value.is_function() {
            self.note(Loss::Function, path);
            return Ok(false);
        }
        if value.is_promise() {
            return self.promise(value, path);
        }
        if value.is_array() {
            // A proxy of an array: element by element, through its traps.
            return self.array(object, path);
        }
        if class == classes.map {
            return self.map(value, path);
        }
        if class == classes.set {
            self.note(Loss::Set, path);
            let members = self.intrinsics.set_members(value).map_err(|_| self.threw(path))?;
            return self.list(members.into_iter(), path);
        }
        if class == classes.error || class == classes.dom_exception {
            return self.error(object, path);
        }
        self.rarer_form(value, object, class, path)
    }

    pub(super) fn array(&mut self, object: &Object<'js>, path: &Path<'_, 'js>) -> Outcome<'js, bool> {
        let Some(array) = object.clone().into_array() else { return Ok(false) };
        let length = if object.is_proxy() { self.length(object, path)? } else { raw::array_length(object) };
        self.out.push(b'[');
        for index in 0..length {
            if index > 0 {
                self.out.push(b',');
            }
            let here = Path::Index(path, index);
            let element = array.get(index).map_err(|_| self.threw(&here))?;
            if !self.value(element, &here)? {
                self.out.extend_from_slice(b"null");
            }
        }
        self.out.push(b']');
        Ok(true)
    }

    /// `length` of a proxy of an array, as `JSON.stringify` would read it.
    pub(super) fn length(&self, object: &Object<'js>, path: &Path<'_, 'js>) -> Outcome<'js, usize> {
        let length: Value = object.get("length").map_err(|_| self.threw(path))?;
        let length = length.as_number().unwrap_or(0.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; a text this long is over any limit")]
        let length = length as usize;
        Ok(length)
    }

    pub(super) fn list(&mut self, members: impl Iterator<Item = Value<'js>>, path: &Path<'_, 'js>) -> Outcome<'js, bool> {
        self.out.push(b'[');
        for (index, member) in members.enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            if !self.value(member, &Path::Index(path, index))? {
                self.out.extend_from_slice(b"null");
            }
        }
        self.out.push(b']');
        Ok(true)
    }

    pub(super) fn members(&mut self, object: &Object<'js>, path: &Path<'_, 'js>, first: &mut bool) -> Outcome<'js, ()> {
        self.out.push(b'{');
        for key in object.own_keys::<Atom>(Filter::default()) {
            let key = key.map_err(|_| self.threw(path))?;
            let member: Value = match object.get(key.clone()) {
                Ok(member) => member,
                Err(_) => return Err(self.threw(&Path::Key(path, &key))),
            };
            self.member(&key, member, path, first)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    pub(super) fn member(&mut self, key: &Atom<'js>, member: Value<'js>, path: &Path<'_, 'js>, first: &mut bool) -> Outcome<'js, ()> {
        let here = Path::Key(path, key);
        let mark = self.out.len();
        let was_first = *first;
        self.count()?;
        self.separate(first);
        let name = key.to_value().map_err(|_| self.threw(path))?;
        self.string(&name, &here)?;
        self.out.push(b':');
        if !self.value(member, &here)? {
            self.out.truncate(mark);
            *first = was_first;
        }
        Ok(())
    }

    pub(super) fn separate(&mut self, first: &mut bool) {
        if !std::mem::take(first) {
            self.out.push(b',');
        }
    }

    /// Takes back a member whose value has no JSON form.
    pub(super) fn undo(&mut self, mark: usize, first: &mut bool) {
        *first = self.out.get(mark) != Some(&b',');
        self.out.truncate(mark);
    }
}
