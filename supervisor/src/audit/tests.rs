//! Chains on a temporary folder: as brigd writes them, and as somebody changed them.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod arbitrary;
mod crashes;
mod tampering;

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
use std::time::{Duration, Instant};

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

/// Opens what has a lock. A process that another test has just forked holds it as well,
/// until it becomes its program.
fn unlocked<T, E: std::fmt::Display>(mut open: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        match open() {
            Err(fault) if fault.to_string().contains("another brigd writes there") && Instant::now() < until => std::thread::yield_now(),
            opened => return opened,
        }
    }
}

/// A chain of several segments.
fn written(folder: &Path, records: u64) {
    let log = unlocked(|| AuditLog::open(rules(folder))).unwrap();
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
        let log = unlocked(|| AuditLog::open(keep.clone())).unwrap();
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
