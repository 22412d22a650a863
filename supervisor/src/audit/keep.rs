//! The thread of the audit: it waits for the disk, and removes old segments.
//!
//! Owns everything about the audit that may take long. A segment is removed only after a
//! record on disk says so: what is left then begins where a record says that it begins.

use super::event::Event;
use super::log::{Durable, Shared};
use super::record::{self, Mark};
use super::segment;
use crate::time_of_day::now_ms;
use std::fs::{File, OpenOptions};
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// How long a record may wait for the disk when nobody waits for it.
const PAUSE: Duration = Duration::from_secs(1);
const DAY_MS: u64 = 86_400_000;

/// What is to be on disk after one round.
struct Round {
    file: Arc<File>,
    retired: Vec<Arc<File>>,
    written: Mark,
    last: bool,
}

/// Runs until no more records come.
pub(super) fn run(shared: &Shared) {
    // What was sealed before this start may have become too old since.
    let mut look = true;
    loop {
        let round = next_round(shared);
        look |= !round.retired.is_empty();
        if let Err(fault) = sync(shared, &round) {
            fail(shared, &fault);
            return;
        }
        if look && let Err(fault) = remove_old(shared) {
            tracing::error!(%fault, "old audit segments could not be removed");
        }
        look = false;
        if round.last {
            return;
        }
    }
}

/// Waits until there is something to do, and at most a second longer.
fn next_round(shared: &Shared) -> Round {
    let state = shared.lock();
    let state = shared.wake.wait_while(state, |state| !state.dirty && !state.stop).unwrap_or_else(PoisonError::into_inner);
    let waited = shared.wake.wait_timeout_while(state, PAUSE, |state| !state.urgent && !state.stop);
    let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
    state.dirty = false;
    state.urgent = false;
    Round {
        file: Arc::clone(&state.chain.file),
        retired: std::mem::take(&mut state.chain.retired),
        written: state.chain.told.written,
        last: state.stop,
    }
}

/// Segments before the head: it never says that something is on disk which is not.
fn sync(shared: &Shared, round: &Round) -> io::Result<()> {
    for file in &round.retired {
        file.sync_data()?;
    }
    round.file.sync_data()?;
    if !round.retired.is_empty() {
        File::open(&shared.rules.dir)?.sync_all()?;
    }
    let mut state = shared.lock();
    state.chain.told.durable = round.written;
    state.chain.write_head()?;
    let head = state.chain.head.clone();
    drop(state);
    head.sync()?;
    shared.durable.send_replace(Durable { seq: round.written.seq, failed: false });
    Ok(())
}

/// After a failed sync nobody knows what the disk holds, and asking again would say that
/// all is well. No more records are taken until brigd starts again and has looked.
fn fail(shared: &Shared, fault: &io::Error) {
    tracing::error!(%fault, "the disk lost audit records: no host call runs until brigd is started again");
    shared.lock().failed = Some(format!("the disk lost earlier records ({fault}); see the log, mend the disk, start brigd again"));
    shared.durable.send_modify(|durable| durable.failed = true);
}

/// Removes sealed segments that are too old or too many, oldest first.
fn remove_old(shared: &Shared) -> io::Result<()> {
    let folder = &shared.rules.dir;
    let newest = shared.lock().chain.told.segment;
    let numbers: Vec<u64> = segment::list(folder)?.into_iter().filter(|number| *number < newest).collect();
    let mut total = 0u64;
    for number in numbers.iter().chain([&newest]) {
        total = total.saturating_add(std::fs::metadata(segment::path(folder, *number))?.len());
    }
    let mut removal = None;
    for number in &numbers {
        let (last, time_ms) = last_record(shared, *number)?;
        let setting = if shared.rules.keep_bytes > 0 && total > shared.rules.keep_bytes {
            "audit.keep_bytes"
        } else if shared.rules.keep_days > 0 && now_ms().saturating_sub(time_ms) > shared.rules.keep_days.saturating_mul(DAY_MS) {
            "audit.keep_days"
        } else {
            break;
        };
        total = total.saturating_sub(std::fs::metadata(segment::path(folder, *number))?.len());
        removal = Some(Event::SegmentsRemoved { through: *number, last, setting });
    }
    let Some(Event::SegmentsRemoved { through, .. }) = removal else { return Ok(()) };
    if let Some(event) = removal {
        shared.write(&event).map_err(io::Error::other)?;
    }
    sync(shared, &now(shared))?;
    for number in numbers.iter().filter(|number| **number <= through) {
        std::fs::remove_file(segment::path(folder, *number))?;
    }
    tracing::info!(through, "old audit segments are removed");
    Ok(())
}

/// Everything that is written by now.
fn now(shared: &Shared) -> Round {
    let mut state = shared.lock();
    let retired = std::mem::take(&mut state.chain.retired);
    Round { file: Arc::clone(&state.chain.file), retired, written: state.chain.told.written, last: false }
}

fn last_record(shared: &Shared, number: u64) -> io::Result<(Mark, u64)> {
    let mut file = segment::open_regular(OpenOptions::new().read(true), &segment::path(&shared.rules.dir, number))?;
    let line = segment::tail(&mut file)?.line.unwrap_or_default();
    let (envelope, mark) = record::read(&line).map_err(segment::damaged)?;
    Ok((mark, envelope.time_ms))
}
