//! Owns what the glue needs of the realm's own functions, captured before any guest code
//! runs. It never looks a function up again: a guest that replaces one changes only what
//! the guest sees.

use std::{
    cell::{OnceCell, RefCell},
    rc::Rc,
};

use rquickjs::{Constructor, Ctx, Function, Object, Persistent, Result, Value, function::This};

use super::raw::{self, ClassId};

/// Internal class numbers, learned from one specimen of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Classes {
    pub(crate) object: ClassId,
    pub(crate) array: ClassId,
    pub(crate) error: ClassId,
    pub(crate) number: ClassId,
    pub(crate) string: ClassId,
    pub(crate) boolean: ClassId,
    pub(crate) symbol: ClassId,
    pub(crate) big_int: ClassId,
    pub(crate) date: ClassId,
    pub(crate) regexp: ClassId,
    pub(crate) map: ClassId,
    pub(crate) set: ClassId,
    pub(crate) weak_map: ClassId,
    pub(crate) weak_set: ClassId,
    pub(crate) weak_ref: ClassId,
    pub(crate) array_buffer: ClassId,
    pub(crate) generator: ClassId,
    pub(crate) dom_exception: ClassId,
    /// Typed arrays with their names.
    pub(crate) typed: [(ClassId, &'static str); TYPED.len()],
}

const TYPED: [&str; 11] = [
    "Uint8Array",
    "Uint8ClampedArray",
    "Int8Array",
    "Uint16Array",
    "Int16Array",
    "Uint32Array",
    "Int32Array",
    "BigInt64Array",
    "BigUint64Array",
    "Float32Array",
    "Float64Array",
];

impl Classes {
    fn learn(ctx: &Ctx<'_>) -> Result<Self> {
        let of = |source: &str| -> Result<ClassId> { ctx.eval::<Value, _>(source).map(|specimen| raw::class_of(&specimen)) };
        let mut typed = [(raw::NO_CLASS, ""); TYPED.len()];
        for (slot, name) in typed.iter_mut().zip(TYPED) {
            *slot = (of(&format!("new {name}(0)"))?, name);
        }
        Ok(Self {
            object: of("({})")?,
            array: of("[]")?,
            error: of("new Error('')")?,
            number: of("Object(0)")?,
            string: of("Object('')")?,
            boolean: of("Object(false)")?,
            symbol: of("Object(Symbol())")?,
            big_int: of("Object(0n)")?,
            date: of("new Date(0)")?,
            regexp: of("/x/")?,
            map: of("new Map()")?,
            set: of("new Set()")?,
            weak_map: of("new WeakMap()")?,
            weak_set: of("new WeakSet()")?,
            weak_ref: of("new WeakRef({})")?,
            array_buffer: of("new ArrayBuffer(0)")?,
            generator: of("(function* () {})()")?,
            dom_exception: of("new DOMException('')")?,
            typed,
        })
    }

    /// The name of a typed array's class, if the class is one.
    pub(crate) fn typed_name(&self, class: ClassId) -> Option<&'static str> {
        self.typed.iter().find(|(id, _)| *id == class).map(|(_, name)| *name)
    }
}

type Kept = Persistent<Function<'static>>;
type KeptValue = Persistent<Value<'static>>;

/// Ties one lifetime to all three arguments, which a bare closure can not say.
fn entry_taker<F>(take: F) -> F
where
    F: for<'js> Fn(Ctx<'js>, Value<'js>, Value<'js>) + 'static,
{
    take
}

/// Functions of the realm as they were before guest code.
#[derive(Debug, Clone)]
pub(crate) struct Intrinsics {
    pub(crate) classes: Classes,
    date_iso: Kept,
    date_value: Kept,
    date_to_json: Kept,
    map_each: Kept,
    set_each: Kept,
    symbol_text: Kept,
    typed_length: Kept,
    buffer_length: Kept,
    regexp_source: Kept,
    regexp_flags: Vec<(char, Kept)>,
    make_regexp: Kept,
    primitive: Vec<(ClassId, Kept)>,
    capture_stack: Kept,
    error_stack: Kept,
    dom_name: Kept,
    dom_message: Kept,
    host_error: Persistent<Object<'static>>,
    web: OnceCell<Vec<(&'static str, &'static str, Kept)>>,
}

/// Web APIs whose objects keep what they are to themselves: the class, what is shown of it,
/// and the function that gives it.
const WEB: [(&str, &str, &str); 3] = [
    ("URL", "href", "Object.getOwnPropertyDescriptor(URL.prototype, 'href').get"),
    ("URLSearchParams", "", "URLSearchParams.prototype.toString"),
    ("AbortSignal", "aborted", "Object.getOwnPropertyDescriptor(AbortSignal.prototype, 'aborted').get"),
];

/// The class of rejections that come from host functions. A program may construct and
/// compare it; the glue builds its own without calling it.
const HOST_ERROR: &str = r"(() => {
  class HostError extends Error {
    constructor(message, options) { super(message, options); }
  }
  Object.defineProperty(HostError.prototype, 'name',
    { value: 'HostError', writable: true, configurable: true, enumerable: false });
  return HostError;
})()";

