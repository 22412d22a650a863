//! The unit files, as systemd itself reads them.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;
use std::process::Command;

/// The units in a folder of their own, with an executable that exists here.
fn units() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../systemd");
    for name in ["brigd.socket", "brigd.service"] {
        let text = fs::read_to_string(source.join(name)).unwrap();
        assert!(text.contains("brig"), "{name} is the wrong file");
        fs::write(folder.path().join(name), text.replace("/usr/bin/brigd", "/bin/true")).unwrap();
    }
    folder
}

#[test]
fn systemd_reads_both_units_without_a_word() {
    let folder = units();
    let output =
        Command::new("systemd-analyze").arg("verify").args(["./brigd.service", "./brigd.socket"]).current_dir(&folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    // An unknown key is only a warning with exit status 0: silence is the test.
    assert!(output.status.success() && said.is_empty(), "{said}");
}

#[test]
fn the_exposure_of_the_service_is_at_most_a_half() {
    let folder = units();
    let output = Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--no-pager", "--threshold=5", "./brigd.service"])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
