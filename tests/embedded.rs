//! The embedded default: a client that finds no service starts a private brigd, which
//! nobody else can reach and which never outlives it.
#![expect(clippy::expect_used, reason = "tests")]

use acceptance::{Brigd, binary};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long any of it may take.
const DEADLINE: Duration = Duration::from_secs(20);
/// Prints a line, and then waits for longer than the test.
const LONG: &str = "console.log('running'); await new Promise((done) => setTimeout(done, 1000000))";

/// The command with a directory for run time files of its own, so that what it makes
/// there can be looked at.
fn brig(runtime: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary("brig"));
    command
        .args(arguments)
        .env_remove("BRIG_SOCKET")
        .env("BRIGD", binary("brigd"))
        .env("XDG_RUNTIME_DIR", runtime)
        .current_dir("/")
        .stdin(Stdio::null());
    command
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn said(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !done() {
        assert!(Instant::now() < deadline, "{what} was not within {DEADLINE:?}");
        std::thread::yield_now();
    }
}

/// Starts an evaluation that does not end, and waits until the program runs.
fn start_long(runtime: &Path) -> Child {
    let mut child =
        brig(runtime, &["eval", LONG, "--timeout", "60s"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("brig starts");
    let mut lines = BufReader::new(child.stderr.take().expect("its stderr")).lines();
    let runs = lines.any(|line| line.expect("a line").contains("running"));
    assert!(runs, "the program never ran");
    // Kept open by a thread, so that brig can go on writing.
    std::thread::spawn(move || lines.for_each(drop));
    child
}

/// The processes whose command line names this directory: the private brigd.
fn servers(runtime: &Path) -> Vec<u32> {
    let name = runtime.display().to_string();
    let processes =
        std::fs::read_dir("/proc").expect("/proc").flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    processes
        .filter(|pid| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(&name)))
        .collect()
}

fn children(parent: u32) -> Vec<u32> {
    let processes =
        std::fs::read_dir("/proc").expect("/proc").flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let wanted = format!("PPid:\t{parent}\n");
    processes.filter(|pid| std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| status.contains(&wanted))).collect()
}

fn is_running(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z"))
}

fn only_folder(runtime: &Path) -> PathBuf {
    let mut all = std::fs::read_dir(runtime).expect("the folder").flatten();
    let first = all.next().expect("a private folder").path();
    assert!(all.next().is_none());
    first
}

#[test]
fn without_a_service_a_private_brigd_is_started_says_so_and_leaves_nothing() {
    let runtime = folder();
    let output = brig(runtime.path(), &["eval", "1 + 2"]).output().expect("brig runs");
    let (value, notes) = said(&output);
    assert_eq!((value.as_str(), output.status.code()), ("3\n", Some(0)), "{notes}");
    assert!(notes.contains("started a private") && notes.lines().count() == 1, "{notes}");
    assert!(std::fs::read_dir(runtime.path()).expect("the folder").next().is_none());
    assert_eq!(servers(runtime.path()), Vec::<u32>::new());
}

#[test]
fn a_service_is_used_when_it_is_named_and_nothing_is_started() {
    let (brigd, runtime) = (Brigd::start(), folder());
    let output = brig(runtime.path(), &["eval", "1 + 2"]).env("BRIG_SOCKET", brigd.socket()).output().expect("brig runs");
    assert_eq!(said(&output), ("3\n".to_owned(), String::new()));
}

#[test]
fn the_socket_of_a_private_brigd_is_in_a_directory_for_its_owner_only() {
    let runtime = folder();
    let mut child = start_long(runtime.path());
    let private = only_folder(runtime.path());
    assert_eq!(std::fs::metadata(&private).expect("the folder").permissions().mode() & 0o777, 0o700);
    assert!(std::fs::metadata(private.join("brig.sock")).expect("the socket").file_type().is_socket());
    child.kill().expect("a kill");
    child.wait().expect("an end");
}

#[test]
fn a_client_that_is_killed_leaves_no_brigd_and_no_worker_behind() {
    let runtime = folder();
    let mut child = start_long(runtime.path());
    let server = children(child.id()).into_iter().next().expect("a private brigd");
    let below = children(server);
    assert!(!below.is_empty());
    child.kill().expect("a kill");
    child.wait().expect("an end");
    wait_until("the end of brigd and what it made", || !is_running(server) && below.iter().all(|pid| !is_running(*pid)));
    wait_until("the end of its folder", || std::fs::read_dir(runtime.path()).expect("the folder").next().is_none());
}

#[test]
fn an_interrupt_cancels_shows_what_there_is_and_leaves_nothing() {
    let runtime = folder();
    let mut child = start_long(runtime.path());
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("a signal");
    assert_eq!(child.wait().expect("an end").code(), Some(5));
    assert!(std::fs::read_dir(runtime.path()).expect("the folder").next().is_none());
}

#[test]
fn the_examples_run_against_real_workers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let path = |name: &str| root.join(name).display().to_string();
    let runtime = folder();
    let run = |arguments: &[&str]| said(&brig(runtime.path(), arguments).arg("--quiet").output().expect("brig runs"));
    let refund =
        ["run", &path("refund/program.js"), "--functions", &path("refund/functions.json"), "--inputs", &path("refund/inputs.json")];
    assert_eq!(run(&refund), ("{\n  \"refunded\": 1,\n  \"total\": 2\n}\n".to_owned(), String::new()));
    let (value, refused) = run(&[&refund[..], &["--allow", "orders.list"]].concat());
    assert!(value.is_empty() && refused.contains("permission denied for orders.refund"), "{refused}");
    let total =
        ["run", &path("orders-total/program.js"), "--functions", &path("orders-total/functions.json"), "--inputs", "customer=customer_123"];
    assert_eq!(run(&total), ("42\n".to_owned(), String::new()));
}

#[test]
fn a_place_in_a_program_is_shown_in_its_text() {
    let (brigd, runtime) = (Brigd::start(), folder());
    let program = runtime.path().join("program.js");
    std::fs::write(&program, "const a = 1;\n\nthrow new TypeError('no ' + a);\n").expect("a program");
    let output =
        brig(runtime.path(), &["run", &program.display().to_string()]).env("BRIG_SOCKET", brigd.socket()).output().expect("brig runs");
    let (_, shown) = said(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        shown.contains("program.js:3:") && shown.contains("throw new TypeError('no ' + a);") && shown.contains("TypeError: no 1"),
        "{shown}"
    );
}

#[test]
fn check_finds_what_does_not_parse_and_runs_nothing() {
    let (brigd, runtime) = (Brigd::start(), folder());
    let check = |text: &str| {
        let program = runtime.path().join("program.js");
        std::fs::write(&program, text).expect("a program");
        brig(runtime.path(), &["check", "--json", &program.display().to_string()])
            .env("BRIG_SOCKET", brigd.socket())
            .output()
            .expect("brig runs")
    };
    let good = check("throw new Error('never run')");
    assert_eq!((good.status.code(), said(&good).0.as_str()), (Some(0), "{\"ok\":true}\n"));
    let bad = check("const = ;");
    assert_eq!(bad.status.code(), Some(1));
    let told: serde_json::Value = serde_json::from_str(&said(&bad).0).expect("one JSON text");
    assert_eq!(told.get("ok"), Some(&serde_json::Value::Bool(false)), "{told}");
    assert_eq!(told.pointer("/error/code").and_then(serde_json::Value::as_str), Some("syntax_error"), "{told}");
}
