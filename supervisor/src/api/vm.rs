//! `vm.create` and `vm.dispose`: their params.
//!
//! Owns checking them against the ceilings of the principal. Never makes or ends a vm:
//! [`crate::vm`] does.

use super::{evaluate, params};
use crate::evaluation::Request;
use crate::listener::Peer;
use crate::service::Service;
use crate::vm::Declared;
use brig_protocol::client::{HostFunctions, VmDisposeParams};
use brig_protocol::codes::RequestCode;
use brig_protocol::limits::{Limits, RequestedLimits};
use brig_protocol::rpc::ErrorData;
use serde::Deserialize;
use serde_json::value::RawValue;

/// `VmCreateParams` with the collections also as they stand.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateParams<'a> {
    #[serde(borrow, default)]
    host_functions: Option<&'a RawValue>,
    #[serde(default)]
    limits: Option<RequestedLimits>,
    #[serde(default)]
    time_zone: Option<String>,
}

/// The same, for the fault that names a member within the collections.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreateFunctions<'a> {
    #[serde(borrow, default, rename = "hostFunctions")]
    _host_functions: Option<HostFunctions<'a>>,
}

/// Checks the params of `vm.create`.
///
/// # Errors
/// `invalid_params`, naming the member.
pub(crate) fn declared(request: Request, ceilings: &Limits) -> Result<Declared, ErrorData> {
    let params: CreateParams<'_> = params::parse(request.text())?;
    params::parse::<CreateFunctions<'_>>(request.text())?;
    evaluate::check_time_zone(params.time_zone.as_deref())?;
    let limits = evaluate::narrowed(ceilings, params.limits.unwrap_or_default(), None)?.0;
    let functions = params.host_functions.map(|functions| functions.get().to_owned());
    let time_zone = params.time_zone;
    let mut held = request.into_held();
    // Less than the line had.
    if !held.resize(functions.as_deref().map_or(0, str::len)) {
        return Err(ErrorData::new(RequestCode::Overloaded, "this user has as many bytes waiting in brigd as it may; nothing was made"));
    }
    Ok(Declared { functions, limits, time_zone, _held: held })
}

/// Ends a vm of this principal.
///
/// # Errors
/// `invalid_params` or `vm_not_found`.
pub(crate) fn dispose(service: &Service, peer: Peer, text: &str) -> Result<(), ErrorData> {
    let params: VmDisposeParams = params::parse(text)?;
    service.vms.dispose(peer.uid, &params.vm)
}
