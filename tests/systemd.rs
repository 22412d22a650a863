//! The unit files, as systemd itself reads them. What they do is tried by
//! `tests/systemd/run`, which needs root and a guest.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const UNITS: [&str; 4] = ["brigd.service", "brigd.socket", "brigd-admin.socket", "brig.slice"];
/// Those that every supported systemd knows.
const DROPINS: [&str; 5] = ["delegate.conf", "namespaces.conf", "credentials.conf", "metrics-socket.conf", "loopback.conf"];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../systemd")
}

/// The units in a folder of their own, with an executable that exists here, and a drop-in.
fn units(dropin: Option<&str>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in UNITS {
        let text = fs::read_to_string(source().join(name)).unwrap();
        assert!(text.contains("brig"), "{name} is the wrong file");
        let added = dropin.filter(|_| name == "brigd.service");
        let added = added.map(|file| fs::read_to_string(source().join("examples").join(file)).unwrap()).unwrap_or_default();
        fs::write(folder.path().join(name), text.replace("/usr/bin/brigd", "/bin/true") + "\n" + &added).unwrap();
    }
    folder
}

#[test]
fn systemd_reads_all_units_and_drop_ins_without_a_word() {
    for dropin in [None].into_iter().chain(DROPINS.map(Some)) {
        let folder = units(dropin);
        let units = UNITS.map(|name| format!("./{name}"));
        // The manual page comes with the package.
        let output = Command::new("systemd-analyze").args(["verify", "--man=no"]).args(units).current_dir(&folder).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        // An unknown key is only a warning with exit status 0: silence is the test.
        assert!(output.status.success() && said.is_empty(), "{dropin:?}: {said}");
    }
}

/// Whether the exposure of the service is at most a tenth of `threshold`.
fn exposed(dropin: Option<&str>, threshold: u32) -> Result<(), String> {
    exposed_in(units(dropin).path(), threshold)
}

fn exposed_in(folder: &Path, threshold: u32) -> Result<(), String> {
    let output = Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--no-pager", &format!("--threshold={threshold}"), "./brigd.service"])
        .current_dir(folder)
        .output()
        .unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stdout).into_owned()) }
}

#[test]
fn the_exposure_of_the_service_is_at_most_a_half() {
    exposed(None, 5).unwrap();
}

#[test]
fn what_a_drop_in_costs_is_bounded() {
    exposed(Some("delegate.conf"), 8).unwrap();
    exposed(Some("namespaces.conf"), 17).unwrap();
    exposed(Some("metrics-socket.conf"), 5).unwrap();
    exposed(Some("loopback.conf"), 15).unwrap();
}

/// The directives of a unit, each once, but for what only names and describes it.
fn directives(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut names: Vec<&str> = lines.filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !["Description", "Documentation"].contains(name));
    names
}

#[test]
fn the_table_has_each_directive_with_what_shows_it() {
    let readme = fs::read_to_string(source().join("README.md")).unwrap();
    let rows: Vec<&str> = readme.lines().filter(|line| line.starts_with('|')).collect();
    let mut count = 0;
    for unit in UNITS {
        for name in directives(&fs::read_to_string(source().join(unit)).unwrap()) {
            let row = rows.iter().find(|row| row.contains(&format!("`{name}=`")));
            assert!(row.is_some_and(|row| row.split('|').count() == 5), "{name} of {unit} has no row in systemd/README.md");
            count += 1;
        }
    }
    assert!(count > 60, "{count}");
}

/// Each row of the first table names a test that there is: a case, or one of this file.
#[test]
fn what_shows_a_directive_exists() {
    let readme = fs::read_to_string(source().join("README.md")).unwrap();
    let own = include_str!("systemd.rs");
    let table = readme.split("\n## Drop-ins").next().unwrap();
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let shown = row.split('|').nth(3).unwrap();
        let names: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        let exists =
            |name: &&str| own.contains(&format!("fn {name}(")) || source().join(format!("../tests/systemd/cases/{name}.sh")).exists();
        assert!(!names.is_empty() && names.iter().all(exists), "{row}");
    }
}

/// What the sum notices by itself: without any of these the service would be over the half.
const WEIGHED: [&str; 24] = [
    "CapabilityBoundingSet",
    "IPAddressDeny",
    "LockPersonality",
    "MemoryDenyWriteExecute",
    "NoNewPrivileges",
    "PrivateDevices",
    "PrivateMounts",
    "PrivateNetwork",
    "PrivateTmp",
    "ProtectClock",
    "ProtectControlGroups",
    "ProtectHome",
    "ProtectKernelLogs",
    "ProtectKernelModules",
    "ProtectKernelTunables",
    "ProtectSystem",
    "RemoveIPC",
    "RestrictAddressFamilies",
    "RestrictNamespaces",
    "RestrictRealtime",
    "RestrictSUIDSGID",
    "SystemCallArchitectures",
    "SystemCallFilter",
    "User",
];

#[test]
fn without_any_one_of_these_the_exposure_is_more_than_a_half() {
    let folder = units(None);
    let path = folder.path().join("brigd.service");
    let whole = fs::read_to_string(&path).unwrap();
    for name in WEIGHED {
        let without: Vec<&str> = whole.lines().filter(|line| !line.starts_with(&format!("{name}="))).collect();
        assert_ne!(without.len(), whole.lines().count(), "the unit has no {name}");
        fs::write(&path, without.join("\n")).unwrap();
        assert!(exposed_in(folder.path(), 5).is_err(), "{name} may be left out unnoticed");
    }
}

/// Implied by `PrivateDevices=`, so the sum notices it only where a drop-in takes that away.
#[test]
fn without_private_devices_the_policy_for_devices_is_weighed() {
    let folder = units(None);
    let path = folder.path().join("brigd.service");
    let whole = fs::read_to_string(&path).unwrap().replace("PrivateDevices=yes", "PrivateDevices=no");
    fs::write(&path, &whole).unwrap();
    exposed_in(folder.path(), 7).unwrap();
    fs::write(&path, whole.replace("DevicePolicy=closed", "")).unwrap();
    assert!(exposed_in(folder.path(), 7).is_err(), "DevicePolicy may be left out unnoticed");
}

#[test]
fn the_cases_that_the_tables_name_are_there_and_none_is_left_out() {
    let readme = fs::read_to_string(source().join("README.md")).unwrap();
    let operations = fs::read_to_string(source().join("../docs/operations.md")).unwrap();
    let mut count = 0;
    for entry in fs::read_dir(source().join("../tests/systemd/cases")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let name = name.strip_suffix(".sh").unwrap();
        assert!(readme.contains(&format!("`{name}`")) || operations.contains(&format!("`{name}`")), "no table names the case {name}");
        count += 1;
    }
    assert!(count >= 13);
    for word in readme.split('`').filter(|word| word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('-')) {
        assert!(source().join(format!("../tests/systemd/cases/{word}.sh")).exists(), "there is no case {word}");
    }
}