impl Intrinsics {
    /// Captures everything and defines the global `HostError`.
    ///
    /// # Errors
    /// When the realm lacks a function that the language prescribes.
    pub(crate) fn capture(ctx: &Ctx<'_>) -> Result<Self> {
        let keep = |source: &str| -> Result<Kept> { Ok(Persistent::save(ctx, ctx.eval::<Function, _>(source)?)) };
        let getter = |of: &str, name: &str| -> Result<Kept> { keep(&format!("Object.getOwnPropertyDescriptor({of}, '{name}').get")) };
        let classes = Classes::learn(ctx)?;
        let mut regexp_flags = Vec::new();
        for (letter, name) in [
            ('d', "hasIndices"),
            ('g', "global"),
            ('i', "ignoreCase"),
            ('m', "multiline"),
            ('s', "dotAll"),
            ('u', "unicode"),
            ('v', "unicodeSets"),
            ('y', "sticky"),
        ] {
            regexp_flags.push((letter, getter("RegExp.prototype", name)?));
        }
        let host_error: Constructor = ctx.eval(HOST_ERROR)?;
        ctx.globals().prop("HostError", rquickjs::object::Property::from(host_error.clone()).writable().configurable())?;
        Ok(Self {
            primitive: vec![
                (classes.number, keep("Number.prototype.valueOf")?),
                (classes.string, keep("String.prototype.valueOf")?),
                (classes.boolean, keep("Boolean.prototype.valueOf")?),
                (classes.big_int, keep("BigInt.prototype.valueOf")?),
                (classes.symbol, keep("Symbol.prototype.valueOf")?),
            ],
            classes,
            date_iso: keep("Date.prototype.toISOString")?,
            date_value: keep("Date.prototype.getTime")?,
            date_to_json: keep("Date.prototype.toJSON")?,
            map_each: keep("Map.prototype.forEach")?,
            set_each: keep("Set.prototype.forEach")?,
            symbol_text: keep("Symbol.prototype.toString")?,
            typed_length: getter("Object.getPrototypeOf(Uint8Array.prototype)", "length")?,
            buffer_length: getter("ArrayBuffer.prototype", "byteLength")?,
            regexp_source: getter("RegExp.prototype", "source")?,
            regexp_flags,
            make_regexp: keep("RegExp")?,
            error_stack: getter("Error.prototype", "stack")?,
            capture_stack: keep("Error.captureStackTrace")?,
            dom_name: getter("DOMException.prototype", "name")?,
            dom_message: getter("DOMException.prototype", "message")?,
            host_error: Persistent::save(ctx, host_error.get::<_, Object>("prototype")?),
            web: OnceCell::new(),
        })
    }

    /// Captures what the console shows of the web APIs, once they are there.
    ///
    /// # Errors
    /// When the realm lacks one of them.
    pub(crate) fn capture_web(&self, ctx: &Ctx<'_>) -> Result<()> {
        let keep = |(class, label, source)| Ok((class, label, Persistent::save(ctx, ctx.eval::<Function, _>(source)?)));
        let kept = WEB.into_iter().map(keep).collect::<Result<Vec<_>>>()?;
        drop(self.web.set(kept));
        Ok(())
    }

