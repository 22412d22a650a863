//! The web APIs of the guest world: `structuredClone`, `URL`, `TextEncoder`, events and
//! aborts, `crypto`, `performance`.
//!
//! Owns the JavaScript classes beside this file and the native functions under them. The
//! classes reach the language only through intrinsics captured at installation, so a guest
//! that replaces a built-in changes its own programs and nothing here. Nothing in this
//! module makes a system call other than reading the clock, and nothing of the native
//! object is reachable from `globalThis`.

mod clock;
mod crypto;
mod encoding;
mod url;

use rquickjs::function::Func;
use rquickjs::{Array, Ctx, Function, IntoJs, Object, Value, context::EvalOptions};

pub(crate) use clock::begin_evaluation;

/// Fills a buffer with bytes that nobody can foresee.
pub(crate) type Entropy = fn(&mut [u8]);

const INTRINSICS: &str = include_str!("web/intrinsics.js");
const CLONE: &str = include_str!("web/clone.js");
const EVENTS: &str = include_str!("web/events.js");
const FURTHER: [(&str, &str); 4] = [
    ("brig:url", include_str!("web/url.js")),
    ("brig:encoding", include_str!("web/encoding.js")),
    ("brig:crypto", include_str!("web/crypto.js")),
    ("brig:performance", include_str!("web/performance.js")),
];

/// Puts the web APIs on `globalThis`.
///
/// Timers must be there already: `AbortSignal.timeout` keeps the `setTimeout` it finds now.
/// `entropy` is called whenever the guest asks `crypto` for randomness.
///
/// # Errors
/// When the realm refuses a definition.
pub(crate) fn install(ctx: &Ctx<'_>, entropy: Entropy) -> rquickjs::Result<()> {
    let intrinsics = intrinsics(ctx)?;
    let native = native(ctx, entropy)?;
    let refuse_clone: Value<'_> = compile(ctx, "brig:clone", CLONE)?.call((native.clone(), intrinsics.clone()))?;
    let schedule: Value<'_> = ctx.globals().get("setTimeout")?;
    compile(ctx, "brig:events", EVENTS)?.call::<_, ()>((native.clone(), intrinsics.clone(), refuse_clone.clone(), schedule))?;
    for (name, source) in FURTHER {
        compile(ctx, name, source)?.call::<_, ()>((native.clone(), intrinsics.clone(), refuse_clone.clone()))?;
    }
    Ok(())
}

/// The engine's functions as they are now, for sources compiled with [`compile`].
pub(crate) fn intrinsics<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    compile(ctx, "brig:intrinsics", INTRINSICS)?.call(())
}

/// Evaluates a source that is one function expression and gives the function.
pub(crate) fn compile<'js>(ctx: &Ctx<'js>, name: &str, source: &str) -> rquickjs::Result<Function<'js>> {
    let mut options = EvalOptions::default();
    options.filename = Some(name.to_owned());
    ctx.eval_with_options(source, options)
}

/// A list for the JavaScript side that no setter on `Array.prototype` can see: it inherits
/// nothing.
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<'js, T: IntoJs<'js>> IntoJs<'js> for List<T> {
    fn into_js(self, ctx: &Ctx<'js>) -> rquickjs::Result<Value<'js>> {
        let list = Array::new(ctx.clone())?;
        list.set_prototype(None)?;
        for (index, item) in self.0.into_iter().enumerate() {
            list.set(index, item)?;
        }
        Ok(list.into_value())
    }
}

fn native<'js>(ctx: &Ctx<'js>, entropy: Entropy) -> rquickjs::Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    native.set_prototype(None)?;
    native.set("isProxy", Func::from(|value: Value<'_>| value.is_proxy()))?;
    clock::define(&native)?;
    crypto::define(&native, entropy)?;
    encoding::define(&native)?;
    url::define(&native)?;
    Ok(native)
}

#[cfg(test)]
mod tests;
