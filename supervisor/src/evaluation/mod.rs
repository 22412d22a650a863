//! One evaluation, from a checked request to its answer: the straight line.
//!
//! Owns the order of steps and the one loop. Every failure leaves by one door: the
//! verdict is set once, the worker is retired or killed, the answer lists what is
//! known. Never speaks to a client but through its link, and never believes a worker.

mod answering;
mod clock;
mod console;
mod end;
mod heard;
mod holding;
mod id;
mod parties;
mod program;
mod registry;
mod run;
mod stop;
mod verdict;
mod warnings;

pub(crate) use end::Ended;
pub(crate) use id::fresh as fresh_id;
pub(crate) use parties::Parties;
pub(crate) use program::{Asked, Program, Request};
pub(crate) use registry::Registry;

pub(crate) use stop::{Stop, StopCause};

use crate::host::table::FunctionTable;
use answering::Answering;
use brig_protocol::rpc::ErrorData;
pub(crate) use run::Run;

/// Runs one program.
///
/// # Errors
/// Nothing ran: the request is wrong, the queue is full, or there is no worker.
pub(crate) async fn run(request: Request, parties: Parties<'_>) -> Result<Ended, ErrorData> {
    Ok(begin(request, parties).await?.finish().await)
}

/// Brings one program to its worker. It runs when it is driven.
///
/// # Errors
/// Nothing ran: the request is wrong, the queue is full, or there is no worker.
pub(crate) async fn begin(request: Request, parties: Parties<'_>) -> Result<Run, ErrorData> {
    let mut program = request.program(&parties.grant.ceilings)?;
    let trace = parties.service.telemetry.begin(program.trace.as_deref());
    let loan = parties.borrowed(&mut program, &request)?;
    let declared = loan.as_ref().map(|loan| loan.declared().functions()).unwrap_or_default();
    let answering = Answering::new(parties.link, loan.as_ref(), &declared, &program.functions);
    let functions = answering::merged(&declared, &program.functions);
    let (granted, offered) = parties.granted(program.collections.as_deref())?;
    let schemas = (&parties.service.schemas, parties.peer.uid);
    let build = FunctionTable::build(Some(&functions), Some(&program.permissions), (granted, &offered), &program.limits, schemas);
    let (table, found) = parties.unless_stopped(build).await?;
    let table = table.following(parties.live.clone());
    program.warnings.extend(found);
    drop((functions, declared));

    let ticket = parties.ticket().await?;
    let worker = parties.worker(loan, &mut program).await?;
    let id = id::fresh("ev_")?;
    let effects = parties.listed(&id, &worker).await?;
    match Run::dispatch(program, table, (ticket, worker), answering, (id, effects.clone()), &parties) {
        // The program is with its worker: nothing needs the client's line any more.
        Ok(run) => Ok(run.traced(trace)),
        Err(data) => {
            effects.forget().await;
            Err(data)
        }
    }
}
