//! What the doctor says of what it finds.
#![expect(clippy::unwrap_used, reason = "tests")]
use super::*;

fn findings(report: Value) -> Vec<Finding> {
    read_report(report.as_object().unwrap(), false)
}

fn empty_file(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "").unwrap();
}

#[test]
fn the_worker_is_looked_for_where_brigd_looks() {
    let folder = tempfile::tempdir().unwrap();
    let root = std::fs::canonicalize(folder.path()).unwrap();
    let (brigd, link) = (root.join("bin/brigd"), root.join("link/brigd"));
    empty_file(&brigd);
    empty_file(&root.join("link/brig-worker"));
    std::os::unix::fs::symlink(&brigd, &link).unwrap();
    let (libexec, beside) = (root.join("bin/../libexec/brig/brig-worker"), root.join("bin/brig-worker"));
    assert_eq!(worker_places(&link), [beside.clone(), libexec.clone(), PathBuf::from("/usr/libexec/brig/brig-worker")]);
    empty_file(&libexec);
    assert_eq!(find_worker(Some(&link), None).unwrap(), libexec);
    empty_file(&beside);
    assert_eq!(find_worker(Some(&link), None).unwrap(), beside);
    assert_eq!(find_worker(None, Some(libexec.clone())).unwrap(), libexec, "what is named wins");
}

#[test]
fn a_worker_that_is_not_there_is_a_problem_with_a_remedy() {
    let named = find_worker(Some(Path::new("/nowhere/brigd")), Some("/nowhere/worker".into())).unwrap_err();
    assert!(named.detail.contains("/nowhere/worker") && named.remedy.unwrap().contains("BRIG_WORKER"));
    assert!(find_worker(None, None).unwrap_err().remedy.is_some());
}

#[tokio::test]
async fn what_brigd_says_of_a_faulty_configuration_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (file, brigd) = (folder.path().join("brig.toml"), folder.path().join("brigd"));
    std::fs::write(
        &brigd,
        "#!/bin/sh\n[ \"$1 $2\" = \"config check\" ] || exit 9\ngrep -q right \"$3\" || { echo 'brigd: line 3 is wrong' >&2; exit 2; }\n",
    )
    .unwrap();
    std::fs::set_permissions(&brigd, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(configuration(&brigd, &file).await, None, "there is none");
    std::fs::write(&file, "wrong").unwrap();
    let found = configuration(&brigd, &file).await.unwrap();
    assert!(found.grade == Grade::Problem && found.detail.contains("line 3 is wrong"), "{found:?}");
    std::fs::write(&file, "right").unwrap();
    assert_eq!(configuration(&brigd, &file).await.unwrap().grade, Grade::Good);
}

#[test]
fn cgroups_are_believed_of_brigd_only() {
    assert_eq!(delegation(&["seccomp".to_owned()]).grade, Grade::Missing);
    assert_eq!(delegation(&["cgroup".to_owned()]).grade, Grade::Good);
}

#[test]
fn a_dead_socket_has_a_remedy() {
    let fault = Error::Connect { path: "/run/x.sock".into(), reason: "refused".to_owned(), listening: false };
    assert!(connection_remedy(&fault).unwrap().contains("--socket"));
    assert_eq!(connection_remedy(&Error::Start("it said why".to_owned())), None);
}

#[test]
fn that_workers_have_ids_of_their_own_is_believed_of_brigd_only() {
    let mut found =
        findings(json!({"level": "strong", "layers": {"own_uid": {"missing": "needs_root"}, "mdwe": {"missing": "unsupported"}}}));
    let grade = |found: &[Finding], what: &str| found.iter().find(|finding| finding.what == what).unwrap().grade;
    believe_ids(&mut found, &["mdwe".to_owned()]);
    assert_eq!((grade(&found, OWN_UID), grade(&found, "mdwe")), (Grade::Missing, Grade::Missing));
    believe_ids(&mut found, &[OWN_UID.to_owned(), "mdwe".to_owned()]);
    assert_eq!((grade(&found, OWN_UID), grade(&found, "mdwe")), (Grade::Good, Grade::Missing));
}

#[test]
fn root_is_not_told_to_become_root() {
    let report = json!({"level": "strong", "layers": {"own_uid": {"missing": "needs_root"}}});
    let found = |root| read_report(report.as_object().unwrap(), root).pop().unwrap();
    assert_eq!(found(true).detail, "not configured: set workers.uid_range");
    assert!(found(true).remedy.unwrap().contains("workers.uid_range"));
    assert_eq!(found(false).detail, "needs root");
}

#[test]
fn every_missing_layer_is_told_with_its_cause_and_remedy() {
    let found = findings(json!({"level": "strong", "landlockAbi": 4, "layers": {
        "user_namespace": {"missing": "refused", "errno": 1}, "seccomp": "active", "empty_root": {"missing": "not_tried", "errno": 0}}}));
    let by_name = |name: &str| found.iter().find(|finding| finding.what == name).unwrap();
    assert!(by_name("sandbox level").grade == Grade::Good && by_name("seccomp").grade == Grade::Good);
    assert_eq!(by_name("user_namespace").grade, Grade::Missing);
    assert!(by_name("user_namespace").detail.contains("Operation not permitted"));
    assert!(by_name("user_namespace").remedy.as_deref().unwrap().contains("user.max_user_namespaces"));
    let module = missing("user_namespace", "refused", Some(13)).remedy.unwrap();
    assert!(module.contains("`userns,`") && !module.contains("max_user_namespaces"), "{module}");
    assert_eq!(by_name("empty_root").remedy, None);
}

#[test]
fn a_probe_that_failed_is_a_problem() {
    let found = findings(json!({"level": null, "failed": {"layer": "seccomp", "errno": 22}}));
    assert!(found.iter().all(|finding| finding.grade == Grade::Problem));
    assert!(found.iter().any(|finding| finding.what == "seccomp"));
}
