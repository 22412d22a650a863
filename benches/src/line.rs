//! The straight line, through brigd's socket, client included.

use crate::Size;
use crate::report::{Figures, Report, figures, timed};
use acceptance::Brigd;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

/// As little client as there can be: lines out, lines in.
pub(crate) struct Caller {
    stream: UnixStream,
    buffer: Vec<u8>,
    filled: usize,
}

impl Caller {
    pub(crate) fn connect(socket: &Path) -> Self {
        Self { stream: UnixStream::connect(socket).expect("brigd accepts"), buffer: vec![0; 4 << 20], filled: 0 }
    }

    fn send(&mut self, line: &[u8]) {
        self.stream.write_all(line).expect("brigd reads");
    }

    /// Hands the next line to `see`.
    fn line<T>(&mut self, see: impl FnOnce(&[u8], &mut UnixStream) -> T) -> T {
        loop {
            let filled = self.buffer.get(..self.filled).expect("within the buffer");
            if let Some(end) = filled.iter().position(|byte| *byte == b'\n') {
                let seen = see(self.buffer.get(..end).expect("the line"), &mut self.stream);
                self.buffer.copy_within(end + 1..self.filled, 0);
                self.filled -= end + 1;
                return seen;
            }
            let room = self.buffer.get_mut(self.filled..).expect("room");
            let length = self.stream.read(room).expect("brigd answers");
            assert!(length > 0, "brigd hung up");
            self.filled += length;
        }
    }

    /// One evaluation; host calls are answered with their own input.
    pub(crate) fn evaluate(&mut self, request: &[u8], expected: &[u8]) {
        self.send(request);
        loop {
            let done = self.line(|line, stream| {
                if let Some(id) = host_call_id(line) {
                    let input = host_call_input(line);
                    let mut answer = Vec::with_capacity(input.len() + 64);
                    answer.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
                    answer.extend_from_slice(id);
                    answer.extend_from_slice(b",\"result\":");
                    answer.extend_from_slice(input);
                    answer.extend_from_slice(b"}\n");
                    stream.write_all(&answer).expect("brigd reads");
                    return false;
                }
                assert!(contains(line, expected), "{}", String::from_utf8_lossy(line));
                true
            });
            if done {
                return;
            }
        }
    }
}

/// The raw id of a `host.call` line; nothing when it is another line. The layout is
/// that of the golden vectors.
fn host_call_id(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"{\"jsonrpc\":\"2.0\",\"id\":")?;
    let end = rest.iter().position(|byte| *byte == b',')?;
    let (id, after) = rest.split_at(end);
    after.starts_with(b",\"method\":\"host.call\"").then_some(id)
}

fn host_call_input(line: &[u8]) -> &[u8] {
    let start = find(line, b"\"input\":").expect("an input") + 8;
    let end = find_last(line, b",\"deadlineMs\"").expect("a deadline");
    line.get(start..end).expect("the input")
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

fn find_last(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).rposition(|window| window == part)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    let start = text.get(..text.len().min(400)).unwrap_or_default();
    find(start, part).is_some()
}

fn request(params: &serde_json::Value) -> Vec<u8> {
    let mut line = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "evaluate", "params": params}).to_string().into_bytes();
    line.push(b'\n');
    line
}

fn add() -> Vec<u8> {
    request(&serde_json::json!({"source": "1+2"}))
}

pub(crate) fn latency(brigd: &Brigd, size: Size, report: &mut Report) {
    let mut caller = Caller::connect(&brigd.socket());
    let line = add();
    report.row("(a) 1+2, ready worker", timed(size.short, || caller.evaluate(&line, b"\"value\":3")));
    let mut times = Vec::new();
    for _ in 0..size.short {
        // Three milliseconds apart: caches are cold, a ready worker is surely there.
        let next = Instant::now() + std::time::Duration::from_millis(3);
        while Instant::now() < next {
            std::thread::park_timeout(next - Instant::now());
        }
        let start = Instant::now();
        caller.evaluate(&line, b"\"value\":3");
        times.push(start.elapsed());
    }
    report.row("(a) 1+2, ready worker, 3 ms apart", figures(times));
    let program = request(&serde_json::json!({"source": "const f=n=>n<2?n:f(n-1)+f(n-2); return f(20)"}));
    report.row("fib(20)", timed(size.long, || caller.evaluate(&program, b"\"value\":6765")));
}

