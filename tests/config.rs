//! The configuration, as an operator meets it: checked without a brigd running, layered,
//! taken over while one runs, and applied to who the kernel says a client is.
#![expect(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use acceptance::{Brigd, BrigdOptions, DEADLINE, as_user, binary};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Which uid this test runs as.
fn own_uid() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// What `brigd config …` says, and how it ends.
fn config_tool(arguments: &[&str], file: &Path) -> (i32, String) {
    let output = Command::new(binary("brigd")).arg("config").args(arguments).arg(file).output().expect("brigd runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().expect("an exit code"), said)
}

/// Overwrites the configuration of a running brigd.
fn write_config(brigd: &Brigd, text: &str) {
    fs::write(brigd.folder().join("brig.toml"), text).expect("the configuration");
}

/// Reloads, and waits until the log says how that went.
fn reload(brigd: &Brigd, outcome: &str) {
    let before = brigd.log().matches(outcome).count();
    brigd.signal(nix::sys::signal::Signal::SIGHUP);
    let deadline = Instant::now() + DEADLINE;
    while brigd.log().matches(outcome).count() == before {
        assert!(Instant::now() < deadline, "{outcome:?} never came:\n{}", brigd.log());
        std::thread::yield_now();
    }
}

const RELOADED: &str = "the configuration was reloaded";
const NOT_RELOADED: &str = "the configuration was not reloaded";

#[test]
fn a_configuration_is_checked_and_shown_without_a_brigd() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("brig.toml");
    fs::write(&file, "[queue]\nrunning = 5\n").expect("a file");
    fs::create_dir(folder.path().join("conf.d")).expect("a folder");
    fs::write(folder.path().join("conf.d/10-more.toml"), "[principals.\"*\"]\ncallbacks = \"allow\"\n").expect("a file");
    let (code, said) = config_tool(&["check"], &file);
    assert!(code == 0 && said.contains("10-more.toml"), "{said}");
    let (code, said) = config_tool(&["show"], &file);
    assert!(code == 0 && said.contains("running = 5  # ") && said.contains("10-more.toml:2"), "{said}");
    let (_, all) = config_tool(&["show", "--effective"], &file);
    assert!(all.contains("waiting = 4096  # default"), "{all}");

    fs::write(&file, "[queue]\nruning = 5\n").expect("a file");
    let (code, said) = config_tool(&["check"], &file);
    assert!(code == 2 && said.contains("did you mean `running`?") && said.contains("line 2"), "{said}");
    fs::write(&file, "[principals.\"user:no-such-user\"]\n").expect("a file");
    let (code, said) = config_tool(&["check"], &file);
    assert!(code == 2 && said.contains("no-such-user"), "{said}");
}

#[test]
fn a_configuration_that_others_can_write_does_not_start_a_brigd() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("brig.toml");
    fs::write(&file, "").expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("a mode");
    let socket = folder.path().join("s");
    let output = Command::new(binary("brigd")).arg("--config").arg(&file).arg("--socket").arg(&socket).output().expect("brigd runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("chmod go-w"), "{said}");
}

#[test]
fn a_reload_takes_over_a_policy_whole_or_not_at_all() {
    let uid = own_uid();
    let allow = format!("[principals.\"uid:{uid}\"]\ncallbacks = \"allow\"\n");
    let brigd = BrigdOptions::default().config(&allow).start();
    let mut client = brigd.connect();
    assert_eq!(client.evaluate("1 + 1")["outcome"], "succeeded");

    // A fault anywhere: what held before still does.
    write_config(&brigd, &format!("[principals.\"uid:{}\"]\n[queue]\nrunning = 0\n", uid + 1));
    reload(&brigd, NOT_RELOADED);
    assert_eq!(client.evaluate("1 + 1")["outcome"], "succeeded");

    // Nobody but another user: connections that are there are no exception.
    write_config(&brigd, &format!("[principals.\"uid:{}\"]\ncallbacks = \"allow\"\n[queue]\nrunning = 50\n", uid + 1));
    reload(&brigd, RELOADED);
    let refused = client.call("evaluate", &json!({"source": "1"}));
    assert_eq!(refused["error"]["data"]["code"], "not_permitted", "{refused}");
    assert!(brigd.log().contains("queue.running"), "what needs a restart is told:\n{}", brigd.log());

    write_config(&brigd, &allow);
    reload(&brigd, RELOADED);
    assert_eq!(client.evaluate("1 + 1")["outcome"], "succeeded");
}

