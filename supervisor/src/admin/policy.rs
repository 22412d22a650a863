//! `policy.check` and `policy.reload`.

use super::Speaker;
use crate::audit::event::By;
use crate::config::ConfigFault;
use crate::host::configured::Disabled;
use crate::reload::Reloaded;
use crate::service::Service;
use brig_protocol::admin::{FileOff, PolicyResult};
use brig_protocol::codes::RequestCode;
use brig_protocol::escape::ShowPath as _;
use brig_protocol::escape::escaped;
use brig_protocol::rpc::ErrorData;
use std::sync::Arc;

/// Longest fault that is told, in bytes.
const FAULT_BYTES: usize = 4 * 1024;

/// Whether the configuration would load; changes nothing.
///
/// # Errors
/// `invalid_params` with the place in the file and what is expected there.
pub(super) async fn check(service: &Arc<Service>) -> Result<PolicyResult, ErrorData> {
    read(service, Service::check_configuration).await
}

/// Loads it, all of it or nothing.
///
/// # Errors
/// `invalid_params` with the place in the file and what is expected there.
pub(super) async fn reload(service: &Arc<Service>, speaker: &Speaker) -> Result<PolicyResult, ErrorData> {
    let by = speaker.facts.uid;
    read(service, move |service| service.reload(By::Uid(by))).await
}

/// Reads files: off the async threads.
async fn read(
    service: &Arc<Service>,
    work: impl FnOnce(&Service) -> Result<Reloaded, ConfigFault> + Send + 'static,
) -> Result<PolicyResult, ErrorData> {
    let own = Arc::clone(service);
    let done = tokio::task::spawn_blocking(move || work(&own)).await;
    let done = done.map_err(|fault| ErrorData::new(RequestCode::InternalError, format!("the configuration could not be read: {fault}")))?;
    let loaded = done.map_err(|fault| {
        // Lines stay lines: a caret points at the place.
        let told: Vec<String> = fault.to_string().lines().map(|line| escaped(line, FAULT_BYTES)).collect();
        ErrorData::new(RequestCode::InvalidParams, format!("{}\nwhat held before still does", told.join("\n")))
    })?;
    let notes = loaded.after_restart.iter().map(|setting| format!("{setting} is changed and holds after a restart")).collect();
    Ok(PolicyResult {
        policy_version: service.policy.current().version().to_string(),
        notes,
        warnings: loaded.warnings,
        files_off: loaded.off.iter().map(file_off).collect(),
    })
}

/// A file of functions that is not used, in one line.
pub(super) fn file_off(disabled: &Disabled) -> FileOff {
    FileOff { file: disabled.file.shown().to_string(), why: escaped(&disabled.fault, FAULT_BYTES) }
}
