//! Functions of the operator, through the real binaries: what a program is given, what an
//! input can make of it, how it ends, and what of it anybody gets to see.
#![expect(clippy::expect_used, reason = "tests")]

use acceptance::{Brigd, BrigdOptions, Client, DEADLINE, Handlers, binary};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tempfile::TempDir;

#[path = "configured/changes.rs"]
mod changes;
#[path = "configured/waiting.rs"]
mod waiting;

const SECRET: &str = "tok-4711/ab\"c+d?e";
/// As whom programs run where the tests are root.
const OTHER: u32 = 65_432;

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// A folder with `functions.d`, the probe, and whatever a test puts there.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("brig-functions-").tempdir().expect("a folder");
        let place = Self { folder };
        place.mode(Path::new(""), 0o755);
        fs::create_dir(place.path("functions.d")).expect("a folder");
        place.mode(Path::new("functions.d"), 0o755);
        fs::create_dir(place.path("work")).expect("a folder");
        place.mode(Path::new("work"), 0o777);
        fs::copy(binary("brig-test-probe"), place.path("probe")).expect("the probe");
        place.mode(Path::new("probe"), 0o755);
        place.write("token", SECRET, 0o600);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn mode(&self, name: &Path, mode: u32) {
        fs::set_permissions(self.folder.path().join(name), fs::Permissions::from_mode(mode)).expect("its mode");
    }

    fn write(&self, name: &str, text: &str, mode: u32) {
        fs::write(self.path(name), text).expect("a file");
        self.mode(Path::new(name), mode);
    }

    /// A function that runs the probe; `about` are lines of the function, `command` of its
    /// program.
    fn function(&self, name: &str, about: &str, command: &str) -> String {
        let user = if is_root() { format!("user = {OTHER}\ngroup = {OTHER}\n") } else { String::new() };
        let program = self.path("probe").display().to_string();
        format!("[functions.{name}]\n{about}\n[functions.{name}.command]\nprogram = {program:?}\n{user}{command}\n\n")
    }

    fn collection(&self, name: &str, text: &str) {
        self.write(&format!("functions.d/{name}.toml"), text, 0o644);
    }

    fn options(&self, config: &str) -> BrigdOptions {
        let folder = self.path("functions.d").display().to_string();
        BrigdOptions::default().config(&format!("{config}\n[functions]\ndir = {folder:?}\n")).state(&self.path("state"))
    }

    fn brigd(&self) -> Brigd {
        self.options("").start()
    }
}

fn call(client: &mut Client, function: &str, input: &Value) -> Value {
    client.result("functions.call", &json!({"function": function, "input": input}))
}

/// What a call gave; it must have completed.
fn value(client: &mut Client, function: &str, input: &Value) -> Value {
    let result = call(client, function, input);
    assert_eq!(result.pointer("/call/state"), Some(&json!("completed")), "{result}");
    result.get("value").cloned().unwrap_or(Value::Null)
}

fn state_and_code(result: &Value) -> (String, String) {
    let text = |pointer: &str| result.pointer(pointer).and_then(Value::as_str).unwrap_or("-").to_owned();
    (text("/call/state"), text("/call/code"))
}

fn message(result: &Value) -> String {
    result.pointer("/error/message").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not in time");
        std::thread::yield_now();
    }
}

const TEXT: &str = "input_schema = { type = \"object\", properties = { text = { type = \"string\" } } }";

#[test]
fn a_function_of_the_operator_stands_beside_those_of_the_client() {
    let place = Place::new();
    place.collection("shop", &place.function("echo", "effect = \"read\"", "args = [\"echo\"]"));
    place.collection("other", &place.function("echo", "", "args = [\"echo\"]"));
    let brigd = place.brigd();
    let mut client = brigd.connect();
    let source = "[await shop.echo({n: 1}), await own.f({n: 2}), typeof other]";
    let mut handlers = Handlers::none().on("own.f", json!({"kind": "echo"}));
    let params = json!({"source": source, "hostFunctions": {"own": {"f": {}}}, "collections": ["shop"]});
    let result = client.evaluate_with(&params, &mut handlers);
    assert_eq!(result.pointer("/value/0"), Some(&json!({"n": 1})), "{result}");
    assert_eq!(result.pointer("/value/2"), Some(&json!("undefined")), "{result}");
    assert_eq!(result.pointer("/calls/0/function"), Some(&json!("shop.echo")), "{result}");
    assert_eq!((handlers.calls("own.f"), handlers.calls("shop.echo")), (1, 0));

    let refused = |client: &mut Client, params: Value| client.call("evaluate", &params).pointer("/error/data").cloned().unwrap_or_default();
    let fault = refused(&mut client, json!({"source": "1", "hostFunctions": {"shop": {"mine": {}}}}));
    assert_eq!(fault.get("code"), Some(&json!("invalid_function")), "{fault}");
    let fault = refused(&mut client, json!({"source": "1", "collections": ["shp"]}));
    assert!(fault.to_string().contains("did you mean") && fault.to_string().contains("shop"), "{fault}");
    let narrowed =
        json!({"source": "await shop.echo({})", "permissions": {"hostFunction": {"rules": [{"mode": "allow", "patterns": ["other.*"]}]}}});
    let result = client.evaluate_with(&narrowed, &mut Handlers::none());
    assert_eq!(result.pointer("/calls/0/code"), Some(&json!("permission_denied")), "{result}");
}

