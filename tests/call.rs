//! Functions of the operator as commands of a shell, through the real binaries.
#![expect(clippy::expect_used, reason = "tests")]

use acceptance::{Brigd, BrigdOptions, DEADLINE, binary};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;
use tempfile::TempDir;

#[path = "call/zsh.rs"]
mod zsh;

/// As whom programs run where the tests are root.
const OTHER: u32 = 65_432;

/// A brigd with functions, and a folder for links.
struct Place {
    folder: TempDir,
    brigd: Brigd,
}

const SCHEMA: &str = r#"
description = "Lists orders.\u001b[2J\nNewest first."
effect = "read"
retry = "safe"
examples = [{ description = "Of one", input = { customer = "it's x", archived = false } }]
input_schema = '''{"type": "object", "required": ["customer"], "additionalProperties": false, "properties": {
  "customer": {"type": "string", "description": "Whose\u001b]0;owned\u0007 orders"},
  "maxAge": {"type": "integer"}, "minTotal": {"type": "number"}, "archived": {"type": "boolean"},
  "state": {"enum": ["open", "closed"]}, "mood": {"enum": ["$(id)", "a b", "fine"]}, "tags": {"type": "array", "items": {"type": "string"}},
  "shipTo": {"type": "object", "properties": {"cityName": {"type": "string"}}}, "timeout": {"type": "integer"}}}'''
"#;

fn function(program: &Path, name: &str, about: &str, command: &str) -> String {
    let user = if nix::unistd::geteuid().is_root() { format!("user = {OTHER}\ngroup = {OTHER}\n") } else { String::new() };
    let program = program.display().to_string();
    format!("[functions.{name}]\n{about}\n[functions.{name}.command]\nprogram = {program:?}\n{user}{command}\n\n")
}

impl Place {
    fn new() -> Self {
        Self::with(|config| BrigdOptions::default().config(config).start())
    }

    /// Where refunds wait for a person who does not come.
    fn asking() -> Self {
        let own = nix::unistd::geteuid();
        Self::with(|config| {
            let rules = format!(
                "[admin]\napprovers = [\"uid:{OTHER}\"]\n[principals.\"uid:{own}\"]\nhost_function = {{ rules = [\n\
                 {{ mode = \"allow\", patterns = [\"**\"] }},\n\
                 {{ mode = \"ask\", patterns = [\"billing.refund\"], when = {{ required = [\"soon\"] }}, ask = {{ approvers = [\"uid:{OTHER}\"], wait_seconds = 1 }} }},\n\
                 {{ mode = \"ask\", patterns = [\"billing.refund\"], when = {{ required = [\"late\"] }}, ask = {{ approvers = [\"uid:{OTHER}\"], wait_seconds = 600 }} }},\n] }}\n"
            );
            BrigdOptions::default().config(&format!("{config}{rules}")).admin().start()
        })
    }

    fn with(start: impl FnOnce(&str) -> Brigd) -> Self {
        let folder = tempfile::Builder::new().prefix("brig-call-").tempdir().expect("a folder");
        let mode = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("its mode");
        mode(folder.path());
        for name in ["functions.d", "bin"] {
            fs::create_dir(folder.path().join(name)).expect("a folder");
            mode(&folder.path().join(name));
        }
        let probe = folder.path().join("probe");
        fs::copy(binary("brig-test-probe"), &probe).expect("the probe");
        mode(&probe);
        let store = function(&probe, "listOrders", SCHEMA, "args = [\"echo\"]")
            + &function(&probe, "sayText", "", "args = [\"print\", \"\\u001b[2J plain\"]\noutput = \"text\"")
            + &function(&probe, "fails", "", "args = [\"exit\", \"3\", \"\"]\nfailure_codes = [3]")
            + &function(&probe, "dies", "effect = \"write\"", "args = [\"kill\", \"9\"]")
            + &function(&probe, "hangs", "effect = \"write\"", "args = [\"hang\", \"/nowhere\"]");
        fs::write(folder.path().join("functions.d/orderStore.toml"), store).expect("functions");
        let billing = function(&probe, "refund", "effect = \"write\"", "args = [\"echo\"]");
        fs::write(folder.path().join("functions.d/billing.toml"), billing).expect("functions");
        let functions = folder.path().join("functions.d").display().to_string();
        let state = folder.path().join("state").display().to_string();
        let brigd = start(&format!("[server]\nstate_dir = {state:?}\n[functions]\ndir = {functions:?}\n"));
        Self { folder, brigd }
    }

