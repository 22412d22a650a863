//! Leaves, what they are set to and what they tell.
#![expect(clippy::unwrap_used, reason = "tests")]
use super::*;

const MOUNTS: &str = "25 1 0:22 / /proc rw - proc proc rw\n\
    30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

#[test]
fn the_folder_of_a_cgroup_is_found_in_its_mount() {
    let found = |own: &str, mounts: &str| folder_of(own, mounts).map(|path| path.shown().to_string());
    assert_eq!(found("0::/brig.slice/brigd.service\n", MOUNTS).unwrap(), "/sys/fs/cgroup/brig.slice/brigd.service");
    assert_eq!(found("4:memory:/x\n0::/a\n", MOUNTS).unwrap(), "/sys/fs/cgroup/a");
    let part = MOUNTS.replace(" / /sys", " /a /sys");
    assert_eq!(found("0::/a/b\n", &part).unwrap(), "/sys/fs/cgroup/b");
    assert_eq!(found("0::/c\n", &part), None, "what is not mounted can not be reached");
    assert_eq!(found("4:memory:/x\n", MOUNTS), None);
    assert_eq!(found("0::/a\n", "30 25 0:26 / /sys/fs/cgroup rw - cgroup cgroup rw,memory\n"), None);
}

#[test]
fn brigd_in_its_leaf_knows_the_subtree_above() {
    assert_eq!(delegated_root(Path::new("/c/brigd.service/supervisor")), Path::new("/c/brigd.service"));
    assert_eq!(delegated_root(Path::new("/c/brigd.service")), Path::new("/c/brigd.service"));
}

#[test]
fn without_the_controllers_it_is_refused_naming_one() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("cgroup.controllers"), "cpu pids\n").unwrap();
    let fault = Cgroups::take(root.path().to_owned(), 1).unwrap_err().to_string();
    assert!(fault.contains("`memory`") && fault.contains("delegate.conf"), "{fault}");
}

#[test]
fn a_leaf_that_does_not_show_what_was_set_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let (sweeper, _leaves) = channel();
    let leaf = Leaf { path: root.path().to_owned(), memory_max: 1, sweeper };
    leaf.set("memory.max", "8192").unwrap();
    assert_eq!(leaf.shows("memory.max", "8192"), Ok(()));
    assert!(matches!(leaf.shows("memory.max", "4096"), Err(CgroupFault::Differs { .. })));
    assert!(matches!(leaf.shows("pids.max", "1"), Err(CgroupFault::Refused { .. })));
}

#[test]
fn leaves_are_removed_by_the_thread_and_what_was_left_at_the_start() {
    let root = tempfile::tempdir().unwrap();
    let (kept, left, dropped) = (root.path().join("other"), root.path().join("worker-1-1"), root.path().join("worker-2-1"));
    for path in [&kept, &left, &dropped] {
        fs::create_dir(path).unwrap();
    }
    let (sweeper, leaves) = channel();
    drop(Leaf { path: dropped.clone(), memory_max: 1, sweeper });
    // The last sender is gone: the thread's work ends with what there is.
    sweep(&leaves);
    assert!(!dropped.exists() && left.exists());
    remove_left(root.path()).unwrap();
    assert!(!left.exists() && kept.exists());
}

#[test]
fn nothing_is_taken_that_is_not_marked_as_given() {
    let root = tempfile::tempdir().unwrap();
    assert!(!is_delegated(root.path()));
    assert_eq!(Cgroups::claim(Wish::No, 1).unwrap().map(|_| ()), None);
}
