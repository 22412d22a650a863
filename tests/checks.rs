//! What is said of a configuration before it is used: each fault once, with its place, by
//! what brigd will be given; no name forges a line; and a stream that is closed is no crash.
#![expect(clippy::expect_used, reason = "tests")]

#[path = "checks/shown.rs"]
mod shown;

use acceptance::{Brigd, BrigdOptions, DEADLINE, as_user, binary};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;
use tempfile::TempDir;

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

fn said(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}

/// A folder with a configuration, in which `HERE` is the folder.
struct Host {
    folder: TempDir,
}

impl Host {
    fn new(config: &str) -> Self {
        let host = Self { folder: tempfile::tempdir().expect("a folder") };
        host.write("brig.toml", config);
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text.replace("HERE", &self.folder.path().display().to_string())).expect("a file");
    }

    /// A folder for its owner only.
    fn private(&self, name: &str) -> PathBuf {
        fs::DirBuilder::new().mode(0o700).create(self.path(name)).expect("a folder");
        self.path(name)
    }

    fn command(&self, words: &[&str], more: &[&str]) -> Command {
        let mut command = Command::new(binary("brigd"));
        command.args(words).arg(self.path("brig.toml"));
        command.args(more.iter().map(|word| word.replace("HERE", &self.folder.path().display().to_string())));
        command.env_remove("STATE_DIRECTORY").env_remove("CREDENTIALS_DIRECTORY");
        command
    }

    fn check(&self, more: &[&str]) -> (Option<i32>, String) {
        said(&self.command(&["config", "check"], more).output().expect("brigd runs"))
    }

    fn policy_check(&self, more: &[&str]) -> (Option<i32>, String) {
        said(&self.command(&["policy", "check"], more).output().expect("brigd runs"))
    }
}

/// A function that can be used by whoever runs this test.
fn usable() -> String {
    let user = if is_root() { "user = 65534\n" } else { "" };
    format!("[functions.list]\neffect = \"read\"\n[functions.list.command]\nprogram = \"/usr/bin/true\"\noutput = \"none\"\n{user}")
}

#[test]
fn a_list_of_revokes_that_can_not_be_read_is_told_before_it_stops_a_start() {
    let host = Host::new("[server]\nstate_dir = \"HERE/state\"\n");
    host.private("state");
    assert_eq!(host.check(&[]).0, Some(0));
    host.write("state/revocations.json", "{\"functions\":[");
    let (code, told) = host.check(&[]);
    assert!(code == Some(2) && told.contains("state/revocations.json can not be read") && told.contains("repair it"), "{told}");
    let log = BrigdOptions::default().config(&fs::read_to_string(host.path("brig.toml")).expect("it")).try_start().expect_err("no start");
    assert!(log.contains("revocations.json can not be read"), "{log}");
    // What is closed to whoever looks is as it should be, and no fault.
    if is_root() {
        for name in ["", "brig.toml"] {
            fs::set_permissions(host.path(name), PermissionsExt::from_mode(0o755)).expect("a mode");
        }
        let mut command = as_user(20_009, &binary("brigd"));
        command.args(["config", "check"]).arg(host.path("brig.toml")).args(["--user", "root"]).env_remove("STATE_DIRECTORY");
        let (code, told) = said(&command.output().expect("brigd runs"));
        assert!(code == Some(0) && told.contains("closed to this user, so not looked into"), "{told}");
    }
}

#[test]
fn what_is_refused_is_not_warned_of_as_well() {
    let host = Host::new(
        "[server]\nsocket = \"HERE/run/brig.sock\"\n[principals.\"uid:7\".host_function]\nrules = [{ mode = \"allow\", patterns = [\"store.lst\"] }]\n\
         [principals.\"uid:8\".host_function]\nrules = [{ mode = \"ask\", patterns = [\"store.list\"], ask = { approvers = [\"uid:9\"] } }]\n",
    );
    host.write("functions.d/store.toml", &usable());
    let (code, told) = host.check(&[]);
    assert_eq!(code, Some(2), "{told}");
    assert_eq!(told.matches("store.lst").count(), 1, "{told}");
    assert!(told.contains("warning: ") && told.contains("\"uid:9\" is not let in"), "{told}");
}

