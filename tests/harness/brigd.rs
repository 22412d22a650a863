//! Starting and stopping the real brigd.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::client::{Client, DEADLINE};
use tempfile::TempDir;

/// The folder with the binaries of this build.
fn build_folder() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let deps = test.parent().expect("a test lies in a folder");
    let folder = if deps.ends_with("deps") { deps.parent().expect("deps lies in a folder") } else { deps };
    folder.to_owned()
}

/// Path of one of the workspace's binaries.
///
/// # Panics
/// When it was not built: `cargo build --workspace` comes before the tests.
#[must_use]
pub fn binary(name: &str) -> PathBuf {
    built(name).unwrap_or_else(|| panic!("{name} is not built; run tests/run, or `cargo build --workspace --all-features` first"))
}

/// The same, if it was built.
#[must_use]
pub fn built(name: &str) -> Option<PathBuf> {
    let path = build_folder().join(name);
    path.exists().then_some(path)
}

/// A command that runs as another user when the tests run as root, else as this user.
#[must_use]
pub fn as_user(uid: u32, program: &Path) -> Command {
    use std::os::unix::process::CommandExt as _;
    let mut command = Command::new(program);
    if nix::unistd::geteuid().is_root() {
        command.uid(uid).gid(uid);
    }
    command
}

/// How brigd is to be started.
#[derive(Clone, Debug, Default)]
pub struct BrigdOptions {
    /// More arguments.
    pub args: Vec<String>,
    /// Text of a configuration file.
    pub config: Option<String>,
    /// Run as this user (only as root).
    pub uid: Option<u32>,
    /// With an admin socket and a state folder.
    pub admin: bool,
    /// More of the environment.
    pub env: Vec<(String, String)>,
}

impl BrigdOptions {
    /// With one more argument.
    #[must_use]
    pub fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    /// With a configuration.
    #[must_use]
    pub fn config(mut self, text: &str) -> Self {
        self.config = Some(text.to_owned());
        self
    }

    /// With an admin socket, and a state folder, both where everybody may reach them.
    #[must_use]
    pub const fn admin(mut self) -> Self {
        self.admin = true;
        self
    }

    /// With its state in this folder.
    #[must_use]
    pub fn state(self, folder: &Path) -> Self {
        self.arg("--state").arg(&folder.display().to_string())
    }

    /// With a variable in its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts it and waits until it says that it is ready.
    #[must_use]
    pub fn start(self) -> Brigd {
        self.try_start().unwrap_or_else(|log| panic!("brigd did not start:\n{log}"))
    }

    /// Starts it; its log when it ended instead of getting ready.
    ///
    /// # Errors
    /// The log and exit status.
    pub fn try_start(self) -> Result<Brigd, String> {
        Brigd::spawn(&self)
    }
}

/// A running brigd in a folder of its own.
#[derive(Debug)]
pub struct Brigd {
    child: Child,
    folder: TempDir,
}

impl Brigd {
    /// With the embedded default.
    #[must_use]
    pub fn start() -> Self {
        BrigdOptions::default().start()
    }

