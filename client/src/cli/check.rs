//! `brig check`: does a program parse, and does it fit its functions?

use super::args::{CheckArgs, Global};
use super::exit::Exit;
use super::read::Text;
use super::{Fault, functions_file, read, render, session, terminal, type_check};
use brig::protocol::limits::SOURCE_BYTES;
use brig::{CheckParams, CheckResult, Client, EvaluationError};
use serde_json::json;

/// Parses the program, checks its types where that is asked for, and says what is wrong.
pub(crate) async fn check(global: &Global, args: CheckArgs) -> Result<Exit, Fault> {
    let program = read::text(&args.file, "program", SOURCE_BYTES)?;
    let functions = functions_file::load(&args.functions)?;
    let client = session::open(global, args.json || args.quiet).await?;
    let errors = errors(&client, &program, &args, functions).await;
    client.close().await;
    let errors = errors?;
    let ok = errors.is_empty();
    if args.json {
        let mut result = json!(CheckResult { ok, error: errors.first().cloned() });
        if let (Some(members), true) = (result.as_object_mut(), args.types && !ok) {
            members.insert("errors".to_owned(), json!(errors));
        }
        terminal::out(&render::json_line(&result));
        return Ok(if ok { Exit::Succeeded } else { Exit::Failed });
    }
    for error in &errors {
        terminal::err(&render::evaluation_error(error, &program));
    }
    if ok && !args.quiet {
        terminal::err(&format!("{}: no problems\n", terminal::safe_lines(&program.name)));
    }
    Ok(if ok { Exit::Succeeded } else { Exit::Failed })
}

async fn errors(client: &Client, program: &Text, args: &CheckArgs, functions: brig::HostFunctions) -> Result<Vec<EvaluationError>, Fault> {
    let form: brig::Form = args.form.into();
    let params = CheckParams { source: program.text.as_str().into(), form, ..CheckParams::default() };
    let parsed = client.check(&params).await?;
    if !parsed.ok || !args.types {
        return Ok(parsed.error.into_iter().collect());
    }
    let declarations = client.types(None, &functions).await?.declarations;
    type_check::faults(&program.text, &declarations, form).await
}
