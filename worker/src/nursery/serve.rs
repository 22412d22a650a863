//! The serving loop: requests in, children out. Owns: the table of living workers. Never:
//! waits for anything but the link and its own children, reads from a worker.

use std::os::fd::{AsFd, OwnedFd};

use brig_protocol::control::{Exited, Report, Request, Spawn, Spawned};
use nix::poll::{PollFd, PollFlags};
use nix::sys::signal::SigSet;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open};

use super::fork::{self, Reaped, Side};
use super::worker::{self, Birth};
use super::{End, Nursery, Source};
use crate::lockdown::number;

/// A living worker.
#[derive(Debug, Clone, Copy)]
struct Living {
    pid: Pid,
    slot: u16,
    generation: u64,
}

/// What the supervisor gets for a worker.
struct Born {
    pid: Pid,
    handle: OwnedFd,
    socket: OwnedFd,
}

impl<W> Nursery<W> {
    /// Serves until the link closes.
    pub(super) fn serve(mut self) -> End {
        let mut living = Vec::new();
        loop {
            if let Err(end) = self.turn(&mut living) {
                return end;
            }
        }
    }

    /// Waits for a request or the end of a child, and deals with what there is. SIGCHLD is
    /// open only within the wait, so none is lost between looking and waiting.
    fn turn(&mut self, living: &mut Vec<Living>) -> Result<(), End> {
        let mut entry = [PollFd::new(self.link.socket(), PollFlags::POLLIN)];
        let asked = match nix::poll::ppoll(&mut entry, None, Some(SigSet::empty())) {
            Ok(_) => entry.iter().any(|entry| entry.revents().is_some_and(|seen| !seen.is_empty())),
            Err(nix::errno::Errno::EINTR) => false,
            Err(_) => return Err(End::Protocol),
        };
        self.report_exits(living)?;
        if !asked {
            return Ok(());
        }
        match self.link.receive()? {
            Some(Request::Spawn(spawn)) => self.spawn(spawn, living),
            Some(Request::Configure(_)) => Err(End::Protocol),
            None => Err(End::Finished),
        }
    }

    fn report_exits(&self, living: &mut Vec<Living>) -> Result<(), End> {
        while let Ok(Some(reaped)) = fork::reap(false) {
            let place = living.iter().position(|worker| worker.pid == reaped.pid);
            if let Some(place) = place {
                let worker = living.swap_remove(place);
                self.link.send(&exited(worker, reaped), &[])?;
            }
        }
        Ok(())
    }

    fn spawn(&mut self, spawn: Spawn, living: &mut Vec<Living>) -> Result<(), End> {
        let Spawn { slot, generation, .. } = spawn;
        let born = if living.iter().any(|worker| worker.slot == slot) { Err(Errno::BUSY) } else { self.bear(spawn) };
        match born {
            Ok(Born { pid, handle, socket }) => {
                living.push(Living { pid, slot, generation });
                let spawned = Spawned { slot, generation, pid: pid.as_raw_nonzero().get().unsigned_abs() };
                let along = [handle.as_fd(), socket.as_fd()];
                self.link.send(&Report::Spawned(spawned), &along)
            }
            Err(errno) => self.link.send(&Report::SpawnFailed { slot, generation, errno: number(errno) }, &[]),
        }
    }

    /// Forks a worker. The child never returns from here.
    fn bear(&mut self, spawn: Spawn) -> Result<Born, Errno> {
        let birth = Birth {
            config: self.config,
            spawn,
            inherited: self.inherited,
            found: self.found,
            own_id: self.ids.of(spawn.slot)?,
            parent: getpid(),
        };
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let pid = match fork::fork()? {
            Side::Parent(pid) => pid,
            Side::Child => self.be_born(&birth, theirs),
        };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => Ok(Born { pid, handle, socket: ours }),
            Err(errno) => {
                // Not reaped yet, so the id is still the child's.
                kill_process(pid, Signal::KILL).and(Err(errno))
            }
        }
    }

    fn be_born(&mut self, birth: &Birth, socket: OwnedFd) -> ! {
        match &mut self.source {
            Source::Copies { realm, small } => match realm.take() {
                Some(realm) => worker::live_as_copy(birth, socket, realm, small, self.program),
                None => crate::lockdown::raw::exit_now(brig_protocol::control::exit::PANIC),
            },
            Source::Images(image) => worker::become_image(birth, &socket, image),
        }
    }
}

fn exited(worker: Living, reaped: Reaped) -> Report {
    Report::Exited(Exited {
        slot: worker.slot,
        generation: worker.generation,
        status: reaped.status,
        user_us: reaped.user_us,
        system_us: reaped.system_us,
        max_rss_kb: reaped.max_rss_kb,
    })
}
