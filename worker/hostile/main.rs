//! brig-hostile: a nursery whose workers turn on their supervisor, for tests.
//!
//! brigd is started with `--worker brig-hostile`. Its workers go through the very same
//! lock-down as those of brig-worker, say that they are ready, and read one `evaluate`;
//! the program's text names what they do then. This is what a guest that has taken over
//! its worker can say on the one socket that it has. Built for tests only (feature
//! `attack`), in no package.

use brig_protocol::control::{Configure, LayerState, exit};
use brig_protocol::frame::{FrameDecoder, PREFIX_BYTES};
use brig_protocol::worker::{FromSupervisor, Ready, read_from_supervisor, ready_frame};
use brig_worker::lockdown::raw::exit_now;
use brig_worker::nursery::{self, Program, WorkerFacts};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

fn main() {
    std::panic::set_hook(Box::new(|_| exit_now(exit::PANIC)));
    let program = Program {
        warm: |_: &Configure| (),
        own: |(), _: &WorkerFacts| (),
        run: |(), socket: OwnedFd, facts: &WorkerFacts| Hostile { socket }.serve(facts),
    };
    match std::env::args().nth(1).as_deref() {
        Some("nursery") => nursery::main(program),
        Some("worker") => nursery::image_main(program),
        _ => exit_now(exit::USAGE),
    }
}

struct Hostile {
    socket: OwnedFd,
}

impl Hostile {
    fn serve(self, facts: &WorkerFacts) -> ! {
        let active = facts.layers.iter().filter(|(_, state)| *state == LayerState::Active);
        let layers = active.map(|(layer, _)| layer.name().to_owned()).collect();
        self.write(&ready_frame(&Ready { layers }).unwrap_or_default());
        let name = self.order();
        self.perform(name.strip_prefix("hostile:").unwrap_or_default());
        self.block()
    }

    /// Reads up to the first `evaluate`: the program's text.
    fn order(&self) -> String {
        let mut decoder = FrameDecoder::new(brig_protocol::frame::BODY_BYTES);
        let mut buffer = [0u8; 65536];
        loop {
            match nix::unistd::read(&self.socket, &mut buffer) {
                Ok(0) | Err(_) => exit_now(exit::FINISHED),
                Ok(length) => decoder.feed(buffer.get(..length).unwrap_or_default()),
            }
            while let Ok(Some(body)) = decoder.next_frame() {
                if let Ok(FromSupervisor::Evaluate { order, .. }) = read_from_supervisor(body) {
                    return order.source.into_owned();
                }
            }
        }
    }

