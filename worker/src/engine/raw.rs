//! Owns the few questions about engine values that have no safe call: text with lone
//! surrogates, the class of an object, and property slots without running getters.
//! It never keeps a raw value and never runs guest code by itself, except where a
//! function says so.
#![expect(unsafe_code, reason = "reads of engine values that rquickjs has no safe call for")]

use std::{ffi::CString, mem::MaybeUninit};

use rquickjs::{Atom, Ctx, Error, Object, Result, String as JsString, Value, qjs};

/// Number of an object's internal class; [`NO_CLASS`] for a value that is no object.
pub(crate) type ClassId = u32;

/// The class of what is not an object.
pub(crate) const NO_CLASS: ClassId = 0;

/// The internal class of an object, which no guest code can change or fake.
pub(crate) fn class_of(value: &Value<'_>) -> ClassId {
    if !value.is_object() {
        return NO_CLASS;
    }
    // SAFETY: the value is a live object; the call only reads its header.
    unsafe { qjs::JS_GetClassID(value.as_raw()) }
}

/// Makes everything that is alive in the engine immortal: its references are not counted
/// any more, the collector passes it over, and nothing frees it. So no copy of this process
/// writes to it by merely using it. Only while nothing runs and no job is pending; the
/// engine can not be torn down afterwards.
pub(crate) fn make_immortal(ctx: &Ctx<'_>) {
    // SAFETY: the context is live, and so is its runtime, which a realm never frees.
    unsafe { qjs::JS_MakeImmortal(qjs::JS_GetRuntime(ctx.as_raw().as_ptr())) }
}

/// What became of the next pending job.
pub(crate) enum Job<'js> {
    /// There was none.
    Idle,
    /// It ran.
    Done,
    /// It ran and threw, as what is given to `queueMicrotask` may; `Ctx::execute_pending_job`
    /// drops that.
    Threw(Value<'js>),
}

/// Runs the next pending job, which is guest code.
pub(crate) fn run_job<'js>(ctx: &Ctx<'js>) -> Job<'js> {
    let mut ran_in = MaybeUninit::uninit();
    // SAFETY: the context is live, and so is its runtime, which has no other context: what
    // a job throws is the pending exception of this one.
    let ran = unsafe { qjs::JS_ExecutePendingJob(qjs::JS_GetRuntime(ctx.as_raw().as_ptr()), ran_in.as_mut_ptr()) };
    match ran {
        0 => Job::Idle,
        1.. => Job::Done,
        _ => Job::Threw(ctx.catch()),
    }
}

/// Has the engine read a script, with all of its early errors, and run none of it: not even
/// what closes the function that the script was meant to be.
pub(crate) fn compile(ctx: &Ctx<'_>, file: &str, code: String) -> Result<()> {
    let (file, text) = (CString::new(file)?, CString::new(code)?);
    let length = text.as_bytes().len() as _;
    let flags = qjs::JS_EVAL_TYPE_GLOBAL | qjs::JS_EVAL_FLAG_COMPILE_ONLY | qjs::JS_EVAL_FLAG_BACKTRACE_BARRIER;
    let ctx = ctx.as_raw().as_ptr();
    // SAFETY: the context is live; the text ends in a zero behind its length, as the engine
    // asks for, and so does the name. What comes back is owned, and freed once.
    unsafe {
        let read = qjs::JS_Eval(ctx, text.as_ptr(), length, file.as_ptr(), flags as i32);
        let failed = qjs::JS_VALUE_GET_NORM_TAG(read) == qjs::JS_TAG_EXCEPTION;
        qjs::JS_FreeValue(ctx, read);
        if failed { Err(Error::Exception) } else { Ok(()) }
    }
}

/// What a value is, by its tag alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shape {
    Object,
    Int(i32),
    Float(f64),
    String,
    Bool(bool),
    Null,
    Undefined,
    Symbol,
    BigInt,
    /// Never a guest value: the engine's own markers.
    Other,
}

