//! A nursery played by a thread over the control link. Its workers are real processes
//! that wait for the end of the test, so that there is something to kill; what they say,
//! the thread says.

use brig_protocol::control::{Configure, Exited, FRAME_MAX, Kind, Layer, Layers, Ready, Report, Request, Spawn, Spawned, WaitStatus};
use brig_protocol::frame::build;
use brig_protocol::worker::{Ready as Hello, ready_frame, rehearse_frame};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io::{IoSlice, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

/// What the nursery answers to `Configure`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Ready,
    Dies,
    Garbage,
    Silent,
    Misses(Layer),
    /// Claims to be ready without this layer.
    ReadyWithout(Layer),
}

/// What it answers to a `Spawn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Birth {
    Good,
    /// The worker answers its hang-up with nothing.
    Lingers,
    Fails(u16),
    Descriptors(usize),
    Truncated,
    Dies,
    Silent,
    Hello(&'static str),
    NoHello,
    Hangs,
    ExitsEarly(u8),
    /// Reports about workers that nobody asked for come first.
    WithStrays,
}

#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) starts: Vec<Start>,
    pub(super) births: Vec<Birth>,
    /// All spawns that were asked.
    pub(super) asked: Vec<Spawn>,
    pub(super) configured: Vec<Configure>,
    /// Whether each worker that nobody had asked for was killed.
    pub(super) strays: Vec<bool>,
    /// What workers answer to what they hear; without it they say it again.
    pub(super) speak: Option<Speak>,
}

/// What a played worker does when it has heard this.
pub(crate) type Speak = fn(&str) -> Spoken;

/// What a played worker does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Spoken {
    /// Says these bytes.
    Bytes(Vec<u8>),
    /// Says these bytes, and ends with this code.
    Exit(Vec<u8>, u8),
    /// Ends by this signal.
    Signal(u8),
}

/// The script, shared with the test: what is left of it is played, then all goes well.
#[derive(Clone, Debug, Default)]
pub(super) struct Play(pub(super) Arc<Mutex<Script>>);

struct Actor {
    spawn: Spawn,
    child: Child,
    pidfd: OwnedFd,
    socket: UnixStream,
    lingers: bool,
    open: bool,
}

struct Stage {
    play: Play,
    link: OwnedFd,
    actors: Vec<Actor>,
    layers: Layers,
}

impl Play {
    pub(super) fn start(&self, link: OwnedFd) {
        let stage = Stage { play: self.clone(), link, actors: Vec::new(), layers: all_layers() };
        std::thread::spawn(move || stage.run().unwrap_or(()));
    }

    pub(super) fn script<R>(&self, with: impl FnOnce(&mut Script) -> R) -> R {
        with(&mut self.0.lock().unwrap())
    }

    fn next_start(&self) -> Start {
        self.script(|script| if script.starts.is_empty() { Start::Ready } else { script.starts.remove(0) })
    }

    fn next_birth(&self) -> Birth {
        self.script(|script| if script.births.is_empty() { Birth::Good } else { script.births.remove(0) })
    }
}

pub(super) fn all_layers() -> Layers {
    let mut layers = Layers::none();
    for layer in Layer::ALL {
        layers.activate(*layer);
    }
    layers
}

fn hello(layers: &Layers) -> Vec<u8> {
    let layers = Layer::ALL.iter().filter(|layer| layers.has(**layer)).map(|layer| layer.name().to_owned()).collect();
    ready_frame(&Hello { layers }).unwrap()
}

impl Stage {
    /// Until the link ends, or the script says so.
    fn run(mut self) -> Option<()> {
        let Request::Configure(configure) = self.hear()? else { panic!("not configured first") };
        self.play.script(|script| script.configured.push(configure));
        match self.play.next_start() {
            Start::Ready => {}
            Start::Dies => return None,
            Start::Garbage => self.say_bytes(b"nonsense", &[]),
            Start::Silent => {
                self.hear();
                return None;
            }
            Start::Misses(layer) => self.say(&Report::Failed { layer, errno: 1 }, &[]),
            Start::ReadyWithout(layer) => {
                let mut layers = Layers::none();
                for other in Layer::ALL.iter().filter(|other| **other != layer) {
                    layers.activate(*other);
                }
                self.layers = layers;
            }
        }
        self.say(&Report::Ready(Ready { layers: self.layers, landlock_abi: 7, pid: 0 }), &[]);
        loop {
            let ready = self.wait();
            for place in (0..self.actors.len()).rev() {
                self.attend(place, &ready)?;
            }
            if ready.first() == Some(&true) {
                let Request::Spawn(spawn) = self.hear()? else { panic!("configured twice") };
                self.bear(spawn)?;
            }
        }
    }

