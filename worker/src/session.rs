//! Owns the worker's life on the wire: ready, evaluating, finished. One evaluation, or,
//! for a kept realm, one after the other. It never decides an outcome for the caller: it
//! tells what it saw, and the supervisor knows the rest.

mod endings;
mod evaluation;
mod pump;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, os::fd::OwnedFd, rc::Rc};

use brig_protocol::{
    client::{Form, Language},
    control::exit,
    limits::Limits,
    worker::{self, CollectionTable, EvaluateOrder, FromSupervisor, Ready},
};

use crate::{
    channel::{Channel, HungUp},
    engine::{Realm, alloc},
    lockdown::raw::exit_now,
};

/// What the worker says of itself when it is ready.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    /// Names of the layers that are active.
    pub(crate) layers: Vec<String>,
}

/// An order, owned: the frame it came in is read over.
struct Order {
    id: u64,
    source: String,
    form: Form,
    language: Language,
    inputs: Option<String>,
    collections: Vec<(String, Vec<String>)>,
    limits: Limits,
    time_zone: Option<String>,
    keep: bool,
    parse_only: bool,
    /// What the evaluation defines is taken away again.
    rehearsal: bool,
}

/// What a rehearsal runs: a little of what most programs do.
const REHEARSED: &str = "const list = [1, 2].map((n) => ({ n, s: `${n}` })); list.length + inputs.n";

/// Runs one evaluation as [`serve`] would, from the bytes of its order to those of its
/// answer, with nobody to hear it: so the pages and the code that every evaluation needs
/// are there before the first one. Leaves no trace in the realm.
///
/// # Panics
/// When the answer is not the expected one: the realm is of no use then.
pub(crate) fn rehearse(realm: &Realm) {
    #[expect(clippy::panic, reason = "the panic hook ends the process with its own code")]
    if let Err(fault) = rehearsed(realm) {
        panic!("the rehearsal failed: {fault}");
    }
}

fn rehearsed(realm: &Realm) -> Result<(), String> {
    let order = EvaluateOrder {
        inputs: serde_json::from_str("{\"n\":1}").ok(),
        collections: vec![CollectionTable { name: "rehearsal".into(), functions: vec!["call".into()] }],
        ..EvaluateOrder::of(REHEARSED)
    };
    let frame = worker::evaluate_frame(0, &order).map_err(|fault| fault.to_string())?;
    let body = frame.get(brig_protocol::frame::PREFIX_BYTES..).unwrap_or_default();
    let Ok(Some(Wish::Order(order))) = wish_in(body) else { return Err("the order can not be read".to_owned()) };
    let answer = evaluation::run(realm, &Channel::to_nobody(), Order { rehearsal: true, ..*order });
    alloc::lift();
    let answer = answer.unwrap_or_default();
    let expected = b"\"value\":3";
    let told = answer.windows(expected.len()).any(|window| window == expected);
    if told { Ok(()) } else { Err(String::from_utf8_lossy(&answer).into_owned()) }
}

/// Serves the supervisor until it hangs up, then ends the process.
pub(crate) fn run(realm: &Realm, socket: OwnedFd, facts: &Facts) -> ! {
    let HungUp = serve(realm, socket, facts);
    exit_now(exit::FINISHED)
}

/// Serves the supervisor until it hangs up.
pub(crate) fn serve(realm: &Realm, socket: OwnedFd, facts: &Facts) -> HungUp {
    let channel = Rc::new(Channel::new(socket));
    let hello = worker::ready_frame(&Ready { layers: facts.layers.clone() }).unwrap_or_default();
    if channel.send(&hello).and_then(|()| channel.flush()).is_err() {
        return HungUp;
    }
    // The outbox is not attached yet: nobody hears a rehearsal.
    let mut order = match next_order(&channel, || rehearse(realm)) {
        Ok(order) => order,
        Err(gone) => return gone,
    };
    let outbox = &realm.shared.outbox;
    outbox.attach(Rc::clone(&channel));
    last_words::keep(&realm.shared.output);
    loop {
        let keep = order.keep;
        let answer = evaluation::run(realm, &channel, order);
        alloc::lift();
        if let Some(frame) = answer {
            outbox.send(&frame);
        }
        outbox.flush();
        if outbox.has_hung_up() {
            return HungUp;
        }
        if !keep {
            // The answer is on its way: the process ends when it was taken, off its path.
            return linger(&channel);
        }
        // A realm that a program has run in is not rehearsed.
        order = match next_order(&channel, || ()) {
            Ok(order) => order,
            Err(gone) => return gone,
        };
    }
}

/// Waits for the next program, and rehearses meanwhile if the supervisor says so.
fn next_order(channel: &Channel, rehearse: impl Fn()) -> Result<Order, HungUp> {
    loop {
        match next_wish(channel)? {
            Wish::Order(order) => return Ok(*order),
            Wish::Rehearse => rehearse(),
        }
    }
}

/// What a supervisor wishes of a worker that runs nothing.
enum Wish {
    Order(Box<Order>),
    Rehearse,
}

/// Waits for the next wish; what arrives late for the former program is dropped.
fn next_wish(channel: &Channel) -> Result<Wish, HungUp> {
    loop {
        while let Some(wish) = channel.next_frame(wish_in)? {
            if let Some(wish) = wish? {
                return Ok(wish);
            }
        }
        channel.wait(None)?;
    }
}

fn wish_in(body: &[u8]) -> Result<Option<Wish>, HungUp> {
    match worker::read_from_supervisor(body) {
        Ok(FromSupervisor::Evaluate { id, order }) => Ok(Some(Wish::Order(Box::new(owned(id, &order))))),
        Ok(FromSupervisor::Rehearse) => Ok(Some(Wish::Rehearse)),
        Ok(_) => Ok(None),
        Err(_) => Err(HungUp),
    }
}

fn owned(id: u64, order: &EvaluateOrder<'_>) -> Order {
    let collections = order.collections.iter().map(|collection| {
        (collection.name.clone().into_owned(), collection.functions.iter().map(|name| name.clone().into_owned()).collect())
    });
    Order {
        id,
        source: order.source.clone().into_owned(),
        form: order.form,
        language: order.language,
        inputs: order.inputs.map(|inputs| inputs.get().to_owned()),
        collections: collections.collect(),
        limits: order.limits,
        time_zone: order.time_zone.clone().map(Cow::into_owned),
        keep: order.keep,
        parse_only: order.parse_only,
        rehearsal: false,
    }
}

fn linger(channel: &Channel) -> HungUp {
    loop {
        while let Ok(Some(())) = channel.next_frame(|_| ()) {}
        if let Err(gone) = channel.wait(None) {
            return gone;
        }
    }
}

/// What is still said when the heap limit ends the process.
mod last_words {
    use std::{cell::RefCell, rc::Rc};

    use crate::{engine::alloc, globals::output::Output};

    thread_local! {
        static OUTPUT: RefCell<Option<Rc<Output>>> = const { RefCell::new(None) };
    }

    pub(super) fn keep(output: &Rc<Output>) {
        OUTPUT.replace(Some(Rc::clone(output)));
        alloc::set_last_words(|| {
            OUTPUT.with(|output| {
                if let Ok(output) = output.try_borrow()
                    && let Some(output) = output.as_ref()
                {
                    output.flush();
                }
            });
        });
    }
}