    fn write(&self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            match nix::unistd::write(&self.socket, rest) {
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(_) => exit_now(exit::FINISHED),
            }
        }
    }

    /// One frame with an honest length around any body.
    fn say(&self, body: impl AsRef<[u8]>) {
        let body = body.as_ref();
        let mut frame = Vec::with_capacity(body.len() + PREFIX_BYTES);
        frame.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
        frame.extend_from_slice(body);
        self.write(&frame);
    }

    fn call(&self, id: u64, function: &str, input: &str) {
        self.say(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"host.call","params":{{"function":{function},"input":{input}}}}}"#));
    }

    fn finish(&self, id: u64, inside: &str) {
        self.say(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{{inside}"usage":{{"cpuMs":0,"peakMemoryBytes":0}}}}}}"#));
    }

    fn pause(&self, time: Duration) {
        let mut polled = [PollFd::new(self.socket.as_fd(), PollFlags::empty())];
        ppoll(&mut polled, Some(TimeSpec::from(time)), None).ok();
    }

    fn block(&self) -> ! {
        loop {
            self.pause(Duration::from_secs(3600));
        }
    }

    fn perform(&self, name: &str) {
        if !self.framing(name) && !self.envelopes(name) && !self.calls(name) {
            self.endings(name);
        }
    }

    fn framing(&self, name: &str) -> bool {
        match name {
            "length-zero" => self.write(&[0; 4]),
            "length-4gib" => self.write(&[255; 4]),
            "length-over" => self.write(&(41u32 << 20).to_le_bytes()),
            "truncated" => {
                self.write(&[100, 0, 0, 0, b'{']);
                exit_now(exit::FINISHED)
            }
            "stalled-frame" => self.write(&[100, 0, 0, 0, b'{']),
            "byte-by-byte" => {
                self.write(&[0, 0, 1, 0]);
                loop {
                    self.write(b"{");
                    self.pause(Duration::from_millis(100));
                }
            }
            "announced-never-sent" => self.write(&(40u32 << 20).to_le_bytes()),
            _ => return false,
        }
        true
    }

    fn envelopes(&self, name: &str) -> bool {
        match name {
            "not-utf8" => self.say([0xff, 0xfe, b'{']),
            "not-json" => self.say("{nonsense"),
            "array" => self.say("[]"),
            "unknown-method" => self.say(r#"{"jsonrpc":"2.0","method":"exec","params":{"text":"id"}}"#),
            "unknown-member" => {
                self.say(r#"{"jsonrpc":"2.0","id":1,"method":"host.call","params":{"function":0,"input":{},"principal":"root"}}"#)
            }
            "duplicate-keys" => {
                self.say(r#"{"jsonrpc":"2.0","id":1,"method":"host.call","params":{"function":0,"function":1,"input":{}}}"#)
            }
            "named-function" => self.call(1, "\"host.secret\"", "{}"),
            "ready-again" => self.say(r#"{"jsonrpc":"2.0","method":"ready","params":{"layers":[]}}"#),
            "reply-to-nobody" => self.finish(99, "\"value\":1,"),
            "lone-surrogate" => self.call(1, "0", r#""\ud800""#),
            "deep" => self.call(1, "0", &format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))),
            "nodes" => self.call(1, "0", &format!("[{}0]", "0,".repeat(3_000_000))),
            "forged-cancelled" => self.finish(1, r#""error":{"code":"cancelled","name":"x","message":"x","retryable":true},"#),
            "forged-crash" => self.finish(1, r#""error":{"code":"worker_crashed","name":"x","message":"x","retryable":true},"#),
            "value-and-error" => self.finish(1, r#""value":1,"error":{"code":"guest_error","name":"x","message":"x","retryable":false},"#),
            _ => return false,
        }
        true
    }

    fn calls(&self, name: &str) -> bool {
        match name {
            "id-jump" => self.call(7, "0", "{}"),
            "id-twice" => {
                self.call(1, "0", "{}");
                self.call(1, "0", "{}");
            }
            "index-outside" => self.call(1, "99", "{}"),
            "index-denied" => self.call(1, "1", "{}"),
            "huge-input" => self.call(1, "0", &format!("{{\"x\":\"{}\"}}", "y".repeat(3_000_000))),
            "million-calls" => (1..=1_000_000).for_each(|id| self.call(id, "0", "{}")),
            "unread-replies" => {
                for id in 1..=60 {
                    self.call(id, "0", &format!("{{\"x\":\"{}\"}}", "y".repeat(900_000)));
                }
            }
            "call-and-finish" => {
                self.call(1, "0", "{}");
                self.finish(1, "\"value\":1,");
            }
            _ => return false,
        }
        true
    }

    fn endings(&self, name: &str) {
        match name {
            "two-results" => {
                self.finish(1, "\"value\":1,");
                self.finish(1, "\"value\":2,");
            }
            "call-after-result" => {
                self.finish(1, "\"value\":1,");
                self.call(1, "0", "{}");
            }
            "spin-after-result" => {
                self.finish(1, "\"value\":1,");
                loop {
                    std::hint::spin_loop();
                }
            }
            "huge-result" => self.finish(1, &format!("\"value\":\"{}\",", "z".repeat(9_000_000))),
            "output-flood" => loop {
                self.say(format!(
                    r#"{{"jsonrpc":"2.0","method":"output","params":{{"stream":"stdout","text":"{}"}}}}"#,
                    "o".repeat(60_000)
                ));
            },
            "warning-flood" => loop {
                self.say(format!(
                    r#"{{"jsonrpc":"2.0","method":"warning","params":{{"warning":{{"code":"lossy_value","message":"{}"}}}}}}"#,
                    "w".repeat(60_000)
                ));
            },
            "absurd-usage" => {
                self.say(r#"{"jsonrpc":"2.0","id":1,"result":{"value":1,"usage":{"cpuMs":1e308,"peakMemoryBytes":18446744073709551615}}}"#)
            }
            "spin" => loop {
                std::hint::spin_loop();
            },
            "silence" => {}
            "exit" => exit_now(exit::FINISHED),
            "panic" => exit_now(exit::PANIC),
            "forbidden-call" => drop(nix::unistd::getpid().as_raw() + nix::unistd::getppid().as_raw()),
            "abort" => std::process::abort(),
            _ => exit_now(exit::USAGE),
        }
    }
}
