//! A configured function that is a program.
//!
//! Owns what the program is given and what its end means. Never a shell, never PATH, never
//! an environment but the one that is written down. How it is started and ended is in
//! [`super::run`] and [`crate::keeper`].
//!
//! | how it ends | the call |
//! |---|---|
//! | exit code 0 | completed, with what it wrote |
//! | any other exit code, and `{"error": {"message": …}}` on standard output | failed, with that |
//! | exit code 64 to 78, or one of `failure_codes` | failed |
//! | it could not be started | failed |
//! | another exit code, a signal, its time-out | unknown; failed where `effect = "read"` |

use super::arguments::{Arguments, CallFacts, Template};
use super::credentials::Credential;
use super::file::{Input, Output};
use super::run::{Finished, Label};
use crate::host::callback::CallAnswer;
use crate::host::redact::{GivenUp, Redactor, Wanted};
use crate::keeper::enter::{Ids, Limits, Orders};
use brig_protocol::client::CallFailure;
use brig_protocol::codes::CallCode;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Exit codes that mean a failure everywhere (`sysexits.h`).
const SYSEXITS: std::ops::RangeInclusive<i32> = 64..=78;
/// Longest failure that a program may describe, in bytes.
pub(super) const FAILURE_BYTES: usize = 128 * 1024;

/// What is run.
#[derive(Debug)]
pub(crate) struct Command {
    /// Absolute path.
    pub(super) program: PathBuf,
    /// Fixed texts with placeholders.
    pub(super) arguments: Arguments,
    /// Its environment.
    pub(super) environment: Vec<(String, Template)>,
    /// Its credentials.
    pub(super) credentials: Vec<Passed>,
    /// As whom; brigd's own user when nobody.
    pub(super) user: Option<Ids>,
    /// Its folder.
    pub(super) folder: PathBuf,
    /// Its file mode creation mask.
    pub(super) umask: u32,
    /// What it may use.
    pub(super) limits: Limits,
    /// What it reads.
    pub(super) input: Input,
    /// What it writes.
    pub(super) output: Output,
    /// Exit codes by which it says no.
    pub(super) failure_codes: Vec<u8>,
}

/// A credential, and how the program gets it.
#[derive(Debug)]
pub(super) struct Passed {
    pub(super) credential: Arc<Credential>,
    pub(super) variable: String,
    pub(super) as_file: bool,
}

/// What one call runs.
#[derive(Debug)]
pub(crate) struct Prepared {
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Command {
    /// The arguments and variables for a valid input.
    ///
    /// # Errors
    /// A half sentence that follows "the input"; the call does not run.
    pub(super) fn prepared(&self, input: &Value, facts: &CallFacts) -> Result<Prepared, String> {
        let mut environment = Vec::new();
        for (name, template) in &self.environment {
            if let Some(value) = template.variable(input, facts)? {
                environment.push((name.clone(), value));
            }
        }
        Ok(Prepared { arguments: self.arguments.rendered(input, facts)?, environment })
    }

    /// Everything that the program gets, but its input.
    pub(super) fn orders(&self, prepared: Prepared) -> Orders {
        let named = prepared.environment.into_iter().map(|(name, value)| (name, Zeroizing::new(value)));
        let (files, variables): (Vec<&Passed>, Vec<&Passed>) = self.credentials.iter().partition(|passed| passed.as_file);
        let secret = variables.into_iter().map(|passed| {
            // That it is text was checked when it was loaded.
            let text = std::str::from_utf8(passed.credential.expose()).unwrap_or_default();
            (passed.variable.clone(), Zeroizing::new(text.to_owned()))
        });
        let file = |passed: &Passed| (passed.variable.clone(), Zeroizing::new(passed.credential.expose().to_vec()));
        Orders {
            program: self.program.clone(),
            arguments: prepared.arguments,
            environment: named.chain(secret).collect(),
            files: files.into_iter().map(file).collect(),
            user: self.user.clone(),
            folder: self.folder.clone(),
            umask: self.umask,
            limits: self.limits,
        }
    }

    /// The input as the program reads it.
    pub(super) fn fed<'i>(&self, input: &'i RawValue) -> &'i [u8] {
        match self.input {
            Input::Json => input.get().as_bytes(),
            Input::None => &[],
        }
    }

    /// What an end means. Nothing of what the program wrote passes but through `redactor`.
    ///
    /// # Errors
    /// [`GivenUp`]: nobody awaits it any more.
    pub(super) fn answer(
        &self,
        finished: Finished,
        label: Label<'_>,
        (redactor, wanted): (&Redactor, Wanted<'_>),
    ) -> Result<CallAnswer, GivenUp> {
        let redactor = Telling { redactor, wanted, label };
        let Some(status) = finished.status else {
            return Ok(CallAnswer::Crashed("its end was not seen".to_owned()));
        };
        if finished.not_started {
            return Ok(failed("the program could not be started; the log of brigd says why"));
        }
        if let Some(signal) = status.signal() {
            let known = nix::sys::signal::Signal::try_from(signal);
            let name = known.map_or_else(|_| format!("signal {signal}"), |known| known.as_str().to_owned());
            return Ok(CallAnswer::Crashed(format!("its program was ended by {name}")));
        }
        let code = status.code().unwrap_or(-1);
        if code == 0 {
            return self.output(finished, &redactor);
        }
        if let Some(failure) = described_failure(&finished, &redactor)? {
            return Ok(failure);
        }
        if SYSEXITS.contains(&code) || u8::try_from(code).is_ok_and(|code| self.failure_codes.contains(&code)) {
            return Ok(failed(&format!("the program failed with exit code {code}{}", meaning(code))));
        }
        Ok(CallAnswer::Crashed(format!("its program ended with exit code {code}, which says nothing of what it did")))
    }

    fn output(&self, finished: Finished, redactor: &Telling<'_>) -> Result<CallAnswer, GivenUp> {
        let bytes = finished.output.len();
        let spoilt = |code, fault: String| CallAnswer::Spoilt { code, fault, bytes };
        if self.output == Output::None {
            return Ok(CallAnswer::Output(RawValue::NULL.to_owned()));
        }
        if finished.overlong {
            let fault = "is longer than it may be (outputBytes; limits.output_bytes raises it)";
            return Ok(spoilt(CallCode::OutputTooLarge, fault.to_owned()));
        }
        let Ok(text) = String::from_utf8(finished.output) else {
            return Ok(spoilt(CallCode::InvalidOutput, "is not UTF-8".to_owned()));
        };
        let text = if self.output == Output::Text {
            let line = text.strip_suffix('\n').unwrap_or(&text);
            Value::from(redactor.clean(line)?).to_string()
        } else {
            redactor.clean_json(text.trim())?.unwrap_or_else(|| text.trim().to_owned())
        };
        Ok(match RawValue::from_string(text) {
            Ok(raw) => CallAnswer::Output(raw),
            Err(fault) if fault.is_eof() => spoilt(CallCode::InvalidOutput, "is not JSON: it is empty, or ends too early".to_owned()),
            Err(fault) => spoilt(CallCode::InvalidOutput, format!("is not JSON (line {}, column {})", fault.line(), fault.column())),
        })
    }
}

