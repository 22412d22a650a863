//! What brigd tells the service manager: alive only when an evaluation ran, and how it is.
#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

use acceptance::{Client, DEADLINE, binary};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A brigd that a service manager watches: this test.
struct Watched {
    child: Child,
    notify: UnixDatagram,
    folder: tempfile::TempDir,
}

impl Watched {
    /// Three seconds: a probe each second.
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let notify = UnixDatagram::bind(folder.path().join("notify")).expect("a socket");
        notify.set_read_timeout(Some(Duration::from_millis(100))).expect("a time-out");
        let log = std::fs::File::create(folder.path().join("log")).expect("a log");
        let child = Command::new(binary("brigd"))
            .arg("--socket")
            .arg(folder.path().join("s"))
            .env("NOTIFY_SOCKET", folder.path().join("notify"))
            .env("WATCHDOG_USEC", "3000000")
            .env_remove("JOURNAL_STREAM")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("the log twice"))
            .stderr(log)
            .spawn()
            .expect("brigd starts");
        let watched = Self { child, notify, folder };
        watched.hear("READY=1");
        watched
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The next message, if there is one soon.
    fn next(&self) -> Option<String> {
        let mut buffer = [0_u8; 4096];
        let length = self.notify.recv(&mut buffer).ok()?;
        Some(String::from_utf8_lossy(buffer.get(..length)?).into_owned())
    }

    /// The first message with this in it.
    fn hear(&self, wanted: &str) -> String {
        let deadline = Instant::now() + DEADLINE;
        while Instant::now() < deadline {
            if let Some(message) = self.next().filter(|message| message.contains(wanted)) {
                return message;
            }
        }
        panic!("it never said {wanted}: {}", self.log());
    }

    /// Stops every process below brigd, whatever it starts.
    fn stop_children(&self) {
        let tasks: PathBuf = format!("/proc/{}/task", self.child.id()).into();
        for task in std::fs::read_dir(tasks).expect("its threads").flatten() {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            for pid in children.split_whitespace().filter_map(|pid| pid.parse().ok()) {
                // Gone already is as good.
                kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap_or(());
                stop_below(pid);
            }
        }
    }
}

fn stop_below(pid: i32) {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    for child in children.split_whitespace().filter_map(|pid| pid.parse().ok()) {
        kill(Pid::from_raw(child), Signal::SIGSTOP).unwrap_or(());
        stop_below(child);
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.child.kill().expect("a kill");
        self.child.wait().expect("an end");
    }
}

#[test]
fn the_watchdog_is_fed_while_evaluations_run_and_not_when_none_can() {
    let brigd = Watched::start();
    for _ in 0..2 {
        brigd.hear("WATCHDOG=1");
    }
    let deadline = Instant::now() + DEADLINE;
    loop {
        brigd.stop_children();
        // What was said before the first failure is of a time when it could.
        brigd.next();
        if brigd.log().contains("not fed") {
            break;
        }
        assert!(Instant::now() < deadline, "a brigd without workers was fed: {}", brigd.log());
    }
}

#[test]
fn the_status_shows_level_workers_and_queue_and_follows_what_runs() {
    let brigd = Watched::start();
    let socket = brigd.folder.path().join("s");
    std::thread::scope(|scope| {
        let running = scope.spawn(|| Client::connect(&socket).evaluate("await new Promise(done => setTimeout(done, 4000))"));
        let status = brigd.hear("evaluations 1 running, 0 waiting");
        for part in ["STATUS=level ", " ready, ", " in use"] {
            assert!(status.contains(part), "{part:?} is not in {status}");
        }
        brigd.hear("evaluations 0 running");
        running.join().expect("an answer");
    });
}
