#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::*;
use crate::connection::budget::Budget;
use crate::connection::link::Link;
use crate::connection::outbox::Outbox;
use crate::evaluation::StopCause;
use crate::vm::Declared;
use brig_protocol::limits::Limits;
use proptest::prelude::*;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const MS: Duration = Duration::from_millis(1);

fn link() -> Arc<Link> {
    let (ours, _theirs) = tokio::net::UnixStream::pair().unwrap();
    let (_, write) = ours.into_split();
    Arc::new(Link::new(Arc::new(Outbox::new(write, Budget::new(1 << 20).holder(1), Duration::from_secs(1)))))
}

fn entry(link: &Arc<Link>, id: &str, uid: u32, connection: u64, now: Instant) -> Entry {
    let held = Budget::new(1 << 20).holder(uid);
    let vm = Vm {
        id: id.to_owned(),
        declared: Declared { functions: None, limits: Limits::DEFAULT, time_zone: None, _held: held },
        link: Arc::clone(link),
        dies: now,
        wants: mpsc::channel(1).0,
        end: CancellationToken::new(),
    };
    Entry::new(Arc::new(vm), uid, connection, now)
}

fn made(book: &mut Book, link: &Arc<Link>, id: &str, uid: u32, connection: u64, now: Instant) {
    book.reserve(uid, None).unwrap();
    book.fill(entry(link, id, uid, connection, now));
}

#[tokio::test]
async fn a_vm_runs_one_evaluation_at_a_time_and_only_its_principals() {
    let (link, now, stop) = (link(), Instant::now(), Arc::new(Stop::default()));
    let mut book = Book::new(4, 8);
    made(&mut book, &link, "vm_1", 1, 1, now);
    assert_eq!(book.begin(2, "vm_1", &stop).unwrap_err().code, RequestCode::VmNotFound);
    assert_eq!(book.begin(1, "vm_2", &stop).unwrap_err().code, RequestCode::VmNotFound);
    book.begin(1, "vm_1", &stop).unwrap();
    let busy = book.begin(1, "vm_1", &stop).unwrap_err();
    assert!(busy.code == RequestCode::VmBusy && busy.retryable);
    assert_eq!(book.idle_since("vm_1"), None);
    book.finish("vm_1", now + 7 * MS);
    assert_eq!(book.idle_since("vm_1"), Some(now + 7 * MS));
    let list = book.list(1, now + 9 * MS);
    assert_eq!((list[0].evaluations, list[0].busy, list[0].age_ms, list[0].idle_ms), (1, false, 9, 2));
    assert!(book.list(2, now).is_empty());
}

#[tokio::test]
async fn what_was_lost_is_told_to_its_principal_only_and_what_was_disposed_of_is_unknown() {
    let (link, now, stop) = (link(), Instant::now(), Arc::new(Stop::default()));
    let mut book = Book::new(4, 8);
    made(&mut book, &link, "vm_1", 1, 1, now);
    made(&mut book, &link, "vm_2", 1, 1, now);
    book.begin(1, "vm_1", &stop).unwrap();
    assert!(book.lose("vm_1", Lost::TimedOut).unwrap().running.is_some());
    let lost = book.begin(1, "vm_1", &stop).unwrap_err();
    assert!(lost.code == RequestCode::VmLost && lost.message.contains("timed out"), "{lost:?}");
    assert_eq!(book.begin(2, "vm_1", &stop).unwrap_err().code, RequestCode::VmNotFound);
    assert_eq!(book.dispose(2, "vm_2").unwrap_err().code, RequestCode::VmNotFound);
    assert!(book.dispose(1, "vm_2").unwrap().is_some());
    assert_eq!(book.begin(1, "vm_2", &stop).unwrap_err().code, RequestCode::VmNotFound);
    assert!(book.dispose(1, "vm_1").unwrap().is_none());
    assert_eq!(book.dispose(1, "vm_1").unwrap_err().code, RequestCode::VmNotFound);
    assert_eq!(stop.cause(), None::<StopCause>);
}

#[tokio::test]
async fn a_connection_takes_its_own_vms_with_it() {
    let (link, now) = (link(), Instant::now());
    let mut book = Book::new(4, 8);
    made(&mut book, &link, "vm_1", 1, 1, now);
    made(&mut book, &link, "vm_2", 1, 2, now);
    assert_eq!(book.lose_connection(1).len(), 1);
    assert_eq!(book.list(1, now).iter().map(|info| info.vm.as_str()).collect::<Vec<_>>(), ["vm_2"]);
    assert!(book.lose_connection(1).is_empty());
}

#[tokio::test]
async fn no_principal_makes_the_others_losses_forgotten() {
    let (link, now, stop) = (link(), Instant::now(), Arc::new(Stop::default()));
    let mut book = Book::new(4, 8);
    made(&mut book, &link, "vm_other", 2, 1, now);
    book.lose("vm_other", Lost::Idle).unwrap();
    for number in 0..REMEMBERED_EACH + 3 {
        let id = format!("vm_{number}");
        made(&mut book, &link, &id, 1, 1, now);
        book.lose(&id, Lost::Died).unwrap();
    }
    assert_eq!(book.lost.len(), REMEMBERED_EACH + 1);
    assert_eq!(book.begin(1, "vm_0", &stop).unwrap_err().code, RequestCode::VmNotFound);
    assert_eq!(book.begin(2, "vm_other", &stop).unwrap_err().code, RequestCode::VmLost);
}

proptest! {
    #[test]
    fn the_quota_holds_whatever_happens(steps in proptest::collection::vec((0u32..3, 0u8..4), 0..100)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        let (link, now) = (link(), Instant::now());
        let mut book = Book::new(2, 5);
        let mut reserved = [0usize; 3];
        let mut made = 0;
        for (uid, step) in steps {
            let index = usize::try_from(uid).unwrap();
            match step {
                0 => if book.reserve(uid, None).is_ok() { reserved[index] += 1; },
                1 if reserved[index] > 0 => { book.give_up(uid); reserved[index] -= 1; }
                2 if reserved[index] > 0 => {
                    made += 1;
                    book.fill(entry(&link, &format!("vm_{made}"), uid, 1, now));
                    reserved[index] -= 1;
                }
                _ => if let Some(info) = book.list(uid, now).first() { book.lose(&info.vm, Lost::Idle).unwrap(); },
            }
            for uid in 0..3u32 {
                prop_assert!(book.list(uid, now).len() + reserved[usize::try_from(uid).unwrap()] <= 2);
            }
            prop_assert!(book.count() + reserved.iter().sum::<usize>() <= 5);
        }
    }
}

#[test]
fn a_quota_of_the_policy_narrows_what_everybody_has_and_never_widens_it() {
    let mut book = Book::new(2, 10);
    let quota = |most| Quota { most, setting: "principals.\"user:alice\".quotas.vms".to_owned() };
    book.reserve(1, Some(&quota(1))).unwrap();
    let refusal = book.reserve(1, Some(&quota(1))).unwrap_err();
    assert_eq!(refusal.setting.as_deref(), Some("principals.\"user:alice\".quotas.vms"));
    book.reserve(1, Some(&quota(100))).unwrap();
    assert_eq!(book.reserve(1, Some(&quota(100))).unwrap_err().setting.as_deref(), Some("vms.most_each"));
}