#[test]
fn what_is_configured_is_listed_described_and_called_once_for_its_key() {
    let place = Place::new();
    let about = format!(
        "description = \"Says it\"\neffect = \"read\"\nretry = \"safe\"\ntimeout_ms = 9000\n{TEXT}\n\
        examples = [{{ description = \"One\", input = {{ text = \"a\" }} }}]"
    );
    let mark = place.path("work/mark").display().to_string();
    place.collection(
        "shop",
        &(place.function("sayIt", &about, "args = [\"args\", \"{input.text}\"]")
            + &place.function("leave", "", &format!("args = [\"leave\", {:?}]", place.path("work").display().to_string()))),
    );
    let brigd = place.brigd();
    let mut client = brigd.connect();
    let listed = client.result("functions.list", &json!({"collection": "shop"}));
    let expected = json!({"function": "shop.sayIt", "collection": "shop", "description": "Says it", "effect": "read"});
    assert_eq!(listed.pointer("/functions/1"), Some(&expected), "{listed}");
    let described = client.result("functions.describe", &json!({"function": "shop:say-it"}));
    assert_eq!(described.get("timeoutMs"), Some(&json!(9000)), "{described}");
    assert_eq!(described.pointer("/examples/0/input"), Some(&json!({"text": "a"})), "{described}");
    assert_eq!(described.pointer("/inputSchema/properties/text/type"), Some(&json!("string")), "{described}");
    let unknown = client.call("functions.describe", &json!({"function": "shop.sayItt"}));
    assert!(unknown.to_string().contains("there is no configured function") && unknown.to_string().contains("did you mean"), "{unknown}");
    assert_eq!(value(&mut client, "shop:say-it", &json!({"text": "x"})), json!(["x"]));
    let refused = call(&mut client, "shop.sayIt", &json!({"text": 5}));
    assert_eq!(state_and_code(&refused), ("refused".to_owned(), "invalid_input".to_owned()), "{refused}");

    let keyed = json!({"function": "shop.leave", "idempotencyKey": "k"});
    let first = client.result("functions.call", &keyed);
    fs::remove_file(place.path("work/pid")).expect("it ran");
    assert_eq!(client.result("functions.call", &keyed), first);
    assert!(!place.path("work/pid").exists(), "it ran again");
    let other = client.call("functions.call", &json!({"function": "shop.sayIt", "idempotencyKey": "k"}));
    assert!(other.to_string().contains("idempotency_conflict"), "{other}");
    assert!(!Path::new(&mark).exists());
}

#[test]
fn no_input_is_more_than_its_argument_and_none_becomes_an_option() {
    let place = Place::new();
    place.collection(
        "shop",
        &(place.function("whole", TEXT, "args = [\"args\", \"{input.text}\", \"end\"]")
            + &place.function("within", TEXT, "args = [\"args\", \"--text={input.text}\", [\"--\", \"{input.text}\"]]")),
    );
    let brigd = place.brigd();
    let mut client = brigd.connect();
    for text in ["a b", "'; touch /tmp/x #", "$(id)", "`id`", "a\nb", "\"", "", "*", "a\\", "żółć", "{input.text}", "a\tb\u{1}"] {
        assert_eq!(value(&mut client, "shop.whole", &json!({"text": text})), json!([text, "end"]));
        assert_eq!(value(&mut client, "shop.within", &json!({"text": text})), json!([format!("--text={text}"), "--", text]));
    }
    for text in ["-x", "--output=/etc/passwd", "-"] {
        let result = call(&mut client, "shop.whole", &json!({"text": text}));
        assert_eq!(state_and_code(&result), ("refused".to_owned(), "invalid_input".to_owned()), "{result}");
        assert!(message(&result).contains("option"), "{result}");
        assert_eq!(value(&mut client, "shop.within", &json!({"text": text})), json!([format!("--text={text}"), "--", text]));
    }
    for (text, says) in [("a\0b".to_owned(), "NUL"), ("x".repeat(200_000), "at most")] {
        let result = call(&mut client, "shop.whole", &json!({"text": text}));
        assert_eq!(state_and_code(&result).0, "refused", "{says}");
        assert!(message(&result).contains(says), "{}", message(&result));
    }
    let long = "y".repeat(131_000);
    assert_eq!(value(&mut client, "shop.whole", &json!({"text": long})), json!([long, "end"]));
    assert_eq!(value(&mut client, "shop.within", &json!({})), json!([]));
}