/// What a value is, by its tag alone.
pub(crate) fn shape(value: &Value<'_>) -> Shape {
    // SAFETY: reads the tag of a live value, nothing behind it.
    let tag = unsafe { qjs::JS_VALUE_GET_NORM_TAG(value.as_raw()) };
    match tag {
        qjs::JS_TAG_OBJECT => Shape::Object,
        qjs::JS_TAG_INT => Shape::Int(value.as_int().unwrap_or(0)),
        qjs::JS_TAG_FLOAT64 => Shape::Float(value.as_float().unwrap_or(0.0)),
        qjs::JS_TAG_STRING | qjs::JS_TAG_STRING_ROPE => Shape::String,
        qjs::JS_TAG_BOOL => Shape::Bool(value.as_bool().unwrap_or(false)),
        qjs::JS_TAG_NULL => Shape::Null,
        qjs::JS_TAG_UNDEFINED => Shape::Undefined,
        qjs::JS_TAG_SYMBOL => Shape::Symbol,
        qjs::JS_TAG_BIG_INT | qjs::JS_TAG_SHORT_BIG_INT => Shape::BigInt,
        _ => Shape::Other,
    }
}

/// Runs `read` over the bytes of a string: UTF-8, where a lone surrogate stands as its
/// three-byte generalised form. For other primitives the engine's own conversion is used;
/// it must not be called with an object or a symbol.
pub(crate) fn with_text<R>(value: &Value<'_>, read: impl FnOnce(&[u8]) -> R) -> Result<R> {
    debug_assert!(!value.is_object() && !value.is_symbol());
    let ctx = value.ctx().as_raw().as_ptr();
    let mut length = 0;
    // SAFETY: context and value are live and of one runtime. The text stays valid until
    // it is freed below, and is not used after.
    unsafe {
        let text = qjs::JS_ToCStringLen2(ctx, &raw mut length, value.as_raw(), false);
        if text.is_null() {
            return Err(Error::Exception);
        }
        let bytes = std::slice::from_raw_parts(text.cast::<u8>(), usize::try_from(length).unwrap_or(0));
        let result = read(bytes);
        qjs::JS_FreeCString(ctx, text);
        Ok(result)
    }
}

/// The text of a string (or other primitive) with lone surrogates replaced.
pub(crate) fn text_of(value: &Value<'_>) -> Result<String> {
    with_text(value, |bytes| match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => replace_surrogates(bytes),
    })
}

fn replace_surrogates(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        // The three bytes of one surrogate arrive as three broken chunks: mark the first.
        if chunk.invalid().first() == Some(&0xED) {
            text.push('\u{FFFD}');
        }
    }
    text
}

/// The text of a property key.
pub(crate) fn key_text(key: &Atom<'_>) -> Result<String> {
    text_of(&key.to_value()?)
}

/// What a property holds, told without running its getter.
#[derive(Debug)]
pub(crate) enum Slot<'js> {
    /// A plain value.
    Data(Value<'js>),
    /// An accessor: whether it has a getter, and whether a setter.
    Accessor {
        /// A getter is there.
        get: bool,
        /// A setter is there.
        set: bool,
    },
}

/// An own property of an object, told without running a getter. On a proxy this runs the
/// guest's trap: ask [`Value::is_proxy`] first. `None`: no such property, or it can not be told.
pub(crate) fn own_slot<'js>(object: &Object<'js>, key: &Atom<'js>) -> Option<Slot<'js>> {
    let key = key.to_value().ok()?;
    let ctx = object.ctx().clone();
    let raw = ctx.as_raw().as_ptr();
    // SAFETY: object, key and context are live and of one runtime; the atom is freed once.
    unsafe {
        let atom = qjs::JS_ValueToAtom(raw, key.as_raw());
        let slot = slot_of(&ctx, object, atom);
        qjs::JS_FreeAtom(raw, atom);
        slot
    }
}

/// Whether an own property is there as plain data that can not be written.
pub(crate) fn is_read_only(object: &Object<'_>, name: &str) -> bool {
    let raw = object.ctx().as_raw().as_ptr();
    let Some(mut slot) = (|| {
        let key = Atom::from_str(object.ctx().clone(), name).ok()?.to_value().ok()?;
        // SAFETY: as in `own_slot`.
        unsafe {
            let atom = qjs::JS_ValueToAtom(raw, key.as_raw());
            let slot = descriptor_of(object.ctx(), object, atom);
            qjs::JS_FreeAtom(raw, atom);
            slot
        }
    })() else {
        return false;
    };
    let writable = slot.flags & (qjs::JS_PROP_WRITABLE as i32) != 0;
    slot.flags = 0;
    for held in [slot.value, slot.getter, slot.setter] {
        // SAFETY: the three values of a filled descriptor are ours to free.
        drop(unsafe { Value::from_raw(object.ctx().clone(), held) });
    }
    !writable
}

