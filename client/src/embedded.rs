//! A private brigd: found, started, awaited and ended by the client that needs it.
//!
//! Owns the search for the binary and the life of the process. The process can not
//! outlive its client: its standard input is a pipe that only the client holds, and it
//! ends when that closes (`--exit-on-stdin-close`), however the client ended. Never
//! touches a brigd that somebody else started.

use crate::connection::Connection;
use crate::error::Error;
use brig_protocol::escape::ShowPath as _;
use brig_protocol::escape::escaped;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::Instant;

/// Where the service listens.
pub const SERVICE_SOCKET: &str = "/run/brig/brig.sock";
/// Longest path a Unix socket can have, in bytes.
const SOCKET_PATH_BYTES: usize = 107;
/// How long a private brigd may take to end in good order.
const STOP_TIME: Duration = Duration::from_secs(5);
/// First pause between two attempts to connect; each next one is longer by half.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// Longest pause between two attempts to connect.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// How much of what brigd said last is kept, in bytes.
const LOG_BYTES: usize = 8 * 1024;

/// How a client comes to a brigd.
///
/// In this order: the socket that was named here or in `BRIG_SOCKET` (which must answer
/// then), the service's socket when something answers there, a private brigd. The
/// binary is the one named here or in `BRIGD`, else `brigd` beside this executable,
/// else the first on `PATH`.
#[derive(Clone, Debug)]
pub struct StartOptions {
    socket: Option<PathBuf>,
    private: bool,
    brigd: Option<PathBuf>,
    arguments: Vec<OsString>,
    ready_within: Duration,
    inherit_stderr: bool,
}

impl Default for StartOptions {
    fn default() -> Self {
        Self {
            socket: None,
            private: false,
            brigd: None,
            arguments: Vec::new(),
            ready_within: Duration::from_secs(20),
            inherit_stderr: false,
        }
    }
}

/// A socket to try first.
pub(crate) struct SocketChoice {
    pub(crate) path: PathBuf,
    /// Whether somebody asked for this one, so that no other will do.
    pub(crate) named: bool,
}

impl StartOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses the brigd on this socket and no other.
    #[must_use]
    pub fn socket(mut self, path: impl Into<PathBuf>) -> Self {
        self.socket = Some(path.into());
        self
    }

    /// Starts a private brigd even when the service is there.
    #[must_use]
    pub const fn private(mut self) -> Self {
        self.private = true;
        self
    }

    /// The binary to start.
    #[must_use]
    pub fn brigd(mut self, path: impl Into<PathBuf>) -> Self {
        self.brigd = Some(path.into());
        self
    }

    /// One more argument for the private brigd.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// How long the private brigd may take until it answers; 20 s when nobody says.
    #[must_use]
    pub const fn ready_within(mut self, time: Duration) -> Self {
        self.ready_within = time;
        self
    }

    /// Lets the private brigd write its log to this process's standard error.
    #[must_use]
    pub const fn inherit_stderr(mut self) -> Self {
        self.inherit_stderr = true;
        self
    }

    pub(crate) fn socket_to_use(&self) -> Option<SocketChoice> {
        if self.private {
            return None;
        }
        let named = self.socket.clone().or_else(|| std::env::var_os("BRIG_SOCKET").filter(|value| !value.is_empty()).map(PathBuf::from));
        let named_by_someone = named.is_some();
        Some(SocketChoice { path: named.unwrap_or_else(|| PathBuf::from(SERVICE_SOCKET)), named: named_by_someone })
    }
}

/// Finds a binary of brig: the one that `variable` names, else `name` beside this
/// executable, else the first `name` on `PATH`.
///
/// # Errors
/// A sentence that says where it was looked for.
pub fn find_binary(name: &str, variable: &str) -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from) {
        return if is_executable(&named) {
            Ok(named)
        } else {
            Err(format!("{variable} names {}, which is not an executable file", named.shown()))
        };
    }
    let beside = std::env::current_exe().ok().and_then(|own| own.parent().map(|folder| folder.join(name)));
    if let Some(found) = beside.filter(|path| is_executable(path)) {
        return Ok(found);
    }
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&on_path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|path| is_executable(path))
        .ok_or_else(|| format!("there is no {name} beside this executable or on PATH; install it there, or name it in {variable}"))
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

