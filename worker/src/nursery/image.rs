//! The worker's own image, held open by a descriptor: in the empty root there is no path.

use std::os::fd::OwnedFd;

use brig_protocol::control::Layer;
use rustix::fs::{CWD, Mode, OFlags, openat};

use super::fork;
use crate::lockdown::Breach;

/// Opens the file that this process was started from.
///
/// # Errors
/// A [`Breach`] of the root, when neither `/proc` nor the path it was started by leads there.
pub(super) fn open() -> Result<OwnedFd, Breach> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    openat(CWD, c"/proc/self/exe", flags, Mode::empty())
        .or_else(|errno| match fork::own_path() {
            Some(path) => openat(CWD, path, flags, Mode::empty()),
            None => Err(errno),
        })
        // Above 3: a child puts other things at 0 to 3 before it execs this.
        .and_then(|low| rustix::io::fcntl_dupfd_cloexec(&low, 4))
        .map_err(|errno| Breach::of(Layer::EmptyRoot, errno))
}
