//! What a crash, a full disk or a machine that goes down leaves is mended by a record that says so.

use super::*;

#[test]
fn a_torn_last_record_is_told_and_mended_at_the_next_start_by_a_record_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), 5);
    let path = segment::path(folder.path(), 1);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend_from_slice(b"{\"seq\":7,\"time");
    std::fs::write(&path, &bytes).unwrap();
    let report = good(folder.path());
    assert!(report.notes[0].contains("14 bytes of a record"), "{:?}", report.notes);
    written(folder.path(), 1);
    let report = good(folder.path());
    assert!(report.notes[0].contains("cut off"), "{:?}", report.notes);
    let text = std::fs::read_to_string(&path).unwrap();
    let hash = Hash::of(b"{\"seq\":7,\"time");
    assert!(text.contains(&format!("\"event\":\"tail_repaired\",\"segment\":1,\"torn_bytes\":14,\"torn_sha256\":\"{hash}\"")), "{text}");
}

#[test]
fn a_last_line_without_an_end_that_is_no_beginning_of_the_next_record_is_found() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), 5);
    let last = good(folder.path()).last;
    let path = segment::path(folder.path(), 1);
    let good_bytes = std::fs::read(&path).unwrap();
    let (seq, prev, zero) = (last.seq + 1, last.hash, Hash::default());
    let mut whole = Vec::new();
    record::write(&mut whole, last, 5, &super::super::event::stopped(super::super::event::StopReason::Signal("SIGTERM"))).unwrap();
    whole.pop();
    let mut forged = whole.clone();
    let at = forged.len() - 40;
    forged[at] ^= 1;
    let torn = |tail: &[u8]| {
        std::fs::write(&path, [&good_bytes, tail].concat()).unwrap();
        verify(folder.path(), &[]).unwrap().findings
    };
    for end in 1..=whole.len() {
        assert_eq!(torn(&whole[..end]), [], "{}", String::from_utf8_lossy(&whole[..end]));
    }
    assert_eq!(torn(&[0; 40]), []);
    for tail in [
        b"x".to_vec(),
        b"{\"seq\":1,\"time_ms\":5".to_vec(),
        format!("{{\"seq\":{seq},\"time_ms\":5,\"prev\":\"{zero}\",\"event\":\"revoked\"").into_bytes(),
        format!("{{\"seq\":{seq},\"time_ms\":5,\"prev\":\"{prev}\",\"event\":\"revoked\"}}").into_bytes(),
        format!("{{\"seq\":{seq},\"time_ms\":5,\"prev\":\"{prev}\",\"event\":revoked").into_bytes(),
        forged,
    ] {
        let findings = torn(&tail);
        assert!(findings.len() == 1 && findings[0].why.contains("brigd did not write them"), "{}", String::from_utf8_lossy(&tail));
    }
}

#[test]
fn brigd_does_not_go_on_after_records_that_were_on_disk_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), 5);
    let all = lines(folder.path(), 1);
    put(folder.path(), 1, &all[..4]);
    let fault = unlocked(|| AuditLog::open(rules(folder.path()))).unwrap_err().to_string();
    assert!(fault.contains("records 5 to 6 are gone") && fault.contains("brigd audit verify"), "{fault}");
    put(folder.path(), 1, &all);
    std::fs::remove_file(folder.path().join("head")).unwrap();
    assert!(unlocked(|| AuditLog::open(rules(folder.path()))).unwrap_err().to_string().contains("no head file"));
    assert!(findings(folder.path())[0].contains("no head file"));
}

#[test]
fn what_a_machine_that_went_down_had_in_memory_only_is_lost_with_a_record_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), 5);
    let all = lines(folder.path(), 1);
    put(folder.path(), 1, &all[..4]);
    let mark = |line: &String| record::read(line.as_bytes()).unwrap().1;
    let head = Head { segment: 1, written: mark(&all[5]), durable: mark(&all[2]), boot: "another".to_owned() };
    unlocked(|| HeadFile::open(folder.path())).unwrap().write(&head, &mut Vec::new()).unwrap();
    written(folder.path(), 1);
    assert!(good(folder.path()).notes[0].contains("the machine went down"));
    // While the machine runs, nothing explains it.
    let all = lines(folder.path(), 1);
    put(folder.path(), 1, &all[..all.len() - 1]);
    let head = Head { segment: 1, written: mark(all.last().unwrap()), durable: mark(&all[2]), boot: boot() };
    unlocked(|| HeadFile::open(folder.path())).unwrap().write(&head, &mut Vec::new()).unwrap();
    assert_eq!(unlocked(|| AuditLog::open(rules(folder.path()))).is_err(), !boot().is_empty());
}

#[test]
fn a_crash_at_any_byte_of_a_new_segment_is_mended() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), 60);
    let newest = good(folder.path()).segments.last().copied().unwrap();
    // As if brigd had been killed between beginning the segment and its first record.
    let sealed = record::read(lines(folder.path(), newest - 1).last().unwrap().as_bytes()).unwrap().1;
    let header = std::fs::read(segment::path(folder.path(), newest)).unwrap();
    let end = header.iter().position(|byte| *byte == b'\n').unwrap();
    for cut in 0..=end {
        std::fs::write(segment::path(folder.path(), newest), &header[..cut]).unwrap();
        let head = Head { segment: newest - 1, written: sealed, durable: sealed, boot: boot() };
        unlocked(|| HeadFile::open(folder.path())).unwrap().write(&head, &mut Vec::new()).unwrap();
        good(folder.path());
        written(folder.path(), 1);
        good(folder.path());
    }
}

#[test]
fn what_is_left_of_a_record_that_could_not_be_written_is_taken_away_before_the_next() {
    use std::io::Write as _;
    let folder = tempfile::tempdir().unwrap();
    let mut chain = super::super::recover::open(&rules(folder.path()), 1).unwrap();
    let event = stopped(StopReason::Signal("SIGTERM"));
    chain.record(&rules(folder.path()), &event, 1).unwrap();
    (&*chain.file).write_all(b"{\"seq\":3,").unwrap();
    chain.torn = true;
    chain.record(&rules(folder.path()), &event, 2).unwrap();
    drop(chain);
    assert_eq!(good(folder.path()).records, 3);
}
