//! What a program finds on `globalThis` besides the language itself.
//!
//! Installed once, in the nursery, before any guest code exists.

pub(crate) mod console;
pub(crate) mod inspect;
pub(crate) mod intl;
mod layout;
pub(crate) mod output;
mod slots;
mod table;
pub(crate) mod timers;
pub(crate) mod web;

use std::rc::Rc;

use rquickjs::{Ctx, Result};

use crate::engine::{Intrinsics, entropy};

/// Installs everything that this module owns.
///
/// # Errors
/// When the realm refuses a definition; it is then of no use.
pub(crate) fn install(ctx: &Ctx<'_>, intrinsics: &Rc<Intrinsics>, output: &Rc<output::Output>, clock: &Rc<timers::Timers>) -> Result<()> {
    console::install(ctx, intrinsics, output)?;
    timers::install(ctx, clock)?;
    web::install(ctx, entropy::fill)?;
    intl::install(ctx)
}
