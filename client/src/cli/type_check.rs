//! Type checks with the user's own node and TypeScript compiler.
//!
//! Owns running them once: `checker.js` of the TypeScript SDK is part of this command and
//! is all that runs, with the program and its declarations as data. Never runs the
//! program, and never a shell.

use super::Fault;
use brig::{EvaluationError, Form};
use serde::Deserialize;
use serde_json::json;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// The SDK's own checker.
const CHECKER: &str = include_str!("../../../sdk/typescript/src/checker.js");
/// Finds the compiler where the command was given, and asks the checker.
const ASK: &str = r#"
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { typeCheck } from "./checker.mjs";
const say = (said) => process.stdout.write(JSON.stringify(said));
const { folder, program } = JSON.parse(readFileSync(0, "utf8"));
let compiler;
try {
  const found = await import(pathToFileURL(createRequire(join(folder, "package.json")).resolve("typescript")).href);
  compiler = found.default ?? found;
} catch {
  say({ missing: true });
}
if (compiler !== undefined) {
  try {
    say({ errors: typeCheck(compiler, program) });
  } catch (fault) {
    say({ fault: String(fault?.message ?? fault) });
  }
}
"#;
/// How long node may take.
const TIME: Duration = Duration::from_secs(60);

/// What node says.
#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    missing: bool,
    #[serde(default)]
    fault: Option<String>,
    #[serde(default)]
    errors: Vec<EvaluationError>,
}

/// The type errors of a program.
pub(crate) async fn faults(source: &str, declarations: &str, form: Form) -> Result<Vec<EvaluationError>, Fault> {
    let broken = |what: &str, fault: &dyn std::fmt::Display| Fault::usage(format!("types can not be checked: {what}: {fault}"));
    let folder = tempfile::tempdir().map_err(|fault| broken("a folder can not be made", &fault))?;
    for (name, text) in [("checker.mjs", CHECKER), ("ask.mjs", ASK)] {
        std::fs::write(folder.path().join(name), text).map_err(|fault| broken("a file can not be written", &fault))?;
    }
    let here = std::env::current_dir().map_err(|fault| broken("the working directory", &fault))?;
    let question = json!({"folder": here, "program": {"source": source, "declarations": declarations, "form": form}}).to_string();
    let mut node = Command::new("node")
        .arg(folder.path().join("ask.mjs"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()
        .map_err(|fault| broken("they need node (20 or newer) on PATH", &fault))?;
    let stdin = node.stdin.take();
    let give = async {
        if let Some(mut stdin) = stdin {
            // One that does not read ends without an answer, which is told below.
            stdin.write_all(question.as_bytes()).await.ok();
        }
    };
    let work = async { tokio::join!(give, node.wait_with_output()).1 };
    let output = tokio::time::timeout(TIME, work).await.map_err(|_| broken("node", &format!("took over {} s", TIME.as_secs())))?;
    let output = output.map_err(|fault| broken("node", &fault))?;
    let said: Said = serde_json::from_slice(&output.stdout).map_err(|_| broken("node gave no answer", &output.status))?;
    if said.missing {
        let advice = "the package \"typescript\" (5 or 6) is not in the working directory's project: npm install --save-dev typescript";
        return Err(Fault::usage(format!("types can not be checked: {advice}")));
    }
    match said.fault {
        Some(fault) => Err(broken("the checker", &fault)),
        None => Ok(said.errors),
    }
}