    fn bin(&self) -> PathBuf {
        self.folder.path().join("bin")
    }

    /// A program of this place with its environment.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        let path = format!("{}:{}:/usr/bin:/bin", self.bin().display(), binary("brig").parent().expect("a folder").display());
        command.env("BRIG_SOCKET", self.brigd.socket()).env("BRIGD", "/nowhere/brigd").env("PATH", path).stdin(Stdio::null());
        command
    }

    fn brig(&self, arguments: &[&str]) -> Output {
        self.command(&binary("brig")).args(arguments).output().expect("brig runs")
    }

    /// What `brig call order-store …` prints; it must succeed.
    fn called(&self, arguments: &[&str]) -> Value {
        let output = self.brig(&[&["call", "order-store"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// How it ended, and the one line that says why.
    fn refused(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.brig(&[&["call"], arguments].concat());
        assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
        let said = text(&output.stderr);
        assert_eq!(said.lines().count(), 1, "{said}");
        (output.status.code(), said.trim_end().to_owned())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_function_is_called_with_flags_of_its_schema() {
    let place = Place::new();
    let flags = [
        "list-orders",
        "--customer",
        "x",
        "--max-age=-5",
        "--min-total",
        "1.50",
        "--no-archived",
        "--state",
        "open",
        "--tags",
        "a",
        "--tags=b",
        "--ship-to.city-name",
        "Brno",
        "--input.timeout",
        "7",
    ];
    let expected = json!({"customer": "x", "maxAge": -5, "minTotal": 1.5, "archived": false, "state": "open", "tags": ["a", "b"],
        "shipTo": {"cityName": "Brno"}, "timeout": 7});
    assert_eq!(place.called(&flags), expected);
    let exact = place.brig(&["call", "orderStore", "listOrders", "--customer=x"]);
    assert_eq!(text(&exact.stdout), "{\"customer\":\"x\"}\n", "{}", text(&exact.stderr));
}

#[test]
fn json_comes_from_the_argument_a_file_or_standard_input_and_flags_win() {
    let place = Place::new();
    let file = place.folder.path().join("in.json");
    fs::write(&file, r#"{"customer": "from file", "maxAge": 1}"#).expect("a file");
    let file = file.display().to_string();
    assert_eq!(
        place.called(&["list-orders", "--json", r#"{"customer": "j", "maxAge": 2}"#, "--max-age", "3"]),
        json!({"customer": "j", "maxAge": 3})
    );
    assert_eq!(place.called(&["--json-file", &file, "list-orders"]), json!({"customer": "from file", "maxAge": 1}));
    let mut child = place
        .command(&binary("brig"))
        .args(["call", "order-store", "list-orders", "--json", "-", "--customer", "flag"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("brig runs");
    child.stdin.take().expect("its input").write_all(br#"{"customer": "stdin", "archived": true}"#).expect("written");
    let output = child.wait_with_output().expect("its end");
    assert_eq!(text(&output.stdout), "{\"archived\":true,\"customer\":\"flag\"}\n");
    for (arguments, expected) in [
        (vec!["--json", "[1]"], "must be a JSON object, not an array"),
        (vec!["--json", "{}", "--json-file", &file], "--json"),
        (vec!["--json-file", "/nowhere/in.json"], "/nowhere/in.json"),
        (vec!["--json", r#"{"customer": "a", "customer": "b"}"#], "comes twice"),
    ] {
        let output = place.brig(&[&["call", "order-store", "list-orders"], arguments.as_slice()].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
    }
}

#[test]
fn every_state_has_its_exit_code_and_one_line() {
    let place = Place::new();
    assert_eq!(place.brig(&["call", "billing", "refund"]).status.code(), Some(0));
    let (code, said) = place.refused(&["order-store", "list-orders", "--max-age", "5"]);
    assert_eq!(code, Some(6), "{said}");
    assert!(
        said.starts_with("invalid_input: ") && said.contains("customer") && said.ends_with("see brig call order-store list-orders --help"),
        "{said}"
    );
    let (code, said) = place.refused(&["order-store", "fails"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.starts_with("function_failed: "), "{said}");
    let (code, said) = place.refused(&["order-store", "dies"]);
    assert_eq!(code, Some(9), "{said}");
    assert!(said.starts_with("function_crashed: ") && said.contains("unknown"), "{said}");
    let (code, said) = place.refused(&["order-store", "hangs", "--timeout", "200ms"]);
    assert_eq!(code, Some(9), "{said}");
    assert!(said.starts_with("function_timed_out: ") && said.contains("unknown"), "{said}");
    let (code, said) = place.refused(&["order-store", "list-order"]);
    assert_eq!(code, Some(6), "{said}");
    assert!(said.starts_with("invalid_params: ") && said.contains("no configured function"), "{said}");
    let (code, said) = place.refused(&["--socket", "/nowhere/brig.sock", "order-store", "fails"]);
    assert_eq!(code, Some(7), "{said}");
    assert!(said.starts_with("unreachable: "), "{said}");
    for wrong in [
        vec!["order-store", "list-orders", "--max-age", "x"],
        vec!["order-store", "list-orders", "--custmer", "x"],
        vec!["order-store", "list-orders", "stray"],
        vec!["order-store"],
        vec!["order-shop"],
        vec!["--private", "order-store", "fails"],
        vec!["order-store", "list-orders", "--customer", "\u{1b}[2J", "--state", "\u{1b}[2J"],
    ] {
        let (code, said) = place.refused(&wrong);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.starts_with("brig: ") && !said.contains('\u{1b}'), "{said}");
    }
}

#[test]
fn a_key_makes_a_call_once() {
    let place = Place::new();
    let call = |input: &str| place.brig(&["call", "billing", "refund", "--json", input, "--idempotency-key", "k1"]);
    assert_eq!(text(&call(r#"{"n":1}"#).stdout), "{\"n\":1}\n");
    assert_eq!(text(&call(r#"{"n":1}"#).stdout), "{\"n\":1}\n");
    let other = call(r#"{"n":2}"#);
    assert_eq!(other.status.code(), Some(6));
    assert!(text(&other.stderr).starts_with("idempotency_conflict: "), "{}", text(&other.stderr));
}

#[test]
fn help_has_flags_and_examples_and_nothing_that_moves_a_cursor() {
    let place = Place::new();
    let help = place.brig(&["call", "order-store", "list-orders", "--help"]);
    assert_eq!(help.status.code(), Some(0), "{}", text(&help.stderr));
    let said = text(&help.stdout);
    for expected in [
        "Lists orders.\\u{1b}[2J\nNewest first.\n",
        "--customer TEXT",
        "Whose\\u{1b}]0;owned\\u{7} orders [required]",
        "--archived, --no-archived",
        "brig call order-store list-orders --no-archived --customer 'it'\\''s x'",
    ] {
        assert!(said.contains(expected), "{expected:?} is not in\n{said}");
    }
    assert!(!said.contains(|c: char| c.is_control() && c != '\n'));
    let collection = text(&place.brig(&["call", "order-store", "--help"]).stdout);
    assert!(collection.contains("list-orders") && collection.contains("Lists orders.\\u{1b}[2J Newest first."), "{collection}");
    let general = text(&place.brig(&["call", "--help"]).stdout);
    assert!(general.contains("--idempotency-key") && general.contains("unknown"), "{general}");
}

#[test]
fn functions_are_listed_as_a_table_and_as_json() {
    let place = Place::new();
    let table = text(&place.brig(&["functions"]).stdout);
    assert!(table.lines().any(|line| line.starts_with("order-store") && line.contains("list-orders") && line.contains("read")), "{table}");
    assert!(table.contains("billing") && !table.contains('\u{1b}'), "{table}");
    let one = text(&place.brig(&["functions", "billing"]).stdout);
    assert!(one.contains("refund") && !one.contains("order-store"), "{one}");
    let json: Value = serde_json::from_slice(&place.brig(&["functions", "order-store", "--json"]).stdout).expect("JSON");
    assert_eq!(json.pointer("/functions").and_then(Value::as_array).map(Vec::len), Some(5), "{json}");
    let wrong = place.brig(&["functions", "bilings"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("did you mean billing?"));
}

#[test]
fn a_string_is_raw_where_that_is_asked_for() {
    let place = Place::new();
    assert_eq!(text(&place.brig(&["call", "order-store", "say-text"]).stdout), "\"\\u001b[2J plain\"\n");
    assert_eq!(text(&place.brig(&["call", "order-store", "say-text", "--raw"]).stdout), "\u{1b}[2J plain\n");
}

#[test]
fn links_are_commands_of_their_collections_and_only_links_of_brig_are_touched() {
    let place = Place::new();
    let bin = place.bin().display().to_string();
    fs::write(place.bin().join("brig-mine"), "x").expect("a file");
    // Called by a relative path from elsewhere: the links must not follow.
    let brig = binary("brig");
    let folder = brig.parent().expect("a folder");
    let made = place.command(Path::new("./brig")).current_dir(folder).args(["link", &bin]).output().expect("brig runs");
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let target = fs::read_link(place.bin().join("brig-order-store")).expect("a link");
    assert_eq!(target, fs::canonicalize(&brig).expect("its path"));
    assert!(text(&made.stdout).contains("brig-billing -> /"), "{}", text(&made.stdout));
    let linked = place.bin().join("brig-order-store");
    let output = place.command(&linked).args(["list-orders", "--customer", "x"]).output().expect("the link runs");
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("{\"customer\":\"x\"}\n", Some(0)), "{}", text(&output.stderr));
    let help = text(&place.command(&linked).args(["list-orders", "--help"]).output().expect("the link runs").stdout);
    assert!(help.contains("Usage: brig-order-store list-orders "), "{help}");
    let bare = place.command(&linked).output().expect("the link runs");
    assert_eq!(bare.status.code(), Some(2), "{}", text(&bare.stderr));

    fs::remove_file(&linked).expect("removed");
    std::os::unix::fs::symlink("/bin/true", &linked).expect("another link");
    let refused = place.brig(&["link", &bin]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("is there already"), "{}", text(&refused.stderr));
    let removed = place.brig(&["link", "--remove", &bin]);
    assert!(text(&removed.stdout).contains("removed ") && text(&removed.stdout).contains("brig-billing"), "{}", text(&removed.stdout));
    let mut left: Vec<String> =
        fs::read_dir(place.bin()).expect("a folder").map(|entry| text(entry.expect("one").file_name().as_bytes())).collect();
    left.sort();
    assert_eq!(left, ["brig-mine", "brig-order-store"]);
}

/// What bash would offer after these words, the last one unfinished.
fn completed(place: &Place, words: &[&str]) -> Vec<String> {
    let script = place.folder.path().join("complete.bash");
    let output = place.brig(&["completions", "bash"]);
    fs::write(&script, &output.stdout).expect("the script");
    let checked = Command::new("bash").arg("-n").arg(&script).output().expect("bash");
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    let run = r#"source "$1"; shift
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        spec=$(complete -p "$1") || exit 9
        [[ $spec == *"-F _brig "* ]] || exit 8
        _brig "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let output =
        place.command(Path::new("/usr/bin/bash")).args(["--norc", "-c", run, "bash"]).arg(&script).args(words).output().expect("bash");
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", text(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    text(&output.stdout).lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_collections_functions_flags_and_choices() {
    let place = Place::new();
    assert_eq!(completed(&place, &["brig", "ev"]), ["eval", "evaluations"]);
    assert_eq!(completed(&place, &["brig", "call", ""]), ["billing", "order-store"]);
    assert_eq!(completed(&place, &["brig", "functions", "o"]), ["order-store"]);
    assert_eq!(completed(&place, &["brig", "call", "order-store", "l"]), ["list-orders"]);
    assert_eq!(completed(&place, &["brig", "call", "order-store", "list-orders", "--customer", "x", "--st"]), ["--state"]);
    assert_eq!(completed(&place, &["brig", "call", "order-store", "list-orders", "--no"]), ["--no-archived", "--no-tags"]);
    assert_eq!(completed(&place, &["brig", "call", "order-store", "list-orders", "--state", ""]), ["closed", "open"]);
    // What a shell could run, expand or split is not offered.
    assert_eq!(completed(&place, &["brig", "call", "order-store", "list-orders", "--mood", ""]), ["fine"]);
    place.brig(&["link", &place.bin().display().to_string()]);
    assert_eq!(completed(&place, &["brig-order-store", "s"]), ["say-text"]);
}

#[test]
fn completion_never_hangs_and_never_says_an_error() {
    let place = Place::new();
    let silent = place.folder.path().join("silent.sock");
    // Takes connections, and never says a word.
    let _listener = std::os::unix::net::UnixListener::bind(&silent).expect("a socket");
    for socket in [silent.as_path(), Path::new("/nowhere/brig.sock")] {
        let begun = Instant::now();
        let output =
            place.command(&binary("brig")).env("BRIG_SOCKET", socket).args(["__complete", "--", "call", ""]).output().expect("brig runs");
        assert!(begun.elapsed() < DEADLINE / 2, "{:?}", begun.elapsed());
        assert_eq!((output.stdout.len(), output.stderr.len(), output.status.code()), (0, 0, Some(0)));
    }
    for words in [
        vec![],
        vec!["call"],
        vec!["call", "nothing", ""],
        vec!["call", "order-store", "--timeout", "--raw", ""],
        vec!["eval", ""],
        vec!["call", "$(id)", "x"],
    ] {
        let output = place.brig(&[&["__complete", "--"], words.as_slice()].concat());
        assert_eq!((output.stderr.len(), output.status.code()), (0, Some(0)), "{words:?}");
    }
}

/// What fish would offer after this line.
fn completed_by_fish(place: &Place, line: &str) -> Vec<String> {
    let script = place.folder.path().join("brig.fish");
    fs::write(&script, place.brig(&["completions", "fish"]).stdout).expect("the script");
    let run = "source $argv[1]; complete --do-complete $argv[2]";
    let home = place.folder.path();
    let mut fish = place.command(Path::new("/usr/bin/fish"));
    fish.env("HOME", home).env("XDG_CONFIG_HOME", home).env("XDG_DATA_HOME", home).args(["--no-config", "-c", run]);
    let output = fish.arg(&script).arg(line).output().expect("fish, which tests/run installs");
    assert!(output.stderr.is_empty(), "{line:?}: {}", text(&output.stderr));
    let mut found: Vec<String> = text(&output.stdout).lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn fish_completes_commands_collections_functions_flags_and_choices() {
    let place = Place::new();
    assert_eq!(completed_by_fish(&place, "brig ev"), ["eval", "evaluations"]);
    assert_eq!(completed_by_fish(&place, "brig call "), ["billing", "order-store"]);
    assert_eq!(completed_by_fish(&place, "brig functions o"), ["order-store"]);
    assert_eq!(completed_by_fish(&place, "brig call order-store l"), ["list-orders"]);
    assert_eq!(completed_by_fish(&place, "brig call order-store list-orders --customer x --st"), ["--state"]);
    assert_eq!(completed_by_fish(&place, "brig call order-store list-orders --no"), ["--no-archived", "--no-tags"]);
    assert_eq!(completed_by_fish(&place, "brig call order-store list-orders --state "), ["closed", "open"]);
    place.brig(&["link", &place.bin().display().to_string()]);
    assert_eq!(completed_by_fish(&place, "brig-order-store s"), ["say-text"]);
}

#[test]
fn a_call_that_waits_for_a_person_says_so_at_once_and_one_that_nobody_decides_is_refused() {
    let place = Place::asking();
    let output = place.brig(&["call", "billing", "refund", "--json", r#"{"soon": true}"#]);
    let said = text(&output.stderr);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!((lines.len(), output.status.code(), output.stdout.len()), (2, Some(6), 0), "{said}");
    let first = lines.first().copied().unwrap_or_default();
    assert!(
        first.starts_with("waiting: billing.refund needs a person's approval, for at most 1 s; ") && first.contains("brig approve ap_"),
        "{said}"
    );
    assert!(lines.last().is_some_and(|line| line.starts_with("approval_expired: ")), "{said}");
}

#[test]
fn a_call_that_a_person_denies_is_refused() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can be two users");
        return;
    }
    let place = Place::asking();
    let mut command = place.command(&binary("brig"));
    command.args(["call", "billing", "refund", "--json", r#"{"late": true}"#]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("brig runs");
    let mut said = BufReader::new(child.stderr.take().expect("its errors"));
    let mut line = String::new();
    said.read_line(&mut line).expect("the note");
    let id = line.trim().rsplit(' ').next().expect("an id").to_owned();
    assert!(id.starts_with("ap_"), "{line}");
    let mut other = acceptance::Client::connect_as(&place.brigd.admin_socket(), OTHER);
    other.result("approvals.deny", &json!({"approval": id}));
    line.clear();
    said.read_line(&mut line).expect("why");
    assert!(line.starts_with("approval_denied: "), "{line}");
    assert_eq!(child.wait().expect("its end").code(), Some(6));
}

#[test]
fn zsh_and_fish_take_their_scripts() {
    let place = Place::new();
    for shell in ["zsh", "fish"] {
        let script = place.folder.path().join(shell);
        fs::write(&script, place.brig(&["completions", shell]).stdout).expect("the script");
        let output = Command::new(shell).arg("-n").arg(&script).output();
        assert!(output.is_ok(), "{shell} does not run; tests/run installs it: {output:?}");
        let output = output.expect("it ran");
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
}
