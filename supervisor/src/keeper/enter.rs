//! From brigd's orders to the program.
//!
//! Owns the orders as they stand on standard input (a length, then JSON), and the order of
//! what is done: everything that needs power before it is given up, everything that takes
//! something away last. The program finds three descriptors, its credentials if it gets
//! any as files, the environment that is named, and nothing else.

use brig_protocol::escape::ShowPath as _;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{Gid, Uid};
use rustix::process::{Resource, Rlimit};
use serde::{Deserialize, Serialize};
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use zeroize::Zeroizing;

/// Longest orders, in bytes.
pub(crate) const ORDERS_BYTES: usize = 8 * 1024 * 1024;

/// What is to run, and as whom.
#[derive(Serialize, Deserialize)]
pub(crate) struct Orders {
    /// Absolute path.
    pub(crate) program: PathBuf,
    /// Without the program's own name.
    pub(crate) arguments: Vec<String>,
    /// The whole environment.
    pub(crate) environment: Vec<(String, Zeroizing<String>)>,
    /// Credentials as files: the variable that gets the path, and the bytes.
    pub(crate) files: Vec<(String, Zeroizing<Vec<u8>>)>,
    /// As whom; nobody but brigd's own user when left out.
    pub(crate) user: Option<Ids>,
    /// Where.
    pub(crate) folder: PathBuf,
    /// File mode creation mask.
    pub(crate) umask: u32,
    /// What it may use.
    pub(crate) limits: Limits,
}

/// A user with its groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ids {
    /// User id.
    pub(crate) uid: u32,
    /// Group id.
    pub(crate) gid: u32,
    /// Supplementary groups.
    pub(crate) groups: Vec<u32>,
}

/// Limits of the kernel on one process; each may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limits {
    /// CPU time, in seconds.
    pub(crate) cpu_seconds: Option<u64>,
    /// Address space, in bytes.
    pub(crate) memory_bytes: Option<u64>,
    /// Open files.
    pub(crate) open_files: Option<u64>,
    /// Size of a file that it writes, in bytes.
    pub(crate) file_bytes: Option<u64>,
    /// Processes of its user.
    pub(crate) processes: Option<u64>,
}

impl std::fmt::Debug for Orders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Orders").field("program", &self.program).field("user", &self.user).finish_non_exhaustive()
    }
}

impl Orders {
    /// The orders as they are sent: what follows is the program's standard input.
    ///
    /// # Errors
    /// When they are too long.
    pub(crate) fn to_bytes(&self) -> Result<Zeroizing<Vec<u8>>, String> {
        let credentials: usize = self.files.iter().map(|(_, bytes)| bytes.len() * 4).sum();
        let texts: usize = self.environment.iter().map(|(name, value)| name.len() + 6 * value.len()).sum();
        let arguments: usize = self.arguments.iter().map(|argument| 6 * argument.len() + 3).sum();
        // Room for all of it at once: what grows leaves copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(credentials + texts + arguments + 4_096));
        bytes.extend_from_slice(&[0; 4]);
        serde_json::to_writer(&mut *bytes, self).map_err(|fault| fault.to_string())?;
        let length = bytes.len() - 4;
        let announced = u32::try_from(length).ok().filter(|_| length <= ORDERS_BYTES);
        let announced =
            announced.ok_or_else(|| format!("its arguments and environment have {length} bytes; at most {ORDERS_BYTES} are passed"))?;
        if let Some(prefix) = bytes.first_chunk_mut::<4>() {
            *prefix = announced.to_be_bytes();
        }
        Ok(bytes)
    }

    /// Reads exactly the orders, and nothing of what follows.
    fn read() -> Result<Self, String> {
        let cut = |fault: std::io::Error| format!("its orders did not come: {fault}");
        // Unbuffered: the rest is not ours.
        let mut input = std::fs::File::from(std::io::stdin().as_fd_owned().map_err(cut)?);
        let mut length = [0; 4];
        input.read_exact(&mut length).map_err(cut)?;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > ORDERS_BYTES {
            return Err(format!("its orders have {length} bytes"));
        }
        let mut text = Zeroizing::new(vec![0; length]);
        input.read_exact(&mut text).map_err(cut)?;
        serde_json::from_slice(&text).map_err(|fault| format!("its orders can not be read: {fault}"))
    }
}

/// A second descriptor of standard input.
trait Duplicate {
    fn as_fd_owned(&self) -> std::io::Result<OwnedFd>;
}

impl Duplicate for std::io::Stdin {
    fn as_fd_owned(&self) -> std::io::Result<OwnedFd> {
        std::os::fd::AsFd::as_fd(self).try_clone_to_owned()
    }
}

