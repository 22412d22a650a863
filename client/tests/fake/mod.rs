//! A server that speaks the protocol as a test tells it to: what a client does is
//! looked at from the other end of its socket.

#![allow(
    dead_code,
    clippy::allow_attributes,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    unreachable_pub,
    reason = "tests; each of the test programs uses its part"
)]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

/// How long any of it may take.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// One connection, seen by the server.
pub struct Peer {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
}

impl Peer {
    /// The next line, as it came.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line
    }

    /// The next message.
    pub fn read(&mut self) -> Value {
        let line = self.line();
        assert!(!line.is_empty(), "the client closed the connection");
        serde_json::from_str(&line).unwrap()
    }

    /// The next message, which must be of this method.
    pub fn expect(&mut self, method: &str) -> Value {
        let message = self.read();
        assert_eq!(message["method"], method, "{message}");
        message
    }

    /// Whether the client has closed its end.
    pub fn closed(&mut self) -> bool {
        self.line().is_empty()
    }

    pub fn write_text(&mut self, text: &str) {
        self.writer.write_all(text.as_bytes()).unwrap();
    }

    pub fn write(&mut self, message: &Value) {
        self.write_text(&format!("{message}\n"));
    }

    pub fn answer(&mut self, request: &Value, result: &Value) {
        self.write(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }

    pub fn notify(&mut self, method: &str, params: &Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub fn call(&mut self, id: &str, evaluation: &str, call: u64, function: &str, input: &Value) {
        self.call_of(None, id, evaluation, call, function, input);
    }

    /// A call of a function that was declared with this vm.
    pub fn call_of(&mut self, vm: Option<&str>, id: &str, evaluation: &str, call: u64, function: &str, input: &Value) {
        let mut params = json!({"evaluation": evaluation, "call": call, "function": function, "input": input,
            "deadlineMs": 20000, "idempotencyKey": format!("{evaluation}:{call}")});
        if let Some(vm) = vm {
            params["vm"] = json!(vm);
        }
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": "host.call", "params": params}));
    }

    pub fn started(&mut self, request: &Value, evaluation: &str) {
        self.notify("evaluation.started", &json!({"id": request["id"], "evaluation": evaluation}));
    }
}

/// A result of `evaluate` that succeeded.
pub fn succeeded(value: Value) -> Value {
    let mut result = json!({"evaluation": "ev_1", "outcome": "succeeded", "stdout": "", "stderr": "", "stdoutTruncated": false,
        "stderrTruncated": false, "warnings": [], "calls": [],
        "usage": {"wallMs": 1.5, "cpuMs": 1, "hostMs": 0, "approvalMs": 0, "peakMemoryBytes": 1024, "hostCalls": 0},
        "sandbox": {"level": "strong", "layers": ["seccomp"]}});
    result["value"] = value;
    result
}

/// One that did not.
pub fn ended(outcome: &str, code: &str) -> Value {
    let mut result = succeeded(Value::Null);
    result.as_object_mut().unwrap().remove("value");
    result["outcome"] = json!(outcome);
    result["error"] = json!({"code": code, "name": "Error", "message": "boom", "retryable": false});
    result
}

/// A listener on a socket of its own, and the thread that plays the server.
pub struct FakeServer {
    folder: TempDir,
    thread: Option<JoinHandle<()>>,
}

impl FakeServer {
    /// Plays `script` with the first client that connects.
    pub fn start(script: impl FnOnce(&mut Peer) + Send + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("brig.sock")).unwrap();
        let thread = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(DEADLINE)).unwrap();
            stream.set_write_timeout(Some(DEADLINE)).unwrap();
            let mut peer = Peer { reader: BufReader::new(stream.try_clone().unwrap()), writer: stream };
            script(&mut peer);
        });
        Self { folder, thread: Some(thread) }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("brig.sock")
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Waits for the script to end, and fails with it.
    pub fn finish(mut self) {
        if let Err(panic) = self.thread.take().unwrap().join() {
            std::panic::resume_unwind(panic);
        }
    }
}
