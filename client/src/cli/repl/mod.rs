//! `brig repl`: one program after the other in a kept worker.
//!
//! Owns the loop, the dot commands, and what a person is told. Never keeps a value
//! itself: names live in the vm, and are gone with it.

mod complete;
mod input;
mod inspect;
mod lines;

use super::args::{Global, ReplArgs, requested_limits};
use super::exit::Exit;
use super::read::Text;
use super::run::{Stops, await_or_cancel, scope};
use super::{Fault, functions_file, inputs, render, session, terminal};
use brig::{Client, Error, Evaluate, EvaluateResult, HostFunctions, Permissions, RequestCode, Vm, VmOptions, WarningCode};
use complete::Names;
use lines::{Lines, Read};

const HELP: &str = "\
.clear    forget all names: a new vm
.exit     end; so does Ctrl-D
.help     this
.inputs   show the global `inputs`; `.inputs name=text` or `.inputs name:=JSON` sets a member
Input goes on over several lines until its brackets, strings and templates are closed.
Ctrl-C cancels the program that runs, or drops what was typed.
";

/// `brig repl`.
pub(crate) async fn repl(global: &Global, args: ReplArgs) -> Result<Exit, Fault> {
    let functions = functions_file::load(&args.functions)?;
    inputs::read(&args.inputs)?;
    let client = session::open(global, args.quiet).await?;
    let names = Names::new(functions.names());
    let lines = Lines::open(names.clone());
    let options = VmOptions::new().host_functions(functions).limits(requested_limits(&args.limit));
    let options = match &args.time_zone {
        Some(zone) => options.time_zone(zone),
        None => options,
    };
    let mut repl = Repl { vm: client.create_vm(options.clone()).await?, inputs: args.inputs.clone(), client, options, names, args };
    let exit = repl.talk(lines).await;
    let Repl { client, vm, .. } = repl;
    // Best effort: brigd ends it with the connection in any case.
    vm.dispose().await.ok();
    client.close().await;
    exit
}

struct Repl {
    client: Client,
    vm: Vm,
    options: VmOptions,
    names: Names,
    /// All `--inputs` and `.inputs`, in order.
    inputs: Vec<String>,
    args: ReplArgs,
}

/// What a dot command means for the loop.
enum After {
    GoOn,
    End,
}

impl Repl {
    async fn talk(&mut self, mut lines: Lines) -> Result<Exit, Fault> {
        if lines.is_terminal() && !self.args.quiet {
            terminal::err("brig: .help lists the commands; names persist until .clear\n");
            self.learn_names().await;
        }
        loop {
            // Anew each time: the Ctrl-C that cancelled a program is not one for the prompt.
            let mut stops = Stops::new();
            let read;
            (lines, read) = tokio::select! {
                answer = lines.read() => answer?,
                () = stops.next() => return Ok(Exit::Cancelled),
            };
            let text = match read {
                Read::Program(text) => text,
                Read::Dropped => continue,
                Read::End => return Ok(Exit::Succeeded),
            };
            if text.trim().is_empty() {
                continue;
            }
            let after = match input::command(&text) {
                Some((name, rest)) => self.command(name, rest).await?,
                None => self.run(&text, lines.is_terminal()).await?,
            };
            if matches!(after, After::End) {
                return Ok(Exit::Succeeded);
            }
        }
    }

    async fn command(&mut self, name: &str, rest: &str) -> Result<After, Fault> {
        match name {
            "exit" => return Ok(After::End),
            "help" => terminal::err(HELP),
            "clear" => self.renew().await?,
            "inputs" => self.set_inputs(rest),
            _ => terminal::err(&format!("there is no command .{}; .help lists them\n", terminal::safe_lines(name))),
        }
        Ok(After::GoOn)
    }

    fn set_inputs(&mut self, rest: &str) {
        if !rest.is_empty() {
            self.inputs.push(rest.to_owned());
        }
        match inputs::read(&self.inputs) {
            Ok(Some(all)) => terminal::err(&render::json_line(&all)),
            Ok(None) => terminal::err("{}\n"),
            Err(fault) => {
                self.inputs.pop();
                terminal::complain(&fault.message);
            }
        }
    }

    /// Another vm in the place of this one.
    async fn renew(&mut self) -> Result<(), Fault> {
        let next = self.client.create_vm(self.options.clone()).await;
        // With a quota of one, the old one has to go first.
        let next = match next {
            Err(Error::Refused(data)) if data.code == RequestCode::QuotaExceeded => {
                let id = self.vm.id().to_owned();
                self.client.request::<serde_json::Value>("vm.dispose", &serde_json::json!({"vm": id})).await.ok();
                self.client.create_vm(self.options.clone()).await
            }
            next => next,
        }?;
        // Dropping the old one disposes of it.
        self.vm = next;
        self.names.forget();
        Ok(())
    }

    async fn run(&mut self, text: &str, person: bool) -> Result<After, Fault> {
        let request = self.request(text)?;
        let result = match await_or_cancel(|| self.vm.evaluate(request)).await {
            None => return Ok(After::End),
            Some(Ok(result)) => result,
            Some(Err(Error::Refused(data))) => {
                terminal::complain(&render::client_error(&Error::Refused(data.clone())));
                if matches!(data.code, RequestCode::VmLost | RequestCode::VmNotFound) {
                    self.replace().await?;
                }
                return Ok(After::GoOn);
            }
            Some(Err(fault)) => return Err(fault.into()),
        };
        show(text, &result, person);
        if result.warnings.iter().any(|warning| warning.code == WarningCode::VmLost) {
            self.replace().await?;
        } else if person {
            self.learn_names().await;
        }
        Ok(After::GoOn)
    }

    async fn replace(&mut self) -> Result<(), Fault> {
        self.renew().await?;
        terminal::err("brig: the vm was lost; this is a new one, without the names\n");
        Ok(())
    }

    fn request(&self, text: &str) -> Result<Evaluate, Fault> {
        let mut evaluate = Evaluate::new(text).on_output(|note| terminal::err(&terminal::safe_lines(&note.text)));
        if let Some(inputs) = inputs::read(&self.inputs)? {
            evaluate = evaluate.inputs(inputs);
        }
        if let Some(time) = self.args.timeout {
            evaluate = evaluate.timeout(time);
        }
        if let Some(scope) = scope(&self.args.allow, &self.args.deny) {
            evaluate = evaluate.permissions(Permissions { host_function: Some(scope) });
        }
        Ok(evaluate.host_functions(HostFunctions::new()))
    }

    /// The names in the realm, for completion. What goes wrong here is nobody's trouble.
    async fn learn_names(&self) {
        let evaluate = Evaluate::new("Object.getOwnPropertyNames(globalThis)").timeout(std::time::Duration::from_secs(2));
        if let Ok(result) = self.vm.evaluate(evaluate).await
            && let Some(value) = result.value
            && let Ok(names) = serde_json::from_str::<Vec<String>>(value.get())
        {
            self.names.learn(names);
        }
    }
}

/// Prints a result: the value on standard output, everything else on standard error.
fn show(text: &str, result: &EvaluateResult, person: bool) {
    terminal::err(&render::notes(result));
    if let Some(error) = &result.error {
        if !result.calls.is_empty() {
            terminal::err(&render::calls(&result.calls));
        }
        let program = Text { name: "repl".to_owned(), text: text.to_owned() };
        terminal::err(&render::evaluation_error(error, &program));
    }
    match &result.value {
        Some(value) => terminal::out(&(inspect::inspect(value) + "\n")),
        None if person && result.error.is_none() => terminal::out("undefined\n"),
        None => {}
    }
}
