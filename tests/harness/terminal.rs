//! A program in a terminal of its own, as a person has it.
//!
//! Owns the pseudo-terminal and reading what the program writes into it. Never looks for
//! anything in that: what a screen means is the test's affair.

use nix::pty::{Winsize, openpty};
use std::fs::File;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// A program, and the terminal that is its standard input, output and error.
#[derive(Debug)]
pub struct Terminal {
    /// `setsid`, which ends as the program does.
    pub child: Child,
    /// Where keys go in.
    pub keys: File,
    /// Pieces of what it wrote; closed when the terminal is.
    pub pieces: Receiver<Vec<u8>>,
}

impl Terminal {
    /// Starts `program` with what `prepared` adds to its command line and environment.
    /// The terminal is its controlling one: Ctrl-C is then a signal.
    pub fn open((rows, columns): (u16, u16), program: &str, prepared: impl FnOnce(&mut Command)) -> Self {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(Some(&size), None).expect("a pseudo-terminal");
        let end = || Stdio::from(pair.slave.try_clone().expect("the terminal"));
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).arg(crate::binary(program));
        prepared(&mut command);
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("setsid starts it");
        let keys = File::from(pair.master);
        let mut output = keys.try_clone().expect("the terminal twice");
        let (sender, pieces) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0u8; 4096];
            while let Ok(length @ 1..) = output.read(&mut buffer) {
                if sender.send(buffer.get(..length).unwrap_or_default().to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, keys, pieces }
    }
}
