//! The one thread that touches the store.
//!
//! Owns the bounded queue of jobs and the group commit: whoever writes at the same time
//! shares one transaction, and one wait for the disk. Jobs keep their order. Never drops
//! a job in silence: each one hears how it ended, after the commit.

use super::{Figures, JournalFault, Level, store};
use rusqlite::Connection;
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, oneshot};

/// Most jobs that wait; whoever has another waits with it.
const QUEUE: usize = 256;
/// Most jobs of one transaction.
const BATCH: usize = 64;

/// Says how the commit ended, to whoever waits for it.
type Told = Box<dyn FnOnce(Result<(), &JournalFault>) + Send>;

type Work = Box<dyn FnOnce(&Connection) -> Told + Send>;
type Look = Box<dyn FnOnce(Result<&Connection, &JournalFault>) + Send>;

enum Job {
    Write { level: Level, work: Work },
    Read(Look),
}

/// A way to the thread.
#[derive(Debug)]
pub(super) struct Writer {
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    done: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Writer {
    /// Starts the thread with this store, or with one in memory once there is a job.
    ///
    /// # Errors
    /// When no thread can be made.
    pub(super) fn start(connection: Option<Connection>, figures: Arc<Figures>) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let (ended, done) = oneshot::channel();
        std::thread::Builder::new().name("brigd-journal".to_owned()).spawn(move || {
            serve(connection, queue, &figures);
            // Nobody may wait for the end: that is no fault.
            ended.send(()).ok();
        })?;
        Ok(Self { jobs: Mutex::new(Some(jobs)), done: Mutex::new(Some(done)) })
    }

