//! `brig mcp`: the functions of a principal, as one tool for a model.
//!
//! Owns starting and ending; [`server`] answers, [`catalogue`] is what there is to call,
//! [`execute`] begins a program, [`waiting`] waits for it, [`ask`] asks the user meanwhile,
//! [`report`] words its end, [`link`] keeps the connection to brigd. Standard output is the protocol's alone: everything else goes to standard
//! error. Never decides what a program may do: brigd does, for the user who runs this.

mod ask;
mod catalogue;
mod execute;
mod http;
mod link;
mod report;
mod server;
mod waiting;

use super::args::{Global, McpArgs, requested_limits};
use super::exit::Exit;
use super::{Fault, functions_file, session};
use catalogue::Sources;
use link::Link;
use rmcp::ServiceExt;
use server::Server;
use std::sync::Arc;

/// Largest tool text that declares every function, in bytes, unless the arguments say
/// otherwise: about 7,000 tokens.
pub(crate) const FULL_BYTES: usize = 24 * 1024;

/// Serves until the client goes away or a signal comes.
pub(crate) async fn mcp(global: &Global, args: McpArgs) -> Result<Exit, Fault> {
    let listen = args.listen.as_deref().map(|address| http::Listen::of(address, args.token_file.as_deref())).transpose()?;
    let sources = Sources::new(functions_file::load(&args.functions)?, &args.allow, &args.deny, args.full_up_to)?;
    let settings = execute::Settings {
        timeout: args.timeout,
        limits: requested_limits(&args.limit),
        time_zone: args.time_zone,
        pending_after: args.pending_after,
    };
    let link = Arc::new(Link::open(session::options(global), sources).await?);
    let watching = tokio::spawn(Arc::clone(&link).watch());
    let server = Server::new(Arc::clone(&link), settings);
    let mut stops = super::run::Stops::new();
    let served = async {
        match listen {
            None => serve_stdio(server).await,
            Some(listen) => http::serve(listen, server).await,
        }
    };
    let outcome = tokio::select! {
        outcome = served => outcome,
        () = stops.next() => Ok(Exit::Succeeded),
    };
    watching.abort();
    link.close().await;
    outcome
}

/// One client on standard input and output, to the end of its input.
async fn serve_stdio(server: Server) -> Result<Exit, Fault> {
    use rmcp::service::ServerInitializeError;
    let running = match server.serve(rmcp::transport::stdio()).await {
        Ok(running) => running,
        // A client that came and went: nothing was asked, nothing is wrong.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(Exit::Succeeded),
        Err(fault) => return Err(Fault::usage(format!("the MCP client can not be served: {fault}"))),
    };
    match running.waiting().await {
        Ok(_) => Ok(Exit::Succeeded),
        Err(fault) => Err(Fault::usage(format!("the MCP session ended: {fault}"))),
    }
}
