//! brig-worker: the nursery and the workers it forks.

use brig_protocol::control::exit;
use brig_worker::{
    guest::{self, Guest},
    lockdown::raw,
    nursery,
};

fn main() {
    // A panic must not unwind into an end that looks planned, and must not write anywhere:
    // one call ends the process and its code says what happened.
    std::panic::set_hook(Box::new(|_| raw::exit_now(exit::PANIC)));
    let mut arguments = std::env::args_os().skip(1);
    let role = arguments.next();
    if arguments.next().is_some() {
        raw::exit_now(exit::USAGE);
    }
    match role.as_ref().and_then(|role| role.to_str()) {
        Some("nursery") => nursery::main(program()),
        Some("worker") => nursery::image_main(program()),
        Some("probe") => nursery::probe::main(),
        _ => raw::exit_now(exit::USAGE),
    }
}

/// The guest half's entry points, as the nursery calls them.
fn program() -> nursery::Program<Guest> {
    nursery::Program {
        warm: |config| guest::warm(config.stack_bytes),
        own: |guest, facts| guest::own(guest, &facts.seed),
        run: |guest, socket, facts| guest::run(&guest, socket, active_layers(facts)),
    }
}

fn active_layers(facts: &nursery::WorkerFacts) -> Vec<String> {
    let active = facts.layers.iter().filter(|(layer, _)| facts.layers.has(*layer));
    active.map(|(layer, _)| layer.name().to_owned()).collect()
}
