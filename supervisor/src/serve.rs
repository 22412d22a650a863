//! From ready workers to the last answer.
//!
//! Owns the order: workers, then the socket, then readiness; on a signal no new work,
//! then a bounded drain, then the end of what still runs, then the workers.

use crate::admin;
use crate::audit::Event;
use crate::audit::event::{By, StopReason};
use crate::config::Config;
use crate::connection;
use crate::host::configured::Kept;
use crate::listener::{BindFault, Listener, Peer};
use crate::metrics;
use crate::notify;
use crate::pool::{Pool, WorkerSettings};
use crate::records::Records;
use crate::reload::{self, Source};
use crate::say;
use crate::service::{Phase, Service};
use crate::settings::{self, Arguments, Fault};
use crate::telemetry::Telemetry;
use crate::watchdog;
use brig_protocol::codes::RequestCode;
use brig_protocol::rpc::{self, ErrorData};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{UnixStream, unix::pipe};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

/// How often what is over its time is forgotten. Also keeps the runtime's timer armed,
/// so that starting a longer timer never has to wake another thread.
const HOUSEKEEPING: Duration = Duration::from_secs(1);
/// How often the journal is tidied.
const TIDYING: Duration = Duration::from_secs(60);
/// How long clients that were let in a moment before may take to say what they came for, and
/// hear that it is too late: they are not to lose their connection. Nobody waits for others.
const LAST_REQUESTS: Duration = Duration::from_millis(500);
/// How long the ended evaluations may take to be answered.
const LAST_ANSWERS: Duration = Duration::from_secs(3);
/// How long the workers may take to go.
const LAST_WORKERS: Duration = Duration::from_secs(5);

/// Runs brigd to its end.
///
/// # Errors
/// [`Fault`]: it could not start.
pub(crate) async fn run(config: Config, workers: WorkerSettings, arguments: &Arc<Arguments>) -> Result<(), Fault> {
    // Signals first: one that comes during the start must not be lost.
    let mut signals = Signals::new(arguments.exit_on_stdin_close)?;
    let sockets = notify::inherited_sockets().map_err(BindFault::Inherited)?;
    if sockets.client.is_none() && config.server.socket.is_none() && !arguments.check {
        return Err(Fault::NoSocket);
    }
    let pool = tokio::select! {
        pool = Pool::start(workers) => pool?,
        _ = signals.stop.received() => return Ok(()),
    };
    let sandbox = pool.sandbox();
    let layers = sandbox.layers.join(", ");
    // A check by hand has not the state directory that systemd gives to the service.
    let kept = if arguments.check { Kept::OnDisk } else { reload::kept(&config) };
    let catalogue = reload::functions(&config, arguments.config.as_deref(), kept);
    if arguments.check {
        let mut told = format!("brigd: the configuration is valid; workers are confined at level {} ({layers})\n", sandbox.level);
        told.push_str(&format!("brigd: read back from the kernel: {}\n", pool.stats().read_back.join(", ")));
        pool.shutdown().await;
        told.push_str(&format!("brigd: {} functions are configured\n", catalogue.count()));
        if let Some(first) = catalogue.writing().next().filter(|_| reload::kept(&config) == Kept::Nowhere) {
            told.push_str(&format!(
                "brigd: {first} may change something: it is used only where there is a state directory (server.state_dir, --state)\n"
            ));
        }
        say::out(&told).or_else(say::unless_closed).map_err(Fault::output)?;
        return if catalogue.disabled().is_empty() { Ok(()) } else { Err(Fault::Functions(catalogue.disabled().len())) };
    }
    // Before anyone can connect: what a crash left is told to whoever asks.
    let (_state, journal) = settings::journal(&config)?;
    let counters = settings::counters(&journal)?;
    // A start that fails must not leave a record that it began.
    let records = Records::open(&config)?;
    let listener = match sockets.client {
        Some(socket) => Listener::adopt(socket)?,
        None => Listener::bind(config.server.socket.as_deref().unwrap_or("".as_ref()), config.socket_mode()?)?,
    };
    let admin = match (sockets.admin, &config.server.admin_socket) {
        (Some(socket), _) => Some(Listener::adopt(socket)?),
        (None, Some(path)) => Some(Listener::bind(path, config.admin_socket_mode()?)?),
        (None, None) => None,
    };
    let figures = metrics::Door::open(&config.shown()?).await?;
    let source = Source::new(Arc::clone(arguments));
    let service = Service::new(config, Arc::clone(&pool), records, source, catalogue, (journal, counters))?;
    service.warn_at_the_start();
    service.audit.note(&Event::Started {
        version: env!("CARGO_PKG_VERSION"),
        level: &sandbox.level,
        layers: &sandbox.layers,
        policy: service.policy.current().version(),
    });
    tracing::info!(place = listener.place(), level = %sandbox.level, %layers, "brigd takes clients");
    notify::ready(&shown(&service));

    let exporting = Telemetry::start(&service);
    let tracker = TaskTracker::new();
    let keeping = tokio::spawn(Arc::clone(&service.approvals).keep());
    let admins = admin.map(|listener| {
        tracing::info!(place = listener.place(), "brigd takes admins");
        tokio::spawn(admin::accept(listener, Arc::clone(&service), tracker.clone()))
    });
    let cause = tokio::select! {
        () = accept(&listener, &service, &tracker) => "the end of its socket",
        () = keep_house(&service) => "the end of its time",
        () = tell_status(&service, signals.status) => "the end of its signals",
        () = reload_when_asked(&service, signals.reload) => "the end of its signals",
        () = figures.serve(&service) => "the end of its figures",
        () = watchdog::keep_fed(&service.pool, &service.metrics) => "the end of its watch",
        () = service.asked_to_stop() => "an operator",
        name = signals.stop.received() => name,
    };
    tracing::info!(cause, "brigd stops");
    // Before the path is gone: whoever sees that it is hears that it came too late.
    service.advance(Phase::Draining);
    // Dropping it removes the path: whoever comes now starts another brigd.
    drop(listener);
    notify::stopping("draining");
    // Operators can look on, and hurry it.
    drain(&service, &tracker, &mut signals.stop).await;
    keeping.abort();
    service.approvals.save();
    service.revocations.save();
    if let Some(admins) = admins {
        admins.abort();
    }
    service.telemetry.close(exporting).await;
    service.journal.close().await;
    if tokio::time::timeout(LAST_WORKERS, pool.shutdown()).await.is_err() {
        tracing::warn!("some workers were not reaped in time; they die with their nursery");
    }
    service.audit.close(StopReason::Signal(cause)).await;
    if arguments.exit_on_stdin_close {
        remove_private_folder(service.config.server.socket.as_deref());
    }
    tracing::info!(counters = %service.metrics.summary(), "brigd is done");
    Ok(())
}