#[test]
fn a_program_finds_what_it_was_given_and_nothing_else() {
    let place = Place::new();
    let token = place.path("token").display().to_string();
    let command = "args = [\"world\"]\nenv = { LANG = \"C.UTF-8\", KEY = \"{call.idempotency_key}\", WHO = \"{principal.uid}\" }\n\
        umask = \"0027\"\nfolder = \"/tmp\"\nlimits = { cpu_seconds = 7, open_files = 31 }\n\
        credentials = { token = { file_variable = \"TOKEN_FILE\" } }";
    place.collection("shop", &format!("[credentials.token]\nfile = {token:?}\n{}", place.function("world", "", command)));
    let brigd = place.brigd();
    // The redactor hides what the program saw of its credential; its length shows it.
    let world = value(&mut brigd.connect(), "shop.world", &json!({"a": [1, 2.50]}));
    let own = nix::unistd::geteuid().as_raw();
    let is = |member: &str, expected: Value| assert_eq!(world.get(member), Some(&expected), "{member}: {world}");
    is("arguments", json!(["world"]));
    is("input", json!("{\"a\":[1,2.5]}"));
    is("folder", json!("/tmp"));
    is("umask", json!(0o027));
    is("noNewPrivs", json!("1"));
    is("blocked", json!("0000000000000000"));
    is("leader", json!(true));
    is("descriptors", json!([0, 1, 2, 3]));
    is("core", json!(0));
    is("files_open", json!(31));
    is("cpu", json!(7));
    is("files", json!({"TOKEN_FILE": "[redacted:token]"}));
    let environment = world.get("environment").and_then(Value::as_object).expect("an environment");
    let mut names: Vec<&str> = environment.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["KEY", "LANG", "TOKEN_FILE", "WHO"]);
    assert_eq!(environment.get("WHO"), Some(&json!(own.to_string())));
    assert!(environment.get("KEY").and_then(Value::as_str).is_some_and(|key| key.starts_with("fc_") && key.ends_with(":1")));
    assert_eq!(environment.get("TOKEN_FILE"), Some(&json!("/proc/self/fd/3")));
    if is_root() {
        is("uid", json!(format!("{OTHER}\t{OTHER}\t{OTHER}\t{OTHER}")));
        is("gid", json!(format!("{OTHER}\t{OTHER}\t{OTHER}\t{OTHER}")));
        is("groups", json!(""));
        is("capabilities", json!("0000000000000000"));
    }
}

/// The process that a program left in `work`.
fn left_behind(place: &Place) -> PathBuf {
    until("a process is left", || place.path("work/pid").exists());
    let pid = fs::read_to_string(place.path("work/pid")).expect("its number");
    Path::new("/proc").join(pid)
}

#[test]
fn whatever_a_program_starts_ends_with_its_call() {
    let place = Place::new();
    let work = place.path("work").display().to_string();
    let hang = format!("args = [\"hang\", {work:?}]");
    place.collection(
        "shop",
        &(place.function("read", "effect = \"read\"\ntimeout_ms = 1500", &hang)
            + &place.function("write", "timeout_ms = 1500", &hang)
            + &place.function("hang", "", &hang)
            + &place.function("leave", "", &format!("args = [\"leave\", {work:?}]"))),
    );
    let mut brigd = place.brigd();
    let mut client = brigd.connect();
    for (function, state) in [("shop.read", "failed"), ("shop.write", "unknown")] {
        let result = call(&mut client, function, &json!({}));
        assert_eq!(state_and_code(&result), (state.to_owned(), "function_timed_out".to_owned()), "{result}");
        let process = left_behind(&place);
        until("the orphan of a timed-out call ends", || !process.exists());
        fs::remove_file(place.path("work/pid")).expect("its number");
    }
    assert_eq!(value(&mut client, "shop.leave", &json!({})), json!("left"));
    let process = left_behind(&place);
    until("the orphan of a call that is over ends", || !process.exists());
    fs::remove_file(place.path("work/pid")).expect("its number");

    // A cancel of the evaluation, then the death of brigd itself.
    let id = client.request("evaluate", &json!({"source": "await shop.hang({})"}));
    let process = left_behind(&place);
    assert!(process.exists());
    client.send(&json!({"jsonrpc": "2.0", "method": "cancel", "params": {"id": id}}));
    let answer = client.answer(id, &mut Handlers::none());
    assert_eq!(answer.pointer("/result/calls/0/state"), Some(&json!("unknown")), "{answer}");
    until("the orphan of a cancelled call ends", || !process.exists());
    fs::remove_file(place.path("work/pid")).expect("its number");
    client.request("functions.call", &json!({"function": "shop.hang"}));
    let process = left_behind(&place);
    brigd.signal(Signal::SIGKILL);
    brigd.wait();
    until("the orphan of a dead brigd ends", || !process.exists());
}

