//! What a worker says, in whatever pieces it comes.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::*;
use brig_protocol::frame::build;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream as StdStream;

fn pair(bounds: ChannelBounds) -> (Channel, StdStream) {
    let (ours, theirs) = StdStream::pair().unwrap();
    (Channel::new(ours.into(), bounds).unwrap(), theirs)
}

fn frame(body: &[u8]) -> Vec<u8> {
    build(|out| out.extend_from_slice(body)).unwrap()
}

#[tokio::test]
async fn frames_that_arrive_together_are_received_one_by_one() {
    let (mut channel, mut worker) = pair(ChannelBounds::default());
    worker.write_all(&[frame(b"one"), frame(b"two")].concat()).unwrap();
    assert_eq!(&*channel.receive().await.unwrap(), b"one");
    assert!(channel.has_unread());
    assert_eq!(&*channel.receive().await.unwrap(), b"two");
    assert!(!channel.has_unread());
}

#[tokio::test]
async fn descriptors_are_refused_where_the_kernel_can_and_discarded_everywhere() {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, sendmsg};
    let (ours, theirs) = StdStream::pair().unwrap();
    let ours = OwnedFd::from(ours);
    let refused = refuse_rights(&ours);
    let mut channel = Channel::new(ours, ChannelBounds::default()).unwrap();
    let (given, watched) = StdStream::pair().unwrap();
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let along = [given.as_fd()];
    assert!(control.push(SendAncillaryMessage::ScmRights(&along)));
    let sent = sendmsg(&theirs, &[io::IoSlice::new(&frame(b"take this"))], &mut control, SendFlags::empty());
    if refused {
        assert_eq!(sent, Err(Errno::PERM));
    } else {
        assert_eq!(&*channel.receive().await.unwrap(), b"take this");
    }
    drop(given);
    // Nobody holds the other end any more: it was not received.
    watched.set_nonblocking(true).unwrap();
    assert_eq!((&watched).read(&mut [0]).unwrap(), 0);
}

#[tokio::test]
async fn what_was_said_before_the_end_is_still_received() {
    let (mut channel, mut worker) = pair(ChannelBounds::default());
    channel.queue(frame(b"never read")).unwrap();
    worker.write_all(&[frame(b"last"), vec![9, 0]].concat()).unwrap();
    drop(worker);
    channel.queue(frame(b"to nobody")).unwrap();
    assert_eq!(&*channel.receive().await.unwrap(), b"last");
    assert_eq!(channel.receive().await, Err(ChannelFault::Closed));
    assert_eq!(channel.receive().await, Err(ChannelFault::Closed));
}

#[tokio::test]
async fn a_length_that_no_honest_worker_sends_is_a_fault_at_once() {
    for prefix in [[0, 0, 0, 0], [255, 255, 255, 255]] {
        let (mut channel, mut worker) = pair(ChannelBounds::default());
        worker.write_all(&prefix).unwrap();
        assert!(matches!(channel.receive().await, Err(ChannelFault::Frame(_))));
    }
}

#[tokio::test]
async fn a_frame_over_what_the_evaluation_may_send_is_a_fault_when_it_is_announced() {
    let (mut channel, mut worker) = pair(ChannelBounds::default());
    channel.limit_frames(4);
    worker.write_all(&frame(b"four")).unwrap();
    assert_eq!(&*channel.receive().await.unwrap(), b"four");
    worker.write_all(&[5, 0, 0, 0]).unwrap();
    assert!(matches!(channel.receive().await, Err(ChannelFault::Frame(FrameFault::TooLong { .. }))));
}

#[tokio::test]
async fn the_backlog_is_what_the_worker_has_not_taken() {
    let (mut channel, _worker) = pair(ChannelBounds::default());
    channel.queue(frame(b"taken by the socket")).unwrap();
    assert_eq!(channel.backlog(), 0);
    let big = frame(&vec![b'x'; 4 * 1024 * 1024]);
    channel.queue(big.clone()).unwrap();
    let first = channel.backlog();
    assert!(first > 0 && first <= big.len());
    channel.queue(big.clone()).unwrap();
    assert_eq!(channel.backlog(), first + big.len());
}

