//! A disk that takes no more.

use super::*;

/// Runs calls while records can not be written, and after.
fn refuses_while(audit: &Audit, brigd: Brigd, broken: impl FnOnce(), mended: impl FnOnce()) {
    let mut client = brigd.connect();
    let mut handlers = handlers();
    assert_eq!(call(&mut client, &mut handlers).get("value"), Some(&json!({"ok": true})));
    broken();
    for _ in 0..3 {
        let result = call(&mut client, &mut handlers);
        assert_eq!(result.get("value"), Some(&json!("audit_unavailable")), "{result}");
        assert_eq!(result.pointer("/calls/0/state"), Some(&json!("refused")), "{result}");
    }
    assert_eq!(handlers.calls("svc.f"), 1, "a call ran without its record");
    mended();
    assert_eq!(call(&mut client, &mut handlers).get("value"), Some(&json!({"ok": true})));
    stop(brigd);
    let text = audit.verifies();
    assert!(text.contains("records could not be written for a while"), "{text}");
    let refused = audit.events("records_refused");
    assert!(refused.iter().filter_map(|record| record.get("count")?.as_u64()).sum::<u64>() >= 6, "{refused:?}");
}

#[test]
fn a_file_that_may_not_grow_refuses_the_call_and_is_mended_when_it_may() {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
    let audit = Audit::new();
    let brigd = audit.options("log = false").start();
    let pid = Pid::from_raw(i32::try_from(brigd.pid()).expect("a pid")).expect("a pid");
    let before = getrlimit(Resource::Fsize);
    let limit = |current| {
        prlimit(Some(pid), Resource::Fsize, Rlimit { current, maximum: before.maximum }).expect("a limit");
    };
    // A few bytes more, so that a write stops half way.
    let broken = || limit(Some(std::fs::metadata(audit.newest()).expect("a segment").len() + 40));
    refuses_while(&audit, brigd, broken, || limit(before.current));
}

#[test]
fn a_full_disk_refuses_the_call_and_is_mended_when_there_is_room() {
    use nix::mount::{MntFlags, MsFlags, mount, umount2};
    if !nix::unistd::geteuid().is_root() {
        eprintln!("only root can mount a small disk: a_file_that_may_not_grow covers the same way");
        return;
    }
    let audit = Audit::new();
    std::fs::create_dir(audit.dir()).expect("the folder");
    mount(Some("none"), &audit.dir(), Some("tmpfs"), MsFlags::empty(), Some("size=256k")).expect("a small disk");
    let filler = audit.dir().join("filler");
    let outcome = std::panic::catch_unwind(|| {
        let brigd = audit.options("log = false").start();
        assert!(std::fs::write(&filler, vec![0u8; 1024 * 1024]).is_err(), "the disk is not full");
        refuses_full(&audit, brigd, &filler);
    });
    umount2(&audit.dir(), MntFlags::MNT_DETACH).expect("no disk");
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

fn refuses_full(audit: &Audit, brigd: Brigd, filler: &Path) {
    let mut client = brigd.connect();
    // The last page of the segment may have room for a few more.
    let until = Instant::now() + DEADLINE;
    while call(&mut client, &mut handlers()).get("value") != Some(&json!("audit_unavailable")) {
        assert!(Instant::now() < until, "the disk does not get full");
    }
    let mut handlers = handlers();
    let result = call(&mut client, &mut handlers);
    assert_eq!(result.pointer("/calls/0/code"), Some(&json!("audit_unavailable")), "{result}");
    assert_eq!(result.pointer("/calls/0/state"), Some(&json!("refused")), "{result}");
    assert_eq!(handlers.calls("svc.f"), 0);
    std::fs::remove_file(filler).expect("room");
    assert_eq!(call(&mut client, &mut handlers).get("value"), Some(&json!({"ok": true})));
    stop(brigd);
    assert!(audit.verifies().contains("records could not be written for a while"));
}
