//! Coming to brigd's socket when many do at once.
//!
//! Owns the wait for a place in the socket's queue. Never tries again after anything but a
//! full queue.

use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::Instant;

/// How long a client waits for a place in the queue.
pub(super) const QUEUE_TIME: Duration = Duration::from_secs(20);
/// First pause between two attempts; each next one is longer by half.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// Longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Connects. Linux does not let a connection that does not block wait in a full queue, and
/// no event tells when there is room: so it is tried again until `deadline`.
///
/// # Errors
/// What the system said; `WouldBlock` when the queue was full until the deadline.
pub(super) async fn connect(path: &Path, deadline: Instant) -> io::Result<UnixStream> {
    let begun = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        match UnixStream::connect(path).await {
            Err(fault) if fault.kind() == io::ErrorKind::WouldBlock => {}
            outcome => return outcome,
        }
        let now = Instant::now();
        if now >= deadline {
            return Err(stayed_full(now - begun));
        }
        tokio::time::sleep_until(deadline.min(now + pause)).await;
        pause = (pause * 3 / 2).min(LONGEST_PAUSE);
    }
}

fn stayed_full(waited: Duration) -> io::Error {
    let waited = waited.as_secs_f64();
    let why =
        format!("brigd's queue of connections was full for {waited:.1} s: more connect than it takes, or it stands still; try again later");
    io::Error::new(io::ErrorKind::WouldBlock, why)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
    use super::super::Connection;
    use super::*;
    use tokio::net::{UnixListener, UnixSocket};

    /// How long the tests wait for what must happen.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// A socket with a queue of one, full with what is given back.
    async fn full(path: &Path) -> (UnixListener, Vec<UnixStream>) {
        let socket = UnixSocket::new_stream().unwrap();
        socket.bind(path).unwrap();
        let listener = socket.listen(1).unwrap();
        let mut queued = Vec::new();
        loop {
            match UnixStream::connect(path).await {
                Ok(stream) => queued.push(stream),
                Err(fault) => {
                    assert_eq!(fault.kind(), io::ErrorKind::WouldBlock, "{fault}");
                    return (listener, queued);
                }
            }
        }
    }

    #[tokio::test]
    async fn a_burst_that_is_larger_than_the_queue_waits_until_brigd_takes_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let (listener, queued) = full(&path).await;
        let mut burst: Vec<_> = (0..8).map(|_| Box::pin(Connection::open(&path))).collect();
        for one in &mut burst {
            tokio::select! {
                biased;
                outcome = one => panic!("told before there was room: {:?}", outcome.err()),
                () = std::future::ready(()) => {}
            }
        }
        let taken = tokio::spawn(async move {
            let mut taken = Vec::new();
            for _ in 0..queued.len() + 8 {
                taken.push(listener.accept().await.unwrap());
            }
            (queued, taken)
        });
        let mut connected = Vec::new();
        for one in burst {
            connected.push(tokio::time::timeout(PATIENCE, one).await.expect("there is room").unwrap());
        }
        tokio::time::timeout(PATIENCE, taken).await.expect("all are taken").unwrap();
    }

    #[tokio::test]
    async fn a_queue_that_stays_full_is_told_as_that_at_the_deadline() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let _full = full(&path).await;
        let deadline = Instant::now() + Duration::from_millis(100);
        let outcome = tokio::time::timeout(PATIENCE, Connection::open_by(&path, deadline)).await.expect("the deadline ends it");
        let told = outcome.err().unwrap();
        assert!(Instant::now() >= deadline && told.retryable() && told.nothing_ran());
        assert!(matches!(told, crate::Error::Connect { listening: true, .. }), "no private brigd takes its place");
        let told = told.to_string();
        assert!(told.starts_with("no brigd answers on ") && told.contains("brigd's queue of connections was full for "), "{told}");
    }

    #[tokio::test]
    async fn what_is_no_full_queue_is_told_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let deserted = folder.path().join("s");
        drop(std::os::unix::net::UnixListener::bind(&deserted).unwrap());
        for (path, kind) in [(deserted, io::ErrorKind::ConnectionRefused), (folder.path().join("none"), io::ErrorKind::NotFound)] {
            tokio::select! {
                biased;
                outcome = connect(&path, Instant::now() + PATIENCE) => assert_eq!(outcome.unwrap_err().kind(), kind),
                () = std::future::ready(()) => panic!("{kind} is waited for"),
            }
            let told = Connection::open(&path).await.err().unwrap();
            assert!(matches!(told, crate::Error::Connect { listening: false, .. }), "{told}");
        }
    }
}
