//! No name forges a line of what people read, and a stream that is closed is no crash.

use super::{Host, said};
use acceptance::{BrigdOptions, DEADLINE, binary};
use serde_json::json;
use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Lines that brigd did not say: they begin as one of its own would.
fn forged(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("forged") || line.starts_with("brigd: forged") || line.contains('\u{1b}'))
}

#[test]
fn no_name_of_a_file_and_no_key_in_one_forges_a_line_or_moves_the_terminal() {
    const NAME: &str = "\nforged: all is well\nbrigd: forged\u{1b}[2J.toml";
    let host = Host::new("\"a\\nforged\\nbrigd: forged\\u001b[2J\" = 1\n");
    host.write(&format!("functions.d/x{NAME}"), "[functions.send]\ntimeout_ms = 0\n");
    host.write(&format!("conf.d/y{NAME}"), "[queue]\nrunning = 0\n\"b\\nforged\" = 1\n");
    let (code, told) = host.check(&[]);
    assert!(code == Some(2) && !forged(&told), "{told}");
    assert!(told.contains("x\\u{a}forged: all is well\\u{a}brigd: forged\\u{1b}[2J.toml: "), "{told}");
    // A line that can not be read is quoted, not obeyed.
    host.write("brig.toml", "x = \u{1b}[2J\r\n");
    let (code, told) = host.check(&[]);
    assert!(code == Some(2) && !forged(&told) && told.contains("x = \\u{1b}[2J"), "{told}");
    host.write("brig.toml", "");
    host.write(&format!("conf.d/y{NAME}"), "[queue]\nrunning = 1\n");
    for (words, more) in [(&["config", "check"][..], &[][..]), (&["config", "show"], &["--effective"]), (&["policy", "check"], &[])] {
        let (_, told) = said(&host.command(words, more).output().expect("brigd runs"));
        assert!(!forged(&told) && (told.contains("y\\u{a}forged") || told.contains("x\\u{a}forged")), "{words:?}: {told}");
    }
    // The same to whoever asks a brigd that runs, and in its log.
    let functions = format!("[functions]\ndir = {:?}\n", host.path("functions.d"));
    let brigd = BrigdOptions::default().config(&functions).admin().start();
    for command in ["check", "reload", "status"] {
        let output = Command::new(binary("brig")).args(["admin", command, "--admin-socket"]).arg(brigd.admin_socket()).output();
        let (_, told) = said(&output.expect("brig runs"));
        assert!(!forged(&told) && told.contains("NOT USED") && told.contains("x\\u{a}forged"), "{command}: {told}");
    }
    assert!(!forged(&brigd.log()) && brigd.log().contains("x\\\\u{a}forged") || brigd.log().contains("x\\u{a}forged"), "{}", brigd.log());
}

#[test]
fn what_a_client_calls_itself_is_one_value_of_its_line_of_the_log() {
    let brigd = BrigdOptions::default().config("[server]\nlog = \"debug\"\n").start();
    let mut client = brigd.connect();
    let name = "x\" level=ERROR owner=0 fault=\"";
    client.call("initialize", &json!({"client": {"name": name, "version": "1 owner=0"}}));
    let deadline = Instant::now() + DEADLINE;
    let line = loop {
        if let Some(line) = brigd.log().lines().find(|line| line.contains("level=ERROR")) {
            break line.to_owned();
        }
        assert!(Instant::now() < deadline, "{}", brigd.log());
        std::thread::yield_now();
    };
    // Read as such lines are: nothing in quotes is a key.
    let mut outside = String::new();
    let (mut within, mut escaped) = (false, false);
    for character in line.chars() {
        match character {
            '"' if !escaped => within = !within,
            other if !within => outside.push(other),
            _ => {}
        }
        escaped = character == '\\' && !escaped;
    }
    assert!(!within && !outside.contains("level=ERROR") && !outside.contains("owner=0"), "{line}");
}

/// A pipe that nobody reads any more.
fn closed_pipe() -> Stdio {
    let (_, write) = std::io::pipe().expect("a pipe");
    write.into()
}