/// # Safety
/// `atom` must be alive in the runtime of `ctx` and `object`.
unsafe fn descriptor_of(ctx: &Ctx<'_>, object: &Object<'_>, atom: qjs::JSAtom) -> Option<qjs::JSPropertyDescriptor> {
    let mut slot = MaybeUninit::<qjs::JSPropertyDescriptor>::zeroed();
    // SAFETY: everything is alive and of one runtime; on 1 the descriptor is filled.
    unsafe {
        let found = qjs::JS_GetOwnProperty(ctx.as_raw().as_ptr(), slot.as_mut_ptr(), object.as_value().as_raw(), atom);
        if found < 0 {
            drop(ctx.catch());
        }
        (found == 1).then(|| slot.assume_init())
    }
}

/// # Safety
/// `atom` must be alive in the runtime of `ctx` and `object`.
unsafe fn slot_of<'js>(ctx: &Ctx<'js>, object: &Object<'js>, atom: qjs::JSAtom) -> Option<Slot<'js>> {
    // SAFETY: the caller's promise; the three values of a descriptor are ours to free,
    // which `Value` does.
    unsafe {
        let slot = descriptor_of(ctx, object, atom)?;
        let value = Value::from_raw(ctx.clone(), slot.value);
        let getter = Value::from_raw(ctx.clone(), slot.getter);
        let setter = Value::from_raw(ctx.clone(), slot.setter);
        if slot.flags & (qjs::JS_PROP_GETSET as i32) != 0 {
            return Some(Slot::Accessor { get: getter.is_function(), set: setter.is_function() });
        }
        Some(Slot::Data(value))
    }
}

/// Length of an array that is no proxy; reading it meets no guest code.
pub(crate) fn array_length(array: &Object<'_>) -> usize {
    let length = array.get::<_, Value>("length").ok().and_then(|length| length.as_number());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number below 2^32")]
    let length = length.unwrap_or(0.0) as usize;
    length
}

/// Which own enumerable properties are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    Strings,
    Symbols,
}

/// Own enumerable properties of an object that is no proxy, at most `most` of them, told
/// without running getters: key text (a symbol's description) and slot. The second part
/// is how many there are in all.
pub(crate) fn own_slots<'js>(object: &Object<'js>, keys: Keys, most: usize) -> (Vec<(String, Slot<'js>)>, usize) {
    let ctx = object.ctx().clone();
    let raw = ctx.as_raw().as_ptr();
    let mask = match keys {
        Keys::Strings => qjs::JS_GPN_STRING_MASK,
        Keys::Symbols => qjs::JS_GPN_SYMBOL_MASK,
    };
    let flags = (mask | qjs::JS_GPN_ENUM_ONLY) as i32;
    let mut slots = Vec::new();
    let mut table = std::ptr::null_mut();
    let mut count = 0;
    // SAFETY: object and context are live and of one runtime. On success the table holds
    // `count` entries, each atom alive until the table is freed at the end.
    unsafe {
        if qjs::JS_GetOwnPropertyNames(raw, &raw mut table, &raw mut count, object.as_value().as_raw(), flags) < 0 {
            drop(ctx.catch());
            return (slots, 0);
        }
        for entry in std::slice::from_raw_parts(table, count as usize).iter().take(most) {
            let key = Value::from_raw(ctx.clone(), qjs::JS_AtomToString(raw, entry.atom));
            if let Some(slot) = slot_of(&ctx, object, entry.atom)
                && let Ok(text) = text_of(&key)
            {
                slots.push((text, slot));
            }
        }
        qjs::JS_FreePropertyEnum(raw, table, count);
    }
    (slots, count as usize)
}

/// Freezes an object: no property can be added, removed or changed any more.
pub(crate) fn freeze<'js>(ctx: &Ctx<'js>, object: &Object<'js>) -> Result<()> {
    // SAFETY: object and context are live and of one runtime.
    let outcome = unsafe { qjs::JS_FreezeObject(ctx.as_raw().as_ptr(), object.as_value().as_raw()) };
    if outcome < 0 { Err(Error::Exception) } else { Ok(()) }
}

/// A string of the engine from bytes that may hold generalised surrogates.
pub(crate) fn string_from<'js>(ctx: &Ctx<'js>, text: &str) -> Result<JsString<'js>> {
    JsString::from_str(ctx.clone(), text)
}