#[test]
fn ceilings_and_quotas_of_a_section_hold_for_its_principal() {
    let uid = own_uid();
    let brigd = BrigdOptions::default()
        .config(&format!(
            "[principals.\"uid:{uid}\"]\ncallbacks = \"allow\"\n[principals.\"uid:{uid}\".limits]\ncpu_ms = 200\n\
             [principals.\"uid:{uid}\".quotas]\nrunning = 1\nqueued = 0\nvms = 1\n"
        ))
        .start();
    let mut client = brigd.connect();
    assert_eq!(client.result("initialize", &json!({}))["limits"]["cpuMs"], 200);
    let spun = client.evaluate("while (true);");
    assert_eq!(spun["error"]["code"], "cpu_limit", "{spun}");

    client.result("vm.create", &json!({}));
    let refused = client.call("vm.create", &json!({}));
    let data = &refused["error"]["data"];
    assert_eq!(
        (&data["code"], data["setting"].as_str()),
        (&json!("quota_exceeded"), Some(&*format!("principals.\"uid:{uid}\".quotas.vms")))
    );

    // One that waits for its client holds the only place.
    let waiting = client.request("evaluate", &json!({"source": "await a.wait({})", "hostFunctions": {"a": {"wait": {}}}}));
    let call = client.next_message();
    assert_eq!(call["method"], "host.call", "{call}");
    let refused = brigd.connect().call("evaluate", &json!({"source": "1"}));
    assert_eq!(refused["error"]["data"]["code"], "quota_exceeded", "{refused}");
    client.send(&json!({"jsonrpc": "2.0", "id": call["id"], "result": null}));
    let done = client.next_message();
    assert_eq!((&done["id"], &done["result"]["outcome"]), (&json!(waiting), &json!("succeeded")), "{done}");
}

/// One request by a client process of its own, as these ids: what brigd answers.
fn ask_as(brigd: &Brigd, uid: u32, gid: u32, groups: &[u32], line: &str) -> Value {
    let groups: Vec<String> = groups.iter().map(u32::to_string).collect();
    let mut command = Command::new("setpriv");
    command.arg(format!("--reuid={uid}")).arg(format!("--regid={gid}"));
    if groups.is_empty() {
        command.arg("--clear-groups");
    } else {
        command.arg(format!("--groups={}", groups.join(",")));
    }
    let address = format!("UNIX-CONNECT:{}", brigd.socket().display());
    let mut client =
        command.args(["socat", "-t", "30", "-", &address]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("setpriv runs");
    writeln!(client.stdin.take().expect("its input"), "{line}").expect("a line");
    let output = client.wait_with_output().expect("socat ends");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|fault| panic!("{fault}: {said}"))
}

/// Lets every user reach the socket: who may do what is then policy's alone.
fn open_to_all(brigd: &Brigd) {
    fs::set_permissions(brigd.socket(), fs::Permissions::from_mode(0o666)).expect("a mode");
}

#[test]
fn real_users_and_groups_get_what_their_section_says() {
    if !nix::unistd::geteuid().is_root() {
        // Only root can be other users; what one user sees is tested above.
        return;
    }
    let brigd = BrigdOptions::default()
        .config(
            "[principals.\"uid:20001\"]\ncallbacks = \"allow\"\n[principals.\"uid:20001\".limits]\ncpu_ms = 111\n\
             [principals.\"gid:30001\"]\n[principals.\"gid:30001\".limits]\ncpu_ms = 222\n",
        )
        .start();
    open_to_all(&brigd);
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
    let run = r#"{"jsonrpc":"2.0","id":1,"method":"evaluate","params":{"source":"1"}}"#;
    let cpu_ms = |uid, gid, groups: &[u32]| ask_as(&brigd, uid, gid, groups, hello)["result"]["limits"]["cpuMs"].clone();
    assert_eq!(cpu_ms(20_001, 30_001, &[]), 111, "the user comes before its group");
    assert_eq!(cpu_ms(20_002, 30_001, &[]), 222, "a primary group");
    assert_eq!(cpu_ms(20_003, 20_003, &[30_001]), 222, "a supplementary group");
    for (uid, gid, groups) in [(20_004, 20_004, &[][..]), (20_005, 30_002, &[30_003][..])] {
        let refused = ask_as(&brigd, uid, gid, groups, run);
        assert_eq!(refused["error"]["data"]["code"], "not_permitted", "{refused}");
    }
    assert_eq!(ask_as(&brigd, 20_003, 20_003, &[30_001], run)["result"]["value"], 1);
    // Root itself has no section, and so nothing.
    assert_eq!(brigd.connect().call("evaluate", &json!({"source": "1"}))["error"]["data"]["code"], "not_permitted");
}

