//! Which message is legal when.
//!
//! ```text
//! starting --ready--> ready --(evaluate)--> evaluating --finished--> finished
//!                       ^                     | host.call, output,       |
//!                       |                     | warning                  |
//!                       +------ (a kept worker's next evaluate) ---------+
//! ```
//! Pure. Asked before content is looked at; any breach ends the worker.

use std::collections::BTreeSet;

/// Where a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Forked, not heard of yet.
    Starting,
    /// Locked down and waiting for a program.
    Ready,
    /// Running one.
    Evaluating,
    /// Has answered.
    Finished,
}

/// What a worker can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is locked down.
    Ready,
    /// It asks for a host function.
    HostCall,
    /// The program printed.
    Output,
    /// Something the caller would otherwise lose.
    Warning,
    /// The evaluation is over.
    Finished,
}

impl Phase {
    /// The one table of what may be said when.
    #[must_use]
    pub const fn allows(self, kind: Kind) -> bool {
        matches!(
            (self, kind),
            (Self::Starting, Kind::Ready) | (Self::Evaluating, Kind::HostCall | Kind::Output | Kind::Warning | Kind::Finished)
        )
    }
}

/// What a worker did that it may not do. Its worker is killed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// Framing.
    #[error("{0}")]
    Frame(#[from] crate::frame::FrameFault),
    /// Not one of the messages.
    #[error("malformed message: {0}")]
    Malformed(String),
    /// A legal message at the wrong time.
    #[error("{kind:?} is not allowed while {phase:?}")]
    Phase {
        /// Where the worker was.
        phase: Phase,
        /// What it said.
        kind: Kind,
    },
    /// A call id that is not the next one.
    #[error("call id {given}; the next one is {expected}")]
    CallId {
        /// What it said.
        given: u64,
        /// What comes next.
        expected: u64,
    },
    /// An answer to an evaluation that it was not given.
    #[error("answer to evaluation {given}; it runs {expected}")]
    EvaluationId {
        /// What it said.
        given: u64,
        /// What it runs.
        expected: u64,
    },
    /// More calls in flight than it was told it may have.
    #[error("more than {limit} host calls in flight")]
    InFlight {
        /// The limit.
        limit: u64,
    },
    /// More calls in all than it was told it may make.
    #[error("more than {limit} host calls")]
    Calls {
        /// The limit.
        limit: u64,
    },
    /// An index outside the table it was given.
    #[error("function {index} of a table of {functions}")]
    Function {
        /// What it said.
        index: u32,
        /// Size of the table.
        functions: usize,
    },
    /// A payload over a limit that the worker itself must hold.
    #[error("{what} of {bytes} bytes; at most {limit} are allowed")]
    Oversized {
        /// Which payload.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: u64,
    },
}

/// Follows one worker and refuses what it may not say.
#[derive(Debug)]
pub struct Conversation {
    phase: Phase,
    evaluation: u64,
    last_call: u64,
    open_calls: BTreeSet<u64>,
    calls_limit: u64,
    in_flight_limit: u64,
}

impl Default for Conversation {
    fn default() -> Self {
        Self::new()
    }
}

impl Conversation {
    /// A worker that has not been heard of.
    #[must_use]
    pub const fn new() -> Self {
        Self { phase: Phase::Starting, evaluation: 0, last_call: 0, open_calls: BTreeSet::new(), calls_limit: 0, in_flight_limit: 0 }
    }