#[test]
fn each_end_of_a_program_is_told_as_what_it_is() {
    let place = Place::new();
    let mut text = String::new();
    for (name, args) in [
        ("big", "[\"flood\", \"9000000\"]"),
        ("nonsense", "[\"print\", \"gibberish\"]"),
        ("wrong", "[\"print\", \"5\"]"),
        (
            "described",
            "[\"exit\", \"1\", '{{\"error\":{{\"name\":\"NoOrder\",\"message\":\"no such order\",\"code\":\"no_order\",\"data\":{{\"id\":7}}}}}}']",
        ),
        ("sysexit", "[\"exit\", \"69\", \"\"]"),
        ("odd", "[\"exit\", \"9\", \"\"]"),
        ("killed", "[\"kill\", \"9\"]"),
        ("exhausted", "[\"kill\", \"24\"]"),
    ] {
        text += &place.function(name, "output_schema = { type = \"string\" }", &format!("args = {args}"));
        write!(text, "{}", place.function(&format!("{name}Read"), "effect = \"read\"", &format!("args = {args}"))).expect("text");
    }
    text += &place.function("gone", "", "args = []\nfolder = \"/nonexistent-folder\"");
    place.collection("shop", &text);
    let brigd = place.brigd();
    let mut client = brigd.connect();
    for (function, state, code) in [
        ("big", "completed", "output_too_large"),
        ("nonsense", "completed", "invalid_output"),
        ("wrong", "completed", "invalid_output"),
        ("described", "failed", "function_failed"),
        ("sysexit", "failed", "function_failed"),
        ("odd", "unknown", "function_crashed"),
        ("killed", "unknown", "function_crashed"),
        ("exhausted", "unknown", "function_crashed"),
        ("oddRead", "failed", "function_crashed"),
        ("killedRead", "failed", "function_crashed"),
        ("gone", "failed", "function_failed"),
    ] {
        let result = call(&mut client, &format!("shop.{function}"), &json!({}));
        assert_eq!(state_and_code(&result), (state.to_owned(), code.to_owned()), "{function}: {result}");
        assert!(result.get("value").is_none() && !message(&result).contains("gibberish"), "{function}: {result}");
    }
    let result = call(&mut client, "shop.described", &json!({}));
    let error =
        json!({"code": "function_failed", "message": "no such order", "name": "NoOrder", "functionCode": "no_order", "data": {"id": 7}});
    assert_eq!(result.get("error"), Some(&error));
    assert!(message(&call(&mut client, "shop.gone", &json!({}))).contains("could not be started"));
    assert!(brigd.log().contains("/nonexistent-folder"), "{}", brigd.log());
    // In a program the same is an error like any other.
    let caught = client.evaluate("try { await shop.described({}) } catch (e) { [e.code, e.message] }");
    assert_eq!(caught.get("value"), Some(&json!(["no_order", "no such order"])), "{caught}");
}

#[test]
fn a_program_that_ends_by_any_signal_has_started_and_is_told_so() {
    let place = Place::new();
    let ending: Vec<Signal> = Signal::iterator().filter(|signal| !NO_END.contains(&signal.as_str())).collect();
    let functions = ending.iter().map(|signal| {
        let name = signal.as_str().to_lowercase();
        place.function(&name, "", &format!("args = [\"kill\", \"{}\"]", *signal as i32))
    });
    place.collection("shop", &functions.collect::<String>());
    let brigd = place.brigd();
    let mut client = brigd.connect();
    for signal in ending {
        let result = call(&mut client, &format!("shop.{}", signal.as_str().to_lowercase()), &json!({}));
        assert_eq!(state_and_code(&result), ("unknown".to_owned(), "function_crashed".to_owned()), "{signal}: {result}");
        assert!(message(&result).contains(signal.as_str()), "{signal}: {result}");
    }
    assert!(!brigd.log().contains("could not be started"), "{}", brigd.log());
}