/// Removes the folder that a client made for its private brigd, if nothing else is in it:
/// the client may have been killed, and then nobody else would.
fn remove_private_folder(socket: Option<&Path>) {
    if let Some(folder) = socket.and_then(Path::parent)
        && let Err(fault) = std::fs::remove_dir(folder)
    {
        tracing::debug!(%fault, "the folder of the socket is left");
    }
}

async fn accept(listener: &Listener, service: &Arc<Service>, tracker: &TaskTracker) {
    loop {
        let (stream, peer) = listener.accept().await;
        match service.doors.enter(peer.uid) {
            Ok(door) => {
                tracker.spawn(connection::serve(stream, peer, Arc::clone(service), door));
            }
            Err(setting) => {
                service.metrics.connections_refused.count();
                send_away(&stream, peer, setting);
            }
        }
    }
}

/// Tells a client that there is no room, without waiting for it.
fn send_away(stream: &UnixStream, peer: Peer, setting: &'static str) {
    tracing::debug!(uid = peer.uid, setting, "a client was sent away");
    let mut data = ErrorData::new(RequestCode::Overloaded, "there are as many connections as may be; nothing ran");
    data.setting = Some(setting.to_owned());
    data.retry_after_ms = Some(1_000);
    if let Err(fault) = stream.try_write(&rpc::error(None, &data)) {
        tracing::trace!(%fault, "it did not hear why");
    }
}

async fn keep_house(service: &Service) {
    let (mut told, mut tidied) = (shown(service), Instant::now());
    loop {
        tokio::time::sleep(HOUSEKEEPING).await;
        service.answers.expire(Instant::now());
        if tidied.elapsed() >= TIDYING {
            tidied = Instant::now();
            service.journal.tidy().await;
        }
        // Only what changed, and at most once a round.
        let now = shown(service);
        if now != told {
            notify::status(&now);
            told = now;
        }
    }
}

/// What `systemctl status` shows: confinement, workers, queue.
fn shown(service: &Service) -> String {
    let (running, waiting) = service.admission.counts();
    let pool = service.pool.stats();
    let sandbox = service.pool.sandbox();
    let mut text = format!(
        "level {}; workers {} ready, {} in use; evaluations {running} running, {waiting} waiting; vms {}",
        sandbox.level,
        pool.ready,
        pool.leased,
        service.vms.count()
    );
    let off = service.catalogue().disabled().len();
    if off > 0 {
        text.push_str(&format!("; {off} files of functions are not used: brig admin status"));
    }
    if pool.failures > 0 {
        text.push_str(&format!("; no worker could be made {} times in a row", pool.failures));
    }
    text
}

