//! One evaluation, from a checked request to its answer: the straight line.
//!
//! Owns the order of steps and the one loop. Every failure leaves by one door: the
//! verdict is set once, the worker is retired or killed, the answer lists what is
//! known. Never speaks to a client but through its link, and never believes a worker.

mod clock;
mod console;
mod end;
mod heard;
mod id;
mod parties;
mod program;
mod registry;
mod run;
mod stop;
mod verdict;
mod warnings;

pub(crate) use end::Ended;
pub(crate) use parties::Parties;
pub(crate) use program::{Program, Request};
pub(crate) use registry::Registry;

pub(crate) use stop::{Stop, StopCause};

use crate::host::table::FunctionTable;
use brig_protocol::rpc::ErrorData;
use run::Run;

/// Runs one program.
///
/// # Errors
/// Nothing ran: the request is wrong, the queue is full, or there is no worker.
pub(crate) async fn run(request: Request, parties: Parties<'_>) -> Result<Ended, ErrorData> {
    let mut program = request.program(&parties.service.ceilings)?;
    let (table, found) = FunctionTable::build(
        Some(&program.functions),
        Some(&program.permissions),
        parties.scopes(),
        &program.limits,
        &parties.service.schemas,
    )
    .await?;
    program.warnings.extend(found);

    let ticket = parties.ticket().await?;
    let lease = parties.lease().await?;
    let mut run = Run::dispatch(program, table, ticket, lease, &parties)?;
    // The program is with its worker: nothing needs the client's line any more.
    drop(request);

    loop {
        let event = run.next().await;
        if run.take(event).is_break() {
            break;
        }
    }
    Ok(run.end().await)
}
