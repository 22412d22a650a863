//! Vms: workers that are kept, with their realm, between evaluations.
//!
//! Owns whose a vm is, who may use it when, and when it ends: idle, at the end of its
//! lifetime, disposed of, with the connection that made it, or with its worker. Never
//! runs a program: [`crate::evaluation`] does, with a [`Loan`]. An id of another
//! principal is as unknown as one that never was.
//!
//! Each vm has one task, its keeper, which holds the worker while nothing runs in it:
//! so a worker that dies, or speaks unasked, is noticed when it happens.

mod book;
mod keeper;
mod loan;

pub(crate) use book::Lost;
pub(crate) use loan::Loan;

use crate::config;
use crate::connection::budget::Held;
use crate::connection::link::Link;
use crate::evaluation::{self, Parties, Stop, StopCause};
use crate::host::table::FunctionTable;
use crate::policy::Grant;
use book::{Book, Entry, Quota, Removed};
use brig_protocol::client::{HostFunctions, VmCreateResult, VmInfo};
use brig_protocol::codes::RequestCode;
use brig_protocol::limits::Limits;
use brig_protocol::rpc::ErrorData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What holds for every evaluation in a vm, as it was said when the vm was made.
#[derive(Debug)]
pub(crate) struct Declared {
    /// JSON text of the collections.
    pub(crate) functions: Option<String>,
    /// The ceilings.
    pub(crate) limits: Limits,
    /// IANA time zone.
    pub(crate) time_zone: Option<String>,
    /// Room for the text.
    pub(crate) _held: Held,
}

impl Declared {
    /// The collections, read again from their text: they were checked when they came.
    pub(crate) fn functions(&self) -> HostFunctions<'_> {
        self.functions.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }
}

/// One vm, as its keeper and whoever borrows it see it.
#[derive(Debug)]
pub(crate) struct Vm {
    id: String,
    declared: Declared,
    /// Answers the calls of the functions in `declared`.
    link: Arc<Link>,
    dies: Instant,
    wants: mpsc::Sender<keeper::Want>,
    end: CancellationToken,
}

/// All vms.
#[derive(Debug)]
pub(crate) struct Vms {
    book: Mutex<Book>,
    bounds: config::Vms,
}

impl Vms {
    /// None yet.
    pub(crate) fn new(bounds: config::Vms) -> Arc<Self> {
        Arc::new(Self { book: Mutex::new(Book::new(bounds.most_each, bounds.most)), bounds })
    }

    /// Makes a vm with a fresh worker.
    ///
    /// # Errors
    /// The declarations are wrong, the quota is used up, or there is no worker.
    pub(crate) async fn create(self: &Arc<Self>, declared: Declared, parties: &Parties<'_>) -> Result<VmCreateResult, ErrorData> {
        let functions = declared.functions();
        let schemas = (&parties.service.schemas, parties.peer.uid);
        let (granted, offered) = parties.granted(None)?;
        let build = FunctionTable::build(Some(&functions), None, (granted, &offered), &declared.limits, schemas);
        parties.unless_stopped(build).await?;
        drop(functions);
        let uid = parties.peer.uid;
        self.lock().reserve(uid, quota(parties.grant).as_ref())?;
        let place = Place { vms: self, uid, taken: false };
        let lease = parties.lease_kept().await?;
        let id = evaluation::fresh_id("vm_")?;
        let now = Instant::now();
        let (wants, wanted) = mpsc::channel(1);
        let vm = Arc::new(Vm {
            id: id.clone(),
            declared,
            link: Arc::clone(parties.link),
            dies: now + self.lifetime(),
            wants,
            end: CancellationToken::new(),
        });
        place.fill(Entry::new(Arc::clone(&vm), uid, parties.connection, now));
        tokio::spawn(keeper::keep(Arc::clone(self), vm, lease, wanted));
        Ok(VmCreateResult { vm: id, idle_timeout_ms: self.bounds.idle_timeout_ms, lifetime_ms: self.bounds.lifetime_ms })
    }

    /// Borrows a vm for one evaluation, which ends when `stop` is asked for.
    ///
    /// # Errors
    /// `vm_not_found`, `vm_lost` or `vm_busy`; nothing ran.
    pub(crate) fn borrow(self: &Arc<Self>, uid: u32, id: &str, stop: &Arc<Stop>) -> Result<Loan, ErrorData> {
        let vm = self.lock().begin(uid, id, stop)?;
        Ok(Loan::new(Arc::clone(self), vm, self.bounds.cpu_ms))
    }

    /// Ends a vm; what runs in it is cancelled.
    ///
    /// # Errors
    /// `vm_not_found`.
    pub(crate) fn dispose(&self, uid: u32, id: &str) -> Result<(), ErrorData> {
        let removed = self.lock().dispose(uid, id)?;
        if let Some(removed) = removed {
            end(removed, StopCause::VmDisposed);
        }
        Ok(())
    }

    /// The vms of a principal, oldest first.
    pub(crate) fn list(&self, uid: u32) -> Vec<VmInfo> {
        self.lock().list(uid, Instant::now())
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.lock().count()
    }

    /// A connection is gone, and with it the functions of the vms that it made.
    pub(crate) fn end_connection(&self, connection: u64) {
        let removed = self.lock().lose_connection(connection);
        removed.into_iter().for_each(|removed| end(removed, StopCause::VmAbandoned));
    }

    /// A vm is no more; whoever asks for it is told why.
    fn lose(&self, id: &str, why: Lost) {
        let removed = self.lock().lose(id, why);
        if let Some(removed) = removed {
            tracing::info!(vm = id, why = why.sentence(), "a vm is lost");
            end(removed, StopCause::VmLifetime);
        }
    }

    /// The same when nothing has run in it for too long. Otherwise: when to look again.
    fn lose_if_idle(&self, id: &str, now: Instant) -> Option<Instant> {
        let since = self.lock().idle_since(id);
        match since {
            None => Some(now + self.idle_timeout()),
            Some(since) if now < since + self.idle_timeout() => Some(since + self.idle_timeout()),
            Some(_) => {
                self.lose(id, Lost::Idle);
                None
            }
        }
    }

    fn finish(&self, id: &str) {
        self.lock().finish(id, Instant::now());
    }

    const fn idle_timeout(&self) -> Duration {
        Duration::from_millis(self.bounds.idle_timeout_ms)
    }

    const fn lifetime(&self) -> Duration {
        Duration::from_millis(self.bounds.lifetime_ms)
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends what runs in a vm that is out of the book, and lets its keeper go.
fn end(removed: Removed, cause: StopCause) {
    if let Some(stop) = removed.running {
        stop.request(cause);
    }
    removed.vm.end.cancel();
}

/// A place in the quota while the worker is made; given back unless it is filled.
struct Place<'a> {
    vms: &'a Arc<Vms>,
    uid: u32,
    taken: bool,
}

impl Place<'_> {
    fn fill(mut self, entry: Entry) {
        self.taken = true;
        self.vms.lock().fill(entry);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.taken {
            self.vms.lock().give_up(self.uid);
        }
    }
}

/// How many vms policy lets this principal have, where it says so.
fn quota(grant: &Grant) -> Option<Quota> {
    let setting = format!("principals.{:?}.quotas.vms", grant.section);
    grant.quotas.vms.map(|most| Quota { most, setting })
}

/// A vm that this principal does not have; what another one has is not told apart.
fn not_found(id: &str) -> ErrorData {
    let id = brig_protocol::escape::escaped(id, 100);
    ErrorData::new(RequestCode::VmNotFound, format!("there is no vm {id:?}; nothing ran"))
}
