//! The worker of one evaluation: its own, or that of a vm.
//!
//! Owns what becomes of it in the end: retired, given back to the vm, or lost with it.

use crate::pool::Lease;
use crate::vm::{Loan, Lost};
use brig_protocol::client::{EvaluationError, Warning, WarningCode};
use std::ops::{Deref, DerefMut};

/// A worker. Dropping it kills the worker, and loses the vm whose it is.
#[derive(Debug)]
pub(crate) struct Holding {
    lease: Lease,
    loan: Option<Loan>,
    lost: Option<Lost>,
}

impl Holding {
    /// A worker for this evaluation only.
    pub(super) const fn own(lease: Lease) -> Self {
        Self { lease, loan: None, lost: None }
    }

    /// The worker of a vm.
    pub(super) const fn borrowed(lease: Lease, loan: Loan) -> Self {
        Self { lease, loan: Some(loan), lost: None }
    }

    /// Whether another evaluation may follow in this worker.
    pub(super) const fn is_kept(&self) -> bool {
        self.loan.is_some()
    }

    /// The vm is lost: the caller is told with its error, and as a warning for who
    /// looks at codes.
    pub(super) fn lose(&mut self, why: Lost, error: Option<&mut EvaluationError>) -> Option<Warning> {
        let loan = self.loan.as_ref()?;
        self.lost = Some(why);
        let message = format!("vm {} is lost with its realm: {}", loan.id(), why.sentence());
        if let Some(error) = error {
            let advice = "the vm and its names are lost; make another with vm.create";
            error.hint = Some(error.hint.take().map_or_else(|| advice.to_owned(), |hint| format!("{hint}; {advice}")));
        }
        Some(Warning { code: WarningCode::VmLost, message, path: None })
    }

    /// The evaluation is over. The worker of a vm is given back at once, or ended with
    /// it; one of its own is given to the caller, to be retired when there is time.
    pub(crate) fn settle(self) -> Option<Lease> {
        match (self.loan, self.lost) {
            (None, _) => return Some(self.lease),
            (Some(loan), None) => loan.give_back(self.lease),
            (Some(loan), Some(why)) => loan.lose(why),
        }
        None
    }
}

impl Deref for Holding {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.lease
    }
}

impl DerefMut for Holding {
    fn deref_mut(&mut self) -> &mut Lease {
        &mut self.lease
    }
}