#[test]
fn a_client_that_ends_after_it_connected_can_not_hide_its_group() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    // Whoever is in group 30001 gets nothing, everybody else may evaluate.
    let brigd = BrigdOptions::default()
        .config("[principals.\"gid:30001\"]\n[principals.\"gid:30001\".quotas]\nrunning = 1\n[principals.\"*\"]\ncallbacks = \"allow\"\n")
        .start();
    open_to_all(&brigd);
    // The parent connects and ends; its child keeps the connection and asks.
    let program = "import os,socket,sys,time\n\
        s=socket.socket(socket.AF_UNIX)\n\
        r,w=os.pipe()\n\
        if os.fork()==0:\n\
        \x20 os.close(w); os.read(r,1)\n\
        \x20 s2=socket.socket(fileno=os.dup(s.fileno()))\n\
        \x20 s2.sendall(b'{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"evaluate\",\"params\":{\"source\":\"1\"}}\\n')\n\
        \x20 print(s2.makefile().readline(),end='',flush=True); os._exit(0)\n\
        s.connect(sys.argv[1]); os._exit(0)";
    // brigd is stopped meanwhile, so that it looks at the peer only when that has ended.
    brigd.signal(nix::sys::signal::Signal::SIGSTOP);
    let mut child = Command::new("python3")
        .args(["-c", program])
        .arg(brigd.socket())
        .uid(20_006)
        .gid(30_001)
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    child.wait().expect("the parent ends");
    brigd.signal(nix::sys::signal::Signal::SIGCONT);
    let mut line = String::new();
    child.stdout.take().expect("its output").read_to_string(&mut line).expect("an answer");
    let answer: Value = serde_json::from_str(&line).unwrap_or_else(|fault| panic!("{fault}: {line:?}"));
    assert_eq!(answer["error"]["data"]["code"], "not_permitted", "{answer}");
    assert!(answer["error"]["message"].as_str().is_some_and(|said| said.contains("not known")), "{answer}");
}

#[test]
fn an_ordinary_user_reloads_its_own_brigd() {
    let brigd = BrigdOptions { uid: Some(20_007), ..BrigdOptions::default().config("") }.start();
    reload(&brigd, RELOADED);
    let output = as_user(20_007, &binary("brig")).args(["eval", "1 + 1", "--socket"]).arg(brigd.socket()).output().expect("brig runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "2", "{}", String::from_utf8_lossy(&output.stderr));
}

/// The policy of this user's own functions: these patterns and no others.
fn only(patterns: &str) -> String {
    let uid = own_uid();
    format!(
        "[principals.\"uid:{uid}\".callbacks]\n[[principals.\"uid:{uid}\".callbacks.rules]]\nmode = \"allow\"\npatterns = [{patterns}]\n"
    )
}

/// What the second call of an evaluation comes to when the policy changes during the first.
fn second_call_after(before: &str, after: &str) -> Value {
    let brigd = BrigdOptions::default().config(&only(before)).start();
    let mut client = brigd.connect();
    let program = "await a.one({}); try { return await a.two({}) } catch (e) { return e.code ?? String(e) }";
    let id = client.request("evaluate", &json!({"source": program, "hostFunctions": {"a": {"one": {}, "two": {}}}}));
    let first = client.next_message();
    assert_eq!(first["params"]["function"], "a.one", "{first}");
    write_config(&brigd, &only(after));
    reload(&brigd, RELOADED);
    client.send(&json!({"jsonrpc": "2.0", "id": first["id"], "result": null}));
    let mut next = client.next_message();
    if next["method"] == "host.call" {
        client.send(&json!({"jsonrpc": "2.0", "id": next["id"], "result": "ran"}));
        next = client.next_message();
    }
    assert_eq!(next["id"], json!(id), "{next}");
    next["result"]["value"].clone()
}

#[test]
fn what_a_reload_denies_is_denied_at_once_also_to_what_runs() {
    assert_eq!(second_call_after("\"a.*\"", "\"a.one\""), "permission_denied");
}

#[test]
fn what_a_reload_allows_is_not_allowed_to_what_ran_before() {
    let value = second_call_after("\"a.one\"", "\"a.*\"");
    assert!(value != "ran", "{value}");
    assert_eq!(second_call_after("\"a.*\"", "\"a.*\", \"b.*\""), "ran");
}