    fn spawn(options: &BrigdOptions) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("brig-test-").tempdir().expect("a temporary folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("mode of the folder");
        let notify = UnixDatagram::bind(folder.path().join("notify")).expect("a notify socket");
        fs::set_permissions(folder.path().join("notify"), fs::Permissions::from_mode(0o777)).expect("mode of the notify socket");
        let run = folder.path().join("run");
        fs::create_dir(&run).expect("a run folder");
        let log = File::create(folder.path().join("log")).expect("a log file");
        let program = binary("brigd");
        let mut command = match options.uid {
            Some(uid) => {
                std::os::unix::fs::chown(&run, Some(uid), Some(uid)).expect("owner of the run folder");
                as_user(uid, &program)
            }
            None => Command::new(program),
        };
        if let Some(text) = &options.config {
            let path = folder.path().join("brig.toml");
            fs::write(&path, text).expect("the configuration");
            command.arg("--config").arg(path);
        }
        command.arg("--socket").arg(run.join("brig.sock")).args(&options.args);
        command.envs(options.env.iter().cloned()).env_remove("STATE_DIRECTORY");
        if options.admin {
            command.arg("--admin-socket").arg(run.join("admin.sock"));
            if !options.args.iter().any(|argument| argument == "--state") {
                command.arg("--state").arg(run.join("state"));
            }
        }
        command.env("NOTIFY_SOCKET", folder.path().join("notify")).env_remove("JOURNAL_STREAM").current_dir("/");
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("the log twice")).stderr(log);
        let child = command.spawn().expect("brigd starts");
        let mut brigd = Self { child, folder };
        brigd.wait_until_ready(&notify)?;
        if options.admin {
            // Who may speak is to be decided by brigd, not by the mode of the files.
            for socket in [brigd.socket(), brigd.admin_socket()] {
                fs::set_permissions(socket, fs::Permissions::from_mode(0o666)).expect("the mode of a socket");
            }
        }
        Ok(brigd)
    }

    fn wait_until_ready(&mut self, notify: &UnixDatagram) -> Result<(), String> {
        notify.set_read_timeout(Some(Duration::from_millis(50))).expect("a time-out");
        let deadline = Instant::now() + DEADLINE;
        let mut buffer = [0u8; 4096];
        while Instant::now() < deadline {
            if let Ok(length) = notify.recv(&mut buffer) {
                let text = String::from_utf8_lossy(buffer.get(..length).unwrap_or_default()).into_owned();
                if text.lines().any(|line| line == "READY=1") {
                    return Ok(());
                }
            }
            if let Some(status) = self.child.try_wait().expect("its status") {
                return Err(format!("{}\n{status}", self.log()));
            }
        }
        Err(format!("{}\nnot ready in time", self.log()))
    }

    /// Path of its socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("run/brig.sock")
    }

    /// Path of its admin socket.
    #[must_use]
    pub fn admin_socket(&self) -> PathBuf {
        self.folder.path().join("run/admin.sock")
    }

    /// A new connection to its admin socket as this process.
    #[must_use]
    pub fn admin(&self) -> Client {
        Client::connect(&self.admin_socket())
    }

    /// The folder it lives in.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What it logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A new connection.
    #[must_use]
    pub fn connect(&self) -> Client {
        Client::connect(&self.socket())
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.pid()).expect("a pid"));
        nix::sys::signal::kill(pid, signal).expect("a signal");
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().expect("its status") {
                return status;
            }
            assert!(Instant::now() < deadline, "brigd did not end:\n{}", self.log());
            std::thread::yield_now();
        }
    }

    /// All processes below it, by process id, with their names.
    #[must_use]
    pub fn descendants(&self) -> Vec<(u32, String)> {
        descendants_of(self.pid())
    }

    /// Resident memory of a process, in KiB.
    #[must_use]
    pub fn rss_kib(&self) -> u64 {
        status_number(self.pid(), "VmRSS:").unwrap_or(0)
    }
}

impl Drop for Brigd {
    fn drop(&mut self) {
        if self.child.try_wait().ok().flatten().is_none() {
            self.child.kill().ok();
            self.child.wait().ok();
        }
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().filter(|line| !line.contains("audit record")).collect();
            let last: String = lines.iter().skip(lines.len().saturating_sub(30)).map(|line| format!("{line:.400}\n")).collect();
            eprintln!("--- end of the log of brigd ---\n{last}");
        }
    }
}

fn status_number(pid: u32, field: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(field)).and_then(|rest| rest.split_whitespace().next()?.parse().ok())
}

fn descendants_of(root: u32) -> Vec<(u32, String)> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Some(parent) = status_number(pid, "PPid:") else { continue };
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        parents.push((pid, u32::try_from(parent).unwrap_or(0), name.trim().to_owned()));
    }
    let mut found = Vec::new();
    let mut queue = vec![root];
    while let Some(parent) = queue.pop() {
        for (pid, _, name) in parents.iter().filter(|(_, of, _)| *of == parent) {
            found.push((*pid, name.clone()));
            queue.push(*pid);
        }
    }
    found
}
