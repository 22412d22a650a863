//! Chains on a temporary folder: as brigd writes them, and as somebody changed them.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::event::{StopReason, stopped};
use super::head::{Head, HeadFile, boot};
use super::log::{AuditLog, Durability, Rules};
use super::record::{self, Hash, Mark};
use super::verify::{Report, verify};
use super::{AuditSink as _, Call, Disclosure, Event, Payload, Written, segment};
use brig_protocol::client::Effect;
use brig_protocol::codes::CallCode;
use proptest::prelude::*;
use std::path::Path;

fn rules(folder: &Path) -> Rules {
    Rules {
        dir: folder.to_owned(),
        segment_bytes: 4_000,
        segment_seconds: 86_400,
        keep_bytes: 0,
        keep_days: 0,
        sync: Durability::Second,
        log: false,
    }
}

fn of(call: u64) -> Call<'static> {
    Call { evaluation: "ev_0123456789abcdef", call, function: "orders.list", uid: 1000 }
}

fn record(log: &AuditLog, call: u64) -> Written {
    log.write(&Event::CallRefused { of: of(call), code: CallCode::PermissionDenied, rule: Some("rules[0]") }).unwrap()
}

fn write(log: &AuditLog, call: u64) {
    assert!(record(log, call).0 > 0);
}

/// A chain of several segments.
fn written(folder: &Path, records: u64) {
    let log = AuditLog::open(rules(folder)).unwrap();
    for call in 1..=records {
        write(&log, call);
    }
}

fn findings(folder: &Path) -> Vec<String> {
    verify(folder, &[]).unwrap().findings.iter().map(ToString::to_string).collect()
}

fn good(folder: &Path) -> Report {
    let report = verify(folder, &[]).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    report
}

fn lines(folder: &Path, number: u64) -> Vec<String> {
    std::fs::read_to_string(segment::path(folder, number)).unwrap().lines().map(str::to_owned).collect()
}

fn put(folder: &Path, number: u64, lines: &[String]) {
    std::fs::write(segment::path(folder, number), lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}

#[test]
fn what_brigd_writes_verifies_over_segments_and_starts() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        written(folder.path(), 20);
    }
    let report = good(folder.path());
    assert!(report.segments.len() > 3, "{:?}", report.segments);
    let opened_and_sealed = 2 * u64::try_from(report.segments.len()).unwrap() - 1;
    assert_eq!(report.records, 60 + opened_and_sealed);
    assert_eq!(report.last.seq, report.records);
    assert!(report.notes.is_empty(), "{:?}", report.notes);
}

#[test]
fn the_files_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("a/audit");
    written(&dir, 1);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&dir), mode(&dir.join("head")), mode(&segment::path(&dir, 1))), (0o700, 0o600, 0o600));
}

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
    record::write(&mut whole, last, 5, &super::event::stopped(super::event::StopReason::Signal("SIGTERM"))).unwrap();
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
    assert!(AuditLog::open(rules(folder.path())).unwrap_err().to_string().contains("not a regular file"));
    std::fs::remove_file(&next).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::rename(segment::path(folder.path(), 1), elsewhere.path().join("moved")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path().join("moved"), segment::path(folder.path(), 1)).unwrap();
    assert!(findings(folder.path()).iter().any(|finding| finding.contains("not a regular file")));
}

#[test]
fn brigd_does_not_go_on_after_records_that_were_on_disk_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), 5);
    let all = lines(folder.path(), 1);
    put(folder.path(), 1, &all[..4]);
    let fault = AuditLog::open(rules(folder.path())).unwrap_err().to_string();
    assert!(fault.contains("records 5 to 6 are gone") && fault.contains("brigd audit verify"), "{fault}");
    put(folder.path(), 1, &all);
    std::fs::remove_file(folder.path().join("head")).unwrap();
    assert!(AuditLog::open(rules(folder.path())).unwrap_err().to_string().contains("no head file"));
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
    HeadFile::open(folder.path()).unwrap().write(&head, &mut Vec::new()).unwrap();
    written(folder.path(), 1);
    assert!(good(folder.path()).notes[0].contains("the machine went down"));
    // While the machine runs, nothing explains it.
    let all = lines(folder.path(), 1);
    put(folder.path(), 1, &all[..all.len() - 1]);
    let head = Head { segment: 1, written: mark(all.last().unwrap()), durable: mark(&all[2]), boot: boot() };
    HeadFile::open(folder.path()).unwrap().write(&head, &mut Vec::new()).unwrap();
    assert_eq!(AuditLog::open(rules(folder.path())).is_err(), !boot().is_empty());
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
        HeadFile::open(folder.path()).unwrap().write(&head, &mut Vec::new()).unwrap();
        good(folder.path());
        written(folder.path(), 1);
        good(folder.path());
    }
}