fn hasty() -> ChannelBounds {
    ChannelBounds { frame_deadline: Duration::from_millis(60), ..ChannelBounds::default() }
}

#[tokio::test]
async fn a_frame_begun_and_not_finished_is_a_fault_at_its_deadline() {
    let (mut channel, mut worker) = pair(hasty());
    worker.write_all(&frame(b"half")[..6]).unwrap();
    assert_eq!(channel.receive().await, Err(ChannelFault::Stalled(hasty().frame_deadline)));
}

#[tokio::test]
async fn trickling_bytes_does_not_move_the_deadline_and_neither_does_cancelling() {
    let (mut channel, mut worker) = pair(hasty());
    worker.write_all(&[0, 0, 1, 0]).unwrap();
    let mut trickled = 0;
    let fault = loop {
        if let Ok(outcome) = tokio::time::timeout(Duration::from_millis(5), channel.receive()).await {
            break outcome;
        }
        worker.write_all(b"x").unwrap();
        trickled += 1;
        assert!(trickled < 60_000, "the frame would be whole by then");
    };
    assert_eq!(fault, Err(ChannelFault::Stalled(hasty().frame_deadline)));
}

#[tokio::test]
async fn a_worker_that_always_has_one_more_byte_delays_nobody_and_not_the_deadline() {
    let (mut channel, mut worker) = pair(hasty());
    worker.write_all(&[0, 0, 0, 2]).unwrap();
    let flood = std::thread::spawn(move || while worker.write_all(b"xxxx").is_ok() {});
    let mut turns = 0u64;
    let fault = loop {
        tokio::select! {
            fault = channel.receive() => break fault,
            () = tokio::task::yield_now() => turns += 1,
        }
    };
    assert_eq!(fault, Err(ChannelFault::Stalled(hasty().frame_deadline)));
    assert!(turns > 1, "others had their turn");
    drop(channel);
    flood.join().unwrap();
}

#[tokio::test]
async fn a_worker_that_does_not_read_costs_at_most_the_bound_and_one_frame() {
    let bounds = ChannelBounds { queue_bytes: 1 << 20, ..ChannelBounds::default() };
    let (mut channel, _worker) = pair(bounds);
    let big = frame(&vec![1; 300_000]);
    let mut queued = 0;
    let fault = loop {
        if let Err(fault) = channel.queue(big.clone()) {
            break fault;
        }
        queued += 1;
        assert!(queued < 20);
    };
    assert_eq!(fault, ChannelFault::QueueFull(1 << 20));
    assert!(channel.queue.iter().map(Vec::len).sum::<usize>() <= (1 << 20) + big.len());
}

#[tokio::test]
async fn queued_frames_are_written_while_the_next_one_is_awaited() {
    let (mut channel, mut worker) = pair(ChannelBounds::default());
    let frames: Vec<Vec<u8>> = (1..=40u8).map(|byte| frame(&vec![byte; 100_000])).collect();
    for frame in &frames {
        channel.queue(frame.clone()).unwrap();
    }
    let all = frames.concat();
    let length = all.len();
    let reader = tokio::task::spawn_blocking(move || {
        let mut seen = vec![0; length];
        worker.read_exact(&mut seen).unwrap();
        worker.write_all(&frame(b"thanks")).unwrap();
        seen
    });
    assert_eq!(&*channel.receive().await.unwrap(), b"thanks");
    assert!(reader.await.unwrap() == all);
    assert_eq!((channel.queue.len(), channel.written, channel.queued_bytes), (0, 0, 0));
}

#[tokio::test]
async fn a_large_frame_arrives_whole_through_cancelled_receives() {
    let (mut channel, mut worker) = pair(ChannelBounds::default());
    let body: Vec<u8> = (0..3_000_000u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
    let sent = frame(&body);
    let writer = tokio::task::spawn_blocking(move || {
        worker.write_all(&sent).unwrap();
        worker
    });
    let received = loop {
        tokio::select! {
            biased;
            () = tokio::task::yield_now() => {}
            body = channel.receive() => break body,
        }
    };
    drop(writer.await.unwrap());
    assert!(received.unwrap()[..] == body[..]);
}
