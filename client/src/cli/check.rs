//! `brig check`: does a program parse?

use super::args::{CheckArgs, Global};
use super::exit::Exit;
use super::{Fault, read, render, session, terminal};
use brig::protocol::limits::SOURCE_BYTES;
use brig::{CheckParams, CheckResult};

/// Parses the program and says what is wrong with it.
pub(crate) async fn check(global: &Global, args: CheckArgs) -> Result<Exit, Fault> {
    let program = read::text(&args.file, "program", SOURCE_BYTES)?;
    let client = session::open(global, args.json || args.quiet).await?;
    let params = CheckParams { source: program.text.as_str().into(), form: args.form.into(), ..CheckParams::default() };
    let answer = client.check(&params).await;
    client.close().await;
    let result: CheckResult = answer?;
    if args.json {
        terminal::out(&render::json_line(&result));
    } else {
        if let Some(error) = &result.error {
            terminal::err(&render::evaluation_error(error, &program));
        }
        if result.ok && !args.quiet {
            terminal::err(&format!("{}: no problems\n", terminal::safe_lines(&program.name)));
        }
    }
    Ok(if result.ok { Exit::Succeeded } else { Exit::Failed })
}
