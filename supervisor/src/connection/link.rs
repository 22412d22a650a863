//! What brigd asks of one client: its callbacks.
//!
//! Owns the ids of our requests and who awaits which answer. An answer that nobody
//! awaits is dropped and counted; it can reach no other evaluation, because ids are
//! never used again on a connection.

use super::outbox::Outbox;
use crate::host::callback::{CallAnswer, Callback, Delivery};
use brig_protocol::client::{ApprovalNote, HostCallParams, HostCancelParams, method};
use brig_protocol::codes::CallCode;
use brig_protocol::rpc::{self, ErrorObject, Id};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// The way to one client's callbacks.
#[derive(Debug)]
pub(crate) struct Link {
    outbox: Arc<Outbox>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    open: HashMap<u64, Open>,
    gone: bool,
}

/// A request of ours that the client has not answered.
#[derive(Debug)]
struct Open {
    evaluation: String,
    call: u64,
    /// Who awaits the answer; nobody any more when its time was over.
    waker: Option<oneshot::Sender<CallAnswer>>,
}

impl Link {
    /// A way to the client at the other end of `outbox`.
    pub(crate) fn new(outbox: Arc<Outbox>) -> Self {
        Self { outbox, state: Mutex::default() }
    }

    /// Takes an answer of the client. `false`: nobody awaits it.
    pub(crate) fn answered(&self, id: &Id, outcome: Result<&RawValue, ErrorObject<'_>>) -> bool {
        let Some(waker) = number_of(id).and_then(|number| self.lock().open.remove(&number)).and_then(|open| open.waker) else {
            return false;
        };
        waker
            .send(match outcome {
                Ok(output) => CallAnswer::Output(output.to_owned()),
                Err(error) => CallAnswer::Failed { message: error.message.into_owned(), data: error.data.map(ToOwned::to_owned) },
            })
            .is_ok()
    }

    /// The client is gone: whoever awaits an answer hears so.
    pub(crate) fn hang_up(&self) {
        let mut state = self.lock();
        state.gone = true;
        state.open.clear();
    }

    /// An evaluation is over: what is still open of it is nobody's any more.
    pub(crate) fn forget(&self, evaluation: &str) {
        let mut state = self.lock();
        if !state.open.is_empty() {
            state.open.retain(|_, open| open.evaluation != evaluation);
        }
    }

    fn open(&self, delivery: &Delivery<'_>) -> Option<(u64, oneshot::Receiver<CallAnswer>)> {
        let mut state = self.lock();
        if state.gone {
            return None;
        }
        state.last += 1;
        let number = state.last;
        let (waker, answer) = oneshot::channel();
        let open = Open { evaluation: delivery.evaluation.to_owned(), call: delivery.call, waker: Some(waker) };
        state.open.insert(number, open);
        Some((number, answer))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Callback for Link {
    async fn host_call(&self, delivery: Delivery<'_>) -> CallAnswer {
        let Some((number, answer)) = self.open(&delivery) else {
            return CallAnswer::Gone;
        };
        let params = HostCallParams {
            evaluation: delivery.evaluation.into(),
            call: delivery.call,
            function: delivery.function.into(),
            input: delivery.input,
            deadline_ms: whole_ms(delivery.deadline),
            idempotency_key: delivery.idempotency_key.into(),
            vm: delivery.vm.map(Into::into),
        };
        // A guest that calls faster than its client reads waits, within the deadline that
        // the caller keeps: it must not be able to fill the way out, and end it.
        self.outbox.send_when_room(|| rpc::request(&id_of(number), method::HOST_CALL, &params)).await;
        answer.await.unwrap_or(CallAnswer::Gone)
    }

    fn parked(&self, note: &ApprovalNote) {
        self.outbox.send(rpc::notification(method::EVALUATION_APPROVAL, note));
    }

    fn host_cancel(&self, evaluation: &str, call: u64, reason: CallCode) {
        let mut state = self.lock();
        let number = state.open.iter().find(|(_, open)| open.call == call && open.evaluation == evaluation).map(|(number, _)| *number);
        let Some(number) = number else { return };
        state.open.remove(&number);
        drop(state);
        let params = HostCancelParams { id: id_of(number), evaluation: evaluation.to_owned(), call, reason: reason.as_str().to_owned() };
        self.outbox.send(rpc::notification(method::HOST_CANCEL, &params));
    }
}

/// Whole milliseconds, rounded up: a deadline that is not over is never told as 0.
fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}

fn id_of(number: u64) -> Id {
    Id::Text(format!("c{number}"))
}

/// The number of an id that could be ours, in exactly the spelling that we give.
fn number_of(id: &Id) -> Option<u64> {
    let Id::Text(text) = id else { return None };
    let digits = text.strip_prefix('c')?;
    let canonical = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    canonical.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::super::budget::Budget;
    use super::*;
    use futures_util::FutureExt;
    use tokio::io::{AsyncBufReadExt, BufReader};
    use tokio::net::UnixStream;

    fn link() -> (Link, BufReader<UnixStream>, tokio::net::unix::OwnedReadHalf) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (read, write) = ours.into_split();
        let outbox = Outbox::new(write, Budget::new(64 * 1024 * 1024).holder(1), Duration::from_secs(10));
        (Link::new(Arc::new(outbox)), BufReader::new(theirs), read)
    }