#[test]
fn a_signal_that_the_keeper_can_not_end_by_is_told_as_what_it_is_and_at_once() {
    let place = Place::new();
    let user = if is_root() { format!("user = {OTHER}\ngroup = {OTHER}\n") } else { String::new() };
    // Real-time ones have no name; handlers of the keeper's runtime take the others.
    let signals = [(11, "SIGSEGV"), (7, "SIGBUS"), (13, "SIGPIPE"), (34, "signal 34"), (64, "signal 64")];
    let functions = signals.iter().fold(String::new(), |mut text, (number, _)| {
        let about = format!("[functions.by{number}]\ntimeout_ms = 300000\n[functions.by{number}.command]\n");
        let command = format!("program = \"/bin/sh\"\n{user}args = [\"-c\", \"kill -{number} $$\"]\n\n");
        text.push_str(&(about + &command));
        text
    });
    place.collection("shop", &functions);
    // The test's own deadline is far below the time-out: who waits for that has not seen the end.
    let brigd = place.options("[limits]\nfunction_timeout_ms = 300000").start();
    let mut client = brigd.connect();
    for (number, name) in signals {
        let result = call(&mut client, &format!("shop.by{number}"), &json!({}));
        assert_eq!(state_and_code(&result), ("unknown".to_owned(), "function_crashed".to_owned()), "{name}: {result}");
        assert!(message(&result).contains(&format!("ended by {name};")), "{name}: {result}");
    }
}

/// Signals that end no process by themselves, or that the runtime of the program takes.
const NO_END: [&str; 11] =
    ["SIGCHLD", "SIGCONT", "SIGURG", "SIGWINCH", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGPIPE", "SIGBUS", "SIGSEGV"];

#[test]
fn what_a_program_complains_is_logged_bounded_and_escaped() {
    let place = Place::new();
    place.collection("shop", &place.function("complain", "", "args = [\"complain\", \"20000\"]"));
    let brigd = place.brigd();
    assert_eq!(value(&mut brigd.connect(), "shop.complain", &json!({})), Value::Null);
    let log = brigd.log();
    assert!(log.contains("complaint 0") && log.contains("shop.complain") && log.contains("more than is logged"), "{log}");
    assert!(log.len() < 64 * 1024, "{} bytes were logged", log.len());
    assert!(!log.contains('\u{1b}') && !log.contains('\u{202e}'));
}

/// Opens the gate for one program that waits before it.
/// Opens the gate for whoever waits at it, again and again. One opening may let in all that
/// wait, so how many there are is nobody's to count; the thread ends with the test's process.
fn keep_open(fifo: &Path) {
    let fifo = fifo.to_owned();
    std::thread::spawn(move || while fs::File::options().write(true).open(&fifo).is_ok() {});
}

#[test]
fn no_more_calls_run_at_once_than_may_and_others_are_served_meanwhile() {
    let place = Place::new();
    let work = place.path("work");
    let fifo = work.join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::from_bits_truncate(0o666)).expect("a gate");
    fs::set_permissions(&fifo, fs::Permissions::from_mode(0o666)).expect("its mode");
    let gate = format!("args = [\"gate\", {:?}]", work.display().to_string());
    place.collection("shop", &(place.function("gate", "concurrency = 2", &gate) + &place.function("echo", "", "args = [\"echo\"]")));
    let brigd = place.options("[runtime]\nthreads = 1").start();
    let mut client = brigd.connect();
    let ids: Vec<u64> = (0..4).map(|_| client.request("functions.call", &json!({"function": "shop.gate"}))).collect();
    let inside = || {
        fs::read_dir(&work).expect("the folder").flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("in-")).count()
    };
    until("two are in", || inside() == 2);
    // Blocked programs hold neither a thread of brigd nor anybody else.
    assert_eq!(value(&mut brigd.connect(), "shop.echo", &json!({"a": 1})), json!({"a": 1}));
    assert_eq!(brigd.connect().evaluate("1").get("value"), Some(&json!(1)));
    assert_eq!(inside(), 2);
    keep_open(&fifo);
    for _ in ids {
        let answer = client.next_message();
        assert_eq!(answer.pointer("/result/value"), Some(&json!(true)), "{answer}");
    }
    assert_eq!(inside(), 4);
}

/// A write function that leaves a mark for every time it ran; `about` are lines of it.
fn gated(place: &Place, about: &str) -> PathBuf {
    let work = place.path("work");
    let fifo = work.join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::from_bits_truncate(0o666)).expect("a gate");
    fs::set_permissions(&fifo, fs::Permissions::from_mode(0o666)).expect("its mode");
    let gate = format!("args = [\"gate\", {:?}]", work.display().to_string());
    place.collection("shop", &place.function("gate", about, &gate));
    fifo
}

/// How often the function of [`gated`] ran.
fn marks(place: &Place) -> usize {
    let work = fs::read_dir(place.path("work")).expect("the folder");
    work.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("in-")).count()
}

