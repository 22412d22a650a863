//! Proof of life for the service manager.
//!
//! Owns the probe: a worker leased from the pool runs `1` and says so. Only a probe that
//! passed feeds the watchdog, so a brigd that hangs, or that can make no worker any more,
//! is restarted. Never a timer alone, never through the clients' queue: a flood of
//! requests is no reason to be restarted.

use crate::evaluation::Program;
use crate::metrics::{Counter, Metrics};
use crate::notify;
use crate::pool::{Lease, Pool};
use brig_protocol::worker::{FromWorker, evaluate_frame, read_from_worker};
use std::borrow::Cow;
use std::time::Duration;
use tokio::time::Instant;

/// The shortest watchdog that leaves time for probes.
const SHORTEST: Duration = Duration::from_millis(300);

/// Feeds the watchdog while probes pass. Never ends; does nothing when nobody watches.
pub(crate) async fn keep_fed(pool: &Pool, metrics: &Metrics) {
    let Some(limit) = sd_notify::watchdog_enabled().filter(|limit| *limit >= SHORTEST) else {
        return std::future::pending().await;
    };
    // Two probes in a row may fail before the service manager acts.
    let period = limit / 3;
    tracing::info!(limit_ms = limit.as_millis(), "the service manager watches");
    feed(period, || probe(pool), notify::alive, &metrics.probes).await
}

/// Probes once in each period, and tells of each probe that passed within it.
async fn feed<P, F>(period: Duration, probe: P, alive: F, [passed, failed, late]: &[Counter; 3])
where
    P: AsyncFn() -> Result<(), String>,
    F: Fn(),
{
    let mut next = Instant::now();
    loop {
        let begun = Instant::now();
        match tokio::time::timeout(period, probe()).await {
            Ok(Ok(())) => {
                passed.count();
                alive();
            }
            Ok(Err(why)) => {
                failed.count();
                tracing::error!(why, "the watchdog is not fed: a probe failed");
            }
            Err(_) => {
                late.count();
                tracing::error!(period_ms = period.as_millis(), "the watchdog is not fed: a probe was not done in time");
            }
        }
        next = (next + period).max(begun);
        tokio::time::sleep_until(next).await;
    }
}

/// One evaluation from end to end, but for a client.
async fn probe(pool: &Pool) -> Result<(), String> {
    let mut lease = pool.lease().await.map_err(|fault| fault.to_string())?;
    let outcome = run_one(&mut lease).await;
    if outcome.is_ok() {
        lease.retire();
    }
    outcome
}

async fn run_one(lease: &mut Lease) -> Result<(), String> {
    let program = Program { source: Cow::Borrowed("1"), ..Program::default() };
    let number = lease.conversation().begin(0, 0).ok_or("the worker was not ready")?;
    let frame = evaluate_frame(number, &program.order(Vec::new())).map_err(|fault| fault.to_string())?;
    lease.queue(frame).map_err(|fault| fault.to_string())?;
    let body = lease.receive().await.map_err(|fault| fault.to_string())?;
    let message = read_from_worker(&body).map_err(|fault| fault.to_string())?;
    lease.conversation().admit(message.kind()).map_err(|fault| fault.to_string())?;
    let FromWorker::Finished { id, finished } = message else { return Err("it said something else than its end".to_owned()) };
    lease.conversation().finish(id).map_err(|fault| fault.to_string())?;
    match (finished.value.map(|value| value.get()), finished.error) {
        (Some("1"), None) => Ok(()),
        (value, None) => Err(format!("1 came to {}", value.map_or(0, str::len))),
        (_, Some(error)) => Err(format!("1 ended with {}", error.code)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::collections::VecDeque;

    /// Which probes of a script fed the watchdog; nothing in the script is a probe that hangs.
    async fn fed(script: &[Option<Result<(), &str>>]) -> Vec<usize> {
        let (begun, fed, done) = (Cell::new(0), RefCell::new(Vec::new()), tokio::sync::Notify::new());
        let (script, probes) = (RefCell::new(VecDeque::from(script.to_vec())), Default::default());
        let probe = async || {
            let Some(step) = script.borrow_mut().pop_front() else {
                done.notify_one();
                return std::future::pending().await;
            };
            begun.set(begun.get() + 1);
            match step {
                Some(outcome) => outcome.map_err(str::to_owned),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = feed(Duration::from_millis(20), probe, || fed.borrow_mut().push(begun.get()), &probes) => {}
            () = done.notified() => {}
        }
        fed.into_inner()
    }

    #[tokio::test]
    async fn only_a_probe_that_passed_feeds_the_watchdog() {
        assert_eq!(fed(&[Some(Ok(())), Some(Err("no worker")), Some(Ok(()))]).await, [1, 3]);
    }

    #[tokio::test]
    async fn a_probe_that_hangs_is_given_up_and_does_not_feed() {
        assert_eq!(fed(&[None, Some(Ok(())), None, None, Some(Ok(()))]).await, [2, 5]);
    }
}
