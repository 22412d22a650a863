//! `brig doctor` on this host, through the real binaries.
#![expect(clippy::expect_used, reason = "tests")]

use acceptance::binary;
use serde_json::Value;
use std::process::Command;

/// Everything that was found.
fn findings(arguments: &[&str]) -> (Option<i32>, Vec<Value>) {
    let mut command = Command::new(binary("brig"));
    command.args(["--private", "doctor", "--json"]).args(arguments).env("BRIGD", binary("brigd")).env_remove("BRIG_SOCKET");
    let output = command.output().expect("brig runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON text");
    let findings = report.get("findings").and_then(Value::as_array).cloned().unwrap_or_default();
    (output.status.code(), findings)
}

fn member<'v>(finding: &'v Value, name: &str) -> &'v str {
    finding.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[test]
fn every_attack_is_held_here_and_each_problem_has_a_remedy() {
    let (code, findings) = findings(&["--attack"]);
    let attacks: Vec<&Value> = findings.iter().filter(|finding| member(finding, "what").contains("attack")).collect();
    assert_eq!(attacks.len(), 16, "{findings:?}");
    for attack in attacks {
        assert_eq!(member(attack, "grade"), "ok", "{attack}");
    }
    for what in
        ["kernel", "seccomp actions", "open files", "processes", "client socket", "credentials", "state", "clock", "cgroup", "connection"]
    {
        assert!(findings.iter().any(|finding| member(finding, "what") == what), "{what} was not looked at");
    }
    let problems: Vec<&Value> = findings.iter().filter(|finding| member(finding, "grade") == "problem").collect();
    assert!(problems.iter().all(|problem| !member(problem, "remedy").is_empty()), "{problems:?}");
    assert_eq!(code, Some(i32::from(!problems.is_empty())));
}