/// A brigd that this process started.
#[derive(Debug)]
pub(crate) struct PrivateServer {
    binary: PathBuf,
    socket: PathBuf,
    child: Child,
    /// Kept here, because waiting for a child closes what it holds of this.
    held: Option<ChildStdin>,
    log: Arc<Mutex<Vec<u8>>>,
    _folder: TempDir,
}

impl PrivateServer {
    pub(crate) fn binary(&self) -> &Path {
        &self.binary
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Asks it to end by closing its standard input, and waits until it has.
    pub(crate) async fn stop(mut self) {
        drop(self.held.take());
        tokio::time::timeout(STOP_TIME, self.child.wait()).await.ok();
        // What is left, if anything, is killed by the drop.
    }

    /// What brigd said last, made safe to print.
    fn last_words(&self) -> String {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&log);
        let lines: Vec<String> = text.lines().rev().filter(|line| !line.trim().is_empty()).take(5).map(|line| escaped(line, 500)).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n  ")
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        // `id` is there as long as the process was not reaped, so that its group can
        // not be somebody else's by now. Workers are not in the group's mercy: they end
        // with brigd by themselves.
        if let Some(group) = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw) {
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        }
    }
}

/// Starts a private brigd and opens the first connection to it.
pub(crate) async fn start(options: &StartOptions) -> Result<(PrivateServer, Connection), Error> {
    let binary = match &options.brigd {
        Some(named) => named.clone(),
        None => find_binary("brigd", "BRIGD").map_err(|why| Error::Start(format!("no brigd to start: {why}")))?,
    };
    let folder = private_folder().map_err(|fault| Error::Start(format!("no private directory for brigd's socket: {fault}")))?;
    let mut server = spawn(binary, folder, options)?;
    let connection = await_ready(&mut server, options.ready_within).await?;
    Ok((server, connection))
}

/// A directory that only this user can enter, on a path short enough for a socket.
fn private_folder() -> io::Result<TempDir> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let made = runtime.and_then(|place| make_folder(&place).ok());
    match made.filter(|folder| socket_in(folder.path()).as_os_str().len() <= SOCKET_PATH_BYTES) {
        Some(folder) => Ok(folder),
        None => make_folder(Path::new("/tmp")),
    }
}

fn make_folder(place: &Path) -> io::Result<TempDir> {
    tempfile::Builder::new().prefix("brig-").permissions(std::fs::Permissions::from_mode(0o700)).tempdir_in(place)
}

fn socket_in(folder: &Path) -> PathBuf {
    folder.join("brig.sock")
}

fn spawn(binary: PathBuf, folder: TempDir, options: &StartOptions) -> Result<PrivateServer, Error> {
    let socket = socket_in(folder.path());
    let mut command = Command::new(&binary);
    // They are this process's own affair with its service manager.
    for variable in ["NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID", "WATCHDOG_USEC", "WATCHDOG_PID"] {
        command.env_remove(variable);
    }
    // Empty counts as unset, as for this library's own variables; brigd would refuse it.
    if std::env::var_os("BRIG_WORKER").is_some_and(|named| named.is_empty()) {
        command.env_remove("BRIG_WORKER");
    }
    let mut child = command
        .arg("--socket")
        .arg(&socket)
        .arg("--exit-on-stdin-close")
        .args(&options.arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(if options.inherit_stderr { Stdio::inherit() } else { Stdio::piped() })
        // A Ctrl-C at the terminal is for the client, which cancels and still wants the answer.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|fault| Error::Start(format!("{} can not be started: {fault}", binary.shown())))?;
    let log = Arc::new(Mutex::new(Vec::new()));
    if let Some(stderr) = child.stderr.take() {
        tokio::spawn(keep_last(stderr, Arc::clone(&log)));
    }
    let held = child.stdin.take();
    Ok(PrivateServer { binary, socket, child, held, log, _folder: folder })
}

/// Reads a log to its end, so that its writer never waits, and keeps the last of it.
async fn keep_last(mut log: impl tokio::io::AsyncRead + Unpin, kept: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = vec![0; 4096];
    while let Ok(length @ 1..) = log.read(&mut buffer).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(buffer.get(..length).unwrap_or_default());
        let surplus = kept.len().saturating_sub(LOG_BYTES);
        kept.drain(..surplus);
    }
}

