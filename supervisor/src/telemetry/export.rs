//! From the queue to the collector.
//!
//! Owns batches, and plain HTTP/1.1 to a collector on this host: one request a connection,
//! with a deadline. What a collector does not take is counted and forgotten: it is never
//! tried again, kept, or waited for by anybody.

use super::{Span, now_ns, otlp};
use crate::config::observe::{Endpoint, Told};
use crate::metrics::families;
use crate::service::Service;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};

/// Most spans of one request.
const BATCH: usize = 512;
/// How long spans are collected.
const GATHER: Duration = Duration::from_secs(1);
/// How long a collector may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a collector that takes nothing is told of in the log.
const COMPLAIN: Duration = Duration::from_secs(60);
/// Longest answer that is read, in bytes.
const ANSWER_BYTES: u64 = 1024;

/// Exports until nobody hands on spans any more.
pub(super) async fn run(mut queued: mpsc::Receiver<Span>, told: Told, service: Arc<Service>) {
    let began_ns = now_ns();
    let mut complaints = Complaints::default();
    let period = Duration::from_secs(told.metrics_seconds.max(1));
    let mut metrics = tokio::time::interval_at(Instant::now() + period, period);
    metrics.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        tokio::select! {
            biased;
            there_is = gathered(&mut queued, &mut batch) => {
                let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
                if count > 0 {
                    let sent = post(&told.endpoint, "/v1/traces", &otlp::traces(&batch)).await;
                    batch.clear();
                    let [exported, _, lost] = &service.metrics.spans;
                    if sent.is_ok() { exported.add(count) } else { lost.add(count) }
                    complaints.hear(sent);
                }
                if !there_is {
                    break;
                }
            }
            _ = metrics.tick(), if told.metrics_seconds > 0 => complaints.hear(export_metrics(&told, &service, began_ns).await),
        }
    }
    if told.metrics_seconds > 0 {
        complaints.hear(export_metrics(&told, &service, began_ns).await);
    }
}

async fn export_metrics(told: &Told, service: &Service, began_ns: u64) -> io::Result<()> {
    post(&told.endpoint, "/v1/metrics", &otlp::metrics(&families(service), began_ns, now_ns())).await
}

/// Gathers spans: as many as a request has, or for as long as may be. `false`: no more come.
/// What was gathered stays when the future is dropped.
async fn gathered(queued: &mut mpsc::Receiver<Span>, batch: &mut Vec<Span>) -> bool {
    if batch.is_empty() {
        match queued.recv().await {
            Some(span) => batch.push(span),
            None => return false,
        }
    }
    let until = Instant::now() + GATHER;
    while batch.len() < BATCH {
        match tokio::time::timeout_at(until, queued.recv()).await {
            Ok(Some(span)) => batch.push(span),
            Ok(None) => return false,
            Err(_) => break,
        }
    }
    true
}

/// Tells the log, but not all the time.
#[derive(Default)]
struct Complaints {
    last: Option<Instant>,
}

impl Complaints {
    fn hear(&mut self, sent: io::Result<()>) {
        let Err(fault) = sent else { return };
        if self.last.is_none_or(|last| last.elapsed() >= COMPLAIN) {
            self.last = Some(Instant::now());
            tracing::warn!(%fault, "the collector takes no telemetry; evaluations go on without it");
        }
    }
}

async fn post(endpoint: &Endpoint, path: &str, body: &[u8]) -> io::Result<()> {
    let posted = async {
        match endpoint {
            Endpoint::Port(address) => speak(TcpStream::connect(address).await?, &address.to_string(), path, body).await,
            Endpoint::Socket(socket) => speak(UnixStream::connect(socket).await?, "localhost", path, body).await,
        }
    };
    let late = |_| Err(io::Error::new(io::ErrorKind::TimedOut, "it did not answer in time"));
    tokio::time::timeout(PATIENCE, posted).await.unwrap_or_else(late)
}

async fn speak<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, host: &str, path: &str, body: &[u8]) -> io::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: brigd/{version}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    let mut bounded = stream.take(ANSWER_BYTES);
    // The first line is all that counts.
    while !answer.contains(&b'\n') && bounded.read_buf(&mut answer).await? > 0 {}
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.lines().next().and_then(|line| line.strip_prefix("HTTP/1.")).and_then(|line| line.split(' ').nth(1));
    match status {
        Some(status) if status.len() == 3 && status.starts_with('2') => Ok(()),
        Some(status) => Err(io::Error::other(format!("it answered {}", brig_protocol::escape::escaped(status, 20)))),
        None => Err(io::Error::other("it gave no answer of HTTP")),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    async fn told(answer: &'static [u8]) -> Result<(), String> {
        let (ours, mut theirs) = tokio::io::duplex(64 * 1024);
        let answering = async move {
            let mut asked = [0; 4096];
            let length = theirs.read(&mut asked).await.unwrap();
            theirs.write_all(answer).await.ok();
            drop(theirs);
            length
        };
        let (said, length) = tokio::join!(speak(ours, "127.0.0.1:1", "/v1/traces", b"{}"), answering);
        assert!(length > 0);
        said.map_err(|fault| fault.to_string())
    }

    #[tokio::test]
    async fn only_a_yes_is_one_and_an_answer_is_read_no_further_than_its_bound() {
        assert_eq!(told(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await, Ok(()));
        assert_eq!(told(b"HTTP/1.0 202 Accepted\r\n\r\n").await, Ok(()));
        assert!(told(b"HTTP/1.1 503 Busy\r\n\r\n").await.unwrap_err().contains("503"));
        assert!(told(b"HTTP/1.1 2\x1b[31m OK\r\n\r\n").await.is_err());
        assert!(told(b"SSH-2.0-x\r\n").await.is_err());
        assert!(told(b"").await.is_err());
        assert!(told(&[b'x'; 10_000]).await.is_err());
    }
}
