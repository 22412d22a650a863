//! `policy.check` and `policy.reload`.

use super::Speaker;
use crate::service::Service;
use brig_protocol::admin::PolicyResult;
use brig_protocol::codes::RequestCode;
use brig_protocol::rpc::ErrorData;
use std::sync::Arc;

/// Whether the configuration would load; changes nothing.
///
/// # Errors
/// `invalid_params` with the place in the file and what is expected there.
pub(super) async fn check(service: &Arc<Service>) -> Result<PolicyResult, ErrorData> {
    blocking(service, |service| service.would_load().map(|policy| policy.version().to_string())).await
}

/// Loads it, all of it or nothing.
///
/// # Errors
/// `invalid_params` with the place in the file and what is expected there.
pub(super) async fn reload(service: &Arc<Service>, speaker: &Speaker) -> Result<PolicyResult, ErrorData> {
    let loaded = blocking(service, |service| service.reload()).await?;
    service.record_operator(speaker.facts.uid, "policy_reloaded", &loaded.policy_version, None);
    Ok(loaded)
}
