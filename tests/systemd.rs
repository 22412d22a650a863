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
    let folder = units(dropin);
    let output = Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--no-pager", &format!("--threshold={threshold}"), "./brigd.service"])
        .current_dir(&folder)
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

/// The directives of a section, each once.
fn directives(text: &str) -> Vec<&str> {
    let service = text.split("[Service]").nth(1).and_then(|rest| rest.split("\n[").next()).unwrap();
    let mut names: Vec<&str> =
        service.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    names.dedup();
    names
}

#[test]
fn the_table_has_each_directive_with_what_shows_it() {
    let unit = fs::read_to_string(source().join("brigd.service")).unwrap();
    let readme = fs::read_to_string(source().join("README.md")).unwrap();
    let names = directives(&unit);
    assert!(names.len() > 40, "{names:?}");
    for name in names {
        let row = readme.lines().find(|line| line.starts_with('|') && line.contains(&format!("`{name}=`")));
        assert!(row.is_some_and(|row| row.split('|').count() == 5), "{name} has no row in systemd/README.md");
    }
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