/// What must be true after a crash at each stage of a call with a key: how often it ran,
/// what is known of it, and whether the answer is there.
const STAGES: &[(u32, usize, &str, bool)] = &[
    (1, 0, "unknown", false),
    (2, 0, "unknown", false),
    (3, 0, "unknown", false),
    (4, 0, "unknown", false),
    (5, 1, "unknown", false),
    (6, 1, "unknown", false),
    (7, 1, "completed", false),
    (8, 1, "completed", false),
    (9, 1, "completed", false),
    (10, 1, "completed", true),
];

#[test]
fn a_call_with_a_key_is_answered_and_never_run_again_after_kill_9_at_every_stage() {
    let request = json!({"function": "shop.gate", "idempotencyKey": "once"});
    for (stage, ran, state, ended) in STAGES {
        let place = Place::new();
        keep_open(&gated(&place, ""));
        let options = || place.options("");
        let mut brigd = options().env("BRIG_TEST_KILL_AT", &stage.to_string()).start();
        let mut client = brigd.connect();
        client.request("functions.call", &request);
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&brigd.wait()), Some(9), "stage {stage}: {}", brigd.log());
        assert_eq!(marks(&place), *ran, "stage {stage}");
        let mut brigd = options().start();
        let result = brigd.connect().result("functions.call", &request);
        let code = if *ended { "-" } else { "interrupted" };
        assert_eq!(state_and_code(&result), ((*state).to_owned(), code.to_owned()), "stage {stage}: {result}");
        assert_eq!(result.get("value").is_some(), *ended, "stage {stage}: {result}");
        assert_eq!(result.pointer("/error/code").is_none(), *ended, "stage {stage}: {result}");
        brigd.signal(Signal::SIGKILL);
        brigd.wait();
        // As often as it is asked, across as many restarts.
        let again = options().start().connect().result("functions.call", &request);
        assert_eq!(again, result, "stage {stage}");
        assert_eq!(marks(&place), *ran, "stage {stage}: it ran again");
    }
}

#[test]
fn a_call_that_runs_when_brigd_is_killed_is_unknown_and_its_key_is_for_nothing_else() {
    let place = Place::new();
    let fifo = gated(&place, "");
    let options = || place.options("");
    let request = json!({"function": "shop.gate", "idempotencyKey": "once"});
    let mut brigd = options().start();
    let mut client = brigd.connect();
    client.request("functions.call", &request);
    until("it runs", || marks(&place) == 1);
    brigd.signal(Signal::SIGKILL);
    brigd.wait();
    keep_open(&fifo);
    let brigd = options().start();
    let result = brigd.connect().result("functions.call", &request);
    assert_eq!(state_and_code(&result), ("unknown".to_owned(), "interrupted".to_owned()), "{result}");
    assert!(message(&result).contains("is unknown") && message(&result).contains("not run again"), "{result}");
    for (method, params) in [
        ("functions.call", json!({"function": "shop.gate", "input": {"a": 1}, "idempotencyKey": "once"})),
        ("evaluate", json!({"source": "1", "idempotencyKey": "once"})),
    ] {
        let other = brigd.connect().call(method, &params);
        assert_eq!(other.pointer("/error/data/code"), Some(&json!("idempotency_conflict")), "{other}");
    }
    assert_eq!(marks(&place), 1);
    // Another key is another call.
    let other = brigd.connect().result("functions.call", &json!({"function": "shop.gate", "idempotencyKey": "other"}));
    assert_eq!(other.get("value"), Some(&json!(true)), "{other}");
    assert_eq!(marks(&place), 2);
}

#[test]
fn calls_without_a_program_do_not_fill_the_journal() {
    let place = Place::new();
    place.collection("shop", &place.function("echo", "", "args = [\"echo\"]"));
    let brigd = place.options("[journal]\nevaluations_each = 3").start();
    let mut client = brigd.connect();
    for _ in 0..8 {
        assert_eq!(value(&mut client, "shop.echo", &json!({"a": 1})), json!({"a": 1}));
    }
}

#[test]
fn without_a_state_directory_a_function_that_may_change_something_is_not_there_and_the_log_says_why() {
    let place = Place::new();
    place.collection("look", &place.function("echo", "effect = \"read\"", "args = [\"echo\"]"));
    place.collection(
        "act",
        &(place.function("echo", "", "args = [\"echo\"]") + &place.function("see", "effect = \"read\"", "args = [\"echo\"]")),
    );
    let folder = place.path("functions.d").display().to_string();
    let options = BrigdOptions::default().config(&format!("[functions]\ndir = {folder:?}\n"));
    let brigd = options.clone().start();
    let mut client = brigd.connect();
    assert_eq!(value(&mut client, "look.echo", &json!({"a": 1})), json!({"a": 1}));
    for function in ["act.echo", "act.see"] {
        let answer = client.call("functions.call", &json!({"function": function, "input": {}}));
        assert_eq!(answer.pointer("/error/data/code"), Some(&json!("invalid_params")), "{answer}");
        assert!(answer.to_string().contains("there is no configured function"), "{answer}");
    }
    for part in ["act.toml", "functions.echo.effect", "server.state_dir", "--state DIR"] {
        assert!(brigd.log().contains(part), "{part}: {}", brigd.log());
    }
    // A check by hand has not what systemd gives to the service, and only says so.
    let check = options.arg("--check").try_start().expect_err("it ends");
    assert!(check.contains("3 functions are configured") && check.contains("act.echo may change something"), "{check}");
    let brigd = place.brigd();
    assert_eq!(value(&mut brigd.connect(), "act.echo", &json!({"a": 2})), json!({"a": 2}));
}

