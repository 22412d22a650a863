//! The numbered moments of one write call at which a test ends brigd.
//!
//! Owns the numbers. Only builds with debug assertions look at the environment: a release
//! binary has nothing in it that can be told to end.

/// A moment at which a crash must leave the truth behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The evaluation is on record, its program not yet sent.
    Opened = 1,
    /// A write call may run; nothing about it is written.
    Permitted = 2,
    /// Its intent is written, and not committed.
    IntentWritten = 3,
    /// Its intent is committed, and it was not delivered.
    IntentCommitted = 4,
    /// It has answered; nothing about that is written.
    Answered = 5,
    /// Its result is written, and not committed.
    ResultWritten = 6,
    /// Its result is committed; the guest has not heard it.
    ResultCommitted = 7,
    /// The evaluation is over; its answer is not written.
    Ended = 8,
    /// The answer is written, and not committed.
    AnswerWritten = 9,
    /// The answer is committed, and not sent.
    AnswerCommitted = 10,
}

/// This moment has come.
#[cfg(debug_assertions)]
pub(crate) fn reached(stage: Stage) {
    use std::sync::OnceLock;
    static AT: OnceLock<Option<u32>> = OnceLock::new();
    let at = AT.get_or_init(|| std::env::var("BRIG_TEST_KILL_AT").ok().and_then(|number| number.parse().ok()));
    if *at == Some(stage as u32) {
        // As `kill -9` does: no destructor, no flush, no word.
        nix::sys::signal::kill(nix::unistd::Pid::this(), nix::sys::signal::Signal::SIGKILL).ok();
        loop {
            std::thread::park();
        }
    }
}

/// This moment has come; nobody can ask for anything in a release build.
#[cfg(not(debug_assertions))]
pub(crate) const fn reached(_: Stage) {}
