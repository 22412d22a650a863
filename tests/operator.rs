//! What an operator is told: everything that is wrong at once, which files are not used, who
//! can not decide, what a revoke did not name, and a live view at a terminal.
#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

use acceptance::{Brigd, BrigdOptions, DEADLINE, Terminal, as_user, binary};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn config_check(file: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(binary("brigd")).args(["config", "check"]).arg(file).args(arguments).output().expect("brigd runs");
    (output.status.code(), said(&output))
}

fn brig(brigd: &Brigd, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(binary("brig")).args(arguments).arg("--admin-socket").arg(brigd.admin_socket()).output().expect("brig runs");
    (output.status.code(), said(&output))
}

const GOOD: &str = "[functions.list]\neffect = \"read\"\n[functions.list.command]\nprogram = \"/usr/bin/true\"\noutput = \"none\"\nUSER\
                    [functions.refund]\n[functions.refund.command]\nprogram = \"/usr/bin/true\"\noutput = \"none\"\nUSER";

/// A file of functions that can be used by whoever runs this test.
fn good() -> String {
    GOOD.replace("USER", if nix::unistd::geteuid().is_root() { "user = 65534\n" } else { "" })
}

#[test]
fn a_check_of_the_configuration_tells_everything_at_once_with_place_and_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("brig.toml");
    let functions = folder.path().join("functions.d");
    fs::create_dir(&functions).expect("a folder");
    fs::write(functions.join("store.toml"), good()).expect("functions");
    let broken = "[credentials.token]\nfile = \"/no/such/credential\"\n[credentials.other]\nfile = \"/no/other\"\n\
                  [functions.send]\n[functions.send.command]\nprogram = \"/usr/bin/true\"\n";
    fs::write(functions.join("mail.toml"), broken).expect("functions");
    let state = folder.path().join("missing/state");
    fs::write(
        &file,
        format!(
            "[server]\nstate_dir = {state:?}\n[queue]\nrunning = 0\nrunning_each = 0\n[admin]\ngroups = [\"no-such-group\"]\n\
             [principals.\"uid:7\".host_function]\nrules = [{{ mode = \"allow\", patterns = [\"store\"] }}, {{ mode = \"allow\", patterns = [] }}]\n"
        ),
    )
    .expect("a file");
    let (code, told) = config_check(&file, &[]);
    for part in [
        "queue.running is",
        "queue.running_each is",
        "no-such-group",
        "brig.toml:4",
        "rules[0]",
        "rules[1]",
        "mail.toml",
        "/no/such/credential",
        "/no/other",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(code, Some(2), "{told}");
}

#[test]
fn a_check_of_what_loads_tells_what_only_all_of_it_together_can() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, functions) = (folder.path().join("brig.toml"), folder.path().join("functions.d"));
    fs::create_dir(&functions).expect("a folder");
    fs::write(functions.join("store.toml"), good()).expect("functions");
    let state = folder.path().join("missing/state");
    fs::write(functions.join("mail.toml"), "[functions.send]\ntimeout_ms = 0\n").expect("functions");
    fs::write(
        &file,
        format!(
            "[server]\nstate_dir = {state:?}\n[principals.\"uid:7\".host_function]\nrules = [{{ mode = \"allow\", patterns = [\"store.lst\"] }},\n\
             {{ mode = \"ask\", patterns = [\"store.refund\"], ask = {{ approvers = [\"uid:54321\"] }} }}]\n"
        ),
    )
    .expect("a file");
    let (code, told) = config_check(&file, &[]);
    for part in
        ["did you mean \"store.list\"?", "brig.toml:4", "state directory", "install -d", "mail.toml: line 2: functions.send.timeout_ms"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(code == Some(2) && told.contains("warning: ") && told.contains("\"uid:54321\" is not let in by [admin]"), "{told}");

    // Warnings alone are no error, but for whoever asks for that.
    fs::remove_file(functions.join("mail.toml")).expect("a file");
    let kept = folder.path().join("kept").display().to_string();
    let rules = "[principals.\"uid:7\".host_function]\nrules = [{ mode = \"allow\", patterns = [\"store.*\"] }]\n";
    fs::write(&file, format!("[server]\nstate_dir = {kept:?}\n{rules}")).expect("a file");
    let (code, told) = config_check(&file, &[]);
    assert!(
        code == Some(0) && told.contains("\"store.refund\" may change something") && told.contains("functions configured: 2; warnings: 1"),
        "{told}"
    );
    assert_eq!(config_check(&file, &["--strict"]).0, Some(2));
}