    /// Where the worker is.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// Host calls that were asked and not answered yet, in order.
    pub fn open_calls(&self) -> impl Iterator<Item = u64> + '_ {
        self.open_calls.iter().copied()
    }

    /// Takes the kind of a message, before its content.
    ///
    /// # Errors
    /// [`Violation::Phase`] when it is not allowed now.
    pub fn admit(&mut self, kind: Kind) -> Result<(), Violation> {
        if !self.phase.allows(kind) {
            return Err(Violation::Phase { phase: self.phase, kind });
        }
        if kind == Kind::Ready {
            self.phase = Phase::Ready;
        }
        Ok(())
    }

    /// Notes that an evaluation is being sent. Only a ready worker, or a kept one
    /// that has finished, can take it: gives its id, or nothing.
    pub fn begin(&mut self, calls_limit: u64, in_flight_limit: u64) -> Option<u64> {
        if !matches!(self.phase, Phase::Ready | Phase::Finished) {
            return None;
        }
        self.phase = Phase::Evaluating;
        self.evaluation += 1;
        self.last_call = 0;
        self.open_calls.clear();
        self.calls_limit = calls_limit;
        self.in_flight_limit = in_flight_limit;
        Some(self.evaluation)
    }

    /// Takes the id of a host call.
    ///
    /// # Errors
    /// A [`Violation`] when the id is not the next, or there are too many.
    pub fn call(&mut self, id: u64) -> Result<(), Violation> {
        let expected = self.last_call + 1;
        if id != expected {
            return Err(Violation::CallId { given: id, expected });
        }
        if id > self.calls_limit {
            return Err(Violation::Calls { limit: self.calls_limit });
        }
        let open = u64::try_from(self.open_calls.len()).unwrap_or(u64::MAX);
        if open >= self.in_flight_limit {
            return Err(Violation::InFlight { limit: self.in_flight_limit });
        }
        self.last_call = id;
        self.open_calls.insert(id);
        Ok(())
    }

    /// Notes that a call is being answered. `false`: it was not open.
    pub fn answered(&mut self, id: u64) -> bool {
        self.open_calls.remove(&id)
    }

    /// Takes the id of the finished evaluation.
    ///
    /// # Errors
    /// [`Violation::EvaluationId`] when it is not the one that runs.
    pub fn finish(&mut self, id: u64) -> Result<(), Violation> {
        if id != self.evaluation {
            return Err(Violation::EvaluationId { given: id, expected: self.evaluation });
        }
        self.phase = Phase::Finished;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KINDS: [Kind; 5] = [Kind::Ready, Kind::HostCall, Kind::Output, Kind::Warning, Kind::Finished];

    fn evaluating(calls: u64, in_flight: u64) -> Conversation {
        let mut conversation = Conversation::new();
        assert!(conversation.admit(Kind::Ready).is_ok());
        assert_eq!(conversation.begin(calls, in_flight), Some(1));
        conversation
    }

    #[test]
    fn only_ready_is_legal_first_and_only_once() {
        for kind in KINDS {
            assert_eq!(Conversation::new().admit(kind).is_ok(), kind == Kind::Ready);
        }
        let mut conversation = Conversation::new();
        assert!(conversation.admit(Kind::Ready).is_ok());
        for kind in KINDS {
            assert!(conversation.admit(kind).is_err());
        }
    }

    #[test]
    fn call_ids_follow_one_another_from_one() {
        let mut conversation = evaluating(10, 10);
        assert!(conversation.call(2).is_err());
        assert!(conversation.call(1).is_ok());
        assert!(conversation.call(1).is_err());
        assert!(conversation.call(2).is_ok());
    }

    #[test]
    fn calls_beyond_either_limit_are_a_breach() {
        let mut conversation = evaluating(3, 2);
        assert!(conversation.call(1).is_ok() && conversation.call(2).is_ok());
        assert_eq!(conversation.call(3), Err(Violation::InFlight { limit: 2 }));
        assert!(conversation.answered(1));
        assert!(!conversation.answered(1));
        assert!(conversation.call(3).is_ok());
        assert!(conversation.answered(2));
        assert_eq!(conversation.call(4), Err(Violation::Calls { limit: 3 }));
    }

    #[test]
    fn nothing_is_legal_after_the_end() {
        let mut conversation = evaluating(3, 2);
        assert!(conversation.finish(7).is_err());
        assert!(conversation.finish(1).is_ok());
        for kind in KINDS {
            assert!(conversation.admit(kind).is_err());
        }
    }

    #[test]
    fn a_kept_worker_counts_its_calls_anew_in_each_evaluation() {
        let mut conversation = evaluating(3, 2);
        assert!(conversation.call(1).is_ok());
        assert!(conversation.finish(1).is_ok());
        assert_eq!(conversation.begin(3, 2), Some(2));
        assert!(conversation.call(1).is_ok());
    }

    proptest! {
        #[test]
        fn no_sequence_ever_has_more_open_calls_than_the_limit(steps in proptest::collection::vec((0u8..4, 0u64..12), 0..60)) {
            let mut conversation = evaluating(9, 4);
            for (step, id) in steps {
                match step {
                    0 => { drop(conversation.call(id)); }
                    1 => { std::hint::black_box(conversation.answered(id)); }
                    2 => { drop(conversation.finish(id)); }
                    _ => { std::hint::black_box(conversation.begin(9, 4)); }
                }
                prop_assert!(conversation.open_calls().count() <= 4);
            }
        }
    }
}