/// Waits until brigd accepts, or ends, or has taken too long.
async fn await_ready(server: &mut PrivateServer, within: Duration) -> Result<Connection, Error> {
    let deadline = Instant::now() + within;
    let mut pause = FIRST_PAUSE;
    loop {
        match Connection::open_by(&server.socket, deadline).await {
            Ok(connection) => return Ok(connection),
            Err(_) if Instant::now() < deadline => {}
            Err(fault) => return Err(Error::Start(with_last_words(server, &format!("was not ready within {within:?} ({fault})")))),
        }
        // Its end is the one event to wait for; otherwise it is asked again.
        if let Ok(status) = tokio::time::timeout(pause, server.child.wait()).await {
            let ended = status.map_or_else(|fault| fault.to_string(), |status| status.to_string());
            drain_log(server).await;
            return Err(Error::Start(with_last_words(server, &format!("ended before it was ready ({ended})"))));
        }
        pause = (pause * 3 / 2).min(LONGEST_PAUSE);
    }
}

/// Lets the log's reader come to the end of what a dead brigd wrote.
async fn drain_log(server: &PrivateServer) {
    let read_out = async {
        while Arc::strong_count(&server.log) > 1 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_millis(500), read_out).await.ok();
}

fn with_last_words(server: &PrivateServer, what: &str) -> String {
    let said = server.last_words();
    let started = format!("{} was started, but {what}", server.binary.shown());
    if said.is_empty() { started } else { format!("{started}; it said:\n  {said}") }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn script(folder: &Path, text: &str) -> PathBuf {
        let path = folder.join("fake-brigd");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn the_private_directory_is_for_its_owner_only() {
        let folder = private_folder().unwrap();
        assert_eq!(std::fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[tokio::test]
    async fn a_brigd_that_ends_at_once_is_told_with_its_last_words() {
        let folder = tempfile::tempdir().unwrap();
        let binary = script(folder.path(), "echo 'brigd: no worker binary' >&2; exit 3");
        let fault = start(&StartOptions::new().brigd(&binary)).await.err().unwrap().to_string();
        assert!(fault.contains("exit status: 3") && fault.contains("no worker binary"), "{fault}");
    }

    #[tokio::test]
    async fn a_brigd_that_never_listens_keeps_its_standard_input_until_it_is_given_up_and_killed() {
        let folder = tempfile::tempdir().unwrap();
        let pid_file = folder.path().join("pid");
        let binary = script(folder.path(), &format!("echo $$ > {}; exec cat", pid_file.shown()));
        let options = StartOptions::new().brigd(&binary).ready_within(Duration::from_millis(300));
        let fault = start(&options).await.err().unwrap().to_string();
        assert!(fault.contains("not ready within 300ms"), "{fault}");
        let pid: i32 = std::fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
        let stat = PathBuf::from(format!("/proc/{pid}/stat"));
        let gone = async {
            // A zombie until the runtime reaps it, but no longer a running process.
            while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z")) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), gone).await.unwrap();
    }

    #[tokio::test]
    async fn a_binary_that_is_not_there_is_told() {
        let fault = start(&StartOptions::new().brigd("/nowhere/brigd")).await.err().unwrap().to_string();
        assert!(fault.contains("/nowhere/brigd can not be started"), "{fault}");
    }
}
