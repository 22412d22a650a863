//! A plain client: one line out, one line in.

use crate::handlers::{Handlers, Reply};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long anything in a test may take before it counts as a hang.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// What came in.
#[derive(Debug)]
pub enum Incoming {
    /// A line.
    Message(Value),
    /// The other side closed.
    Closed,
    /// Nothing until the moment that was named.
    Nothing,
}

/// A connection to brigd.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    buffer: Vec<u8>,
    next_id: u64,
    /// Replies to host calls that are due later.
    due: Vec<(Instant, Vec<u8>)>,
    /// The last line that came, as it came: member order and number spelling included.
    pub last_line: String,
    /// Notifications that came while something else was awaited.
    pub notifications: Vec<Value>,
}

impl Client {
    /// Connects.
    #[must_use]
    pub fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).expect("brigd accepts");
        stream.set_write_timeout(Some(DEADLINE)).expect("a time-out");
        Self { stream, buffer: Vec::new(), next_id: 0, due: Vec::new(), last_line: String::new(), notifications: Vec::new() }
    }

    /// Connects as another user: the kernel tells brigd who connected, and that is a thread
    /// of this process which is that user for as long as it takes. Only as root. Its
    /// supplementary groups are those of this process.
    #[must_use]
    pub fn connect_as(socket: &Path, uid: u32) -> Self {
        let socket = socket.to_owned();
        let connecting = std::thread::spawn(move || {
            let (uid, gid) = (rustix::process::Uid::from_raw(uid), rustix::process::Gid::from_raw(uid));
            rustix::thread::set_thread_res_gid(gid, gid, gid).expect("another group");
            rustix::thread::set_thread_res_uid(uid, uid, uid).expect("another user");
            Self::connect(&socket)
        });
        connecting.join().expect("connected")
    }

    /// Sends bytes as they are.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("brigd reads");
    }

    /// Sends bytes as they are; `false` when the other side is gone.
    pub fn try_send_raw(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Sends one message.
    pub fn send(&mut self, message: &Value) {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        self.send_raw(&line);
    }

    /// Sends a request and gives its id.
    pub fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}));
        self.next_id
    }

    /// The next message, until `until`.
    pub fn next_until(&mut self, until: Instant) -> Incoming {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let rest = self.buffer.split_off(end + 1);
                let line = std::mem::replace(&mut self.buffer, rest);
                self.last_line = String::from_utf8(line).expect("brigd writes UTF-8");
                let text = &self.last_line;
                return Incoming::Message(serde_json::from_str(text).unwrap_or_else(|fault| shallow(text, &fault)));
            }
            let now = Instant::now();
            if now >= until {
                return Incoming::Nothing;
            }
            self.stream.set_read_timeout(Some((until - now).max(Duration::from_micros(10)))).expect("a time-out");
            let mut chunk = vec![0u8; 256 * 1024];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Incoming::Closed,
                Ok(length) => self.buffer.extend_from_slice(chunk.get(..length).unwrap_or_default()),
                Err(fault) if matches!(fault.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
                Err(_) => return Incoming::Closed,
            }
        }
    }

    /// The next message.
    ///
    /// # Panics
    /// When none comes in time.
    pub fn next_message(&mut self) -> Value {
        match self.next_until(Instant::now() + DEADLINE) {
            Incoming::Message(message) => message,
            other => panic!("expected a message, got {other:?}"),
        }
    }

    /// The answer to request `id`, host calls being handled meanwhile.
    pub fn answer(&mut self, id: u64, handlers: &mut Handlers) -> Value {
        let deadline = Instant::now() + DEADLINE;
        loop {
            self.send_due();
            let until = self.due.iter().map(|(at, _)| *at).min().unwrap_or(deadline).min(deadline);
            match self.next_until(until) {
                Incoming::Message(message) => {
                    if message.get("method").is_some() {
                        self.take_call(&message, handlers);
                    } else if message.get("id") == Some(&json!(id)) {
                        return message;
                    } else {
                        panic!("an answer to another request while {id} was awaited: {message}");
                    }
                }
                Incoming::Closed => panic!("brigd closed the connection while {id} was awaited"),
                Incoming::Nothing => assert!(Instant::now() < deadline, "no answer to {id} in time"),
            }
        }
    }

    /// A request and its answer.
    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        self.answer(id, &mut Handlers::none())
    }

    /// A request whose answer must be a result.
    pub fn result(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.call(method, params);
        answer.get("result").unwrap_or_else(|| panic!("{method} was refused: {answer}")).clone()
    }

    /// Runs a program without host functions; its result.
    pub fn evaluate(&mut self, source: &str) -> Value {
        self.result("evaluate", &json!({"source": source}))
    }

    /// Runs a program with these params and handlers; its result.
    pub fn evaluate_with(&mut self, params: &Value, handlers: &mut Handlers) -> Value {
        let id = self.request("evaluate", params);
        let answer = self.answer(id, handlers);
        answer.get("result").unwrap_or_else(|| panic!("evaluate was refused: {answer}")).clone()
    }

    /// Answers a host call, now or when it is due; keeps notifications.
    pub fn take_call(&mut self, message: &Value, handlers: &mut Handlers) {
        if message.get("method") != Some(&json!("host.call")) {
            self.notifications.push(message.clone());
            return;
        }
        let id = message.get("id").expect("a host call has an id").to_string();
        let params = message.get("params").expect("a host call has params");
        let function = params.get("function").and_then(Value::as_str).expect("a host call names its function");
        let reply = match params.get("rawInput").and_then(Value::as_str) {
            Some(raw) => handlers.handle_raw(function, raw),
            None => handlers.handle(function, params.get("input").unwrap_or(&Value::Null)),
        };
        let (delay, body) = match reply {
            Reply::Never => return,
            Reply::After(delay, body) => (delay, body),
        };
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{body}}}\n").into_bytes();
        self.due.push((Instant::now() + delay, line));
        self.send_due();
    }

    fn send_due(&mut self) {
        let now = Instant::now();
        let (ready, waiting) = std::mem::take(&mut self.due).into_iter().partition(|(at, _)| *at <= now);
        self.due = waiting;
        let ready: Vec<(Instant, Vec<u8>)> = ready;
        for (_, line) in ready {
            self.stream.write_all(&line).ok();
        }
    }
}

/// A host call whose input is nested deeper than this side's JSON tree goes: the input
/// stays text, as `rawInput`.
fn shallow(text: &str, fault: &serde_json::Error) -> Value {
    #[derive(serde::Deserialize)]
    struct Call<'a> {
        id: Value,
        method: String,
        #[serde(borrow)]
        params: Params<'a>,
    }
    #[derive(serde::Deserialize)]
    struct Params<'a> {
        function: String,
        #[serde(borrow)]
        input: &'a serde_json::value::RawValue,
    }
    let start: String = text.chars().take(500).collect();
    let call: Call<'_> = serde_json::from_str(text).unwrap_or_else(|again| panic!("brigd wrote no JSON: {fault}; {again}: {start}"));
    json!({"id": call.id, "method": call.method, "params": {"function": call.params.function, "rawInput": call.params.input.get()}})
}