    /// Which of the link and then, for each actor, its process and its socket are readable.
    fn wait(&self) -> Vec<bool> {
        let mut entries = vec![PollFd::new(&self.link, PollFlags::IN)];
        for actor in &self.actors {
            entries.push(PollFd::new(&actor.pidfd, PollFlags::IN));
            let interest = if actor.open { PollFlags::IN } else { PollFlags::empty() };
            entries.push(PollFd::new(&actor.socket, interest));
        }
        poll(&mut entries, None).unwrap();
        entries.iter().map(|entry| entry.revents().intersects(PollFlags::IN)).collect()
    }

    fn attend(&mut self, place: usize, ready: &[bool]) -> Option<()> {
        let (died, spoken) = (ready[1 + 2 * place], ready[2 + 2 * place]);
        if died {
            self.reap(place, WaitStatus::Signal(9));
        } else if spoken {
            let actor = &mut self.actors[place];
            let mut bytes = vec![0; 4096];
            let mut length = actor.socket.read(&mut bytes).unwrap_or(0);
            // What is told to rehearse says nothing to that.
            let rehearse = rehearse_frame().unwrap();
            if bytes[..length].starts_with(&rehearse) {
                bytes.drain(..rehearse.len());
                length -= rehearse.len();
                if length == 0 {
                    return Some(());
                }
            }
            let said = String::from_utf8_lossy(&bytes[..length]).into_owned();
            if length == 0 && actor.lingers {
                actor.open = false;
            } else if length == 0 {
                // A process with a SIGKILL on its way does not exit by itself.
                let mut entry = [PollFd::new(&actor.pidfd, PollFlags::IN)];
                let killed = poll(&mut entry, Some(&Timespec { tv_sec: 0, tv_nsec: 20_000_000 })).unwrap() > 0;
                self.end(place, if killed { WaitStatus::Signal(9) } else { WaitStatus::Code(0) });
            } else if said.contains("segv") {
                self.end(place, WaitStatus::Signal(11));
            } else if said.contains("nursery dies") {
                return None;
            } else {
                let speak = self.play.script(|script| script.speak);
                match speak.map_or_else(|| Spoken::Bytes(bytes[..length].to_vec()), |speak| speak(&said)) {
                    // Nobody hears it once the supervisor has hung up.
                    Spoken::Bytes(bytes) => actor.socket.write_all(&bytes).unwrap_or(()),
                    Spoken::Exit(bytes, code) => {
                        actor.socket.write_all(&bytes).unwrap_or(());
                        self.end(place, WaitStatus::Code(code));
                    }
                    Spoken::Signal(signal) => self.end(place, WaitStatus::Signal(signal)),
                }
            }
        }
        Some(())
    }

    fn end(&mut self, place: usize, status: WaitStatus) {
        self.actors[place].child.kill().unwrap();
        self.reap(place, status);
    }

    fn reap(&mut self, place: usize, status: WaitStatus) {
        let mut actor = self.actors.remove(place);
        actor.child.wait().unwrap();
        let Spawn { slot, generation, .. } = actor.spawn;
        drop(actor);
        self.say(&Report::Exited(Exited { slot, generation, status, user_us: 1000, system_us: 500, max_rss_kb: 2048 }), &[]);
    }

    fn actor(spawn: Spawn) -> (Actor, OwnedFd) {
        let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        let (socket, theirs) = UnixStream::pair().unwrap();
        (Actor { spawn, child, pidfd, socket, lingers: false, open: true }, theirs.into())
    }

