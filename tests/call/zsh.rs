//! What zsh completes, by a real one at a terminal of its own.

use super::{Place, text};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a zsh may take to start, to read its functions and to complete.
const PATIENCE: Duration = Duration::from_secs(120);

/// What zsh would offer after this line.
fn completed(place: &Place, line: &str) -> Vec<String> {
    let functions = place.folder.path().join("zsh");
    fs::create_dir_all(&functions).expect("a folder");
    fs::write(functions.join("_brig"), place.brig(&["completions", "zsh"]).stdout).expect("the script");
    let offered = functions.join("offered");
    fs::write(&offered, "").expect("a file");
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("call/capture.zsh");
    let mut zsh = place.command(Path::new("zsh"));
    zsh.env("HOME", place.folder.path()).env("ZDOTDIR", place.folder.path()).env("BRIG_OFFERED", &offered).env("TERM", "dumb");
    let mut child = zsh.arg("-f").arg(capture).arg(&functions).arg(line).spawn().expect("zsh, which tests/run installs");
    let deadline = Instant::now() + PATIENCE;
    let ended = loop {
        if let Some(status) = child.try_wait().expect("its end") {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().expect("ended");
            assert!(Instant::now() < deadline, "zsh did not complete {line:?} in time");
        }
        std::thread::yield_now();
    };
    assert!(ended.success(), "{line:?}: {ended}");
    let mut found: Vec<String> = text(&fs::read(&offered).expect("what it offered")).lines().map(str::to_owned).collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn zsh_completes_commands_collections_functions_flags_and_choices() {
    let place = Place::new();
    assert_eq!(completed(&place, "brig ev"), ["eval", "evaluations"]);
    assert_eq!(completed(&place, "brig call "), ["billing", "order-store"]);
    assert_eq!(completed(&place, "brig functions o"), ["order-store"]);
    assert_eq!(completed(&place, "brig call order-store l"), ["list-orders"]);
    assert_eq!(completed(&place, "brig call order-store list-orders --customer x --st"), ["--state"]);
    assert_eq!(completed(&place, "brig call order-store list-orders --no"), ["--no-archived", "--no-tags"]);
    assert_eq!(completed(&place, "brig call order-store list-orders --state "), ["closed", "open"]);
    place.brig(&["link", &place.bin().display().to_string()]);
    assert_eq!(completed(&place, "brig-order-store s"), ["say-text"]);
}