#[test]
fn no_more_calls_begin_in_a_minute_than_may() {
    let place = Place::new();
    place.collection("shop", &place.function("echo", "calls_per_minute = 3", "args = [\"echo\"]"));
    let brigd = place.brigd();
    let mut client = brigd.connect();
    for _ in 0..3 {
        value(&mut client, "shop.echo", &json!({}));
    }
    let result = call(&mut client, "shop.echo", &json!({}));
    assert_eq!(state_and_code(&result), ("refused".to_owned(), "rate_limited".to_owned()), "{result}");
    // What is refused for another reason does not count, nor does it say that there is a limit.
    let result = call(&mut client, "shop.echo", &json!([]));
    assert_eq!(state_and_code(&result).1, "invalid_input", "{result}");
}

#[test]
fn one_bad_file_disables_its_collection_and_nothing_else() {
    let place = Place::new();
    place.collection("good", &place.function("echo", "", "args = [\"echo\"]"));
    place.collection("bad", &place.function("echo", "descriptoin = \"x\"", "args = [\"echo\"]"));
    place.write("functions.d/open.toml", &place.function("echo", "", "args = [\"echo\"]"), 0o666);
    let brigd = place.brigd();
    let mut client = brigd.connect();
    let listed = client.result("functions.list", &json!({}));
    assert_eq!(listed.get("functions").and_then(Value::as_array).map(Vec::len), Some(1), "{listed}");
    assert_eq!(value(&mut client, "good.echo", &json!({})), json!({}));
    let log = brigd.log();
    assert!(log.contains("bad.toml") && log.contains("did you mean `description`?"), "{log}");
    assert!(log.contains("open.toml") && log.contains("chmod go-w"), "{log}");
    let checked = place.options("").arg("--check").try_start().expect_err("it ends");
    assert!(checked.contains("bad.toml") && checked.contains("open.toml") && checked.contains("exit status: 2"), "{checked}");
}

#[test]
fn a_user_whom_brigd_does_not_run_as_sees_no_function_of_the_operator() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let program = place.path("probe").display().to_string();
    place.collection("shop", &format!("[functions.echo.command]\nprogram = {program:?}\nargs = [\"echo\"]\n"));
    let mut options = place.options("");
    options.uid = Some(OTHER);
    fs::create_dir(place.path("state")).expect("a folder");
    place.mode(Path::new("state"), 0o700);
    std::os::unix::fs::chown(place.path("state"), Some(OTHER), Some(OTHER)).expect("its owner");
    let brigd = options.start();
    assert!(brigd.log().contains("functions are configured"), "{}", brigd.log());
    // Root may evaluate there, and is not the user that brigd runs as.
    let mut client = brigd.connect();
    assert_eq!(client.result("functions.list", &json!({})), json!({"functions": []}));
    for method in ["functions.describe", "functions.call"] {
        let unseen = client.call(method, &json!({"function": "shop.echo"}));
        let unknown = client.call(method, &json!({"function": "shop.nothing"}));
        let text = |answer: &Value| answer.get("error").map(Value::to_string).unwrap_or_default().replace("nothing", "echo");
        assert!(unseen.to_string().contains("there is no configured function"), "{unseen}");
        assert_eq!(text(&unseen), text(&unknown));
    }
    let result = client.evaluate("typeof shop");
    assert_eq!(result.get("value"), Some(&json!("undefined")), "{result}");
}

/// Whether six letters of the secret in a row stand in a text, as they are or in one of
/// the forms that the probe writes.
fn gives_away(text: &str) -> Option<String> {
    let forms = |part: &str| {
        let hex: String = part.bytes().map(|byte| format!("{byte:02x}")).collect();
        let url: String = part.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let spelt: String = part.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
        [part.to_owned(), json!(part).to_string().trim_matches('"').to_owned(), hex, url, spelt]
    };
    let lower = text.to_lowercase();
    let letters: Vec<char> = SECRET.chars().collect();
    let parts = letters.windows(6).map(|part| part.iter().collect::<String>());
    parts
        .flat_map(|part| forms(&part))
        .chain(BASE64.iter().map(|core| (*core).to_owned()))
        .find(|form| lower.contains(&form.to_lowercase()))
}