/// The redactor, which tells the log when it had to take something out: that a function
/// gives a credential away is a fault of the function.
struct Telling<'a> {
    redactor: &'a Redactor,
    wanted: Wanted<'a>,
    label: Label<'a>,
}

impl Telling<'_> {
    fn clean<'t>(&self, text: &'t str) -> Result<Cow<'t, str>, GivenUp> {
        let clean = self.redactor.clean_while(text, self.wanted)?;
        if matches!(clean, Cow::Owned(_)) {
            self.warn();
        }
        Ok(clean)
    }

    fn clean_json(&self, text: &str) -> Result<Option<String>, GivenUp> {
        Ok(self.redactor.clean_json_while(text, self.wanted)?.inspect(|_| self.warn()))
    }

    fn warn(&self) {
        let Label { function, evaluation, call } = self.label;
        tracing::warn!(function, evaluation, call, "the output of a function held a credential, which was taken out");
    }
}

fn failed(message: &str) -> CallAnswer {
    CallAnswer::Failed { message: message.to_owned(), data: None }
}

const fn meaning(code: i32) -> &'static str {
    match code {
        64 => " (wrong usage)",
        65 => " (wrong data)",
        66 => " (no such input)",
        67 => " (no such user)",
        68 => " (no such host)",
        69 => " (unavailable)",
        73 => " (can not create)",
        74 => " (input or output error)",
        75 => " (try again later)",
        76 => " (protocol error)",
        77 => " (not permitted)",
        78 => " (configuration)",
        _ => "",
    }
}

/// What a program says of its own failure.
#[derive(Deserialize)]
struct Described<'a> {
    #[serde(borrow)]
    error: Failure<'a>,
}

#[derive(Deserialize)]
struct Failure<'a> {
    message: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    code: Option<String>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

fn described_failure(finished: &Finished, redactor: &Telling<'_>) -> Result<Option<CallAnswer>, GivenUp> {
    let short = !finished.overlong && finished.output.len() <= FAILURE_BYTES;
    let Some(text) = std::str::from_utf8(&finished.output).ok().filter(|_| short) else { return Ok(None) };
    let text = redactor.clean_json(text.trim())?.unwrap_or_else(|| text.trim().to_owned());
    Ok(described(&text))
}

fn described(text: &str) -> Option<CallAnswer> {
    let Described { error } = serde_json::from_str(text).ok()?;
    let about = CallFailure { name: error.name, code: error.code, data: error.data };
    Some(CallAnswer::Failed { message: error.message, data: serde_json::value::to_raw_value(&about).ok() })
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
