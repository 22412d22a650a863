//! `functions.wait`: when what a client may call has changed.
//!
//! Owns how long that is waited for: no longer than was asked, than anybody waits, or than
//! brigd takes work. Never says what changed: the client asks for what there is.

use crate::api::evaluations::wait_time;
use crate::api::params;
use crate::evaluation::Stop;
use crate::service::{Phase, Service};
use brig_protocol::client::{FunctionsWaitParams, FunctionsWaitResult};
use brig_protocol::codes::RequestCode;
use brig_protocol::rpc::ErrorData;

/// Answers `functions.wait`.
///
/// # Errors
/// `invalid_params`, `cancelled` or `shutting_down`.
pub(crate) async fn wait(service: &Service, text: &str, stop: &Stop) -> Result<FunctionsWaitResult, ErrorData> {
    let params: FunctionsWaitParams = params::parse(text)?;
    let timeout = wait_time(params.timeout_ms)?;
    let mut phase = service.phase();
    tokio::select! {
        biased;
        cause = stop.requested() => Err(ErrorData::new(RequestCode::Cancelled, format!("{} while it waited", cause.sentence()))),
        // It would hold up the end, and has nothing to do with what runs.
        _ = phase.wait_for(|phase| *phase != Phase::Serving) => {
            Err(ErrorData::new(RequestCode::ShuttingDown, "brigd is draining; ask the next one"))
        }
        version = service.changes.beyond(params.version.as_deref()) => Ok(FunctionsWaitResult { version }),
        () = tokio::time::sleep(timeout) => Ok(FunctionsWaitResult { version: params.version.unwrap_or_default() }),
    }
}
