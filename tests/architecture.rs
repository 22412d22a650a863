//! The shape of the code, as absences: what each crate must never do. Held over
//! `cargo tree` and the sources.
#![expect(clippy::expect_used, reason = "tests")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every package that `package` is built from on this target, test-only ones left out.
fn built_from(package: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--offline",
            "--all-features",
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
            "-p",
            package,
        ])
        .current_dir(root())
        .output()
        .expect("cargo tree");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let packages: BTreeSet<String> =
        String::from_utf8_lossy(&output.stdout).lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    assert!(packages.contains(package), "{package} is not in its own tree");
    packages
}

/// Source files below a folder of the workspace, tests beside the code left out.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut queue = vec![root().join(folder)];
    while let Some(path) = queue.pop() {
        if path.is_dir() {
            queue.extend(std::fs::read_dir(&path).expect("a folder").flatten().map(|entry| entry.path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source");
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let in_tests = path.parent().is_some_and(|folder| folder.ends_with("tests"));
            if !name.contains("test") && !in_tests {
                found.push((path, without_tests(&text).to_owned()));
            }
        }
    }
    assert!(!found.is_empty(), "{folder} has no sources");
    found
}

/// A source up to the module of tests that stands in it; what is for tests alone before
/// that is held to the same.
fn without_tests(text: &str) -> &str {
    let mark = "\n#[cfg(test)]\n";
    let begins_module = |at: &usize| {
        let line = text.get(at + mark.len()..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        line.contains("mod ") && line.ends_with('{')
    };
    let end = text.match_indices(mark).map(|(at, _)| at).find(begins_module).unwrap_or(text.len());
    text.get(..end).unwrap_or(text)
}

/// Lines of code (comments left out) that hold one of `words`.
fn offending(folder: &str, words: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    for (path, text) in sources(folder) {
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if let Some(word) = words.iter().find(|word| code.contains(**word)) {
                lines.push(format!("{}:{}: {word}", path.display(), number + 1));
            }
        }
    }
    lines
}

#[test]
fn the_supervisor_never_links_the_engine_and_the_worker_never_the_runtime() {
    let supervisor = built_from("brigd");
    for never in ["rquickjs", "rquickjs-core", "rquickjs-sys", "brig-worker", "reqwest", "hyper", "openssl-sys"] {
        assert!(!supervisor.contains(never), "brigd is built from {never}");
    }
    let worker = built_from("brig-worker");
    for never in ["tokio", "tracing", "brigd", "brig", "jsonschema", "rusqlite"] {
        assert!(!worker.contains(never), "brig-worker is built from {never}");
    }
    let protocol = built_from("brig-protocol");
    for never in ["tokio", "nix", "rustix", "libc", "brigd", "brig-worker"] {
        assert!(!protocol.contains(never), "brig-protocol is built from {never}");
    }
    for never in ["rquickjs", "brigd", "brig-worker"] {
        assert!(!built_from("brig").contains(never), "brig is built from {never}");
    }
}

#[test]
fn the_protocol_does_no_io_and_reads_no_clock() {
    let words =
        ["std::fs", "std::net", "std::process", "std::env", "std::time", "Instant", "SystemTime", "println!", "std::os", "std::thread"];
    assert_eq!(offending("protocol/src", &words), Vec::<String>::new());
}

/// The macros panic where their stream is closed or full, and `display` leaves a name as it
/// is, with line ends and what moves a terminal.
#[test]
fn what_people_read_is_written_in_one_way_and_shows_no_path_as_it_is() {
    for folder in ["supervisor/src", "client/src", "worker/src"] {
        assert_eq!(offending(folder, &["print!(", "println!(", "dbg!(", ".display()"]), Vec::<String>::new());
    }
}

/// `spawn.rs` starts nurseries and keepers. A keeper is a process of its own, with nothing
/// of brigd in it but the binary: its two files start, and become, a function's program.
#[test]
fn the_supervisor_starts_processes_in_one_file_only_and_keepers_in_theirs() {
    let files = ["supervisor/src/spawn.rs:", "supervisor/src/keeper.rs:", "supervisor/src/keeper/enter.rs:"];
    let found: Vec<String> = offending("supervisor/src", &["Command::new(", "std::process::Command", "process::Command"])
        .into_iter()
        .filter(|line| !files.iter().any(|file| line.contains(file)))
        .collect();
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_keeper_has_nothing_of_brigd_but_the_binary() {
    let words = ["tokio", "tracing", "thread::spawn", "crate::service", "crate::config", "crate::host", "crate::pool"];
    let mut found = offending("supervisor/src/keeper", &words);
    let keeper = std::fs::read_to_string(root().join("supervisor/src/keeper.rs")).expect("the keeper");
    let code = keeper.lines().filter(|line| !line.trim_start().starts_with("//"));
    found.extend(code.filter(|line| words.iter().any(|word| line.contains(word))).map(str::to_owned));
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn the_worker_starts_no_thread_and_opens_nothing_once_it_could_hold_a_guest() {
    let found: Vec<String> = offending(
        "worker/src",
        &["thread::spawn", "thread::Builder", "thread::scope", "std::fs", "std::net", "std::process::Command", "tokio::"],
    )
    .into_iter()
    .filter(|line| !line.contains("/nursery/") && !line.contains("/lockdown/") && !line.contains("/attack"))
    .collect();
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn decisions_are_pure() {
    let words = ["async fn", ".await", "Instant::now", "SystemTime::now", "std::fs", "tokio::"];
    let mut files: Vec<PathBuf> =
        ["supervisor/src/lifecycle.rs", "supervisor/src/host/permission.rs"].iter().map(|file| root().join(file)).collect();
    for folder in ["supervisor/src/lifecycle", "supervisor/src/host/permission"] {
        files.extend(sources(folder).into_iter().map(|(path, _)| path));
    }
    for file in files {
        let text = std::fs::read_to_string(&file).expect("the file");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let file = file.display();
        for word in words {
            let found = code.lines().any(|line| line.split("//").next().unwrap_or_default().contains(word));
            assert!(!found, "{file} has {word}");
        }
    }
}

/// The only files with `unsafe`: each must say why at its head.
const UNSAFE_FILES: &[&str] =
    &["worker/src/engine/alloc.rs", "worker/src/engine/raw.rs", "worker/src/lockdown/raw.rs", "worker/src/nursery/fork.rs"];

#[test]
fn unsafe_code_is_only_where_it_is_named_and_every_block_says_why() {
    let mut found = BTreeSet::new();
    for folder in ["protocol/src", "worker/src", "supervisor/src", "client/src", "tests/harness", "benches/src"] {
        for (path, text) in sources(folder) {
            let uses = text.lines().any(|line| {
                let code = line.split("//").next().unwrap_or_default();
                code.contains("unsafe {") || code.contains("unsafe fn") || code.contains("unsafe impl")
            });
            if uses {
                let name = path.strip_prefix(root()).expect("within the project").display().to_string();
                let blocks = text.matches("unsafe {").count() + text.matches("unsafe impl").count();
                assert!(text.matches("SAFETY:").count() >= blocks, "{name} has a block without its reason");
                found.insert(name);
            }
        }
    }
    let named: BTreeSet<String> = UNSAFE_FILES.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(found, named);
}

#[test]
fn no_file_of_the_project_names_a_registry_host_or_a_path_of_one_machine() {
    let output = Command::new("git").args(["ls-files"]).current_dir(root()).output().expect("git");
    let files = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(files.lines().count() > 10, "git lists no files");
    let hosts = [["crates", "io"].join("."), ["registry", "npmjs"].join("."), ["pypi", "org"].join("."), ["deb", "debian.org"].join(".")];
    for file in files.lines().filter(|file| *file != "Cargo.lock") {
        let Ok(text) = std::fs::read_to_string(root().join(file)) else { continue };
        for host in &hosts {
            assert!(!text.contains(host.as_str()), "{file} names {host}");
        }
    }
}
