//! A host function that is a command.
//!
//! Owns one run of one command: input as JSON on its standard input, output as JSON on
//! its standard output, no shell in between. A call that is cancelled or past its
//! deadline drops the future, and that kills the command's process group. Never lets a
//! command write more than [`OUTPUT_BYTES`] into memory.

use brig::protocol::escape::ShowPath as _;
use brig::{FunctionError, HostCall};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

/// Most that a command may answer, in bytes: the highest output limit there is.
const OUTPUT_BYTES: usize = 16 * 1024 * 1024;
/// Most of a failed command's standard error that becomes the error's message, in bytes.
const MESSAGE_BYTES: usize = 2 * 1024;
/// How long the answer of a command that has ended is read on, when a child of its own
/// still holds the pipe.
const PIPE_TIME: Duration = Duration::from_secs(1);

/// A command with its arguments, and the directory in which it runs.
#[derive(Debug)]
pub(crate) struct Handler {
    program: PathBuf,
    arguments: Vec<String>,
    folder: PathBuf,
}

/// What a command may say of its failure on standard output.
#[derive(Deserialize)]
struct FailureText {
    message: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    data: Option<Box<RawValue>>,
}

/// Kills the process group of a command that is still running when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // There is an id only until the process is reaped: the group is still its own.
        let group = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        if let Some(group) = group {
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        }
    }
}

impl Handler {
    /// A program with a slash in its name is relative to `folder`; any other is found
    /// on `PATH`.
    pub(crate) fn new(command: Vec<String>, folder: PathBuf) -> Self {
        let mut words = command.into_iter();
        let program = words.next().unwrap_or_default();
        let program = if program.contains('/') { folder.join(program) } else { PathBuf::from(program) };
        Self { program, arguments: words.collect(), folder }
    }

    /// Runs the command once.
    pub(crate) async fn answer(&self, input: &RawValue, call: &HostCall) -> Result<Box<RawValue>, FunctionError> {
        let mut running = self.spawn(call)?;
        let (stdin, stdout, stderr) = (running.0.stdin.take(), running.0.stdout.take(), running.0.stderr.take());
        let give = async {
            if let Some(mut stdin) = stdin {
                // A command that does not read its input is free to; its answer counts.
                stdin.write_all(input.get().as_bytes()).await.ok();
                stdin.write_all(b"\n").await.ok();
            }
        };
        let mut output = Vec::new();
        let mut said = Vec::new();
        let status = {
            let take =
                async { tokio::join!(give, read_bounded(stdout, &mut output, OUTPUT_BYTES), keep_end(stderr, &mut said, MESSAGE_BYTES)) };
            await_end(&mut running.0, take, call.deadline()).await?
        };
        if output.len() > OUTPUT_BYTES {
            return Err(FunctionError::new("output_too_large", format!("the command answered with more than {OUTPUT_BYTES} bytes")));
        }
        read_answer(status, &output, &said)
    }

    fn spawn(&self, call: &HostCall) -> Result<Running, FunctionError> {
        Command::new(&self.program)
            .args(&self.arguments)
            .current_dir(&self.folder)
            .env("BRIG_FUNCTION", call.function())
            .env("BRIG_EVALUATION", call.evaluation())
            .env("BRIG_CALL", call.call().to_string())
            .env("BRIG_IDEMPOTENCY_KEY", call.idempotency_key())
            .env("BRIG_DEADLINE_MS", call.deadline().as_millis().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map(Running)
            .map_err(|fault| {
                // Which program it was is for the person at the terminal, not for the guest.
                super::terminal::complain(&format!("{}: {} can not be started: {fault}", call.function(), self.program.shown()));
                FunctionError::new("not_started", "the function's command can not be started")
            })
    }
}

/// Waits for the end of the command and of its output, within its deadline.
async fn await_end(child: &mut Child, take: impl Future<Output = ((), bool, ())>, deadline: Duration) -> Result<ExitStatus, FunctionError> {
    let work = async {
        tokio::pin!(take);
        let mut taken = false;
        loop {
            tokio::select! {
                (_, too_much, ()) = &mut take, if !taken => {
                    taken = true;
                    if too_much {
                        child.start_kill().ok();
                    }
                }
                status = child.wait() => {
                    if !taken {
                        tokio::time::timeout(PIPE_TIME, &mut take).await.ok();
                    }
                    return status;
                }
            }
        }
    };
    match tokio::time::timeout(deadline, work).await {
        Ok(Ok(status)) => Ok(status),
        Ok(Err(_)) => Err(FunctionError::new("not_awaited", "the function's command could not be awaited")),
        Err(_) => Err(FunctionError::new("function_timed_out", "the function's command did not end in time")),
    }
}

/// Reads to the end, or one byte beyond the limit; says whether it was too much.
async fn read_bounded(source: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>, limit: usize) -> bool {
    let Some(source) = source else { return false };
    let bound = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    source.take(bound).read_to_end(into).await.ok();
    into.len() > limit
}

/// Reads to the end and keeps the last bytes: what a command says last is why it failed.
async fn keep_end(source: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>, limit: usize) {
    let Some(mut source) = source else { return };
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = source.read(&mut buffer).await {
        kept.extend_from_slice(buffer.get(..length).unwrap_or_default());
        let surplus = kept.len().saturating_sub(limit);
        kept.drain(..surplus);
    }
}

/// What the end of a command means.
fn read_answer(status: ExitStatus, output: &[u8], said: &[u8]) -> Result<Box<RawValue>, FunctionError> {
    if !status.success() {
        return Err(failure(status, output, said));
    }
    let text = std::str::from_utf8(output)
        .map_err(|_| FunctionError::new("bad_output", "the function's command answered with something that is not UTF-8"))?;
    if text.trim().is_empty() {
        return Ok(RawValue::NULL.to_owned());
    }
    serde_json::from_str(text).map_err(|fault| {
        FunctionError::new("bad_output", format!("the function's command answered with something that is not JSON: {fault}"))
    })
}

fn failure(status: ExitStatus, output: &[u8], said: &[u8]) -> FunctionError {
    use std::os::unix::process::ExitStatusExt;
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit_{code}"),
        (None, Some(signal)) => format!("signal_{signal}"),
        (None, None) => "exit_unknown".to_owned(),
    };
    if let Ok(told) = serde_json::from_slice::<FailureText>(output) {
        let mut failure = FunctionError::new(told.code.unwrap_or(code), told.message);
        if let Some(name) = told.name {
            failure = failure.with_name(name);
        }
        return match told.data {
            Some(data) => failure.with_data(data),
            None => failure,
        };
    }
    let said = String::from_utf8_lossy(said);
    let message = said.trim();
    let message = if message.is_empty() { format!("the function's command ended with {status}") } else { message.to_owned() };
    FunctionError::new(code, message)
}