    /// What is shown of an object of a web API, with its label; `None` for any other, and
    /// for one that only says that it is one.
    pub(crate) fn web_shown<'js>(&self, class: &str, object: &Value<'js>) -> Option<(&'static str, Value<'js>)> {
        let (_, label, kept) = self.web.get()?.iter().find(|(name, ..)| *name == class)?;
        let shown = Self::ask(kept, object);
        if shown.is_err() {
            drop(object.ctx().catch());
        }
        shown.ok().map(|shown| (*label, shown))
    }

    fn ask<'js, R: rquickjs::FromJs<'js>>(kept: &Kept, object: &Value<'js>) -> Result<R> {
        kept.clone().restore(object.ctx())?.call((This(object.clone()),))
    }

    /// The instant of a date in ISO form; `None` when it is no valid date.
    pub(crate) fn date_text(&self, date: &Value<'_>) -> Result<Option<String>> {
        let instant: f64 = Self::ask(&self.date_value, date)?;
        if instant.is_nan() {
            return Ok(None);
        }
        Self::ask::<Value>(&self.date_iso, date).and_then(|text| raw::text_of(&text)).map(Some)
    }

    /// Whether a function is the realm's own `Date.prototype.toJSON`.
    pub(crate) fn is_date_to_json(&self, function: &Value<'_>) -> bool {
        let own = self.date_to_json.clone().restore(function.ctx());
        own.is_ok_and(|own| own.as_value() == function)
    }

    /// Keys and values of a map, in order.
    pub(crate) fn map_entries<'js>(&self, map: &Value<'js>) -> Result<Vec<(Value<'js>, Value<'js>)>> {
        Self::entries(&self.map_each, map)
    }

    /// The members of a set, in order.
    pub(crate) fn set_members<'js>(&self, set: &Value<'js>) -> Result<Vec<Value<'js>>> {
        Ok(Self::entries(&self.set_each, set)?.into_iter().map(|(_, member)| member).collect())
    }

    fn entries<'js>(each: &Kept, of: &Value<'js>) -> Result<Vec<(Value<'js>, Value<'js>)>> {
        let ctx = of.ctx();
        let held: Rc<RefCell<Vec<(KeptValue, KeptValue)>>> = Rc::default();
        let sink = Rc::clone(&held);
        let take = Function::new(
            ctx.clone(),
            entry_taker(move |ctx, value, key| {
                sink.borrow_mut().push((Persistent::save(&ctx, key), Persistent::save(&ctx, value)));
            }),
        )?;
        each.clone().restore(ctx)?.call::<_, ()>((This(of.clone()), take))?;
        let held = held.take();
        held.into_iter().map(|(key, value)| Ok((key.restore(ctx)?, value.restore(ctx)?))).collect()
    }

    /// `Symbol(description)`.
    pub(crate) fn symbol_text(&self, symbol: &Value<'_>) -> Result<String> {
        Self::ask::<Value>(&self.symbol_text, symbol).and_then(|text| raw::text_of(&text))
    }

    /// Number of elements of a typed array.
    pub(crate) fn typed_length(&self, array: &Value<'_>) -> Result<f64> {
        Self::ask(&self.typed_length, array)
    }

    /// Bytes of an array buffer.
    pub(crate) fn buffer_length(&self, buffer: &Value<'_>) -> Result<f64> {
        Self::ask(&self.buffer_length, buffer)
    }

    /// A regular expression as it is written.
    pub(crate) fn regexp_text(&self, regexp: &Value<'_>) -> Result<String> {
        let source: Value = Self::ask(&self.regexp_source, regexp)?;
        let mut text = format!("/{}/", raw::text_of(&source)?);
        for (letter, getter) in &self.regexp_flags {
            if Self::ask::<Value>(getter, regexp)?.as_bool() == Some(true) {
                text.push(*letter);
            }
        }
        Ok(text)
    }

    /// Whether the engine takes no regular expression of this pattern and these flags.
    pub(crate) fn is_no_regexp(&self, ctx: &Ctx<'_>, pattern: &str, flags: &str) -> bool {
        let made = self.make_regexp.clone().restore(ctx).and_then(|make| make.call::<_, Value>((pattern, flags)));
        if made.is_err() {
            drop(ctx.catch());
        }
        made.is_err()
    }

    /// The primitive inside a wrapper object such as `Object(1)`.
    pub(crate) fn primitive_of<'js>(&self, class: ClassId, wrapper: &Value<'js>) -> Option<Value<'js>> {
        let (_, value_of) = self.primitive.iter().find(|(id, _)| *id == class)?;
        let held = Self::ask(value_of, wrapper);
        if held.is_err() {
            drop(wrapper.ctx().catch());
        }
        held.ok()
    }

    /// `HostError.prototype`, the realm's own.
    pub(crate) fn host_error_prototype<'js>(&self, ctx: &Ctx<'js>) -> Result<Object<'js>> {
        self.host_error.clone().restore(ctx)
    }

    /// Name and message of an error of the web APIs; `None` for any other object.
    pub(crate) fn dom_exception_text(&self, value: &Value<'_>) -> Option<(String, String)> {
        if raw::class_of(value) != self.classes.dom_exception {
            return None;
        }
        let text = |getter| Self::ask::<Value>(getter, value).and_then(|text| raw::text_of(&text)).ok();
        Some((text(&self.dom_name)?, text(&self.dom_message)?))
    }

    /// The stack text of an error: its own property, or what the engine recorded. `None`
    /// when a guest made it something that is no text.
    pub(crate) fn error_stack(&self, error: &Object<'_>) -> Option<String> {
        let key = rquickjs::Atom::from_str(error.ctx().clone(), "stack").ok()?;
        let stack = match raw::own_slot(error, &key) {
            Some(raw::Slot::Data(stack)) => stack,
            Some(raw::Slot::Accessor { .. }) => return None,
            None if error.is_error() => Self::ask(&self.error_stack, error.as_value()).ok()?,
            None => return None,
        };
        if stack.is_string() { raw::text_of(&stack).ok() } else { None }
    }

    /// Where the running program is, as the engine tells it. `None` when a guest's own
    /// stack hook gave something that is no text.
    pub(crate) fn stack_here(&self, ctx: &Ctx<'_>) -> Option<String> {
        let holder = Object::new_proto(ctx.clone(), None).ok()?;
        let captured = self.capture_stack.clone().restore(ctx).and_then(|capture| capture.call::<_, ()>((holder.clone(),)));
        if captured.is_err() {
            drop(ctx.catch());
            return None;
        }
        let key = rquickjs::Atom::from_str(ctx.clone(), "stack").ok()?;
        match raw::own_slot(&holder, &key) {
            Some(raw::Slot::Data(stack)) if stack.is_string() => raw::text_of(&stack).ok(),
            _ => None,
        }
    }
}
