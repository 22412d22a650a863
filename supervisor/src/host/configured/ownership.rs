//! Whose a file is.
//!
//! Owns reading what brigd believes: only files that nobody but root and brigd's own user
//! can change, and, for credentials, read. Never follows a name twice: what is judged is
//! what was opened.

use brig_protocol::escape::ShowPath as _;
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Who else may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Privacy {
    /// Anybody.
    Readable,
    /// Nobody but a group: systemd lets the service in by an access list, of which the
    /// group's bits are the mask.
    NotByOthers,
    /// Nobody.
    OwnerOnly,
}

/// Reads a file whole.
///
/// # Errors
/// A half sentence: it is not there, not a file, too large, or others may change it.
pub(crate) fn read(path: &Path, most: usize, privacy: Privacy) -> Result<Vec<u8>, String> {
    read_for(path, most, privacy, rustix::process::geteuid().as_raw())
}

/// The same for a brigd that runs as `own`, where another looks at its files.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_for(path: &Path, most: usize, privacy: Privacy, own: u32) -> Result<Vec<u8>, String> {
    let shown = path.shown();
    // Not to wait for whoever might write into a pipe of that name.
    let opened = File::options().read(true).custom_flags(libc_nonblock()).open(path);
    let file = opened.map_err(|fault| format!("can not be read from {shown}: {fault}"))?;
    let about = file.metadata().map_err(|fault| format!("can not be read from {shown}: {fault}"))?;
    if !about.is_file() {
        return Err(format!("can not be read from {shown}: it is not a file"));
    }
    check_for(path, &about, privacy, own)?;
    let limit = u64::try_from(most).unwrap_or(u64::MAX);
    // All room at once: what grows leaves copies behind.
    let mut text = Vec::with_capacity(most.min(usize::try_from(about.len()).unwrap_or(most)).saturating_add(1));
    file.take(limit.saturating_add(1)).read_to_end(&mut text).map_err(|fault| format!("can not be read from {shown}: {fault}"))?;
    if text.len() > most {
        return Err(format!("can not be read from {shown}: it has more than {most} bytes"));
    }
    Ok(text)
}

/// Judges a file or folder that is there.
///
/// # Errors
/// A half sentence with the remedy.
pub(crate) fn check(path: &Path, about: &Metadata, privacy: Privacy) -> Result<(), String> {
    check_for(path, about, privacy, rustix::process::geteuid().as_raw())
}

fn check_for(path: &Path, about: &Metadata, privacy: Privacy, own: u32) -> Result<(), String> {
    let (uid, mode, shown) = (about.uid(), about.mode() & 0o7777, path.shown());
    if uid != 0 && uid != own {
        return Err(format!("can not be taken from {shown}: it belongs to user {uid}; it must be root's, or that of brigd's user ({own})"));
    }
    if mode & 0o022 != 0 {
        return Err(format!("can not be taken from {shown}: its mode is {mode:04o}, so others may change it; chmod go-w it"));
    }
    let hidden = match privacy {
        Privacy::Readable => 0,
        Privacy::NotByOthers => 0o007,
        Privacy::OwnerOnly => 0o077,
    };
    if mode & hidden != 0 {
        return Err(format!("can not be taken from {shown}: its mode is {mode:04o}, so others may read it; chmod 0600 it"));
    }
    Ok(())
}

fn libc_nonblock() -> i32 {
    // The bits fit: they are those of open(2).
    i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0)
}