fn with_calls(count: usize, together: bool) -> Vec<u8> {
    let source = if together {
        format!("return (await Promise.all(Array.from({{length: {count}}}, (_, n) => svc.echo({{ n }})))).length")
    } else {
        format!("let s = 0; for (let n = 0; n < {count}; n++) s += (await svc.echo({{ n: 1 }})).n; return s")
    };
    request(&serde_json::json!({
        "source": source,
        "hostFunctions": {"svc": {"echo": {"inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}}}},
    }))
}

pub(crate) fn host_calls(brigd: &Brigd, size: Size, report: &mut Report) {
    let mut caller = Caller::connect(&brigd.socket());
    let mut sequential = |count: usize, report: &mut Report| {
        let line = with_calls(count, false);
        let expected = format!("\"value\":{count}");
        let figures: Figures = timed(size.long, || caller.evaluate(&line, expected.as_bytes()));
        report.row(&format!("(b) {count} host calls, one after the other"), figures);
        figures.p50
    };
    let ten = sequential(10, report);
    let hundred = sequential(100, report);
    report.count("(b) one host call, sequential", (hundred - ten) / 90.0, "µs");
    let line = with_calls(100, true);
    let figures = timed(size.long, || caller.evaluate(&line, b"\"value\":100"));
    report.row("(b') 100 host calls in one Promise.all", figures);
    let bare = report.p50("(a) 1+2, ready worker").unwrap_or(0.0);
    report.count("(b') one of 100 host calls in one Promise.all", (figures.p50 - bare) / 100.0, "µs");
}

pub(crate) fn large_values(brigd: &Brigd, size: Size, report: &mut Report) {
    let mut caller = Caller::connect(&brigd.socket());
    let line = request(&serde_json::json!({
        "source": "const text = 'x'.repeat(1000000); return (await svc.echo({ text })).text.length",
        "hostFunctions": {"svc": {"echo": {}}},
    }));
    let figures = timed(size.long.min(200), || caller.evaluate(&line, b"\"value\":1000000"));
    report.row("(f) 1 MB through a host call and back", figures);
    let line = request(&serde_json::json!({
        "source": "const rows = Array.from({length: 12000}, (_, id) => ({id, name: 'row ' + id, price: id / 4, tags: ['a', 'b'], ok: true})); \
                   return (await svc.echo({ rows })).rows.length",
        "hostFunctions": {"svc": {"echo": {}}},
    }));
    let figures = timed(size.long.min(100), || caller.evaluate(&line, b"\"value\":12000"));
    report.row("12,000 rows (0.9 MB) through a host call and back", figures);
}

pub(crate) fn throughput(brigd: &Brigd, size: Size, report: &mut Report) {
    for clients in [1usize, 2, 8] {
        let rate = throughput_of(brigd, clients, size.throughput / clients.min(4));
        report.count(&format!("(c) evaluations/s, {clients} client{}", if clients == 1 { "" } else { "s" }), rate, "1/s");
    }
}

/// Evaluations a second by so many clients, each of which asks so often.
pub(crate) fn throughput_of(brigd: &Brigd, clients: usize, each: usize) -> f64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let mut caller = Caller::connect(&brigd.socket());
                let line = add();
                for _ in 0..each {
                    caller.evaluate(&line, b"\"value\":3");
                }
            });
        }
    });
    (clients * each) as f64 / start.elapsed().as_secs_f64()
}

pub(crate) fn first_evaluation(runs: usize, report: &mut Report) {
    let line = add();
    let mut times = Vec::new();
    for _ in 0..runs {
        let start = Instant::now();
        let brigd = Brigd::start();
        Caller::connect(&brigd.socket()).evaluate(&line, b"\"value\":3");
        times.push(start.elapsed());
    }
    report.row("(g) start of brigd to first answer", figures(times));
}