/// What a check says of a file with this text, in a folder with a state directory of its own.
fn checked(text: &str, more: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("brig.toml");
    fs::create_dir(folder.path().join("functions.d")).expect("a folder");
    fs::write(folder.path().join("functions.d/many.toml"), "[functions.one]\ntimeout_ms = 0\n[functions.two]\ntimeout_ms = 0\n")
        .expect("functions");
    fs::write(&file, text.replace("HERE", &folder.path().display().to_string())).expect("a file");
    config_check(&file, more).1
}

#[test]
fn a_check_tells_who_can_not_decide_and_what_is_not_there() {
    let asks = |who: &str| {
        format!(
            "[principals.\"uid:7\".callbacks]\nrules = [{{ mode = \"ask\", patterns = [\"a.b\"], ask = {{ approvers = [\"{who}\"] }} }}]\n"
        )
    };
    let sockets = "[server]\nsocket = \"HERE/no/brig.sock\"\nstate_dir = \"HERE/state\"\n";
    let told = checked(&format!("{sockets}{}", asks("uid:7")), &[]);
    for part in [
        "functions.one.timeout_ms",
        "functions.two.timeout_ms",
        "server.socket: the folder ",
        "nobody can decide",
        "nobody can ever say yes",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(checked(&asks("*"), &[]).contains("whoever is let in on the admin socket may decide this"));
    assert!(checked("", &["--user", "no-such-user"]).contains("there is no such user"));
    let hourly =
        "[principals.\"uid:7\".callbacks]\nrules = [{ mode = \"allow\", patterns = [\"a.b\"], budget = { calls = 1, per = \"hour\" } }]\n";
    assert!(checked(hourly, &[]).contains("server.state_dir"));
}

/// A brigd with an admin socket and a file of functions in place.
fn with_functions(config: &str) -> (Brigd, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a folder").keep();
    fs::write(folder.join("store.toml"), good()).expect("functions");
    let brigd = BrigdOptions::default().config(&format!("[functions]\ndir = {folder:?}\n{config}")).admin().start();
    (brigd, folder)
}

#[test]
fn a_file_of_functions_that_a_reload_can_not_use_is_named_to_whoever_reloads_and_looks() {
    let (brigd, folder) = with_functions("");
    let broken = "[functions.send]\ntimeout_ms = 0\n";
    fs::write(folder.join("mail.toml"), broken).expect("functions");
    for (command, sentence) in [("check", "would load"), ("reload", "is loaded")] {
        let (code, told) = brig(&brigd, &["admin", command]);
        assert!(code == Some(1) && told.contains(sentence), "{told}");
        assert!(told.contains("NOT USED: ") && told.contains("mail.toml: line 2: functions.send.timeout_ms is 0"), "{told}");
    }
    let (_, status) = brig(&brigd, &["admin", "status"]);
    assert!(
        status.contains("2 configured; files not used: 1") && status.contains("NOT USED     ") && status.contains("mail.toml"),
        "{status}"
    );
    assert!(top_once(&brigd).contains("files of functions not used: 1 | warnings: 0"));
    brigd.signal(nix::sys::signal::Signal::SIGHUP);
    let line = logged(&brigd, "the configuration was reloaded, without some files of functions");
    assert!(line.contains("not_used=") && line.contains("mail.toml") && line.contains("ERROR"), "{line}");

    // A fault of several lines is one line of the log.
    fs::write(brigd.folder().join("brig.toml"), "[queue]\nruning = 1\n").expect("a file");
    brigd.signal(nix::sys::signal::Signal::SIGHUP);
    let line = logged(&brigd, "the configuration was not reloaded");
    assert!(line.contains("fault=") && line.contains("did you mean `running`?"), "{line}");
    fs::remove_dir_all(folder).expect("the folder");
}

/// A frame as it goes into a file or a pipe.
fn top_once(brigd: &Brigd) -> String {
    let mut command = Command::new(binary("brig"));
    command.args(["top", "--once", "--admin-socket"]).arg(brigd.admin_socket()).env_remove("COLUMNS").env_remove("LINES");
    said(&command.output().expect("brig runs"))
}

#[test]
fn a_frame_of_top_that_goes_into_a_pipe_is_whole() {
    let brigd = BrigdOptions::default().admin().start();
    let name = "a".repeat(60);
    let mut clients: Vec<_> = (0..3).map(|_| brigd.connect()).collect();
    let program = json!({"source": format!("await orders.{name}({{}})"), "timeoutMs": 60_000, "hostFunctions": {"orders": {&name: {}}}});
    for client in &mut clients {
        for _ in 0..8 {
            client.request("evaluate", &program);
        }
    }
    let deadline = Instant::now() + DEADLINE;
    loop {
        let frame = top_once(&brigd);
        if frame.matches(&name).count() == 24 {
            return;
        }
        assert!(Instant::now() < deadline, "{frame}");
    }
}

#[test]
fn a_policy_explained_about_what_nobody_can_call_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, functions) = (folder.path().join("brig.toml"), folder.path().join("functions.d"));
    fs::create_dir(&functions).expect("a folder");
    fs::write(functions.join("store.toml"), good()).expect("functions");
    fs::write(&file, "[principals.\"*\".host_function]\nrules = [{ mode = \"allow\", patterns = [\"store.*\", \"mail.*\"] }]\n")
        .expect("a file");
    let explain = |function: &str, more: &[&str]| {
        let mut command = Command::new(binary("brigd"));
        command.args(["policy", "explain"]).arg(&file).args(["--principal", "uid:7", "--function", function]).args(more);
        said(&command.output().expect("brigd runs"))
    };
    assert!(explain("store:list", &[]).contains("store.list is allowed by"), "{}", explain("store:list", &[]));
    assert!(explain("mail:send-now", &[]).contains("mail.sendNow is allowed by"), "{}", explain("mail:send-now", &[]));
    let told = explain("store.lst", &[]);
    assert!(told.contains("is allowed by") && told.contains("nobody can call it; did you mean \"store.list\"?"), "{told}");
    for (function, more) in [("store.list", &[][..]), ("store.lst", &["--callback"])] {
        assert!(!explain(function, more).contains("note:"), "{function}");
    }
    fs::write(functions.join("mail.toml"), "[functions.send]\ntimeout_ms = 0\n").expect("functions");
    assert!(explain("mail.send", &[]).contains("its file of functions is not used"));
    fs::write(functions.join("mail.toml"), "[functions.send\n").expect("functions");
    assert!(explain("mail.send", &[]).contains("is not known: a file of functions can not be read"));
}