    fn delivery(input: &RawValue) -> Delivery<'_> {
        Delivery {
            evaluation: "ev_1",
            call: 1,
            function: "orders.list",
            input,
            deadline: Duration::from_micros(999_001),
            idempotency_key: "ev_1:1",
            vm: None,
        }
    }

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[tokio::test]
    async fn a_call_goes_out_as_specified_and_its_answer_comes_back() {
        let (link, mut client, _read) = link();
        let input = raw("{\"a\":1}");
        let answering = async {
            let mut line = String::new();
            client.read_line(&mut line).await.unwrap();
            assert_eq!(
                line,
                "{\"jsonrpc\":\"2.0\",\"id\":\"c1\",\"method\":\"host.call\",\"params\":{\"evaluation\":\"ev_1\",\"call\":1,\
                 \"function\":\"orders.list\",\"input\":{\"a\":1},\"deadlineMs\":1000,\"idempotencyKey\":\"ev_1:1\"}}\n"
            );
            assert!(link.answered(&Id::Text("c1".to_owned()), Ok(&raw("[1]"))));
            assert!(!link.answered(&Id::Text("c1".to_owned()), Ok(&raw("[1]"))));
        };
        let (answer, ()) = tokio::join!(link.host_call(delivery(&input)), answering);
        assert!(matches!(answer, CallAnswer::Output(raw) if raw.get() == "[1]"));
    }

    #[tokio::test]
    async fn answers_to_nobody_are_nobodys() {
        let (link, _client, _read) = link();
        let input = raw("{}");
        let mut call = Box::pin(link.host_call(delivery(&input)));
        assert!((&mut call).now_or_never().is_none());
        for id in
            [Id::Number(1), Id::Text("1".to_owned()), Id::Text("c01".to_owned()), Id::Text("c+1".to_owned()), Id::Text("c2".to_owned())]
        {
            assert!(!link.answered(&id, Ok(&input)), "{id:?}");
        }
        drop(call);
        assert!(!link.answered(&Id::Text("c1".to_owned()), Ok(&input)));
    }

    #[tokio::test]
    async fn a_call_whose_time_is_over_is_cancelled_by_its_id_even_when_nobody_waits_any_more() {
        let (link, mut client, _read) = link();
        let input = raw("{}");
        assert!(link.host_call(delivery(&input)).now_or_never().is_none());
        link.host_cancel("ev_2", 1, CallCode::FunctionTimedOut);
        link.host_cancel("ev_1", 1, CallCode::FunctionTimedOut);
        link.host_cancel("ev_1", 1, CallCode::FunctionTimedOut);
        link.hang_up();
        drop(link);
        let mut lines = Vec::new();
        let mut line = String::new();
        while lines.len() < 2 && client.read_line(&mut line).await.unwrap() > 0 {
            lines.push(std::mem::take(&mut line));
        }
        assert!(lines.last().unwrap().contains("\"host.cancel\",\"params\":{\"id\":\"c1\""), "{lines:?}");
        assert!(lines.last().unwrap().contains("function_timed_out"), "{lines:?}");
    }

    #[tokio::test]
    async fn a_client_that_goes_away_is_heard_of() {
        let (link, _client, _read) = link();
        let input = raw("{}");
        let mut call = Box::pin(link.host_call(delivery(&input)));
        assert!((&mut call).now_or_never().is_none());
        link.hang_up();
        assert!(matches!(call.await, CallAnswer::Gone));
        assert!(matches!(link.host_call(delivery(&input)).await, CallAnswer::Gone));
    }

    #[tokio::test]
    async fn nothing_is_kept_of_an_evaluation_that_is_over() {
        let (link, _client, _read) = link();
        assert!(link.host_call(delivery(&raw("{}"))).now_or_never().is_none());
        assert_eq!(link.lock().open.len(), 1);
        link.forget("ev_1");
        assert_eq!(link.lock().open.len(), 0);
    }
}