/// Lets what runs go on until the drain limit, or another signal. Clients stay
/// connected meanwhile, and hear that nothing new is taken.
async fn drain(service: &Service, connections: &TaskTracker, stop: &mut Stop) {
    service.advance(Phase::Draining);
    service.work.close();
    connections.close();
    service.expected.close();
    let done = async {
        tokio::select! {
            () = service.expected.wait() => {}
            () = tokio::time::sleep(LAST_REQUESTS) => {}
        }
        service.work.wait().await;
    };
    let hurry = tokio::select! {
        () = done => None,
        () = tokio::time::sleep(service.config.drain()) => Some("the drain limit has passed"),
        name = stop.received() => Some(name),
    };
    if let Some(hurry) = hurry {
        let (running, waiting) = service.admission.counts();
        tracing::warn!(running, waiting, hurry, "what still runs is ended");
    }
    service.advance(Phase::Ending);
    service.detached.close();
    let answered = async { tokio::join!(connections.wait(), service.detached.wait()) };
    if tokio::time::timeout(LAST_ANSWERS, answered).await.is_err() {
        tracing::warn!(connections = connections.len(), "some clients were not answered in time");
    }
}

/// On SIGUSR1: one line about everything.
async fn tell_status(service: &Service, mut asked: Signal) {
    while asked.recv().await.is_some() {
        let (running, queued) = service.admission.counts();
        let pool = service.pool.stats();
        tracing::info!(
            running,
            queued,
            vms = service.vms.count(),
            ready = pool.ready,
            coming = pool.coming,
            leased = pool.leased,
            ending = pool.ending,
            waiting = pool.waiting,
            nurseries = pool.nurseries,
            nurseries_started = pool.nurseries_started,
            workers = pool.workers_verified,
            abnormal_deaths = pool.abnormal_deaths,
            failures = pool.failures,
            last_failure = pool.last_failure,
            read_back_us = pool.read_back_time.as_micros(),
            cgroup_us = pool.cgroup_time.as_micros(),
            counters = %service.metrics.summary(),
            "status"
        );
    }
    // No more signals come: that is no reason to end.
    std::future::pending().await
}

/// On SIGHUP: the configuration is read again.
async fn reload_when_asked(service: &Arc<Service>, mut asked: Signal) {
    while asked.recv().await.is_some() {
        notify::reloading();
        let again = Arc::clone(service);
        match tokio::task::spawn_blocking(move || again.reload(By::Signal("SIGHUP"))).await {
            Ok(Ok(done)) => tell_reloaded(&done),
            Ok(Err(fault)) => tracing::error!(%fault, "the configuration was not reloaded; what held before still does"),
            Err(fault) => tracing::error!(%fault, "the configuration was not reloaded; what held before still does"),
        }
        notify::ready(&shown(service));
    }
    std::future::pending().await
}

/// One line; louder where a part of what the files say is not used.
fn tell_reloaded(done: &reload::Reloaded) {
    let after_restart = done.after_restart.join(", ");
    if done.off.is_empty() {
        tracing::info!(after_restart, warnings = done.warnings.len(), "the configuration was reloaded");
        return;
    }
    let off: Vec<String> = done.off.iter().map(ToString::to_string).collect();
    let not_used = off.join("; ");
    tracing::error!(
        after_restart,
        warnings = done.warnings.len(),
        not_used,
        "the configuration was reloaded, without some files of functions"
    );
}

/// The signals that mean something here.
struct Signals {
    stop: Stop,
    status: Signal,
    reload: Signal,
}

/// What stops brigd: signals, and the end of the pipe that whoever started it holds.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
    held: Option<pipe::Receiver>,
}

impl Signals {
    fn new(until_stdin_closes: bool) -> Result<Self, Fault> {
        let listen = |kind| signal(kind).map_err(|fault| Fault::System { what: "listen for signals", fault });
        // A file that may not grow is then an error of the write, and not the end of brigd.
        drop(listen(SignalKind::from_raw(nix::sys::signal::Signal::SIGXFSZ as i32))?);
        let held =
            until_stdin_closes.then(stdin_pipe).transpose().map_err(|fault| Fault::System { what: "watch standard input", fault })?;
        let stop = Stop { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())?, held };
        Ok(Self { stop, status: listen(SignalKind::user_defined1())?, reload: listen(SignalKind::hangup())? })
    }
}

impl Stop {
    async fn received(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            () = closed(self.held.as_ref()) => "the end of standard input",
        }
    }
}

/// Standard input, which has to be a pipe: only the end of one is an event.
fn stdin_pipe() -> std::io::Result<pipe::Receiver> {
    pipe::Receiver::from_owned_fd(std::io::stdin().as_fd().try_clone_to_owned()?)
}

/// Waits until nobody holds the other end; what is written there is read away.
async fn closed(held: Option<&pipe::Receiver>) {
    let Some(held) = held else { return std::future::pending().await };
    let mut ignored = [0; 64];
    loop {
        match held.readable().await.and_then(|()| held.try_read(&mut ignored)) {
            Ok(0) => return,
            Err(fault) if fault.kind() != std::io::ErrorKind::WouldBlock => return,
            Ok(_) | Err(_) => {}
        }
    }
}