#[test]
fn segments_are_sealed_by_age_too() {
    let folder = tempfile::tempdir().unwrap();
    let old = Rules { segment_seconds: 0, ..rules(folder.path()) };
    let log = AuditLog::open(old).unwrap();
    (1..=3).for_each(|call| write(&log, call));
    drop(log);
    assert_eq!(good(folder.path()).segments, [1, 2, 3]);
    assert!(lines(folder.path(), 1).last().unwrap().contains("\"reason\":\"age\""));
}

#[test]
fn removed_old_segments_leave_a_stated_beginning_however_often_it_happens() {
    let folder = tempfile::tempdir().unwrap();
    let keep = Rules { keep_bytes: 10_000, ..rules(folder.path()) };
    for _ in 0..4 {
        let log = AuditLog::open(keep.clone()).unwrap();
        (1..=60).for_each(|call| write(&log, call));
        drop(log);
        let report = good(folder.path());
        assert!(report.segments.len() <= 6, "{:?}", report.segments);
    }
    let report = good(folder.path());
    assert!(report.segments[0] > 4 && report.notes.iter().any(|note| note.contains("removed as configured")), "{report:?}");
    // One more than was stated.
    std::fs::remove_file(segment::path(folder.path(), report.segments[0])).unwrap();
    assert!(findings(folder.path())[0].contains("no record says"));
}

#[tokio::test]
async fn with_sync_call_a_record_is_on_disk_before_it_is_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let log = AuditLog::open(Rules { sync: Durability::Call, ..rules(folder.path()) }).unwrap();
    for call in 1..=5 {
        let written = record(&log, call);
        log.settled(written).await.unwrap();
        assert!(Head::read(folder.path()).unwrap().durable.seq >= written.0);
    }
    log.close(StopReason::Signal("SIGTERM")).await;
    let head = Head::read(folder.path()).unwrap();
    assert_eq!(head.written, head.durable);
}

#[test]
fn a_record_that_is_too_long_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let log = AuditLog::open(rules(folder.path())).unwrap();
    let rule = "x".repeat(record::LINE_BYTES);
    let input = &Payload::default();
    assert!(log.write(&Event::CallPermitted { of: of(1), rule: &rule, effect: Effect::Read, input }).is_err());
    write(&log, 2);
    drop(log);
    assert!(good(folder.path()).notes[0].contains("could not be written"));
}

#[test]
fn many_threads_make_one_chain() {
    let folder = tempfile::tempdir().unwrap();
    let log = AuditLog::open(rules(folder.path())).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (1..=100).for_each(|call| write(&log, call)));
        }
    });
    drop(log);
    let report = good(folder.path());
    let keepers = 2 * u64::try_from(report.segments.len()).unwrap() - 1;
    assert_eq!(report.records, 400 + keepers);
}

/// `cargo test -p brigd --release how_long_a_record_takes -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn how_long_a_record_takes() {
    let folder = tempfile::tempdir().unwrap();
    let log = AuditLog::open(Rules { segment_bytes: 64 << 20, ..rules(folder.path()) }).unwrap();
    let count = 100_000u32;
    let begun = std::time::Instant::now();
    for call in 1..=u64::from(count) {
        let input = &Payload::of("{\"orderId\":\"o-123\",\"amount\":12}", Disclosure::Hash, None);
        log.write(&Event::CallPermitted { of: of(call), rule: "operator:default, request:rules[1]", effect: Effect::Write, input })
            .unwrap();
    }
    let each = begun.elapsed() / count;
    println!("{each:?} a record");
    drop(log);
    let begun = std::time::Instant::now();
    let records = good(folder.path()).records;
    println!("{records} records verified in {:?}", begun.elapsed());
    // Unoptimised, hashing alone takes ten times as long.
    let most = if cfg!(debug_assertions) { 2_000 } else { 50 };
    assert!(each < std::time::Duration::from_micros(most), "{each:?}");
}

