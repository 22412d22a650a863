//! Attack 1: native code behind the lock-down, against the kernel itself.
//! Run as root and as an ordinary user, from copies and from images, with namespaces and
//! without: the filter must be the same wall in each.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};

const NOBODY: u32 = 65534;
const SIGSYS: i64 = 31;

/// The attacking binary, where any user may run it.
struct Attack(PathBuf);

impl Attack {
    fn new() -> Self {
        // One copy for all: a file that is still being written can not be executed.
        static PLACE: OnceLock<PathBuf> = OnceLock::new();
        Self(PLACE.get_or_init(reachable).clone())
    }

    fn run(&self, user: Option<u32>, arguments: &[&str]) -> Vec<Value> {
        let mut command = Command::new(&self.0);
        command.arg("run").args(arguments).env_clear();
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        let output = command.output().unwrap();
        let lines: Vec<Value> = String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(output.status.success(), "{arguments:?}: {:?}", lines.last());
        assert!(lines.iter().all(|line| line["pid"].as_u64().unwrap() >= 2));
        lines
    }
}

/// The binary itself where every folder above lets anyone pass, else a copy.
fn reachable() -> PathBuf {
    let built = PathBuf::from(env!("CARGO_BIN_EXE_brig-attack"));
    let open = built.ancestors().all(|part| std::fs::metadata(part).unwrap().permissions().mode() & 0o001 != 0);
    if open {
        return built;
    }
    let copy = std::env::temp_dir().join(format!("brig-attack-{}", std::process::id()));
    std::fs::copy(&built, &copy).unwrap();
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).unwrap();
    copy
}

fn root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Who runs the attacks: this user, and nobody where that is possible.
fn users() -> Vec<Option<u32>> {
    if root() { vec![None, Some(NOBODY)] } else { vec![None] }
}

const WAYS: [&[&str]; 4] = [&[], &["--no-namespaces"], &["--exec"], &["--exec", "--no-namespaces"]];

fn each_way(mut check: impl FnMut(&Attack, Option<u32>, &[&str])) {
    let attack = Attack::new();
    for user in users() {
        for way in WAYS {
            check(&attack, user, way);
        }
    }
}

fn with<'a>(way: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    way.iter().chain(more).copied().collect()
}

/// Named attacks end as they have to, every way they can be run.
fn end_as_they_must(names: &[&str]) {
    each_way(|attack, user, way| {
        for name in names {
            let lines = attack.run(user, &with(way, &[name]));
            assert_eq!(lines.len(), 1);
            assert_eq!(lines[0]["fate"], lines[0]["wanted"], "{name} {user:?} {way:?}");
        }
    });
}

fn killed_by_filter(line: &Value) -> bool {
    line["fate"] == json!({"signal": SIGSYS})
}

/// The kernel passes these two of `x86_64` before it asks any filter.
fn passed_unfiltered(line: &Value) -> bool {
    cfg!(target_arch = "x86_64") && [335, 336].contains(&line["number"].as_u64().unwrap())
}

fn check_against_table(lines: &[Value]) {
    let mut wrong = String::new();
    for line in lines.iter().filter(|line| !passed_unfiltered(line)) {
        let allowed = line["allowed"].as_bool().unwrap();
        if allowed == killed_by_filter(line) {
            writeln!(wrong, "{line}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_number_of_the_table_is_let_through_and_no_other() {
    each_way(|attack, user, way| {
        let lines = attack.run(user, &with(way, &["numbers"]));
        assert_eq!(lines.len(), 600);
        check_against_table(&lines);
    });
}

#[test]
fn every_x32_number_is_killed() {
    let attack = Attack::new();
    for way in [WAYS[0], WAYS[2]] {
        let lines = attack.run(None, &with(way, &["x32"]));
        assert!(lines.iter().all(killed_by_filter), "{:?}", lines.first());
    }
}

/// Where the kernel has no 32-bit calls at all, the instruction itself is the end.
#[test]
fn every_32_bit_call_is_killed() {
    let attack = Attack::new();
    for way in [WAYS[0], WAYS[2]] {
        for line in attack.run(None, &with(way, &["int80"])) {
            let signal = line["fate"]["signal"].as_i64();
            assert!(matches!(signal, Some(SIGSYS | 11 | 4)), "{line}");
        }
    }
}

#[test]
fn each_argument_rule_stops_its_nearest_neighbour() {
    each_way(|attack, user, way| {
        let lines = attack.run(user, &with(way, &["rules"]));
        for allowed in [true, false] {
            assert!(lines.iter().any(|line| line["allowed"] == json!(allowed)));
        }
        check_against_table(&lines);
    });
}

#[test]
fn processes_files_and_sockets_are_out_of_reach() {
    end_as_they_must(&[
        "ptrace",
        "fork",
        "thread",
        "execve",
        "execveat",
        "open",
        "socket",
        "kill_parent",
        "io_uring",
        "seccomp",
        "close_socket",
        "send_descriptor",
        "clock_of_other",
    ]);
}

#[test]
fn memory_is_mapped_private_and_never_executable() {
    end_as_they_must(&["map_write_execute", "protect_execute", "map_file", "map_fixed"]);
}

#[test]
fn a_sealed_worker_reads_and_writes_only_descriptor_3() {
    end_as_they_must(&["echo", "read_other_descriptor", "write_other_descriptor", "poll_many"]);
}

#[test]
fn a_sealed_worker_uses_and_frees_memory() {
    end_as_they_must(&["use_memory"]);
}

#[test]
fn a_sealed_worker_reads_clocks() {
    end_as_they_must(&["read_clocks"]);
}

#[test]
fn a_sealed_worker_waits_and_survives_being_stopped() {
    end_as_they_must(&["wait"]);
}

#[test]
fn cpu_time_runs_out_in_code_and_in_calls() {
    end_as_they_must(&["spin", "spin_in_calls"]);
}

#[test]
fn memory_runs_out_by_mapping_and_by_breaking() {
    end_as_they_must(&["memory_mapped", "memory_broken"]);
}

#[test]
fn each_end_has_its_documented_code() {
    end_as_they_must(&["finish", "panic", "heap_limit", "abort", "stack", "null"]);
}

#[test]
fn no_package_gets_the_attacking_binary() {
    let manifest = include_str!("../Cargo.toml");
    assert!(manifest.contains("required-features = [\"attack\"]"));
    assert!(!manifest.contains("default = "));
}