/// The line of the log with this in it, once it is there.
fn logged(brigd: &Brigd, text: &str) -> String {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(line) = brigd.log().lines().find(|line| line.contains(text)) {
            return line.to_owned();
        }
        assert!(Instant::now() < deadline, "{text:?} never came:\n{}", brigd.log());
        std::thread::yield_now();
    }
}

#[test]
fn an_approver_whom_the_admin_section_does_not_let_in_is_told_at_the_start_and_in_the_status() {
    let rule = |approver: &str| {
        format!(
            "[principals.\"uid:7\".callbacks]\nrules = [{{ mode = \"ask\", patterns = [\"a.b\"], ask = {{ approvers = [\"{approver}\"] }} }}]\n"
        )
    };
    let state = tempfile::tempdir().expect("a folder");
    let options = BrigdOptions::default().config(&rule("uid:54321")).state(&state.path().join("state")).admin();
    let brigd = options.start();
    assert!(logged(&brigd, "should be mended").contains("is not let in by [admin]"));
    let warnings = brigd.admin().result("status", &json!({})).get("warnings").and_then(Value::as_array).cloned().expect("warnings");
    assert!(
        warnings.iter().filter_map(Value::as_str).any(|told| told.contains("uid:54321") && told.contains("brig.toml:")),
        "{warnings:?}"
    );
    fs::write(brigd.folder().join("brig.toml"), rule("uid:0")).expect("a file");
    let (code, told) = brig(&brigd, &["admin", "reload"]);
    assert!(code == Some(0) && !told.contains("not let in"), "{told}");
}

#[test]
fn a_revoke_of_a_name_that_nothing_has_says_so_with_the_nearest_and_holds() {
    let (brigd, folder) = with_functions("");
    let (code, told) = brig(&brigd, &["admin", "revoke", "store.refnd"]);
    assert!(
        code == Some(0) && told.contains("note: nothing that is configured") && told.contains("the nearest is \"store.refund\""),
        "{told}"
    );
    assert!(brig(&brigd, &["admin", "revoked"]).1.contains("store.refnd"));
    let (_, told) = brig(&brigd, &["admin", "restore", "store.refnd"]);
    assert!(told.contains("is not revoked any more"), "{told}");
    assert!(!brig(&brigd, &["admin", "revoke", "store.*"]).1.contains("note:"));
    fs::remove_dir_all(folder).expect("the folder");
}