/// The files of a chain of a few segments, to be changed.
fn pristine() -> Vec<(String, Vec<u8>)> {
    static FILES: std::sync::OnceLock<Vec<(String, Vec<u8>)>> = std::sync::OnceLock::new();
    let files = FILES.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), 30);
        let mut names: Vec<String> = segment::list(folder.path()).unwrap().into_iter().map(segment::name).collect();
        names.push("head".to_owned());
        names.into_iter().map(|name| (name.clone(), std::fs::read(folder.path().join(name)).unwrap())).collect()
    });
    files.clone()
}

/// Whether a chain of these files is found to be changed.
fn is_found(files: &[(String, Vec<u8>)]) -> bool {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    !verify(folder.path(), &[]).unwrap().findings.is_empty()
}

#[test]
fn the_chain_that_is_changed_below_is_good_before() {
    assert!(!is_found(&pristine()));
    assert!(pristine().len() > 3);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_changed_byte_of_any_file_is_found(file in 0usize..100, at in 0usize..100_000, by in 1u8..=255) {
        let mut files = pristine();
        let file = file % files.len();
        let bytes = &mut files[file].1;
        let at = at % bytes.len();
        bytes[at] ^= by;
        prop_assert!(is_found(&files), "{} byte {at}", files[file].0);
    }

    #[test]
    fn any_removed_line_is_found(file in 0usize..100, line in 0usize..10_000) {
        let mut files = pristine();
        let file = file % (files.len() - 1);
        let mut lines: Vec<Vec<u8>> = files[file].1.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        lines.remove(line % lines.len());
        files[file].1 = lines.concat();
        prop_assert!(is_found(&files));
    }

    #[test]
    fn any_cut_is_found(file in 0usize..100, at in 0usize..100_000) {
        let mut files = pristine();
        let file = file % files.len();
        let at = at % files[file].1.len();
        files[file].1.truncate(at);
        prop_assert!(is_found(&files), "{} at {at}", files[file].0);
    }

    #[test]
    fn any_bytes_put_in_are_found_unless_they_are_a_torn_end(file in 0usize..100, at in 0usize..100_000, more in proptest::collection::vec(any::<u8>(), 1..80)) {
        let mut files = pristine();
        let newest = files.len() - 2;
        let file = file % files.len();
        let at = at % (files[file].1.len() + 1);
        let torn_end = file == newest && at == files[file].1.len() && !more.contains(&b'\n');
        let before = files[file].1.clone();
        files[file].1.splice(at..at, more);
        prop_assert!(torn_end || files[file].1 == before || is_found(&files), "{} at {at}", files[file].0);
    }

    #[test]
    fn any_removed_file_and_any_two_swapped_lines_are_found(file in 0usize..100, one in 0usize..1_000, other in 0usize..1_000) {
        let mut files = pristine();
        let file = file % files.len();
        let mut without = files.clone();
        without.remove(file);
        prop_assert!(is_found(&without), "{} removed", files[file].0);
        let mut lines: Vec<Vec<u8>> = files[file].1.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        let (one, other) = (one % lines.len(), other % lines.len());
        if one != other {
            lines.swap(one, other);
            files[file].1 = lines.concat();
            prop_assert!(is_found(&files));
        }
    }

    #[test]
    fn the_reader_takes_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        prop_assert!(is_found(&[("segment-0000000001.jsonl".to_owned(), bytes.clone()), ("head".to_owned(), bytes)]));
    }
}

#[test]
fn what_is_left_of_a_record_that_could_not_be_written_is_taken_away_before_the_next() {
    use std::io::Write as _;
    let folder = tempfile::tempdir().unwrap();
    let mut chain = super::recover::open(&rules(folder.path()), 1).unwrap();
    let event = stopped(StopReason::Signal("SIGTERM"));
    chain.record(&rules(folder.path()), &event, 1).unwrap();
    (&*chain.file).write_all(b"{\"seq\":3,").unwrap();
    chain.torn = true;
    chain.record(&rules(folder.path()), &event, 2).unwrap();
    drop(chain);
    assert_eq!(good(folder.path()).records, 3);
}