/// Becomes the program. Comes back only with why not.
pub(super) fn enter(_report: &std::fs::File) -> Result<(), String> {
    let orders = Orders::read()?;
    prctl::set_no_new_privs().map_err(|errno| format!("it can not be kept from gaining privileges: {errno}"))?;
    rustix::process::setsid().map_err(|errno| format!("it can not have a session of its own: {errno}"))?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(orders.umask));
    become_user(orders.user.as_ref())?;
    let folder = &orders.folder;
    std::env::set_current_dir(folder).map_err(|fault| format!("its folder {} can not be entered: {fault}", folder.shown()))?;
    // A change of user has cleared it.
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(|errno| format!("it can not be tied to its keeper: {errno}"))?;
    let mut command = Command::new(&orders.program);
    command.args(&orders.arguments).env_clear().envs(orders.environment.iter().map(|(name, value)| (name, value.as_str())));
    let mut kept = Vec::new();
    for (variable, bytes) in &orders.files {
        let file = credential_file(bytes).map_err(|fault| format!("a credential can not be passed on: {fault}"))?;
        command.env(variable, format!("/proc/self/fd/{}", file.as_raw_fd()));
        kept.push(file);
    }
    orders.limits.take()?;
    // Last: it comes back only when the program can not be run.
    let fault = command.exec();
    Err(format!("{}: {fault}", orders.program.shown()))
}

/// Groups before the group, the group before the user: afterwards nothing could be changed.
fn become_user(user: Option<&Ids>) -> Result<(), String> {
    let Some(Ids { uid, gid, groups }) = user else { return Ok(()) };
    let (user, group) = (Uid::from_raw(*uid), Gid::from_raw(*gid));
    let groups: Vec<Gid> = groups.iter().copied().map(Gid::from_raw).collect();
    nix::unistd::setgroups(&groups)
        .and_then(|()| nix::unistd::setresgid(group, group, group))
        .and_then(|()| nix::unistd::setresuid(user, user, user))
        .map_err(|errno| format!("it can not become user {uid}, group {gid}: {errno}"))
}

/// A file in memory that holds a credential, for the program alone, and can not be changed.
fn credential_file(bytes: &[u8]) -> std::io::Result<OwnedFd> {
    let flags = rustix::fs::MemfdFlags::ALLOW_SEALING;
    let mut file = std::fs::File::from(rustix::fs::memfd_create("credential", flags)?);
    file.write_all(bytes)?;
    rustix::fs::fchmod(&file, rustix::fs::Mode::RUSR)?;
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    let seals = SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    Ok(file.into())
}

impl Limits {
    /// No core in any case; a limit is soft and hard at once.
    fn take(&self) -> Result<(), String> {
        let all = [
            (Resource::Core, Some(0), "core"),
            (Resource::Cpu, self.cpu_seconds, "cpu_seconds"),
            (Resource::As, self.memory_bytes, "memory_bytes"),
            (Resource::Nofile, self.open_files, "open_files"),
            (Resource::Fsize, self.file_bytes, "file_bytes"),
            (Resource::Nproc, self.processes, "processes"),
        ];
        for (resource, most, name) in all {
            let Some(most) = most else { continue };
            // What brigd itself is limited to is not raised.
            let held = rustix::process::getrlimit(resource).maximum.map_or(most, |maximum| maximum.min(most));
            rustix::process::setrlimit(resource, Rlimit { current: Some(held), maximum: Some(held) })
                .map_err(|errno| format!("the limit {name} of {held} can not be set: {errno}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn orders() -> Orders {
        Orders {
            program: "/usr/bin/true".into(),
            arguments: vec!["a b".to_owned(), "\n\"".to_owned()],
            environment: vec![("A".to_owned(), "hunter2-hunter2".to_owned().into())],
            files: vec![("TOKEN_FILE".to_owned(), vec![0, 255, 10].into())],
            user: Some(Ids { uid: 1, gid: 2, groups: vec![3] }),
            folder: "/".into(),
            umask: 0o077,
            limits: Limits { cpu_seconds: Some(1), memory_bytes: None, open_files: Some(16), file_bytes: None, processes: None },
        }
    }

    #[test]
    fn orders_say_their_length_and_are_read_as_they_were_given() {
        let bytes = orders().to_bytes().unwrap();
        let (length, text) = bytes.split_at(4);
        assert_eq!(u32::from_be_bytes(length.try_into().unwrap()) as usize, text.len());
        let read: Orders = serde_json::from_slice(text).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), serde_json::to_value(orders()).unwrap());
        assert!(!format!("{:?}", orders()).contains("hunter2"));
    }

    #[test]
    fn orders_that_are_too_long_are_never_sent() {
        let long = Orders { arguments: vec!["x".repeat(ORDERS_BYTES)], ..orders() };
        assert!(long.to_bytes().unwrap_err().contains("at most"));
    }
}
