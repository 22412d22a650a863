//! Who answers the host calls of an evaluation.
//!
//! Owns the choice between the client that asked for the evaluation and the one that
//! made its vm: what a request declares itself is answered by who sent it, the rest by
//! the connection that declared it with the vm.

use crate::connection::link::Link;
use crate::host::callback::{CallAnswer, Callback, Delivery};
use crate::vm::Loan;
use brig_protocol::client::{ApprovalNote, FunctionMap, HostFunctions};
use brig_protocol::codes::CallCode;
use std::collections::HashSet;
use std::sync::Arc;

/// The connections that answer for the functions of one evaluation.
#[derive(Debug)]
pub(super) struct Answering {
    asker: Arc<Link>,
    maker: Option<Maker>,
}

/// Who made the vm, and for which functions it still answers.
#[derive(Debug)]
struct Maker {
    link: Arc<Link>,
    /// By which it knows its functions.
    vm: String,
    functions: HashSet<String>,
}

impl Answering {
    /// `declared` came with the vm, `own` with the request.
    pub(super) fn new(asker: &Arc<Link>, loan: Option<&Loan>, declared: &HostFunctions<'_>, own: &HostFunctions<'_>) -> Self {
        let maker = loan.filter(|_| !declared.0.is_empty()).map(|loan| {
            let mut functions = names(declared);
            for name in names(own) {
                functions.remove(&name);
            }
            Maker { link: Arc::clone(loan.link()), vm: loan.id().to_owned(), functions }
        });
        Self { asker: Arc::clone(asker), maker }
    }

    /// The evaluation is over.
    pub(super) fn forget(&self, evaluation: &str) {
        self.asker.forget(evaluation);
        if let Some(maker) = &self.maker {
            maker.link.forget(evaluation);
        }
    }
}

impl Callback for Answering {
    async fn host_call(&self, delivery: Delivery<'_>) -> CallAnswer {
        match self.maker.as_ref().filter(|maker| maker.functions.contains(delivery.function)) {
            Some(maker) => maker.link.host_call(Delivery { vm: Some(&maker.vm), ..delivery }).await,
            None => self.asker.host_call(delivery).await,
        }
    }

    fn parked(&self, note: &ApprovalNote) {
        // Whoever waits for the evaluation, not whoever runs the function.
        self.asker.parked(note);
    }

    fn host_cancel(&self, evaluation: &str, call: u64, reason: CallCode) {
        // A call is open at one of them; to the other it says nothing.
        self.asker.host_cancel(evaluation, call, reason);
        if let Some(maker) = self.maker.as_ref().filter(|maker| !Arc::ptr_eq(&maker.link, &self.asker)) {
            maker.link.host_cancel(evaluation, call, reason);
        }
    }
}

fn names(functions: &HostFunctions<'_>) -> HashSet<String> {
    functions.0.iter().flat_map(|(collection, functions)| functions.0.iter().map(move |(name, _)| format!("{collection}.{name}"))).collect()
}

/// The functions of a vm with those of a request: one of the same name is the request's.
pub(super) fn merged<'a>(declared: &HostFunctions<'a>, own: &HostFunctions<'a>) -> HostFunctions<'a> {
    let mut all = declared.clone();
    for (collection, functions) in &own.0 {
        match all.0.iter_mut().find(|(name, _)| name == collection) {
            None => all.0.push((collection.clone(), functions.clone())),
            Some((_, there)) => merge(there, functions),
        }
    }
    all
}

fn merge<T: Clone>(there: &mut FunctionMap<T>, own: &FunctionMap<T>) {
    for (name, declaration) in &own.0 {
        match there.0.iter_mut().find(|(known, _)| known == name) {
            None => there.0.push((name.clone(), declaration.clone())),
            Some((_, declared)) => declared.clone_from(declaration),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_function_of_the_request_takes_the_place_of_the_vms() {
        let declared: HostFunctions<'_> = serde_json::from_str(r#"{"a":{"x":{},"y":{"effect":"read"}},"b":{"z":{}}}"#).unwrap();
        let own: HostFunctions<'_> = serde_json::from_str(r#"{"a":{"y":{"timeoutMs":5},"w":{}},"c":{"v":{}}}"#).unwrap();
        let all = serde_json::to_string(&merged(&declared, &own)).unwrap();
        assert_eq!(all, r#"{"a":{"x":{},"y":{"timeoutMs":5},"w":{}},"b":{"z":{}},"c":{"v":{}}}"#);
        assert!(names(&own).contains("a.w"));
    }
}