#[test]
fn what_brigd_will_be_given_wins_over_the_file_and_that_over_the_environment() {
    let host = Host::new("[server]\nstate_dir = \"HERE/open\"\n");
    host.private("own");
    host.private("open");
    fs::set_permissions(host.path("open"), PermissionsExt::from_mode(0o755)).expect("a mode");
    let inherited = |more: &[&str]| {
        said(&host.command(&["config", "check"], more).env("STATE_DIRECTORY", host.path("own")).output().expect("brigd runs"))
    };
    assert!(inherited(&[]).1.contains("open has mode 0755"));
    assert_eq!(inherited(&["--state", "HERE/own"]).0, Some(0));
    host.write("brig.toml", "");
    assert_eq!(inherited(&[]).0, Some(0));
    assert!(inherited(&["--state", "HERE/open"]).1.contains("open has mode 0755"));

    let with_token = usable().replace("output", "credentials.token.variable = \"TOKEN\"\noutput");
    host.write("functions.d/store.toml", &format!("[credentials.token]\n{with_token}"));
    for (folder, secret) in [("full", Some("hunter2-hunter2")), ("empty", None)] {
        host.private(folder);
        if let Some(secret) = secret {
            host.write(&format!("{folder}/token"), secret);
            fs::set_permissions(host.path(&format!("{folder}/token")), PermissionsExt::from_mode(0o400)).expect("a mode");
        }
    }
    for words in [&["config", "check"], &["policy", "check"]] {
        let inherited = |folder: &str, more: &[&str]| {
            let output = host.command(words, more).env("CREDENTIALS_DIRECTORY", host.path(folder)).output().expect("brigd runs");
            !said(&output).1.contains("credentials.token")
        };
        assert!(inherited("full", &[]) && !inherited("empty", &[]), "{words:?}");
        assert!(inherited("empty", &["--credentials", "HERE/full"]) && !inherited("full", &["--credentials", "HERE/empty"]), "{words:?}");
    }
}

#[test]
fn a_socket_in_the_state_directory_needs_no_folder_and_any_other_does() {
    let config = "[server]\nsocket = \"HERE/state/brig.sock\"\nadmin_socket = \"HERE/state/admin.sock\"\nstate_dir = \"HERE/state\"\n\
                  [metrics]\nsocket = \"HERE/state/metrics.sock\"\n";
    let host = Host::new(config);
    assert_eq!(host.check(&[]).0, Some(0));
    // The start is of the same mind.
    let mut brigd = host.command(&["--config"], &[]).stderr(Stdio::null()).spawn().expect("brigd runs");
    let deadline = Instant::now() + DEADLINE;
    while !["brig.sock", "admin.sock", "metrics.sock"].iter().all(|name| host.path("state").join(name).exists()) {
        assert!(Instant::now() < deadline && brigd.try_wait().expect("its state").is_none(), "no sockets");
        std::thread::yield_now();
    }
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(brigd.id().cast_signed()), nix::sys::signal::Signal::SIGTERM).expect("a signal");
    brigd.wait().expect("its end");
    host.write("brig.toml", &config.replace("state/", "no/such/"));
    let (code, told) = host.check(&[]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("server.socket: the folder ") && told.contains("install -d"), "{told}");
    host.write("brig.toml", "[metrics]\nsocket = \"HERE/none/metrics.sock\"\n");
    let (code, told) = host.check(&[]);
    assert!(code == Some(2) && told.contains("metrics.socket: the folder "), "{told}");
}

