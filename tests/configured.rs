//! Functions of the operator, through the real binaries: what a program is given, what an
//! input can make of it, how it ends, and what of it anybody gets to see.
#![expect(clippy::expect_used, reason = "tests")]

#[path = "configured/keys.rs"]
mod keys;
#[path = "configured/programs.rs"]
mod programs;
#[path = "configured/secrets.rs"]
mod secrets;

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

/// Signals that end no process by themselves, or that the runtime of the program takes.
const NO_END: [&str; 11] =
    ["SIGCHLD", "SIGCONT", "SIGURG", "SIGWINCH", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGPIPE", "SIGBUS", "SIGSEGV"];

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

/// Middle parts of the secret in base64, at its three places.
const BASE64: &[&str] = &["ay00NzExL2Fi", "rLTQ3MTEvYW", "LTQ3MTEvYWIi", "stNDcxMS9hYi"];

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
