//! What was changed in records is found, and where.

use super::*;

#[test]
fn a_changed_record_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), 5);
    let mut all = lines(folder.path(), 1);
    all[2] = all[2].replace("permission_denied", "audit_unavailable");
    put(folder.path(), 1, &all);
    assert_eq!(findings(folder.path()), ["segment-0000000001.jsonl:3: the record was changed: its hash is not that of its bytes"]);
}

#[test]
fn a_record_changed_with_its_hash_no_longer_fits_the_next() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), 5);
    let mut all = lines(folder.path(), 1);
    let mut body = all[2].replace("permission_denied", "audit_unavailable").into_bytes();
    body.truncate(body.len() - 75);
    record::sign(&mut body);
    all[2] = String::from_utf8(body).unwrap().trim_end().to_owned();
    put(folder.path(), 1, &all);
    let found = findings(folder.path());
    assert!(found.len() == 1 && found[0].contains(":4: record 4 does not follow"), "{found:?}");
}

#[test]
fn removed_inserted_repeated_and_moved_records_are_told_apart_from_each_other() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), 8);
    let all = lines(folder.path(), 1);
    let mut without = all.clone();
    without.drain(2..4);
    put(folder.path(), 1, &without);
    assert_eq!(findings(folder.path()), ["segment-0000000001.jsonl:3: records 3 to 4 are missing before it"]);
    let mut twice = all.clone();
    twice.insert(3, all[2].clone());
    put(folder.path(), 1, &twice);
    assert!(findings(folder.path())[0].contains(":4: record 3 stands after record 3"), "{:?}", findings(folder.path()));
    let mut moved = all.clone();
    moved.swap(2, 3);
    put(folder.path(), 1, &moved);
    assert!(findings(folder.path())[0].contains(":3: record 3 is missing before it"), "{:?}", findings(folder.path()));
    let mut foreign = all.clone();
    let mut line = Vec::new();
    record::write(&mut line, Mark { seq: 2, hash: Hash::of(b"x") }, 0, &stopped(StopReason::Signal("x"))).unwrap();
    foreign.insert(2, String::from_utf8(line).unwrap().trim_end().to_owned());
    put(folder.path(), 1, &foreign);
    assert!(findings(folder.path())[0].contains(":3: record 3 does not follow the record 2"), "{:?}", findings(folder.path()));
    put(folder.path(), 1, &all);
    good(folder.path());
}

#[test]
fn a_cut_tail_is_found_even_at_the_end_of_a_line() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), 5);
    let all = lines(folder.path(), 1);
    put(folder.path(), 1, &all[..4]);
    assert_eq!(
        findings(folder.path()),
        ["segment-0000000001.jsonl: the end is cut off: records 5 to 6 are gone, which the head file knows of"]
    );
}

#[test]
fn missing_replaced_and_unsealed_segments_are_found() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), 60);
    let path = |number| segment::path(folder.path(), number);
    let whole = std::fs::read(path(2)).unwrap();
    std::fs::remove_file(path(2)).unwrap();
    let found = findings(folder.path());
    assert!(found[0].contains("segment-0000000003.jsonl: the segment before it is missing"), "{found:?}");

    let other = tempfile::tempdir().unwrap();
    written(other.path(), 60);
    std::fs::copy(segment::path(other.path(), 2), path(2)).unwrap();
    let found = findings(folder.path());
    assert!(found[0].contains("segment-0000000002.jsonl:1: ") && found[0].contains("replaced"), "{found:?}");

    std::fs::write(path(2), &whole).unwrap();
    let mut all = lines(folder.path(), 2);
    all.pop();
    put(folder.path(), 2, &all);
    let found = findings(folder.path());
    assert!(found[0].contains("segment-0000000002.jsonl: it does not end with its seal"), "{found:?}");
    std::fs::write(path(2), &whole).unwrap();
    std::fs::rename(path(1), folder.path().join("elsewhere")).unwrap();
    let found = findings(folder.path());
    assert!(found[0].contains("no record says that those before were removed"), "{found:?}");
}

#[test]
fn an_anchor_proves_that_a_record_is_there_and_a_forged_folder_lacks_it() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), 30);
    let anchor = good(folder.path()).last.hash;
    written(folder.path(), 5);
    assert!(verify(folder.path(), &[anchor]).unwrap().findings.is_empty());
    let forged = tempfile::tempdir().unwrap();
    written(forged.path(), 30);
    good(forged.path());
    let report = verify(forged.path(), &[anchor]).unwrap();
    assert!(report.findings[0].why.contains("anchored"), "{:?}", report.findings);
    // Old segments taken away by hand: the anchor is what they ended with.
    let end = record::read(lines(folder.path(), 1).last().unwrap().as_bytes()).unwrap().1;
    std::fs::remove_file(segment::path(folder.path(), 1)).unwrap();
    assert!(!findings(folder.path()).is_empty());
    assert!(verify(folder.path(), &[end.hash]).unwrap().findings.is_empty());
}

#[test]
fn what_is_no_regular_file_or_only_named_like_a_segment_is_told_and_never_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), 5);
    std::fs::write(folder.path().join("notes.txt"), "").unwrap();
    assert!(good(folder.path()).notes.iter().any(|note| note.contains("notes.txt")));
    for name in ["segment-1.jsonl", "segment-0000000001.jsonl.bak", "Segment-0000000002.jsonl"] {
        std::fs::write(folder.path().join(name), "").unwrap();
        assert!(findings(folder.path()).iter().any(|finding| finding.contains(name)), "{name}");
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    let next = segment::path(folder.path(), 2);
    nix::unistd::mkfifo(&next, nix::sys::stat::Mode::S_IRWXU).unwrap();
    // By another thread: a read that waits for the other end is no end of this test.
    let (said, hears) = std::sync::mpsc::channel();
    let place = folder.path().to_owned();
    std::thread::spawn(move || said.send(findings(&place)));
    // An error here: it waits for the other end of the pipe.
    let found = hears.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
    assert!(found.iter().any(|finding| finding.contains("not a regular file")));
    assert!(unlocked(|| AuditLog::open(rules(folder.path()))).unwrap_err().to_string().contains("not a regular file"));
    std::fs::remove_file(&next).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::rename(segment::path(folder.path(), 1), elsewhere.path().join("moved")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path().join("moved"), segment::path(folder.path(), 1)).unwrap();
    assert!(findings(folder.path()).iter().any(|finding| finding.contains("not a regular file")));
}