#[test]
fn all_keys_that_are_wrong_in_a_file_are_told_at_once() {
    let host = Host::new("[queue]\nruning = 5\nwaiting = \"many\"\n[client]\nuids = [1]\n");
    host.write("conf.d/10-more.toml", "[workers]\nreddy = 3\n[limits]\nheap_bytes = true\n");
    host.write("functions.d/store.toml", &usable().replace("effect", "efect").replace("program", "programm"));
    let (code, told) = host.check(&[]);
    assert_eq!(code, Some(2), "{told}");
    for part in [
        "did you mean `running`?",
        "\"many\"",
        "did you mean `clients`?",
        "did you mean `ready`?",
        "`true`",
        "did you mean `effect`?",
        "did you mean `program`?",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(told.matches("did you mean").count(), 5, "{told}");
    let (code, told) = host.policy_check(&[]);
    assert!(code == Some(2) && told.contains("`runing`") && told.contains("`reddy`"), "{told}");
    // Each is a complaint of its own, whoever looks.
    for words in [&["policy", "check"], &["config", "show"], &["--check", "--config"]] {
        let (code, told) = said(&host.command(words, &[]).output().expect("brigd runs"));
        assert_eq!((code, told.matches("brigd: the configuration ").count()), (Some(2), 5), "{words:?}: {told}");
    }
}

#[test]
fn a_check_of_a_policy_tells_files_that_are_off_and_who_can_not_decide() {
    let host = Host::new(
        "[principals.\"uid:7\".host_function]\nrules = [{ mode = \"ask\", patterns = [\"store.list\"], ask = { approvers = [\"uid:54321\"] } }]\n",
    );
    host.write("functions.d/store.toml", &usable());
    host.write("functions.d/mail.toml", "[functions.send]\ntimeout_ms = 0\n");
    let (code, told) = host.policy_check(&[]);
    assert_eq!(code, Some(0), "{told}");
    assert!(
        told.contains("a file of functions can not be used") && told.contains("mail.toml: line 2: functions.send.timeout_ms"),
        "{told}"
    );
    assert!(told.contains("\"uid:54321\" is not let in by [admin]"), "{told}");
    host.write("functions.d/mail.toml", &usable());
    host.write("brig.toml", &format!("[admin]\napprovers = [\"uid:54321\"]\n{}", fs::read_to_string(host.path("brig.toml")).expect("it")));
    let (_, told) = host.policy_check(&[]);
    assert!(!told.contains("can not be used") && !told.contains("not let in"), "{told}");
}

#[test]
fn root_is_told_for_whom_files_are_judged_and_can_say_so() {
    if !is_root() {
        return;
    }
    let with_token = usable().replace("user = 65534\n", "").replace("output", "credentials.token.variable = \"TOKEN\"\noutput");
    let host = Host::new("");
    host.write("functions.d/store.toml", &format!("[credentials.token]\nfile = \"HERE/token\"\n{with_token}"));
    host.write("token", "hunter2-hunter2");
    fs::set_permissions(host.path("token"), PermissionsExt::from_mode(0o400)).expect("a mode");
    std::os::unix::fs::chown(host.path("token"), Some(20_009), None).expect("an owner");
    for words in [&["config", "check"], &["policy", "check"]] {
        let told = |more: &[&str]| said(&host.command(words, more).output().expect("brigd runs")).1;
        let as_root = told(&[]);
        assert!(as_root.contains("store.toml") && as_root.contains("for a brigd that runs as root; --user USER says"), "{as_root}");
        let as_named = told(&["--user", "20009"]);
        assert!(!as_named.contains("store.toml:") && !as_named.contains("--user USER"), "{as_named}");
    }
    // What is wrong for everybody.
    host.write("functions.d/store.toml", "[functions.list]\nno_such_key = 1\n");
    for words in [&["config", "check"], &["policy", "check"]] {
        let told = said(&host.command(words, &[]).output().expect("brigd runs")).1;
        assert!(told.contains("store.toml") && !told.contains("--user USER"), "{told}");
    }
}

/// What a reload of this configuration says.
fn reloaded(brigd: &Brigd, config: &str) -> (Option<i32>, String) {
    fs::write(brigd.folder().join("brig.toml"), config).expect("the configuration");
    said(&Command::new(binary("brig")).args(["admin", "reload", "--admin-socket"]).arg(brigd.admin_socket()).output().expect("brig runs"))
}

#[test]
fn a_fault_that_a_reload_finds_is_told_with_its_line_whatever_part_finds_it() {
    let functions = tempfile::tempdir().expect("a folder");
    fs::write(functions.path().join("store.toml"), usable()).expect("functions");
    let folder = format!("[functions]\ndir = {:?}\n", functions.path());
    let brigd = BrigdOptions::default().config(&folder).admin().start();
    let rule = |pattern: &str| {
        format!("{folder}\n[principals.\"uid:7\".host_function]\nrules = [{{ mode = \"allow\", patterns = [{pattern:?}] }}]\n")
    };
    for (config, line) in [
        (format!("{folder}[queue]\nrunning = 0\n"), 4),
        (rule("store"), 5),
        // Known only beside the functions that there are.
        (rule("store.list.more"), 5),
        (format!("{folder}[queue]\nruning = 1\n"), 4),
    ] {
        let (code, told) = reloaded(&brigd, &config);
        let place = [format!("brig.toml:{line}: "), format!("at line {line}, column 1")];
        let wanted = place.iter().any(|place| told.contains(place));
        assert!(wanted && code != Some(0) || config.contains("list.more"), "{config}: {told}");
    }
    let (code, told) = reloaded(&brigd, &rule("store.lst"));
    assert!(told.contains("brig.toml:5: ") && told.contains("store.list"), "{code:?} {told}");
}

#[test]
fn a_revoke_that_is_not_on_the_disk_yet_is_in_the_status_until_it_is() {
    let brigd = BrigdOptions::default().admin().start();
    let status = || {
        said(
            &Command::new(binary("brig"))
                .args(["admin", "status", "--admin-socket"])
                .arg(brigd.admin_socket())
                .output()
                .expect("brig runs"),
        )
        .1
    };
    let mut admin = brigd.admin();
    let state = brigd.folder().join("run/state");
    // Where a folder has the name of what is written first, nothing can be.
    fs::create_dir(state.join("revocations.new")).expect("a folder");
    let revoked = admin.result("functions.revoke", &json!({"pattern": "store.*"}));
    assert_eq!(revoked.get("persisted"), Some(&json!(false)), "{revoked}");
    assert!(status().contains("1 function patterns, 0 principals; NOT WRITTEN DOWN YET"), "{}", status());
    assert_eq!(admin.result("status", &json!({})).get("revocationsUnwritten"), Some(&json!(true)));
    fs::remove_dir(state.join("revocations.new")).expect("the folder");
    let deadline = Instant::now() + DEADLINE;
    while status().contains("NOT WRITTEN DOWN YET") {
        assert!(Instant::now() < deadline, "{}", status());
    }
    assert!(fs::read_to_string(state.join("revocations.json")).expect("the list").contains("store.*"));
}

#[test]
fn a_revoke_of_what_a_running_evaluation_declares_is_no_misspelling() {
    let brigd = BrigdOptions::default().admin().start();
    let mut client = brigd.connect();
    client.request("evaluate", &json!({"source": "await orders.list({})", "timeoutMs": 60_000, "hostFunctions": {"orders": {"list": {}}}}));
    assert_eq!(client.next_message().get("method"), Some(&json!("host.call")));
    let mut admin = brigd.admin();
    let misspelt = admin.result("functions.revoke", &json!({"pattern": "order.*"}));
    let note = misspelt.get("note").and_then(serde_json::Value::as_str).unwrap_or_default();
    assert!(note.contains("the nearest is \"orders.*\""), "{misspelt}");
    let meant = admin.result("functions.revoke", &json!({"pattern": "orders.*"}));
    assert_eq!((meant.get("note"), meant.get("evaluations")), (None, Some(&json!(1))), "{meant}");
}

/// Whether anything of a check changed what is there.
#[test]
fn a_check_makes_nothing() {
    let host = Host::new("[server]\nstate_dir = \"HERE/state\"\n");
    assert_eq!(host.check(&[]).0, Some(0));
    let names = |folder: &Path| fs::read_dir(folder).expect("it").count();
    assert_eq!(names(host.folder.path()), 1);
}