    /// Does `work` in a transaction; its result comes once that is committed.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        level: Level,
        work: impl FnOnce(&Connection) -> Result<T, JournalFault> + Send + 'static,
    ) -> Result<T, JournalFault> {
        let (sender, answer) = oneshot::channel();
        let work = Box::new(move |connection: &Connection| -> Told {
            let done = in_savepoint(connection, work);
            Box::new(move |committed| {
                let outcome = committed.map_err(Clone::clone).and(done);
                // What nobody takes is dropped here, and its guards act.
                drop(sender.send(outcome));
            })
        });
        self.send(Job::Write { level, work }).await?;
        answer.await.unwrap_or_else(|_| Err(JournalFault::Store("no transaction could begin; the log says why".to_owned())))
    }

    /// Does `work`, which only reads, after every write that came before it.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, JournalFault> + Send + 'static,
    ) -> Result<T, JournalFault> {
        let (sender, answer) = oneshot::channel();
        let job = Job::Read(Box::new(move |connection| {
            drop(sender.send(connection.map_err(Clone::clone).and_then(work)));
        }));
        self.send(job).await?;
        answer.await.unwrap_or(Err(JournalFault::Closed))
    }

    /// Queues a write that nobody waits for. `false`: there is no room for it.
    pub(super) fn write_later(&self, work: impl FnOnce(&Connection) -> Result<(), JournalFault> + Send + 'static) -> bool {
        let work = Box::new(move |connection: &Connection| -> Told {
            let done = in_savepoint(connection, work);
            Box::new(move |committed| {
                if let Err(fault) = committed.map_err(Clone::clone).and(done) {
                    tracing::error!(%fault, "something is not in the journal");
                }
            })
        });
        self.sender().is_some_and(|jobs| jobs.try_send(Job::Write { level: Level::Crash, work }).is_ok())
    }

    /// Does `work` as [`Self::write`] or [`Self::read`] would, and blocks the thread until it
    /// is done. For threads that may wait; it does not panic on others.
    pub(super) fn blocking<T: Send + 'static>(
        &self,
        level: Option<Level>,
        work: impl FnOnce(&Connection) -> Result<T, JournalFault> + Send + 'static,
    ) -> Result<T, JournalFault> {
        let (sender, answer) = std::sync::mpsc::sync_channel(1);
        let mut job = match level {
            None => Job::Read(Box::new(move |connection| {
                sender.send(connection.map_err(Clone::clone).and_then(work)).ok();
            })),
            Some(level) => Job::Write {
                level,
                work: Box::new(move |connection| {
                    let done = in_savepoint(connection, work);
                    Box::new(move |committed| {
                        sender.send(committed.map_err(Clone::clone).and(done)).ok();
                    })
                }),
            },
        };
        let until = std::time::Instant::now() + super::WAIT;
        let jobs = self.sender().ok_or(JournalFault::Closed)?;
        loop {
            match jobs.try_send(job) {
                Ok(()) => break,
                Err(mpsc::error::TrySendError::Closed(_)) => return Err(JournalFault::Closed),
                Err(mpsc::error::TrySendError::Full(_)) if std::time::Instant::now() >= until => return Err(JournalFault::Slow),
                Err(mpsc::error::TrySendError::Full(back)) => job = back,
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let left = until.saturating_duration_since(std::time::Instant::now());
        answer.recv_timeout(left).unwrap_or(Err(JournalFault::Slow))
    }

    /// Takes no more jobs, and waits until those that wait are done.
    pub(super) async fn close(&self) {
        drop(self.jobs.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take());
        let done = self.done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(done) = done {
            // An error is the end of the thread too.
            done.await.ok();
        }
    }

    async fn send(&self, job: Job) -> Result<(), JournalFault> {
        let jobs = self.sender().ok_or(JournalFault::Closed)?;
        jobs.send(job).await.map_err(|_| JournalFault::Closed)
    }

    fn sender(&self) -> Option<mpsc::Sender<Job>> {
        self.jobs.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

/// What one job does is undone when it fails, and nothing else is.
fn in_savepoint<T>(connection: &Connection, work: impl FnOnce(&Connection) -> Result<T, JournalFault>) -> Result<T, JournalFault> {
    connection.prepare_cached("SAVEPOINT job")?.execute([])?;
    let done = work(connection);
    let close = if done.is_ok() { "RELEASE job" } else { "ROLLBACK TO job" };
    match (connection.prepare_cached(close).and_then(|mut close| close.execute([])), done) {
        (Ok(_), done) => done,
        (Err(_), Err(fault)) => Err(fault),
        (Err(fault), Ok(_)) => Err(fault.into()),
    }
}

fn serve(connection: Option<Connection>, mut queue: mpsc::Receiver<Job>, figures: &Figures) {
    let mut connection = connection.map(Ok);
    let mut level = None;
    let mut next = queue.blocking_recv();
    while let Some(job) = next.take() {
        let open = connection.get_or_insert_with(|| store::in_memory().map_err(JournalFault::from));
        let mut batch = Vec::new();
        match job {
            Job::Read(work) => work(open.as_ref()),
            Job::Write { level, work } => batch.push((level, work)),
        }
        while !batch.is_empty() && batch.len() < BATCH {
            match queue.try_recv() {
                Ok(Job::Write { level, work }) => batch.push((level, work)),
                Ok(read) => {
                    next = Some(read);
                    break;
                }
                Err(_) => break,
            }
        }
        if !batch.is_empty() {
            let begun = std::time::Instant::now();
            let done = commit(open.as_ref(), batch, &mut level);
            figures.committed(begun.elapsed(), done);
        }
        if next.is_none() {
            next = queue.blocking_recv();
        }
    }
    if let Some(Ok(connection)) = connection
        && let Err((_, fault)) = connection.close()
    {
        tracing::warn!(%fault, "the journal was not closed");
    }
}

/// One transaction for all of them; whether it was committed.
fn commit(connection: Result<&Connection, &JournalFault>, batch: Vec<(Level, Work)>, current: &mut Option<Level>) -> bool {
    let level = batch.iter().map(|(level, _)| *level).max();
    let mut told: Vec<Told> = Vec::with_capacity(batch.len());
    let done = connection.map_err(Clone::clone).and_then(|connection| {
        begin(connection, level, current)?;
        told.extend(batch.into_iter().map(|(_, work)| work(connection)));
        connection.prepare_cached("COMMIT")?.execute([]).map(drop).map_err(|fault| {
            // A full disk may have ended the transaction already.
            connection.execute_batch("ROLLBACK").ok();
            JournalFault::from(fault)
        })
    });
    if let Err(fault) = &done {
        tracing::error!(%fault, "a transaction of the journal failed");
    }
    for tell in told {
        tell(done.as_ref().copied());
    }
    done.is_ok()
}

fn begin(connection: &Connection, level: Option<Level>, current: &mut Option<Level>) -> Result<(), JournalFault> {
    if *current != level {
        let synchronous = if level == Some(Level::Power) { "FULL" } else { "NORMAL" };
        connection.pragma_update(None, "synchronous", synchronous)?;
        *current = level;
    }
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn put(key: &'static str) -> impl FnOnce(&Connection) -> Result<(), JournalFault> + Send + 'static {
        move |connection| {
            connection.execute("INSERT INTO counters VALUES (1, ?1, 0, '1', 0)", [key])?;
            Ok(())
        }
    }

    fn count(connection: &Connection) -> Result<i64, JournalFault> {
        Ok(connection.query_row("SELECT count(*) FROM counters", [], |row| row.get(0))?)
    }

    #[tokio::test]
    async fn a_job_that_fails_undoes_itself_and_no_other_of_its_transaction() {
        let writer = Writer::start(None, Arc::default()).unwrap();
        let twice = |connection: &Connection| {
            put("b")(connection)?;
            put("b")(connection)
        };
        let (first, second, third) =
            tokio::join!(writer.write(Level::Power, put("a")), writer.write(Level::Crash, twice), writer.write(Level::Crash, put("c")));
        assert!(first.is_ok() && second.is_err() && third.is_ok());
        assert_eq!(writer.read(count).await, Ok(2));
    }

    #[tokio::test]
    async fn what_waits_is_written_before_the_end_and_nothing_is_taken_after_it() {
        let writer = Writer::start(None, Arc::default()).unwrap();
        assert!(writer.write_later(put("a")));
        writer.close().await;
        assert_eq!(writer.write(Level::Power, put("b")).await, Err(JournalFault::Closed));
        assert!(!writer.write_later(put("c")));
    }

    #[tokio::test]
    async fn a_full_store_refuses_writes_and_goes_on_reading() {
        let writer = Writer::start(None, Arc::default()).unwrap();
        writer.write(Level::Crash, put("a")).await.unwrap();
        let limit = |connection: &Connection| {
            let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
            connection.pragma_update(None, "max_page_count", pages)?;
            Ok(())
        };
        writer.read(limit).await.unwrap();
        let large = |connection: &Connection| {
            connection.execute("INSERT INTO counters VALUES (1, ?1, 0, '1', 0)", ["x".repeat(100_000)])?;
            Ok(())
        };
        assert!(matches!(writer.write(Level::Power, large).await, Err(JournalFault::Store(_))));
        assert_eq!(writer.read(count).await, Ok(1));
        writer.write(Level::Power, put("small")).await.unwrap();
    }
}