/// Middle parts of the secret in base64, at its three places.
const BASE64: &[&str] = &["ay00NzExL2Fi", "rLTQ3MTEvYW", "LTQ3MTEvYWIi", "stNDcxMS9hYi"];

#[test]
fn a_credential_reaches_nobody_in_any_form_it_is_looked_for() {
    let place = Place::new();
    let token = place.path("token").display().to_string();
    let mut text = format!("[credentials.token]\nfile = {token:?}\n");
    for how in ["output", "failure", "complaint", "broken", "text"] {
        let output = if how == "text" { "output = \"text\"\n" } else { "" };
        let command = format!("{output}args = [\"leak\", {how:?}]\ncredentials = {{ token = {{ variable = \"TOKEN\" }} }}");
        text += &place.function(how, "audit = \"full\"", &command);
    }
    place.collection("shop", &text);
    let audit = place.path("audit").display().to_string();
    let brigd = place.options(&format!("[audit]\ndir = {audit:?}\n[server]\nlog = \"trace\"")).start();
    let mut client = brigd.connect();
    for how in ["output", "failure", "complaint", "broken", "text"] {
        let line = call(&mut client, &format!("shop.{how}"), &json!({"note": SECRET})).to_string();
        assert!(matches!(how, "complaint" | "broken") || line.contains("[redacted:token]"), "{how}: {line}");
        assert_eq!(gives_away(&line), None, "{how}: {line}");
        let source = format!("try {{ await shop.{how}({{}}) }} catch (e) {{ [e.name, e.message, e.code, e.data, e.stack] }}");
        let line = client.evaluate(&source).to_string();
        assert_eq!(gives_away(&line), None, "{how}: {line}");
    }
    let log = brigd.log();
    assert!(log.contains("held a credential") && log.contains("it is [redacted:token]"), "{log}");
    assert_eq!(gives_away(&log), None, "{log}");
    let segments = fs::read_dir(place.path("audit")).expect("the audit folder").flatten();
    let audit: String = segments.filter_map(|entry| fs::read_to_string(entry.path()).ok()).collect();
    assert!(audit.contains("\"call_permitted\"") && audit.contains("[redacted:token]"), "{audit}");
    assert_eq!(gives_away(&audit), None, "{audit}");
    let environment = fs::read(format!("/proc/{}/environ", brigd.pid())).unwrap_or_default();
    assert_eq!(gives_away(&String::from_utf8_lossy(&environment)), None);
    // The net of this test holds: it finds what it looks for.
    for leak in [SECRET.to_owned(), "746f6b2d34373131".to_owned(), "dG9rLTQ3MTEvYWIiYytkP2U=".to_owned()] {
        assert!(gives_away(&leak).is_some(), "{leak}");
    }
}

/// Blocks of a document in one language.
fn blocks(document: &str, language: &str) -> Vec<String> {
    document.split(&format!("```{language}\n")).skip(1).filter_map(|rest| rest.split("```").next()).map(str::to_owned).collect()
}

#[test]
fn the_example_of_the_functions_guide_runs_and_prints_what_it_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let guide = fs::read_to_string(root.join("docs/functions.md")).expect("the guide");
    let example = fs::read_to_string(root.join("examples/configured/functions.d/host.toml")).expect("the example");
    assert!(blocks(&guide, "toml").contains(&example), "the guide does not show examples/configured/functions.d/host.toml");
    let place = Place::new();
    // Only root can make a program run as another.
    let text = if is_root() {
        example
    } else {
        example.lines().filter(|line| !line.starts_with("user =")).fold(String::new(), |all, line| all + line + "\n")
    };
    place.collection("host", &text);
    let brigd = place.brigd();
    assert!(!brigd.log().contains("is not used"), "{}", brigd.log());
    let bin = binary("brig").parent().expect("a folder").display().to_string();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap_or_default());
    let scripts = blocks(&guide, "sh");
    assert!(!scripts.is_empty());
    for script in scripts {
        let ran = std::process::Command::new("bash")
            .args(["-euo", "pipefail", "-c", &script])
            .env("PATH", &path)
            .env("BRIG_SOCKET", brigd.socket())
            .current_dir(&root)
            .output()
            .expect("bash");
        let said = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{script}\n{said}");
        for expected in script.lines().filter_map(|line| line.split_once("# → ").map(|(_, text)| text.trim())) {
            assert!(said.contains(expected), "{expected:?} is not in:\n{said}");
        }
    }
}