#[test]
fn a_socket_that_does_not_let_a_user_in_is_told_with_its_mode_and_what_to_do() {
    if !nix::unistd::geteuid().is_root() {
        // An ordinary user can always connect to what is its own.
        return;
    }
    let brigd = BrigdOptions::default().admin().start();
    fs::set_permissions(brigd.folder(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    for socket in [brigd.socket(), brigd.admin_socket()] {
        fs::set_permissions(socket, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("a mode");
    }
    let client = as_user(20_009, &binary("brig")).args(["eval", "1", "--socket"]).arg(brigd.socket()).output().expect("brig runs");
    let admin = as_user(20_009, &binary("brig")).args(["admin", "status", "--admin-socket"]).arg(brigd.admin_socket()).output();
    for output in [client, admin.expect("brig runs")] {
        let told = said(&output);
        assert!(output.status.code() == Some(7) && told.contains("mode 0600") && told.contains("brig doctor"), "{told}");
    }
}

/// `brig top` in a terminal of its own.
struct Top {
    terminal: Terminal,
    shown: String,
}

impl Top {
    fn open(brigd: &Brigd) -> Self {
        let terminal = Terminal::open((30, 100), "brig", |command| {
            command.args(["top", "--admin-socket"]).arg(brigd.admin_socket());
        });
        Self { terminal, shown: String::new() }
    }

    /// Waits until this is written, and forgets all until then.
    fn wait_for(&mut self, text: &str) -> String {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(at) = self.shown.find(text) {
                let rest = self.shown.split_off(at + text.len());
                return std::mem::replace(&mut self.shown, rest);
            }
            match self.terminal.pieces.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(piece) => self.shown.push_str(&String::from_utf8_lossy(&piece)),
                Err(fault) => panic!("{text:?} did not come ({fault}): {:?}", self.shown),
            }
        }
    }

    fn code(&mut self) -> Option<i32> {
        self.terminal.child.wait().expect("its end").code()
    }
}

const ENTERED: &str = "\u{1b}[?1049h";
const LEFT: &str = "\u{1b}[?1049l";

#[test]
fn top_draws_follows_what_happens_fits_a_new_size_and_gives_the_terminal_back() {
    let brigd = BrigdOptions::default().admin().start();
    let mut top = Top::open(&brigd);
    top.wait_for(ENTERED);
    top.wait_for("run 0 wait 0");
    let mut client = brigd.connect();
    client.request("evaluate", &json!({"source": "await orders.list({})", "timeoutMs": 60_000, "hostFunctions": {"orders": {"list": {}}}}));
    top.wait_for("run 1 wait 0");
    top.wait_for("orders.list");
    resize(&top.terminal.keys, 2, 20);
    top.wait_for("\u{1b}[H");
    let deadline = Instant::now() + DEADLINE;
    loop {
        // A frame that was begun before the new size may still come.
        let frame = top.wait_for("\u{1b}[J");
        if frame.matches("\r\n").count() == 1 {
            break;
        }
        assert!(Instant::now() < deadline, "it did not fit: {frame:?}");
    }
    top.terminal.keys.write_all(b"q").expect("a key");
    top.wait_for(LEFT);
    assert_eq!(top.code(), Some(0));
}

/// Changes the size of a terminal, as its emulator does: the kernel then signals.
fn resize(terminal: &File, rows: u16, columns: u16) {
    let (rows, columns) = (rows.to_string(), columns.to_string());
    let end = Stdio::from(terminal.try_clone().expect("the terminal"));
    let status = Command::new("stty").args(["rows", &rows, "cols", &columns]).stdin(end).status().expect("stty runs");
    assert!(status.success());
}

#[test]
fn top_tells_that_brigd_has_gone_and_gives_the_terminal_back() {
    let mut brigd = BrigdOptions::default().admin().start();
    let mut top = Top::open(&brigd);
    top.wait_for("run 0 wait 0");
    brigd.signal(nix::sys::signal::Signal::SIGTERM);
    brigd.wait();
    top.wait_for(LEFT);
    top.wait_for("the connection to brigd was lost");
    assert_eq!(top.code(), Some(9));
}

#[test]
fn doctor_looks_at_the_sockets_and_the_configuration_that_are_named() {
    let brigd = BrigdOptions::default().config("").admin().start();
    let file = brigd.folder().join("brig.toml");
    fs::write(&file, "[queue]\nrunning = 0\n").expect("a file");
    let mut doctor = Command::new(binary("brig"));
    doctor.args(["doctor", "--json", "--config"]).arg(&file).env("BRIGD", binary("brigd"));
    let output = doctor.env("BRIG_SOCKET", brigd.socket()).env("BRIG_ADMIN_SOCKET", brigd.admin_socket()).output().expect("brig runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON text");
    let findings = report.get("findings").and_then(Value::as_array).expect("findings");
    let detail = |what: &str| {
        let finding = findings.iter().find(|finding| finding.get("what") == Some(&json!(what)));
        finding.and_then(|finding| finding.get("detail")).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    assert!(detail("client socket").contains(&brigd.socket().display().to_string()), "{report}");
    assert!(detail("admin socket").contains(&brigd.admin_socket().display().to_string()), "{report}");
    assert!(detail("configuration").contains("queue.running is set to 0"), "{report}");
}
