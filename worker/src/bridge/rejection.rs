//! Owns what a failed host call looks like to the program: a `HostError` of the realm,
//! built without running guest code and without anything of the host but what was meant.

use std::rc::Rc;

use brig_protocol::{codes::CallCode, worker::HostFailure};
use rquickjs::{Ctx, Exception, Object, Result, object::Property};

use crate::engine::Intrinsics;

/// A failure before it is an object.
#[derive(Debug)]
pub(crate) struct Rejection {
    pub(crate) code: String,
    name: String,
    message: String,
    data: Option<String>,
    function: Rc<str>,
    place: Option<String>,
}

const NAME: &str = "HostError";

/// The failure that came over the wire.
pub(crate) fn from_host(failure: &HostFailure<'_>, function: &Rc<str>, place: Option<String>) -> Rejection {
    let name = failure.name.as_deref().filter(|name| !name.is_empty() && *name != "Error");
    Rejection {
        code: failure.function_code.as_deref().unwrap_or(failure.code.as_str()).to_owned(),
        name: name.unwrap_or(NAME).to_owned(),
        message: failure.message.clone().into_owned(),
        data: failure.data.map(|data| data.get().to_owned()),
        function: Rc::clone(function),
        place,
    }
}

impl Rejection {
    /// A failure found in the worker: nothing was called.
    pub(crate) fn local(code: CallCode, message: String, function: &Rc<str>, place: Option<String>) -> Self {
        Self { code: code.as_str().to_owned(), name: NAME.to_owned(), message, data: None, function: Rc::clone(function), place }
    }

    /// The object that the promise rejects with.
    ///
    /// # Errors
    /// When the realm can not make an object.
    pub(crate) fn build<'js>(&self, ctx: &Ctx<'js>, intrinsics: &Intrinsics) -> Result<Object<'js>> {
        // The engine makes the error object itself: no constructor, no stack hook runs.
        let error = Exception::from_message(ctx.clone(), "")?.into_object();
        // The engine makes `message` enumerable; on errors it is not.
        error.remove("message")?;
        error.set_prototype(Some(&intrinsics.host_error_prototype(ctx)?))?;
        let hidden = |key: &str, text: &str| error.prop(key, Property::from(text).writable().configurable());
        hidden("message", &self.message)?;
        if self.name != NAME {
            hidden("name", &self.name)?;
        }
        hidden("stack", self.place.as_deref().unwrap_or_default())?;
        let shown = |key: &str, text: &str| error.prop(key, Property::from(text).writable().configurable().enumerable());
        shown("code", &self.code)?;
        shown("function", &self.function)?;
        if let Some(data) = &self.data {
            let data = ctx.json_parse(data.as_bytes())?;
            error.prop("data", Property::from(data).writable().configurable().enumerable())?;
        }
        Ok(error)
    }
}
