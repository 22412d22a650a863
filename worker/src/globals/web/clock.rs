//! The clock behind `performance` and `Event.timeStamp`: milliseconds since the evaluation
//! began, never since the process did (the nursery may be hours old).

use std::cell::Cell;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rquickjs::Object;
use rquickjs::function::Func;

thread_local! {
    static ORIGIN: Cell<Option<(Instant, SystemTime)>> = const { Cell::new(None) };
}

/// Makes now the zero of `performance.now()`. Called when an evaluation starts; without it
/// the clock starts at its first use.
pub(crate) fn begin_evaluation() {
    ORIGIN.set(Some((Instant::now(), SystemTime::now())));
}

pub(super) fn define(native: &Object<'_>) -> rquickjs::Result<()> {
    native.set("now", Func::from(now))?;
    native.set("timeOrigin", Func::from(time_origin))
}

fn origin() -> (Instant, SystemTime) {
    ORIGIN.with(|cell| {
        let origin = cell.get().unwrap_or_else(|| (Instant::now(), SystemTime::now()));
        cell.set(Some(origin));
        origin
    })
}

/// Milliseconds, in steps of 5 µs as browsers give them.
fn now() -> f64 {
    let micros = origin().0.elapsed().as_micros();
    f64::from(u32::try_from(micros / 5).unwrap_or(u32::MAX)) * 0.005
}

fn time_origin() -> f64 {
    origin().1.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64() * 1000.0)
}
