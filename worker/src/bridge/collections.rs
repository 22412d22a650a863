//! Owns the collections as the program sees them: frozen objects without a prototype,
//! whose own properties are the host functions and nothing else.

use std::{cell::RefCell, rc::Rc};

use brig_protocol::{
    client::{Stream, WarningCode},
    names,
};
use rquickjs::{Ctx, Function, Object, Result, Value, function::Rest, object::Property};

use super::Calls;
use crate::{engine::raw, globals::output::Output, outbox::Outbox};

/// What the program was given to call: for hints, and to take it back from a kept realm.
#[derive(Debug, Default)]
pub(crate) struct World {
    /// Collections with the names of their functions.
    pub(crate) collections: RefCell<Vec<(String, Vec<String>)>>,
    defined: RefCell<Vec<String>>,
}

impl World {
    /// Whether a name is one of a collection, and not of a global that was there.
    pub(crate) fn is_defined(&self, name: &str) -> bool {
        self.defined.borrow().iter().any(|defined| defined == name)
    }
}

/// Defines the collections of an evaluation. In a kept realm they can be withdrawn again.
///
/// # Errors
/// When the realm refuses a definition for another reason than a clash of names, which is
/// told as a warning.
pub(crate) fn define(
    ctx: &Ctx<'_>,
    calls: &Rc<Calls>,
    world: &World,
    outlets: (&Outbox, &Output),
    collections: Vec<(String, Vec<String>)>,
    keep: bool,
) -> Result<()> {
    let globals = ctx.globals();
    // First: what follows may run guest code, which may hold functions of an earlier evaluation.
    calls.give(&collections);
    for (name, functions) in &collections {
        let object = collection(ctx, calls, name, functions)?;
        let mut spellings = vec![name.clone()];
        let camel = names::camel(name);
        let is_free = |spelling: &String| !collections.iter().any(|(other, _)| other == spelling);
        if camel != *name && is_free(&camel) && collections.iter().filter(|(other, _)| names::camel(other) == camel).count() == 1 {
            spellings.push(camel);
        }
        for spelling in spellings {
            if globals.contains_key(spelling.as_str())? {
                clash(outlets, name, &spelling);
                continue;
            }
            let property = Property::from(object.clone()).enumerable();
            let property = if keep { property.configurable() } else { property };
            globals.prop(spelling.as_str(), property)?;
            world.defined.borrow_mut().push(spelling);
        }
    }
    *world.collections.borrow_mut() = collections;
    Ok(())
}

fn clash((outbox, output): (&Outbox, &Output), name: &str, spelling: &str) {
    let what = if name == spelling { "collection".to_owned() } else { format!("other spelling {spelling} of the collection") };
    let message = format!("the {what} {name} was not defined: {spelling} is already a global");
    output.print(Stream::Stderr, &format!("{message}\n"));
    outbox.warn(WarningCode::CollectionNotDefined, &message, None);
}

/// Takes the collections of the former evaluation out of a kept realm.
pub(crate) fn withdraw(ctx: &Ctx<'_>, world: &World) {
    let globals = ctx.globals();
    for name in world.defined.take() {
        if globals.remove(name.as_str()).is_err() {
            drop(ctx.catch());
        }
    }
    world.collections.take();
}

fn native<F>(run: F) -> F
where
    F: for<'js> Fn(Ctx<'js>, Rest<Value<'js>>) -> Result<Value<'js>> + 'static,
{
    run
}

/// One collection. Its functions keep their names, not their indices: a program of a vm may
/// call them in a later evaluation, which has another table.
pub(crate) fn collection<'js>(ctx: &Ctx<'js>, calls: &Rc<Calls>, name: &str, functions: &[String]) -> Result<Object<'js>> {
    let object = Object::new_proto(ctx.clone(), None)?;
    for function in functions {
        let full: Rc<str> = format!("{name}.{function}").into();
        let calls = Rc::clone(calls);
        let host_function = Function::new(ctx.clone(), native(move |ctx, args| calls.call(&ctx, &full, args.0.first())))?;
        let host_function = host_function.with_name(function)?.with_length(1)?;
        raw::freeze(ctx, &host_function)?;
        object.prop(function.as_str(), Property::from(host_function.clone()).enumerable())?;
        let camel = names::camel(function);
        let is_ambiguous = functions.contains(&camel) || functions.iter().filter(|other| names::camel(other) == camel).count() > 1;
        if camel != *function && !is_ambiguous {
            object.prop(camel.as_str(), Property::from(host_function))?;
        }
    }
    raw::freeze(ctx, &object)?;
    Ok(object)
}