    fn bear(&mut self, spawn: Spawn) -> Option<()> {
        self.play.script(|script| script.asked.push(spawn));
        let Spawn { slot, generation, .. } = spawn;
        let birth = self.play.next_birth();
        match birth {
            Birth::Fails(errno) => {
                self.say(&Report::SpawnFailed { slot, generation, errno }, &[]);
                return Some(());
            }
            Birth::Dies => return None,
            Birth::Silent => return Some(()),
            _ => {}
        }
        let (mut actor, theirs) = Self::actor(spawn);
        let report = Report::Spawned(Spawned { slot, generation, pid: 2 });
        match birth {
            Birth::Descriptors(count) => {
                let along = vec![actor.pidfd.as_fd(); count];
                self.say(&report, &along);
                actor.child.kill().unwrap();
                actor.child.wait().unwrap();
                return Some(());
            }
            Birth::Truncated => {
                self.say_bytes(&report.encode()[..9], &[actor.pidfd.as_fd(), theirs.as_fd()]);
                actor.child.kill().unwrap();
                actor.child.wait().unwrap();
                return Some(());
            }
            Birth::WithStrays => self.strays(spawn),
            Birth::Lingers => actor.lingers = true,
            _ => {}
        }
        self.say(&report, &[actor.pidfd.as_fd(), theirs.as_fd()]);
        let said = match birth {
            Birth::Hello(text) => build(|out| out.extend_from_slice(text.as_bytes())).unwrap(),
            Birth::NoHello | Birth::Hangs | Birth::ExitsEarly(_) => Vec::new(),
            _ => hello(&self.layers),
        };
        actor.socket.write_all(&said).unwrap();
        if birth == Birth::Hangs {
            actor.socket.shutdown(std::net::Shutdown::Both).unwrap();
            actor.open = false;
        }
        self.actors.push(actor);
        if let Birth::ExitsEarly(code) = birth {
            self.end(self.actors.len() - 1, WaitStatus::Code(code));
        }
        Some(())
    }

    /// A worker of another generation, alive; exits of it and of nobody.
    fn strays(&mut self, spawn: Spawn) {
        let late = Spawn { generation: spawn.generation + 7, kind: Kind::Once, ..spawn };
        let (mut actor, theirs) = Self::actor(late);
        let report = Report::Spawned(Spawned { slot: late.slot, generation: late.generation, pid: 3 });
        self.say(&report, &[actor.pidfd.as_fd(), theirs.as_fd()]);
        let mut entry = [PollFd::new(&actor.pidfd, PollFlags::IN)];
        let died = poll(&mut entry, Some(&Timespec { tv_sec: 5, tv_nsec: 0 })).unwrap() > 0;
        self.play.script(|script| script.strays.push(died));
        actor.child.kill().unwrap();
        actor.child.wait().unwrap();
        for slot in [late.slot, u16::MAX] {
            let status = WaitStatus::Signal(11);
            let exited = Exited { slot, generation: late.generation, status, user_us: 0, system_us: 0, max_rss_kb: 0 };
            self.say(&Report::Exited(exited), &[]);
        }
    }

    fn hear(&self) -> Option<Request> {
        let mut bytes = [0; FRAME_MAX + 1];
        let length = rustix::io::read(&self.link, &mut bytes).ok().filter(|length| *length > 0)?;
        Some(Request::decode(&bytes[..length]).unwrap())
    }

    fn say(&self, report: &Report, along: &[BorrowedFd<'_>]) {
        self.say_bytes(&report.encode(), along);
    }

    fn say_bytes(&self, bytes: &[u8], along: &[BorrowedFd<'_>]) {
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !along.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(along)));
        }
        // Nobody hears it once the supervisor has hung up.
        sendmsg(&self.link, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).unwrap_or(0);
    }
}

impl Drop for Stage {
    /// As the kernel does it: with the nursery go its workers.
    fn drop(&mut self) {
        for actor in &mut self.actors {
            pidfd_send_signal(&actor.pidfd, Signal::KILL).unwrap_or(());
            actor.child.wait().unwrap();
        }
    }
}
