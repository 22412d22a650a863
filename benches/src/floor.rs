//! What the machine itself costs: a bare round trip, a bare process.

use crate::Size;
use crate::report::{Report, timed};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

/// The other side of the bare round trip: answers 100 bytes with 100 bytes.
pub(crate) fn echo_peer() {
    let mut input = std::io::stdin();
    let mut output = std::io::stdout();
    let mut buffer = [0u8; 100];
    while input.read_exact(&mut buffer).is_ok() {
        if output.write_all(&buffer).and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}

fn start_peer() -> (Child, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a socket pair");
    let also_theirs = theirs.try_clone().expect("its copy");
    let child = Command::new(std::env::current_exe().expect("this program"))
        .arg("echo")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::from(OwnedFd::from(also_theirs)))
        .spawn()
        .expect("the echo peer");
    (child, ours)
}

pub(crate) fn measure(size: Size, report: &mut Report) {
    let (mut child, mut stream) = start_peer();
    let mut buffer = [7u8; 100];
    let figures = timed(size.short, || {
        stream.write_all(&buffer).expect("the peer reads");
        stream.read_exact(&mut buffer).expect("the peer answers");
    });
    report.row("floor: round trip, two processes, 100 B", figures);
    drop(stream);
    child.wait().expect("the peer ends");

    let empty = acceptance::binary("brig-bench-empty");
    let figures = timed(size.long, || {
        Command::new(&empty).status().expect("the empty program");
    });
    report.row("floor: spawn, exec and wait for an empty static program", figures);
}
