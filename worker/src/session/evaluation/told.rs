//! Owns what is told of an evaluation beside its value: rejections that nobody caught, calls
//! that were cut off, promises that were read. Never decides how it ended.

use super::*;

impl<'js> Evaluation<'_, 'js> {
    pub(super) fn summary(&self, thrown: &Value<'js>) -> String {
        self.with_known(|known| failure::summary(&self.shared.intrinsics, thrown, known))
    }

    pub(super) fn tell_each(&self, told: Option<&Value<'js>>, rejected: Vec<Value<'js>>) {
        for reason in rejected {
            if told.is_none_or(|told| *told != reason) {
                let message = format!("a promise rejected and nothing caught it: {}", self.summary(&reason));
                self.shared.outbox.warn(WarningCode::UnhandledRejection, &message, None);
            }
        }
    }

    pub(super) fn tell_rejections(&self, told: Option<&Value<'js>>, uncaught: &[Uncaught<'js>]) {
        self.tell_each(told, self.shared.rejections.take(self.ctx));
        if told.is_some() {
            return;
        }
        for Uncaught { whose, thrown } in uncaught {
            let message = format!("{whose} threw and nothing caught it: {}", self.summary(thrown));
            self.shared.outbox.warn(WarningCode::UnhandledRejection, &message, None);
        }
    }

    /// What the program reads of host calls that it does not await.
    pub(super) fn tell_promise_reads(&self, reads: &[PromiseRead]) {
        let globals = self.ctx.globals();
        for read in reads {
            // Where the constant is in an inner scope, that global may be what is read.
            let is_global = globals.contains_key(read.name.as_str()).unwrap_or(true);
            if !is_global
                && self.shared.world.is_defined(&read.collection)
                && self.with_known(|known| known.gives_promise(&read.collection, &read.function))
            {
                self.shared.outbox.warn(WarningCode::PromiseRead, &read.told(&self.order.source), None);
            }
        }
    }

    pub(super) fn tell_cancelled(&self) {
        for left in self.shared.calls.left() {
            let message = match left.id {
                Some(id) => format!(
                    "{} (call {id}) was still running when the program ended, and was cancelled; its effect is unknown",
                    left.function
                ),
                None => format!("{} was waiting for its turn when the program ended; it was not called", left.function),
            };
            self.shared.outbox.warn(WarningCode::CallCancelled, &message, None);
        }
    }
}
