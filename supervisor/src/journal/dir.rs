//! The state directory: what brigd keeps between its runs.
//!
//! Owns making it, the checks of its owner and mode, and the lock by which two brigds
//! never share it. Never follows a link out of it.

use brig_protocol::escape::ShowPath as _;
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// The file whose lock says that a brigd uses the directory.
const LOCK: &str = "lock";

/// A state directory that this brigd alone uses, for as long as this lives.
#[derive(Debug)]
pub(crate) struct StateDir {
    path: PathBuf,
    _lock: OwnedFd,
}

/// Why a state directory can not be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateFault {
    /// It can not be made or read.
    #[error("the state directory {}: {fault}", path.shown())]
    Unusable {
        /// Which.
        path: PathBuf,
        /// What the kernel said.
        fault: std::io::Error,
    },
    /// Others could read or change what is in it.
    #[error("the state directory {} {what}; {remedy}", path.shown())]
    Open {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// Another brigd has it.
    #[error("the state directory {} is in use by another brigd: stop that one, or give this one a directory of its own", path.shown())]
    InUse {
        /// Which.
        path: PathBuf,
    },
}

impl StateDir {
    /// Makes the directory if it is not there, checks it, and takes its lock.
    ///
    /// # Errors
    /// [`StateFault`], with the remedy.
    pub(crate) fn open(path: &Path) -> Result<Self, StateFault> {
        let unusable = |fault: std::io::Error| StateFault::Unusable { path: path.to_owned(), fault };
        match std::fs::DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => {}
            Err(fault) if fault.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(fault) => return Err(unusable(fault)),
        }
        check(path)?;
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lock = rustix::fs::open(path.join(LOCK), flags, Mode::from_raw_mode(0o600)).map_err(|fault| unusable(fault.into()))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(StateFault::InUse { path: path.to_owned() }),
            Err(fault) => Err(unusable(fault.into())),
        }
    }

    /// Whether this could be the state directory of a brigd that runs as user `own`: what
    /// [`StateDir::open`] would refuse, without making or locking anything.
    ///
    /// # Errors
    /// [`StateFault`], with the remedy.
    pub(crate) fn look(path: &Path, own: u32) -> Result<(), StateFault> {
        match std::fs::symlink_metadata(path) {
            Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => creatable(path, own),
            _ => check_for(path, own),
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether a user can make a folder of this name.
fn creatable(path: &Path, own: u32) -> Result<(), StateFault> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let refused = |what: String| {
        let remedy =
            format!("make it as root (install -d -o {own} -m 0700 {}), or name another in --state or server.state_dir", path.shown());
        Err(StateFault::Open { path: path.to_owned(), what, remedy })
    };
    let Ok(facts) = std::fs::metadata(parent) else { return refused(format!("can not be made: there is no {}", parent.shown())) };
    let may = own == 0 || facts.mode() & 0o002 != 0 || (facts.uid() == own && facts.mode() & 0o200 != 0);
    let self_may = own == rustix::process::geteuid().as_raw() && rustix::fs::access(parent, rustix::fs::Access::WRITE_OK).is_ok();
    if may || self_may {
        return Ok(());
    }
    refused(format!("is not there, and user {own} may not make it in {}", parent.shown()))
}

fn check(path: &Path) -> Result<(), StateFault> {
    check_for(path, rustix::process::geteuid().as_raw())
}

fn check_for(path: &Path, own: u32) -> Result<(), StateFault> {
    let open = |what: String, remedy: String| StateFault::Open { path: path.to_owned(), what, remedy };
    let metadata = std::fs::symlink_metadata(path).map_err(|fault| StateFault::Unusable { path: path.to_owned(), fault })?;
    if !metadata.is_dir() {
        let remedy = "name the directory itself in --state or server.state_dir";
        return Err(open("is no directory, or a link to one".to_owned(), remedy.to_owned()));
    }
    if metadata.uid() != own {
        let what = format!("belongs to user {}, and brigd runs as user {own}", metadata.uid());
        return Err(open(what, format!("chown -R {own} it, or name another in --state or server.state_dir")));
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(open(format!("has mode {mode:04o}, and must be for its owner only"), "chmod 700 it".to_owned()));
    }
    if mode & 0o300 != 0o300 {
        return Err(open(format!("has mode {mode:04o}, so its owner can not write it"), "chmod 700 it".to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn it_is_made_for_its_owner_only_and_never_shared() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let first = StateDir::open(&path).unwrap();
        assert_eq!(std::fs::metadata(first.path()).unwrap().mode() & 0o777, 0o700);
        assert!(StateDir::open(&path).unwrap_err().to_string().contains("in use by another brigd"));
        drop(first);
        StateDir::open(&path).unwrap();
    }

    #[test]
    fn it_is_looked_at_as_it_would_be_opened_and_nothing_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let (path, own) = (folder.path().join("state"), rustix::process::geteuid().as_raw());
        StateDir::look(&path, own).unwrap();
        assert!(!path.exists());
        let fault = StateDir::look(&path.join("within"), own).unwrap_err().to_string();
        assert!(fault.contains("there is no ") && fault.contains("install -d"), "{fault}");
        StateDir::open(&path).unwrap();
        StateDir::look(&path, own).unwrap();
        assert!(StateDir::look(&path, own + 1).unwrap_err().to_string().contains("chown -R"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o500)).unwrap();
        assert!(StateDir::look(&path, own).unwrap_err().to_string().contains("can not write"));
    }

    #[test]
    fn it_can_be_made_where_its_user_may_write_and_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let (path, own) = (folder.path().join("state"), rustix::process::geteuid().as_raw());
        let other = own + 1;
        let with_mode = |mode| {
            std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            StateDir::look(&path, other).map_err(|fault| fault.to_string())
        };
        for closed in [0o700, 0o755, 0o775] {
            let fault = with_mode(closed).unwrap_err();
            assert!(fault.contains(&format!("user {other} may not make it in ")) && fault.contains(&format!("-o {other} ")), "{fault}");
        }
        with_mode(0o777).unwrap();
        with_mode(0o755).unwrap_err();
        // Its own folder; as root also one that is given away.
        StateDir::look(&path, own).unwrap();
        if own == 0 {
            std::os::unix::fs::chown(folder.path(), Some(other), None).unwrap();
            with_mode(0o755).unwrap();
            with_mode(0o555).unwrap_err();
        }
    }

    #[test]
    fn one_that_others_could_read_or_that_is_a_link_is_refused_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
        let fault = StateDir::open(&path).unwrap_err().to_string();
        assert!(fault.contains("0750") && fault.contains("chmod 700"), "{fault}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(StateDir::open(&link).unwrap_err().to_string().contains("--state"));
        std::fs::remove_file(path.join(LOCK)).ok();
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), path.join(LOCK)).unwrap();
        assert!(StateDir::open(&path).is_err());
        assert!(!folder.path().join("elsewhere").exists());
    }
}
