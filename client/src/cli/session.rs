//! Coming to a brigd, and `brig version`.
//!
//! Owns the choice between the service and a private brigd, and says which it was.

use super::args::{Global, VersionArgs};
use super::exit::Exit;
use super::{Fault, terminal};
use brig::protocol::escape::ShowPath as _;
use brig::{Client, Error, Origin, SERVICE_SOCKET, StartOptions};
use serde_json::json;

/// Connects, or starts a private brigd and says so.
pub(crate) async fn open(global: &Global, quiet: bool) -> Result<Client, Fault> {
    let client = Client::connect_or_start(options(global)).await?;
    if let (Origin::Private { brigd, .. }, false) = (client.origin(), quiet) {
        let why = if global.private { "as asked" } else { "no service here" };
        terminal::err(&format!("brig: {why}: started a private {} for this command\n", brigd.shown()));
    }
    Ok(client)
}

/// Connects to a brigd that is there: one started for this command would have no functions.
pub(crate) async fn service(global: &Global) -> Result<Client, Fault> {
    if global.private {
        return Err(Fault::usage("a private brigd has no configured functions: leave --private out"));
    }
    Ok(Client::connect(named_socket(global)).await?)
}

/// The socket that was named, else that of the service.
pub(crate) fn named_socket(global: &Global) -> std::path::PathBuf {
    let named = global.socket.clone().or_else(|| std::env::var_os("BRIG_SOCKET").filter(|path| !path.is_empty()).map(Into::into));
    named.unwrap_or_else(|| SERVICE_SOCKET.into())
}

/// What the arguments say of the brigd to use.
pub(crate) fn options(global: &Global) -> StartOptions {
    let mut options = StartOptions::new();
    if let Some(socket) = &global.socket {
        options = options.socket(socket);
    }
    if global.private {
        options = options.private();
    }
    if global.verbose {
        options = options.inherit_stderr();
    }
    options
}

/// `brig version`: both versions. That no brigd can be reached is an answer too.
pub(crate) async fn version(global: &Global, args: VersionArgs) -> Result<Exit, Fault> {
    let facts = async {
        let client = Client::connect_or_start(options(global)).await?;
        let facts = client.initialize().await;
        client.close().await;
        facts
    };
    let facts: Result<_, Error> = facts.await;
    if args.json {
        let (server, fault) = match &facts {
            Ok(facts) => {
                (Some(json!({"version": facts.server.version, "protocol": facts.protocol_version, "sandbox": facts.sandbox})), None)
            }
            Err(fault) => (None, Some(fault.to_string())),
        };
        terminal::out(&format!("{}\n", json!({"brig": env!("CARGO_PKG_VERSION"), "brigd": server, "error": fault})));
    } else {
        terminal::out(&format!("brig {}\n", env!("CARGO_PKG_VERSION")));
        match &facts {
            Ok(facts) => terminal::out(&format!(
                "{} {} (protocol {}, sandbox {})\n",
                terminal::safe_lines(&facts.server.name),
                terminal::safe_lines(&facts.server.version),
                terminal::safe_lines(&facts.protocol_version),
                terminal::safe_lines(&facts.sandbox.level),
            )),
            Err(fault) => terminal::err(&format!("brigd: {}\n", terminal::safe_lines(&fault.to_string()))),
        }
    }
    Ok(facts.map_or_else(|fault| Exit::of_error(&fault), |_| Exit::Succeeded))
}