#[test]
fn a_stream_that_is_full_or_that_nobody_reads_is_no_crash() {
    let host = Host::new("[queue]\nrunning = 0\n");
    let empty = Host::new("");
    empty.write("functions.d/mail.toml", "[functions.send]\ntimeout_ms = 0\n");
    let folder = empty.private("none").display().to_string();
    let full = || Stdio::from(File::options().write(true).open("/dev/full").expect("it"));
    let brigd = |words: &[&str]| -> Vec<String> { words.iter().map(|word| (*word).to_owned()).collect() };
    let (bad, good) = (host.path("brig.toml").display().to_string(), empty.path("brig.toml").display().to_string());
    for (program, words, code) in [
        ("brigd", brigd(&["config", "check", &bad]), 2),
        ("brigd", brigd(&["config", "show", &bad]), 2),
        ("brigd", brigd(&["config", "show", "--effective", &good]), 0),
        ("brigd", brigd(&["policy", "check", &bad]), 2),
        ("brigd", brigd(&["policy", "check", &good]), 0),
        ("brigd", brigd(&["audit", "verify", "--dir", "/no/such/folder"]), 2),
        ("brigd", brigd(&["audit", "tail", "--dir", &folder]), 2),
        ("brigd", brigd(&["--config", &bad, "--check"]), 2),
        ("brigd", brigd(&["--check"]), 0),
        ("brigd", brigd(&["--help"]), 0),
        ("brigd", brigd(&["--no-such-option"]), 2),
        ("brig", brigd(&["config", "check", &bad]), 2),
        ("brig", brigd(&["eval", "1"]), 0),
        ("brig", brigd(&["eval", "throw 1"]), 1),
        ("brig", brigd(&["--help"]), 0),
        ("brig", brigd(&["doctor"]), 0),
        ("brig", brigd(&["admin", "status", "--admin-socket", "/no/such/socket"]), 7),
    ] {
        let run = |out: Stdio, err: Stdio| {
            let mut command = Command::new(binary(program));
            command.args(&words).env("BRIGD", binary("brigd")).stdin(Stdio::null()).stdout(out).stderr(err);
            command.status().expect("it runs").code()
        };
        // Whoever closed a pipe has seen enough; what tells why is told to nobody.
        for (out, err) in
            [(closed_pipe(), Stdio::null()), (Stdio::null(), closed_pipe()), (Stdio::null(), full()), (closed_pipe(), closed_pipe())]
        {
            let ended = run(out, err);
            assert!(
                ended == Some(code) || (words.first().is_some_and(|word| word == "doctor") && ended == Some(1)),
                "{program} {words:?}: {ended:?}"
            );
        }
        // An answer that is lost is no success.
        let ended = run(full(), Stdio::null());
        assert!(ended.is_some_and(|ended| ended != 0 && ended != 101), "{program} {words:?}: {ended:?}");
    }
}

#[test]
fn a_brigd_whose_log_nobody_reads_serves_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("brig.sock");
    let mut command = Command::new(binary("brigd"));
    command.arg("--socket").arg(&socket).env_remove("STATE_DIRECTORY").env_remove("JOURNAL_STREAM").stdout(closed_pipe());
    fs::write(folder.path().join("brig.toml"), "[server]\nlog = \"trace\"\n").expect("a file");
    command.arg("--config").arg(folder.path().join("brig.toml"));
    let mut brigd = command.stderr(closed_pipe()).spawn().expect("brigd runs");
    let deadline = Instant::now() + DEADLINE;
    let answer = loop {
        let output = Command::new(binary("brig")).args(["eval", "6 * 7", "--socket"]).arg(&socket).output().expect("brig runs");
        if output.status.success() {
            break said(&output).1;
        }
        assert!(Instant::now() < deadline && brigd.try_wait().expect("its state").is_none(), "{}", said(&output).1);
        std::thread::yield_now();
    };
    assert_eq!(answer.trim(), "42");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(brigd.id().cast_signed()), nix::sys::signal::Signal::SIGTERM).expect("a signal");
    assert_eq!(brigd.wait().expect("its end").code(), Some(0));
}
