//! Bad input at start: brigd says what is wrong, where, and what would be right, and
//! ends; it never starts weaker than it was asked to, and never takes what is another's.
#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

use acceptance::{Brigd, BrigdOptions, as_user, binary};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output};

/// Runs brigd to its end on a socket path.
fn run(socket: &Path, more: &[&str]) -> Output {
    Command::new(binary("brigd")).arg("--socket").arg(socket).args(more).output().expect("brigd runs")
}

fn refused(output: &Output, parts: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "brigd ended well: {said}");
    assert!(output.status.code().is_some_and(|code| code != 101), "brigd panicked: {said}");
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in: {said}");
    }
}

#[test]
fn a_missing_worker_binary_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(&folder.path().join("s"), &["--worker", "/nowhere/brig-worker"]);
    refused(&output, &["/nowhere/brig-worker"]);
}

#[test]
fn a_worker_that_is_no_worker_is_refused_and_not_waited_for_without_end() {
    let folder = tempfile::tempdir().expect("a folder");
    for program in ["/bin/true", "/bin/cat"] {
        refused(&run(&folder.path().join("s"), &["--worker", program]), &["worker"]);
    }
}

#[test]
fn a_socket_path_that_is_too_long_is_refused_with_the_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x".repeat(120));
    refused(&run(&path, &[]), &["107"]);
}

#[test]
fn a_folder_that_is_not_there_or_not_ours_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    refused(&run(&folder.path().join("no/such/s"), &[]), &["no/such"]);
    if nix::unistd::geteuid().is_root() {
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("a mode");
        let path = folder.path().join("s");
        let output = as_user(65534, &binary("brigd")).arg("--socket").arg(&path).current_dir("/").output().expect("brigd runs");
        refused(&output, &[&path.display().to_string()]);
    }
}

#[test]
fn a_path_that_is_taken_by_something_else_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    std::fs::write(&path, "precious").expect("a file");
    refused(&run(&path, &[]), &["not a socket"]);
    assert_eq!(std::fs::read_to_string(&path).expect("the file"), "precious");
}

#[test]
fn the_socket_of_a_server_that_lives_is_never_stolen() {
    let first = Brigd::start();
    refused(&run(&first.socket(), &[]), &[&first.socket().display().to_string()]);
    assert_eq!(first.connect().evaluate("7").get("value"), Some(&json!(7)));
}

#[test]
fn a_stale_socket_is_taken_over() {
    let mut first = Brigd::start();
    first.signal(nix::sys::signal::Signal::SIGKILL);
    first.wait();
    assert!(first.socket().exists(), "SIGKILL leaves the socket");
    let output = std::thread::scope(|scope| {
        let socket = first.socket();
        let second = scope.spawn(move || {
            let mut child = Command::new(binary("brigd")).arg("--socket").arg(&socket).spawn().expect("brigd runs");
            let deadline = std::time::Instant::now() + acceptance::DEADLINE;
            while std::os::unix::net::UnixStream::connect(&socket).is_err() {
                assert!(std::time::Instant::now() < deadline && child.try_wait().expect("a status").is_none(), "not taken over");
                std::thread::yield_now();
            }
            let value = acceptance::Client::connect(&socket).evaluate("8");
            child.kill().expect("a kill");
            child.wait().expect("an end");
            value
        });
        second.join().unwrap_or_else(|_| panic!("the second brigd"))
    });
    assert_eq!(output.get("value"), Some(&json!(8)));
}

#[test]
fn a_stale_socket_of_another_kind_of_server_is_not_unlinked_while_it_listens() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let _listener = UnixListener::bind(&path).expect("a listener");
    refused(&run(&path, &[]), &[&path.display().to_string()]);
    assert!(std::os::unix::net::UnixStream::connect(&path).is_ok());
}

#[test]
fn the_socket_can_be_used_by_its_owner_only() {
    let brigd = Brigd::start();
    let mode = std::fs::metadata(brigd.socket()).expect("the socket").permissions().mode() & 0o777;
    assert_eq!(mode & 0o007, 0, "{mode:o}");
}

#[test]
fn a_misspelt_key_of_the_configuration_is_refused_with_its_place() {
    match BrigdOptions::default().config("[limits]\ntimout_ms = 5\n").try_start() {
        Ok(_) => panic!("brigd took a key that does not exist"),
        Err(log) => {
            for part in ["timout_ms", "timeout_ms", "brig.toml"] {
                assert!(log.contains(part), "{part} is not in: {log}");
            }
        }
    }
}

#[test]
fn a_limit_outside_its_range_is_refused_with_the_range() {
    match BrigdOptions::default().config("[limits]\nheap_bytes = 1\n").try_start() {
        Ok(_) => panic!("brigd took a heap of one byte"),
        Err(log) => assert!(log.contains("heap_bytes") && log.contains("262144"), "{log}"),
    }
}

#[test]
fn it_runs_as_an_ordinary_user() {
    let brigd = BrigdOptions { uid: Some(65534), ..BrigdOptions::default() }.start();
    let result = brigd.connect().evaluate("1+2");
    assert_eq!(result.get("value"), Some(&json!(3)), "{result}");
}

#[test]
fn demanding_more_than_the_host_has_is_refused_naming_the_layer() {
    match BrigdOptions::default().config("[sandbox]\nrequire = \"full\"\n[workers]\nnamespaces = false\n").try_start() {
        Ok(_) => panic!("brigd runs below the level that was demanded"),
        Err(log) => assert!(log.contains("namespace"), "the layer is not named: {log}"),
    }
}
